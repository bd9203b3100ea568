use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use proctor_wire::blind::BlindItems;

use super::*;
use crate::canonical::Value;
use crate::vectors::{shared, shared_json};

fn family(entry: &Value) -> Family {
    match text(entry, "task_family") {
        "pair" => Family::Pair,
        "retrieval" => Family::Retrieval,
        other => panic!("{other}"),
    }
}

fn text<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry.get(key).and_then(Value::as_str).unwrap()
}

fn load_vector(entry: &Value) -> Result<Dataset, DatasetError> {
    let root = shared(&format!("interop/matheel/{}", text(entry, "root"))).unwrap();
    Dataset::load(&root, family(entry))
}

fn write_dataset(root: &Path, files: &[(&str, &str)]) {
    for (name, contents) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }
}

fn pair_error(files: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    write_dataset(
        folder.path(),
        &[
            ("files.csv", "file_id,file_path\na,a.txt\nb,b.txt\n"),
            ("pairs.csv", "left_id,right_id,label\na,b,1\n"),
            ("a.txt", "A"),
            ("b.txt", "B"),
        ],
    );
    write_dataset(folder.path(), files);
    let error = Dataset::load(folder.path(), Family::Pair)
        .unwrap_err()
        .to_string();
    error.replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn content_fingerprints_are_those_of_matheel() {
    let Some(index) = shared_json("interop/matheel/index.json") else {
        return;
    };
    let mut seen = 0;
    for group in ["datasets", "fingerprint_cases"] {
        for (name, entry) in index.get(group).and_then(Value::as_object).unwrap().iter() {
            let dataset = load_vector(entry).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(
                Some(&dataset.content().to_value()),
                entry.get("content"),
                "{name}"
            );
            seen += 1;
        }
    }
    assert_eq!(seen, 23);
}

#[test]
fn what_matheel_refuses_is_refused_with_file_and_line() {
    let Some(index) = shared_json("interop/matheel/index.json") else {
        return;
    };
    let cases = index
        .get("dataset_errors")
        .and_then(Value::as_object)
        .unwrap();
    for (name, entry) in cases.iter() {
        let answer = load_vector(entry);
        let accepted = entry.get("outcome").and_then(Value::as_str) == Some("accepted");
        // A first row wider than the header becomes a hidden index there; here every wide row is refused.
        if name == "odd_implicit_index" {
            assert!(accepted);
            let message = answer.unwrap_err().to_string();
            assert!(
                message.contains("pairs.csv, line 2: the row has more than"),
                "{message}"
            );
            continue;
        }
        match answer {
            Ok(_) => assert!(accepted, "{name} must be refused"),
            Err(error) => {
                assert!(!accepted, "{name}: {error}");
                let message = error.to_string();
                assert!(
                    message.contains(".csv") || message.contains("metadata.json"),
                    "{message}"
                );
            }
        }
    }
}

#[test]
fn messages_name_the_file_the_line_and_the_fault() {
    for (files, message) in [
        (
            &[(
                "files.csv",
                "file_id,file_path\na,a.txt\n\n b ,x/../b.txt\n",
            )][..],
            "files.csv, line 4: file_path \"x/../b.txt\" must be relative to the dataset's folder and stay inside it",
        ),
        (
            &[("files.csv", "file_id,file_path\na,a.txt\nb,c.txt\n")],
            "files.csv, line 3: the file \"c.txt\" does not exist",
        ),
        (
            &[("files.csv", "file_id,file_path\na,a.txt\n a,b.txt\n")],
            "files.csv, line 3: file_id \"a\" comes twice; it is already on line 2",
        ),
        (
            &[("files.csv", "file_id,file_path\na,.\nb,b.txt\n")],
            "files.csv, line 2: file_path must not be empty",
        ),
        (
            &[
                ("files.csv", "file_id,file_path\na,d\nb,b.txt\n"),
                ("d/e", ""),
            ],
            "files.csv, line 2: the file \"d\" is a directory, not a regular file",
        ),
        (
            &[("pairs.csv", "left_id,right_id,label\na,b,1\na,c,0\n")],
            "pairs.csv, line 3: right_id \"c\" is no file_id of files.csv",
        ),
        (
            &[("pairs.csv", "left_id,right_id\na,b\n")],
            "pairs.csv: missing required column label; the header has left_id, right_id",
        ),
        (
            &[("pairs.csv", "left_id,right_id,label\na,b,maybe\n")],
            "pairs.csv, line 2: label must be 0 or 1, not \"maybe\"",
        ),
        (
            &[("pairs.csv", "left_id,right_id,label\n\"a\nb\",b,1\n\"a,b\n")],
            "pairs.csv, line 4: a quote is opened here and never closed",
        ),
        (
            &[("pairs.csv", "left_id,right_id,label\na,b,1,\n")],
            "pairs.csv, line 2: the row has more than 3 fields; quote a field that holds a comma",
        ),
        (
            &[("pairs.csv", "")],
            "pairs.csv, line 1: the file is empty; the first line must name the columns",
        ),
        (
            &[("metadata.json", "{\"task_type\":\n 3}")],
            "metadata.json: task_type must be a string, not an integer",
        ),
    ] {
        assert_eq!(pair_error(files), message);
    }
    let folder = tempfile::tempdir().unwrap();
    write_dataset(folder.path(), &[("files.csv/x", "")]);
    let load = || {
        Dataset::load(folder.path(), Family::Retrieval)
            .unwrap_err()
            .to_string()
    };
    assert!(
        load().ends_with("files.csv: is a directory, not a regular file"),
        "{}",
        load()
    );
    fs::remove_dir_all(folder.path().join("files.csv")).unwrap();
    assert!(
        load()
            .ends_with("files.csv: the file is missing; a dataset of this family needs files.csv"),
        "{}",
        load()
    );
    let missing = Dataset::load(Path::new("/nonexistent/x"), Family::Pair).unwrap_err();
    assert!(
        missing.to_string().starts_with("/nonexistent/x: "),
        "{missing}"
    );
}

#[cfg(unix)]
#[test]
fn links_may_not_leave_the_folder() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.txt"), "S").unwrap();
    let folder = tempfile::tempdir().unwrap();
    write_dataset(
        folder.path(),
        &[
            ("files.csv", "file_id,file_path\na,in/a.txt\nb,link.txt\n"),
            ("pairs.csv", "left_id,right_id,label\na,b,1\n"),
            ("real/a.txt", "A"),
        ],
    );
    let link = |target: &Path, name: &str| {
        let path = folder.path().join(name);
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink(target, path).unwrap();
    };
    link(Path::new("real"), "in");
    link(Path::new("in/a.txt"), "link.txt");
    let Dataset::Pair(inside) = Dataset::load(folder.path(), Family::Pair).unwrap() else {
        panic!();
    };
    assert_eq!(inside.texts, ["A".into(), "A".into()]);
    link(&outside.path().join("secret.txt"), "link.txt");
    let error = Dataset::load(folder.path(), Family::Pair).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("files.csv, line 3: file_path \"link.txt\" leads out"),
        "{error}"
    );
    link(Path::new("in/a.txt"), "link.txt");
    link(outside.path(), "in");
    let error = Dataset::load(folder.path(), Family::Pair).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("files.csv, line 2: file_path \"in/a.txt\" leads out"),
        "{error}"
    );
}

