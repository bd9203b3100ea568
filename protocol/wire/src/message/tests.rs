use super::*;

#[test]
fn each_message_of_the_supervisor_reads_back() {
    let messages = [
        ToWorker::Hello {
            protocol: 1,
            datasets: 2,
            cores: 4,
            method: serde_json::json!({"kind": "builtin"}),
        },
        ToWorker::Dataset {
            dataset: 0,
            family: Family::Retrieval,
            texts: 3,
            items: 2,
            queries: Some(1),
            documents: Some(2),
            code_language: None,
        },
        ToWorker::Texts {
            start: 0,
            values: vec!["é\u{0}\n".into()],
        },
        ToWorker::TextPart {
            index: 1,
            last: true,
            value: String::new(),
        },
        ToWorker::Pairs {
            start: 5_000_000_000,
            left: vec![0],
            right: vec![1],
        },
        ToWorker::Score { dataset: 0 },
        ToWorker::Finish {},
    ];
    for message in messages {
        let line = serde_json::to_string(&message).unwrap();
        assert!(line.starts_with(&format!("{{\"type\":\"{}\"", message.kind())));
        assert_eq!(ToWorker::parse(line.as_bytes()), Ok(message));
    }
    for bad in [
        r#"{"type":"score"}"#,
        r#"{"type":"score","dataset":0,"items":1}"#,
        r#"{"type":"texts","start":5000000000,"values":[]}"#,
        r#"{"type":"score","dataset":0,"label":1}"#,
    ] {
        assert!(ToWorker::parse(bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn each_message_reads_back() {
    let messages = [
        FromWorker::Hello {
            protocol: 1,
            worker: "w 1".into(),
        },
        FromWorker::Scores {
            start: 3,
            values: vec![0.1, -0.0, 1e300],
        },
        FromWorker::DatasetDone { dataset: 0 },
        FromWorker::DatasetError {
            dataset: 2,
            error: "no".into(),
        },
        FromWorker::Progress { items: 7 },
        FromWorker::WorkerError { error: "x".into() },
        FromWorker::Done {},
    ];
    for message in messages {
        let line = serde_json::to_vec(&message).unwrap();
        assert_eq!(FromWorker::parse(&line), Ok(message));
    }
}

#[test]
fn a_score_is_a_finite_json_number() {
    for bad in [
        "NaN",
        "nan",
        "Infinity",
        "-Infinity",
        "1e999",
        "null",
        "\"0.5\"",
        "true",
        "[1]",
    ] {
        let line = format!("{{\"type\":\"scores\",\"start\":0,\"values\":[{bad}]}}");
        assert!(FromWorker::parse(line.as_bytes()).is_err(), "{bad}");
    }
    let line = br#"{"type":"scores","start":0,"values":[1,0.36995516654807925]}"#;
    assert_eq!(
        FromWorker::parse(line),
        Ok(FromWorker::Scores {
            start: 0,
            values: vec![1.0, 0.369_955_166_548_079_25]
        })
    );
}

#[test]
fn foreign_fields_duplicates_and_types_are_refused() {
    for bad in [
        r#"{"type":"done","score":1}"#,
        r#"{"type":"done","items":1}"#,
        r#"{"type":"done","type":"done"}"#,
        r#"{"type":"scores","start":0}"#,
        r#"{"type":"metric"}"#,
        "[]",
        "",
        r#"{"type":"done"}{"type":"done"}"#,
        r#"{"type":"scores","start":-1,"values":[]}"#,
    ] {
        assert!(FromWorker::parse(bad.as_bytes()).is_err(), "{bad}");
    }
}
