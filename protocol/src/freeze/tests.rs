//! Freezing against the vectors, and the refusals.

use super::*;
use crate::canonical::{Limits, canonical, pretty, read};
use crate::frozen::ThresholdPolicy;
use crate::input::read_json;
use crate::vectors::{shared, shared_json};

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("no text {key}"))
}

/// Freezes a manifest file as the command does.
fn freeze_file(path: &Path, benchmark_id: Option<&str>) -> Result<Protocol, FreezeError> {
    let manifest = read_json(path, Limits::default())?;
    let base = path.parent().expect("a folder");
    freeze(&manifest, base, benchmark_id).map_err(|error| error.in_file(path))
}

#[test]
fn every_manifest_case_of_the_vectors_is_accepted_or_refused_as_by_matheel() {
    let (Some(cases), Some(folder)) = (
        shared_json("interop/matheel/index.json"),
        shared("interop/matheel"),
    ) else {
        return;
    };
    let cases = cases
        .get("manifest_errors")
        .and_then(Value::as_array)
        .expect("cases");
    assert_eq!(cases.len(), 66);
    for case in cases {
        let name = text(case, "case");
        let manifest = case.get("manifest").expect("a manifest");
        let frozen = freeze(manifest, &folder.join(text(case, "base_dir")), None);
        let outcome = case.get("outcome").expect("an outcome");
        match (frozen, outcome.get("accepted").and_then(Value::as_str)) {
            (Ok(protocol), Some(id)) => {
                assert_eq!(protocol.id(), id, "{name}");
                if let Some(public) = outcome.get("public") {
                    let mut ours = protocol.public_value();
                    if !public
                        .as_object()
                        .expect("an object")
                        .contains_key("protocol_id")
                    {
                        ours.as_object_mut()
                            .expect("an object")
                            .remove("protocol_id");
                    }
                    assert_eq!(canonical(&ours), canonical(public), "{name}");
                }
                protocol
                    .verify_data()
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
            }
            (Err(error), None) => {
                let InputError::Refused(refusal) = &error else {
                    panic!("{name}: {error}");
                };
                assert!(
                    !refusal.field.is_empty() || name == "not object",
                    "{name}: {error}"
                );
            }
            (Ok(_), None) => panic!("{name}: must be refused"),
            (Err(error), Some(_)) => panic!("{name}: {error}"),
        }
    }
}

#[test]
fn every_protocol_of_the_vectors_freezes_to_its_id_and_loads() {
    let (Some(cases), Some(folder)) = (
        shared_json("interop/matheel/index.json"),
        shared("interop/matheel"),
    ) else {
        return;
    };
    let protocols = cases
        .get("protocols")
        .and_then(Value::as_object)
        .expect("protocols");
    assert_eq!(protocols.len(), 7);
    for (name, expected) in protocols.iter() {
        let benchmark_id = Some(text(expected, "benchmark_id"));
        let frozen =
            freeze_file(&folder.join(text(expected, "manifest")), benchmark_id).expect(name);
        assert_eq!(frozen.id(), text(expected, "protocol_id"), "{name}");
        let hashed = std::fs::read_to_string(folder.join(text(expected, "canonical"))).expect(name);
        assert_eq!(canonical(&public_form(frozen.value())), hashed, "{name}");
        let counts: crate::canonical::Object = frozen
            .datasets()
            .iter()
            .map(|entry| (entry.name.as_str(), entry.expected_result_count as usize))
            .collect();
        assert_eq!(
            Some(&Value::Object(counts)),
            expected.get("expected_result_counts"),
            "{name}"
        );

        let file = folder.join(text(expected, "protocol"));
        let loaded = Protocol::load(&file).expect(name);
        assert_eq!(loaded, frozen, "{name}");
        let bytes = std::fs::read_to_string(&file).expect(name);
        assert_eq!(
            pretty(&read(bytes.as_bytes()).expect(name)),
            bytes,
            "{name}"
        );

        let again = read(frozen.file_text().as_bytes()).expect(name);
        assert_eq!(
            Protocol::from_value(&again, None).expect(name),
            frozen,
            "{name}"
        );
        let data = frozen.verify_data().expect(name);
        for (entry, data) in frozen.datasets().iter().zip(data) {
            assert_eq!(data.test.family(), entry.family);
            let calibrates = *frozen.threshold() == ThresholdPolicy::ValidationF1
                && entry.family == proctor_wire::Family::Pair;
            assert_eq!(data.validation.is_some(), calibrates, "{name}");
        }
    }
}

