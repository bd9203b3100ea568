//! What the supervisor and the stage of a room tell each other.
//!
//! The order goes down once, in a memory file, so that no environment variable shows up on a command line. Reports come
//! up and signals go down as single messages on a pair of sockets that no worker can reach.

use proctor_protocol::canonical::hex;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::view::{Mount, View, What};
use super::{Rung, core_list};

/// First argument of the stage.
pub(super) const STAGE_WORD: &str = "__proctor-room";
/// First argument of the program a probe starts: it only waits.
pub(super) const PROBE_WORD: &str = "__proctor-probe";
/// The stage's descriptor of the sockets.
pub(super) const CONTROL_FD: i32 = 3;
/// How long processes that outlive the worker may take to leave by themselves before they count as leaked, and how long
/// a pipe may stay open before it counts as leaked.
pub(crate) const SETTLE: Duration = Duration::from_millis(100);
/// The longest report.
pub(super) const MAX_REPORT: usize = 4096;

/// What the stage is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) rung: Rung,
    pub(super) cores: Vec<usize>,
    /// Working directory of the worker.
    pub(super) scratch: PathBuf,
    /// Directory of the room's cgroup2; empty when there is none.
    pub(super) cgroup: PathBuf,
    /// The file to execute.
    pub(super) program: PathBuf,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) arguments: Vec<OsString>,
    /// The user and group the worker becomes; `None` to stay who the stage is.
    pub(super) user: Option<u32>,
    /// Limits of each process: resource and value.
    pub(super) rlimits: Vec<(u32, u64)>,
    /// System call filters, as bytes of instructions, in the order they are installed.
    pub(super) filters: Vec<Vec<u8>>,
    /// The stage's descriptor of the landlock rules.
    pub(super) ruleset: Option<i32>,
    /// True when the kernel is to kill the worker before the stage when memory runs out.
    pub(super) expendable: bool,
    /// True when the room has a network namespace, whose loopback is to be switched on.
    pub(super) loopback: bool,
    /// What the worker sees of the file system; `None` for what the stage sees.
    pub(super) view: Option<View>,
}

/// A text of the order holds a NUL byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an argument, environment variable or path holds a NUL byte")]
pub(crate) struct HoldsNul;

impl Order {
    /// The order as NUL-terminated texts: rung, cores, paths, confinement, number of variables, variables, arguments.
    pub(super) fn encode(&self) -> Result<Vec<u8>, HoldsNul> {
        let mut bytes = Vec::new();
        let mut put = |text: &[u8]| {
            if text.contains(&0) {
                return Err(HoldsNul);
            }
            bytes.extend_from_slice(text);
            bytes.push(0);
            Ok(())
        };
        put(self.rung.name().as_bytes())?;
        let cores: Vec<String> = self.cores.iter().map(ToString::to_string).collect();
        put(cores.join(",").as_bytes())?;
        put(self.scratch.as_os_str().as_bytes())?;
        put(self.cgroup.as_os_str().as_bytes())?;
        put(self.program.as_os_str().as_bytes())?;
        let optional = |number: Option<u64>| number.map_or(String::new(), |n| n.to_string());
        put(optional(self.user.map(u64::from)).as_bytes())?;
        put(self.rlimits.len().to_string().as_bytes())?;
        for (resource, value) in &self.rlimits {
            put(resource.to_string().as_bytes())?;
            put(value.to_string().as_bytes())?;
        }
        put(self.filters.len().to_string().as_bytes())?;
        for filter in &self.filters {
            put(hex(filter).as_bytes())?;
        }
        put(optional(self.ruleset.map(|fd| fd as u64)).as_bytes())?;
        put(if self.expendable { b"1" } else { b"" })?;
        put(if self.loopback { b"1" } else { b"" })?;
        let mounts = self.view.as_ref().map(|view| view.mounts.len() as u64);
        put(optional(mounts).as_bytes())?;
        if let Some(view) = &self.view {
            put(optional(view.size).as_bytes())?;
            for mount in &view.mounts {
                put(mount.target.as_os_str().as_bytes())?;
                put(mount.what.letter().as_bytes())?;
                put(if mount.directory { b"d" } else { b"f" })?;
                let (place, path) = mount.inside.clone().unzip();
                put(optional(place.map(|place| place as u64)).as_bytes())?;
                put(path.unwrap_or_default().as_os_str().as_bytes())?;
            }
        }
        put(self.env.len().to_string().as_bytes())?;
        for (name, value) in &self.env {
            let mut variable = name.as_bytes().to_vec();
            variable.push(b'=');
            variable.extend_from_slice(value.as_bytes());
            put(&variable)?;
        }
        for argument in &self.arguments {
            put(argument.as_bytes())?;
        }
        Ok(bytes)
    }

