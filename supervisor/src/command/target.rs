//! Where a command may write: a name that is free, or a regular file that is replaced. A device, a pipe or a link would
//! be replaced as well, which is never what was meant; and an input must not be.

use crate::error::Error;
use crate::render::brief;
use crate::rundir::durable;
use nix::unistd::AccessFlags;
use proctor_protocol::canonical::Limits;
use proctor_protocol::input::read_json;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Refuses an output file that cannot be written or would replace something that is no output of ours.
///
/// # Errors
/// It is there and no regular file, it is one of `inputs`, or its folder is not there.
pub(super) fn file(output: &Path, inputs: &[&Path]) -> Result<(), Error> {
    let refuse = |problem: String| {
        let name = brief(&output.display().to_string());
        Err(Error::input(format!("--output {name}: {problem}")))
    };
    if output.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return refuse("names a folder; give the name of a file".into());
    }
    let folder = durable::parent(output);
    match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return refuse(format!("{} is not a folder", folder.display())),
        Err(error) => return refuse(format!("its folder: {error}; make it first")),
    }
    if let Err(error) = nix::unistd::eaccess(folder, AccessFlags::W_OK | AccessFlags::X_OK) {
        return refuse(format!("its folder cannot be written to: {}", error.desc()));
    }
    let found = match std::fs::symlink_metadata(output) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return refuse(error.to_string()),
    };
    if !found.is_file() {
        return refuse(format!(
            "is {}, which is not written to; name a file, or one that does not exist",
            durable::kind(&found)
        ));
    }
    let same = |input: &&&Path| {
        std::fs::metadata(input)
            .is_ok_and(|input| (input.dev(), input.ino()) == (found.dev(), found.ino()))
    };
    if let Some(input) = inputs.iter().find(same) {
        let name = brief(&input.display().to_string());
        return refuse(format!("is the input {name}; name another file"));
    }
    Ok(())
}

/// Refuses to replace a file in the folder of a dataset that is read, unless it is a protocol.
///
/// # Errors
/// The output is there, in the folder, and is no protocol.
pub(super) fn not_of_dataset(output: &Path, folder: &Path) -> Result<(), Error> {
    let (Ok(place), Ok(folder)) = (output.canonicalize(), folder.canonicalize()) else {
        // It is not there yet, so nothing is replaced.
        return Ok(());
    };
    let is_protocol = || {
        let value = read_json(&place, Limits::default());
        value.is_ok_and(|value| value.get("protocol_id").is_some())
    };
    if !place.starts_with(&folder) || is_protocol() {
        return Ok(());
    }
    Err(Error::input(format!(
        "--output {}: is a file of the dataset in {}; name another file",
        brief(&output.display().to_string()),
        brief(&folder.display().to_string())
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_are_replaced_and_never_an_input() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        nix::unistd::mkfifo(&path("pipe"), Mode::S_IRWXU).unwrap();
        std::fs::write(path("input"), "").unwrap();
        std::fs::write(path("old"), "").unwrap();
        std::fs::hard_link(path("input"), path("input too")).unwrap();
        symlink("old", path("link")).unwrap();
        symlink("nothing", path("dangling")).unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        let input = path("input");
        for good in ["old", "new"] {
            file(&path(good), &[&input]).unwrap();
        }
        for (bad, why) in [
            ("pipe", "is a pipe"),
            ("link", "is a symbolic link"),
            ("dangling", "is a symbolic link"),
            ("folder", "is a folder"),
            ("new/", "names a folder"),
            ("input", "is the input"),
            ("input too", "is the input"),
            ("absent/new", "its folder"),
            ("old/new", "is not a folder"),
        ] {
            let error = file(&path(bad), &[&input]).unwrap_err();
            assert!(error.to_string().contains(why), "{bad}: {error}");
            assert!(matches!(error, Error::Input(_)), "{bad}");
        }
    }

    #[test]
    fn a_folder_that_takes_nothing_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o555)).unwrap();
        let answer = file(&folder.path().join("new"), &[]);
        // The superuser may write anywhere.
        assert_eq!(answer.is_ok(), nix::unistd::geteuid().is_root());
    }

    #[test]
    fn files_of_a_dataset_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("files.csv"), "file_id,file_path\n").unwrap();
        std::fs::write(path("metadata.json"), "{}").unwrap();
        std::fs::write(path("protocol.json"), "{\"protocol_id\": \"x\"}").unwrap();
        for (name, stays) in [
            ("files.csv", true),
            ("metadata.json", true),
            ("protocol.json", false),
            ("new.json", false),
        ] {
            assert_eq!(
                not_of_dataset(&path(name), folder.path()).is_err(),
                stays,
                "{name}"
            );
        }
        let elsewhere = tempfile::tempdir().unwrap();
        assert!(not_of_dataset(&path("files.csv"), elsewhere.path()).is_ok());
    }
}
