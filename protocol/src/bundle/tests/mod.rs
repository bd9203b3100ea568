//! Bundles against vectors made with Matheel 0.7.1, and bundles of our own making.

mod documents;
mod made;
mod scores;
mod verdicts;

use super::{Document, Payload, Validation};
use crate::canonical::Value;
use crate::frozen::Protocol;
use crate::vectors::{shared, shared_json};

const BASE: &str = "interop/matheel";

fn index() -> Option<Value> {
    shared_json(&format!("{BASE}/index.json"))
}

fn payload(relative: &str) -> Value {
    shared_json(&format!("{BASE}/{relative}")).expect("named by the index")
}

fn read_payload(relative: &str) -> Payload {
    let path = shared(&format!("{BASE}/{relative}")).expect("named by the index");
    Payload::open(&path).expect("an object")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{key} in {value:?}"))
}

fn members<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    value.get(key).and_then(Value::as_object).expect(key).iter()
}

fn accept(relative: &str) -> Document {
    let options = Validation::default();
    let accepted = Document::accept(read_payload(relative), &options);
    accepted
        .unwrap_or_else(|finding| panic!("{relative}: {finding}"))
        .0
}

/// A protocol of the vectors.
fn protocol(name: &str) -> Protocol {
    let path = shared(&format!("{BASE}/protocols/{name}.json")).expect("named by the index");
    Protocol::load(&path).expect("sound")
}

/// Steps to a place of a document.
fn place<'a>(mut value: &'a mut Value, path: &[Value]) -> &'a mut Value {
    for step in path {
        value = match step {
            Value::Int(at) => &mut value.as_array_mut().expect("an array")[*at as usize],
            Value::String(key) => value
                .as_object_mut()
                .expect("an object")
                .get_mut(key)
                .expect("a key"),
            other => panic!("{other:?}"),
        };
    }
    value
}

fn apply(document: &mut Value, edit: &Value) {
    let path = edit.get("path").and_then(Value::as_array).expect("a path");
    let value = edit.get("value").cloned().unwrap_or(Value::Null);
    match text(edit, "op") {
        "dup" => {
            let items = place(document, path).as_array_mut().expect("an array");
            let copy = items[value.as_int().expect("a position") as usize].clone();
            items.push(copy);
        }
        op => {
            let (last, parents) = path.split_last().expect("a step");
            match (place(document, parents), last, op) {
                (Value::Array(items), Value::Int(at), "set") => items[*at as usize] = value,
                (Value::Array(items), Value::Int(at), "del") => drop(items.remove(*at as usize)),
                (Value::Object(object), Value::String(key), "set") => {
                    drop(object.insert(key.clone(), value));
                }
                (Value::Object(object), Value::String(key), "del") => drop(object.remove(key)),
                (_, last, op) => panic!("{op} {last:?}"),
            }
        }
    }
}
