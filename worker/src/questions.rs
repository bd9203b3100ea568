//! Taking in the questions of one dataset, message by message, with every count checked.

use proctor_wire::{Family, ToWorker};

/// What is asked of the texts.
#[derive(Debug, PartialEq, Eq)]
pub enum Items {
    /// Pairs of text numbers.
    Pairs {
        /// Left texts.
        left: Vec<u32>,
        /// Right texts, as many.
        right: Vec<u32>,
    },
    /// Every one of the first `queries` texts with every later text.
    Matrix {
        /// How many texts are queries.
        queries: u32,
    },
}

/// A dataset that arrived whole.
#[derive(Debug, PartialEq, Eq)]
pub struct Questions {
    /// Its number in the conversation.
    pub dataset: u32,
    /// The texts.
    pub texts: Vec<String>,
    /// What is asked.
    pub items: Items,
    /// The language the benchmark declares.
    pub code_language: Option<String>,
}

/// A dataset that is arriving.
#[derive(Debug)]
pub struct Arriving {
    questions: Questions,
    texts: u32,
    pairs: u64,
    part: Option<String>,
}

impl Arriving {
    /// Opens dataset number `expected` with the message [`ToWorker::Dataset`].
    ///
    /// # Errors
    /// What was expected instead.
    pub fn open(expected: u32, message: ToWorker) -> Result<Self, String> {
        let ToWorker::Dataset {
            dataset,
            family,
            texts,
            items,
            queries,
            documents,
            code_language,
        } = message
        else {
            return Err(unexpected("`dataset` or `finish`", &message));
        };
        if dataset != expected {
            return Err(format!("expected dataset {expected}, got {dataset}"));
        }
        let (asked, pairs) = match (family, queries, documents) {
            (Family::Pair, None, None) => (
                Items::Pairs {
                    left: Vec::new(),
                    right: Vec::new(),
                },
                items,
            ),
            (Family::Retrieval, Some(queries), Some(documents)) => {
                if queries.checked_add(documents) != Some(texts) {
                    return Err(format!(
                        "expected queries and documents to be the {texts} texts, got {queries} and {documents}"
                    ));
                }
                if u64::from(queries) * u64::from(documents) != items {
                    return Err(format!(
                        "expected {queries} x {documents} items, got {items}"
                    ));
                }
                (Items::Matrix { queries }, 0)
            }
            (Family::Pair, ..) => {
                return Err("expected no `queries` and `documents` in a pair dataset".to_owned());
            }
            (Family::Retrieval, ..) => {
                return Err("expected `queries` and `documents` in a retrieval dataset".to_owned());
            }
        };
        Ok(Self {
            questions: Questions {
                dataset,
                texts: Vec::new(),
                items: asked,
                code_language,
            },
            texts,
            pairs,
            part: None,
        })
    }

    /// Takes the next message; gives the questions back when it was [`ToWorker::Score`].
    ///
    /// # Errors
    /// What was expected instead.
    pub fn take(mut self, message: ToWorker) -> Result<Result<Questions, Self>, String> {
        match message {
            ToWorker::Texts { start, values } => self.take_texts(start, values)?,
            ToWorker::TextPart { index, last, value } => self.take_part(index, last, &value)?,
            ToWorker::Pairs { start, left, right } => self.take_pairs(start, left, right)?,
            ToWorker::Score { dataset } => return self.close(dataset).map(Ok),
            other => return Err(unexpected(self.expectation(), &other)),
        }
        Ok(Err(self))
    }

    fn expectation(&self) -> &'static str {
        if self.part.is_some() {
            "the next `text_part`"
        } else if self.missing_texts() > 0 {
            "`texts` or `text_part`"
        } else if self.missing_pairs() > 0 {
            "`pairs`"
        } else {
            "`score`"
        }
    }

    fn missing_texts(&self) -> u64 {
        u64::from(self.texts) - self.questions.texts.len() as u64
    }

    fn missing_pairs(&self) -> u64 {
        match &self.questions.items {
            Items::Pairs { left, .. } => self.pairs - left.len() as u64,
            Items::Matrix { .. } => 0,
        }
    }

    fn take_texts(&mut self, start: u32, values: Vec<String>) -> Result<(), String> {
        if self.part.is_some() {
            return Err("expected the next `text_part`, got `texts`".to_owned());
        }
        self.at_text(start)?;
        if values.len() as u64 > self.missing_texts() {
            return Err(format!("expected at most {} texts", self.texts));
        }
        self.questions.texts.extend(values);
        Ok(())
    }

    fn take_part(&mut self, index: u32, last: bool, value: &str) -> Result<(), String> {
        self.at_text(index)?;
        if self.missing_texts() == 0 {
            return Err(format!("expected at most {} texts", self.texts));
        }
        let part = self.part.get_or_insert_default();
        part.push_str(value);
        if last {
            self.questions.texts.extend(self.part.take());
        }
        Ok(())
    }

    fn at_text(&self, number: u32) -> Result<(), String> {
        let next = self.questions.texts.len();
        if number as usize == next {
            return Ok(());
        }
        Err(format!("expected text {next}, got text {number}"))
    }

    fn take_pairs(
        &mut self,
        start: u64,
        more_left: Vec<u32>,
        more_right: Vec<u32>,
    ) -> Result<(), String> {
        let missing = self.missing_pairs();
        let Items::Pairs { left, right } = &mut self.questions.items else {
            return Err("expected no `pairs` in a retrieval dataset".to_owned());
        };
        if start != left.len() as u64 {
            return Err(format!("expected pair {}, got pair {start}", left.len()));
        }
        if more_left.len() != more_right.len() || more_left.len() as u64 > missing {
            return Err(format!(
                "expected as many left as right texts and at most {} pairs",
                self.pairs
            ));
        }
        if let Some(number) = more_left
            .iter()
            .chain(&more_right)
            .find(|&&n| n >= self.texts)
        {
            return Err(format!(
                "expected text numbers below {}, got {number}",
                self.texts
            ));
        }
        left.extend(more_left);
        right.extend(more_right);
        Ok(())
    }

    fn close(self, dataset: u32) -> Result<Questions, String> {
        if dataset != self.questions.dataset {
            return Err(format!(
                "expected `score` of dataset {}, got {dataset}",
                self.questions.dataset
            ));
        }
        if self.part.is_some() || self.missing_texts() > 0 || self.missing_pairs() > 0 {
            return Err(format!("expected {}, got `score`", self.expectation()));
        }
        Ok(self.questions)
    }
}

/// The sentence that says what was expected and what came.
pub fn unexpected(expected: &str, message: &ToWorker) -> String {
    format!("expected {expected}, got `{}`", message.kind())
}
