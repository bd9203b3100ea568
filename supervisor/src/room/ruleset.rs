//! Confinement of files without a mount namespace: landlock.
//!
//! Landlock knows only what is allowed, and what is allowed for a directory is allowed below it. To hide something, its
//! directory is opened entry by entry.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope,
};

/// The newest version whose rights are asked for; older kernels give those they have.
const VERSION: ABI = ABI::V6;
/// The oldest that is enough: before it (Linux 6.2) anybody could empty files that they may not write.
const ENOUGH: ABI = ABI::V3;
/// The most directory entries that may become rules of their own.
const MAX_RULES: usize = 20_000;
/// Devices that every program may write to.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// Makes the rules: everything may be read but what is hidden, only the scratch directory may be written. A worker may
/// also write what is its own in /proc, unless it is root, to whom the kernel's settings there belong. With `networks` no
/// TCP either, where the kernel knows that.
pub(super) fn create(
    scratch: &Path,
    hidden: &[PathBuf],
    visible: &[PathBuf],
    root: bool,
    networks: bool,
) -> Result<OwnedFd, String> {
    let say = |error: landlock::RulesetError| format!("landlock: {error}");
    let reading = AccessFs::from_read(VERSION);
    let all = AccessFs::from_all(VERSION);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ENOUGH))
        .map_err(say)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .map_err(say)?
        .scope(Scope::from_all(VERSION))
        .map_err(say)?;
    if networks {
        ruleset = ruleset
            .handle_access(AccessNet::from_all(VERSION))
            .map_err(say)?;
    }
    let mut rules = Rules {
        set: ruleset.create().map_err(say)?,
        left: MAX_RULES,
    };
    let hidden: Vec<PathBuf> = hidden
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    rules.open(Path::new("/"), &hidden, reading)?;
    for path in visible {
        rules.add(path, reading)?;
    }
    for device in DEVICES {
        rules.add(
            Path::new(device),
            AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev,
        )?;
    }
    if !root {
        rules.add(
            Path::new("/proc"),
            reading | AccessFs::WriteFile | AccessFs::Truncate,
        )?;
    }
    rules.add(scratch, all)?;
    let descriptor: Option<OwnedFd> = rules.set.into();
    descriptor.ok_or_else(|| "this kernel has no landlock".to_owned())
}

/// Rules about nothing but TCP, of which there is to be none.
pub(super) fn no_tcp() -> Result<OwnedFd, String> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessNet::from_all(ABI::V4))
        .and_then(Ruleset::create)
        .map_err(|error| format!("landlock: {error}"))?;
    let descriptor: Option<OwnedFd> = ruleset.into();
    descriptor.ok_or_else(|| "this kernel has no landlock".to_owned())
}

/// Why the kernel has no landlock, if it has none.
pub(super) fn missing() -> Option<String> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ENOUGH))
        .and_then(Ruleset::create)
        .err()
        .map(|error| format!("landlock: {error}"))
}

struct Rules {
    set: RulesetCreated,
    left: usize,
}

impl Rules {
    /// Allows a directory but for what is hidden in it.
    fn open(
        &mut self,
        path: &Path,
        hidden: &[PathBuf],
        access: BitFlags<AccessFs>,
    ) -> Result<(), String> {
        if hidden.iter().any(|other| other == path) {
            return Ok(());
        }
        if !hidden.iter().any(|other| other.starts_with(path)) {
            return self.add(path, access);
        }
        let entries = fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
        for entry in entries.filter_map(Result::ok) {
            // Rules are for what lies somewhere; a link is followed when it is used.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.open(&entry.path(), hidden, access)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), String> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| format!("landlock would need more than {MAX_RULES} rules"))?;
        // What this process cannot open, or what has gone, stays shut.
        let Ok(opened) = PathFd::new(path) else {
            return Ok(());
        };
        let directory = fs::metadata(path).is_ok_and(|found| found.is_dir());
        let access = if directory {
            access
        } else {
            access & AccessFs::from_file(VERSION)
        };
        (&mut self.set)
            .add_rule(PathBeneath::new(opened, access))
            .map_err(|error| format!("landlock: {}: {error}", path.display()))?;
        Ok(())
    }
}
