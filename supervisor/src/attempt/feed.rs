//! Messages on their way to a worker.

use proctor_wire::ToWorker;
use proctor_wire::limits::MAX_LINE_BYTES;

/// What is being sent.
pub(super) struct Feed<'a> {
    messages: &'a mut dyn Iterator<Item = ToWorker>,
    bytes: Vec<u8>,
    written: usize,
    /// What it is for.
    pub(super) kind: Kind,
    /// A byte was written.
    pub(super) begun: bool,
    /// Everything was written.
    pub(super) all_sent: bool,
}

/// What a feed is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The opening, or nothing.
    Hello,
    /// The questions of a dataset.
    Dataset,
    /// The closing; the pipe is closed after it.
    Finish,
}

impl<'a> Feed<'a> {
    /// Messages to be sent one after the other, each made when its turn comes.
    pub(super) fn new(messages: &'a mut dyn Iterator<Item = ToWorker>, kind: Kind) -> Self {
        Self {
            messages,
            bytes: Vec::new(),
            written: 0,
            kind,
            begun: false,
            all_sent: false,
        }
    }

    /// Makes sure bytes are at hand; false when nothing is left.
    pub(super) fn fill(&mut self) -> Result<bool, String> {
        while self.written == self.bytes.len() {
            self.bytes.clear();
            self.written = 0;
            let Some(message) = self.messages.next() else {
                return Ok(false);
            };
            serde_json::to_writer(&mut self.bytes, &message).map_err(|error| error.to_string())?;
            if self.bytes.len() > MAX_LINE_BYTES {
                return Err(format!(
                    "a message of {} bytes is too long for the wire",
                    self.bytes.len()
                ));
            }
            self.bytes.push(b'\n');
        }
        Ok(true)
    }

    /// The bytes that are still to be written of what [`Feed::fill`] made.
    pub(super) fn unwritten(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// Takes note of what was written.
    pub(super) fn wrote(&mut self, count: usize) {
        self.written += count;
    }
}
