//! Whether a method may start beside what others do. Pure.

use crate::measure::OtherLoad;
use proctor_protocol::bundle::other_load_text;
use proctor_protocol::canonical::Value;
use proctor_protocol::object;

/// What is asked of the machine before a method starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Others may use this part of the cores that this process may use, above 0 and at most 1.
    pub max_load: f64,
    /// A method waits at most so many seconds.
    pub max_wait_seconds: f64,
    /// Whether a method that waited so long, or whose neighbours cannot be seen, is refused. It starts otherwise, and its
    /// record says so.
    pub refuse: bool,
}

impl Rule {
    /// True of numbers that make sense.
    pub fn is_sound(self) -> bool {
        self.max_load > 0.0
            && self.max_load <= 1.0
            && self.max_wait_seconds.is_finite()
            && self.max_wait_seconds >= 0.0
    }

    /// As in the plan of a run.
    pub fn to_value(self) -> Value {
        object! {
            "max_load" => self.max_load,
            "max_wait_seconds" => self.max_wait_seconds,
            "refuse" => self.refuse,
        }
    }
}

/// How a method came through the gate, or did not.
#[derive(Debug, Clone, PartialEq)]
pub struct Admission {
    /// The rule.
    pub rule: Rule,
    /// `quiet`: others used at most what they may. `late`: they used more, and the time to wait was over. `unseen`: what
    /// they use cannot be seen here. `refused`: it was not let through.
    pub passed: &'static str,
    /// How long it waited.
    pub waited_seconds: f64,
    /// How many cores others used in the last look.
    pub cores: Option<f64>,
}

impl Admission {
    /// As in records.
    pub fn to_value(&self) -> Value {
        let thousandths = |number: f64| (number * 1000.0).round() / 1000.0;
        object! {
            "max_load" => self.rule.max_load,
            "max_wait_seconds" => self.rule.max_wait_seconds,
            "passed" => self.passed,
            "waited_seconds" => thousandths(self.waited_seconds),
            "cores" => self.cores.map(thousandths),
        }
    }
}

/// What the gate answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The method may start.
    Start(Admission),
    /// Nobody has looked for long enough yet.
    Look,
    /// It waits, for this reason.
    Wait(String),
    /// It is not started at all.
    Refuse {
        /// Why.
        reason: String,
        /// What the gate saw, for the record.
        admission: Admission,
    },
}

/// The word in the record of an attempt that says how it came through the gate; `None` without a gate.
pub fn passed(measured: &Value) -> Option<&str> {
    measured.get("load_gate")?.get("passed")?.as_str()
}

/// True of an attempt that was never made, since the gate did not let it through.
pub fn was_refused(measured: &Value) -> bool {
    passed(measured) == Some(REFUSED)
}

const REFUSED: &str = "refused";

