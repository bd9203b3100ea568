//! The conversation, with the library and with the real program.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test panics when something is amiss and says what it skipped"
)]

use proctor_wire::blind::{BlindDataset, BlindItems};
use proctor_wire::{FromWorker, ToWorker};
use proctor_worker::serve::{Ending, serve};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

fn hello(datasets: u32, options: &Value) -> ToWorker {
    ToWorker::Hello {
        protocol: 1,
        datasets,
        cores: 2,
        method: json!({"kind": "builtin", "configuration": {"similarity_options": options}}),
    }
}

fn levenshtein() -> Value {
    json!({"feature_weights": {"levenshtein": 1}})
}

fn line(message: &ToWorker) -> String {
    serde_json::to_string(message).unwrap() + "\n"
}

/// Everything the worker says to these lines, and how it ended.
fn talk(input: &str) -> (Vec<FromWorker>, Result<(), Ending>) {
    let mut output = Vec::new();
    let ending = serve(input.as_bytes(), &mut output);
    let said = output
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| FromWorker::parse(line).unwrap())
        .collect();
    (said, ending)
}

fn texts(texts: &[&str]) -> Vec<Arc<str>> {
    texts.iter().map(|&text| text.into()).collect()
}

#[test]
fn a_whole_conversation() {
    let pairs = BlindDataset {
        texts: texts(&["kitten", "sitting", "", "kitten "]),
        items: BlindItems::Pairs {
            left: vec![0, 1, 2, 0, 2],
            right: vec![1, 0, 2, 3, 0],
        },
        code_language: None,
    };
    let long = "é".repeat(200_000);
    let matrix = BlindDataset {
        texts: texts(&["ab", &long, "abcd", "b", ""]),
        items: BlindItems::Matrix { queries: 2 },
        code_language: Some("java".into()),
    };
    let mut input = line(&hello(2, &levenshtein()));
    for (number, dataset) in (0..).zip([&pairs, &matrix]) {
        input.extend(dataset.messages(number).map(|message| line(&message)));
    }
    input += &line(&ToWorker::Finish {});
    let (said, ending) = talk(&input);
    ending.unwrap();
    assert!(matches!(&said[0], FromWorker::Hello { protocol: 1, .. }));
    let expected = [
        FromWorker::Scores {
            start: 0,
            values: vec![1.0 - 3.0 / 7.0, 1.0 - 3.0 / 7.0, 1.0, 1.0, 0.0],
        },
        FromWorker::DatasetDone { dataset: 0 },
        FromWorker::Scores {
            start: 0,
            values: vec![0.5, 0.5, 0.0, 0.0, 0.0, 0.0],
        },
        FromWorker::DatasetDone { dataset: 1 },
        FromWorker::Done {},
    ];
    assert_eq!(said[1..], expected);
}

#[test]
fn answers_do_not_depend_on_the_number_of_cores() {
    let words = ["alpha", "beta", "gamma", "delta", "while", "(", ")", ";"];
    let texts: Vec<Arc<str>> = (0_usize..40)
        .map(|n| {
            let words: Vec<&str> = (0..n * 2).map(|i| words[i * i * (n + 1) % 7 % 8]).collect();
            words.join(" ").into()
        })
        .collect();
    let options = json!({
        "feature_weights": {"levenshtein": 0.3, "gst": 0.3, "winnowing": 0.2, "jaro": 0.1, "rapidfuzz_wratio": 0.1},
    });
    let pairs = BlindItems::Pairs {
        left: (0..300).map(|n| n * 7 % 40).collect(),
        right: (0..300).map(|n| n * 13 % 39).collect(),
    };
    let matrix = BlindItems::Matrix { queries: 10 };
    let mut answers = Vec::new();
    for cores in [1, 2, 1000] {
        let mut input =
            line(&hello(2, &options)).replace("\"cores\":2", &format!("\"cores\":{cores}"));
        for (number, items) in (0..).zip([&pairs, &matrix]) {
            let dataset = BlindDataset {
                texts: texts.clone(),
                items: items.clone(),
                code_language: None,
            };
            input.extend(dataset.messages(number).map(|message| line(&message)));
        }
        input += &line(&ToWorker::Finish {});
        let (said, ending) = talk(&input);
        ending.unwrap();
        answers.push(said);
    }
    assert_eq!(answers[0].len(), 6);
    assert!(answers.iter().all(|said| *said == answers[0]));
}

#[test]
fn a_configuration_that_needs_more_is_refused_by_name() {
    let (said, ending) = talk(&line(&hello(
        1,
        &json!({"feature_weights": {"semantic": 1}}),
    )));
    let error = "needs an external worker: semantic similarity without a vector_backend";
    assert_eq!(
        said[1..],
        [FromWorker::WorkerError {
            error: error.to_owned()
        }]
    );
    assert!(matches!(ending, Err(Ending::GaveUp(text)) if text == error));
}

