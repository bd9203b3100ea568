//! The state of the machine at one instant, as far as the kernel tells.

use super::texts::{self, Garbled, Pressure};
use proctor_protocol::canonical::{Object, Value};
use proctor_protocol::object;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::OnceLock;

/// More than any file that is read here has.
const MOST_BYTES: u64 = 1 << 20;
/// Frequency and governor are looked at on so many cores.
const CORES_LOOKED_AT: usize = 16;
const CPU: &str = "/sys/devices/system/cpu";

/// A number, or why it is not known.
pub(super) type Reading<T> = Result<T, String>;

/// Reads a file of the kernel's.
pub(super) fn read(path: &str) -> Reading<String> {
    read_bytes(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// As [`read`], of a file that may hold bytes that are no text.
fn read_bytes(path: impl AsRef<Path>) -> Reading<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|error| reason(&error))
}

/// Why a file gives nothing, without its path: records are published.
pub(super) fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "the kernel does not give it here".into(),
        ErrorKind::PermissionDenied => "this user may not read it".into(),
        _ => error.to_string(),
    }
}

fn parsed<T>(path: &str, parse: impl FnOnce(&str) -> Result<T, Garbled>) -> Reading<T> {
    parse(&read(path)?).map_err(|error| error.to_string())
}

/// Readings as an object: what is not known is null, and `unknown` says why.
#[derive(Default)]
pub(super) struct Readings {
    known: Object,
    unknown: Object,
}

impl Readings {
    pub(super) fn put<T: Into<Value>>(&mut self, name: &str, reading: Reading<T>) {
        match reading {
            Ok(value) => {
                self.known.insert(name, value);
            }
            Err(reason) => {
                self.known.insert(name, Value::Null);
                self.unknown.insert(name, reason);
            }
        }
    }

    pub(super) fn into_value(mut self) -> Value {
        self.known.insert("unknown", self.unknown);
        Value::Object(self.known)
    }
}

/// What changes from one moment to the next.
pub(super) fn now(cores: &[usize]) -> Value {
    let mut readings = Readings::default();
    let load = parsed("/proc/loadavg", texts::load_average);
    readings.put("load_average", load.map(|load| load.to_vec()));
    for resource in ["cpu", "memory", "io"] {
        let pressure = parsed(&format!("/proc/pressure/{resource}"), texts::pressure);
        readings.put(
            &format!("{resource}_pressure"),
            pressure.map(pressure_value),
        );
    }
    let swap = parsed("/proc/meminfo", texts::swap_used);
    readings.put(
        "swap_used_bytes",
        swap.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
    );
    readings.put("megahertz", frequency(cores));
    readings.into_value()
}

fn pressure_value(pressure: Pressure) -> Value {
    object! { "some_avg10" => pressure.some, "full_avg10" => pressure.full }
}

/// Lowest and highest frequency of the cores.
fn frequency(cores: &[usize]) -> Reading<Value> {
    let each: Vec<f64> = looked_at(cores)
        .map(|core| {
            parsed(
                &format!("{CPU}/cpu{core}/cpufreq/scaling_cur_freq"),
                texts::megahertz,
            )
        })
        .collect::<Result<_, _>>()?;
    let lowest = each
        .iter()
        .copied()
        .reduce(f64::min)
        .ok_or("no core is known")?;
    let highest = each.iter().copied().fold(lowest, f64::max);
    Ok(object! { "lowest" => lowest, "highest" => highest })
}

fn looked_at(cores: &[usize]) -> impl Iterator<Item = usize> {
    cores.iter().copied().take(CORES_LOOKED_AT)
}

/// What belongs to the machine and its settings.
pub(super) fn machine(cores: &[usize]) -> Value {
    let mut readings = Readings::default();
    readings.put("cpu_model", model().clone());
    readings.put("governor", governor(cores));
    readings.put("turbo", turbo());
    let huge_pages = parsed("/sys/kernel/mm/transparent_hugepage/enabled", texts::chosen);
    readings.put("transparent_huge_pages", huge_pages);
    let randomization = parsed("/proc/sys/kernel/randomize_va_space", texts::randomization);
    readings.put("address_randomization", randomization);
    readings.into_value()
}

/// The text of all cores can be long, and it does not change.
fn model() -> &'static Reading<String> {
    static MODEL: OnceLock<Reading<String>> = OnceLock::new();
    MODEL.get_or_init(|| parsed("/proc/cpuinfo", texts::processor))
}

/// The governor of the cores; all of them when they differ.
fn governor(cores: &[usize]) -> Reading<String> {
    let mut names: Vec<String> = looked_at(cores)
        .map(|core| {
            parsed(
                &format!("{CPU}/cpu{core}/cpufreq/scaling_governor"),
                texts::word,
            )
        })
        .collect::<Result<_, _>>()?;
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return Err("no core is known".into());
    }
    Ok(names.join(", "))
}

fn turbo() -> Reading<&'static str> {
    let word = |on: bool| if on { "on" } else { "off" };
    match parsed(&format!("{CPU}/intel_pstate/no_turbo"), texts::switch) {
        Ok(off) => Ok(word(!off)),
        Err(_) => parsed(&format!("{CPU}/cpufreq/boost"), texts::switch).map(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_null_and_says_why() {
        let mut readings = Readings::default();
        readings.put("here", Ok(1i64));
        readings.put("gone", parsed("/proc/no/such/file", texts::switch));
        readings.put("odd", parsed("/proc/version", texts::switch));
        let expected = object! {
            "here" => 1i64,
            "gone" => Value::Null,
            "odd" => Value::Null,
            "unknown" => object! {
                "gone" => "the kernel does not give it here",
                "odd" => "its content is not understood",
            },
        };
        assert_eq!(readings.into_value(), expected);
    }

    #[test]
    fn every_reading_is_a_value_or_has_a_reason() {
        for value in [now(&[0]), machine(&[0]), now(&[]), machine(&[100_000])] {
            let object = value.as_object().unwrap();
            let unknown = value.get("unknown").unwrap();
            for (name, reading) in object.iter() {
                assert_eq!(reading.is_null(), unknown.get(name).is_some(), "{name}");
            }
        }
        let load = now(&[0]);
        let load = load.get("load_average").and_then(Value::as_array).unwrap();
        assert_eq!(load.len(), 3);
    }
}
