//! Identities against the vectors, and the refusals.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use proctor_wire::Family;

use super::*;
use crate::canonical::{canonical, read, sha256_hex};
use crate::object;
use crate::vectors::{shared, shared_json};

fn methods(json: &str) -> Result<Vec<Method>, MethodError> {
    methods_from_value(
        &read(json.as_bytes()).expect("the test's JSON"),
        Path::new("/nowhere"),
    )
}

fn one(json: &str) -> Method {
    let mut methods = methods(&format!("[{json}]")).expect("a sound method");
    methods.remove(0)
}

/// The message of a refused file.
fn refused(json: &str) -> String {
    methods(json).expect_err("must be refused").to_string()
}

#[test]
fn every_method_of_the_vectors_has_its_id_and_its_hashed_text() {
    let (Some(index), Some(folder)) = (
        shared_json("interop/matheel/index.json"),
        shared("interop/matheel"),
    ) else {
        return;
    };
    let mut seen = 0;
    let sets = index
        .get("methods")
        .and_then(Value::as_object)
        .expect("methods");
    for (set, expected) in sets.iter() {
        let text = |value: &Value, key: &str| {
            value
                .get(key)
                .and_then(Value::as_str)
                .expect("a text")
                .to_owned()
        };
        let methods = load_methods(&folder.join(text(expected, "file"))).expect(set);
        let expected = expected
            .get("methods")
            .and_then(Value::as_array)
            .expect("methods");
        assert_eq!(methods.len(), expected.len(), "{set}");
        for (method, expected) in methods.iter().zip(expected) {
            assert_eq!(method.name, text(expected, "name"));
            assert_eq!(method.id, text(expected, "algorithm_id"), "{}", method.name);
            let hashed = std::fs::read_to_string(folder.join(text(expected, "canonical")));
            assert_eq!(
                canonical(&method.configuration),
                hashed.expect("the hashed text")
            );
            let custom = matches!(method.kind, MethodKind::Unsupported(_));
            assert_eq!(
                custom,
                set == "custom",
                "{}: {:?}",
                method.name,
                method.kind
            );
            seen += 1;
        }
    }
    assert_eq!(seen, 38);
}

#[test]
fn every_preset_has_its_id_in_any_case() {
    let Some(presets) = shared_json("interop/matheel/presets.json") else {
        return;
    };
    let presets = presets
        .get("presets")
        .and_then(Value::as_array)
        .expect("presets");
    assert_eq!(presets.len(), 27);
    assert_eq!(preset_names().count(), 27);
    for (preset, ours) in presets.iter().zip(preset_names()) {
        let name = preset
            .get("preset")
            .and_then(Value::as_str)
            .expect("a name");
        assert_eq!(name, ours);
        for spelled in [name.to_owned(), format!(" {} ", name.to_uppercase())] {
            let method = one(&format!("{spelled:?}"));
            assert_eq!(method.name, name);
            assert_eq!(
                Some(method.id.as_str()),
                preset.get("algorithm_id").and_then(Value::as_str)
            );
        }
    }
    let needs_more = ["Balanced", "Embedding Only", "Code-Aware", "CodeBLEU"];
    for name in preset_names() {
        let method = one(&format!("{name:?}"));
        match method.kind {
            MethodKind::Builtin => assert!(!needs_more.contains(&name), "{name}"),
            MethodKind::Unsupported(why) => {
                assert!(needs_more.contains(&name), "{name}: {why}");
                assert!(why.starts_with("needs an external worker: "), "{why}");
            }
            MethodKind::Program(_) => panic!("{name} is no program"),
        }
    }
}

#[test]
fn the_manifest_entry_is_matheels() {
    let Some(bundle) = shared_json("interop/irplag/bundle.matheel-0.7.1.json") else {
        return;
    };
    let entries = bundle
        .get("manifest")
        .and_then(|manifest| manifest.get("algorithms"));
    let ours: Vec<_> = [
        "Levenshtein",
        "Longest Common Subsequence (LCS)",
        "Jaro-Winkler",
        "Winnowing",
        "GST",
    ]
    .map(|name| one(&format!("{name:?}")).manifest_entry)
    .to_vec();
    assert_eq!(entries, Some(&Value::Array(ours)));
}