#[test]
fn irplag_freezes_to_its_published_id() {
    let Some(folder) = shared("interop/irplag") else {
        return;
    };
    if shared("data/irplag").is_none() {
        return;
    }
    let frozen = freeze_file(&folder.join("manifest.json"), Some("IRPlag-Java-v1")).expect("sound");
    assert_eq!(
        frozen.id(),
        "bdb3a9be46796ad277d6ef3e2aa312c27e5d088c4c619726fe2100dfc3e01302"
    );
    let public = shared_json("interop/irplag/protocol.public.json").expect("there");
    let theirs = Protocol::from_value(&public, None).expect("sound");
    assert_eq!(theirs.id(), frozen.id());
    assert_eq!(
        read(frozen.export().as_bytes()).expect("JSON"),
        theirs.public_value()
    );
}

/// A small pair dataset and a small retrieval dataset in a folder, and a manifest of both.
struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    fn new() -> Self {
        let workshop = Self {
            folder: tempfile::tempdir().expect("a folder"),
        };
        workshop.write(
            "pairs/files.csv",
            "file_id,file_path,author\na,a.txt,x\nb,b.txt,y\n",
        );
        workshop.write("pairs/pairs.csv", "left_id,right_id,label\na,b,1\n");
        workshop.write(
            "held/files.csv",
            "file_id,file_path,author\nc,c.txt,z\nd,d.txt,z\n",
        );
        workshop.write("held/pairs.csv", "left_id,right_id,label\nc,d,0\n");
        workshop.write("search/files.csv", "file_id,file_path\na,a.txt\nb,b.txt\n");
        workshop.write("search/queries.csv", "query_id,file_id\nq,a\n");
        workshop.write("search/corpus.csv", "document_id,file_id\nda,a\ndb,b\n");
        workshop.write(
            "search/qrels.csv",
            "query_id,document_id,relevance\nq,db,1\n",
        );
        for (folder, files) in [
            ("pairs", ["a", "b"]),
            ("held", ["c", "d"]),
            ("search", ["a", "b"]),
        ] {
            for file in files {
                workshop.write(&format!("{folder}/{file}.txt"), file);
            }
        }
        workshop
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("written");
    }

    fn freeze(&self, json: &str) -> Result<Protocol, FreezeError> {
        let manifest = read(json.as_bytes()).unwrap_or_else(|error| panic!("{json}: {error}"));
        freeze(&manifest, self.folder.path(), None)
    }

    fn refused(&self, json: &str) -> String {
        match self.freeze(json) {
            Ok(_) => panic!("must be refused: {json}"),
            Err(error) => error.to_string(),
        }
    }
}

/// A manifest of one dataset with more fields, and more fields at the top.
fn manifest(task: &str, path: &str, fields: &str, top: &str) -> String {
    format!(
        r#"{{"datasets": [{{"name": "d", "task": "{task}", "path": "{path}", "source_url": "u", "source_revision": "r1",
            "split": "test"{fields}}}]{top}}}"#
    )
}

