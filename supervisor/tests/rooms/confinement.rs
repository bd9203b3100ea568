//! What a room keeps its worker from, tried from the inside and looked at from the outside.

use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::path::Path;

use proctor_supervisor::room::Rung;
use serde_json::{Value, json};

use crate::checks::{drive_with, open_directory, rungs};
use crate::oracle::User;
use crate::rogue::NOT_INSTALLED;

/// All tests here.
pub(crate) const TESTS: &[(&str, fn())] = &[
    ("a_rogue_reaches_nothing_outside", rogue),
    ("what_a_file_is_stays_as_it_is", attributes),
    ("a_network_is_closed_where_files_are_not", network_alone),
    ("masked_means_fall_back_and_say_so", masked),
    ("memory_ends_by_the_kernels_count", memory),
    ("processes_are_limited", processes),
    ("the_disk_is_limited", disk),
    ("output_is_limited", output),
    ("what_the_worker_could_not_read_is_refused", unreadable),
    ("switched_off_is_off", switched_off),
];

/// What a rogue attacks, and what is left of it afterwards.
struct Targets {
    directory: tempfile::TempDir,
    tcp: TcpListener,
    named: String,
    _abstract: UnixListener,
    path: UnixListener,
    escape: String,
}

impl Targets {
    fn new() -> Self {
        let directory = open_directory();
        let at = |name: &str| directory.path().join(name);
        for name in ["gold", "run", "method"] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("file"), "answers").unwrap();
            open(&at(name).join("file"), 0o666);
            open(&at(name), 0o777);
        }
        let path = UnixListener::bind(at("socket")).unwrap();
        open(&at("socket"), 0o777);
        let number = directory.path().file_name().unwrap().display().to_string();
        let named = format!("proctor-test-{number}");
        let address = UnixAddress::from_abstract_name(&named).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        path.set_nonblocking(true).unwrap();
        Self {
            tcp,
            named,
            _abstract: UnixListener::bind_addr(&address).unwrap(),
            path,
            escape: format!("proctor-escape-{}", std::process::id()),
            directory,
        }
    }

    fn at(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// Directories that everybody can write, as far as the host is concerned.
    fn directories(&self) -> Vec<String> {
        let mut all = vec![self.at("gold"), self.at("method"), self.at("")];
        for usual in ["/tmp", "/var/tmp", "/dev/shm", "/run/lock", "/etc", "/"] {
            if Path::new(usual).is_dir() {
                all.push(usual.to_owned());
            }
        }
        all
    }

    fn options(&self, more: &Value) -> Value {
        let mut options = json!({
            "hidden": [self.at("gold"), self.at("run")],
            "visible": [self.at("method/file")],
            "targets": {
                "port": self.tcp.local_addr().unwrap().port(),
                "abstract": self.named,
                "socket": self.at("socket"),
                "escape": self.escape,
                "victims": [self.at("method/file")],
                "directories": self.directories(),
                "files": [self.at("gold/file"), self.at("run/file"), self.at("method/file"), "/etc/hostname"],
            },
        });
        let more = more.as_object().cloned().unwrap_or_default();
        options.as_object_mut().unwrap().extend(more);
        options
    }

    /// Nothing got out.
    fn assert_untouched(&self, case: &str) {
        assert!(self.tcp.accept().is_err(), "a connection came: {case}");
        assert!(self.path.accept().is_err(), "a connection came: {case}");
        for directory in self.directories() {
            let file = Path::new(&directory).join(&self.escape);
            assert!(!file.exists(), "{} exists: {case}", file.display());
        }
        for name in ["gold", "run", "method"] {
            let text = fs::read_to_string(self.at(&format!("{name}/file"))).unwrap();
            assert_eq!(text, "answers", "{case}");
        }
        assert_eq!(self.state_of_victim(), (0o666, true), "{case}");
    }

    /// Makes a file the worker's, where it has the user of its supervisor.
    fn give_victim_to(&self, user: User) {
        if user == User::Nobody {
            let nobody = Some(65_534);
            std::os::unix::fs::chown(self.at("method/file"), nobody, nobody).unwrap();
        }
    }

    /// Who may do what with a file of the worker's user, and whether its time is of now.
    fn state_of_victim(&self) -> (u32, bool) {
        let found = fs::metadata(self.at("method/file")).unwrap();
        (found.permissions().mode() & 0o7777, found.mtime() > 1)
    }
}

