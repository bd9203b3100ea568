//! The live page of a real daemon, looked at with a real browser, and asked for by hand where a browser would hide what
//! is wrong.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::daemon::{Answer, Daemon};
use crate::support::{proctor, repository, rogue, skip, write_json};

const TOKEN: &str = "a-token-of-the-browser-test";
/// The whole visit of the browser takes less.
const VISIT: Duration = Duration::from_secs(150);

/// A daemon with a page.
struct Host<'a> {
    daemon: Daemon<'a>,
    address: SocketAddr,
}

impl<'a> Host<'a> {
    fn start(bench: &'a Bench) -> Self {
        let token = bench.path("token");
        std::fs::write(&token, TOKEN).expect("the token can be written");
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600))
            .expect("the token can be hidden");
        let free = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = free.local_addr().expect("it has a number");
        drop(free);
        let listen = address.to_string();
        let token = token.to_str().expect("text");
        let more = ["--listen", &listen, "--token-file", token, "--root", "/"];
        Self {
            daemon: Daemon::start(bench, &more),
            address,
        }
    }

    /// Sends a request by hand, over TCP.
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("a bound");
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n",
            self.address,
            body.len()
        );
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        write!(stream, "{head}\r\n{body}").expect("it listens");
        Answer::read(&mut stream)
    }

    /// Asks with the token.
    fn get(&self, path: &str) -> Answer {
        let bearer = format!("Bearer {TOKEN}");
        self.ask("GET", path, &[("Authorization", bearer.as_str())], "")
    }

    /// Queues a run that keeps the cores for as long as nobody cancels it; gives its number.
    fn hold_the_cores(&self) -> u64 {
        let bench = self.daemon.bench;
        let mut manifest = crate::support::json(&bench.path("manifest.json"));
        manifest["execution_policy"]["max_method_seconds"] = json!(600);
        write_json(&bench.path("long-manifest.json"), &manifest);
        proctor::freeze(&bench.path("long-manifest.json"), &bench.path("long.json"));
        let holds = json!({ "name": "holds the cores", "command": [rogue("sleeper")] });
        let file = bench.path("holds.json");
        write_json(&file, &json!({ "algorithms": [holds] }));
        let wanted = json!({ "protocol": bench.path("long.json"), "methods": file });
        let answer = self.daemon.post("/v1/runs", &wanted.to_string()).is(201);
        answer.json()["id"].as_u64().expect("a number")
    }
}

/// A method that says something harmful on stderr, under a harmful name, and then hangs.
fn hanging() -> Value {
    let words =
        r"printf 'loading\n\033[31mred\033[0m and \342\200\256turned\n' >&2; exec sleep 600";
    json!({ "name": "<script>alert(1)</script>", "command": ["/bin/sh", "-c", words] })
}

/// The folder of playwright-core and a Chromium, as `scripts/browser` finds them.
fn browser() -> Option<(PathBuf, PathBuf)> {
    let found = std::env::var("PROCTOR_BROWSER").ok()?;
    let (modules, chromium) = found.split_once('\n')?;
    Some((modules.into(), chromium.trim().into()))
}

#[test]
fn a_browser_sees_a_method_go_from_queued_to_running_to_timeout() {
    let Some((modules, chromium)) = browser() else {
        return skip(
            "a_browser_sees_a_method_go_from_queued_to_running_to_timeout",
            "PROCTOR_BROWSER is not set, since there is no browser; ./test sets it",
        );
    };
    let bench = Bench::fixtures(8.0);
    let mut host = Host::start(&bench);
    let target = crate::support::programs();
    let pictures = target.parent().expect("target").join("browser-pictures");
    std::fs::create_dir_all(&pictures).expect("a folder for pictures");
    let mut visit = Command::new("node");
    visit
        .arg(repository().join("tests/browser/live.mjs"))
        .args([&modules, &chromium])
        .arg(format!("http://{}", host.address))
        .arg(TOKEN)
        .arg(&pictures)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut visit = visit.spawn().expect("node starts");
    let mut answers = visit.stdin.take().expect("its stdin");
    let lines = BufReader::new(visit.stdout.take().expect("its stdout"));
    let (speaker, wished) = mpsc::channel();
    std::thread::spawn(move || {
        for line in lines.lines().map_while(Result::ok) {
            if speaker.send(line).is_err() {
                break;
            }
        }
    });
    let mut done = false;
    while let Ok(line) = wished.recv_timeout(VISIT) {
        let answer = match line.as_str() {
            "ask runs" => {
                let first = host.hold_the_cores();
                let methods = [json!("Levenshtein"), hanging(), json!("GST")];
                let second = host.daemon.submit(&methods, &[]);
                format!("{first} {second}")
            }
            "ask kill" => {
                host.daemon.kill();
                "done".to_owned()
            }
            "ask start" => {
                host.daemon.begin();
                "done".to_owned()
            }
            "done" => {
                done = true;
                continue;
            }
            other => panic!("the browser says {other}"),
        };
        writeln!(answers, "{answer}").expect("the browser listens");
    }
    drop(answers);
    if !done {
        let _ = visit.kill();
    }
    let status = visit.wait().expect("node ends");
    assert!(
        done && status.success(),
        "see the pictures in {}",
        pictures.display()
    );
}

