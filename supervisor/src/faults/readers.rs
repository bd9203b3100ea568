//! Every file of a run directory in every state that a crash, a bad disk or a stranger can leave it in, put before every
//! reader. None may panic, wait, or take what is there for something it is not.

use super::drive::{Drive, Essence, Promised, essence};
use crate::bundle::check_inventory;
use crate::rundir::state::{Heartbeat, attempts};
use crate::rundir::{Plan, RunDir};
use nix::sys::stat::Mode;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// What lies in the place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ruin {
    Absent,
    Empty,
    Zeros,
    Half,
    NoUtf8,
    NoRecord,
    Twice,
    Huge,
    Pipe,
    Folder,
    Device,
    Loop,
}

const ALL: [Ruin; 12] = [
    Ruin::Absent,
    Ruin::Empty,
    Ruin::Zeros,
    Ruin::Half,
    Ruin::NoUtf8,
    Ruin::NoRecord,
    Ruin::Twice,
    Ruin::Huge,
    Ruin::Pipe,
    Ruin::Folder,
    Ruin::Device,
    Ruin::Loop,
];

fn ruin(path: &Path, how: Ruin) {
    let before = fs::read(path).unwrap();
    fs::remove_file(path).unwrap();
    let write = |bytes: &[u8]| fs::write(path, bytes).unwrap();
    match how {
        Ruin::Absent => {}
        Ruin::Empty => write(b""),
        Ruin::Zeros => write(&vec![0; before.len()]),
        Ruin::Half => write(&before[..before.len() / 2]),
        Ruin::NoUtf8 => write(&[b"\xff\xfe\n".as_slice(), &before].concat()),
        Ruin::NoRecord => write(b"{\"schema\": \"another/1\", \"record\": 3}\n"),
        Ruin::Twice => write(&before.repeat(2)),
        // Sparse: it takes no space, and reading it whole would take hours.
        Ruin::Huge => File::create(path).unwrap().set_len(1 << 40).unwrap(),
        Ruin::Pipe => nix::unistd::mkfifo(path, Mode::S_IRWXU).unwrap(),
        Ruin::Folder => fs::create_dir(path).unwrap(),
        Ruin::Device => std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
        Ruin::Loop => std::os::unix::fs::symlink(path, path).unwrap(),
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            files(&entry.path(), found);
        } else if entry.file_type().unwrap().is_file() {
            found.push(entry.path());
        }
    }
}

#[test]
fn no_reader_falls_for_a_ruined_file() {
    let folder = tempfile::tempdir().unwrap();
    let sound = folder.path().join("sound");
    let mut drive = Drive::new();
    drive.run(&sound).unwrap();
    let wanted = essence(&sound);
    let mut all = vec![sound.join("run.json")];
    // One of two methods is enough: their files are the same ones.
    let first = drive.method_id(0);
    files(&sound.join("methods").join(&first), &mut all);
    assert_eq!(all.len(), 7, "{all:?}");
    files(&sound.join("submissions"), &mut all);
    assert_eq!(all.len(), 9, "{all:?}");
    files(&sound.join("merged"), &mut all);
    assert!(all.len() > 20, "{all:?}");
    let mut cases = 0;
    for path in &all {
        for how in ALL {
            let inner = path.strip_prefix(&sound).unwrap();
            let what = format!("{how:?} in the place of {}", inner.display());
            let root = folder.path().join("ruined");
            copy(&sound, &root);
            ruin(&root.join(inner), how);
            let judged = if inner.starts_with("merged") {
                anew(&mut drive, &root, &wanted)
            } else {
                judge(&mut drive, &root, inner, how, &wanted)
            };
            judged.unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
            fs::remove_dir_all(&root).unwrap();
            cases += 1;
        }
    }
    println!("{} files, {cases} ruins", all.len());
}

/// A ruined bundle is never taken for one: merging makes another beside it, and the link leads there.
fn anew(drive: &mut Drive, root: &Path, wanted: &Essence) -> Result<(), String> {
    check_inventory(&root.join("merged/0001"))
        .err()
        .ok_or("it is taken for a bundle")?;
    drive.merge(root).map_err(|error| error.to_string())?;
    let link = fs::read_link(root.join("bundle")).unwrap();
    if link.ends_with("0002") && essence(root) == *wanted {
        Ok(())
    } else {
        Err(format!("`bundle` leads to {}", link.display()))
    }
}

