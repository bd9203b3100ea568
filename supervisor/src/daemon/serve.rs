//! The life of a daemon, from the first check to the last run.

use super::api::Api;
use super::api::connection::{Listener, serve as answer};
use super::auth::Token;
use super::conduct::Library;
use super::confine::{Fence, Roots};
use super::listen::{Socket, notify, tcp};
use super::queue::Queue;
use super::state::StateDir;
use super::submit::Submissions;
use crate::error::{Error, Exit};
use crate::render::output::tell;
use crate::render::plain;
use crate::run::host::usable_cores;
use crate::run::on_finish::OnFinish;
use crate::run::signals::ignores;
use crate::run::sweep::sweep;
use nix::sys::signal::{SigSet, Signal};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Threads that read files for the API.
const READERS: usize = 4;
/// What could not be written is tried again this often.
const TICK: Duration = Duration::from_secs(1);
/// An interrupted method and the bundle after it take less than this, or the daemon leaves them.
const INTERRUPTED: Duration = Duration::from_mins(2);

/// What a daemon is told at its start.
#[derive(Debug, Clone)]
pub struct Config {
    /// The state directory.
    pub state: PathBuf,
    /// The Unix socket.
    pub socket: PathBuf,
    /// The file mode of the socket.
    pub socket_mode: u32,
    /// The TCP address, and the file of its token.
    pub listen: Option<(SocketAddr, PathBuf)>,
    /// The folders that clients may name files in.
    pub roots: Vec<PathBuf>,
    /// The worker for built-in methods, if named.
    pub worker: Option<PathBuf>,
    /// How long running methods may finish after a signal.
    pub stop_grace: Duration,
    /// What is told of each run that is over.
    pub on_finish: Option<OnFinish>,
    /// Requests a second, on each door.
    pub requests_per_second: u32,
}

/// Runs a daemon until a signal ends it.
///
/// # Errors
/// It cannot begin.
pub fn serve(config: &Config) -> Result<Exit, Error> {
    // Before any thread is: threads inherit what is blocked.
    let signals = signals()?;
    crate::room::begin();
    let input = |error: &dyn std::fmt::Display| Error::input(error.to_string());
    let roots = Roots::new(&config.roots).map_err(|error| input(&error))?;
    let token = config.listen.as_ref().map(|(_, file)| Token::read(file));
    let token = token.transpose().map_err(|error| input(&error))?;
    let cores = usable_cores().map_err(|error| {
        Error::Infrastructure(format!(
            "the system does not tell which cores may be used: {error}"
        ))
    })?;
    let state = StateDir::open(&config.state).map_err(|error| input(&error))?;
    let socket = Socket::bind(&config.socket, config.socket_mode).map_err(|error| input(&error))?;
    let listen = config.listen.as_ref().map(|(address, _)| tcp(*address));
    let listen = listen.transpose().map_err(|error| input(&error))?;

    let swept = sweep();
    for line in swept.notes.iter().chain(&swept.left) {
        tell(line);
    }
    let found = state.find().map_err(|error| input(&error))?;
    for problem in &found.problems {
        tell(&plain(&format!("warning: a run is left out: {problem}")));
    }
    tell_start(
        &state,
        &socket,
        listen.as_ref().map(|(_, address)| *address),
        &cores,
    );
    let fence = Fence::new(&roots, state.root(), config.worker.as_deref());
    let library = Library {
        fence: fence.clone(),
        on_finish: config.on_finish.clone().map(Mutex::new),
    };
    let queue = Queue::new(state, found, &cores, Box::new(library));
    let submissions = Submissions::begin(Arc::clone(&queue), roots, fence, config.worker.clone());
    let submissions = submissions.map_err(|error| no_start(&error))?;
    let api = Api::new(
        Arc::clone(&queue),
        submissions,
        token,
        config.requests_per_second,
    );
    let unix = socket
        .listener
        .try_clone()
        .map_err(|error| no_start(&error))?;
    let asked = open(&api, unix, listen)?;
    notify("READY=1");
    queue.begin().map_err(|error| no_start(&error))?;

    let status = watch(&queue, &signals, &asked);
    notify("STOPPING=1");
    stop(&queue, &signals, config.stop_grace);
    Ok(status)
}

