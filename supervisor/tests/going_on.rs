//! A run goes on when the records of one method cannot be kept.

#![allow(clippy::print_stderr)] // A test that skips says so.

use proctor_supervisor::room::use_stage_program;
use proctor_supervisor::run::{Request, Session, Stop, create, prepare};
use std::path::Path;

#[test]
fn a_method_whose_records_cannot_be_kept_does_not_end_the_run() {
    use_stage_program(Path::new(env!("CARGO_BIN_EXE_proctor")));
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let fixtures = std::path::absolute(fixtures).unwrap();
    let limits = proctor_protocol::canonical::Limits::default();
    let manifest =
        proctor_protocol::input::read_json(&fixtures.join("manifest.json"), limits).unwrap();
    let protocol = proctor_protocol::freeze::freeze(&manifest, &fixtures, None).unwrap();
    std::fs::write(path("protocol.json"), protocol.file_text()).unwrap();
    let methods =
        r#"[{"name": "one", "command": ["true"]}, {"name": "two", "command": ["true", "2"]}]"#;
    std::fs::write(path("methods.json"), methods).unwrap();
    let prepared = prepare(&Request {
        protocol: path("protocol.json"),
        methods: path("methods.json"),
        output: path("run"),
        jobs: 1,
        cores: None,
        only: Vec::new(),
        basename: "board".into(),
        worker: None,
        limits: proctor_protocol::frozen::ExecutionLimits::default(),
        containment: None,
        official: false,
        allow_degraded: false,
        load: None,
    });
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error) if error.to_string().contains("no room") => {
            eprintln!(
                "skipped: a_method_whose_records_cannot_be_kept_does_not_end_the_run: {error}"
            );
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let plan = create(&prepared, Vec::new()).unwrap();
    let (run, cores) = (prepared.run.clone(), plan.policy.core_sets.clone());
    // In the way of every record of the first method, as a full disk would be.
    let blocked = run.attempts_dir(&plan.methods[0].id);
    std::fs::create_dir_all(blocked.parent().unwrap()).unwrap();
    std::fs::write(&blocked, "").unwrap();
    let session = Session::first(prepared, plan);
    let summary = session.conduct(&cores, &Stop::new(), &mut ()).unwrap();
    assert_eq!(summary.trouble.unwrap().exit().code(), 3);
    let second = run.attempts_dir(&session.plan().methods[1].id);
    assert!(second.join("0001.local.r0/terminal.json").is_file());
}