fn open(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs one worker; gives back its line and what it told.
fn one(user: User, rung: Rung, worker: &str, options: &Value) -> (Value, Value) {
    let (lines, survivors, logs) = drive_with(user, rung, 20_000, 0, &[worker], options);
    assert_eq!(survivors, 0, "{rung} as {user:?}: {worker}");
    let told = logs[0]
        .lines()
        .find_map(|line| serde_json::from_str(line).ok())
        .unwrap_or(Value::Null);
    (lines[0].clone(), told)
}

fn guard<'a>(line: &'a Value, name: &str) -> &'a Value {
    &line["isolation"]["guards"][name]
}

fn everywhere(check: impl Fn(User, Rung)) {
    for user in User::all() {
        for rung in rungs(user) {
            check(user, rung);
        }
    }
}

fn is_root(user: User) -> bool {
    user == User::Own && nix::unistd::geteuid().is_root()
}

fn rogue() {
    everywhere(|user, rung| {
        let targets = Targets::new();
        let options = targets.options(&json!({ "cores": [0] }));
        let (line, told) = one(user, rung, "rogue", &options);
        let case = format!("{rung} as {user:?}: {line}\n{told:#}");
        let failed = |name: &str| assert!(told[name].is_string(), "{name}: {case}");
        let worked = |name: &str| assert_eq!(told[name], true, "{name}: {case}");
        assert_eq!(line["outcome"], "completed", "{case}");
        for name in ["network", "file_system", "system_calls", "cpu_set"] {
            assert_eq!(guard(&line, name)["state"], "enforced", "{name}: {case}");
        }
        for name in ["tcp", "udp", "abstract_socket", "family_38", "family_40"] {
            failed(name);
        }
        // A room has a loopback where it has a network of its own.
        if guard(&line, "network")["by"] == "network namespace" {
            worked("own_loopback");
        } else {
            failed("own_loopback");
        }
        failed(&format!("read {}", targets.at("gold/file")));
        failed(&format!("read {}", targets.at("run/file")));
        worked(&format!("read {}", targets.at("method/file")));
        worked("read /etc/hostname");
        for file in ["gold/file", "run/file", "method/file"] {
            failed(&format!("change {}", targets.at(file)));
        }
        for name in ["scratch", "null", "stdout_by_name"] {
            worked(name);
        }
        for name in [
            "user_namespace",
            "keys",
            "io_uring",
            "bpf",
            "clone_namespace",
            "trace_supervisor",
            "memory_of_supervisor",
        ] {
            failed(name);
        }
        // Who binds itself to a core is told that it worked, and stays where it is.
        worked("other_core");
        for name in ["taskset", "python_affinity"] {
            if told[name] == NOT_INSTALLED {
                println!("skipped: {name}: {NOT_INSTALLED}");
            } else {
                worked(name);
            }
        }
        assert_eq!(told["cores"], json!(["0"]), "{case}");
        let own_namespace = guard(&line, "file_system")["by"] == "mount namespace";
        assert_eq!(own_namespace, rung.has_pid_namespace(), "{case}");
        // Private where there is a view of its own, and shut otherwise, as everybody on the host would see it.
        for usual in ["/tmp", "/var/tmp", "/dev/shm"] {
            if own_namespace && Path::new(usual).is_dir() {
                worked(&format!("write {usual}"));
            } else if Path::new(usual).is_dir() {
                failed(&format!("write {usual}"));
            }
        }
        if own_namespace {
            failed("path_socket");
            failed("signal_supervisor");
        } else {
            // Connecting is not an access to a file for landlock. The test takes the connection from the queue.
            let _ = targets.path.accept();
        }
        if is_root(user) {
            let own = told["user"].as_u64().unwrap();
            assert!((61_184..65_520).contains(&own), "{case}");
            assert_eq!(told["groups"], json!([]), "{case}");
            assert_eq!(guard(&line, "user")["state"], "enforced", "{case}");
            failed("signal_supervisor");
        } else {
            assert_eq!(guard(&line, "user")["state"], "unavailable", "{case}");
        }
        targets.assert_untouched(&case);
    });
}

