//! From the records of a run, or from bundles, to one bundle. Everything that is written comes from what is read: no
//! clock, no machine, no environment, so the same input gives the same bytes.

mod bundles;
mod evidence;
mod public;
pub mod records;
#[cfg(test)]
mod several;
pub mod standing;
#[cfg(test)]
mod tampered;
#[cfg(test)]
pub(crate) mod tests;

pub use bundles::merge_bundles;

use crate::bundle::{self, Builder, Evidence, Sealed};
use crate::error::Error;
use crate::rundir::RunDir;
use crate::rundir::plan::Plan;
use proctor_protocol::bundle::{
    Artifact, Assembly, DatasetCard, Document, Execution, ScoreArtifact, assemble, cards,
    score_csv, stem, validation_score_csv,
};
use proctor_protocol::canonical::{Object, Value};
use proctor_protocol::frozen::LoadedEntry;
use proctor_protocol::method::MethodKind;
use proctor_protocol::object;
use proctor_protocol::report::{DatasetResult, Gold, MethodIdentity, rows};
use records::MethodRecord;
use standing::Standing;
use std::io;
use std::path::Path;

/// A bundle that was built from the records of a run, and what was read on the way.
#[derive(Debug)]
pub struct Merged<'a> {
    /// The bundle, not in its place yet.
    pub bundle: Sealed,
    /// The document in it.
    pub document: Document,
    /// The methods.
    pub methods: Vec<MethodRecord<'a>>,
    /// Name of the page to look at.
    pub page: String,
    /// What it may call itself.
    pub standing: Standing,
}

/// Builds a bundle from the records of a run, in a hidden directory in `parent`. `loaded` is the protocol's data, checked.
///
/// # Errors
/// A record or score file cannot be used, or the system refused a write.
pub fn merge_run<'a>(
    run: &RunDir,
    plan: &'a Plan,
    loaded: &[LoadedEntry],
    basename: &str,
    parent: &Path,
) -> Result<Merged<'a>, Error> {
    let newest_session = run.sessions()?.last().map_or(0, |session| session.number);
    let methods: Vec<MethodRecord<'a>> = plan
        .methods
        .iter()
        .map(|method| MethodRecord::read(run, plan, method, newest_session))
        .collect::<Result<_, _>>()?;
    let standing = Standing::of(plan, &methods);
    let mut builder = Builder::new(parent)?;
    let gold: Vec<Gold> = plan
        .protocol
        .datasets()
        .iter()
        .zip(loaded)
        .map(|(entry, loaded)| Gold::new(entry, loaded))
        .collect();
    let mut executions = Vec::new();
    let mut score_artifacts = Vec::new();
    for record in &methods {
        let execution = execution(
            plan,
            record,
            loaded,
            &gold,
            &mut builder,
            &mut score_artifacts,
        )?;
        executions.push(execution);
    }
    let identities: Vec<&MethodIdentity> = executions
        .iter()
        .map(|execution| &execution.method)
        .collect();
    let about: Vec<DatasetCard> = loaded.iter().map(card).collect();
    let cards = cards(&plan.protocol, &about, &identities);
    let document = assemble(Assembly {
        protocol: &plan.protocol,
        executions,
        score_artifacts,
        reproducibility: reproducibility(plan, &standing, &methods),
        cards,
        extra: Object::new(),
    });
    let stem = stem(basename);
    write_document(&mut builder, &document, &stem)?;
    evidence::write(&mut builder, plan, &standing, &methods)?;
    let about = about_bundle(&document, &stem, evidence::level(&methods));
    let sealed = builder.seal(&about)?;
    Ok(Merged {
        bundle: sealed,
        document,
        methods,
        page: Artifact::Html.file_name(&stem),
        standing,
    })
}

