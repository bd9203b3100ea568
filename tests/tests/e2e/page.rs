//! The live page of a real daemon, looked at with a real browser, and asked for by hand where a browser would hide what
//! is wrong.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::args;
use crate::support::bench::Bench;
use crate::support::proctor::command;
use crate::support::{repository, rogue, skip, wait_for};

const TOKEN: &str = "a-token-of-the-browser-test";
/// The whole visit of the browser takes less.
const VISIT: Duration = Duration::from_secs(150);

/// A daemon on a port of its own.
struct Daemon {
    bench: Bench,
    address: SocketAddr,
    child: Option<Child>,
}

impl Daemon {
    /// A daemon with nothing to do.
    fn start(bench: Bench) -> Self {
        let token = bench.path("token");
        std::fs::write(&token, TOKEN).expect("the token can be written");
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600))
            .expect("the token can be hidden");
        let free = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = free.local_addr().expect("it has a number");
        drop(free);
        let mut daemon = Self {
            bench,
            address,
            child: None,
        };
        daemon.begin();
        daemon
    }

    /// Starts it again, where it was.
    fn begin(&mut self) {
        let mut daemon = command(args![
            "daemon",
            "--state",
            self.bench.path("state"),
            "--listen",
            self.address.to_string(),
            "--token-file",
            self.bench.path("token"),
            "--root",
            "/",
        ]);
        let log = std::fs::File::create(self.bench.path("daemon.log")).expect("a log");
        daemon.stdout(Stdio::null()).stderr(log);
        self.child = Some(daemon.spawn().expect("the daemon starts"));
        wait_for("the daemon to answer", || {
            TcpStream::connect(self.address).is_ok()
        });
    }

    /// Ends it without a word, as a loss of power would.
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("the daemon can be killed");
            child.wait().expect("the daemon is gone");
        }
    }

    /// Sends a request by hand; gives the status, the head and the body.
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).expect("the daemon listens");
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("a timeout can be set");
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n",
            self.address,
            body.len()
        );
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        write!(stream, "{head}\r\n{body}").expect("the request can be sent");
        let mut text = Vec::new();
        stream
            .read_to_end(&mut text)
            .expect("the answer can be read");
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Answer {
            status: status.expect("a status"),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    /// Asks with the token.
    fn get(&self, path: &str) -> Answer {
        let bearer = format!("Bearer {TOKEN}");
        self.ask("GET", path, &[("Authorization", bearer.as_str())], "")
    }

    /// Queues a run of these methods under a protocol of the bench; gives its number.
    fn submit(&self, protocol: &str, name: &str, methods: &[Value]) -> u64 {
        let file = self.bench.path(name);
        std::fs::write(&file, json!({ "algorithms": methods }).to_string()).expect("a file");
        let wanted = json!({ "protocol": self.bench.path(protocol), "methods": file });
        let bearer = format!("Bearer {TOKEN}");
        let headers = [
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
        ];
        let answer = self.ask("POST", "/v1/runs", &headers, &wanted.to_string());
        assert_eq!(answer.status, 201, "{}", answer.body);
        let summary: Value = serde_json::from_str(&answer.body).expect("JSON");
        summary["id"].as_u64().expect("a number")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

/// A bench with a protocol of a short budget and one of a long budget.
fn bench(short: f64) -> Bench {
    let bench = Bench::fixtures(600.0);
    std::fs::rename(bench.protocol(), bench.path("long.json")).expect("a protocol");
    let mut manifest = crate::support::json(&bench.path("manifest.json"));
    manifest["execution_policy"]["max_method_seconds"] = json!(short);
    let file = bench.path("short-manifest.json");
    crate::support::write_json(&file, &manifest);
    crate::support::proctor::freeze(&file, &bench.path("short.json"));
    bench
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
    let mut daemon = Daemon::start(bench(8.0));
    let target = crate::support::programs();
    let pictures = target.parent().expect("target").join("browser-pictures");
    std::fs::create_dir_all(&pictures).expect("a folder for pictures");
    let mut visit = Command::new("node");
    visit
        .arg(repository().join("tests/browser/live.mjs"))
        .args([&modules, &chromium])
        .arg(format!("http://{}", daemon.address))
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
                let holds = json!({ "name": "holds the cores", "command": [rogue("sleeper")] });
                let first = daemon.submit("long.json", "first.json", &[holds]);
                let methods = [json!("Levenshtein"), hanging(), json!("GST")];
                let second = daemon.submit("short.json", "second.json", &methods);
                format!("{first} {second}")
            }
            "ask kill" => {
                daemon.kill();
                "done".to_owned()
            }
            "ask start" => {
                daemon.begin();
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
    let log = std::fs::read_to_string(daemon.bench.path("daemon.log")).unwrap_or_default();
    assert!(
        done && status.success(),
        "see the pictures in {}; the daemon said:\n{log}",
        pictures.display()
    );
}

#[test]
fn pages_are_for_those_who_know_the_token_and_change_nothing_without_it() {
    let daemon = Daemon::start(bench(4.0));
    let browser = ("Accept", "text/html,*/*");
    let answer = daemon.ask("GET", "/", &[browser], "");
    assert_eq!(answer.status, 303);
    assert!(answer.head.contains("location: /login"), "{}", answer.head);
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let login = |token: &str| daemon.ask("POST", "/login", &[form], &format!("token={token}"));
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
    let page = daemon.ask("GET", "/", &[browser, cookie], "");
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

    let holds = json!({ "name": "holds", "command": [rogue("sleeper")] });
    let id = daemon.submit("long.json", "methods.json", &[holds]);
    let cancel = format!("/runs/{id}/cancel");
    let send = |headers: &[(&str, &str)], body: &str| daemon.ask("POST", &cancel, headers, body);
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
    let state = |id: u64| -> Value {
        let body = daemon.get(&format!("/v1/runs/{id}")).body;
        serde_json::from_str(&body).expect("JSON")
    };
    assert_eq!(state(id)["cancelled"], json!(false));
    let unknown = send(&[form], &format!("{with_token}&method=x"));
    assert_eq!(unknown.status, 404);
    let answer = send(&[form], &with_token);
    assert_eq!(answer.status, 303, "{}", answer.body);
    assert_eq!(state(id)["cancelled"], json!(true));
    wait_for("the run to end", || state(id)["state"] == json!("ended"));
    let late = send(&[form], &with_token);
    assert_eq!(late.status, 409);
    assert!(late.body.contains("Nothing was cancelled"), "{}", late.body);
}

#[test]
fn addresses_that_lead_nowhere_are_answered_with_a_page() {
    let daemon = Daemon::start(bench(4.0));
    for path in [
        "/runs/1",
        "/runs/x",
        "/runs/-1",
        "/runs/18446744073709551616",
        "/runs/%3Cscript%3E",
        "/runs/1/cancel",
    ] {
        let answer = daemon.get(path);
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
        let answer = daemon.get(path);
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.head.contains("content-type: text/html"), "{path}");
    }
    let numbers = daemon.get("/metrics");
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
    assert_eq!(daemon.ask("GET", "/metrics", &[], "").status, 401);
    for path in ["/page.css", "/page.svg", "/healthz"] {
        assert_eq!(daemon.ask("GET", path, &[], "").status, 200, "{path}");
    }
}