/// Where landlock is all there is, and the worker has the user of its supervisor, it may still not change what is that
/// user's; and where even the filter is missing, nobody says that it may not.
fn attributes() {
    everywhere(|user, rung| {
        let run = |mask: Value| {
            let targets = Targets::new();
            targets.give_victim_to(user);
            let options = targets.options(&json!({ "mask": mask }));
            let (line, told) = one(user, rung, "rogue", &options);
            let _ = targets.path.accept();
            let case = format!("{rung} as {user:?}, without {mask}: {line}\n{told:#}");
            assert_eq!(line["outcome"], "completed", "{case}");
            assert_eq!(guard(&line, "user")["state"], "unavailable", "{case}");
            (line, targets, case)
        };
        let (line, targets, case) = run(json!(["mount namespace", "own user"]));
        assert_eq!(guard(&line, "file_system")["by"], "landlock", "{case}");
        targets.assert_untouched(&case);

        let (line, targets, case) = run(json!(["mount namespace", "own user", "seccomp"]));
        let file_system = guard(&line, "file_system");
        assert_eq!(file_system["state"], "unavailable", "{case}");
        let reason = file_system["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("landlock keeps what files hold"),
            "{case}"
        );
        // The truth, not only the words.
        assert_eq!(targets.state_of_victim(), (0o604, false), "{case}");
    });
}

/// The rules of landlock are then about TCP and nothing else.
fn network_alone() {
    everywhere(|user, rung| {
        let masked = ["mount namespace", "network namespace"];
        let options = json!({ "mask": masked, "no_files": true });
        let (line, _) = one(user, rung, "good", &options);
        let case = format!("{rung} as {user:?}: {line}");
        assert_eq!(line["outcome"], "completed", "{case}");
        assert_eq!(guard(&line, "file_system")["state"], "off", "{case}");
        assert_eq!(guard(&line, "network")["state"], "enforced", "{case}");
    });
}

fn masked() {
    everywhere(|user, rung| {
        let run = |mask: Value| {
            let targets = Targets::new();
            let options =
                targets.options(&json!({ "mask": mask, "memory": 256 << 20, "cores": [0] }));
            let (line, told) = one(user, rung, "rogue", &options);
            let _ = targets.path.accept();
            let case = format!("{rung} as {user:?}, without {mask}: {line}\n{told:#}");
            assert_eq!(line["outcome"], "completed", "{case}");
            assert_eq!(line["isolation"]["containment"], rung.name(), "{case}");
            (line, told, targets, case)
        };
        let (line, told, targets, case) = run(json!(["mount namespace", "network namespace"]));
        assert_eq!(guard(&line, "file_system")["by"], "landlock", "{case}");
        let polled = guard(&line, "disk")["by"].as_str().unwrap();
        assert!(polled.starts_with("polling"), "{case}");
        let by = guard(&line, "network")["by"].as_str().unwrap();
        assert!(by.starts_with("seccomp"), "{case}");
        assert!(told["tcp"].is_string(), "{case}");
        assert!(
            told[format!("read {}", targets.at("gold/file"))].is_string(),
            "{case}"
        );
        targets.assert_untouched(&case);

        for other in [json!([]), json!(["mount namespace"])] {
            let mut mask = vec![json!("network namespace"), json!("seccomp")];
            mask.extend(other.as_array().unwrap().clone());
            let (line, told, targets, case) = run(json!(mask));
            assert_eq!(guard(&line, "network")["state"], "unavailable", "{case}");
            let reason = guard(&line, "network")["reason"].as_str().unwrap();
            if reason.ends_with("landlock refuses TCP and nothing else") {
                assert!(told["tcp"].is_string(), "{case}");
            } else {
                println!("skipped: landlock of this kernel knows no TCP");
            }
            targets.assert_untouched(&case);
        }

        let (line, told, targets, case) = run(json!([
            "mount namespace",
            "network namespace",
            "landlock",
            "seccomp",
            "own user",
            "cgroup2 memory",
            "cgroup1 memory",
            "cgroup2 pids",
            "cgroup1 pids",
        ]));
        for name in [
            "file_system",
            "network",
            "system_calls",
            "cpu_set",
            "user",
            "disk",
        ] {
            let guard = guard(&line, name);
            assert_eq!(guard["state"], "unavailable", "{name}: {case}");
            assert!(
                !guard["reason"].as_str().unwrap().is_empty(),
                "{name}: {case}"
            );
        }
        assert_eq!(
            guard(&line, "memory")["by"],
            "RLIMIT_AS, per process",
            "{case}"
        );
        let nested = line["isolation"]["user_namespace"] == true;
        let processes = if nested { "enforced" } else { "unavailable" };
        assert_eq!(guard(&line, "process_count")["state"], processes, "{case}");
        // The truth, not only the words: without guards the attacks work.
        assert_eq!(told["tcp"], true, "{case}");
        assert_eq!(
            told[format!("read {}", targets.at("gold/file"))],
            true,
            "{case}"
        );
        for directory in targets.directories() {
            let _ = fs::remove_file(Path::new(&directory).join(&targets.escape));
        }
    });
}

