//! Bundle directories on disk (design section 9): made beside their place and renamed into it, and read with their
//! inventory checked.
//!
//! ```text
//! DIR/bundle.json  inventory.json
//! DIR/<basename>.json  _per_dataset.csv  _aggregate.csv  .html  _details.html  _reproducibility.json
//! DIR/scores/  evidence/
//! ```

mod build;
mod inventory;
mod name;
mod open;

pub use build::{Builder, Published, Sealed, newest_number};
pub use inventory::{InventoryProblem, check_inventory};
pub use name::file_stem;
pub use open::{Opened, open};
pub use proctor_protocol::bundle::Evidence;

/// The schema named by `bundle.json`.
pub const SCHEMA: &str = "proctor.bundle/1";
/// The file that says what a bundle directory holds.
pub const BUNDLE_FILE: &str = "bundle.json";
/// The file that lists all others.
pub const INVENTORY_FILE: &str = "inventory.json";
/// The folder of labelled scores.
pub const SCORES: &str = "scores";
/// The folder of what proves how the scores came about.
pub const EVIDENCE: &str = "evidence";