#[test]
fn fields_are_refused_by_name() {
    let workshop = Workshop::new();
    let pair = |fields: &str, top: &str| manifest("pair", "pairs", fields, top);
    workshop.freeze(&pair("", "")).expect("sound");
    for (json, expected) in [
        ("{}".to_owned(), "datasets: there are none"),
        (
            "{\"datasets\": {}}".to_owned(),
            "datasets: is an object; it must be a list of datasets",
        ),
        (
            r#"{"datasets": {"a": 1}}"#.to_owned(),
            "datasets: is an object",
        ),
        (
            r#"{"datasets": [3]}"#.to_owned(),
            "datasets[0]: is an integer",
        ),
        (pair("", r#", "domain": 3"#), "domain: must be plagiarism"),
        (
            pair("", r#", "schema_version": "one""#),
            "schema_version: must be",
        ),
        (
            pair("", r#", "split_policy": "x""#),
            "split_policy: is a string",
        ),
        (
            pair("", r#", "split_policy": {"group_fields": "author"}"#),
            "split_policy.group_fields: must be a list",
        ),
        (
            pair("", r#", "pair_metrics": {"f1": 1}"#),
            "pair_metrics: is an object",
        ),
        (
            pair("", r#", "pair_metrics": ["f1", 2]"#),
            "pair_metrics[1]: \"2\" is not one of f1, ",
        ),
        (
            pair("", r#", "retrieval_metric": "f1""#),
            "retrieval_metric[0]: \"f1\" is not one of",
        ),
        (
            pair(
                "",
                r#", "threshold_policy": {"mode": "fixed", "value": "inf"}"#,
            ),
            "threshold_policy.value: ",
        ),
        (
            pair(
                "",
                r#", "threshold_policy": {"mode": "fixed", "value": null}"#,
            ),
            "threshold_policy.value: ",
        ),
        (
            pair("", r#", "execution_policy": {"max_method_seconds": "inf"}"#),
            "execution_policy.max_method_seconds: ",
        ),
        (
            pair("", r#", "execution_policy": {"max_method_seconds": null}"#),
            "execution_policy.max_method_seconds: ",
        ),
        (
            pair("", r#", "execution_policy": {"max_memory_bytes": "64M"}"#),
            "execution_policy.max_memory_bytes: is \"64M\"; it must be a whole number",
        ),
        (pair("", r#", "seed": "/srv/seed""#), "seed: "),
        (
            pair("", r#", "execution_policy": {"by": "/srv/x"}"#),
            "execution_policy.by: ",
        ),
        (
            pair(r#", "source": null"#, ""),
            "datasets[0].source: must be local",
        ),
        (
            pair(r#", "similarity_options": null"#, ""),
            "datasets[0].similarity_options: is null",
        ),
        (
            pair(r#", "similarity_options": {"code_language": 3}"#, ""),
            "datasets[0].similarity_options.code_language: ",
        ),
        (pair(r#", "domain": "x y""#, ""), "datasets[0].domain: "),
        (pair(r#", "k": 0.5"#, ""), "datasets[0].k: "),
        (
            pair(r#", "k": true, "identifier": 3"#, ""),
            "datasets[0].identifier: ",
        ),
        (
            pair(r#", "source_checksum": "/srv/x""#, ""),
            "datasets[0].source_checksum: ",
        ),
        (
            manifest("pair", " ", "", ""),
            "datasets[0].path: must be the folder",
        ),
        (manifest("pair", "gone", "", ""), "datasets[0].path: "),
        (manifest("pair", "search", "", ""), "pairs.csv"),
        (
            manifest("retrieval", "search", r#", "selection": "all""#, ""),
            "datasets[0].selection: is a string",
        ),
        (
            manifest(
                "retrieval",
                "search",
                r#", "selection": {"candidate_policy": null}"#,
                "",
            ),
            "datasets[0].selection.candidate_policy: ",
        ),
    ] {
        let message = workshop.refused(&json);
        assert!(message.contains(expected), "{json}\n  {message}");
    }
    for id in ["", "/srv/benchmark"] {
        let manifest = read(pair("", "").as_bytes()).expect("JSON");
        let error = freeze(&manifest, workshop.folder.path(), Some(id)).expect_err(id);
        assert!(error.to_string().starts_with("benchmark_id: "), "{error}");
    }
}

#[test]
fn a_manifest_file_is_named_in_its_refusals() {
    let workshop = Workshop::new();
    let file = workshop.folder.path().join("manifest.json");
    let refused = || freeze_file(&file, None).expect_err("refused").to_string();
    assert!(refused().starts_with(&format!("{}: cannot be read", file.display())));
    workshop.write("manifest.json", r#"{"seed": 1, "seed": 2}"#);
    assert!(refused().starts_with(&format!("{}: line 1, ", file.display())));
    workshop.write(
        "manifest.json",
        &manifest("pair", "pairs", r#", "k": -1"#, ""),
    );
    assert!(refused().starts_with(&format!("{}: datasets[0].k: ", file.display())));
    workshop.write("manifest.json", &manifest("pair", "pairs", "", ""));
    let protocol = freeze_file(&file, None).expect("sound");
    let path = protocol.datasets()[0].path.as_deref().expect("a path");
    assert_eq!(
        path,
        workshop
            .folder
            .path()
            .join("pairs")
            .canonicalize()
            .expect("there")
    );
}

#[test]
fn same_file_candidates_are_not_counted_when_they_are_excluded() {
    let workshop = Workshop::new();
    let count = |fields: &str| {
        let protocol = workshop
            .freeze(&manifest("retrieval", "search", fields, ""))
            .expect("sound");
        let entry = &protocol.datasets()[0];
        (entry.expected_result_count, entry.exclude_same_file)
    };
    assert_eq!(count(""), (2, false));
    assert_eq!(
        count(r#", "selection": {"candidate_policy": "exclude_same_file"}"#),
        (1, true)
    );
    workshop.write("search/corpus.csv", "document_id,file_id\nda,a\n");
    workshop.write(
        "search/qrels.csv",
        "query_id,document_id,relevance\nq,da,0\n",
    );
    let json = manifest(
        "retrieval",
        "search",
        r#", "selection": {"candidate_policy": "exclude_same_file"}"#,
        "",
    );
    assert!(workshop.refused(&json).contains("nothing to score"));
}

#[test]
fn validation_data_is_held_out() {
    let workshop = Workshop::new();
    let policy = r#", "threshold_policy": {"mode": "validation_f1"}, "split_policy": {"group_fields": ["author"]}"#;
    let held = r#", "validation_path": "held", "validation_split": "dev""#;
    let json = manifest("pair", "pairs", held, policy);
    let protocol = workshop.freeze(&json).expect("sound");
    let loaded = protocol.verify_data().expect("unchanged");
    assert_eq!(
        loaded[0]
            .validation
            .as_ref()
            .map(crate::dataset::Dataset::item_count),
        Some(1)
    );

    let no_split = manifest("pair", "pairs", r#", "validation_path": "held""#, policy);
    assert!(
        workshop
            .refused(&no_split)
            .contains("datasets[0].validation_split: is missing")
    );
    workshop.write(
        "held/files.csv",
        "file_id,file_path,author\nc,c.txt,z\nd,d.txt,x\n",
    );
    assert!(
        workshop
            .refused(&json)
            .contains("datasets[0].validation_path: author \"x\"")
    );
    let error = protocol.verify_data().expect_err("changed").to_string();
    assert!(
        error.starts_with("datasets[0].validation_content: "),
        "{error}"
    );
    workshop.write(
        "held/files.csv",
        "file_id,file_path,author\nc,c.txt,z\nd,d.txt, \n",
    );
    assert!(
        workshop
            .refused(&json)
            .contains("line 3 of the validation data: author is blank")
    );
    workshop.write(
        "held/files.csv",
        "file_id,file_path,author\nc,c.txt,z\nd,d.txt,z\n",
    );
    // Not used by any pair, and still the same text.
    workshop.write("held/d.txt", "b");
    assert!(
        workshop
            .refused(&json)
            .contains("file \"d\" has the same text")
    );
}

#[test]
fn changed_data_is_found_by_name() {
    let workshop = Workshop::new();
    let protocol = workshop
        .freeze(&manifest("pair", "pairs", "", ""))
        .expect("sound");
    workshop.write("pairs/b.txt", "changed");
    let error = protocol.verify_data().expect_err("changed").to_string();
    assert!(
        error.starts_with("datasets[0].content: the data in "),
        "{error}"
    );
    let public = Protocol::from_value(&protocol.public_value(), None).expect("sound");
    assert_eq!(public.id(), protocol.id());
    let error = public.verify_data().expect_err("no paths").to_string();
    assert!(error.starts_with("datasets[0].path: is missing"), "{error}");
}
