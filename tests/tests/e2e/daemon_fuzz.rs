//! Everything the description of the API allows, and much that it does not, thrown at a daemon by schemathesis.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::bench::Bench;
use crate::support::daemon::Daemon;
use crate::support::skip;

/// Seconds, starting the tool not counted.
const TIME: &str = "60";
const TOKEN: &str = "0123456789abcdef-of-the-fuzzer";

#[test]
fn no_request_breaks_the_daemon_or_gets_an_answer_that_is_not_described() {
    let Some(tool) = std::env::var_os("PROCTOR_SCHEMATHESIS") else {
        let why = "there is no schemathesis (PROCTOR_SCHEMATHESIS is not set; ./test sets it)";
        skip("daemon_fuzz", why);
        return;
    };
    let bench = Bench::fixtures(3.0);
    let file = bench.path("token");
    std::fs::write(&file, TOKEN).expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&file, mode).expect("a mode");
    let file = file.to_str().expect("text").to_owned();
    let options = ["--listen", "127.0.0.1:0", "--token-file", &file];
    let daemon = Daemon::start(
        &bench,
        &[&options[..], &["--max-requests", "100000"]].concat(),
    );
    let id = daemon.submit(&[json!("Levenshtein")], &[]);
    daemon.wait_state(id, "ended");
    let log = daemon.log();
    let address = log
        .lines()
        .find_map(|line| {
            Some(
                line.strip_prefix("listening on http://")?
                    .trim_end_matches('/'),
            )
        })
        .expect("the address is told");
    let output = Command::new(tool)
        .arg("run")
        .arg(format!("http://{address}/v1/openapi.json"))
        .args(["-H", &format!("Authorization: Bearer {TOKEN}")])
        // Event streams have no end.
        .args(["--exclude-path-regex", "events$"])
        // What is described well may still name files that are not there, which is refused with 422.
        .args([
            "--checks",
            "all",
            "--exclude-checks",
            "positive_data_acceptance",
        ])
        .args(["--max-time", TIME, "--request-timeout", "30"])
        .args(["--continue-on-failure", "--no-color"])
        .current_dir(bench.path(""))
        .stdin(Stdio::null())
        .output()
        .expect("schemathesis can be started");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(said.contains("generated"), "{said}");
    daemon.get("/healthz").is(200);
    let log = daemon.log();
    assert!(!log.contains("panicked") && !log.contains("bug"), "{log}");
}
