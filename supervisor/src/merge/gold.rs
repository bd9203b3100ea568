//! The answer key of a loaded dataset.

use proctor_protocol::dataset::Dataset;
use proctor_protocol::frozen::{DatasetEntry, LoadedEntry};
use proctor_protocol::metric::RetrievalGold;
use proctor_protocol::report::Gold;

pub(super) fn gold(entry: &DatasetEntry, loaded: &LoadedEntry) -> Gold {
    match &loaded.test {
        Dataset::Pair(data) => Gold::Pair {
            labels: data.labels.clone(),
            validation: match &loaded.validation {
                Some(Dataset::Pair(data)) => Some(data.labels.clone()),
                _ => None,
            },
        },
        Dataset::Retrieval(data) => {
            let files = (data.query_file.as_slice(), data.document_file.as_slice());
            Gold::Retrieval(RetrievalGold::new(
                &data.query_ids,
                &data.document_ids,
                &data.judgments,
                entry.exclude_same_file.then_some(files),
            ))
        }
    }
}
