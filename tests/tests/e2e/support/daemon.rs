//! A daemon for a test, in the folder of a benchmark.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::bench::Bench;
use super::proctor::{self, Done};
use super::{repository, wait_for};
use crate::args;

/// A daemon that has only the Unix socket, unless more is asked for.
#[derive(Debug)]
pub struct Daemon<'a> {
    pub bench: &'a Bench,
    more: Vec<String>,
    child: Option<Child>,
}

/// An answer to a request that was written by hand.
#[derive(Debug)]
pub struct Answer {
    /// The status; 0 when the connection was closed without one.
    pub status: u16,
    /// The head, in small letters.
    pub head: String,
    /// The body.
    pub body: String,
}

impl Answer {
    /// Reads a whole answer.
    pub fn read(stream: &mut impl Read) -> Self {
        let mut bytes = Vec::new();
        // A server that refuses may reset the connection while we still send.
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Self {
            status: status.unwrap_or(0),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Demands a status and, unless that is a success, a problem that says what is wrong and what to do.
    pub fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        if status >= 400 {
            let problem = self.json();
            for field in ["code", "message", "help"] {
                let text = problem[field].as_str();
                assert!(text.is_some_and(|text| !text.is_empty()), "{problem}");
            }
        }
        self
    }
}

impl<'a> Daemon<'a> {
    /// Starts one with these options beside those every test needs.
    pub fn start(bench: &'a Bench, more: &[&str]) -> Self {
        let mut daemon = Self {
            bench,
            more: more.iter().map(|&word| word.to_owned()).collect(),
            child: None,
        };
        daemon.begin();
        daemon
    }

    /// The command that starts it.
    pub fn command(&self) -> Command {
        let mut command = proctor::command(args![
            "daemon",
            "--state",
            self.state(),
            "--socket",
            self.socket(),
            "--root",
            self.bench.path(""),
            "--root",
            repository().join("fixtures"),
        ]);
        command.args(&self.more);
        command
    }

    /// Starts it again, where it was.
    pub fn begin(&mut self) {
        let log = std::fs::File::options()
            .append(true)
            .create(true)
            .open(self.bench.path("daemon.log"))
            .expect("a log");
        let mut command = self.command();
        command.stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn().expect("the daemon starts"));
        wait_for("the daemon to answer", || {
            UnixStream::connect(self.socket()).is_ok()
        });
    }

    /// The state directory.
    pub fn state(&self) -> PathBuf {
        self.bench.path("state")
    }

    /// The socket.
    pub fn socket(&self) -> PathBuf {
        self.bench.path("s")
    }

    /// The run directory of a run.
    pub fn run_dir(&self, id: u64) -> PathBuf {
        self.state().join(format!("runs/{id:08}"))
    }

    /// The process id.
    pub fn pid(&self) -> i32 {
        let child = self.child.as_ref().expect("it runs");
        i32::try_from(child.id()).expect("a process id")
    }

    /// Ends it as a loss of power would.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().expect("it can be killed");
        child.wait().expect("it is gone");
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("it runs");
    }

    /// Waits for its end; the exit code.
    pub fn wait(&mut self) -> Option<i32> {
        let mut child = self.child.take().expect("it runs");
        let deadline = Instant::now() + Duration::from_mins(1);
        while Instant::now() < deadline {
            if let Some(status) = child.try_wait().expect("it can be waited for") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = child.kill();
        let _ = child.wait();
        panic!("the daemon does not stop:\n{}", self.log());
    }

    /// What it has said so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.bench.path("daemon.log")).expect("a log")
    }

    /// A command that asks it.
    pub fn client(&self, words: &[&str]) -> Command {
        let mut command = proctor::command(words);
        command.env("PROCTOR_SOCKET", self.socket());
        command
    }

    /// Runs a command that asks it.
    pub fn ask(&self, words: &[&str]) -> Done {
        proctor::finish(self.client(words))
    }

    /// Submits methods under the protocol of the bench; gives the number of the run.
    pub fn submit(&self, methods: &[Value], more: &[&str]) -> u64 {
        let methods = self.bench.methods(methods);
        let protocol = self.bench.protocol();
        let mut words = vec!["submit", protocol.to_str().expect("text")];
        words.extend(["--json", methods.to_str().expect("text")]);
        words.extend(more);
        let done = self.ask(&words).exits(0);
        let run: Value = serde_json::from_str(&done.stdout).expect("JSON");
        run["id"].as_u64().expect("a number")
    }

    /// Everything about a run.
    pub fn show(&self, id: u64) -> Value {
        let done = self.ask(&["show", "--json", &id.to_string()]).exits(0);
        serde_json::from_str(&done.stdout).expect("JSON")
    }

    /// Waits until a run is in this state.
    pub fn wait_state(&self, id: u64, state: &str) {
        wait_for(&format!("run {id} to be {state}"), || {
            self.get(&format!("/v1/runs/{id}")).is(200).json()["state"] == state
        });
    }

    /// Waits until a method of a run is in this state.
    pub fn wait_method(&self, id: u64, name: &str, state: &str) {
        wait_for(&format!("{name} of run {id} to be {state}"), || {
            let run = self.get(&format!("/v1/runs/{id}")).is(200).json();
            let methods = run["methods"].as_array().expect("methods");
            let mut found = methods.iter().filter(|method| method["name"] == name);
            found.next().expect("the method")["state"] == state
        });
    }

    /// A connection, with a bound on every wait.
    pub fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).expect("it listens");
        let bound = Some(Duration::from_secs(40));
        stream.set_read_timeout(bound).expect("a bound");
        stream.set_write_timeout(bound).expect("a bound");
        stream
    }

    /// Sends bytes as they are, and reads the answer.
    pub fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that refuses may close while we still send.
        let _ = stream.write_all(bytes);
        Answer::read(&mut stream)
    }

    /// A GET.
    pub fn get(&self, path: &str) -> Answer {
        self.raw(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes())
    }

    /// A POST of JSON text.
    pub fn post(&self, path: &str, body: &str) -> Answer {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.raw(format!("{head}{body}").as_bytes())
    }

    /// The submission of the bench's protocol with a methods file that is there already.
    pub fn submission(&self) -> Value {
        json!({
            "protocol": self.bench.protocol(),
            "methods": self.bench.path("methods.json"),
        })
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            if std::thread::panicking() {
                eprintln!("--- the daemon said\n{}", self.log());
            }
            // Twice: interrupt now. Its rooms are emptied, which a kill would leave to the next one.
            let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
            for _ in 0..2 {
                let _ = kill(pid, Signal::SIGTERM);
                std::thread::sleep(Duration::from_millis(50));
            }
            for _ in 0..500 {
                if matches!(child.try_wait(), Ok(Some(_))) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
