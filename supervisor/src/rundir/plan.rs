//! `run.json`: what was decided before anything started. Written once, read-only, and enough to read everything else.

use super::RunDir;
use super::durable::{self, DiskError};
use super::fields::{Fields, RecordError};
use super::record::{Part, Role};
use super::regular;
use crate::load::Rule;
use crate::room::Rung;
use proctor_protocol::canonical::{Value, pretty, read};
use proctor_protocol::dataset::Family;
use proctor_protocol::frozen::{ExecutionLimits, Protocol, ThresholdPolicy};
use proctor_protocol::method::{Method, MethodKind, Program};
use proctor_protocol::object;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const SCHEMA: &str = "proctor.run/1";
/// The longest plan that is read, as long as any JSON document may be.
const PLAN_BYTES: u64 = 256 << 20;

/// The frozen plan of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Name of the run, unique by chance.
    pub run_id: String,
    /// Random; every attempt repeats it, so that records of different runs cannot be mixed up.
    pub nonce: String,
    /// Wall-clock time of the decision.
    pub created_utc: String,
    /// Version of this program.
    pub version: String,
    /// SHA-256 of this program's file.
    pub binary_sha256: String,
    /// The command line, for people.
    pub command_line: Vec<String>,
    /// The files it was made from: the protocol and the methods file.
    pub inputs: Vec<Input>,
    /// Base name of the bundle's files.
    pub basename: String,
    /// The protocol, with absolute dataset paths.
    pub protocol: Protocol,
    /// The methods, in the order of the methods file.
    pub methods: Vec<Method>,
    /// How they are run.
    pub policy: Policy,
    /// The machine that decided.
    pub machine: Machine,
}

/// A file that a plan was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Where it lies.
    pub path: PathBuf,
    /// SHA-256 of it.
    pub sha256: String,
}

/// How the methods of a run are run.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Seconds a method may take, from spawn to verdict.
    pub budget_seconds: f64,
    /// Methods at a time.
    pub jobs: usize,
    /// The disjoint core sets methods are run on, one a job.
    pub core_sets: Vec<Vec<usize>>,
    /// The built-in worker.
    pub worker: WorkerBinary,
    /// What a method may use besides its budget: the limits of the protocol, or stricter ones.
    pub limits: ExecutionLimits,
    /// Whether the run was asked to be official.
    pub official: bool,
    /// What of the demands of an official run was not met, with remedies; it ran all the same.
    pub degraded: Vec<String>,
    /// The rung that was asked for by name; the best one of the machine without it.
    pub containment: Option<Rung>,
    /// What is asked of the machine before a method starts; nothing without it.
    pub load: Option<Rule>,
}

impl Policy {
    /// `local`, `official`, or `degraded` for an official run that lacks something.
    pub fn mode(&self) -> &'static str {
        match (self.official, self.degraded.is_empty()) {
            (false, _) => "local",
            (true, true) => "official",
            (true, false) => "degraded",
        }
    }
}

/// The program that serves built-in methods.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerBinary {
    /// Where it lies; absent when every method of the plan is a program of its own.
    pub path: Option<PathBuf>,
    /// SHA-256 of its file, empty with no path.
    pub sha256: String,
}

/// Facts about a machine, for the reproducibility record.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Its name.
    pub host: String,
    /// Name of the system.
    pub system: String,
    /// Release of the kernel.
    pub release: String,
    /// Architecture.
    pub architecture: String,
    /// Model name of the processor, if the system tells.
    pub processor: String,
}

impl Machine {
    /// As written.
    pub fn to_value(&self) -> Value {
        object! {
            "host" => self.host.as_str(),
            "system" => self.system.as_str(),
            "release" => self.release.as_str(),
            "architecture" => self.architecture.as_str(),
            "processor" => self.processor.as_str(),
        }
    }
}

impl Input {
    fn to_value(&self) -> Value {
        object! { "path" => path_text(&self.path), "sha256" => self.sha256.as_str() }
    }

    fn from_value(value: &Value, file: &Path) -> Result<Self, RecordError> {
        let fields = Fields::within(value, file);
        Ok(Self {
            path: fields.text("path")?.into(),
            sha256: fields.text("sha256")?,
        })
    }
}

impl Plan {
    /// Cores of one method: all of its core sets have the same size, so that every method has the same machine.
    pub fn cores_each(&self) -> usize {
        self.policy.core_sets.first().map_or(1, Vec::len)
    }

