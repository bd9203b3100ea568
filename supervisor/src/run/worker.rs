//! Finding the worker for built-in methods, and the command and environment a method is started with.

use crate::error::Error;
use crate::room::RoomSpec;
use proctor_protocol::method::{Method, MethodKind};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The environment variable that names the worker.
pub const WORKER_VARIABLE: &str = "PROCTOR_WORKER";

/// Where the worker lies: the path given, else `$PROCTOR_WORKER`, else `proctor-worker` beside this program.
///
/// # Errors
/// There is no executable file at the place that was named first.
pub fn find(given: Option<&Path>) -> Result<PathBuf, Error> {
    let (path, why) = if let Some(path) = given {
        (path.to_path_buf(), "--worker names it")
    } else if let Some(path) = std::env::var_os(WORKER_VARIABLE).filter(|path| !path.is_empty()) {
        (PathBuf::from(path), "$PROCTOR_WORKER names it")
    } else {
        let own = std::env::current_exe().map_err(|error| {
            Error::Infrastructure(format!("this program cannot find its own file: {error}"))
        })?;
        (
            own.with_file_name("proctor-worker"),
            "it belongs beside proctor",
        )
    };
    let hint = "build it with `cargo build --release`, or name one with --worker FILE";
    let found = std::fs::metadata(&path).map_err(|error| {
        Error::input(format!(
            "the worker for built-in methods is not there: {} ({why}): {error}; {hint}",
            path.display()
        ))
    })?;
    if !found.is_file() || found.permissions().mode() & 0o111 == 0 {
        return Err(Error::input(format!(
            "{} ({why}) is not an executable file; {hint}",
            path.display()
        )));
    }
    std::path::absolute(&path).map_err(|error| Error::input(format!("{}: {error}", path.display())))
}

/// The command a method is started with.
pub fn command(method: &Method, worker: Option<&Path>) -> Vec<OsString> {
    match &method.kind {
        MethodKind::Program(program) => program.command.iter().map(OsString::from).collect(),
        MethodKind::Builtin | MethodKind::Unsupported(_) => worker
            .iter()
            .map(|path| path.as_os_str().to_owned())
            .collect(),
    }
}

/// What the worker's user could not read of what a method needs, with the reason and the remedy. The executable, the
/// declared files and the installation of an interpreter are looked at as a room would look at them.
pub fn unreadable(method: &Method, worker: Option<&Path>) -> Vec<String> {
    let room = RoomSpec {
        visible: shown(method),
        ..RoomSpec::new(command(method, worker), "", "", "")
    };
    room.unreadable()
}

/// The names of the environment variables a method asks to be passed on.
pub fn passed_on(method: &Method) -> &[String] {
    match &method.kind {
        MethodKind::Program(program) => &program.env,
        MethodKind::Builtin | MethodKind::Unsupported(_) => &[],
    }
}

/// What a method's worker must be able to read besides its executable: the declared files, and the installation its
/// interpreter belongs to.
pub fn shown(method: &Method) -> Vec<PathBuf> {
    let MethodKind::Program(program) = &method.kind else {
        return Vec::new();
    };
    let mut shown = program.files.clone();
    shown.extend(prefix(&program.executable));
    if let Ok(real) = program.executable.canonicalize() {
        shown.extend(prefix(&real).filter(|_| real != program.executable));
    }
    shown
}

/// The directory an installation lies in, judged by its `bin` and what stands beside it.
fn prefix(executable: &Path) -> Option<PathBuf> {
    let bin = executable.parent().filter(|bin| bin.ends_with("bin"))?;
    let prefix = bin.parent()?;
    let installed = prefix.join("lib").is_dir() || prefix.join("pyvenv.cfg").is_file();
    (installed && prefix.parent().is_some()).then(|| prefix.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_must_be_an_executable_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w");
        assert!(matches!(find(Some(&path)), Err(Error::Input(_))));
        std::fs::write(&path, "").unwrap();
        assert!(matches!(find(Some(&path)), Err(Error::Input(_))));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find(Some(&path)).unwrap(), path);
    }
}
