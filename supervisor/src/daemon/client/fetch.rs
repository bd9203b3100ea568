//! Fetching a bundle: file by file into a hidden directory beside its place, checked against its own inventory, and then
//! put in place in one step.

use super::{Client, segment};
use crate::bundle::{Builder, Published, check_inventory};
use crate::daemon::view::RunView;
use crate::error::Error;
use crate::render::brief;
use crate::rundir::durable::parent;
use std::io;
use std::path::{Component, Path};

/// Fetches the newest bundle of a run to a place that must be free.
///
/// # Errors
/// There is none, it does not come whole, or the system refused.
pub fn fetch(client: &Client, id: u64, target: &Path) -> Result<Published, Error> {
    let run: RunView = client.get(&format!("/v1/runs/{id}"))?;
    let Some(bundle) = run.bundle else {
        return Err(Error::input(format!(
            "run {id} has no bundle yet; `proctor watch {id}` waits for its end"
        )));
    };
    let mut builder = Builder::new(parent(target))?;
    for file in &bundle.files {
        check(&file.path)?;
        let path = format!(
            "/v1/runs/{id}/bundles/{}/{}",
            bundle.number,
            segment(&file.path)
        );
        let mut failed = None;
        let written = builder.file(&file.path, |mut out| {
            client.download(&path, &mut out).map_err(|error| {
                failed = Some(error);
                io::Error::other("the download failed")
            })
        });
        match (failed, written) {
            (Some(error), _) => return Err(error.into()),
            (None, written) => written?,
        };
    }
    let sealed = builder.sealed()?;
    check_inventory(sealed.dir()).map_err(|problem| {
        Error::Infrastructure(format!(
            "the bundle did not arrive as it was made: {problem}; fetch it again"
        ))
    })?;
    Ok(sealed.publish(target)?)
}

/// Refuses a file name that would lead out of the bundle.
fn check(path: &str) -> Result<(), Error> {
    let mut parts = Path::new(path).components();
    if !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_))) {
        return Ok(());
    }
    Err(Error::Infrastructure(format!(
        "the daemon names a file {} in the bundle, which is none",
        brief(path)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_below_the_bundle_are_written() {
        for good in ["a", "scores/a b.csv", "evidence/x/y.json"] {
            check(good).unwrap();
        }
        for bad in ["", "/etc/passwd", "../a", "a/../../b", "."] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
