//! Rogues that reach for what is not theirs: what worked is asked of them and looked for outside.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::place::{Place, User, places};
use super::table::{ATTACKING, Case, REACHING};
use super::{bench, check, jobs, method, methods};
use crate::args;
use crate::support::bench::Bench;
use crate::support::bundle::Bundle;
use crate::support::{json, proctor, repository, skip};

/// What rogues reach for, all of it open to every user of this machine.
struct Targets {
    tcp: TcpListener,
    udp: UdpSocket,
    socket: UnixListener,
    socket_name: String,
    /// A directory anybody may write, with the file `keep` in it.
    outside: PathBuf,
    /// The name of the files that must appear nowhere.
    file: String,
}

impl Targets {
    fn new(bench: &Bench) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let outside = bench.path("outside");
        std::fs::create_dir(&outside).expect("a folder can be made");
        std::fs::write(outside.join("keep"), "kept").expect("a file can be made");
        std::fs::set_permissions(&outside, std::fs::Permissions::from_mode(0o777))
            .expect("it is ours");
        let number = bench
            .path("")
            .file_name()
            .map(|name| name.display().to_string())
            .unwrap_or_default();
        let socket_name = format!("proctor-test{number}");
        let name = SocketAddr::from_abstract_name(&socket_name).expect("a name");
        let socket = UnixListener::bind_addr(&name).expect("an abstract socket");
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
        let udp = UdpSocket::bind(tcp.local_addr().expect("an address")).expect("the same port");
        socket.set_nonblocking(true).expect("a socket");
        tcp.set_nonblocking(true).expect("a socket");
        udp.set_nonblocking(true).expect("a socket");
        Self {
            tcp,
            udp,
            socket,
            file: format!("{socket_name}-escape"),
            socket_name,
            outside,
        }
    }

    /// Places to write to.
    fn directories(&self, bench: &Bench) -> Vec<PathBuf> {
        let usual = ["/tmp", "/var/tmp", "/dev/shm", "/etc", "/run", "/"].map(PathBuf::from);
        let own = [
            self.outside.clone(),
            bench.path(""),
            bench.run_dir(),
            repository(),
        ];
        usual
            .into_iter()
            .chain(own)
            .filter(|place| place.is_dir() || *place == bench.run_dir())
            .collect()
    }

    fn arguments(&self, rogue: &str, bench: &Bench) -> Vec<String> {
        // A path in a command is refused, for commands are published; so these come without their first stroke.
        let shown = |paths: Vec<PathBuf>| {
            let text = |path: &PathBuf| path.display().to_string()[1..].to_owned();
            paths.iter().map(text).collect::<Vec<_>>()
        };
        match rogue {
            "caller" => vec![
                self.tcp.local_addr().expect("an address").to_string(),
                self.socket_name.clone(),
            ],
            "vandal" => [vec![self.file.clone()], shown(self.directories(bench))].concat(),
            "planter" => shown(vec![self.outside.clone()]),
            "spy" => {
                let fixtures = repository().join("fixtures");
                shown(vec![
                    fixtures.join("python_pairs"),
                    fixtures.join("python_pairs/pairs.csv"),
                    fixtures.join("retrieval/qrels.csv"),
                    bench.run_dir(),
                    bench.run_dir().join("run.json"),
                    bench.run_dir().join("methods"),
                ])
            }
            _ => Vec::new(),
        }
    }

    /// Nothing got out.
    fn assert_untouched(&self, place: &Place, bench: &Bench) {
        assert!(self.tcp.accept().is_err(), "{place}: a connection came");
        assert!(self.udp.recv(&mut [0]).is_err(), "{place}: a packet came");
        assert!(
            self.socket.accept().is_err(),
            "{place}: an abstract connection came"
        );
        for directory in self.directories(bench) {
            for name in [
                self.file.clone(),
                Path::new(&self.file)
                    .with_extension("link")
                    .display()
                    .to_string(),
            ] {
                let file = directory.join(name);
                assert!(
                    file.symlink_metadata().is_err(),
                    "{place}: {} is there",
                    file.display()
                );
            }
        }
        let kept = std::fs::read_to_string(self.outside.join("keep")).expect("it is there");
        assert_eq!(kept, "kept", "{place}");
        assert_eq!(
            std::fs::read_dir(&self.outside)
                .expect("it is there")
                .count(),
            1,
            "{place}"
        );
    }
}

#[test]
fn whoever_reaches_out_gets_nothing() {
    for place in places("rogues::attempts::whoever_reaches_out_gets_nothing") {
        let bench = bench(60.0, &json!({}));
        let targets = Targets::new(&bench);
        let all: Vec<Value> = REACHING
            .iter()
            .map(|case| method(&bench, case, &targets.arguments(case.rogue, &bench)))
            .collect();
        place.run(&bench, &all, &["--jobs", jobs()]).exits(0);
        targets.assert_untouched(place, &bench);
        let bundle = bench.bundle();
        for case in REACHING {
            check(place, &bundle, case);
            check_told(place, &bench, &bundle, case.rogue);
        }
    }
}