#[test]
fn pages_are_for_those_who_know_the_token_and_change_nothing_without_it() {
    let bench = Bench::fixtures(4.0);
    let host = Host::start(&bench);
    let browser = ("Accept", "text/html,*/*");
    let answer = host.ask("GET", "/", &[browser], "");
    assert_eq!(answer.status, 303);
    assert!(answer.head.contains("location: /login"), "{}", answer.head);
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let login = |token: &str| host.ask("POST", "/login", &[form], &format!("token={token}"));
    let wrong = login("wrong");
    assert_eq!(wrong.status, 401);
    assert!(wrong.body.contains("role=\"alert\""), "{}", wrong.body);
    let right = login(TOKEN);
    assert_eq!(right.status, 303);
    let cookie = right
        .head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookie.expect("a cookie");
    assert!(
        cookie.contains("httponly") && cookie.contains("samesite=strict"),
        "{cookie}"
    );
    let cookie = ("Cookie", cookie.split(';').next().expect("a first part"));
    let page = host.ask("GET", "/", &[browser, cookie], "");
    assert_eq!(page.status, 200);
    let policy = page
        .head
        .lines()
        .find(|line| line.starts_with("content-security-policy: "));
    let policy = policy.expect("a policy");
    assert!(
        policy.contains("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    for header in ["x-content-type-options: nosniff", "cache-control: no-store"] {
        assert!(page.head.contains(header), "{}", page.head);
    }

    let id = host.hold_the_cores();
    let cancel = format!("/runs/{id}/cancel");
    let send = |headers: &[(&str, &str)], body: &str| host.ask("POST", &cancel, headers, body);
    let with_token = format!("token={TOKEN}");
    // A cookie is for looking; a page of another origin sends nothing that counts, whatever it knows.
    assert_eq!(send(&[form, cookie], "token=").status, 403);
    assert_eq!(send(&[form, cookie], "token=wrong").status, 403);
    for (name, value) in [
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ] {
        let answer = send(&[form, cookie, (name, value)], &with_token);
        assert_eq!(answer.status, 403, "{name}: {value}");
    }
    let state = |id: u64| host.get(&format!("/v1/runs/{id}")).is(200).json();
    assert_eq!(state(id)["cancelled"], json!(false));
    let unknown = send(&[form], &format!("{with_token}&method=x"));
    assert_eq!(unknown.status, 404);
    let answer = send(&[form], &with_token);
    assert_eq!(answer.status, 303, "{}", answer.body);
    assert_eq!(state(id)["cancelled"], json!(true));
    host.daemon.wait_state(id, "ended");
    let late = send(&[form], &with_token);
    assert_eq!(late.status, 409);
    assert!(late.body.contains("Nothing was cancelled"), "{}", late.body);
}

#[test]
fn addresses_that_lead_nowhere_are_answered_with_a_page() {
    let bench = Bench::fixtures(4.0);
    let host = Host::start(&bench);
    for path in [
        "/runs/1",
        "/runs/x",
        "/runs/-1",
        "/runs/18446744073709551616",
        "/runs/%3Cscript%3E",
        "/runs/1/cancel",
    ] {
        let answer = host.get(path);
        assert_eq!(answer.status, 404, "{path}");
        assert!(
            answer.body.contains("This cannot be shown"),
            "{path}: {}",
            answer.body
        );
        assert!(!answer.body.contains("<script>"), "{path}");
    }
    for path in [
        "/?still",
        "/?part=x&before=y",
        "/?still=%FF&part=1&part=2",
        "/runs",
        "/runs?before=0",
        "/login",
    ] {
        let answer = host.get(path);
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.head.contains("content-type: text/html"), "{path}");
    }
    let numbers = host.get("/metrics");
    assert!(
        numbers
            .head
            .contains("content-type: text/plain; version=0.0.4")
    );
    assert!(
        numbers.body.contains("proctor_runs{state=\"queued\"} 0"),
        "{}",
        numbers.body
    );
    assert_eq!(host.ask("GET", "/metrics", &[], "").status, 401);
    for path in ["/page.css", "/page.svg", "/healthz"] {
        assert_eq!(host.ask("GET", path, &[], "").status, 200, "{path}");
    }
}

#[test]
fn a_browser_behind_the_unix_socket_is_no_way_in_for_pages_of_others() {
    let bench = Bench::fixtures(4.0);
    let host = Host::start(&bench);
    let id = host.hold_the_cores();
    // As through `ssh -L 8080:SOCKET`: there, nobody is asked for a token.
    let send = |name: &str, origin: &str, path: &str, kind: &str, body: &str| {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {name}\r\nOrigin: {origin}\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        host.daemon.raw(head.as_bytes())
    };
    let form = "application/x-www-form-urlencoded";
    let cancel = format!("/runs/{id}/cancel");
    let api = format!("/v1/runs/{id}/cancel");
    // A form of another page; a page whose name was made to lead here; a request that needs no leave of the browser.
    let foreign = send("localhost:8080", "http://evil.example", &cancel, form, "");
    assert_eq!(foreign.status, 403, "{foreign:?}");
    let (evil, origin) = ("evil.example:8080", "http://evil.example:8080");
    assert_eq!(send(evil, origin, &cancel, form, "").status, 403);
    assert_eq!(
        send(evil, origin, &api, "application/json", "{}").status,
        403
    );
    assert_eq!(
        send("localhost:8080", origin, &api, "text/plain", "{}").status,
        415
    );
    assert_eq!(host.daemon.show(id)["cancelled"], json!(false));
    // Our own page may.
    let own = send("localhost:8080", "http://localhost:8080", &cancel, form, "");
    assert_eq!(own.status, 303, "{own:?}");
    host.daemon.wait_state(id, "ended");
}
