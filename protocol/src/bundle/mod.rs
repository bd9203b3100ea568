//! Bundles: the published results of methods under one protocol, in Matheel's forms (specs/matheel.md sections f to i).

mod assemble;
mod cards;
mod cells;
mod columns;
mod csv_text;
mod directory;
mod document;
mod finding;
mod html;
mod inventory;
mod merge;
mod other_load;
mod owed;
mod payload;
mod sanitize;
mod score;
#[cfg(test)]
mod tests;
mod validate;

pub use assemble::{Assembly, Execution, assemble, execution_failure};
pub use cards::{DatasetCard, cards};
pub use directory::{Backing, Directory, Evidence, check_directory};
pub use document::{Artifact, Document, stem};
pub use finding::Finding;
pub use html::STYLE;
pub use inventory::{InventoryRow, inventory_root, inventory_value};
pub use merge::{MergeError, merge};
pub use other_load::{other_load, other_load_text};
pub use payload::Payload;
pub use score::{ScoreArtifact, ScoreError, score_csv, validation_score_csv};
pub use validate::{Validation, Verdict, validate};