fn no_start(error: &dyn std::fmt::Display) -> Error {
    Error::Infrastructure(format!("the daemon cannot begin: {error}"))
}

/// The signals that stop a daemon, as they come.
fn signals() -> Result<Receiver<()>, Error> {
    let all = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
    let set: SigSet = all.into_iter().filter(|signal| !ignores(*signal)).collect();
    set.thread_block().map_err(|error| no_start(&error))?;
    let (sender, signals) = channel();
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(
            move || {
                while set.wait().is_ok() && sender.send(()).is_ok() {}
            },
        )
        .map_err(|error| no_start(&error))?;
    Ok(signals)
}

fn tell_start(state: &StateDir, socket: &Socket, tcp: Option<SocketAddr>, cores: &[usize]) {
    tell(&plain(&format!(
        "state: {}; cores: {}",
        state.root().display(),
        crate::render::progress::ranges(cores)
    )));
    tell(&plain(&format!("listening on {}", socket.path().display())));
    if let Some(address) = tcp {
        tell(&format!("listening on http://{address}/"));
    }
}

/// Answers requests from now on, on a thread of its own.
fn open(
    api: &Api,
    unix: UnixListener,
    tcp: Option<(TcpListener, SocketAddr)>,
) -> Result<JoinHandle<()>, Error> {
    unix.set_nonblocking(true)
        .map_err(|error| no_start(&error))?;
    if let Some((listener, _)) = &tcp {
        listener
            .set_nonblocking(true)
            .map_err(|error| no_start(&error))?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(READERS)
        .build()
        .map_err(|error| no_start(&error))?;
    let listeners = {
        let _inside = runtime.enter();
        let mut listeners = vec![Listener::Unix(
            tokio::net::UnixListener::from_std(unix).map_err(|error| no_start(&error))?,
        )];
        if let Some((listener, address)) = tcp {
            let listener =
                tokio::net::TcpListener::from_std(listener).map_err(|error| no_start(&error))?;
            listeners.push(Listener::Tcp(listener, address.port()));
        }
        listeners
    };
    let router = api.router();
    std::thread::Builder::new()
        .name("api".into())
        .spawn(move || {
            for listener in listeners {
                runtime.spawn(answer(listener, router.clone()));
            }
            runtime.block_on(std::future::pending::<()>());
        })
        .map_err(|error| no_start(&error))
}

/// Goes on until a signal comes, or nobody answers any more.
fn watch(queue: &Queue, signals: &Receiver<()>, asked: &JoinHandle<()>) -> Exit {
    loop {
        match signals.recv_timeout(TICK) {
            Ok(()) => return Exit::Success,
            Err(RecvTimeoutError::Disconnected) => return Exit::Infrastructure,
            Err(RecvTimeoutError::Timeout) => {}
        }
        queue.save();
        if asked.is_finished() {
            tell("the API broke down; this is a bug in proctor, please report it");
            return Exit::Infrastructure;
        }
    }
}

/// Lets running methods finish for as long as that is granted, then interrupts them; a second signal interrupts them at
/// once, a third kills them. What is not finished goes on when the next daemon starts.
fn stop(queue: &Queue, signals: &Receiver<()>, grace: Duration) {
    tell(&format!(
        "stopping: nothing more starts, and running methods have {} to finish; once more to interrupt them now",
        crate::render::seconds(grace.as_secs_f64())
    ));
    queue.drain();
    let granted = Instant::now() + grace;
    while Instant::now() < granted && !queue.wait_idle(Duration::from_millis(100)) {
        if signals.try_recv().is_ok() {
            break;
        }
    }
    if queue.wait_idle(Duration::ZERO) {
        queue.save();
        return;
    }
    tell("interrupting what runs; once more to kill it");
    queue.interrupt(false);
    let last = Instant::now() + INTERRUPTED;
    while Instant::now() < last && !queue.wait_idle(Duration::from_millis(100)) {
        if signals.try_recv().is_ok() {
            queue.interrupt(true);
        }
    }
    queue.save();
}
