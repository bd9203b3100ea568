//! Stopping a session from another thread: the whole of it or one method, at once or with its grace. And pausing it.

use crate::attempt::Control;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the rooms may take to stand still before the process stops all the same.
const STAND_STILL: Duration = Duration::from_secs(2);

/// What was asked of a session, and the attempts to tell. Methods are named by their position in the plan.
#[derive(Debug, Default)]
pub struct Stop {
    begun: AtomicBool,
    draining: AtomicBool,
    asked: AtomicU8,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: Vec<(usize, Arc<Control>)>,
    cancelled: BTreeSet<usize>,
    all_cancelled: bool,
    paused: bool,
}

impl Stop {
    /// Nothing asked.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// From here on there is something to stop cleanly.
    pub fn begin(&self) {
        self.begun.store(true, Ordering::SeqCst);
    }

    /// Nothing more starts; what runs goes on to its end.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    /// True when nothing more may start.
    pub fn drained(&self) -> bool {
        self.draining.load(Ordering::SeqCst) || self.asked()
    }

    /// Nothing more starts; what runs ends as `interrupted`, after its grace.
    pub fn interrupt(&self) {
        self.ask(1);
    }

    /// As [`Stop::interrupt`], without a grace; also cuts short one under way.
    pub fn kill(&self) {
        self.ask(2);
    }

    /// Nothing more starts; what runs ends as `cancelled`, after its grace.
    pub fn cancel_all(&self) {
        self.lock().all_cancelled = true;
        self.ask(1);
    }

    /// One method ends as `cancelled`, after its grace when it runs, without a worker when it waits. Nothing happens to
    /// one that has ended.
    pub fn cancel(&self, method: usize) {
        let mut state = self.lock();
        state.cancelled.insert(method);
        for (_, control) in state.running.iter().filter(|(other, _)| *other == method) {
            control.cancel();
        }
    }

    /// True when the session was asked to stop.
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst) > 0
    }

    /// True when it was asked to stop without a grace.
    pub fn at_once(&self) -> bool {
        self.asked.load(Ordering::SeqCst) > 1
    }

    /// The methods that were cancelled one by one.
    pub(super) fn cancelled(&self) -> Vec<usize> {
        self.lock().cancelled.iter().copied().collect()
    }

    /// Puts an attempt under control. One that comes too late is stopped right away.
    pub fn register(&self, method: usize, control: &Arc<Control>) {
        let mut state = self.lock();
        state.running.push((method, Arc::clone(control)));
        if state.paused {
            control.pause();
        }
        self.pass_on(&state, method, control);
    }

    /// Takes an attempt out again.
    pub fn release(&self, control: &Arc<Control>) {
        self.lock()
            .running
            .retain(|(_, other)| !Arc::ptr_eq(other, control));
        control.stands_still();
    }

    /// Makes every room stand still, as far as that is done in time, has this process stopped by `stop_process`, and lets
    /// the rooms go on when that returns.
    pub fn pause(&self, stop_process: impl FnOnce()) {
        let mut state = self.lock();
        state.paused = true;
        let running = state.running.clone();
        drop(state);
        for (_, control) in &running {
            control.pause();
        }
        let end = Instant::now() + STAND_STILL;
        for (_, control) in &running {
            control.await_pause(end);
        }
        stop_process();
        let mut state = self.lock();
        state.paused = false;
        for (_, control) in &state.running {
            control.resume();
        }
    }

    /// One more signal came; `false` when nothing is left to do but to leave.
    pub fn signal(&self) -> bool {
        let before = self.asked.fetch_add(1, Ordering::SeqCst);
        let state = self.tell_all();
        let begun = self.begun.load(Ordering::SeqCst);
        begun && (before == 0 || (before == 1 && !state.running.is_empty()))
    }

    fn ask(&self, at_least: u8) {
        self.asked.fetch_max(at_least, Ordering::SeqCst);
        drop(self.tell_all());
    }

    fn tell_all(&self) -> MutexGuard<'_, State> {
        let state = self.lock();
        for (method, control) in &state.running {
            self.pass_on(&state, *method, control);
        }
        state
    }

    fn pass_on(&self, state: &State, method: usize, control: &Control) {
        if state.cancelled.contains(&method) {
            control.cancel();
        }
        match self.asked.load(Ordering::SeqCst) {
            0 => {}
            1 if state.all_cancelled => control.cancel(),
            1 => control.interrupt(),
            _ => control.kill(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control() -> Arc<Control> {
        Arc::new(Control::new().unwrap())
    }

    #[test]
    fn before_anything_began_the_first_leaves() {
        assert!(!Stop::new().signal());
    }

    #[test]
    fn first_interrupts_second_kills_third_leaves() {
        let stop = Stop::new();
        stop.begin();
        let control = control();
        stop.register(0, &control);
        assert!(stop.signal());
        assert!(stop.asked() && !stop.at_once());
        assert!(control.stop().is_some_and(|stop| !stop.now));
        assert!(stop.signal());
        assert!(stop.at_once());
        assert!(control.stop().is_some_and(|stop| stop.now));
        assert!(!stop.signal());
    }

    #[test]
    fn without_a_running_attempt_the_second_leaves() {
        let stop = Stop::new();
        stop.begin();
        assert!(stop.signal());
        assert!(!stop.signal());
    }

    #[test]
    fn an_attempt_that_starts_after_the_signal_is_stopped_at_once() {
        let stop = Stop::new();
        stop.signal();
        let control = control();
        stop.register(0, &control);
        assert!(control.stop().is_some());
        stop.release(&control);
        assert!(stop.lock().running.is_empty());
    }

    #[test]
    fn a_drained_session_lets_what_runs_go_on() {
        let stop = Stop::new();
        let control = control();
        stop.register(0, &control);
        stop.drain();
        assert!(stop.drained() && !stop.asked());
        assert_eq!(control.stop(), None);
        stop.interrupt();
        assert!(control.stop().is_some());
    }

    #[test]
    fn one_method_is_cancelled_and_the_others_go_on() {
        let stop = Stop::new();
        let (one, other) = (control(), control());
        stop.register(3, &one);
        stop.register(4, &other);
        stop.cancel(3);
        assert!(one.stop().is_some_and(|stop| stop.cancelled));
        assert_eq!(other.stop(), None);
        assert!(!stop.asked());
        // A method that was cancelled while it waited does not run when it comes to that all the same.
        stop.cancel(5);
        let late = control();
        stop.register(5, &late);
        assert!(late.stop().is_some_and(|stop| stop.cancelled));
        stop.cancel_all();
        assert!(other.stop().is_some_and(|stop| stop.cancelled));
    }

    #[test]
    fn rooms_stand_still_before_the_process_stops_and_go_on_after_it() {
        let stop = Stop::new();
        let over = control();
        stop.register(0, &over);
        // An attempt that is over is not waited for.
        over.stands_still();
        stop.pause(|| {
            let late = control();
            stop.register(1, &late);
            // Who comes meanwhile is paused too.
            assert!(!late.await_pause(Instant::now()));
        });
        assert_eq!(stop.lock().running.len(), 2);
    }
}
