//! Other load beside a method, in a few words.

use crate::canonical::Value;

/// `3 other processes used 1.7 of 2 cores`, with the verb given, from the `other_load` of a `measured` record; `None` when
/// it was not heavy or is not known.
pub fn other_load(measured: &Value, verb: &str) -> Option<String> {
    let load = measured.get("other_load")?;
    let heavy = load.get("heavy")?.as_bool() == Some(true);
    heavy.then(|| other_load_text(load, [verb, verb])).flatten()
}

/// As [`other_load`], of an `other_load` of any weight, with the verb for one and for many.
pub fn other_load_text(load: &Value, verbs: [&str; 2]) -> Option<String> {
    let cores = load.get("cores")?.as_number()?;
    let of = load.get("of_cores")?.as_int()?;
    let least = match load.get("kind")?.as_str()? {
        "measured" => "",
        _ => "at least ",
    };
    // Many short processes come and go unseen: then those that are left do not stand for all.
    let seen = load.get("seen_cores").and_then(Value::as_number);
    let all_seen = seen.is_some_and(|seen| seen >= 0.8 * cores);
    let count = load.get("heavy_processes").and_then(Value::as_int);
    let [one, many] = verbs;
    let (who, verb) = match count.filter(|_| all_seen) {
        Some(1) => ("1 other process".to_owned(), one),
        Some(count) if count > 1 => (format!("{count} other processes"), many),
        _ => ("other processes".to_owned(), many),
    };
    let noun = if of == 1 { "core" } else { "cores" };
    let places = if cores < 0.95 { 2 } else { 1 };
    Some(format!(
        "{who} {verb} {least}{cores:.places$} of {of} {noun}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    fn measured(heavy: Value, kind: &str, count: Option<i64>, of: i64) -> Value {
        seen(heavy, kind, count, of, 1.5)
    }

    fn seen(heavy: Value, kind: &str, count: Option<i64>, of: i64, seen: f64) -> Value {
        object! { "other_load" => object! {
            "heavy" => heavy, "cores" => 1.66, "of_cores" => of, "kind" => kind, "heavy_processes" => count,
            "seen_cores" => seen,
        } }
    }

    #[test]
    fn only_heavy_load_is_told() {
        let told = |value: &Value| other_load(value, "used");
        let value = measured(true.into(), "measured", Some(3), 2);
        let text = "3 other processes used 1.7 of 2 cores";
        assert_eq!(told(&value).as_deref(), Some(text));
        let value = measured(true.into(), "lower bound", Some(1), 1);
        let text = "1 other process used at least 1.7 of 1 core";
        assert_eq!(told(&value).as_deref(), Some(text));
        for count in [Some(0), None] {
            let value = measured(true.into(), "measured", count, 2);
            let text = "other processes used 1.7 of 2 cores";
            assert_eq!(told(&value).as_deref(), Some(text));
        }
        let value = seen(true.into(), "measured", Some(3), 2, 0.9);
        let text = "other processes used 1.7 of 2 cores";
        assert_eq!(told(&value).as_deref(), Some(text));
        for quiet in [false.into(), Value::Null, "true".into()] {
            assert_eq!(told(&measured(quiet, "measured", Some(3), 2)), None);
        }
        assert_eq!(told(&Value::Null), None);
        assert_eq!(told(&object! { "other_load" => 1i64 }), None);
    }
}
