//! How many lines of a worker are looked at in a second. Pure.
//!
//! A worker that writes faster finds its pipe full and waits, on its own time: no worker takes the supervisor's processor
//! from the others, and none is failed for being quick.

/// Lines a second, in the long run.
pub(super) const LINES_PER_SECOND: u64 = 200_000;
/// Lines that may come at once.
const BURST: u64 = 20_000;
const NS_PER_LINE: u64 = 1_000_000_000 / LINES_PER_SECOND;

/// The moment up to which the lines that were read are paid for; it may lie ahead.
#[derive(Debug, Default)]
pub(super) struct Pace {
    paid_until: u64,
}

impl Pace {
    /// Takes note of lines that were read.
    pub(super) fn read(&mut self, bytes: &[u8], now: u64) {
        let lines = bytes.split(|byte| *byte == b'\n').count() as u64 - 1;
        let from = self.paid_until.max(now.saturating_sub(BURST * NS_PER_LINE));
        self.paid_until = from.saturating_add(lines * NS_PER_LINE);
    }

    /// When more may be read, if not now.
    pub(super) fn wait_until(&self, now: u64) -> Option<u64> {
        (self.paid_until > now).then_some(self.paid_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_burst_is_free_and_what_goes_beyond_waits_its_turn() {
        let mut pace = Pace::default();
        let start = 100 * SECOND;
        pace.read(&vec![b'\n'; BURST as usize], start);
        assert_eq!(pace.wait_until(start), None);
        pace.read(&[b'\n'; 200], start);
        // 200 lines at 200,000 a second.
        assert_eq!(pace.wait_until(start), Some(start + SECOND / 1000));
        assert_eq!(pace.wait_until(start + SECOND / 1000), None);
    }

    #[test]
    fn only_lines_count() {
        let mut pace = Pace::default();
        pace.read(&vec![b'x'; 1 << 16], SECOND);
        assert_eq!(pace.wait_until(SECOND), None);
    }

    #[test]
    fn a_flood_is_read_at_the_rate_in_the_long_run() {
        let mut pace = Pace::default();
        let (mut now, mut lines) = (50 * SECOND, 0);
        let end = now + 10 * SECOND;
        while now < end {
            pace.read(&[b'\n'; 4096], now);
            lines += 4096;
            now = pace.wait_until(now).unwrap_or(now);
        }
        assert!(lines >= 10 * LINES_PER_SECOND, "{lines}");
        assert!(lines <= 10 * LINES_PER_SECOND + BURST + 4096, "{lines}");
    }
}