fn memory() {
    let options = json!({ "memory": 64 << 20 });
    everywhere(|user, rung| {
        let (line, _) = one(user, rung, "hog", &options);
        let case = format!("{rung} as {user:?}: {line}");
        let by = guard(&line, "memory")["by"].as_str().unwrap().to_owned();
        if by.starts_with("cgroup") {
            assert_eq!(line["outcome"], "out_of_memory", "{case}");
            assert_eq!(line["facts"]["memory_kills"], 1, "{case}");
            assert_eq!(line["status"]["signal"], 9, "{case}");
            let peak = line["peak_memory_bytes"].as_u64().unwrap();
            assert!((32 << 20..=64 << 20).contains(&peak), "{case}");
        } else {
            assert_eq!(by, "RLIMIT_AS, per process", "{case}");
            // Nobody counted, so nobody knows.
            assert_eq!(line["outcome"], "signal(6)", "{case}");
            assert_eq!(line["facts"]["memory_kills"], Value::Null, "{case}");
            assert_eq!(line["peak_memory_bytes"], Value::Null, "{case}");
        }
        // The next room does not inherit the count, and being killed is not having used too much.
        let (line, _) = one(user, rung, "kill-self", &options);
        assert_eq!(line["outcome"], "signal(9)", "{rung} as {user:?}: {line}");
    });
}

fn processes() {
    let options = json!({ "processes": 20 });
    everywhere(|user, rung| {
        let (line, told) = one(user, rung, "breeder", &options);
        let case = format!("{rung} as {user:?}: {line} {told}");
        if guard(&line, "process_count")["state"] != "enforced" {
            assert_eq!(told["children"], 200, "{case}");
            return;
        }
        // The worker itself is one.
        assert_eq!(told["children"], 19, "{case}");
        let outcome = line["outcome"].as_str().unwrap();
        if line["facts"]["refused_processes"].is_number() {
            assert!(outcome.starts_with("resource_limit(processes"), "{case}");
        } else {
            assert_eq!(outcome, "exit(1)", "{case}");
        }
    });
}

fn disk() {
    let limit = 2_u64 << 20;
    let options = json!({ "scratch": limit });
    everywhere(|user, rung| {
        let (line, told) = one(user, rung, "fill-many", &options);
        let case = format!("{rung} as {user:?}: {line} {told}");
        let sized = guard(&line, "disk")["by"] == "tmpfs of a size";
        if sized {
            let written = told["written"].as_u64().unwrap();
            assert!((limit / 2..=limit).contains(&written), "{case}");
            assert!(
                told["error"].as_str().unwrap().contains("No space"),
                "{case}"
            );
            // A correct worker that filled its disk is a correct worker, and the fact stands beside it.
            assert_eq!(line["facts"]["scratch_full"], true, "{case}");
            let (line, _) = one(user, rung, "fill-and-fail", &options);
            assert_eq!(line["outcome"], "exit(1)", "{case}");
            assert_eq!(line["facts"]["scratch_full"], true, "{case}");
            let (line, _) = one(user, rung, "look", &options);
            assert_eq!(line["facts"]["scratch_full"], false, "{case}");
        } else {
            assert_eq!(line["facts"]["scratch_full"], Value::Null, "{case}");
        }
        polled(user, rung, limit, sized);
        let (line, _) = one(user, rung, "fill-one", &options);
        let outcome = line["outcome"].as_str().unwrap();
        // The limit of each file is there on every machine.
        let expected = format!("resource_limit(disk: a file of more than {limit} bytes)");
        assert_eq!(outcome, expected, "{rung} as {user:?}: {line}");
    });
}