/// Decides for a method that has waited so many seconds. `load` is what others did during the last look, `None` when nobody
/// has looked for long enough yet.
pub fn decide(rule: &Rule, load: Option<&OtherLoad>, waited_seconds: f64) -> Decision {
    let Some(load) = load else {
        return Decision::Look;
    };
    let admission = |passed| Admission {
        rule: *rule,
        passed,
        waited_seconds,
        cores: load.cores,
    };
    let admit = |passed| Decision::Start(admission(passed));
    let refuse = |reason| Decision::Refuse {
        reason,
        admission: admission(REFUSED),
    };
    let Some(fraction) = load.fraction() else {
        return if rule.refuse {
            refuse("what other processes use of the cores cannot be seen here".into())
        } else {
            admit("unseen")
        };
    };
    if fraction <= rule.max_load {
        return admit("quiet");
    }
    let text = other_load_text(&load.to_value(), ["uses", "use"]);
    let text = text.unwrap_or_else(|| "other processes use the cores".into());
    if waited_seconds < rule.max_wait_seconds {
        Decision::Wait(text)
    } else if rule.refuse {
        refuse(format!(
            "the machine was busy for {waited_seconds:.0} s: {text}, and --max-load {} allows less",
            rule.max_load
        ))
    } else {
        admit("late")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::others::Kind;
    use std::collections::BTreeMap;

    fn load(cores: Option<f64>) -> OtherLoad {
        OtherLoad {
            seconds: 1.0,
            of_cores: 2,
            cores,
            kind: if cores.is_some() {
                Kind::Measured
            } else {
                Kind::Unknown
            },
            busy_cores: cores,
            stolen_cores: None,
            seen_cores: cores,
            heavy_processes: Some(3),
            heaviest: Vec::new(),
            unknown: BTreeMap::new(),
        }
    }

    fn rule(max_load: f64, refuse: bool) -> Rule {
        Rule {
            max_load,
            max_wait_seconds: 10.0,
            refuse,
        }
    }

    /// Every combination of what is seen, how long was waited and what happens then.
    #[test]
    fn a_method_starts_waits_or_is_refused_by_the_rule() {
        let seen = [
            None,
            Some(None),
            Some(Some(0.0)),
            Some(Some(0.5)),
            Some(Some(0.51)),
            Some(Some(2.0)),
        ];
        for cores in seen {
            for waited in [0.0, 9.99, 10.0, 1e6] {
                for refuse in [false, true] {
                    let looked = cores.map(load);
                    let decision = decide(&rule(0.25, refuse), looked.as_ref(), waited);
                    let word = match &decision {
                        Decision::Start(admission) => {
                            assert_eq!(admission.waited_seconds, waited);
                            assert_eq!(Some(admission.cores), cores);
                            admission.passed
                        }
                        Decision::Look => "look",
                        Decision::Wait(_) => "wait",
                        Decision::Refuse { admission, .. } => {
                            assert_eq!(Some(admission.cores), cores);
                            let value = admission.to_value();
                            assert!(was_refused(&object! { "load_gate" => value }));
                            "refuse"
                        }
                    };
                    let over = waited >= 10.0;
                    let expected = match cores {
                        None => "look",
                        Some(None) => {
                            if refuse {
                                "refuse"
                            } else {
                                "unseen"
                            }
                        }
                        Some(Some(cores)) if cores <= 0.5 => "quiet",
                        Some(Some(_)) if !over => "wait",
                        Some(Some(_)) => {
                            if refuse {
                                "refuse"
                            } else {
                                "late"
                            }
                        }
                    };
                    assert_eq!(word, expected, "{cores:?} {waited} {refuse}");
                }
            }
        }
    }

    #[test]
    fn the_reason_has_its_numbers() {
        let busy = load(Some(1.7));
        assert_eq!(
            decide(&rule(0.25, false), Some(&busy), 0.0),
            Decision::Wait("3 other processes use 1.7 of 2 cores".into())
        );
        let Decision::Refuse { reason, admission } = decide(&rule(0.25, true), Some(&busy), 12.4)
        else {
            panic!("started");
        };
        assert_eq!(
            reason,
            "the machine was busy for 12 s: 3 other processes use 1.7 of 2 cores, and --max-load 0.25 allows less"
        );
        assert_eq!(admission.waited_seconds, 12.4);
        let alone = OtherLoad {
            heavy_processes: Some(1),
            ..busy.clone()
        };
        assert_eq!(
            decide(&rule(0.25, false), Some(&alone), 0.0),
            Decision::Wait("1 other process uses 1.7 of 2 cores".into())
        );
        // Also of load that is not heavy by itself.
        let little = load(Some(0.07));
        assert_eq!(
            decide(&rule(0.01, false), Some(&little), 0.0),
            Decision::Wait("3 other processes use 0.07 of 2 cores".into())
        );
    }

    #[test]
    fn only_numbers_that_make_sense_are_sound() {
        assert!(rule(1.0, false).is_sound() && rule(0.001, true).is_sound());
        for max_load in [0.0, -0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(!rule(max_load, false).is_sound(), "{max_load}");
        }
        for max_wait_seconds in [-1.0, f64::NAN, f64::INFINITY] {
            let rule = Rule {
                max_wait_seconds,
                ..rule(0.5, false)
            };
            assert!(!rule.is_sound(), "{max_wait_seconds}");
        }
    }
}
