use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::python::{casefold, is_word_char, py_float, py_strip};
use super::*;
use crate::object;
use crate::vectors::{shared, shared_json};

fn problem(text: &str) -> String {
    read(text.as_bytes()).unwrap_err().to_string()
}

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|e| e == "json") {
            out.push(path);
        }
    }
    out.sort();
}

#[test]
fn floats_print_as_python_repr() {
    for (value, text) in [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.0, "0.0"),
        (1e-4, "0.0001"),
        (1.25e-4, "0.000125"),
        (1e-5, "1e-05"),
        (1.5e-7, "1.5e-07"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e+16"),
        (1.25e16, "1.25e+16"),
        (9_999_999_999_999_998.0, "9999999999999998.0"),
        (123.456, "123.456"),
        (-0.1, "-0.1"),
        (5e-324, "5e-324"),
        (1.5e-320, "1.5e-320"),
        (f64::MAX, "1.7976931348623157e+308"),
        (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        (1e22, "1e+22"),
        (1e100, "1e+100"),
        // Ties in the last digit, where the standard library differs (dependencies.md, pitfall 2).
        (1_743_746_592_103_460.2, "1743746592103460.2"),
        (0.369_955_166_548_079_25, "0.36995516654807925"),
        (1800.0, "1800.0"),
        (f64::INFINITY, "inf"),
        (f64::NAN, "nan"),
    ] {
        assert_eq!(float_text(value), text);
    }
}

#[test]
fn numbers_keep_their_type_and_their_digits() {
    for (text, value) in [
        ("-0", Value::Int(0)),
        ("-0.0", Value::Float(-0.0)),
        ("1", Value::Int(1)),
        ("1.0", Value::Float(1.0)),
        ("1e2", Value::Float(100.0)),
        ("-9223372036854775808", Value::Int(i64::MIN)),
        (
            "9223372036854775808",
            Value::BigInt("9223372036854775808".into()),
        ),
        (
            "-123456789012345678901234567890",
            Value::BigInt("-123456789012345678901234567890".into()),
        ),
        ("1e-400", Value::Float(0.0)),
    ] {
        assert_eq!(read(text.as_bytes()).unwrap(), value, "{text}");
    }
    let minus_zero = read(b"-0.0").unwrap().as_number().unwrap();
    assert!(minus_zero.is_sign_negative());
    assert_eq!(
        canonical(&read(b"[1,1.0,true,-0,-0.0,1e16,900000000000000000000]").unwrap()),
        "[1,1.0,true,0,-0.0,1e+16,900000000000000000000]"
    );
}

#[test]
fn canonical_text_sorts_by_code_point_and_escapes_little() {
    let value = read(
        "{\"\u{1F600}\": 1, \"\u{E000}\": 2, \"b\": \"\\u0000\\u001f\\b\\f\\n\\r\\t\\\"\\\\\\/\u{7f}\u{2028}é\", \"a\": []}"
            .as_bytes(),
    )
    .unwrap();
    assert_eq!(
        canonical(&value),
        "{\"a\":[],\"b\":\"\\u0000\\u001f\\b\\f\\n\\r\\t\\\"\\\\/\u{7f}\u{2028}é\",\"\u{E000}\":2,\"\u{1F600}\":1}"
    );
    assert_eq!(
        pretty(&value),
        "{\n  \"a\": [],\n  \"b\": \"\\u0000\\u001f\\b\\f\\n\\r\\t\\\"\\\\/\\u007f\\u2028\\u00e9\",\n  \"\\ue000\": 2,\n  \"\\ud83d\\ude00\": 1\n}"
    );
    assert_eq!(
        digest(&object! {}),
        "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    );
}

#[test]
fn what_is_not_json_is_refused_with_its_place() {
    for (text, message) in [
        (
            "",
            "line 1, column 1: the document ends here; expected a value",
        ),
        ("[1,\n 2,]", "line 2, column 4: expected a value, found ']'"),
        (
            "{\"é\": 01}",
            "line 1, column 7: a number must not begin with extra zeros",
        ),
        (
            "{\"a\": 1,\n \"b\": {\"x\":1}, \"a\": 2}",
            "line 2, column 16: the key \"a\" comes twice in one object; keep one",
        ),
        (
            "{\"x\": 0,\n \"y\": [{\"z\":\n  {\"k\": 1,\n \"k\": 2}}]}",
            "line 4, column 2: the key \"k\" comes twice in one object; keep one",
        ),
        (
            "{\"x\": {\"a\": {}, \"b\": {}},\n \"y\": 1,\n \"x\": 2}",
            "line 3, column 2: the key \"x\" comes twice in one object; keep one",
        ),
        (
            "NaN",
            "line 1, column 1: NaN and Infinity are not JSON; a value that is not known is written as null",
        ),
        ("-Infinity", "line 1, column 2: expected a digit, found 'I'"),
        ("1e400", "line 1, column 1: 1e400 is too large for a double"),
        (
            "\"\\ud800\"",
            "line 1, column 2: half of a surrogate pair alone is not a character",
        ),
        (
            "\"\\udc00\\ud800\"",
            "line 1, column 2: half of a surrogate pair alone is not a character",
        ),
        (
            "\"\\ud800\\u0041\"",
            "line 1, column 2: half of a surrogate pair alone is not a character",
        ),
        (
            "\"\\u+123\"",
            "line 1, column 2: `\\u` needs four hexadecimal digits",
        ),
        (
            "\"a\nb\"",
            "line 1, column 3: a control character (0x0a) must be escaped inside a string",
        ),
        ("  \"abc", "line 1, column 3: this string is never closed"),
        (
            "1 2",
            "line 1, column 3: more text after the end of the document",
        ),
        (
            "1.",
            "line 1, column 3: the document ends here; expected a digit after the point",
        ),
        (
            "\u{feff}{}",
            "line 1, column 1: a byte order mark is not allowed; save the file as plain UTF-8",
        ),
        (
            "{\"a\" 1}",
            "line 1, column 6: expected `:` after the key, found '1'",
        ),
        ("tru", "line 1, column 1: expected a value, found 't'"),
    ] {
        assert_eq!(problem(text), message, "{text:?}");
    }
    assert_eq!(
        read(b"[\"\xff\"]").unwrap_err().to_string(),
        "line 1, column 3: byte 0xff is not UTF-8"
    );
    assert!(problem(&"9".repeat(4301)).contains("4301 digits"));
    assert!(read("9".repeat(4300).as_bytes()).is_ok());
}

#[test]
fn equal_short_texts_share_one_allocation() {
    let value = read(br#"[{"key": "text"}, {"key": "text"}]"#).unwrap();
    let texts: Vec<_> = value
        .as_array()
        .unwrap()
        .iter()
        .map(|row| match row.get("key") {
            Some(Value::String(text)) => text.as_ptr(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn limits_hold() {
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(read(deep(64).as_bytes()).is_ok());
    assert_eq!(
        problem(&deep(65)),
        "line 1, column 65: arrays and objects are nested deeper than the 64 levels allowed"
    );
    assert!(problem(&deep(1_000_000)).contains("nested deeper"));
    let limits = Limits {
        nodes: 3,
        bytes: 9,
        depth: 2,
    };
    assert!(read_with(b"[1,2]", limits).is_ok());
    assert_eq!(
        read_with(b"[1,2,3]", limits).unwrap_err().to_string(),
        "line 1, column 6: more than the 3 values allowed in one document"
    );
    assert_eq!(
        read_with(b"[1,2]     ", limits).unwrap_err().to_string(),
        "line 1, column 1: the document has 10 bytes, more than the 9 allowed"
    );
}

#[test]
fn canonical_vectors_read_and_write_back_to_the_same_bytes() {
    let Some(folder) = shared("interop/matheel/canonical") else {
        return;
    };
    let mut paths = Vec::new();
    files(&folder, &mut paths);
    assert!(paths.len() > 30, "{} files", paths.len());
    for path in paths {
        let bytes = fs::read(&path).unwrap();
        let value = read(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(canonical(&value).as_bytes() == bytes, "{}", path.display());
    }
}

#[test]
fn written_documents_of_matheel_write_back_to_the_same_bytes() {
    for folder in ["interop/matheel/results", "interop/matheel/protocols"] {
        let Some(folder) = shared(folder) else { return };
        let mut paths = Vec::new();
        files(&folder, &mut paths);
        assert!(!paths.is_empty());
        for path in paths {
            let bytes = fs::read(&path).unwrap();
            let value = read(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(pretty(&value).as_bytes() == bytes, "{}", path.display());
            let mut streamed = Vec::new();
            write_pretty(&mut streamed, &value).unwrap();
            assert!(streamed == bytes, "{}", path.display());
        }
    }
}

#[test]
fn protocol_ids_are_digests_of_the_canonical_files() {
    let Some(index) = shared_json("interop/matheel/index.json") else {
        return;
    };
    let datasets = index.get("datasets").and_then(Value::as_object).unwrap();
    for (name, entry) in datasets.iter() {
        let file = entry.get("canonical").and_then(Value::as_str).unwrap();
        let value = shared_json(&format!("interop/matheel/{file}")).unwrap();
        let expected = entry.get("content").and_then(|c| c.get("sha256"));
        assert_eq!(
            Some(digest(&value).as_str()),
            expected.and_then(Value::as_str),
            "{name}"
        );
    }
}

#[test]
fn python_text_rules() {
    assert_eq!(py_strip("\u{1c}\u{1f}\u{a0} a b \u{3000}\n"), "a b");
    assert_eq!(casefold("Straße ΣΣς"), "strasse σσσ");
    for (character, word) in [
        ('_', true),
        ('é', true),
        ('²', true),
        ('٣', true),
        ('\u{345}', false),
        ('-', false),
    ] {
        assert_eq!(is_word_char(character), word, "{character:?}");
    }
    // What CPython 3.11 answers to float(text).
    for (text, value) in [
        (" 1.5\n", Some(1.5)),
        ("1_000.5", Some(1000.5)),
        ("1e1_0", Some(1e10)),
        ("+1.", Some(1.0)),
        (".5", Some(0.5)),
        ("-0", Some(-0.0)),
        ("٣.٥", Some(3.5)),
        ("\u{1d7d0}", Some(2.0)),
        ("\u{a0}7\u{2003}", Some(7.0)),
        ("1e400", Some(f64::INFINITY)),
        ("-Infinity", Some(f64::NEG_INFINITY)),
        ("1__0", None),
        ("_1", None),
        ("1_", None),
        ("1_.5", None),
        ("1._5", None),
        ("0x10", None),
        ("", None),
        (".", None),
        ("e5", None),
        ("1 2", None),
        ("½", None),
        ("1\0", None),
        ("in_f", None),
    ] {
        assert_eq!(py_float(text), value, "{text:?}");
    }
    assert!(py_float("nAn").unwrap().is_nan());
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::Int),
        "-?[1-9][0-9]{19,40}".prop_map(|digits| Value::BigInt(digits.into())),
        any::<f64>()
            .prop_filter("finite", |x| x.is_finite())
            .prop_map(Value::Float),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(value in any_value()) {
        let text = canonical(&value);
        let back = read(text.as_bytes()).unwrap();
        prop_assert_eq!(&back, &value);
        prop_assert_eq!(canonical(&back), text);
        let text = pretty(&value);
        prop_assert!(text.is_ascii());
        let back = read(text.as_bytes()).unwrap();
        prop_assert_eq!(&back, &value);
        let mut streamed = Vec::new();
        write_pretty(&mut streamed, &value).unwrap();
        prop_assert_eq!(String::from_utf8(streamed).unwrap(), text);
    }

    #[test]
    fn what_another_reader_accepts_reads_the_same(value in any_value()) {
        let text = canonical(&value);
        let other: serde_json::Value = serde_json::from_str(&text).unwrap();
        let again = serde_json::to_vec(&other).unwrap();
        prop_assert!(read(&again).is_ok());
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = read(&bytes);
    }

    #[test]
    fn no_json_like_text_makes_the_reader_panic(text in r#"[\[\]{}",:\\u0-9d8e.truefalsn\-+ ]{0,40}"#) {
        if let Ok(value) = read(text.as_bytes()) {
            prop_assert_eq!(read(canonical(&value).as_bytes()).unwrap(), value);
        }
    }

    #[test]
    fn floats_read_back_bit_for_bit(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        if value.is_finite() {
            let text = float_text(value);
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), bits);
            prop_assert!(text.contains('.') || text.contains('e'));
        }
    }
}

#[test]
fn keys_that_come_again_are_read_like_the_first_time() {
    let value = read(br#"[{"a":1,"b\"c":2},{"a":3,"b\"c":4},{"ab":5},{"a":6,"b":7}]"#).unwrap();
    assert_eq!(
        canonical(&value),
        r#"[{"a":1,"b\"c":2},{"a":3,"b\"c":4},{"ab":5},{"a":6,"b":7}]"#
    );
    // The second object would repeat the keys of the first if its quote were escaped.
    assert!(read(br#"[{"b\"c":2},{"b"c":4}]"#).is_err());
    assert!(read(br#"[{"a":1,"a":2}]"#).is_err());
    assert!(read(br#"[{"a":1},{"a":1,"a":2}]"#).is_err());
}

#[test]
fn the_items_of_one_array_can_be_taken_one_by_one() {
    let mut items = Vec::new();
    let text = br#"{"rows":[{"a":1},2,[]],"x":{"rows":[3]}}"#;
    let value = read_streaming(text, Limits::default(), "rows", &mut |item| {
        items.push(item);
    });
    assert_eq!(
        canonical(&value.unwrap()),
        r#"{"rows":[],"x":{"rows":[3]}}"#
    );
    assert_eq!(canonical(&Value::Array(items)), r#"[{"a":1},2,[]]"#);
    let value = read_streaming(
        br#"{"rows":null}"#,
        Limits::default(),
        "rows",
        &mut |_| panic!(),
    );
    assert_eq!(canonical(&value.unwrap()), r#"{"rows":null}"#);
    for broken in [
        r#"{"rows":[1"#,
        r#"{"rows":[1,]}"#,
        r#"{"rows":[],"rows":[]}"#,
    ] {
        let result = read_streaming(broken.as_bytes(), Limits::default(), "rows", &mut |_| {});
        assert!(result.is_err(), "{broken}");
    }
    let shallow = Limits {
        depth: 2,
        ..Limits::default()
    };
    assert!(read_streaming(br#"{"rows":[[1]]}"#, shallow, "rows", &mut |_| {}).is_err());
}