/// A retrieval dataset in which every name carries `mark`, and a pair dataset over the same files.
fn marked(root: &Path, mark: &str, labels: [u8; 3], grade: &str) -> (Dataset, Dataset) {
    let [a, b, c] = ["a", "b", "c"].map(|name| format!("{mark}{name}"));
    let file = |id: &str| format!("{id},{mark}dir/{id}.txt,{mark}group\n");
    let files = format!(
        "file_id,file_path,{mark}column\n{}{}{}",
        file(&a),
        file(&b),
        file(&c)
    );
    let pairs = format!(
        "left_id,right_id,label,{mark}column\n{a},{b},{},{mark}\n{b},{c},{},{mark}\n{c},{a},{},{mark}\n",
        labels[0], labels[1], labels[2]
    );
    write_dataset(
        root,
        &[
            ("pair/files.csv", &files),
            ("pair/pairs.csv", &pairs),
            ("retrieval/files.csv", &files),
            (
                "retrieval/queries.csv",
                &format!("query_id,file_id\n{mark}q1,{a}\n{mark}q2,{b}\n"),
            ),
            (
                "retrieval/corpus.csv",
                &format!("document_id,file_id\n{mark}d1,{c}\n{mark}d2,{a}\n{mark}d3,{b}\n"),
            ),
            (
                "retrieval/qrels.csv",
                &format!("query_id,document_id,relevance\n{mark}q1,{mark}d2,{grade}\n"),
            ),
        ],
    );
    for kind in ["pair", "retrieval"] {
        for (id, text) in [(&a, "alpha"), (&b, "beta"), (&c, "alpha")] {
            write_dataset(root, &[(&format!("{kind}/{mark}dir/{id}.txt"), text)]);
        }
    }
    (
        Dataset::load(&root.join("pair"), Family::Pair).unwrap(),
        Dataset::load(&root.join("retrieval"), Family::Retrieval).unwrap(),
    )
}

