//! The workers of these tests: one that behaves, and many that do not. Each is this test binary, started again.

use std::io::{BufRead, Write, stdin, stdout};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal, kill, raise};
use nix::unistd::{Pid, getppid, setsid};
use proctor_wire::{FromWorker, ToWorker};

/// First argument of a worker.
pub(crate) const WORD: &str = "--worker";

/// Runs a worker by name.
pub(crate) fn main(name: &str) {
    match name {
        "noop" | "silent-exit" => {}
        "good" => good(usize::MAX),
        "half" => good(1),
        "exit-3" => {
            good(usize::MAX);
            std::process::exit(3);
        }
        "daemon" => {
            leave("sleeper", Stdio::null());
            good(usize::MAX);
        }
        "holder" => {
            leave("sleeper", Stdio::inherit());
            good(usize::MAX);
        }
        "brief-helper" => {
            leave("brief", Stdio::null());
            good(usize::MAX);
        }
        "late-row" => {
            leave("late-writer", Stdio::inherit());
            good(usize::MAX);
        }
        "hang" => forever(),
        "daemon-and-hang" => {
            leave("sleeper", Stdio::null());
            forever();
        }
        "busy" => {
            SigSet::all().thread_block().unwrap();
            loop {
                std::hint::spin_loop();
            }
        }
        "four-busy" => {
            for _ in 0..3 {
                leave("busy", Stdio::null());
            }
            main("busy");
        }
        "burns" => burn(0.2),
        "burns-with-a-child" => {
            let mut child = Command::new("/proc/self/exe");
            child.args([WORD, "burns"]).stdin(Stdio::null());
            assert!(child.status().unwrap().success());
            burn(0.2);
            good(usize::MAX);
        }
        "idle" => {
            // Longer than any thread that nobody uses is kept.
            sleep(Duration::from_secs(16));
            good(usize::MAX);
        }
        "closes-all" => {
            close_standard();
            forever();
        }
        "segv" => {
            // The first one only makes Rust's own handler step aside.
            raise(Signal::SIGSEGV).unwrap();
            raise(Signal::SIGSEGV).unwrap();
        }
        "kill-self" => {
            raise(Signal::SIGKILL).unwrap();
        }
        "exit-137" => std::process::exit(137),
        "tree" => {
            for _ in 0..200 {
                leave("sleeper", Stdio::null());
            }
            forever();
        }
        "phoenix" => {
            leave("phoenix-child", Stdio::null());
            forever();
        }
        "phoenix-child" => {
            let _ = setsid();
            leave("phoenix-child", Stdio::null());
        }
        "kill-parent" => {
            let _ = kill(getppid(), Signal::SIGKILL);
            leave("sleeper", Stdio::null());
            forever();
        }
        "stop-parent" => {
            let _ = kill(getppid(), Signal::SIGSTOP);
            forever();
        }
        "gives-up" => {
            give_up();
            forever();
        }
        "gives-up-exit-4" => {
            give_up();
            std::process::exit(4);
        }
        "kill-parent-on-term" => {
            let mut term = SigSet::empty();
            term.add(Signal::SIGTERM);
            term.thread_block().unwrap();
            term.wait().unwrap();
            let _ = kill(getppid(), Signal::SIGKILL);
            forever();
        }
        "exit-3-when-greeted" => {
            hello();
            // Time for the greeting to be heard, so that the exit is not.
            sleep(Duration::from_millis(100));
            std::process::exit(3);
        }
        "keeps-parent-stopped" => {
            let parent = getppid();
            leave("stopper", Stdio::null());
            while parent == getppid() {
                let _ = kill(parent, Signal::SIGSTOP);
            }
            forever();
        }
        "stopper" => {
            // Stops its own parent's guardian without end; both do, so that one is always at it.
            let _ = setsid();
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", getppid())).unwrap();
            let (_, rest) = stat.rsplit_once(')').unwrap();
            let guardian: i32 = rest.split_whitespace().nth(1).unwrap().parse().unwrap();
            while kill(Pid::from_raw(guardian), Signal::SIGSTOP).is_ok() {}
            forever();
        }
        "odd-name" => {
            leave("odd-name-child", Stdio::null());
            while !std::path::Path::new("named").exists() {
                sleep(Duration::from_millis(1));
            }
            good(usize::MAX);
        }
        "odd-name-child" => {
            let _ = setsid();
            std::fs::write("/proc/self/comm", b"\xff) Z \xfe").unwrap();
            std::fs::write("named", "").unwrap();
            forever();
        }
        "kill-control-group" => {
            let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
            let own = own.lines().find_map(|line| line.strip_prefix("0::/"));
            for mount in ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"] {
                let group = std::path::Path::new(mount).join(own.unwrap());
                let _ = std::fs::write(group.join("cgroup.kill"), "1");
            }
            forever();
        }
        "kill-group" => {
            let _ = kill(Pid::from_raw(0), Signal::SIGKILL);
            forever();
        }
        "stop-self" => {
            raise(Signal::SIGSTOP).unwrap();
            forever();
        }
        "flood-out" => flood(1),
        "flood-err" => flood(2),
        "flood-progress" => {
            hello();
            let line = b"{\"type\":\"progress\",\"items\":1}\n".repeat(1000);
            while stdout().write_all(&line).is_ok() {}
        }
        "leaves-on-term" => {
            // Terminates at once, but its child ignores the signal.
            leave("busy", Stdio::null());
            forever();
        }
        "nan" => {
            hello();
            wait_for_score();
            println!("{{\"type\":\"scores\",\"start\":0,\"values\":[NaN,NaN,NaN]}}");
            forever();
        }
        "look" => look(),
        "rogue" => {
            crate::rogue::attack();
            good(usize::MAX);
        }
        "hog" => crate::rogue::hog(),
        "breeder" => crate::rogue::breed(|| leave("sleeper", Stdio::null())),
        "fill-many" => {
            crate::rogue::fill(false);
            good(usize::MAX);
        }
        "fill-and-fail" => {
            crate::rogue::fill(false);
            std::process::exit(1);
        }
        "fill-slowly" | "fill-unlisted" => {
            if name == "fill-unlisted" {
                // Its owner may write in it, and nobody may list it.
                std::fs::DirBuilder::new()
                    .mode(0o300)
                    .create("hidden")
                    .unwrap();
                std::env::set_current_dir("hidden").unwrap();
            }
            for number in 0..200 {
                std::fs::write(format!("slow-{number}"), vec![1; 256 << 10]).unwrap();
                sleep(Duration::from_millis(20));
            }
            forever();
        }
        "fill-one" => {
            crate::rogue::fill(true);
            good(usize::MAX);
        }
        "make-files" => {
            std::fs::create_dir_all("a/b").unwrap();
            std::fs::write("a/b/c", "x").unwrap();
            std::fs::set_permissions("a/b", std::fs::Permissions::from_mode(0o000)).unwrap();
            good(usize::MAX);
        }
        "deep-files" => {
            // More levels than descriptors, each locked behind the worker.
            let locked = std::fs::Permissions::from_mode(0o000);
            let mut at = std::fs::File::open(".").unwrap();
            for _ in 0..2000 {
                std::fs::create_dir("d").unwrap();
                std::env::set_current_dir("d").unwrap();
                at.set_permissions(locked.clone()).unwrap();
                at = std::fs::File::open(".").unwrap();
            }
            at.set_permissions(locked).unwrap();
            good(usize::MAX);
        }
        "sleeper" => {
            let _ = setsid();
            forever();
        }
        "brief" => sleep(Duration::from_millis(5)),
        "late-writer" => {
            let _ = setsid();
            let leader = std::env::args().nth(3).unwrap();
            while getppid().to_string() == leader {
                sleep(Duration::from_millis(1));
            }
            println!("{{\"type\":\"scores\",\"start\":0,\"values\":[1,1]}}");
            forever();
        }
        other => panic!("no worker is called {other}"),
    }
}

