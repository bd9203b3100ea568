//! The real programs under the faults of a real kernel: a run whose file operations are refused, cut short, or are the last
//! thing it ever does; a disk that is full; a disk that is read-only. What was finished stays, and a later start ends as if
//! nothing had happened.
//!
//! `PROCTOR_FAULTS=all` strikes at every operation; without it a fixed sample is struck at, so that it takes a minute or two.
#![allow(clippy::print_stdout, reason = "a sweep says how many cases it had")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use serde_json::json;

use crate::args;
use crate::support::bench::Bench;
use crate::support::proctor::{Done, command, finish, proctor};
use crate::support::{programs, repository, skip, tree, wait_for};

/// So many operations are struck at where not all are.
const SAMPLE: usize = 24;

/// Two methods and two datasets.
fn benchmark() -> (Bench, PathBuf) {
    let bench = Bench::of(&repository().join("fixtures/manifest.json"), |manifest| {
        manifest["execution_policy"]["max_method_seconds"] = json!(60);
        let datasets = manifest["datasets"].as_array_mut().expect("datasets");
        datasets.truncate(2);
    });
    let methods = bench.methods(&[json!("Levenshtein"), json!("GST")]);
    (bench, methods)
}

/// What must not depend on what happened on the way: rows, ranks, and the score files to the byte.
type Essence = BTreeMap<String, Vec<u8>>;

fn essence(bundle: &Path) -> Essence {
    let payload = crate::support::bundle::Bundle::open(bundle).payload;
    let mut essence = tree(&bundle.join("scores"));
    for part in ["per_dataset", "aggregate"] {
        let mut rows = payload[part].clone();
        for row in rows.as_array_mut().expect("rows") {
            row.as_object_mut()
                .expect("a row")
                .remove("elapsed_seconds");
        }
        essence.insert(part.to_owned(), rows.to_string().into_bytes());
    }
    essence
}

/// Runs `proctor` under the striker.
fn struck(
    bench: &Bench,
    name: &str,
    at: usize,
    fault: &str,
    arguments: &[&Path],
) -> (Done, Vec<String>) {
    let log = bench.path(&format!("{name}.log"));
    let mut strike = Command::new(programs().join("strike"));
    strike
        .args([bench.path(name).as_path(), &log])
        .args([at.to_string().as_str(), fault])
        .arg(programs().join("proctor"))
        .args(arguments)
        .stdin(Stdio::null());
    let done = finish(strike);
    let seen = std::fs::read_to_string(log).unwrap_or_default();
    (done, seen.lines().map(str::to_owned).collect())
}

/// True where programs can be struck at; says what is skipped where not.
fn can_strike(test: &str) -> bool {
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return true;
    }
    skip(test, "the striker knows the registers of x86_64 alone");
    false
}

/// An error of this text unless it holds.
fn demand(holds: bool, text: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(text()) }
}

