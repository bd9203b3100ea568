//! Where commands write: never over something that is not theirs, and never two runs in one place.

use std::process::Stdio;

use nix::sys::stat::Mode;
use serde_json::json;

use crate::args;
use crate::support::bench::Bench;
use crate::support::proctor::proctor;
use crate::support::repository;

#[test]
fn a_pipe_or_a_link_as_output_stays_as_it_is() {
    let bench = Bench::fixtures(20.0);
    let pipe = bench.path("pipe");
    nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).expect("a pipe can be made");
    let link = bench.path("link");
    std::os::unix::fs::symlink("elsewhere", &link).expect("a link can be made");
    let manifest = repository().join("fixtures/manifest.json");
    let methods = bench.methods(&[json!("GST")]);
    for place in [&pipe, &link] {
        let before = std::fs::symlink_metadata(place)
            .expect("it is there")
            .file_type();
        for command in [
            args!["freeze", &manifest, "-o", place],
            args!["protocol", "export", bench.protocol(), "-o", place],
            args!["run", bench.protocol(), &methods, "-o", place],
            args!["merge", bench.path("no-bundle"), "-o", place],
        ] {
            let done = proctor(command).exits(2);
            assert!(done.stdout.is_empty(), "{command:?}");
        }
        let after = std::fs::symlink_metadata(place)
            .expect("it is there")
            .file_type();
        assert_eq!(before, after, "{}", place.display());
    }
    assert!(!bench.path("elsewhere").exists());
    let before = std::fs::read(bench.protocol()).expect("a protocol");
    proctor(args![
        "protocol",
        "export",
        bench.protocol(),
        "-o",
        bench.protocol()
    ])
    .exits(2);
    assert_eq!(std::fs::read(bench.protocol()).expect("a protocol"), before);
}

#[test]
fn of_two_runs_into_one_directory_one_runs() {
    let bench = Bench::fixtures(20.0);
    let methods = [json!("GST")];
    let start = || {
        let mut command = bench.run_command(&methods, &[]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().expect("proctor starts")
    };
    let both = [start(), start()];
    let mut codes = Vec::new();
    for child in both {
        let output = child.wait_with_output().expect("proctor ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        codes.push(output.status.code());
        if output.status.code() == Some(2) {
            let why =
                said.contains("another run is using it") || said.contains("holds a run already");
            assert!(why, "{said}");
        }
    }
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(2)]);
    assert_eq!(bench.bundle().outcome("GST"), "completed");
}

#[test]
fn a_budget_beyond_every_clock_is_no_limit() {
    let bench = Bench::fixtures(1e308);
    bench.run(&[json!("GST")]).exits(0);
    assert_eq!(bench.bundle().outcome("GST"), "completed");
}
