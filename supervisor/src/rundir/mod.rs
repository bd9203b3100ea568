//! The run directory: the only channel between those who run methods and those who read results (design section 5).
//!
//! ```text
//! RUN_DIR/run.json                                frozen plan, written once
//! RUN_DIR/submissions/<NNNN>/request.json         who drives the run, one record a session
//! RUN_DIR/methods/<method_id>/attempts/<NNNN.task.rK>/
//!     started.json  checkpoints.log  scores/<dataset>-<role>.f64  stderr  heartbeat  terminal.json
//! RUN_DIR/merged/<NNNN>/                          bundles; `bundle` is a link to the newest
//! ```

pub mod ancestry;
pub mod disk;
pub mod durable;
pub mod fields;
pub mod plan;
pub mod record;
pub mod regular;
pub mod reserve;
pub mod scores;
pub mod session;
pub mod state;
pub mod supervisor;

pub use ancestry::{Ancestry, Inherited};
pub use fields::RecordError;
pub use plan::Plan;
pub use record::{Answer, AttemptId, Checkpoint, Part, Role, Started, Terminal};
pub use supervisor::Supervisor;

use crate::bundle::{Published, Sealed, newest_number};
use durable::DiskResult;
use std::path::{Path, PathBuf};

/// The number that a folder of a session or a bundle is named after; `None` when it is none of ours.
pub(crate) fn numbered(name: &str) -> Option<u32> {
    let plain = name.len() >= 4 && name.bytes().all(|byte| byte.is_ascii_digit());
    let number = name.parse().ok().filter(|_| plain)?;
    // `00001` would be the first one a second time.
    (format!("{number:04}") == name).then_some(number)
}

/// The paths of a run directory.
#[derive(Debug, Clone)]
pub struct RunDir {
    root: PathBuf,
}

impl RunDir {
    /// The run directory at `root`, which need not exist.
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
        }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The frozen plan.
    pub fn plan_file(&self) -> PathBuf {
        self.root.join("run.json")
    }

    /// Where the attempts of a method lie.
    pub fn attempts_dir(&self, method_id: &str) -> PathBuf {
        self.root.join("methods").join(method_id).join("attempts")
    }

    /// Where one attempt writes.
    pub fn attempt_dir(&self, method_id: &str, attempt: &AttemptId) -> PathBuf {
        self.attempts_dir(method_id).join(attempt.to_string())
    }

    /// Where bundles lie.
    pub fn merged_dir(&self) -> PathBuf {
        self.root.join("merged")
    }

    /// Makes durable what earlier processes left readable: they may have been killed before it was. Whoever goes on from
    /// it would promise what a power cut can still take.
    ///
    /// # Errors
    /// The system refused.
    pub fn settle(&self) -> DiskResult<()> {
        let methods = self.root.join("methods");
        if methods.is_dir() {
            durable::settle(&methods)?;
        }
        durable::sync_dir(&self.root)
    }

    /// Puts a bundle in place under the next number and points the link at it.
    ///
    /// # Errors
    /// The system refused.
    pub fn publish(&self, bundle: Sealed) -> DiskResult<Published> {
        let published = bundle.publish_numbered(&self.merged_dir())?;
        // Another merge may have put a newer one there meanwhile, and the link never goes back.
        if let Some(newest) = newest_number(&self.merged_dir())? {
            let target = Path::new("merged").join(format!("{newest:04}"));
            durable::sweep(&self.root);
            durable::replace_link(&self.bundle_link(), &target)?;
        }
        Ok(published)
    }

    /// The link to the newest bundle.
    pub fn bundle_link(&self) -> PathBuf {
        self.root.join("bundle")
    }
}