    /// As written.
    pub fn to_value(&self) -> Value {
        let methods: Vec<Value> = self.methods.iter().map(method_value).collect();
        let worker = object! {
            "path" => self.policy.worker.path.as_deref().map(path_text),
            "sha256" => self.policy.worker.sha256.as_str(),
        };
        object! {
            "schema" => SCHEMA,
            "run_id" => self.run_id.as_str(),
            "nonce" => self.nonce.as_str(),
            "created_utc" => self.created_utc.as_str(),
            "proctor" => object! {
                "version" => self.version.as_str(),
                "sha256" => self.binary_sha256.as_str(),
            },
            "command_line" => self.command_line.clone(),
            "inputs" => self.inputs.iter().map(Input::to_value).collect::<Vec<Value>>(),
            "basename" => self.basename.as_str(),
            "protocol" => self.protocol.value().clone(),
            "methods" => methods,
            "policy" => object! {
                "budget_seconds" => self.policy.budget_seconds,
                "jobs" => self.policy.jobs,
                "core_sets" => self.policy.core_sets.clone(),
                "worker" => worker,
                "limits" => self.policy.limits.to_value(),
                "official" => self.policy.official,
                "degraded" => self.policy.degraded.clone(),
                "containment" => self.policy.containment.map(Rung::name),
                "load" => self.policy.load.map(Rule::to_value),
            },
            "machine" => self.machine.to_value(),
        }
    }

    fn from_value(value: &Value, file: &Path) -> Result<Self, RecordError> {
        let fields = Fields::new(value, file, SCHEMA)?;
        let proctor = Fields::within(fields.value("proctor")?, file);
        let protocol = Protocol::from_value(fields.value("protocol")?, None);
        let methods = fields.array("methods")?.iter();
        let policy = Fields::within(fields.value("policy")?, file);
        let worker = Fields::within(policy.value("worker")?, file);
        let machine = Fields::within(fields.value("machine")?, file);
        let sets = policy.value("core_sets")?.as_array().unwrap_or_default();
        Ok(Self {
            run_id: fields.text("run_id")?,
            nonce: fields.text("nonce")?,
            created_utc: fields.text("created_utc")?,
            version: proctor.text("version")?,
            binary_sha256: proctor.text("sha256")?,
            command_line: fields.texts("command_line")?,
            // Plans of earlier versions name none.
            inputs: match value.get("inputs") {
                Some(_) => {
                    let inputs = fields.array("inputs")?.iter();
                    inputs
                        .map(|input| Input::from_value(input, file))
                        .collect::<Result<_, _>>()?
                }
                None => Vec::new(),
            },
            basename: fields.text("basename")?,
            protocol: protocol.map_err(|error| RecordError::Damaged {
                path: file.to_path_buf(),
                problem: format!("field `protocol`: {error}"),
            })?,
            methods: methods
                .map(|method| method_from(method, file))
                .collect::<Result<_, _>>()?,
            policy: Policy {
                budget_seconds: policy.number("budget_seconds")?,
                jobs: usize::try_from(policy.int("jobs")?)
                    .map_err(|_| policy.wrong("jobs", "a small positive integer"))?,
                core_sets: sets
                    .iter()
                    .map(|set| {
                        Fields::within(&object! { "cores" => set.clone() }, file).indexes("cores")
                    })
                    .collect::<Result<_, _>>()?,
                worker: WorkerBinary {
                    path: worker.value("path")?.as_str().map(PathBuf::from),
                    sha256: worker.text("sha256")?,
                },
                limits: limits_from(fields.value("policy")?, file)?,
                official: fields
                    .value("policy")?
                    .get("official")
                    .and_then(Value::as_bool)
                    .unwrap_or(false),
                degraded: match fields.value("policy")?.get("degraded") {
                    Some(_) => policy.texts("degraded")?,
                    None => Vec::new(),
                },
                containment: fields
                    .value("policy")?
                    .get("containment")
                    .and_then(Value::as_str)
                    .map(|name| {
                        let rung = name.parse();
                        rung.map_err(|_| policy.wrong("containment", "a rung"))
                    })
                    .transpose()?,
                // Plans of earlier versions have none.
                load: match fields.value("policy")?.get("load") {
                    None | Some(Value::Null) => None,
                    Some(rule) => Some(load_from(rule, file)?),
                },
            },
            machine: Machine {
                host: machine.text("host")?,
                system: machine.text("system")?,
                release: machine.text("release")?,
                architecture: machine.text("architecture")?,
                processor: machine.text("processor")?,
            },
        })
    }

    /// Writes the plan of a new run. From here on the directory is a run, and it is this plan's.
    ///
    /// # Errors
    /// Another plan is there already (kind `AlreadyExists`), or the system refused.
    pub fn write(&self, run: &RunDir) -> Result<(), DiskError> {
        durable::claim_file(&run.plan_file(), pretty(&self.to_value()).as_bytes())
    }

