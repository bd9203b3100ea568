//! The conversation: what may be said when, and what an answer makes of it.

use proctor_wire::limits::MAX_ERROR_CHARS;
use proctor_wire::{FromWorker, PROTOCOL_VERSION};

use super::phase::{Answer, Phase, Question, name};
use super::words::clean;
use super::{Action, GIVE_UP_NS, MAX_WORKER_CHARS, Machine, OUTPUT_PER_ITEM};

impl Machine {
    /// What the worker says, by the rules of the conversation.
    pub(super) fn message(&mut self, message: FromWorker, now: u64) -> Result<(), String> {
        let what = name(&message);
        match (&mut self.phase, message) {
            (Phase::Hello, FromWorker::Hello { protocol, worker }) => {
                self.worker = clean(&worker, MAX_WORKER_CHARS);
                if protocol != PROTOCOL_VERSION {
                    return Err(format!(
                        "the worker speaks version {protocol}, this build version {PROTOCOL_VERSION}"
                    ));
                }
                self.go_on(0);
                Ok(())
            }
            (
                Phase::Hello | Phase::Opening(_) | Phase::Asking(_) | Phase::Finishing(_),
                FromWorker::WorkerError { error },
            ) => {
                self.worker_error = Some(clean(&error, MAX_ERROR_CHARS));
                self.phase = Phase::GivenUp;
                // What it gave up for came first, so that a deadline in between changes nothing.
                self.leave_by = Some(now.saturating_add(GIVE_UP_NS).min(self.deadline));
                Ok(())
            }
            (Phase::Hello, _) => Err(format!("`{what}` came before `hello`")),
            (_, FromWorker::Hello { .. }) => Err("`hello` came twice".into()),
            // Only of a worker that has ended is anything heard here: its last words, before a question that will not be put.
            (Phase::Opening(open), FromWorker::DatasetError { dataset, .. })
                if *open == dataset =>
            {
                Ok(())
            }
            (
                Phase::Opening(_) | Phase::Asking(_) | Phase::Finishing(_),
                FromWorker::Progress { items },
            ) => {
                self.claimed = items;
                Ok(())
            }
            (Phase::Asking(question), FromWorker::Scores { start, values }) => {
                question.take(start, &values, now)
            }
            (Phase::Asking(question), FromWorker::DatasetDone { dataset }) => {
                let (asked, items) = (question.dataset, question.items);
                let got = question.scores.len() as u64;
                if dataset != asked {
                    return Err(format!(
                        "`dataset_done` names dataset {dataset}, open is {asked}"
                    ));
                }
                if got != items || !question.all_sent || question.refused.is_some() {
                    return Err(format!(
                        "`dataset_done` for dataset {dataset} after {got} of {items} scores"
                    ));
                }
                self.answered();
                Ok(())
            }
            (Phase::Asking(question), FromWorker::DatasetError { dataset, error }) => {
                if dataset != question.dataset || question.refused.is_some() {
                    return Err(format!(
                        "`dataset_error` names dataset {dataset}, open is {}",
                        question.dataset
                    ));
                }
                question.refused = Some((clean(&error, MAX_ERROR_CHARS), now));
                if question.all_sent {
                    self.refused();
                }
                Ok(())
            }
            (Phase::Finishing(last), FromWorker::Done {}) => {
                self.phase = Phase::Done(last.take());
                Ok(())
            }
            (Phase::Asking(_), FromWorker::Done {}) => {
                Err("`done` came before the worker was told to finish".into())
            }
            (_, _) => Err(format!("`{what}` came when nothing was asked")),
        }
    }

    /// Asks for the next dataset, or tells the worker to finish.
    fn go_on(&mut self, next: u32) {
        if next < self.total {
            self.phase = Phase::Opening(next);
            self.pending.push_back(Action::Open(next));
        } else {
            self.phase = Phase::Finishing(None);
            self.pending.push_back(Action::Finish);
        }
    }

    pub(super) fn opened(&mut self, items: u64) {
        if let Phase::Opening(dataset) = self.phase {
            self.claimed = 0;
            self.allowance = self
                .allowance
                .saturating_add(items.saturating_mul(OUTPUT_PER_ITEM));
            self.phase = Phase::Asking(Question {
                dataset,
                items,
                scores: Vec::new(),
                first_byte: None,
                last_score: 0,
                all_sent: false,
                refused: None,
            });
        }
    }

    pub(super) fn all_sent(&mut self) {
        if let Phase::Asking(question) = &mut self.phase {
            question.all_sent = true;
            if question.refused.is_some() {
                self.refused();
            }
        }
    }

    /// The open dataset is answered completely. The last one waits for the worker's proper end.
    fn answered(&mut self) {
        let Phase::Asking(question) = &mut self.phase else {
            return;
        };
        let dataset = question.dataset;
        let elapsed = question.elapsed(question.last_score);
        let scores = std::mem::take(&mut question.scores);
        if dataset + 1 == self.total {
            self.phase = Phase::Finishing(Some(Answer {
                dataset,
                scores,
                elapsed,
            }));
            self.pending.push_back(Action::Finish);
        } else {
            self.phase = Phase::Storing {
                dataset,
                scored: true,
            };
            self.pending.push_back(Action::Store {
                dataset,
                scores,
                elapsed,
            });
        }
    }

    fn refused(&mut self) {
        let Phase::Asking(question) = &mut self.phase else {
            return;
        };
        let Some((error, at)) = question.refused.take() else {
            return;
        };
        let dataset = question.dataset;
        let elapsed = question.elapsed(at);
        self.phase = Phase::Storing {
            dataset,
            scored: false,
        };
        self.pending.push_back(Action::Refused {
            dataset,
            error,
            elapsed,
        });
    }

    pub(super) fn stored(&mut self) {
        match self.phase {
            Phase::Storing { dataset, scored } => {
                if scored {
                    self.checkpoints += 1;
                } else {
                    self.failed += 1;
                }
                self.go_on(dataset + 1);
            }
            Phase::Closing => {
                self.checkpoints += 1;
                self.phase = Phase::Over;
            }
            _ => {}
        }
    }
}