fn forever() -> ! {
    loop {
        sleep(Duration::from_hours(1));
    }
}

/// Uses so much processor time.
fn burn(seconds: f64) {
    use nix::time::{ClockId, clock_gettime};
    let used = || Duration::from(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap());
    while used().as_secs_f64() < seconds {
        std::hint::spin_loop();
    }
}

/// Starts another worker and does not wait for it.
#[expect(clippy::zombie_processes, reason = "leaving it behind is the point")]
fn leave(name: &str, output: Stdio) {
    Command::new("/proc/self/exe")
        .args([WORD, name, &std::process::id().to_string()])
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
}

fn close_standard() {
    for fd in 0..3 {
        let _ = nix::unistd::close(fd);
    }
}

fn say(message: &FromWorker) {
    let mut line = serde_json::to_vec(message).unwrap();
    line.push(b'\n');
    stdout().write_all(&line).unwrap();
    stdout().flush().unwrap();
}

fn hello() {
    say(&FromWorker::Hello {
        protocol: proctor_wire::PROTOCOL_VERSION,
        worker: "test worker".into(),
    });
}

fn give_up() {
    hello();
    say(&FromWorker::WorkerError {
        error: "no model".into(),
    });
}

fn wait_for_score() {
    for line in stdin().lock().lines() {
        if line.unwrap().contains("\"type\":\"score\"") {
            return;
        }
    }
}