    /// Reads the plan of a run.
    ///
    /// # Errors
    /// There is none, or it cannot be used.
    pub fn read(run: &RunDir) -> Result<Self, RecordError> {
        let path = run.plan_file();
        let bytes =
            regular::read_at_most(&path, PLAN_BYTES).map_err(|source| match source.kind() {
                std::io::ErrorKind::NotFound
                | std::io::ErrorKind::NotADirectory
                | std::io::ErrorKind::InvalidFilename => RecordError::NoRun {
                    path: run.root().to_path_buf(),
                },
                _ => RecordError::Unreadable {
                    path: path.clone(),
                    source,
                },
            })?;
        let value = read(&bytes).map_err(|source| RecordError::Malformed {
            path: path.clone(),
            source,
        })?;
        Self::from_value(&value, &path)
    }
}

/// The limits of a policy; plans of earlier versions have none.
fn limits_from(policy: &Value, file: &Path) -> Result<ExecutionLimits, RecordError> {
    let Some(limits) = policy.get("limits").and_then(Value::as_object) else {
        return Ok(ExecutionLimits::default());
    };
    ExecutionLimits::read(limits, "policy.limits").map_err(|error| RecordError::Damaged {
        path: file.to_path_buf(),
        problem: error.to_string(),
    })
}

fn load_from(rule: &Value, file: &Path) -> Result<Rule, RecordError> {
    let fields = Fields::within(rule, file);
    let rule = Rule {
        max_load: fields.number("max_load")?,
        max_wait_seconds: fields.number("max_wait_seconds")?,
        refuse: fields.value("refuse")?.as_bool().unwrap_or(false),
    };
    if !rule.is_sound() {
        return Err(fields.wrong("max_load", "a part of the cores, with a time to wait"));
    }
    Ok(rule)
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn method_value(method: &Method) -> Value {
    let kind = match &method.kind {
        MethodKind::Builtin => object! { "kind" => "builtin" },
        MethodKind::Program(program) => object! {
            "kind" => "program",
            "command" => program.command.clone(),
            "executable" => path_text(&program.executable),
            "files" => program.files.iter().map(|file| path_text(file)).collect::<Vec<_>>(),
            "options" => program.options.clone(),
            "env" => program.env.clone(),
        },
        MethodKind::Unsupported(reason) => object! {
            "kind" => "unsupported",
            "reason" => reason.as_str(),
        },
    };
    object! {
        "name" => method.name.as_str(),
        "id" => method.id.as_str(),
        "configuration" => method.configuration.clone(),
        "manifest_entry" => method.manifest_entry.clone(),
        "runs_as" => kind,
    }
}

fn method_from(value: &Value, file: &Path) -> Result<Method, RecordError> {
    let fields = Fields::within(value, file);
    let kind = Fields::within(fields.value("runs_as")?, file);
    let kind = match kind.text("kind")?.as_str() {
        "builtin" => MethodKind::Builtin,
        "program" => MethodKind::Program(Program {
            command: kind.texts("command")?,
            executable: kind.text("executable")?.into(),
            files: kind
                .texts("files")?
                .into_iter()
                .map(PathBuf::from)
                .collect(),
            options: kind.value("options")?.clone(),
            env: kind.texts("env")?,
        }),
        _ => MethodKind::Unsupported(kind.text("reason")?),
    };
    Ok(Method {
        name: fields.text("name")?,
        id: fields.text("id")?,
        configuration: fields.value("configuration")?.clone(),
        manifest_entry: fields.value("manifest_entry")?.clone(),
        kind,
    })
}

/// What a method is asked to score, in order: for each dataset that applies to it the validation data, where the
/// protocol has some, and then the test data. Empty when nothing applies.
pub fn parts(protocol: &Protocol, method: &Method) -> Vec<Part> {
    let mut parts = Vec::new();
    for (dataset, entry) in protocol.datasets().iter().enumerate() {
        if method.exclusion(entry).is_some() {
            continue;
        }
        let calibrates = *protocol.threshold() == ThresholdPolicy::ValidationF1;
        if calibrates && entry.family == Family::Pair {
            parts.push(Part {
                dataset,
                role: Role::Validation,
            });
        }
        parts.push(Part {
            dataset,
            role: Role::Test,
        });
    }
    parts
}

/// How many datasets these parts belong to.
pub fn datasets(parts: &[Part]) -> usize {
    parts
        .chunk_by(|one, other| one.dataset == other.dataset)
        .count()
}

/// Why nothing of the protocol applies to a method; `None` when something does.
pub fn not_applicable(protocol: &Protocol, method: &Method) -> Option<String> {
    let reasons: Option<BTreeSet<String>> = protocol
        .datasets()
        .iter()
        .map(|entry| method.exclusion(entry))
        .collect();
    reasons.map(|reasons| reasons.into_iter().collect::<Vec<_>>().join("; "))
}
