//! Whatever is sent to the daemon: a clear answer, nothing lost, no panic.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::daemon::{Answer, Daemon};
use crate::support::{wait_for, write_json};

const NONE: &[u32] = &[];

/// Demands that a daemon lives and that nothing in it broke.
fn is_well(daemon: &Daemon<'_>) {
    daemon.get("/healthz").is(200);
    let log = daemon.log();
    assert!(!log.contains("panicked") && !log.contains("bug"), "{log}");
}

#[test]
fn requests_that_make_no_sense_are_answered_and_change_nothing() {
    let bench = Bench::fixtures(3.0);
    let daemon = Daemon::start(&bench, &["--max-requests", "100000"]);
    let id = daemon.submit(&[bench.rogue("good", NONE)], &[]);
    daemon.wait_state(id, "ended");

    for path in [
        "/v1/runs/0",
        "/v1/runs/2",
        "/v1/runs/-1",
        "/v1/runs/+1",
        "/v1/runs/1e0",
        "/v1/runs/%00",
        "/v1/runs/%FF",
        "/v1/runs/..%2F1",
        "/v1/runs/99999999999999999999999",
        "/v1/runs/1/methods/nobody/log",
        "/v1/runs/1/methods/%2E%2E/log",
        "/v1/runs/1/methods/good/log?attempt=..%2F..%2Frun.json",
        "/v1/runs/2/events",
        "/v1/runs/1/bundles/0001/..%2F..%2Frun.json",
        "/v1/runs/1/bundles/0001/%2Fetc%2Fpasswd",
        "/v1/runs/1/bundles/..%2F0001/bundle.json",
        "/v1/runs/1/bundles/0001/evidence",
        "/v1/runs/1/bundles/0002/bundle.json",
        "/v1/nothing",
        "/v2/queue",
    ] {
        daemon.get(path).is(404);
    }
    for path in [
        "/v1/runs?limit=0",
        "/v1/runs?limit=201",
        "/v1/runs?limit=x",
        "/v1/runs?state=dead",
        "/v1/runs?before=-1",
        "/v1/runs?nonsense=1",
        "/v1/runs/1/methods/good/log?from=-1",
    ] {
        daemon.get(path).is(400);
    }
    let bodies = [
        "",
        "{",
        "[]",
        "null",
        "\u{0}",
        "{\"protocol\": 1, \"methods\": 2}",
        "{\"protocol\": \"/x\"}",
        "{\"protocol\": \"/x\", \"methods\": \"/y\", \"surprise\": 1}",
        "{\"protocol\": \"/x\", \"methods\": \"/y\", \"priority\": 1e99}",
        "{\"protocol\": \"/x\", \"methods\": \"/y\", \"jobs\": -1}",
        "{\"protocol\": \"/x\", \"methods\": \"/y\", \"limits\": []}",
    ];
    for body in bodies {
        daemon.post("/v1/runs", body).is(400);
    }
    daemon.post("/v1/runs", &"[".repeat(60_000)).is(400);
    daemon.post("/v1/runs/1/cancel", "[1]").is(400);
    daemon.post("/v1/runs/9/cancel", "{}").is(404);
    daemon.post("/v1/runs/1/cancel", "{}").is(409);
    let nobody = daemon.post("/v1/runs/1/cancel", "{\"methods\": [\"nobody\"]}");
    nobody.is(404);
    daemon.post("/v1/queue", "{}").is(405);
    daemon
        .raw(b"DELETE /v1/runs/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .is(405);
    let text = b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}";
    daemon.raw(text).is(415);
    is_well(&daemon);
    assert_eq!(daemon.get("/v1/queue").json()["ended"], 1);
}

#[test]
fn what_is_no_http_or_too_much_of_it_is_refused() {
    let bench = Bench::fixtures(3.0);
    let daemon = Daemon::start(&bench, &[]);
    for garbage in [
        &b"\r\n\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
        b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let mut stream = daemon.connect();
        let _ = stream.write_all(garbage);
        let _ = stream.shutdown(Shutdown::Write);
        let answer = Answer::read(&mut stream);
        assert!(
            answer.status == 0 || (400..500).contains(&answer.status),
            "{garbage:?}: {answer:?}"
        );
    }
    let long = format!(
        "GET /healthz HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n",
        "y".repeat(100_000)
    );
    assert_eq!(daemon.raw(long.as_bytes()).status, 431);
    let head = "POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
    let announced = format!("{head}Content-Length: 99999999999\r\n\r\n{{");
    daemon.raw(announced.as_bytes()).is(413);
    let mut chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
    for _ in 0..20 {
        chunked.extend_from_slice(b"2000\r\n");
        chunked.extend_from_slice(&[b' '; 0x2000]);
        chunked.extend_from_slice(b"\r\n");
    }
    daemon.raw(&chunked).is(413);
    is_well(&daemon);
}

