//! What a bundle may call itself: what was planned, less what the rooms of its methods turned out not to have.

use super::records::MethodRecord;
use crate::load::passed;
use crate::run::official;
use crate::rundir::plan::Plan;
use proctor_protocol::canonical::Value;

/// True of an attempt that came through the load gate because the time to wait was over, or because nothing was seen.
fn started_under_load(measured: &Value) -> bool {
    matches!(passed(measured), Some("late" | "unseen"))
}

/// How a run stands against the demands of official runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// `local`, `official` or `degraded`.
    pub mode: &'static str,
    /// What was not met, by name. Remedies are left out: they name places of the machine.
    pub degraded: Vec<String>,
    /// True when the machine was fit before the run and a room was not.
    pub withdrawn: bool,
}

impl Standing {
    /// By the plan and by the records of the attempts that count.
    pub fn of(plan: &Plan, methods: &[MethodRecord<'_>]) -> Self {
        let mut degraded: Vec<String> = plan
            .policy
            .degraded
            .iter()
            .map(|line| line.split(';').next().unwrap_or(line).to_owned())
            .collect();
        let mut withdrawn = false;
        if plan.policy.official {
            for record in methods {
                let mut lost: Vec<String> = Vec::new();
                for end in record.contributing() {
                    let of_room = official::lost(&end.isolation);
                    let new = of_room.into_iter().filter(|line| !lost.contains(line));
                    let new: Vec<String> = new.collect();
                    lost.extend(new);
                }
                if record
                    .contributing()
                    .any(|end| started_under_load(&end.measured))
                {
                    degraded.push(format!(
                        "load: other processes used more than --max-load allows when {} started",
                        record.method.name
                    ));
                }
                withdrawn |= !lost.is_empty() && plan.policy.degraded.is_empty();
                // What was known to be missing before is said once.
                let known = |lost: &String| {
                    let name = lost.split(':').next().unwrap_or(lost);
                    let same = |line: &String| line.split(':').next() == Some(name);
                    plan.policy.degraded.iter().any(same)
                };
                degraded.extend(
                    lost.into_iter()
                        .filter(|lost| !known(lost))
                        .map(|lost| format!("{lost}, in the room of {}", record.method.name)),
                );
            }
        }
        Self {
            mode: match (plan.policy.official, degraded.is_empty()) {
                (false, _) => "local",
                (true, true) => "official",
                (true, false) => "degraded",
            },
            degraded,
            withdrawn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctor_protocol::object;

    #[test]
    fn only_who_came_late_or_unseen_through_the_gate_started_under_load() {
        for (passed, expected) in [
            ("quiet", false),
            ("late", true),
            ("unseen", true),
            ("refused", false),
        ] {
            let measured = object! { "load_gate" => object! { "passed" => passed } };
            assert_eq!(started_under_load(&measured), expected, "{passed}");
        }
        assert!(!started_under_load(&object! { "load_gate" => Value::Null }));
        assert!(!started_under_load(&Value::Null));
    }
}