/// Works on a list with as many threads as there are cores, and tells everything that went wrong.
fn each<T: Sync>(list: &[T], work: impl Fn(&T) -> Result<(), String> + Sync) {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(one) = list.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(text) = work(one) {
                        wrong.lock().expect("no thread panics with it").push(text);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no thread panicked with it");
    assert!(
        wrong.is_empty(),
        "{} wrong\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// All numbers below `count`, or a sample spread over them.
fn chosen(count: usize) -> Vec<usize> {
    if std::env::var("PROCTOR_FAULTS").is_ok_and(|which| which == "all") || count <= SAMPLE {
        return (0..count).collect();
    }
    (0..SAMPLE).map(|number| number * count / SAMPLE).collect()
}

/// What a run said that was struck at: the right bundle, or a clear error. Never a panic, never a wait.
fn says(done: &Done, run: &Path, wanted: &Essence) -> Result<(), String> {
    let said = format!("{}{}", done.stdout, done.stderr);
    demand(
        !said.contains("panicked") && !said.contains("bug in proctor"),
        || said.clone(),
    )?;
    match done.code {
        Some(0) => demand(essence(&run.join("bundle")) == *wanted, || {
            "silently wrong".into()
        }),
        // Before there was a plan nothing had started.
        Some(2) => demand(!run.join("run.json").exists(), || {
            format!("wrong usage: {said}")
        }),
        Some(3) => demand(said.contains(run.to_str().expect("UTF-8")), || {
            format!("names no place: {said}")
        }),
        Some(137) => Ok(()),
        code => Err(format!("ends with {code:?}: {said}")),
    }
}

/// A later start must end as the undisturbed run did.
fn goes_on(run: &Path, again: &[&Path], wanted: &Essence) -> Result<(), String> {
    let done = if run.join("run.json").exists() {
        let status = proctor(args!["status", run]);
        demand(status.code == Some(0), || {
            format!("status: {}", status.stderr)
        })?;
        proctor(args!["resume", run])
    } else {
        proctor(again)
    };
    demand(done.code == Some(0), || {
        format!("goes on with {:?}: {}", done.code, done.stderr)
    })?;
    demand(essence(&run.join("bundle")) == *wanted, || {
        "another bundle".into()
    })
}

#[test]
fn whatever_the_kernel_refuses_a_run_goes_on_from_what_was_finished() {
    if !can_strike("whatever_the_kernel_refuses_a_run_goes_on_from_what_was_finished") {
        return;
    }
    let (bench, methods) = benchmark();
    let protocol = bench.protocol();
    let words = |run: &Path| {
        [
            PathBuf::from("run"),
            protocol.clone(),
            methods.clone(),
            "-o".into(),
            run.to_path_buf(),
        ]
    };
    let root = bench.path("undisturbed");
    let run = words(&root);
    let (done, operations) = struck(
        &bench,
        "undisturbed",
        0,
        "none",
        &run.each_ref().map(PathBuf::as_path),
    );
    let done = done.exits(0);
    let wanted = essence(&root.join("bundle"));
    assert!(
        operations.len() > 150,
        "{} {}",
        operations.len(),
        done.stderr
    );
    every_change_is_asked_to_be_durable(&operations);

    let faults = |at: usize| {
        let mut faults = vec![("kill".to_owned(), at)];
        let errors = [Errno::ENOSPC, Errno::EIO, Errno::EINTR];
        let which = errors[at % 3] as i32;
        faults.push((which.to_string(), at));
        if operations[at].contains(" write ") {
            faults.push(("short".into(), at));
        }
        if at.is_multiple_of(2) {
            faults.push((format!("{}+", Errno::EROFS as i32), at));
        } else {
            faults.push((format!("{}+", Errno::ENOSPC as i32), at));
        }
        faults
    };
    let cases: Vec<(String, usize)> = chosen(operations.len())
        .into_iter()
        .flat_map(faults)
        .collect();
    each(&cases, |(fault, at)| {
        let name = format!("struck-{fault}-{at}");
        let root = bench.path(&name);
        let run = words(&root);
        let run = run.each_ref().map(PathBuf::as_path);
        let what = format!("{fault} at {}", operations[*at]);
        let wrong = |text: String| format!("{what}: {text}");
        let (done, _) = struck(&bench, &name, *at, fault, &run);
        says(&done, &root, &wanted).map_err(wrong)?;
        if fault == "kill" && root.join("run.json").exists() {
            // And once more while it goes on; 100 operations are about what is left.
            let resume = [Path::new("resume"), &root];
            let (done, _) = struck(&bench, &name, at * 37 % 100, fault, &resume);
            says(&done, &root, &wanted).map_err(wrong)?;
        }
        goes_on(&root, &run, &wanted).map_err(wrong)?;
        std::fs::remove_dir_all(&root).map_err(|error| wrong(error.to_string()))
    });
    println!("{} operations, {} faults", operations.len(), cases.len());
}

/// From the outside: no file gets its last name before it was synced, and no name is left without a sync of its folder.
fn every_change_is_asked_to_be_durable(operations: &[String]) {
    let mut unsynced: BTreeSet<&str> = BTreeSet::new();
    let mut loose: BTreeSet<&str> = BTreeSet::new();
    for operation in operations {
        let mut words = operation.splitn(3, ' ').skip(1);
        let (name, path) = (words.next().expect("a name"), words.next().expect("a path"));
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let passing = |path: &str| path.contains("heartbeat") || path.contains(".reserve");
        match name {
            "write" if !passing(path) => {
                unsynced.insert(path);
            }
            "sync" => {
                unsynced.remove(path);
                loose.remove(path);
            }
            "mkdir" | "rename" | "symlink" if !passing(path) => {
                loose.insert(folder);
            }
            _ => {}
        }
    }
    assert!(
        unsynced.is_empty(),
        "written and never synced: {unsynced:#?}"
    );
    // The folder of a bundle that moved has another name since, and the one above the run is not watched.
    loose.retain(|folder| !folder.contains(".part") && folder.contains("/undisturbed"));
    assert!(loose.is_empty(), "names were never synced in: {loose:#?}");
}

/// A file system in memory, with limits that can be changed while it is used. Gone when dropped.
struct Disk(PathBuf);

impl Disk {
    /// `None` where nothing may be mounted; says what is skipped then.
    fn new(test: &str, place: PathBuf, limits: &str) -> Option<Self> {
        std::fs::create_dir(&place).expect("a folder");
        let none: Option<&str> = None;
        let mounted = mount(none, &place, Some("tmpfs"), MsFlags::empty(), Some(limits));
        match mounted {
            Ok(()) => Some(Self(place)),
            Err(error) => {
                skip(test, &format!("no file system can be mounted: {error}"));
                None
            }
        }
    }

    fn change(&self, flags: MsFlags, limits: &str) -> nix::Result<()> {
        let none: Option<&str> = None;
        mount(
            none,
            &self.0,
            none,
            flags | MsFlags::MS_REMOUNT,
            Some(limits),
        )
    }

    /// Leaves so many bytes free, whatever is used now.
    fn leave(&self, free: u64) {
        wait_for("the disk to be made smaller", || {
            let now = nix::sys::statvfs::statvfs(&self.0).expect("it is mounted");
            let used = (now.blocks() - now.blocks_free()) * now.fragment_size();
            // Whatever was written meanwhile did not fit.
            self.change(MsFlags::empty(), &format!("size={}", used + free))
                .is_ok()
        });
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = umount2(&self.0, MntFlags::MNT_DETACH);
    }
}

#[test]
fn a_disk_that_is_full_at_any_write_costs_nothing_that_was_finished() {
    let test = "a_disk_that_is_full_at_any_write_costs_nothing_that_was_finished";
    let (bench, methods) = benchmark();
    let protocol = bench.protocol();
    let words = |run: &Path| {
        [
            PathBuf::from("run"),
            protocol.clone(),
            methods.clone(),
            "-o".into(),
            run.to_path_buf(),
        ]
    };
    let Some(disk) = Disk::new(test, bench.path("whole"), "size=128m") else {
        return;
    };
    let root = disk.0.join("run");
    proctor(&words(&root)).exits(0);
    let wanted = essence(&root.join("bundle"));
    let used = nix::sys::statvfs::statvfs(&disk.0).expect("it is mounted");
    let inodes = used.files() - used.files_free();
    let pages = (used.blocks() - used.blocks_free()) * used.fragment_size() / 4096;
    assert!(inodes > 40 && pages > 40, "{inodes} inodes, {pages} pages");
    drop(disk);

    // The disk has no room for another file, from each file on; and no room for another page, after each page, with the
    // space that was kept back and without it.
    let sample = |count: u64| {
        chosen(usize::try_from(count).expect("a few"))
            .into_iter()
            .step_by(2)
    };
    let mut cases: Vec<(&str, usize)> = sample(inodes).skip(1).map(|at| ("files", at)).collect();
    cases.extend(sample(pages).map(|at| ("pages", at)));
    cases.extend(sample(pages).map(|at| ("pages and no reserve", at)));
    each(&cases, |(what, at)| {
        let name = format!("disk {what} {at}");
        let limits = match *what {
            "files" => format!("size=128m,nr_inodes={}", at + 1),
            _ => "size=128m".to_owned(),
        };
        let disk = Disk::new(test, bench.path(&name), &limits).ok_or("not mounted")?;
        let root = disk.0.join("run");
        let run = words(&root);
        let done = if *what == "files" {
            proctor(&run)
        } else {
            let mut child = command(&run);
            let child = child.stdout(Stdio::piped()).stderr(Stdio::piped());
            let child = child.spawn().expect("proctor starts");
            wait_for("the run", || {
                root.join("methods").exists() || root.join("bundle").exists()
            });
            if what.ends_with("reserve") {
                let _ = std::fs::remove_file(root.join(".reserve"));
            }
            disk.leave(*at as u64 * 4096);
            let output = child.wait_with_output().expect("proctor ends");
            Done::of(name.clone(), &output, std::time::Duration::ZERO)
        };
        let wrong = |text: String| format!("{name}: {text}");
        says(&done, &root, &wanted).map_err(wrong)?;
        disk.change(MsFlags::empty(), "size=128m,nr_inodes=10000")
            .map_err(|error| wrong(error.to_string()))?;
        goes_on(&root, &run.each_ref().map(PathBuf::as_path), &wanted).map_err(wrong)
    });
    println!("{} disks that fill up", cases.len());
}

#[test]
fn a_run_on_a_disk_that_cannot_be_written_is_read_and_merged_elsewhere() {
    let test = "a_run_on_a_disk_that_cannot_be_written_is_read_and_merged_elsewhere";
    let (bench, methods) = benchmark();
    let Some(disk) = Disk::new(test, bench.path("disk"), "size=128m") else {
        return;
    };
    let root = disk.0.join("run");
    let run = args!["run", bench.protocol(), &methods, "-o", &root].to_vec();
    proctor(&run).exits(0);
    let wanted = essence(&root.join("bundle"));
    std::fs::remove_dir_all(root.join("merged")).expect("its bundles can go");
    std::fs::remove_file(root.join("bundle")).expect("the link too");
    disk.change(MsFlags::MS_RDONLY, "")
        .expect("nothing is open");

    let fresh = disk.0.join("fresh");
    proctor(args!["run", bench.protocol(), &methods, "-o", &fresh])
        .exits(2)
        .says("read-only file");
    proctor(args!["status", &root]).exits(0).says("completed");
    for verb in ["merge", "resume"] {
        proctor(args![verb, &root])
            .exits(3)
            .says(root.join("merged").to_str().expect("UTF-8"))
            .says("Read-only file system")
            .says("make it writable");
    }
    let elsewhere = bench.path("elsewhere");
    proctor(args!["merge", &root, "-o", &elsewhere]).exits(0);
    assert!(essence(&elsewhere) == wanted);
    disk.change(MsFlags::empty(), "")
        .expect("it can be written again");
    proctor(args!["resume", &root]).exits(0);
    assert!(essence(&root.join("bundle")) == wanted);
}
