//! Step 11: ranks and eligibility of rows.

use crate::bundle::Finding;
use crate::bundle::cells::{Cell, Column, RawRows};
use crate::report::{Row, ranks};

/// True when a reported rank is the computed one.
fn same_rank(reported: Cell, computed: Option<u64>) -> bool {
    match computed {
        None => reported.is_null(),
        Some(rank) => reported.number() == Some(rank as f64),
    }
}

/// Computes ranks, compares them with the reported ones, and sets them.
pub(super) fn check_ranks(raw: &RawRows, rows: &mut [Row]) -> Result<(), Finding> {
    let computed = ranks(rows);
    for (at, ((cells, row), rank)) in raw.rows.iter().zip(rows).zip(computed).enumerate() {
        row.rank = rank;
        if cells.get(Column::Eligible) != Cell::Bool(row.eligible) {
            let problem = format!(
                "must be {}, since the row has {} score",
                row.eligible,
                if row.eligible { "a" } else { "no" }
            );
            return Err(Finding::new(
                "eligible",
                format!("per_dataset[{at}].eligible"),
                problem,
            ));
        }
        if !same_rank(cells.get(Column::Rank), rank) {
            let problem = match rank {
                Some(rank) => format!("must be {rank} by the scores of its dataset and metric"),
                None => "must be null, since the row has no score".to_owned(),
            };
            return Err(Finding::new(
                "rank",
                format!("per_dataset[{at}].rank"),
                problem,
            ));
        }
    }
    Ok(())
}