#[test]
fn what_lies_in_the_place_of_a_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let sound = folder.path().join("sound");
    let mut drive = Drive::new();
    drive.run(&sound).unwrap();
    let method = format!("methods/{}", drive.method_id(0));
    let folders = [
        "methods".to_owned(),
        method.clone(),
        format!("{method}/attempts"),
        format!("{method}/attempts/0001.local.r0"),
        format!("{method}/attempts/0001.local.r0/scores"),
        "submissions".into(),
        "submissions/0001".into(),
        "merged".into(),
    ];
    for inner in folders {
        for how in [Ruin::Empty, Ruin::Pipe, Ruin::Loop] {
            let root = folder.path().join("ruined");
            copy(&sound, &root);
            let place = root.join(&inner);
            fs::remove_dir_all(&place).unwrap();
            fs::write(&place, "").unwrap();
            ruin(&place, how);
            let what = format!("{how:?} in the place of {inner}");
            let error = drive.merge(&root).expect_err(&what);
            let text = error.to_string();
            assert!(text.contains(place.to_str().unwrap()), "{what}: {text}");
            assert_eq!(error.exit().code(), 3, "{what}: {text}");
            fs::remove_dir_all(&root).unwrap();
        }
    }
}

/// What `status`, `merge` and a later start make of a directory with one ruined file.
fn judge(
    drive: &mut Drive,
    root: &Path,
    inner: &Path,
    how: Ruin,
    wanted: &Essence,
) -> Result<(), String> {
    let run = RunDir::new(root);
    let ruined = root.join(inner);
    let names_it = |text: &str| text.contains(ruined.to_str().unwrap());
    let dir = ruined.parent().unwrap();
    Heartbeat::read(dir);
    crate::render::sentence::tail(&ruined, 5);
    if inner.ends_with("run.json") {
        return match Plan::read(&run) {
            Ok(_) => Err("the plan is read".into()),
            Err(error) if how == Ruin::Absent || names_it(&error.to_string()) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
    }
    drive.promised = Promised::default();
    let read = attempts(&run, &drive.method_id(0));
    if let Err(error) = &read
        && !names_it(&error.to_string())
    {
        return Err(format!("does not name the file: {error}"));
    }
    // The stderr of a worker is for people.
    if inner.ends_with("stderr") {
        drive.merge(root).map_err(|error| error.to_string())?;
        return if essence(root) == *wanted {
            Ok(())
        } else {
            Err("another bundle".into())
        };
    }
    match drive.merge(root) {
        Ok((true, _)) if essence(root) != *wanted => {
            Err("a wrong bundle that says complete".into())
        }
        // A score file is not looked at before its checkpoint counts, and each does here.
        Ok((true, _)) if inner.extension().is_some_and(|end| end == "f64") => {
            Err("merged without its scores".into())
        }
        Ok((true, _))
            if how == Ruin::Twice
                || inner.ends_with("checkpoints.log") && how == Ruin::NoRecord =>
        {
            Ok(())
        }
        // It says who drove the run, and nothing of what came of it.
        Ok((true, _)) if inner.starts_with("submissions") => Ok(()),
        Ok((true, _)) => Err("nobody noticed".into()),
        Ok((false, why)) if why.is_empty() => Err("incomplete, and nobody says why".into()),
        // What is absent for the readers is done again by a later start.
        Ok((false, _)) => {
            let done = drive.resume(root).map_err(|error| error.to_string())?;
            check_inventory(&run.bundle_link()).map_err(|error| error.to_string())?;
            if done.complete && essence(root) == *wanted {
                Ok(())
            } else {
                Err(format!("a later start ends otherwise: {done:?}"))
            }
        }
        Err(error) if names_it(&error.to_string()) && error.exit().code() == 3 => Ok(()),
        Err(error) => Err(format!("an error without the file: {error}")),
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (entry, target) = (
            entry.as_ref().unwrap(),
            to.join(entry.as_ref().unwrap().file_name()),
        );
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&entry.path(), &target);
        } else if kind.is_file() {
            fs::copy(entry.path(), target).unwrap();
        } else {
            std::os::unix::fs::symlink(fs::read_link(entry.path()).unwrap(), target).unwrap();
        }
    }
}