#[test]
fn nothing_but_texts_and_numbers_reaches_a_worker() {
    let folder = tempfile::tempdir().unwrap();
    let one = marked(&folder.path().join("1"), "SECRET", [1, 0, 0], "3");
    let two = marked(&folder.path().join("2"), "hidden", [0, 1, 1], "0.5");
    for (first, second) in [(&one.0, &two.0), (&one.1, &two.1)] {
        let blind = |dataset| Blind::new(dataset, "protocol", "0/test", "method", Some("java"));
        let (first, second) = (blind(first), blind(second));
        // Other names, paths, labels, grades and columns over the same texts: not one byte differs.
        assert_eq!(first.dataset, second.dataset);
        let lines: Vec<String> = first
            .dataset
            .messages(0)
            .map(|message| serde_json::to_string(&message).unwrap())
            .collect();
        let said = lines.concat();
        assert!(said.contains("alpha") && said.contains("java"));
        for word in [
            "SECRET",
            "label",
            "relevance",
            "group",
            "path",
            "_id",
            ".txt",
        ] {
            assert!(!said.contains(word), "{word} in {said}");
        }
    }
}

#[test]
fn scores_come_back_to_the_items_they_belong_to() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = String::from("file_id,file_path\n");
    let mut pairs = String::from("left_id,right_id,label\n");
    let mut queries = String::from("query_id,file_id\n");
    let mut corpus = String::from("document_id,file_id\n");
    for n in 0..40 {
        let _ = writeln!(files, "f{n},f{n}.txt");
        let _ = writeln!(pairs, "f{n},f{},0", (n * 7 + 3) % 40);
        let _ = writeln!(corpus, "d{n},f{n}");
        if n % 4 == 0 {
            let _ = writeln!(queries, "q{n},f{n}");
        }
        fs::write(folder.path().join(format!("f{n}.txt")), n.to_string()).unwrap();
    }
    write_dataset(
        folder.path(),
        &[
            ("files.csv", &files),
            ("pairs.csv", &pairs),
            ("queries.csv", &queries),
            ("corpus.csv", &corpus),
            ("qrels.csv", "query_id,document_id,relevance\n"),
        ],
    );
    // A worker that scores left * 100 + right by what it reads.
    let number =
        |blind: &Blind, text: u32| -> f64 { blind.dataset.texts[text as usize].parse().unwrap() };
    let pair = Dataset::load(folder.path(), Family::Pair).unwrap();
    let blind = Blind::new(&pair, "p", "0/test", "m", None);
    let BlindItems::Pairs { left, right } = &blind.dataset.items else {
        panic!();
    };
    let scores: Vec<f64> = left
        .iter()
        .zip(right)
        .map(|(&l, &r)| number(&blind, l) * 100.0 + number(&blind, r))
        .collect();
    let expected: Vec<f64> = (0..40)
        .map(|n| f64::from(n * 100 + (n * 7 + 3) % 40))
        .collect();
    assert_ne!(scores, expected);
    assert_eq!(blind.to_frozen(&scores), expected);

    let retrieval = Dataset::load(folder.path(), Family::Retrieval).unwrap();
    let blind = Blind::new(&retrieval, "p", "1/test", "m", None);
    let BlindItems::Matrix { queries } = blind.dataset.items else {
        panic!();
    };
    assert_eq!(queries, 10);
    assert_eq!(blind.dataset.item_count(), retrieval.item_count());
    let mut scores = Vec::new();
    for query in 0..queries {
        for document in queries..blind.dataset.texts.len() as u32 {
            scores.push(number(&blind, query) * 100.0 + number(&blind, document));
        }
    }
    let expected: Vec<f64> = (0..10)
        .flat_map(|q| (0..40).map(move |d| f64::from(q * 400 + d)))
        .collect();
    assert_ne!(scores, expected);
    assert_eq!(blind.to_frozen(&scores), expected);

    // Another method, role or protocol asks in another order.
    let order = |protocol, role, method| Blind::new(&pair, protocol, role, method, None).dataset;
    assert_eq!(order("p", "0/test", "m"), order("p", "0/test", "m"));
    assert_ne!(order("p", "0/test", "m"), order("p", "0/test", "n"));
    assert_ne!(order("p", "0/test", "m"), order("p", "0/validation", "m"));
    assert_ne!(order("p", "0/test", "m"), order("q", "0/test", "m"));
}