/// Answers `limit` datasets, the score of an item being its number; then exits with code 0.
fn good(limit: usize) {
    hello();
    let mut items = 0;
    let mut answered = 0;
    for line in stdin().lock().lines() {
        match serde_json::from_str(&line.unwrap()).unwrap() {
            ToWorker::Dataset { items: count, .. } => items = count,
            ToWorker::Score { dataset } => {
                say(&FromWorker::Scores {
                    start: 0,
                    values: (0..items).map(|item| item as f64).collect(),
                });
                say(&FromWorker::DatasetDone { dataset });
                answered += 1;
                if answered == limit {
                    return;
                }
            }
            ToWorker::Finish {} => return say(&FromWorker::Done {}),
            _ => {}
        }
    }
}

/// One gigabyte without a line feed.
fn flood(fd: i32) {
    let block = vec![b'x'; 1 << 20];
    for _ in 0..1024 {
        let written = if fd == 1 {
            stdout().write_all(&block)
        } else {
            std::io::stderr().write_all(&block)
        };
        if written.is_err() {
            return;
        }
    }
}

/// Says on standard error what it sees of its room, then behaves.
fn look() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        line.map_or("", |line| line.split_once(':').unwrap().1.trim())
            .to_owned()
    };
    let mut fds: Vec<i32> = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    fds.sort_unstable();
    // The directory being read is the last one.
    fds.pop();
    let mut env: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
    env.sort();
    let sees_supervisor = std::env::var("SUPERVISOR").is_ok_and(|pid| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.contains("--driver"))
    });
    let core = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_CORE).unwrap();
    let opens_init = (0..10).any(|fd| {
        let link = format!("/proc/{}/fd/{fd}", getppid());
        std::fs::read_link(&link).is_ok() || std::fs::File::open(&link).is_ok()
    });
    eprintln!(
        "{}",
        serde_json::json!({
            "fds": fds,
            "env": env,
            "capabilities": field("CapEff"),
            "no_new_privileges": field("NoNewPrivs"),
            "umask": field("Umask"),
            "blocked": field("SigBlk"),
            "ignored": field("SigIgn"),
            "cores": field("Cpus_allowed_list"),
            "pid": std::process::id(),
            "session": nix::unistd::getsid(None).unwrap().as_raw(),
            "directory": std::env::current_dir().unwrap(),
            "core_limit": core,
            "sees_supervisor": sees_supervisor,
            "opens_init": opens_init,
        })
    );
    good(usize::MAX);
}
