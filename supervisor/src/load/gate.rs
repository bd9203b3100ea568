//! The gate with its eyes: it looks at the machine and asks the pure rule.

use super::decide::{Decision, Rule, decide};
use crate::measure::others::between;
use crate::measure::{Look, OtherLoad};
use std::time::{Duration, Instant};

/// Others are watched for so long before anything is decided.
const WATCH: Duration = Duration::from_secs(1);
/// When a method begins to wait, a look that is older says nothing of now.
const STALE: Duration = Duration::from_secs(3);

/// Decides when the next method may start. One for each queue of methods.
#[derive(Debug)]
pub struct Gate {
    rule: Rule,
    waiting_since: Option<Instant>,
    look: Option<(Instant, Look)>,
    /// What others did until `look`.
    seen: Option<OtherLoad>,
}

impl Gate {
    /// A gate that keeps this rule.
    pub fn new(rule: Rule) -> Self {
        Self {
            rule,
            waiting_since: None,
            look: None,
            seen: None,
        }
    }

    /// Asks for the method that is next; to be asked again, a few times a second, as long as the answer is to look or to wait. Never
    /// waits itself, and looks at all processes at most once a second.
    pub fn ask(&mut self) -> Decision {
        let now = Instant::now();
        if self.waiting_since.is_none() {
            self.forget_what_is_stale(now);
        }
        let since = *self.waiting_since.get_or_insert(now);
        self.watch(now);
        let waited = now.duration_since(since).as_secs_f64();
        let decision = decide(&self.rule, self.seen.as_ref(), waited);
        if !matches!(decision, Decision::Look | Decision::Wait(_)) {
            self.leave();
        }
        decision
    }

    /// The method that waited does not wait any more.
    pub fn leave(&mut self) {
        self.waiting_since = None;
    }

    /// What was just seen also counts for a second method that starts now; what was seen before a method ran does not.
    fn forget_what_is_stale(&mut self, now: Instant) {
        let stale = |(at, _): &(Instant, Look)| now.duration_since(*at) > STALE;
        if self.look.as_ref().is_some_and(stale) {
            (self.look, self.seen) = (None, None);
        }
    }

    fn watch(&mut self, now: Instant) {
        match &self.look {
            Some((at, before)) => {
                if now.duration_since(*at) >= WATCH {
                    let look = Look::take();
                    self.seen = Some(between(before, &look));
                    self.look = Some((now, look));
                }
            }
            None => self.look = Some((now, Look::take())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_for_a_second_before_it_decides() {
        let mut gate = Gate::new(Rule {
            max_load: 1.0,
            max_wait_seconds: 60.0,
            refuse: false,
        });
        let begun = Instant::now();
        let admission = loop {
            match gate.ask() {
                Decision::Start(admission) => break admission,
                Decision::Look => {}
                Decision::Wait(reason) | Decision::Refuse { reason, .. } => panic!("{reason}"),
            }
            assert!(begun.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(begun.elapsed() >= WATCH && admission.waited_seconds >= 1.0);
        // Nothing is above the whole machine.
        assert_eq!(admission.passed, "quiet");
        // A second method starts on the same look.
        assert!(matches!(gate.ask(), Decision::Start(other) if other.waited_seconds == 0.0));
    }
}
