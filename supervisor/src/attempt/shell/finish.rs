//! The end of an attempt: the room is emptied, what is left in its pipes is read, and everything known becomes an ending.

use proctor_protocol::outcome::Outcome;

use super::super::counted::explain;
use super::super::{Ending, Facts};
use super::{READ_BYTES, Shell, seconds};
use crate::room::{Closed, RoomSpec, Rung, Survivor, clocks, monotonic_ns};

impl Shell<'_> {
    /// Empties the room and collects the facts.
    pub(super) fn finish(mut self, spec: &RoomSpec) -> Ending {
        self.look_again();
        if self.killed_at.is_none() {
            self.kill();
        }
        let Closed {
            empty,
            unkillable,
            cpu,
            counts,
            scratch_left,
        } = self.room.close();
        let emptied_at = monotonic_ns();
        self.drain();
        let output_cut = match self.stderr.take().map(|log| (log.total(), log.finish())) {
            Some((total, cut)) => (total, cut.unwrap_or(total)),
            None => (0, 0),
        };
        let (mut outcome, verdict_at) = self.machine.verdict().cloned().unwrap_or_else(|| {
            let reason = "the attempt ended without a verdict".into();
            (
                Outcome::Infrastructure(reason),
                self.machine.running(emptied_at),
            )
        });
        outcome = explain(outcome, &counts, &spec.limits);
        if !empty && spec.containment != Some(Rung::K0) {
            outcome = Outcome::Infrastructure(format!("unkillable: {}", list(&unkillable)));
        }
        // On the clock that stands still in a pause; until the first one it is the monotonic clock.
        let running = |at| self.machine.running(at);
        let wall = verdict_at.saturating_sub(self.room.spawned_at);
        let now = clocks();
        let monotonic = now.monotonic.saturating_sub(self.room.spawned_at);
        let boottime = now.boottime.saturating_sub(self.room.spawned_at_boottime);
        // The two clocks are read one after the other; below a millisecond that is all there is to it.
        let suspended = Some(boottime.saturating_sub(monotonic))
            .filter(|difference| *difference > 1_000_000)
            .unwrap_or(0);
        let (left, reaped_cpu) = self.left.unwrap_or((None, None));
        // Whoever leaves the process group escapes the count too, so that of a group alone nobody knows it was empty.
        let group_alone = spec.containment == Some(Rung::K0);
        let leaked_processes = left.filter(|count| *count > 0 || !group_alone);
        let kill_delay = self
            .killed_at
            .filter(|_| self.machine.deadline_passed())
            .map(|at| seconds(running(at).saturating_sub(self.deadline)));
        Ending {
            outcome,
            facts: Facts {
                leaked_processes,
                leaked_pipe: self.leaked_pipe,
                suspended_seconds: seconds(suspended),
                pauses: self.machine.pauses(self.room.spawned_at, emptied_at),
                supervisor_stalled_seconds: seconds(self.stalled),
                late_rows: self.machine.late_rows,
                output_cut: output_cut.1,
                stdout_bytes: self.machine.stdout_bytes,
                stderr_bytes: output_cut.0,
                worker_error: self.machine.worker_error.clone(),
                room_empty: empty,
                emptying_seconds: empty
                    .then(|| seconds(running(emptied_at).saturating_sub(verdict_at))),
                kill_delay_seconds: kill_delay,
                scratch_left,
                scratch_full: self.scratch_full,
                memory_kills: counts.memory_kills,
                refused_processes: counts.refused_processes,
            },
            isolation: self.room.isolation.clone(),
            wall_seconds: seconds(wall),
            boottime_seconds: seconds(wall + suspended),
            cpu_seconds: cpu
                .map(|time| time.as_secs_f64())
                .or_else(|| reaped_cpu.map(seconds)),
            // Who is still there goes on using time.
            cpu_exact: cpu.is_some() && empty,
            peak_memory_bytes: counts.peak_memory,
            peak_memory_by: counts.peak_memory_by,
            cores: self.room.cores.clone(),
            wait_status: self.machine.wait_status,
            worker: self.machine.worker.clone(),
            checkpoints: self.machine.checkpoints,
            unkillable,
        }
    }

    /// Reads what is left in the pipes of an empty room, at most what a pipe holds.
    fn drain(&mut self) {
        let mut left = READ_BYTES;
        while left > 0 && self.stderr_open {
            match self.read_stderr() {
                0 => break,
                count => left = left.saturating_sub(count),
            }
        }
        let mut left = READ_BYTES;
        let now = monotonic_ns();
        while left > 0 && self.stdout_open {
            match self.read_stdout(READ_BYTES) {
                0 => break,
                count => left = left.saturating_sub(count),
            }
            while self.machine.next(now).is_some() {}
        }
    }
}

/// `12 (D), 13 (Z)`, the first twenty.
fn list(processes: &[Survivor]) -> String {
    let texts: Vec<String> = processes
        .iter()
        .take(20)
        .map(|left| format!("{} ({})", left.pid, left.state))
        .collect();
    if texts.is_empty() {
        "processes that cannot be seen".to_owned()
    } else {
        texts.join(", ")
    }
}