#[test]
fn slow_requests_are_given_up_while_others_are_answered() {
    let bench = Bench::fixtures(3.0);
    let daemon = Daemon::start(&bench, &[]);
    let began = Instant::now();
    let mut silent = daemon.connect();
    let mut head = daemon.connect();
    head.write_all(b"GET /healthz HTTP/1.1\r\nHo")
        .expect("it listens");
    let mut body = daemon.connect();
    body.write_all(b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{\"prot")
        .expect("it listens");
    // A page that is never read: more than the buffers hold is asked for.
    let mut deaf = daemon.connect();
    for _ in 0..100 {
        let _ = deaf.write_all(b"GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    for _ in 0..20 {
        daemon.get("/healthz").is(200);
    }
    let answer = Answer::read(&mut body);
    assert_eq!(answer.status, 408, "{answer:?}");
    assert!(answer.body.contains("too_slow"), "{answer:?}");
    for stream in [&mut silent, &mut head] {
        let mut rest = Vec::new();
        stream
            .read_to_end(&mut rest)
            .expect("it is closed, not left");
    }
    assert!(
        began.elapsed() < Duration::from_secs(35),
        "{:?}",
        began.elapsed()
    );
    is_well(&daemon);
}

#[test]
fn more_than_is_allowed_is_put_off_and_clients_wait() {
    let bench = Bench::fixtures(3.0);
    let daemon = Daemon::start(&bench, &["--max-requests", "3"]);
    let many = (0..40).map(|_| daemon.get("/healthz"));
    let refused: Vec<Answer> = many.filter(|answer| answer.status == 429).collect();
    assert!(!refused.is_empty());
    for answer in refused {
        assert!(answer.head.contains("retry-after: 1"), "{answer:?}");
        answer.is(429);
    }
    daemon.ask(&["ls"]).exits(0).says("no runs");

    // As many connections as there are places, and one more.
    let mut open: Vec<_> = (0..200).map(|_| daemon.connect()).collect();
    let full = open.iter_mut().any(|stream| {
        stream
            .set_read_timeout(Some(Duration::from_millis(20)))
            .expect("a bound");
        let mut start = [0; 12];
        stream
            .read_exact(&mut start)
            .is_ok_and(|()| start.ends_with(b"503"))
    });
    assert!(full);
    drop(open);
    wait_for("room for one more", || daemon.get("/healthz").status == 200);
    is_well(&daemon);
}

#[test]
fn what_is_submitted_is_checked_as_run_checks_it() {
    let bench = Bench::fixtures(3.0);
    let daemon = Daemon::start(&bench, &[]);
    bench.methods(&[bench.rogue("good", NONE), json!("GST")]);
    let with = |field: &str, value: Value| {
        let mut submission = daemon.submission();
        submission[field] = value;
        daemon
            .post("/v1/runs", &submission.to_string())
            .is(422)
            .body
    };
    for (field, value, words) in [
        ("protocol", json!("fixtures"), "must be an absolute path"),
        ("protocol", json!("/etc/passwd"), "is not below a root"),
        ("methods", json!(bench.path("../x")), "is not below a root"),
        (
            "methods",
            json!(bench.path("none.json")),
            "there is no such file",
        ),
        ("methods", json!(bench.protocol()), "algorithms"),
        (
            "protocol",
            json!(bench.path("methods.json")),
            "methods.json",
        ),
        ("priority", json!(1001), "from -1000 to 1000"),
        ("jobs", json!(0), "1 or more"),
        ("jobs", json!(100_000), "cores"),
        ("cores", json!(100_000), "in all"),
        ("only", json!(["nobody"]), "no method of that name"),
        ("basename", json!(""), "basename"),
        ("containment", json!("K9"), "containment"),
        ("allow_degraded", json!(true), "official"),
        ("max_load", json!(1.5), "above 0 and at most 1"),
        ("limits", json!({"cpus": 0}), "limits.cpus"),
        (
            "limits",
            json!({"max_memory_bytes": 1}),
            "limits.max_memory_bytes",
        ),
    ] {
        let body = with(field, value);
        assert!(body.contains(words), "{field}: {body}");
    }
    // A data file that changed since the protocol was frozen, in the words of run.
    let copy = Bench::fixtures(3.0);
    let protocol = crate::support::json(&copy.protocol());
    let mut moved = protocol.clone();
    moved["datasets"][0]["path"] = json!(bench.path("changed"));
    std::fs::create_dir(bench.path("changed")).expect("a folder");
    let from = protocol["datasets"][0]["path"].as_str().expect("a path");
    for entry in std::fs::read_dir(from).expect("a dataset").flatten() {
        let to = bench.path("changed").join(entry.file_name());
        if entry.path().is_dir() {
            symlink(entry.path(), to).expect("a link");
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).expect("a file");
        // One row less.
        let end = text.trim_end().rfind('\n').map_or(0, |at| at + 1);
        std::fs::write(to, &text[..end]).expect("a file");
    }
    write_json(&bench.path("moved.json"), &moved);
    let body = with("protocol", json!(bench.path("moved.json")));
    assert!(body.contains("moved.json"), "{body}");
    assert_eq!(daemon.get("/v1/queue").json()["queued"], 0);
    assert_eq!(daemon.get("/v1/runs").json()["runs"], json!([]));
    let left = std::fs::read_dir(daemon.state().join("runs")).expect("runs");
    assert_eq!(left.count(), 0);
    is_well(&daemon);
}

#[test]
fn nothing_outside_the_roots_is_read() {
    let bench = Bench::fixtures(3.0);
    let daemon = Daemon::start(&bench, &[]);
    let outside = Bench::fixtures(3.0);
    let methods = bench.methods(&[json!("GST")]);
    symlink(outside.protocol(), bench.path("link.json")).expect("a link");
    symlink(outside.path(""), bench.path("folder")).expect("a link");
    let secret = outside.path("secret");
    std::fs::write(&secret, "0123 secret words\n").expect("a file");
    symlink(&secret, bench.path("data.json")).expect("a link");
    let refused = |submission: &Value| {
        let body = daemon
            .post("/v1/runs", &submission.to_string())
            .is(422)
            .body;
        assert!(!body.contains("secret words"), "{body}");
        body
    };
    let pipe = bench.path("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let body = refused(&json!({"protocol": bench.protocol(), "methods": pipe}));
    assert!(body.contains("a named pipe, not a regular file"), "{body}");
    for protocol in ["link.json", "folder/protocol.json", "data.json", "s"] {
        let body = refused(&json!({"protocol": bench.path(protocol), "methods": methods}));
        assert!(
            protocol == "s" || body.contains("is not below a root"),
            "{body}"
        );
    }
    // What the files name is held to the roots too.
    let mut protocol = crate::support::json(&bench.protocol());
    protocol["datasets"][0]["path"] = json!(outside.path(""));
    write_json(&bench.path("elsewhere.json"), &protocol);
    refused(&json!({"protocol": bench.path("elsewhere.json"), "methods": methods}));
    let mut method = bench.rogue("good", NONE);
    method["files"] = json!([secret]);
    let methods = bench.methods(&[method]);
    refused(&json!({"protocol": bench.protocol(), "methods": methods}));
    let mut method = outside.rogue("good", NONE);
    method["name"] = json!("elsewhere");
    let methods = bench.methods(&[method]);
    let body = refused(&json!({"protocol": bench.protocol(), "methods": methods}));
    assert!(
        body.contains("rogue-good") && body.contains("below"),
        "{body}"
    );
    is_well(&daemon);
}

#[test]
fn a_submission_whose_client_has_gone_before_its_turn_is_not_queued() {
    let bench = Bench::fixtures(60.0);
    let daemon = Daemon::start(&bench, &["--max-requests", "10000"]);
    let methods = [bench.rogue("good", NONE)];
    bench.methods(&methods);
    let body = daemon.submission().to_string();
    let request = format!(
        "POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // Nobody knows of them, and whoever sent them will again. The check of each keeps the next waiting.
    let crowd: Vec<_> = (0..40)
        .map(|_| {
            let mut stream = daemon.connect();
            stream.write_all(request.as_bytes()).expect("it listens");
            stream
        })
        .collect();
    drop(crowd);
    let mine = daemon.submit(&methods, &[]);
    assert!(mine < 40, "{mine} were taken");
    daemon.ask(&["watch", &mine.to_string()]).exits(0);
    is_well(&daemon);
}

#[test]
fn a_client_that_disappears_loses_nothing_and_breaks_nothing() {
    let bench = Bench::fixtures(60.0);
    let daemon = Daemon::start(&bench, &[]);
    bench.methods(&[bench.rogue("sleeper", NONE)]);
    let body = daemon.submission().to_string();
    let request = format!(
        "POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // Half a submission is none.
    for cut in [1, request.len() / 2, request.len() - 1] {
        let mut stream = daemon.connect();
        stream
            .write_all(&request.as_bytes()[..cut])
            .expect("it listens");
    }
    // A whole one counts, once, whether or not anybody reads the answer.
    let mut stream = daemon.connect();
    stream.write_all(request.as_bytes()).expect("it listens");
    wait_for("the run", || daemon.get("/v1/runs/1").status == 200);
    drop(stream);
    daemon.wait_method(1, "sleeper", "running");
    for path in ["/v1/events", "/v1/runs/1/events", "/v1/openapi.json"] {
        for _ in 0..60 {
            let mut stream = daemon.connect();
            let get = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
            stream.write_all(get.as_bytes()).expect("it listens");
            drop(stream);
        }
    }
    // Streams are given back when their readers have gone.
    wait_for("a stream that begins", || {
        let mut stream = daemon.connect();
        let get = b"GET /v1/runs/1/events HTTP/1.1\r\nHost: x\r\n\r\n";
        stream.write_all(get).expect("it listens");
        let mut start = [0; 15];
        stream.read_exact(&mut start).is_ok() && start.ends_with(b"200 OK")
    });
    assert_eq!(daemon.get("/v1/runs/2").status, 404);
    daemon.ask(&["cancel", "1"]).exits(0);
    daemon.ask(&["watch", "1"]).exits(130);
    is_well(&daemon);
}

#[test]
fn over_tcp_only_the_token_counts() {
    const TOKEN: &str = "0123456789abcdef-the-token";
    let bench = Bench::fixtures(3.0);
    let file = bench.path("token");
    std::fs::write(&file, TOKEN).expect("a file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    let file = file.to_str().expect("text").to_owned();
    let daemon = Daemon::start(&bench, &["--listen", "127.0.0.1:0", "--token-file", &file]);
    // The Unix socket, which the start was waited for by, may be there before the line is written.
    let end = Instant::now() + Duration::from_secs(30);
    let log = loop {
        let log = daemon.log();
        if log.contains("listening on http://") {
            break log;
        }
        assert!(Instant::now() < end, "the address is not told: {log}");
        std::thread::yield_now();
    };
    let address = log
        .lines()
        .find_map(|line| line.strip_prefix("listening on http://"))
        .expect("it was found")
        .trim_end_matches('/');
    let ask = |method: &str, path: &str, headers: &str| {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("a bound");
        let text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(text.as_bytes()).expect("it listens");
        Answer::read(&mut stream)
    };
    let host = format!("Host: {address}\r\n");
    let right = format!("{host}Authorization: Bearer {TOKEN}\r\n");
    ask("GET", "/healthz", &host).is(200);
    ask("GET", "/v1/queue", &host).is(401);
    for wrong in ["x", "0123456789abcdef-the-tokeN", "", &TOKEN[..20]] {
        let headers = format!("{host}Authorization: Bearer {wrong}\r\n");
        ask("GET", "/v1/queue", &headers).is(401);
    }
    let basic = format!("{host}Authorization: Basic {TOKEN}\r\n");
    ask("GET", "/v1/queue", &basic).is(401);
    ask("GET", &format!("/v1/queue?token={TOKEN}"), &host).is(401);
    ask("GET", "/v1/queue", &right).is(200);
    // Names that were made to lead here, and pages of others.
    let port = address.rsplit(':').next().expect("a port");
    for bad in [
        "evil.example",
        &format!("evil.example:{port}"),
        "127.0.0.1:1",
    ] {
        let headers = format!("Host: {bad}\r\nAuthorization: Bearer {TOKEN}\r\n");
        ask("GET", "/v1/queue", &headers).is(403);
    }
    let headers = format!("Host: localhost:{port}\r\nAuthorization: Bearer {TOKEN}\r\n");
    ask("GET", "/v1/queue", &headers).is(200);
    // Over `ssh -L` a browser reaches the Unix socket, where no token is asked for.
    for (host, code) in [("evil.example:8080", 403), ("localhost:8080", 200)] {
        let text = format!("GET /v1/queue HTTP/1.1\r\nConnection: close\r\nHost: {host}\r\n\r\n");
        daemon.raw(text.as_bytes()).is(code);
    }
    let body = "Content-Type: application/json\r\nContent-Length: 0\r\n";
    for foreign in [
        "Origin: http://evil.example\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
    ] {
        ask("POST", "/v1/runs", &format!("{right}{foreign}{body}")).is(403);
    }
    ask("POST", "/v1/runs", &format!("{right}{body}")).is(400);
    is_well(&daemon);
}
