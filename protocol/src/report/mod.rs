//! Reports: one row per method, dataset and metric, with a score or the reason why there is none; ranks; and the
//! aggregate over datasets.

mod aggregate;
mod evaluate;
mod rank;
mod row;

pub use aggregate::{AggregateRow, ExpectedDataset, aggregate, expected_datasets};
pub use evaluate::{DatasetResult, EvaluateError, Evaluated, Gold, rows};
pub use rank::{rank, ranks};
pub use row::{MethodIdentity, NOT_CHARGED, Row, Status};
