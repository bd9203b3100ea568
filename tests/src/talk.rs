//! The worker's side of the conversation, for the programs in `rogues/`.
//!
//! A rogue behaves until the moment it is about, so that a test knows which misdeed it sees. Its score for two texts
//! is the length of the shorter over the length of the longer, in bytes, and 1 for two empty texts.

use std::io::{BufRead, Stdin, Write};

use proctor_wire::{FromWorker, PROTOCOL_VERSION, ToWorker};

/// A dataset as it was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Its number.
    pub dataset: u32,
    /// The answer a well-behaved worker gives, in the order asked.
    pub scores: Vec<f64>,
}

/// A conversation with the supervisor.
#[derive(Debug)]
pub struct Talk {
    input: Stdin,
    /// Everything received so far, line by line, as it came.
    pub received: Vec<String>,
}

impl Talk {
    /// Reads the supervisor's greeting without answering it.
    pub fn listen() -> Self {
        let mut talk = Self {
            input: std::io::stdin(),
            received: Vec::new(),
        };
        talk.next_message();
        talk
    }

    /// Reads the supervisor's greeting and answers it.
    pub fn open(name: &str) -> Self {
        let talk = Self::listen();
        say(&FromWorker::Hello {
            protocol: PROTOCOL_VERSION,
            worker: name.into(),
        });
        talk
    }

    /// The next message; `None` when the supervisor has closed the pipe.
    pub fn next_message(&mut self) -> Option<ToWorker> {
        let mut line = String::new();
        let read = self.input.lock().read_line(&mut line);
        if read.expect("stdin can be read") == 0 {
            return None;
        }
        let message = serde_json::from_str(&line).expect("the supervisor speaks the wire");
        self.received.push(line);
        Some(message)
    }

    /// Reads the next dataset up to its `score` line; `None` when the supervisor says `finish` or is gone.
    pub fn next_dataset(&mut self) -> Option<Asked> {
        let mut lengths: Vec<usize> = Vec::new();
        let mut pairs = Vec::new();
        let mut matrix = None;
        while let Some(message) = self.next_message() {
            match message {
                ToWorker::Dataset { queries, .. } => matrix = queries,
                ToWorker::Texts { values, .. } => lengths.extend(values.iter().map(String::len)),
                ToWorker::TextPart { index, value, .. } => {
                    lengths.resize(index as usize + 1, 0);
                    lengths[index as usize] += value.len();
                }
                ToWorker::Pairs { left, right, .. } => pairs.extend(left.into_iter().zip(right)),
                ToWorker::Score { dataset } => {
                    if let Some(queries) = matrix {
                        let documents = queries..lengths.len() as u32;
                        pairs = (0..queries)
                            .flat_map(|q| documents.clone().map(move |d| (q, d)))
                            .collect();
                    }
                    let score = |&(a, b): &(u32, u32)| {
                        let (a, b) = (lengths[a as usize], lengths[b as usize]);
                        if a == b {
                            1.0
                        } else {
                            a.min(b) as f64 / a.max(b) as f64
                        }
                    };
                    return Some(Asked {
                        dataset,
                        scores: pairs.iter().map(score).collect(),
                    });
                }
                ToWorker::Finish {} => return None,
                ToWorker::Hello { .. } => {}
            }
        }
        None
    }

    /// Answers up to `count` datasets as asked; false when there were fewer and the supervisor said `finish`.
    pub fn behave_for(&mut self, count: u32) -> bool {
        for _ in 0..count {
            let Some(asked) = self.next_dataset() else {
                return false;
            };
            asked.answer();
        }
        true
    }

    /// Answers everything there is and says `done`.
    pub fn behave(&mut self) {
        while let Some(asked) = self.next_dataset() {
            asked.answer();
        }
        say(&FromWorker::Done {});
    }
}

impl Asked {
    /// Sends every score and says so.
    pub fn answer(&self) {
        self.send(0..self.scores.len());
        self.done();
    }

    /// Sends some of the scores as one batch.
    pub fn send(&self, items: std::ops::Range<usize>) {
        say(&FromWorker::Scores {
            start: items.start as u64,
            values: self.scores[items].to_vec(),
        });
    }

    /// Claims that every score was sent.
    pub fn done(&self) {
        say(&FromWorker::DatasetDone {
            dataset: self.dataset,
        });
    }
}

/// Says one message. A supervisor that no longer listens is no error.
pub fn say(message: &FromWorker) {
    let line = serde_json::to_string(message).expect("a message can be written");
    say_raw(&format!("{line}\n"));
}

/// Writes text to stdout as it is.
pub fn say_raw(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// The first argument as a number of datasets to answer before the misdeed; 0 when there is none.
pub fn datasets_first() -> u32 {
    std::env::args()
        .nth(1)
        .map_or(0, |text| text.parse().expect("the argument is a number"))
}

/// Sleeps for ever.
pub fn sleep_for_ever() -> ! {
    loop {
        std::thread::sleep(std::time::Duration::from_hours(1));
    }
}