#[test]
fn messages_out_of_order_are_answered_with_what_was_expected() {
    let start = line(&hello(1, &levenshtein()));
    let pair_set = r#"{"type":"dataset","dataset":0,"family":"pair","texts":2,"items":1}"#;
    let one_text = r#"{"type":"texts","start":0,"values":["a"]}"#;
    let both = r#"{"type":"texts","start":0,"values":["a","b"]}"#;
    let pair = r#"{"type":"pairs","start":0,"left":[0],"right":[1]}"#;
    for (lines, error) in [
        (
            vec![r#"{"type":"finish"}"#],
            "expected `dataset` or `finish`, got `finish`",
        ),
        (
            vec![pair_set, r#"{"type":"finish"}"#],
            "expected `texts` or `text_part`, got `finish`",
        ),
        (
            vec![pair_set, one_text, r#"{"type":"score","dataset":0}"#],
            "expected `texts` or `text_part`, got `score`",
        ),
        (
            vec![pair_set, both, r#"{"type":"score","dataset":0}"#],
            "expected `pairs`, got `score`",
        ),
        (
            vec![pair_set, both, pair, r#"{"type":"score","dataset":1}"#],
            "expected `score` of dataset 0, got 1",
        ),
        (
            vec![pair_set, one_text, both],
            "expected text 1, got text 0",
        ),
        (
            vec![
                pair_set,
                r#"{"type":"texts","start":0,"values":["a","b","c"]}"#,
            ],
            "expected at most 2 texts",
        ),
        (
            vec![
                pair_set,
                both,
                r#"{"type":"text_part","index":2,"last":true,"value":""}"#,
            ],
            "expected at most 2 texts",
        ),
        (
            vec![
                pair_set,
                r#"{"type":"text_part","index":0,"last":false,"value":"a"}"#,
                both,
            ],
            "expected the next `text_part`, got `texts`",
        ),
        (
            vec![
                pair_set,
                both,
                r#"{"type":"pairs","start":0,"left":[0],"right":[2]}"#,
            ],
            "expected text numbers below 2, got 2",
        ),
        (
            vec![
                pair_set,
                both,
                r#"{"type":"pairs","start":1,"left":[0],"right":[1]}"#,
            ],
            "expected pair 0, got pair 1",
        ),
        (
            vec![
                pair_set,
                both,
                r#"{"type":"pairs","start":0,"left":[0,1],"right":[1]}"#,
            ],
            "expected as many left as right texts and at most 1 pairs",
        ),
        (
            vec![r#"{"type":"dataset","dataset":1,"family":"pair","texts":2,"items":1}"#],
            "expected dataset 0, got 1",
        ),
        (
            vec![r#"{"type":"dataset","dataset":0,"family":"retrieval","texts":2,"items":1}"#],
            "expected `queries` and `documents` in a retrieval dataset",
        ),
        (
            vec![
                r#"{"type":"dataset","dataset":0,"family":"retrieval","texts":4000000000,"items":1,"queries":4000000000,"documents":4000000000}"#,
            ],
            "expected queries and documents to be the 4000000000 texts, got 4000000000 and 4000000000",
        ),
        (
            vec![r#"{"type":"score"}"#],
            "message `score` lacks the field `dataset`",
        ),
        (
            vec![r#"{"type":"nothing"}"#],
            "unknown message type `nothing`",
        ),
    ] {
        let input = start.clone() + &lines.join("\n") + "\n";
        let (said, ending) = talk(&input);
        assert_eq!(
            said[1..],
            [FromWorker::WorkerError {
                error: error.to_owned()
            }],
            "{lines:?}"
        );
        assert!(matches!(ending, Err(Ending::GaveUp(_))));
    }
    let (said, _) = talk("{\"type\":\"finish\"}\n");
    let error = "expected `hello`, got `finish`".to_owned();
    assert_eq!(said, [FromWorker::WorkerError { error }]);
    let (said, _) = talk(&start.replace("\"protocol\":1", "\"protocol\":2"));
    let error = "expected version 1 of the conversation, got 2".to_owned();
    assert_eq!(said[1..], [FromWorker::WorkerError { error }]);
}

#[test]
fn an_input_that_ends_is_a_closed_pipe() {
    let (said, ending) = talk("");
    assert!(said.is_empty() && matches!(ending, Err(Ending::Closed)));
    let (said, ending) = talk(&line(&hello(1, &levenshtein())));
    assert!(said.len() == 1 && matches!(ending, Err(Ending::Closed)));
}

fn program() -> Child {
    Command::new(env!("CARGO_BIN_EXE_proctor-worker"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Exit code and what was written to standard error.
fn end(mut child: Child) -> (Option<i32>, String) {
    let mut text = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    (child.wait().unwrap().code(), text)
}

#[test]
fn the_program_exits_with_0_only_after_done() {
    let mut child = program();
    let mut input = child.stdin.take().unwrap();
    input
        .write_all((line(&hello(0, &levenshtein())) + &line(&ToWorker::Finish {})).as_bytes())
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let lines: Vec<String> = output.lines().map(Result::unwrap).collect();
    assert_eq!(lines[1], r#"{"type":"done"}"#);
    assert_eq!(end(child), (Some(0), String::new()));
}

#[test]
fn the_program_ends_quietly_on_closed_pipes() {
    // Its input ends.
    let mut child = program();
    drop(child.stdin.take());
    assert_eq!(end(child), (Some(1), String::new()));
    // Nobody reads its output.
    let mut child = program();
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    // The program may be gone before everything is written.
    let _ = input.write_all(line(&hello(0, &levenshtein())).as_bytes());
    assert_eq!(end(child), (Some(1), String::new()));
}

#[test]
fn the_program_says_why_it_gives_up() {
    let mut child = program();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"nonsense\n").unwrap();
    let (code, text) = end(child);
    assert_eq!(code, Some(1));
    assert!(
        text.starts_with("proctor-worker: not a message: "),
        "{text}"
    );
    assert!(!text.contains("panicked"));
}
