//! Cutting a byte stream into bounded lines.

use crate::limits::{MAX_LINE_BYTES, MAX_STRANGE_LINE_BYTES};

/// Collects bytes and gives out complete lines. It never holds more than one line and one read.
#[derive(Debug, Default)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    start: usize,
    searched: usize,
}

/// A line grew beyond [`MAX_LINE_BYTES`], or beyond [`MAX_STRANGE_LINE_BYTES`] without beginning as a message does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than {most} bytes")]
pub struct LineTooLong {
    /// How long it could have been.
    pub most: usize,
}

impl LineBuffer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in bytes that were read.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete line, without its line feed; `None` when more bytes are needed.
    ///
    /// # Errors
    /// [`LineTooLong`] as soon as the line under way is over the bound, complete or not.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, LineTooLong> {
        let found = self.bytes[self.searched..]
            .iter()
            .position(|&byte| byte == b'\n');
        let end = found.map_or(self.bytes.len(), |at| self.searched + at);
        let most = if self.bytes.get(self.start) == Some(&b'{') {
            MAX_LINE_BYTES
        } else {
            MAX_STRANGE_LINE_BYTES
        };
        if end - self.start > most {
            return Err(LineTooLong { most });
        }
        self.searched = end;
        if found.is_none() {
            return Ok(None);
        }
        let line = self.start..end;
        self.start = end + 1;
        self.searched = end + 1;
        Ok(Some(&self.bytes[line]))
    }

    /// What is there of the line under way, the beginning of the next ones included.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Bytes of an unfinished line.
    pub fn pending(&self) -> usize {
        self.bytes.len() - self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_do_not_depend_on_the_chunks(
            text in "[a\n]{0,200}",
            cuts in prop::collection::vec(1usize..20, 1..40),
        ) {
            let whole: Vec<Vec<u8>> =
                text.split_inclusive('\n').filter(|l| l.ends_with('\n'))
                    .map(|l| l.trim_end_matches('\n').as_bytes().to_vec()).collect();
            let mut buffer = LineBuffer::new();
            let mut lines = Vec::new();
            let mut rest = text.as_bytes();
            let mut cuts = cuts.iter().cycle();
            while !rest.is_empty() {
                let n = (*cuts.next().unwrap()).min(rest.len());
                buffer.push(&rest[..n]);
                rest = &rest[n..];
                while let Some(line) = buffer.next_line().unwrap() {
                    lines.push(line.to_vec());
                }
            }
            prop_assert_eq!(lines, whole);
        }
    }

    #[test]
    fn a_line_over_the_bound_is_refused_before_it_ends() {
        for (start, most) in [(b'{', MAX_LINE_BYTES), (b' ', MAX_STRANGE_LINE_BYTES)] {
            let mut buffer = LineBuffer::new();
            buffer.push(b"a line before\n");
            buffer.push(&[start]);
            buffer.push(&vec![b'x'; most - 1]);
            assert_eq!(buffer.next_line(), Ok(Some(&b"a line before"[..])));
            assert_eq!(buffer.next_line(), Ok(None));
            buffer.push(b"x\n");
            assert_eq!(buffer.next_line(), Err(LineTooLong { most }));
        }
    }
}