/// Without a size of its own the directory is watched.
fn polled(user: User, rung: Rung, limit: u64, mask: bool) {
    let masked = if mask {
        json!(["mount namespace"])
    } else {
        json!([])
    };
    let options = json!({ "scratch": limit, "mask": masked });
    for worker in ["fill-slowly", "fill-unlisted"] {
        polled_once(user, rung, limit, &options, worker);
    }
}

fn polled_once(user: User, rung: Rung, limit: u64, options: &Value, worker: &str) {
    let (lines, _, _) = drive_with(user, rung, 20_000, 0, &[worker], options);
    let line = &lines[0];
    let case = format!("{rung} as {user:?}: {worker}: {line}");
    assert_eq!(
        guard(line, "disk")["by"],
        "polling (deleted files that are open are not seen), and RLIMIT_FSIZE for each file",
        "{case}"
    );
    let outcome = line["outcome"].as_str().unwrap();
    let found = outcome
        .strip_prefix("resource_limit(disk: ")
        .and_then(|rest| rest.strip_suffix(" bytes in the scratch directory, seen by polling)"))
        .and_then(|number| number.parse::<u64>().ok())
        .unwrap_or_else(|| panic!("{case}"));
    assert!((limit..=200 * (256 << 10)).contains(&found), "{case}");
}

fn output() {
    let options = json!({ "output": 100_000 });
    for worker in ["flood-err", "flood-progress"] {
        let (line, _) = one(User::Own, Rung::K1, worker, &options);
        assert_eq!(
            line["outcome"], "resource_limit(output: more than 100000 bytes)",
            "{line}"
        );
    }
    let (line, _) = one(User::Own, Rung::K1, "good", &options);
    assert_eq!(line["outcome"], "completed", "{line}");
}

fn unreadable() {
    let root = is_root(User::Own);
    let directory = open_directory();
    let secret = directory.path().join("secret");
    fs::write(&secret, "x").unwrap();
    open(&secret, 0o600);
    let options = json!({ "visible": [secret] });
    for rung in rungs(User::Own) {
        let (line, _) = one(User::Own, rung, "good", &options);
        let outcome = line["outcome"].as_str().unwrap();
        if root {
            assert!(outcome.starts_with("infrastructure("), "{line}");
            assert!(
                outcome.contains("secret: the worker runs as a user of its own"),
                "{line}"
            );
        } else {
            assert_eq!(outcome, "completed", "{line}");
        }
    }
    // A directory that only root may enter does not stand between the worker and what is declared.
    let shut = directory.path().join("shut");
    fs::create_dir(&shut).unwrap();
    fs::write(shut.join("file"), "x").unwrap();
    open(&shut.join("file"), 0o644);
    open(&shut, 0o700);
    let file = shut.join("file").display().to_string();
    let options = json!({ "visible": [file], "targets": { "files": [file] } });
    for rung in rungs(User::Own)
        .into_iter()
        .filter(|r| r.has_pid_namespace())
    {
        let (line, told) = one(User::Own, rung, "rogue", &options);
        assert_eq!(told[format!("read {file}")], true, "{line}\n{told}");
    }
}

fn switched_off() {
    for user in User::all() {
        for rung in rungs(user) {
            let targets = Targets::new();
            let options = targets.options(&json!({ "off": true }));
            let (line, told) = one(user, rung, "rogue", &options);
            let case = format!("{rung} as {user:?}: {line}\n{told:#}");
            for name in [
                "network",
                "file_system",
                "system_calls",
                "user",
                "memory",
                "process_count",
                "disk",
                "output",
                "cpu_set",
            ] {
                assert_eq!(guard(&line, name)["state"], "off", "{name}: {case}");
            }
            assert_eq!(told["tcp"], true, "{case}");
            for directory in targets.directories() {
                let _ = fs::remove_file(Path::new(&directory).join(&targets.escape));
            }
        }
    }
}