/// What rogues say of their attempts.
fn check_told(place: &Place, bench: &Bench, bundle: &Bundle, rogue: &str) {
    let log = std::fs::read_to_string(bench.stderr_log(rogue)).expect("the log is kept");
    let about = format!("{place}: {rogue}:\n{log}");
    let execution = bundle.execution(rogue);
    let guards = &execution["isolation"]["guards"];
    for guard in [
        "network",
        "file_system",
        "system_calls",
        "ptrace",
        "cpu_set",
    ] {
        assert_eq!(guards[guard]["state"], "enforced", "{guard}: {about}");
    }
    let private = guards["file_system"]["by"] == "mount namespace";
    assert_eq!(private, place.walled(), "{about}");
    // A view of its own has these three, private, empty, and gone with the room.
    let own = |what: &str| {
        let place = what.split_whitespace().last().unwrap_or_default();
        let private_places = ["/tmp", "/var/tmp", "/dev/shm"];
        private && rogue == "vandal" && private_places.iter().any(|own| place.starts_with(own))
    };
    // A network of its own has a loopback of its own, where packets go that nobody waits for.
    let own_network = guards["network"]["by"] == "network namespace";
    let own_loopback = |what: &str| own_network && what.starts_with("udp to 127.0.0.1:");
    let worked: Vec<&str> = log
        .lines()
        .filter_map(|line| line.strip_prefix("worked: "))
        .filter(|what| !own(what) && !own_loopback(what))
        .collect();
    assert!(worked.is_empty(), "{about}");
    let refused = log
        .lines()
        .filter(|line| line.starts_with("refused: "))
        .count();
    assert!(
        refused > 0 || matches!(rogue, "good" | "planter"),
        "{about}"
    );
    if rogue == "caller" && guards["network"]["by"] == "network namespace" {
        let interfaces: Vec<&str> = log
            .lines()
            .filter_map(|line| line.strip_prefix("interface: "))
            .collect();
        assert_eq!(interfaces, ["lo"], "{about}");
    }
    if rogue == "grabber" {
        let cores = log
            .lines()
            .find_map(|line| line.strip_prefix("cores: "))
            .expect("its cores");
        let given = execution["cores"].as_u64().expect("a count");
        assert_eq!(count(cores), given, "{about}");
    }
}

/// How many numbers a list like `0-1,4` has.
fn count(list: &str) -> u64 {
    let number = |text: &str| text.parse::<u64>().expect("a number");
    list.split(',')
        .map(|part| match part.split_once('-') {
            Some((from, to)) => number(to) + 1 - number(from),
            None => 1,
        })
        .sum()
}

#[test]
fn whoever_attacks_its_watchers_never_seems_to_succeed() {
    let test = "rogues::attempts::whoever_attacks_its_watchers_never_seems_to_succeed";
    for place in places(test) {
        if !place.exposed() {
            let bench = bench(60.0, &json!({}));
            place.run(&bench, &methods(&bench, ATTACKING), &[]).exits(0);
            let bundle = bench.bundle();
            for case in ATTACKING {
                check(place, &bundle, case);
            }
            continue;
        }
        // Landlock keeps signals within the room since its sixth version; without it nothing does.
        for refused in [&[][..], &["landlock"]] {
            let place = Place {
                refused,
                ..place.clone()
            };
            for case in ATTACKING.iter().filter(|case| case.rogue != "good") {
                if place.user == User::Own && ["pack-killer", "all-killer"].contains(&case.rogue) {
                    skip(
                        test,
                        &format!("{place}: {} would end more than these tests", case.rogue),
                    );
                } else {
                    attack(&place, case);
                }
            }
        }
    }
}

/// One attack where it may hit: it is refused, or it is a loss that shows.
fn attack(place: &Place, case: &Case) {
    let bench = bench(3.0, &json!({}));
    let done = place.run(&bench, &methods(&bench, [case]), &[]);
    if done.code.is_none() {
        // It took the supervisor with it. What is left says so, and holds no score.
        proctor::proctor(args!["status", bench.run_dir()])
            .exits(0)
            .says("its supervisor is gone");
        proctor::proctor(args!["merge", bench.run_dir()])
            .exits(0)
            .says("INCOMPLETE");
    }
    let bundle = bench.bundle();
    let name = case.name();
    let log = std::fs::read_to_string(bench.stderr_log(&name)).expect("the log is kept");
    if done.code == Some(0) {
        assert!(
            place.refused.is_empty(),
            "{place}: {name}: nothing kept it from its attack"
        );
        assert!(!log.contains("worked: "), "{place}: {name}: {log}");
        assert!(
            log.contains("refused: ") || case.rogue == "all-killer",
            "{place}: {name}: {log}"
        );
        assert_eq!(bundle.outcome(&name), "completed", "{place}: {name}");
        return;
    }
    if done.code.is_none() {
        assert!(bundle.scored(&name).is_empty(), "{place}: {name}");
        assert!(bundle.score_files(&name).is_empty(), "{place}: {name}");
        let index = json(&bundle.dir.join("bundle.json"));
        assert_eq!(index["complete"], false, "{place}: {name}");
    } else {
        // A stopped guardian cannot tell of a good end, and without one the last dataset does not count.
        assert_ne!(bundle.outcome(&name), "completed", "{place}: {name}");
        assert!(bundle.scored(&name).len() < 3, "{place}: {name}");
    }
}