    /// Reads what [`Order::encode`] wrote; `None` when it is not one.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut texts = bytes.strip_suffix(&[0])?.split(|byte| *byte == 0);
        let mut text = || texts.next();
        let utf8 = |bytes| std::str::from_utf8(bytes).ok();
        let path = |bytes: &[u8]| PathBuf::from(OsString::from_vec(bytes.to_vec()));
        let rung = utf8(text()?)?.parse().ok()?;
        let cores = utf8(text()?)?
            .split_terminator(',')
            .map(|core| core.parse().ok())
            .collect::<Option<Vec<usize>>>()?;
        let scratch = path(text()?);
        let cgroup = path(text()?);
        let program = path(text()?);
        let user = optional(text()?)?;
        let count: usize = number(text()?)?;
        let rlimits = (0..count)
            .map(|_| Some((number(text()?)?, number(text()?)?)))
            .collect::<Option<Vec<_>>>()?;
        let count: usize = number(text()?)?;
        let filters = (0..count)
            .map(|_| unhex(text()?))
            .collect::<Option<Vec<_>>>()?;
        let ruleset = optional(text()?)?;
        let expendable = text()? == b"1";
        let loopback = text()? == b"1";
        let view = match optional::<usize>(text()?)? {
            None => None,
            Some(count) => {
                let size = optional(text()?)?;
                let mounts = (0..count)
                    .map(|_| {
                        let target = path(text()?);
                        let what = What::from_letter(text()?)?;
                        let directory = text()? == b"d";
                        let place = optional(text()?)?;
                        let within = path(text()?);
                        Some(Mount {
                            target,
                            what,
                            directory,
                            inside: place.map(|place| (place, within)),
                        })
                    })
                    .collect::<Option<Vec<_>>>()?;
                Some(View { size, mounts })
            }
        };
        let variables: usize = number(text()?)?;
        let mut env = Vec::new();
        for _ in 0..variables {
            let variable = text()?;
            let at = variable.iter().position(|byte| *byte == b'=')?;
            env.push((
                OsString::from_vec(variable[..at].to_vec()),
                OsString::from_vec(variable[at + 1..].to_vec()),
            ));
        }
        let arguments = texts
            .map(|bytes| OsString::from_vec(bytes.to_vec()))
            .collect();
        Some(Self {
            rung,
            cores,
            scratch,
            cgroup,
            program,
            env,
            arguments,
            user,
            rlimits,
            filters,
            ruleset,
            expendable,
            loopback,
            view,
        })
    }
}

/// A decimal number.
fn number<T: FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A decimal number, or nothing at all.
#[expect(
    clippy::option_option,
    reason = "no number and no text of that form are two things"
)]
fn optional<T: FromStr>(text: &[u8]) -> Option<Option<T>> {
    if text.is_empty() {
        Some(None)
    } else {
        number(text).map(Some)
    }
}

fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    text.chunks(2)
        .map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?))
        .collect()
}

