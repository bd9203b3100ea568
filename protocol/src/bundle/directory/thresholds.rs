//! The thresholds of `validation_f1`, calibrated again from the validation scores that are kept as evidence.

use std::path::PathBuf;

use proctor_wire::Family;

use super::scores::VALIDATION;
use super::{Directory, below};
use crate::bundle::Finding;
use crate::bundle::score::{ScoreArtifact, read_pair_scores};
use crate::canonical::{Value, float_text};
use crate::frozen::{Protocol, ThresholdPolicy};
use crate::metric::calibrate_f1;

const RULE: &str = "recomputed_threshold";

/// How many thresholds the payload has, and how many of them were computed again.
pub(super) fn check(
    directory: &Directory<'_>,
    protocol: &Protocol,
    folders: &[PathBuf],
) -> Result<(usize, usize), Finding> {
    if *protocol.threshold() != ThresholdPolicy::ValidationF1 {
        return Ok((0, 0));
    }
    let rows = directory.document.rows();
    let (mut all, mut again) = (0, 0);
    for (at, entry) in protocol.datasets().iter().enumerate() {
        let first = protocol.metrics(entry.family).first();
        if entry.family != Family::Pair {
            continue;
        }
        let scored = rows.iter().filter(|row| {
            *row.dataset_name == *entry.name
                && row.sample_count > 0
                && first.is_some_and(|metric| *metric == *row.metric)
        });
        for row in scored {
            all += 1;
            let name = ScoreArtifact::validation_file_name(entry, &row.algorithm_id);
            let file = folders
                .iter()
                .map(|folder| folder.join(VALIDATION).join(&name));
            let Some(path) = file.into_iter().find(|path| path.exists()) else {
                continue;
            };
            let shown = below(directory.root, &path);
            let data = directory.data.and_then(|data| data.get(at));
            let gold = data.and_then(|data| data.validation.as_ref());
            let found = read_pair_scores(&path, gold)
                .map_err(|problem| Finding::new(RULE, shown.as_ref(), problem))?;
            let computed = calibrate_f1(&found.labels, &found.scores);
            let said = declared(directory, &entry.name, &row.algorithm_name);
            if computed.is_none() || computed != said || computed != row.selected_threshold {
                let text = |value: Option<f64>| value.map_or("no value".to_owned(), float_text);
                let at = format!(
                    "metadata.thresholds of {:?} on {:?}",
                    row.algorithm_name, entry.name
                );
                let why = format!("the scores in {shown} give");
                let said = if computed == said {
                    row.selected_threshold
                } else {
                    said
                };
                return Err(Finding::differs(
                    RULE,
                    at,
                    (&text(computed), &why),
                    &text(said),
                ));
            }
            again += 1;
        }
    }
    Ok((all, again))
}

/// The threshold of `metadata.thresholds`.
fn declared(directory: &Directory<'_>, dataset: &str, method: &str) -> Option<f64> {
    let list = directory
        .document
        .metadata()
        .get("thresholds")?
        .as_array()?;
    let is =
        |entry: &Value, key: &str, text: &str| entry.get(key).and_then(Value::as_str) == Some(text);
    let found = list
        .iter()
        .find(|entry| is(entry, "dataset_name", dataset) && is(entry, "algorithm_name", method));
    found?.get("threshold")?.as_number()
}