#[test]
fn empty_tables_are_blind_too() {
    let folder = tempfile::tempdir().unwrap();
    write_dataset(
        folder.path(),
        &[
            ("files.csv", "file_id,file_path\n"),
            ("pairs.csv", "left_id,right_id,label\n"),
            ("queries.csv", "query_id,file_id\n"),
            ("corpus.csv", "document_id,file_id\n"),
            ("qrels.csv", "query_id,document_id,relevance\n"),
        ],
    );
    for family in [Family::Pair, Family::Retrieval] {
        let dataset = Dataset::load(folder.path(), family).unwrap();
        let blind = Blind::new(&dataset, "p", "0/test", "m", None);
        assert_eq!(blind.dataset.item_count(), 0);
        assert!(blind.to_frozen(&[]).is_empty());
    }
}

#[test]
fn what_a_dataset_says_of_itself_and_where_it_lies_is_not_content() {
    let base = [
        (
            "files.csv",
            "file_id,file_path,text\na,a.txt,x\nb,b.txt,y\n",
        ),
        ("pairs.csv", "left_id,right_id,label,note\na,b,1,n\n"),
        ("a.txt", "A\r\n"),
        ("b.txt", "B"),
    ];
    let content = |changes: &[(&str, &str)]| {
        let folder = tempfile::tempdir().unwrap();
        write_dataset(folder.path(), &base);
        write_dataset(folder.path(), changes);
        Dataset::load(folder.path(), Family::Pair)
            .unwrap()
            .content()
    };
    // The canonical text, by hand.
    let text = r#"{"files":[{"file_id":"a","text":"A\n"},{"file_id":"b","text":"B"}],"pairs":[{"label":1,"left_id":"a","note":"n","right_id":"b"}]}"#;
    assert_eq!(
        content(&[]).sha256,
        crate::canonical::sha256_hex(text.as_bytes())
    );
    assert_eq!(content(&[]).counts, [("files", 2), ("pairs", 1)]);
    for same in [
        &[
            (
                "files.csv",
                "text,file_path,file_id\r\n,x/a.txt,a\r\n,b.txt,b",
            ),
            ("x/a.txt", "A\n"),
        ][..],
        &[("pairs.csv", "note,label,right_id,left_id\n\nn,Yes, b ,a\n")],
        &[("metadata.json", "{\"task_type\": \"clones\"}")],
    ] {
        assert_eq!(content(same), content(&[]), "{same:?}");
    }
    for other in [
        &[("files.csv", "file_id,file_path\nb,b.txt\na,a.txt\n")][..],
        &[("pairs.csv", "left_id,right_id,label,note\na,b,0,n\n")],
        &[("pairs.csv", "left_id,right_id,label,note\na,b,1, n\n")],
        &[("pairs.csv", "left_id,right_id,label\na,b,1\n")],
        &[("a.txt", "A")],
    ] {
        assert_ne!(content(other).sha256, content(&[]).sha256, "{other:?}");
    }
}

#[test]
fn real_programs_have_the_fingerprints_of_their_frozen_protocol() {
    let Some(protocol) = shared_json("interop/irplag/protocol.public.json") else {
        return;
    };
    let entries = protocol.get("datasets").and_then(Value::as_array).unwrap();
    assert_eq!(entries.len(), 2);
    for entry in entries {
        let folder = match family(entry) {
            Family::Pair => "data/irplag/pairs",
            Family::Retrieval => "data/irplag/retrieval",
        };
        let Some(root) = shared(folder) else { return };
        let dataset = Dataset::load(&root, family(entry)).unwrap();
        assert_eq!(Some(&dataset.content().to_value()), entry.get("content"));
    }
}

#[test]
fn the_thread_count_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = String::from("file_id,file_path\n");
    for n in 0..200 {
        let _ = writeln!(files, "f{n},f{n}.txt");
        // Two rows are at fault; the first one must be named.
        if n != 60 && n != 170 {
            fs::write(folder.path().join(format!("f{n}.txt")), n.to_string()).unwrap();
        }
    }
    write_dataset(
        folder.path(),
        &[
            ("files.csv", &files),
            ("pairs.csv", "left_id,right_id,label\n"),
        ],
    );
    let load = |threads| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap()
            .install(|| Dataset::load(folder.path(), Family::Pair))
    };
    for threads in [1, 2, 8] {
        let error = load(threads).unwrap_err().to_string();
        assert!(
            error.ends_with("files.csv, line 62: the file \"f60.txt\" does not exist"),
            "{error}"
        );
    }
    for n in [60, 170] {
        fs::write(folder.path().join(format!("f{n}.txt")), "x").unwrap();
    }
    let one = load(1).unwrap().content();
    assert_eq!(load(8).unwrap().content(), one);
}
