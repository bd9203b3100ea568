//! Every fault at every operation of a small run, and what a later start makes of it.

use super::drive::{Done, Drive, Essence, essence};
use super::{Fault, Kind, Remains, Watch};
use crate::error::Error;
use crate::rundir::durable::parent;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder in memory where there is one: what a power cut would leave is modelled, so nothing needs a disk.
fn folder() -> tempfile::TempDir {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() {
        tempfile::tempdir_in(shm).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

/// An undisturbed run: its operations, and what its bundle must hold.
fn undisturbed() -> (Vec<(Kind, PathBuf)>, Essence) {
    let folder = folder();
    let watch = Watch::new(folder.path(), None);
    let root = folder.path().join("run");
    let mut drive = Drive::new();
    let done = drive.run(&root).unwrap();
    assert!(done.complete && done.trouble.is_none(), "{done:?}");
    let seen = watch.seen();
    drive.keeps_its_promises(&root).unwrap();
    (seen, essence(&root))
}

/// Works on a list with as many threads as there are cores, and tells everything that went wrong.
fn each<T: Sync + Debug>(list: &[T], work: impl Fn(&mut Drive, &T) -> Result<(), String> + Sync) {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut drive = Drive::new();
                while let Some(one) = list.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let worked = catch_unwind(AssertUnwindSafe(|| work(&mut drive, one)));
                    let worked = worked.unwrap_or_else(|_| Err(format!("panic at {one:?}")));
                    if let Err(text) = worked {
                        wrong.lock().unwrap().push(text);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(
        wrong.is_empty(),
        "{} wrong\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// An error of this text unless it holds.
fn demand(holds: bool, text: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(text()) }
}

/// A later start must find everything promised, and end as the undisturbed run did.
fn restarts(drive: &mut Drive, root: &Path, wanted: &Essence) -> Result<(), String> {
    let lost = |text: String| format!("lost: {text}");
    drive.keeps_its_promises(root).map_err(lost)?;
    let done = drive
        .restart(root)
        .map_err(|error| format!("a later start fails: {error}"))?;
    demand(done.complete && done.trouble.is_none(), || {
        format!("{done:?}")
    })?;
    drive.keeps_its_promises(root).map_err(lost)?;
    demand(essence(root) == *wanted, || {
        "the bundle is another one".into()
    })?;
    demand(!root.join(".reserve").exists(), || {
        "the reserve is left".into()
    })
}

/// Which faults an operation can have.
fn faults(kind: Kind) -> Vec<Fault> {
    let mut faults = vec![Fault::Fails(libc::EIO), Fault::Interrupted, Fault::Dies];
    if kind.takes_space() || kind == Kind::Sync {
        faults.push(Fault::Fails(libc::ENOSPC));
    }
    if kind.takes_space() {
        faults.push(Fault::FullFromHere);
    }
    if kind.acts() {
        faults.push(Fault::ReadOnlyFromHere);
    }
    if kind == Kind::Write {
        faults.extend([Fault::Short, Fault::ShortAndFull, Fault::DiesWithin]);
    }
    faults
}

#[test]
fn any_fault_at_any_operation_leaves_what_was_finished_and_a_run_that_goes_on() {
    let (operations, wanted) = undisturbed();
    let cases: Vec<(usize, Kind, PathBuf, Fault)> = operations
        .iter()
        .enumerate()
        .flat_map(|(at, (kind, path))| {
            faults(*kind)
                .into_iter()
                .map(move |fault| (at, *kind, path.clone(), fault))
        })
        .collect();
    each(&cases, |drive, (at, kind, path, fault)| {
        let folder = folder();
        let watch = Watch::new(folder.path(), Some((*at, *fault)));
        let root = folder.path().join("run");
        let what = || format!("{fault:?} at operation {at}, {kind:?} {}", path.display());
        let work = || -> Result<(), String> {
            let ran = drive.run(&root);
            let died = matches!(fault, Fault::Dies | Fault::DiesWithin);
            demand(watch.is_dead() == died, || "did not die".into())?;
            drop(watch);
            if !died {
                tells(ran, &root, &wanted)?;
            }
            restarts(drive, &root, &wanted)
        };
        work().map_err(|wrong| format!("{}: {wrong}", what()))
    });
    println!("{} operations, {} faults", operations.len(), cases.len());
}

/// A run that was not killed ends with the right bundle, or says what is missing and why.
fn tells(ran: Result<Done, Error>, root: &Path, wanted: &Essence) -> Result<(), String> {
    let trouble = match ran {
        Ok(done) if done.complete => {
            demand(essence(root) == *wanted, || "silently wrong".into())?;
            match done.trouble {
                None => return Ok(()),
                // A record that is there, and may not be after a power cut.
                Some(error) => Ok(error),
            }
        }
        Ok(done) => {
            let told = done
                .not_charged
                .first()
                .ok_or("nothing says what is missing")?;
            done.trouble.ok_or_else(|| told.clone())
        }
        Err(error) => Ok(error),
    };
    let text = match &trouble {
        Ok(error) => {
            demand(error.exit().code() == 3, || {
                format!("another exit code: {error}")
            })?;
            error.to_string()
        }
        Err(told) => told.clone(),
    };
    // Rows are published, and hold no paths of this machine.
    let place = trouble.is_err() || text.contains(parent(root).to_str().unwrap());
    demand(place && text.contains("(os error "), || {
        format!("says: {text}")
    })
}

#[test]
fn a_power_cut_before_any_operation_takes_nothing_that_was_promised() {
    let (operations, wanted) = undisturbed();
    let instants: Vec<usize> = (0..=operations.len()).collect();
    let cases = AtomicUsize::new(0);
    each(&instants, |drive, &at| {
        let folder = folder();
        let before = folder.path().join("before");
        std::fs::create_dir(&before).unwrap();
        let watch = Watch::new(&before, Some((at, Fault::Dies)));
        let _ = drive.run(&before.join("run"));
        let promised = drive.promised.clone();
        let mut all = vec![
            Remains::Nothing,
            Remains::NamesOnly,
            Remains::NamesWithZeros,
            Remains::NamesWithHalf,
            Remains::ContentOnly,
            Remains::Everything,
        ];
        let loose = watch.loose_names();
        all.extend((0..loose).map(Remains::OneName));
        all.extend((0..loose).map(Remains::AllButOneName));
        for remains in all {
            let after = folder.path().join(format!("{remains:?}"));
            std::fs::create_dir(&after).unwrap();
            watch.after_power_cut(remains, &after);
            drive.promised = promised.clone();
            restarts(drive, &after.join("run"), &wanted)
                .map_err(|wrong| format!("{remains:?} before operation {at}: {wrong}"))?;
            std::fs::remove_dir_all(&after).unwrap();
            cases.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    });
    println!("{} instants, {cases:?} disks", instants.len());
}

/// A first process dies, a second one goes on and the power goes, a third one goes on and dies, and the fourth ends the run.
/// The steps are coprime, so that over the whole sweep every operation of a later start meets a fault.
#[test]
fn a_crash_while_going_on_from_a_crash_loses_nothing_either() {
    let (operations, wanted) = undisturbed();
    let firsts: Vec<usize> = (0..operations.len()).step_by(8).collect();
    let cases = AtomicUsize::new(0);
    each(&firsts, |drive, &first| {
        let folder = folder();
        let mut second = first % 11;
        loop {
            let before = folder.path().join("before");
            std::fs::create_dir(&before).unwrap();
            let watch = Watch::new(&before, Some((first, Fault::Dies)));
            let _ = drive.run(&before.join("run"));
            watch.take_over(Some((second, Fault::Dies)));
            let _ = drive.restart(&before.join("run"));
            if !watch.is_dead() {
                return Ok(());
            }
            let promised = drive.promised.clone();
            for remains in [
                Remains::Nothing,
                Remains::NamesWithZeros,
                Remains::Everything,
            ] {
                let after = folder.path().join("after");
                std::fs::create_dir(&after).unwrap();
                watch.after_power_cut(remains, &after);
                drive.promised = promised.clone();
                let root = after.join("run");
                let what =
                    format!("{remains:?} before operation {second} after a death before {first}");
                let lost = |text| format!("{what}: lost: {text}");
                drive.keeps_its_promises(&root).map_err(lost)?;
                let third = Watch::of_old(&after, Some(((first * 7 + second) % 200, Fault::Dies)));
                let _ = drive.restart(&root);
                drop(third);
                restarts(drive, &root, &wanted).map_err(|wrong| format!("{what}: {wrong}"))?;
                std::fs::remove_dir_all(&after).unwrap();
                cases.fetch_add(1, Ordering::Relaxed);
            }
            std::fs::remove_dir_all(&before).unwrap();
            second += 11;
        }
    });
    println!("{cases:?} threefold crashes");
}
