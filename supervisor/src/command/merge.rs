//! `proctor merge`

use super::tell_stem;
use crate::bundle::BUNDLE_FILE;
use crate::cli::Merge;
use crate::error::{Error, Exit};
use crate::merge::{merge_bundles, merge_run};
use crate::render::results::{self, Place};
use crate::render::{brief, output, plain};
use crate::run::preflight::empty_or_absent;
use crate::rundir::plan::Plan;
use crate::rundir::{RunDir, durable};
use proctor_protocol::frozen::Protocol;
use std::path::Path;

pub(super) fn execute(args: &Merge) -> Result<Exit, Error> {
    let is_run = |path: &Path| path.join("run.json").exists();
    if let [input] = args.inputs.as_slice()
        && is_run(input)
    {
        return from_run(input, args);
    }
    if let Some(run) = args.inputs.iter().find(|input| is_run(input)) {
        return Err(Error::input(format!(
            "{} is a run directory; merge it by itself first, then merge the bundles",
            run.display()
        )));
    }
    if let Some(nothing) = args
        .inputs
        .iter()
        .find(|input| input.is_dir() && !input.join(BUNDLE_FILE).exists())
    {
        return Err(Error::input(format!(
            "{} is neither a run directory (it has no run.json) nor a bundle (it has no {BUNDLE_FILE})",
            brief(&nothing.display().to_string())
        )));
    }
    from_bundles(args)
}

fn from_run(input: &Path, args: &Merge) -> Result<Exit, Error> {
    if args.protocol.is_some() {
        return Err(Error::input(
            "--protocol is for merging bundles; a run directory has its protocol in run.json",
        ));
    }
    // `run` shows absolute paths, so this does too.
    let root = std::path::absolute(input).unwrap_or_else(|_| input.to_path_buf());
    let run = RunDir::new(&root);
    let plan = Plan::read(&run)?;
    let parent = match &args.output {
        Some(output) => output_parent(output)?,
        None => run.merged_dir(),
    };
    let loaded = plan
        .protocol
        .verify_data()
        .map_err(|error| error.in_file(&run.plan_file()))?;
    let basename = args.basename.as_deref().unwrap_or(&plan.basename);
    stem_of(args)?;
    let merged = merge_run(&run, &plan, &loaded, basename, &parent)?;
    let published = if let Some(output) = &args.output {
        merged.bundle.publish(output)?
    } else {
        run.publish(merged.bundle)?
    };
    let place = Place {
        bundle: &published,
        page: &merged.page,
    };
    results::report(
        &plan,
        &merged.document,
        &merged.methods,
        &place,
        args.report.json,
    )?;
    Ok(Exit::Success)
}

/// Checks a base name that is given, and says what becomes of it.
fn stem_of(args: &Merge) -> Result<(), Error> {
    args.basename.as_deref().map_or(Ok(()), tell_stem)
}

fn output_parent(output: &Path) -> Result<std::path::PathBuf, Error> {
    empty_or_absent(output, "--output")?;
    Ok(durable::parent(output).to_path_buf())
}

fn from_bundles(args: &Merge) -> Result<Exit, Error> {
    let output = args
        .output
        .as_deref()
        .ok_or_else(|| Error::input("merging bundles needs -o DIR for the merged bundle"))?;
    let parent = output_parent(output)?;
    stem_of(args)?;
    let protocol = args.protocol.as_deref().map(Protocol::load).transpose()?;
    let merged = merge_bundles(
        &args.inputs,
        protocol.as_ref(),
        args.basename.as_deref(),
        &parent,
    )?;
    for note in &merged.notes {
        output::tell(&plain(note));
    }
    let published = merged.bundle.publish(output)?;
    let place = Place {
        bundle: &published,
        page: &merged.page,
    };
    results::report_merged(&merged.document, &place, args.report.json)?;
    Ok(Exit::Success)
}
