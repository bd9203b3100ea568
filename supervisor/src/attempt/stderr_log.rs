//! The worker's standard error: its beginning and its end are kept, what lies between is counted.

use crate::rundir::disk::Out;
use crate::rundir::durable::create_anew;
use std::io::{self, Write};
use std::path::Path;

/// A log that keeps the first and the last half of its cap.
#[derive(Debug)]
pub(crate) struct StderrLog {
    file: Out,
    half: usize,
    head_left: usize,
    tail: Vec<u8>,
    tail_bytes: u64,
    total: u64,
}

impl StderrLog {
    /// A new log file with this cap in bytes.
    pub(crate) fn create(path: &Path, cap: u64) -> io::Result<Self> {
        let half = usize::try_from(cap / 2).unwrap_or(usize::MAX / 4);
        Ok(Self {
            file: create_anew(path, 0o644)?,
            half,
            head_left: half,
            tail: Vec::new(),
            tail_bytes: 0,
            total: 0,
        })
    }

    /// Bytes taken in.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Takes in bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_left));
        self.file.write_all(head)?;
        self.head_left -= head.len();
        self.tail_bytes += rest.len() as u64;
        self.tail
            .extend_from_slice(&rest[rest.len().saturating_sub(self.half)..]);
        // Trimmed only when twice as long, so that a flood is not moved byte by byte.
        if self.tail.len() > 2 * self.half {
            self.trim();
        }
        Ok(())
    }

    /// Writes the end, and a line that says what is missing. Gives back how many bytes were cut.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.trim();
        let cut = self.tail_bytes - self.tail.len() as u64;
        if cut > 0 {
            write!(self.file, "\n[{cut} bytes cut]\n")?;
        }
        self.file.write_all(&self.tail)?;
        // What the terminal record speaks of must be there before it.
        self.file.sync()?;
        Ok(cut)
    }

    fn trim(&mut self) {
        let excess = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn log(cap: u64, chunks: &[Vec<u8>]) -> (Vec<u8>, u64) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut log = StderrLog::create(&path, cap).unwrap();
        for chunk in chunks {
            log.write(chunk).unwrap();
        }
        let cut = log.finish().unwrap();
        (std::fs::read(&path).unwrap(), cut)
    }

    #[test]
    fn short_output_is_kept_whole() {
        let kept = log(10, &[b"abcd".to_vec(), b"efghij".to_vec()]);
        assert_eq!(kept, (b"abcdefghij".to_vec(), 0));
    }

    #[test]
    fn long_output_keeps_both_ends() {
        let kept = log(10, &[b"abcdefghijklmnop".to_vec()]);
        assert_eq!(kept, (b"abcde\n[6 bytes cut]\nlmnop".to_vec(), 6));
        assert_eq!(
            log(0, &[b"abc".to_vec()]),
            (b"\n[3 bytes cut]\n".to_vec(), 3)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_chunks_do_not_matter(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..20),
            cap in 0u64..60,
        ) {
            let whole: Vec<u8> = chunks.concat();
            prop_assert_eq!(log(cap, &chunks), log(cap, &[whole]));
        }
    }
}