/// The rows of one method; its score files go into the bundle on the way, one dataset at a time.
fn execution(
    plan: &Plan,
    record: &MethodRecord<'_>,
    loaded: &[LoadedEntry],
    gold: &[Gold],
    builder: &mut Builder,
    score_artifacts: &mut Vec<Value>,
) -> Result<Execution, Error> {
    let method = MethodIdentity::from(record.method);
    let mut all = Vec::new();
    let mut thresholds = Vec::new();
    for (at, entry) in plan.protocol.datasets().iter().enumerate() {
        let result = record.result(plan, at)?;
        let evaluated = rows(&plan.protocol, entry, &gold[at], &method, &result)
            .map_err(|error| Error::Infrastructure(error.to_string()))?;
        all.extend(evaluated.rows);
        if let Some(threshold) = evaluated.threshold {
            thresholds.push((entry.name.clone(), threshold));
        }
        if let DatasetResult::Scored {
            scores,
            validation_scores,
            ..
        } = &result
        {
            let name = ScoreArtifact::file_name(entry, &method.id);
            let artifact = builder.file(&format!("{}/{name}", bundle::SCORES), |out| {
                score_csv(out, entry, &loaded[at].test, &method, scores).map_err(io::Error::other)
            })?;
            score_artifacts.push(artifact.to_value());
            if let (Some(scores), Some(data)) = (validation_scores, &loaded[at].validation) {
                let name = ScoreArtifact::validation_file_name(entry, &method.id);
                builder.file(&format!("{}/validation/{name}", bundle::EVIDENCE), |out| {
                    validation_score_csv(out, entry, data, &method, scores)
                        .map_err(io::Error::other)
                })?;
            }
        }
    }
    Ok(Execution {
        method,
        rows: all,
        thresholds,
        failure: record.failure(plan),
        supervised: record.supervised(plan),
    })
}

fn card(loaded: &LoadedEntry) -> DatasetCard {
    DatasetCard {
        metadata: public::object(&loaded.test.metadata().object),
    }
}

/// Writes the files of a document.
fn write_document(builder: &mut Builder, document: &Document, stem: &str) -> Result<(), Error> {
    for artifact in Artifact::ALL {
        builder.file(&artifact.file_name(stem), |out| {
            document.write(artifact, stem, out)
        })?;
    }
    Ok(())
}

/// What `bundle.json` says.
fn about_bundle(document: &Document, stem: &str, evidence: Evidence) -> Value {
    object! {
        "schema" => bundle::SCHEMA,
        "proctor_version" => env!("CARGO_PKG_VERSION"),
        "payload" => Artifact::Json.file_name(stem),
        "benchmark_id" => document.benchmark_id(),
        "protocol_id" => document.protocol_id(),
        "complete" => !document.is_incomplete(),
        "evidence" => evidence.name(),
    }
}

/// The snapshot of machine and versions, in the form of specs/matheel.md section f, with what was measured of each method.
fn reproducibility(plan: &Plan, standing: &Standing, methods: &[MethodRecord<'_>]) -> Value {
    let builtin = plan
        .methods
        .iter()
        .any(|method| method.kind == MethodKind::Builtin);
    object! {
        "schema_version" => 1i64,
        "created_utc" => plan.created_utc.as_str(),
        "python" => object! { "version" => Value::Null, "implementation" => Value::Null },
        "platform" => public::value(&object! {
            "system" => plan.machine.system.as_str(),
            "release" => plan.machine.release.as_str(),
            "machine" => plan.machine.architecture.as_str(),
            "processor" => plan.machine.processor.as_str(),
        }),
        "packages" => object! { "proctor" => plan.version.as_str() },
        "proctor" => object! {
            "run_id" => plan.run_id.as_str(),
            "sha256" => plan.binary_sha256.as_str(),
            "worker_sha256" => builtin.then_some(plan.policy.worker.sha256.as_str()),
            "limits" => plan.policy.limits.to_value(),
            "stricter_than_protocol" => evidence::stricter(plan),
            "mode" => standing.mode,
            "degraded" => standing.degraded.clone(),
            "measurements" => methods.iter().filter_map(MethodRecord::measurements).collect::<Vec<Value>>(),
        },
    }
}
