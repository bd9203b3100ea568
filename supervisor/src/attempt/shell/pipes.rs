//! The pipes of an attempt: one poll over all of them, and reading and writing that never waits.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use super::super::feed::{Feed, Kind};
use super::super::machine::Event;
use super::{LEFT_BOUND, READ_BYTES, Shell};
use crate::room::{SETTLE, monotonic_ns};

/// Bytes written in one turn.
const WRITE_BYTES: usize = 256 << 10;
/// A running worker is looked at this often, also when nothing happens.
const LOOK_NS: u64 = 250_000_000;
/// A look that comes this late says that the supervisor did not run.
const STALLED_NS: u64 = 1_000_000_000;
/// How often a second request to stop is looked for during a grace period.
const STOP_NS: u64 = 20_000_000;

impl Shell<'_> {
    /// Reads at most so many bytes of standard output; gives back how many came.
    pub(super) fn read_stdout(&mut self, length: usize) -> usize {
        match nix::unistd::read(&self.room.stdout, &mut self.buffer[..length]) {
            Ok(0) => self.stdout_open = false,
            Ok(count) => {
                self.machine.bytes(&self.buffer[..count]);
                self.pace.read(&self.buffer[..count], monotonic_ns());
                return count;
            }
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(_) => self.stdout_open = false,
        }
        0
    }

    /// Reads standard error into its log; gives back how many bytes came.
    pub(super) fn read_stderr(&mut self) -> usize {
        match nix::unistd::read(&self.room.stderr, &mut self.buffer) {
            Ok(0) => self.stderr_open = false,
            Ok(count) => {
                let written = self
                    .stderr
                    .as_mut()
                    .map_or(Ok(()), |log| log.write(&self.buffer[..count]));
                if let Err(error) = written {
                    self.our_failure(format!("the log of standard error: {error}"));
                }
                self.machine.stderr(count, monotonic_ns());
                return count;
            }
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(_) => self.stderr_open = false,
        }
        0
    }

    /// Waits until something can be done, and does the reading and writing.
    pub(super) fn wait(&mut self, feed: &mut Feed<'_>) {
        let sending = self.prepare(feed);
        let ready = self.poll(sending);
        if ready.stop {
            // A worker that ended before it was asked to stop ended by itself.
            self.hear();
        }
        if ready.stop
            && let Some(stop) = self.control.stop()
            && self.stop != Some(stop)
        {
            self.stop = Some(stop);
            self.event(Event::Stop(stop));
        }
        if ready.stderr {
            self.read_stderr();
        }
        if ready.stdout && !ready.control {
            self.read_stdout(READ_BYTES);
        }
        if ready.stdin {
            self.send(feed);
            // That everything was sent must be known before anything is heard: a quick worker has answered and ended
            // by the next turn.
            self.prepare(feed);
        }
    }

    /// True when there is something to send.
    fn prepare(&mut self, feed: &mut Feed<'_>) -> bool {
        if self.room.stdin.is_none() || self.ended {
            return false;
        }
        match feed.fill() {
            Ok(more) => {
                if !more && !feed.all_sent {
                    feed.all_sent = true;
                    match feed.kind {
                        Kind::Hello => {}
                        Kind::Dataset => self.event(Event::AllSent),
                        // Nothing more will come.
                        Kind::Finish => self.room.stdin = None,
                    }
                }
                more
            }
            Err(reason) => {
                self.our_failure(reason);
                false
            }
        }
    }

    fn poll(&mut self, sending: bool) -> Ready {
        let now = monotonic_ns();
        let mut until = self.machine.wake_at();
        let mut earlier = |at: u64| until = Some(until.map_or(at, |other| other.min(at)));
        if let Some(since) = self.settling_since {
            let settle = since + SETTLE.as_nanos() as u64;
            earlier(if now < settle {
                settle
            } else {
                settle + LEFT_BOUND.as_nanos() as u64
            });
        }
        let stopping = self.stop.is_some();
        if stopping {
            earlier(now + STOP_NS);
        }
        let too_fast = self.pace.wait_until(now);
        if let Some(at) = too_fast {
            earlier(at);
        }
        let looking = !self.ended && !self.machine.paused();
        if looking {
            earlier(now + LOOK_NS);
        }
        self.look_again();
        let timeout =
            until.map(|at| TimeSpec::from_duration(Duration::from_nanos(at.saturating_sub(now))));
        let mut polled: [Option<(BorrowedFd<'_>, PollFlags)>; 6] = [None; 6];
        if sending && let Some(stdin) = &self.room.stdin {
            polled[0] = Some((stdin.as_fd(), PollFlags::POLLOUT));
        }
        if self.stdout_open && too_fast.is_none() {
            polled[1] = Some((self.room.stdout.as_fd(), PollFlags::POLLIN));
        }
        if self.stderr_open {
            polled[2] = Some((self.room.stderr.as_fd(), PollFlags::POLLIN));
        }
        if !(self.stage_gone || self.ended && self.left.is_some()) {
            polled[3] = Some((self.room.control_fd(), PollFlags::POLLIN));
        }
        if !stopping {
            polled[4] = Some((self.control.wake_fd(), PollFlags::POLLIN));
        }
        polled[5] = Some((self.control.nudge_fd(), PollFlags::POLLIN));
        let mut fds: Vec<PollFd<'_>> = polled
            .iter()
            .flatten()
            .map(|(fd, flags)| PollFd::new(*fd, *flags))
            .collect();
        let _ = ppoll(&mut fds, timeout, None);
        let mut answers = fds.iter().map(|fd| fd.any().unwrap_or(false));
        let mut ready = polled.map(|wanted| wanted.is_some() && answers.next() == Some(true));
        ready[4] |= stopping;
        let [stdin, stdout, stderr, control, stop, nudged] = ready;
        if nudged {
            self.control.nudged();
        }
        let now = monotonic_ns();
        if looking {
            self.look(until.unwrap_or(now), now);
        }
        self.looked_at = now;
        Ready {
            stdin,
            stdout,
            stderr,
            control,
            stop,
        }
    }

    /// It may have been stopped while it was not waiting for anything, too.
    pub(super) fn look_again(&mut self) {
        let now = monotonic_ns();
        if !self.ended && !self.machine.paused() {
            self.look(self.looked_at, now);
        }
        self.looked_at = now;
    }

    /// Takes note of a look that was due before it came.
    fn look(&mut self, due: u64, now: u64) {
        let late = now.saturating_sub(due);
        if late >= STALLED_NS {
            self.stalled += late;
        }
    }

    /// Writes what fits without waiting.
    fn send(&mut self, feed: &mut Feed<'_>) {
        let mut sent = 0;
        while sent < WRITE_BYTES {
            match feed.fill() {
                Ok(true) => {}
                // `prepare` takes note.
                Ok(false) | Err(_) => return,
            }
            let Some(stdin) = &self.room.stdin else {
                return;
            };
            match nix::unistd::write(stdin, feed.unwritten()) {
                Ok(count) => {
                    feed.wrote(count);
                    sent += count;
                    if feed.kind == Kind::Dataset && !feed.begun {
                        feed.begun = true;
                        self.event(Event::FirstByte);
                    }
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return,
                // The worker does not listen any more; how it ends is its own affair.
                Err(_) => {
                    self.room.stdin = None;
                    return;
                }
            }
        }
    }
}

/// Which descriptors the poll found ready.
#[expect(clippy::struct_excessive_bools, reason = "one for each descriptor")]
struct Ready {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    control: bool,
    stop: bool,
}
