//! Following a run to its end, across restarts of the daemon.

use super::{Client, ClientError};
use crate::daemon::view::{Event, MethodState, MethodView, RunState, RunSummary, RunView};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The first pause before a daemon that is away is asked again; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A method that goes on is told of this often.
const PROGRESS: Duration = Duration::from_secs(15);

/// Follows a run until it has ended, and gives its last state. `say` is told what happens, a line at a time. A daemon
/// that does not answer for `patience` is given up.
///
/// # Errors
/// There is no such run, or no daemon.
pub fn watch(
    client: &Client,
    id: u64,
    patience: Duration,
    say: &mut dyn FnMut(&str),
) -> Result<RunSummary, ClientError> {
    let mut told = Told::default();
    let mut away = Away::new(patience);
    loop {
        match follow(client, id, &mut told, &mut away, say) {
            Ok(Some(summary)) => return Ok(summary),
            // A stream that ends before its run is that of a daemon that stops.
            Ok(None) => away.pause(None, say)?,
            Err(error) if error.may_pass() => away.pause(Some(error), say)?,
            Err(error) => return Err(error),
        }
    }
}

fn follow(
    client: &Client,
    id: u64,
    told: &mut Told,
    away: &mut Away,
    say: &mut dyn FnMut(&str),
) -> Result<Option<RunSummary>, ClientError> {
    let mut events = client.events(&format!("/v1/runs/{id}/events"))?;
    while let Some(event) = events.next_event()? {
        away.back(say);
        match event {
            Event::RunDetail { run } => told.run(&run, say),
            Event::Method { method, .. } => told.method(&method, say),
            Event::Run { run } if run.state == RunState::Ended => return Ok(Some(run)),
            Event::Run { run } => told.summary(&run, say),
            Event::Queue { .. } => {}
        }
    }
    Ok(None)
}

/// A daemon that does not answer.
struct Away {
    patience: Duration,
    since: Option<Instant>,
    pause: Duration,
}

impl Away {
    fn new(patience: Duration) -> Self {
        Self {
            patience,
            since: None,
            pause: FIRST_PAUSE,
        }
    }

    /// Waits a little, or gives up with the last error.
    fn pause(
        &mut self,
        error: Option<ClientError>,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), ClientError> {
        let since = *self.since.get_or_insert_with(|| {
            say("the daemon does not answer; waiting for it");
            Instant::now()
        });
        if let Some(error) = error.filter(|_| since.elapsed() >= self.patience) {
            return Err(error);
        }
        std::thread::sleep(self.pause);
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
        Ok(())
    }

    fn back(&mut self, say: &mut dyn FnMut(&str)) {
        if self.since.take().is_some() {
            self.pause = FIRST_PAUSE;
            say("the daemon answers again");
        }
    }
}

/// What was told already.
#[derive(Default)]
struct Told {
    methods: BTreeMap<String, (MethodState, String, Instant)>,
    sentence: String,
}

impl Told {
    fn run(&mut self, run: &RunView, say: &mut dyn FnMut(&str)) {
        self.summary(&run.summary, say);
        for method in &run.methods {
            self.method(method, say);
        }
    }

    fn summary(&mut self, run: &RunSummary, say: &mut dyn FnMut(&str)) {
        if self.sentence != run.sentence && run.state != RunState::Ended {
            self.sentence.clone_from(&run.sentence);
            say(&format!("run {}: {}", run.id, run.sentence));
        }
    }

    fn method(&mut self, method: &MethodView, say: &mut dyn FnMut(&str)) {
        let before = self.methods.get(&method.id);
        let news = match before {
            None => method.state != MethodState::Queued,
            Some((state, ..)) if *state != method.state => true,
            Some((MethodState::Ended, sentence, _)) => *sentence != method.sentence,
            Some((MethodState::Running, _, last)) => last.elapsed() >= PROGRESS,
            Some((MethodState::Queued, ..)) => false,
        };
        let last = match before {
            Some((_, _, last)) if !news => *last,
            _ => Instant::now(),
        };
        let now = (method.state, method.sentence.clone(), last);
        self.methods.insert(method.id.clone(), now);
        if !news {
            return;
        }
        say(&format!("{}: {}", method.name, method.sentence));
        let failed = method.outcome.as_ref().is_some_and(|end| !end.succeeded);
        if failed {
            for line in &method.stderr {
                say(&format!("        stderr: {line}"));
            }
        }
    }
}