/// What the stage says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// The worker was started, under this number in the stage's pid namespace. `cores` are those the kernel lets it use,
    /// `None` when it does not tell; `missing` names protections that could not be had, with the reason.
    Started {
        pid: i32,
        cores: Option<Vec<usize>>,
        missing: Vec<(String, String)>,
    },
    /// The worker could not be started, for a reason of ours.
    Failed { reason: String },
    /// The kernel does not start the worker's program, for a reason that lies in its file or its command.
    NotExecutable { reason: String },
    /// The worker ended, with this raw wait status, at this time of the monotonic clock.
    Ended { status: i32, at: u64 },
    /// This many processes were left when the worker had ended and [`SETTLE`] had passed, `None` for some that could not
    /// be counted; CPU time of all that ended so far, `None` when unknown.
    Left {
        processes: Option<u32>,
        cpu_ns: Option<u64>,
        /// Whether the room's own file system had no space left; `None` when it has none of its own.
        full: Option<bool>,
    },
    /// The guardian has no child left.
    Empty,
    /// Whether everything in the room stands still, as [`Word::Freeze`] asked.
    Frozen(bool),
}

impl Report {
    /// The message.
    pub(super) fn encode(&self) -> Vec<u8> {
        let text = match self {
            Self::Started {
                pid,
                cores,
                missing,
            } => {
                let cores = cores
                    .as_deref()
                    .map_or_else(|| "?".to_owned(), core_list::write);
                let cores = if cores.len() > MAX_REPORT / 2 {
                    "?"
                } else {
                    &cores
                };
                let mut text = format!("S{pid} {cores}");
                for (name, reason) in missing {
                    text.push('\0');
                    text.push_str(name);
                    text.push('=');
                    text.extend(reason.chars().filter(|c| *c != '\0').take(200));
                }
                text
            }
            Self::Failed { reason } => {
                format!("F{}", reason.chars().take(500).collect::<String>())
            }
            Self::NotExecutable { reason } => {
                format!("X{}", reason.chars().take(500).collect::<String>())
            }
            Self::Ended { status, at } => format!("E{status} {at}"),
            Self::Left {
                processes,
                cpu_ns,
                full,
            } => {
                let known = |number: Option<u64>| number.map_or("?".to_owned(), |n| n.to_string());
                format!(
                    "L{} {} {}",
                    known(processes.map(u64::from)),
                    known(*cpu_ns),
                    known(full.map(u64::from))
                )
            }
            Self::Empty => "0".to_owned(),
            Self::Frozen(all) => format!("P{}", u8::from(*all)),
        };
        text.into_bytes()
    }

    /// Reads a message; `None` when it is none.
    pub(super) fn decode(message: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(message).ok()?;
        let rest = text.get(1..)?;
        Some(match text.as_bytes()[0] {
            b'S' => {
                let mut parts = rest.split('\0');
                let (pid, cores) = parts.next()?.split_once(' ')?;
                let pid = pid.parse().ok()?;
                let cores = match cores {
                    "?" => None,
                    list => Some(core_list::read(list)?),
                };
                let missing = parts
                    .map(|part| {
                        let (name, reason) = part.split_once('=')?;
                        Some((name.to_owned(), reason.to_owned()))
                    })
                    .collect::<Option<Vec<_>>>()?;
                Self::Started {
                    pid,
                    cores,
                    missing,
                }
            }
            b'F' => Self::Failed {
                reason: rest.to_owned(),
            },
            b'X' => Self::NotExecutable {
                reason: rest.to_owned(),
            },
            b'E' => {
                let (status, at) = rest.split_once(' ')?;
                Self::Ended {
                    status: status.parse().ok()?,
                    at: at.parse().ok()?,
                }
            }
            b'L' => {
                let (processes, rest) = rest.split_once(' ')?;
                let (cpu_ns, full) = rest.split_once(' ')?;
                let known = |text: &str| match text {
                    "?" => Some(None),
                    number => number.parse::<u64>().ok().map(Some),
                };
                Self::Left {
                    processes: match known(processes)? {
                        Some(number) => Some(u32::try_from(number).ok()?),
                        None => None,
                    },
                    cpu_ns: known(cpu_ns)?,
                    full: known(full)?.map(|number| number > 0),
                }
            }
            b'0' => Self::Empty,
            b'P' => Self::Frozen(rest == "1"),
            _ => return None,
        })
    }
}

