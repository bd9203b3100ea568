//! `proctor dataset check`

use crate::cli::{DatasetCheck, DatasetCommand, FamilyName};
use crate::error::{Error, Exit};
use crate::render::output;
use proctor_protocol::dataset::{Dataset, Family};
use proctor_protocol::object;
use std::fmt::Write;
use std::path::Path;

pub(super) fn execute(command: &DatasetCommand) -> Result<Exit, Error> {
    match command {
        DatasetCommand::Check(args) => check(args),
    }
}

/// The family by the tables that are there.
fn family(args: &DatasetCheck) -> Result<Family, Error> {
    let has = |name: &str| Path::join(&args.dir, name).is_file();
    match args.family {
        Some(FamilyName::Pair) => Ok(Family::Pair),
        Some(FamilyName::Retrieval) => Ok(Family::Retrieval),
        None if has("pairs.csv") && has("queries.csv") => Err(Error::input(format!(
            "{} has both pairs.csv and queries.csv; say which is meant with --family pair or --family retrieval",
            args.dir.display()
        ))),
        None if has("pairs.csv") => Ok(Family::Pair),
        None if has("queries.csv") => Ok(Family::Retrieval),
        None => Err(Error::input(format!(
            "{} has neither pairs.csv nor queries.csv; a dataset is a folder with files.csv and one of them",
            args.dir.display()
        ))),
    }
}

fn check(args: &DatasetCheck) -> Result<Exit, Error> {
    let family = family(args)?;
    let dataset =
        Dataset::load(&args.dir, family).map_err(|error| Error::input(error.to_string()))?;
    let content = dataset.content();
    let items = dataset.item_count();
    if args.report.json {
        output::print_json(&object! {
            "task_family" => family.name(),
            "task_type" => dataset.task_type(),
            "content" => content.to_value(),
            "items" => i64::try_from(items).unwrap_or(i64::MAX),
            "can_be_frozen" => items > 0,
        })?;
    } else {
        let mut text = format!(
            "sound {} dataset ({})\ncontent: {}\n",
            family.name(),
            dataset.task_type(),
            content.sha256
        );
        for (table, rows) in &content.counts {
            let _ = writeln!(text, "{table}: {rows}");
        }
        if items == 0 {
            text.push_str(
                "It cannot be frozen: there is nothing to score, not one pair or candidate.\n",
            );
        }
        output::print(&text)?;
    }
    Ok(if items == 0 {
        Exit::Negative
    } else {
        Exit::Success
    })
}