#[test]
fn stray_keys_beat_similarity_options_beat_options_beat_the_preset() {
    let method = one(
        r#"{"preset": "Winnowing", "options": {"winnowing_kgram": 2, "winnowing_window": 2, "gst_min_match_length": 2},
            "similarity_options": {"winnowing_kgram": 3, "winnowing_window": 3}, "winnowing_kgram": 4}"#,
    );
    let options = method
        .configuration
        .get("similarity_options")
        .expect("options");
    assert_eq!(options.get("winnowing_kgram"), Some(&Value::Int(4)));
    assert_eq!(options.get("winnowing_window"), Some(&Value::Int(3)));
    assert_eq!(options.get("gst_min_match_length"), Some(&Value::Int(2)));
    assert_eq!(options.get("code_metric"), Some(&Value::from("codebleu")));
}

#[test]
fn unsound_files_are_refused_by_field() {
    for (json, expected) in [
        ("3", "must be a list of methods"),
        ("{}", "algorithms: is missing"),
        (r#"{"algorithms": {}}"#, "algorithms: is an object"),
        ("[]", "there are no methods"),
        (r#"{"algorithms": []}"#, "algorithms: there are no methods"),
        ("[4]", "[0]: is an integer"),
        (r#"["Levenstein"]"#, r#"[0]: "Levenstein" is not a preset"#),
        (r#"[{"preset": "x"}]"#, r#"[0].preset: "x" is not a preset"#),
        (
            r#"[{"preset": "GST", "algorithm_preset": "GST"}]"#,
            "another word for preset",
        ),
        (
            r#"["GST", "gst"]"#,
            r#"[1].name: "GST" is also the name of [0]"#,
        ),
        (
            r#"["GST", {"preset": "GST", "name": "Other"}]"#,
            "[1]: \"Other\" is the same configuration as [0]",
        ),
        (
            r#"[{"preset": "GST", "threshold": 0.5}]"#,
            "[0].threshold: belongs to the protocol",
        ),
        (
            r#"[{"preset": "GST", "k": 3}]"#,
            "[0].k: belongs to the protocol",
        ),
        (
            r#"[{"preset": "GST", "retrieval_options": {}}]"#,
            "[0].retrieval_options: ",
        ),
        (
            r#"[{"preset": "GST", "options": []}]"#,
            "[0].options: is an array",
        ),
        (
            r#"[{"preset": "GST", "similarity_options": null}]"#,
            "[0].similarity_options: is null",
        ),
        (
            r#"[{"preset": "GST", "algorithm_options": 3}]"#,
            "[0].algorithm_options: is an integer",
        ),
        (
            r#"[{"preset": "GST", "algorithm_options": {" ": 3}}]"#,
            "is blank",
        ),
        (
            r#"[{"preset": "GST", "algorithm_options": {"a": 3, " a": 4}}]"#,
            "there twice",
        ),
        (r#"[{"preset": "GST", "name": " "}]"#, "[0].name: "),
        (r#"[{"preset": "GST", "name": "a\u001b[2J"}]"#, "[0].name: "),
        (r#"[{"preset": "GST", "name": {"a": 1}}]"#, "[0].name: "),
        (
            r#"[{"preset": "GST", "algorithm_path": "./x.py"}]"#,
            "/nowhere/./x.py: cannot be read",
        ),
        (
            r#"[{"algorithm_path": "package.module"}]"#,
            "[0].algorithm_path: \"package.module\" is the name of a Python module",
        ),
        (
            r#"[{"algorithm_path": 3}]"#,
            "[0].algorithm_path: must be the path",
        ),
        (
            r#"[{"preset": "GST", "model_name": "/srv/model"}]"#,
            "[0].similarity_options.model_name: ",
        ),
        (
            r#"[{"preset": "GST", "api_key": "x"}]"#,
            "[0].api_key: looks like a credential",
        ),
        (
            r#"[{"preset": "GST", "task_eligibility": {"both": {}}}]"#,
            "[0].task_eligibility.both: ",
        ),
        (
            r#"[{"preset": "GST", "task_eligibility": {"pair": {"status": "no"}}}]"#,
            "[0].task_eligibility.pair.status: ",
        ),
        (
            r#"[{"preset": "GST", "task_eligibility": {"pair": {"status": "not_applicable", "reason": " "}}}]"#,
            "[0].task_eligibility.pair.reason: is missing",
        ),
        (
            r#"[{"preset": "GST", "task_eligibility": {"pair": {"why": "no"}}}]"#,
            "[0].task_eligibility.pair.why: is not known",
        ),
        (
            r#"[{"preset": "GST", "dataset_exclusions": {"a": ""}}]"#,
            "[0].dataset_exclusions.a: ",
        ),
        (
            r#"[{"preset": "GST", "dataset_exclusions": {"a": "x", "a ": "y"}}]"#,
            "already excluded",
        ),
        (
            r#"[{"preset": "GST", "dataset_exclusions": []}]"#,
            "[0].dataset_exclusions: is an array",
        ),
    ] {
        let message = refused(json);
        assert!(message.contains(expected), "{json}\n  {message}");
    }
}

#[test]
fn a_missing_or_broken_file_is_named() {
    let missing = load_methods(Path::new("/nowhere/methods.json"))
        .unwrap_err()
        .to_string();
    assert!(
        missing.starts_with("/nowhere/methods.json: cannot be read: "),
        "{missing}"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("methods.json");
    std::fs::write(&file, r#"["GST", {"name": "a", "name": "b"}]"#).expect("written");
    let message = load_methods(&file).unwrap_err().to_string();
    assert!(
        message.starts_with(&format!("{}: line 1", file.display())),
        "{message}"
    );
    std::fs::write(&file, r#"["GST", "GST"]"#).expect("written");
    let message = load_methods(&file).unwrap_err().to_string();
    assert!(
        message.starts_with(&format!("{}: [1].name: ", file.display())),
        "{message}"
    );
}

#[test]
fn custom_algorithms_are_hashed_and_hooks_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "raise SystemExit('imported')\n";
    std::fs::write(folder.path().join("mine.py"), source).expect("written");
    let value =
        read(br#"[{"algorithm_path": "mine.py", "algorithm_options": {" a ": 1}}]"#).expect("JSON");
    let method = methods_from_value(&value, folder.path())
        .expect("sound")
        .remove(0);
    assert_eq!(method.name, "algorithm_1");
    let field = |key| method.configuration.get(key).expect("a field");
    assert_eq!(
        *field("algorithm_sha256"),
        sha256_hex(source.as_bytes()).into()
    );
    assert_eq!(*field("algorithm_options"), object! { "a" => 1i64 });
    assert!(
        matches!(&method.kind, MethodKind::Unsupported(why) if why.contains("external worker"))
    );
    assert_eq!(
        method.manifest_entry.get("algorithm_path"),
        Some(&Value::Null)
    );

    std::fs::write(
        folder.path().join("mine.py"),
        "from x import portable_configuration\n",
    )
    .expect("written");
    let message = methods_from_value(&value, folder.path())
        .unwrap_err()
        .to_string();
    assert!(message.contains("portable_configuration"), "{message}");
}

#[test]
fn exclusions_by_name_beat_those_by_family() {
    let method = one(
        r#"{"preset": "GST", "dataset_exclusions": {" a ": " by name "},
            "task_eligibility": {"pair": {"status": "not_applicable", "reason": " by family "},
                                 "retrieval": {"status": "eligible", "reason": "because"}}}"#,
    );
    let reason = |name, family| {
        exclusion_reason(&method.configuration, name, family).expect("sound declarations")
    };
    assert_eq!(reason("a", Family::Pair).as_deref(), Some("by name"));
    assert_eq!(reason("a", Family::Retrieval).as_deref(), Some("by name"));
    assert_eq!(reason("b", Family::Pair).as_deref(), Some("by family"));
    assert_eq!(reason("b", Family::Retrieval), None);
    assert_eq!(
        excluded_datasets(&method.configuration).expect("sound"),
        ["a"]
    );
    let told = method.wire_value();
    assert_eq!(told["kind"], "builtin");
    assert_eq!(
        told["configuration"]["similarity_options"]["feature_weights"]["gst"],
        1.0
    );
    let told = told.to_string();
    assert!(
        !told.contains("by name") && !told.contains("by family"),
        "{told}"
    );
}

/// A folder with two scripts, one executable.
/// What stands in a file of [`programs`].
fn content(name: &str) -> String {
    match name {
        "worker.sh" => "#!/bin/sh\n".to_owned(),
        other => other.to_owned(),
    }
}

fn programs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("lib")).expect("a folder");
    for (name, mode) in [
        ("worker.sh", 0o755),
        ("data.txt", 0o644),
        ("lib/data.txt", 0o644),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, content(name)).expect("written");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("mode set");
    }
    folder
}

#[test]
fn the_identity_of_a_program_is_its_content_not_its_place() {
    let json = r#"[{"name": "mine", "command": ["./worker.sh", "--fast", "data.txt"], "files": ["data.txt"],
                    "options": {"depth": 3}, "env": ["LANG", "HOME"]}]"#;
    let value = read(json.as_bytes()).expect("JSON");
    let (here, there) = (programs(), programs());
    let method = methods_from_value(&value, here.path())
        .expect("sound")
        .remove(0);
    assert_eq!(
        method.configuration,
        object! {
            "kind" => "program",
            "command" => vec!["worker.sh", "--fast", "data.txt"],
            "executable_sha256" => sha256_hex(content("worker.sh").as_bytes()),
            "files" => vec![object! { "name" => "data.txt", "sha256" => sha256_hex(b"data.txt") }],
            "options" => object! { "depth" => 3i64 },
            "env" => vec!["HOME", "LANG"],
        }
    );
    let MethodKind::Program(program) = &method.kind else {
        panic!("{:?}", method.kind)
    };
    let path = |name: &str| here.path().join(name);
    assert_eq!(program.executable, path("./worker.sh"));
    assert_eq!(program.command[1], "--fast");
    assert_eq!(Path::new(&program.command[2]), path("data.txt"));
    assert_eq!(program.files, [path("data.txt")]);
    assert_eq!(program.env, ["HOME", "LANG"]);
    assert_eq!(
        method.wire_value(),
        serde_json::json!({ "kind": "program", "options": { "depth": 3 } })
    );

    let same = methods_from_value(&value, there.path())
        .expect("sound")
        .remove(0);
    assert_eq!(same.id, method.id);
    std::fs::write(there.path().join("data.txt"), "changed").expect("written");
    let changed = methods_from_value(&value, there.path())
        .expect("sound")
        .remove(0);
    assert_ne!(changed.id, method.id);
}

#[test]
fn a_declared_file_may_be_spelled_in_several_ways() {
    let folder = programs();
    let read_from = |base: &Path, argument: &str| {
        let list = Value::Array(vec![object! {
            "command" => vec!["./worker.sh", argument],
            "files" => vec!["data.txt"],
        }]);
        methods_from_value(&list, base).map(|mut methods| methods.remove(0))
    };
    let plain = read_from(folder.path(), "data.txt").expect("sound");
    let roundabout = folder.path().join("lib/..");
    let real = folder.path().canonicalize().expect("there");
    let absolute = real.join("data.txt");
    let absolute = absolute.to_str().expect("UTF-8");
    std::os::unix::fs::symlink("data.txt", folder.path().join("alias.txt")).expect("linked");
    for (base, argument) in [
        (roundabout.as_path(), absolute),
        (folder.path(), "lib/../data.txt"),
        (folder.path(), "alias.txt"),
    ] {
        let method = read_from(base, argument).expect(argument);
        assert_eq!(method.configuration, plain.configuration, "{argument}");
        assert_eq!(method.id, plain.id, "{argument}");
        let MethodKind::Program(program) = &method.kind else {
            panic!("{:?}", method.kind)
        };
        assert_eq!(Path::new(&program.command[1]), base.join("data.txt"));
    }
    let other = real.join("lib/data.txt");
    let other = other.to_str().expect("UTF-8");
    let error = read_from(&roundabout, other).expect_err("another file");
    assert!(error.to_string().contains("not declared"), "{error}");
}

#[test]
fn a_declared_executable_keeps_its_own_name() {
    let folder = programs();
    std::os::unix::fs::symlink("worker.sh", folder.path().join("alias")).expect("linked");
    let list = Value::Array(vec![object! {
        "command" => vec!["./alias"],
        "files" => vec!["worker.sh"],
    }]);
    let method = methods_from_value(&list, folder.path())
        .expect("sound")
        .remove(0);
    let command = method.configuration.get("command");
    assert_eq!(command, Some(&Value::from(vec!["alias"])));
}

#[test]
fn a_program_the_kernel_would_not_start_is_refused() {
    let folder = programs();
    let refused = |command: Vec<&str>| {
        let command: Vec<Value> = command.into_iter().map(Value::from).collect();
        let list = Value::Array(vec![object! { "command" => command }]);
        methods_from_value(&list, folder.path())
            .expect_err("refused")
            .to_string()
    };
    let long = "x".repeat(128 << 10);
    assert!(refused(vec!["./worker.sh", &long]).contains("[0].command[1]: has 131072 bytes"));
    let mut many = vec!["./worker.sh"];
    many.extend(vec!["--option"; 150_000]);
    assert!(refused(many).contains("[0].command: has "));
    std::fs::write(folder.path().join("worker.sh"), "#!/no/such/shell\n").expect("written");
    let error = refused(vec!["./worker.sh"]);
    assert!(error.contains("[0].command[0]: "), "{error}");
    assert!(
        error.contains("names the interpreter \"/no/such/shell\""),
        "{error}"
    );
}

#[test]
fn unsound_programs_are_refused_by_name() {
    let folder = programs();
    for (json, expected) in [
        (r#"{"command": []}"#, "[0].command: is empty"),
        (r#"{"command": "./worker.sh"}"#, "[0].command: is a string"),
        (
            r#"{"command": ["./worker.sh", 3]}"#,
            "[0].command[1]: must be a text",
        ),
        (
            r#"{"command": ["./worker.sh", "a\u0000"]}"#,
            "[0].command[1]: must be a text",
        ),
        (
            r#"{"command": ["./missing.sh"]}"#,
            "missing.sh: cannot be read",
        ),
        (
            r#"{"command": ["no-such-program-anywhere"]}"#,
            "[0].command[0]: no executable \"no-such-program-anywhere\"",
        ),
        (r#"{"command": [""]}"#, "[0].command[0]: no executable"),
        (
            r#"{"command": ["./lib"]}"#,
            "lib: cannot be read: is a directory, not a regular file",
        ),
        (
            r#"{"command": ["./data.txt"]}"#,
            "data.txt is not executable",
        ),
        (
            r#"{"command": ["./worker.sh", "data.txt"]}"#,
            "[0].command[1]: \"data.txt\" is a file that is not declared",
        ),
        (
            r#"{"command": ["./worker.sh", "lib/data.txt"]}"#,
            "[0].command[1]: \"lib/data.txt\" is a file that is not declared",
        ),
        (
            r#"{"command": ["./worker.sh"], "files": ["gone.txt"]}"#,
            "[0].files[0]: ",
        ),
        (
            r#"{"command": ["./worker.sh"], "files": ["lib"]}"#,
            "not a regular file",
        ),
        (
            r#"{"command": ["./worker.sh"], "files": ["data.txt", "data.txt"]}"#,
            "declared twice",
        ),
        (
            r#"{"command": ["./worker.sh", "data.txt"], "files": ["data.txt", "lib/data.txt"]}"#,
            "ambiguous",
        ),
        (
            r#"{"command": ["./worker.sh", "--model=/srv/models/x"]}"#,
            "[0].command[1]: ",
        ),
        (
            r#"{"command": ["./worker.sh"], "options": 3}"#,
            "[0].options: is an integer",
        ),
        (
            r#"{"command": ["./worker.sh"], "options": {"password": "x"}}"#,
            "[0].options.password: looks like a credential",
        ),
        (
            r#"{"command": ["./worker.sh"], "options": {"where": "/srv/x"}}"#,
            "[0].options.where: ",
        ),
        (
            r#"{"command": ["./worker.sh"], "env": ["A=1"]}"#,
            "[0].env[0]: ",
        ),
        (
            r#"{"command": ["./worker.sh"], "env": ["A", "A"]}"#,
            "listed twice",
        ),
        (
            r#"{"command": ["./worker.sh"], "preset": "GST"}"#,
            "[0].preset: does not belong to a program",
        ),
        (
            r#"{"command": ["./worker.sh"], "threshold": null}"#,
            "[0].threshold: does not belong to a program",
        ),
    ] {
        let value = read(format!("[{json}]").as_bytes()).expect("JSON");
        let message = methods_from_value(&value, folder.path())
            .expect_err(json)
            .to_string();
        assert!(message.contains(expected), "{json}\n  {message}");
    }
}

#[test]
fn our_own_example_is_sound() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/methods.json");
    let methods = load_methods(&file).expect("sound");
    let programs = methods
        .iter()
        .filter(|method| matches!(method.kind, MethodKind::Program(_)))
        .count();
    assert_eq!((methods.len(), programs), (7, 2));
}

#[test]
fn names_are_short_texts_that_can_be_seen() {
    let read = |name: &str| {
        let item = object! { "preset" => "Levenshtein", "name" => name };
        methods_from_value(&Value::Array(vec![item]), Path::new("/")).map(|_| ())
    };
    for good in [
        "a",
        "\u{e9}t\u{e9}",
        &"x".repeat(200),
        " spaced ",
        "\u{1f600}",
    ] {
        assert!(read(good).is_ok(), "{good:?}");
    }
    for (bad, word) in [
        ("", "not blank"),
        (" \u{a0}", "not blank"),
        ("a\nb", "U+000A"),
        ("a\u{1b}[31m", "U+001B"),
        ("a\u{202e}b", "U+202E"),
        ("a\u{200b}", "U+200B"),
        ("a\u{2028}b", "U+2028"),
        (&"x".repeat(201), "201 characters"),
    ] {
        let text = read(bad).unwrap_err().to_string();
        assert!(
            text.starts_with("[0].name: ") && text.contains(word),
            "{text}"
        );
    }
}

#[test]
fn names_that_look_the_same_are_refused() {
    let read = |one: &str, other: &str| {
        let method = |preset: &str, name: &str| object! { "preset" => preset, "name" => name };
        let items = vec![method("Levenshtein", one), method("GST", other)];
        methods_from_value(&Value::Array(items), Path::new("/")).map(|_| ())
    };
    for (one, other) in [
        // One character, and a letter with a combining mark; also in another case.
        ("\u{e9}t\u{e9}", "e\u{301}te\u{301}"),
        ("\u{c9}t\u{e9}", "e\u{301}te\u{301}"),
        // Two marks in either order.
        ("a\u{323}\u{307}", "a\u{307}\u{323}"),
        // The angstrom sign and the letter.
        ("\u{212b}", "\u{c5}"),
    ] {
        let text = read(one, other).unwrap_err().to_string();
        assert!(
            text.starts_with("[1].name: ") && text.contains("also the name of [0]"),
            "{text}"
        );
    }
    assert!(read("\u{e9}", "e").is_ok());
}

#[test]
fn an_integer_no_worker_can_be_told_is_refused() {
    let item = |count: &str| {
        let text = format!("[{{\"preset\": \"GST\", \"chunk_size\": {count}}}]");
        methods_from_value(
            &crate::canonical::read(text.as_bytes()).unwrap(),
            Path::new("/"),
        )
    };
    assert!(item("18446744073709551615").is_ok());
    let text = item("18446744073709551616").unwrap_err().to_string();
    assert!(text.contains("chunk_size: has more than 64 bits"), "{text}");
}