/// What the supervisor says after the order. Closing the sockets means: kill everything and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// Send SIGTERM to the worker's process group, and let it run if it is stopped.
    Terminate,
    /// Kill everything.
    Kill,
    /// Stop everything but the stage; answered by [`Report::Frozen`].
    Freeze,
    /// Let everything go on that [`Word::Freeze`] stopped.
    Thaw,
}

impl Word {
    /// The message.
    pub(super) fn encode(self) -> &'static [u8] {
        match self {
            Self::Terminate => b"T",
            Self::Kill => b"K",
            Self::Freeze => b"F",
            Self::Thaw => b"C",
        }
    }

    /// Reads a message; `None` when it is none.
    pub(super) fn decode(message: &[u8]) -> Option<Self> {
        match message {
            b"T" => Some(Self::Terminate),
            b"K" => Some(Self::Kill),
            b"F" => Some(Self::Freeze),
            b"C" => Some(Self::Thaw),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_reads_back_to_the_byte() {
        let order = Order {
            rung: Rung::K3b,
            cores: vec![0, 5],
            scratch: "/tmp/a b".into(),
            cgroup: PathBuf::new(),
            program: "/bin/x".into(),
            env: vec![("A".into(), "b=c\n".into()), ("EMPTY".into(), "".into())],
            arguments: vec![
                "x".into(),
                "".into(),
                OsString::from_vec(vec![0xff, b' ', 0x80]),
            ],
            user: Some(61_200),
            rlimits: vec![(1, u64::MAX), (6, 0)],
            filters: vec![vec![0, 0xff, 7], Vec::new()],
            ruleset: Some(5),
            expendable: true,
            loopback: true,
            view: Some(View {
                size: Some(7),
                mounts: vec![
                    Mount {
                        target: "/tmp".into(),
                        what: What::Private,
                        directory: true,
                        inside: None,
                    },
                    Mount {
                        target: "/tmp/a".into(),
                        what: What::Show,
                        directory: false,
                        inside: Some((0, "a".into())),
                    },
                ],
            }),
        };
        assert_eq!(Order::decode(&order.encode().unwrap()), Some(order));
        assert_eq!(Order::decode(b""), None);
        assert_eq!(Order::decode(b"K4\0"), None);
    }

    #[test]
    fn nul_bytes_are_refused() {
        let order = Order {
            rung: Rung::K4,
            cores: Vec::new(),
            scratch: "/".into(),
            cgroup: PathBuf::new(),
            program: "/x".into(),
            env: vec![("A\0".into(), "".into())],
            arguments: Vec::new(),
            user: None,
            rlimits: Vec::new(),
            filters: Vec::new(),
            ruleset: None,
            expendable: false,
            loopback: false,
            view: None,
        };
        assert_eq!(order.encode(), Err(HoldsNul));
    }

    #[test]
    fn reports_read_back() {
        for report in [
            Report::Started {
                pid: 2,
                cores: Some(vec![0, 1, 2, 7]),
                missing: vec![("private_proc".into(), "mount: a=b".into())],
            },
            Report::Started {
                pid: 2,
                cores: None,
                missing: Vec::new(),
            },
            Report::Failed {
                reason: "no such file".into(),
            },
            Report::NotExecutable {
                reason: "no such format".into(),
            },
            Report::Ended { status: 139, at: 7 },
            Report::Left {
                processes: Some(3),
                cpu_ns: Some(9),
                full: Some(true),
            },
            Report::Left {
                processes: None,
                cpu_ns: None,
                full: None,
            },
            Report::Empty,
            Report::Frozen(true),
            Report::Frozen(false),
        ] {
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
        for bad in [
            &b""[..],
            b"S",
            b"Sx",
            b"S1",
            b"S1 x",
            b"E1",
            b"\xff",
            b"L1 x",
        ] {
            assert_eq!(Report::decode(bad), None);
        }
    }
}
