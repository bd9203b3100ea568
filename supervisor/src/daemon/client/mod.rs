//! Asking a daemon: one request a connection, over its Unix socket.

pub mod events;
pub mod fetch;
pub mod watch;

use super::view::Problem;
use crate::error::Error;
use crate::render::brief;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::timeout;

/// A daemon that lives takes a connection at once.
const CONNECT: Duration = Duration::from_secs(10);
/// The longest a daemon may think: a submission is checked against all its data, after those before it.
const ANSWER: Duration = Duration::from_mins(30);
/// The longest it may think when it is only to look.
const LOOK: Duration = Duration::from_mins(2);
/// The longest silence within an answer.
const SILENCE: Duration = Duration::from_mins(1);
/// The largest answer that is read whole.
const MOST: usize = 64 << 20;
/// A daemon that is busy is asked again so often, with a second between.
const AGAIN: u32 = 20;

/// Why a daemon did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody answers there.
    #[error(
        "no daemon answers at {socket}: {reason}; start one with `proctor daemon`, or name its socket with --socket or PROCTOR_SOCKET", socket = socket.display()
    )]
    NoDaemon {
        /// Where.
        socket: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The connection broke, or the answer is none of a daemon.
    #[error("the daemon at {socket} broke off: {reason}", socket = socket.display())]
    Broken {
        /// Where.
        socket: PathBuf,
        /// What happened.
        reason: String,
    },
    /// It speaks another language: another version, most likely.
    #[error("the daemon at {socket} is not understood: {reason}; is it of the same version?", socket = socket.display())]
    Strange {
        /// Where.
        socket: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// It says why.
    #[error("{}", words(.1))]
    Refused(StatusCode, Problem),
    /// What it sent cannot be written.
    #[error("could not write what the daemon sent: {0}")]
    Output(#[from] io::Error),
}

fn words(problem: &Problem) -> String {
    // The message of a refused submission is that of `proctor run` and says itself what to do.
    if problem.code == "refused" {
        problem.message.clone()
    } else {
        format!("{}; {}", problem.message, problem.help)
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        match &error {
            ClientError::Refused(status, _) if status.is_client_error() => {
                Self::Input(error.to_string())
            }
            _ => Self::Infrastructure(error.to_string()),
        }
    }
}

impl ClientError {
    /// True when the daemon may only be away for a while.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::NoDaemon { .. } | Self::Broken { .. } => true,
            Self::Refused(status, _) => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            Self::Strange { .. } | Self::Output(_) => false,
        }
    }
}

/// A way to ask a daemon.
#[derive(Debug)]
pub struct Client {
    socket: PathBuf,
    runtime: tokio::runtime::Runtime,
}

impl Client {
    /// Asks at a socket. Nothing is sent yet.
    ///
    /// # Errors
    /// This process can have no event loop.
    pub fn new(socket: &Path) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| Error::Infrastructure(format!("no event loop: {error}")))?;
        Ok(Self {
            socket: socket.to_path_buf(),
            runtime,
        })
    }

    /// Reads a document.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.document(&Method::GET, path, &Bytes::new())
    }

    /// Sends a document and reads the answer.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(io::Error::other)?;
        self.document(&Method::POST, path, &body.into())
    }

    fn document<T: DeserializeOwned>(
        &self,
        method: &Method,
        path: &str,
        body: &Bytes,
    ) -> Result<T, ClientError> {
        let answer = self.ask(method, path, body)?;
        let bytes = self.runtime.block_on(self.whole(answer))?;
        serde_json::from_slice(&bytes).map_err(|error| self.strange(error.to_string()))
    }

    /// Reads a file piece by piece. How many bytes it had.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn download(&self, path: &str, out: &mut dyn Write) -> Result<u64, ClientError> {
        let mut body = self.ask(&Method::GET, path, &Bytes::new())?.into_body();
        let mut length = 0;
        while let Some(bytes) = self.piece(&mut body)? {
            out.write_all(&bytes)?;
            length += bytes.len() as u64;
        }
        Ok(length)
    }

    /// The next bytes of a body; `None` at its end.
    fn piece(&self, body: &mut Incoming) -> Result<Option<Bytes>, ClientError> {
        self.runtime.block_on(async {
            loop {
                match timeout(SILENCE, body.frame()).await {
                    Err(_) => return Err(self.broken("it fell silent".into())),
                    Ok(None) => return Ok(None),
                    Ok(Some(Err(error))) => return Err(self.broken(error.to_string())),
                    Ok(Some(Ok(frame))) => {
                        if let Ok(bytes) = frame.into_data() {
                            return Ok(Some(bytes));
                        }
                    }
                }
            }
        })
    }

    /// Asks until the daemon has time, and gives a successful answer.
    fn ask(
        &self,
        method: &Method,
        path: &str,
        body: &Bytes,
    ) -> Result<Response<Incoming>, ClientError> {
        let mut left = AGAIN;
        loop {
            let answer = self.runtime.block_on(self.once(method, path, body))?;
            let status = answer.status();
            if status.is_success() {
                return Ok(answer);
            }
            let bytes = self.runtime.block_on(self.whole(answer))?;
            let problem = serde_json::from_slice(&bytes).unwrap_or_else(|_| Problem {
                code: "unknown".into(),
                message: format!("the daemon answers {status}"),
                help: "look at its log".into(),
            });
            if status != StatusCode::TOO_MANY_REQUESTS || left == 0 {
                return Err(ClientError::Refused(status, problem));
            }
            left -= 1;
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    async fn once(
        &self,
        method: &Method,
        path: &str,
        body: &Bytes,
    ) -> Result<Response<Incoming>, ClientError> {
        let nobody = |reason: String| ClientError::NoDaemon {
            socket: self.socket.clone(),
            reason,
        };
        let connected = timeout(CONNECT, UnixStream::connect(&self.socket)).await;
        let stream = connected
            .map_err(|_| nobody("it takes no connection".into()))?
            .map_err(|error| nobody(absence(&error)))?;
        let broken = |error: hyper::Error| self.broken(error.to_string());
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "proctor")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body.clone()))
            .map_err(|error| self.broken(error.to_string()))?;
        let most = if *method == Method::GET { LOOK } else { ANSWER };
        let answer = timeout(most, sender.send_request(request)).await;
        answer
            .map_err(|_| self.broken("it does not answer".into()))?
            .map_err(broken)
    }

    async fn whole(&self, answer: Response<Incoming>) -> Result<Bytes, ClientError> {
        let limited = http_body_util::Limited::new(answer.into_body(), MOST);
        match timeout(SILENCE, limited.collect()).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) => Err(self.broken(error.to_string())),
            Err(_) => Err(self.broken("it fell silent".into())),
        }
    }

    fn strange(&self, reason: String) -> ClientError {
        ClientError::Strange {
            socket: self.socket.clone(),
            reason,
        }
    }

    fn broken(&self, reason: String) -> ClientError {
        ClientError::Broken {
            socket: self.socket.clone(),
            reason,
        }
    }
}

/// Why nobody answers, in words.
fn absence(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such socket".to_owned(),
        io::ErrorKind::ConnectionRefused => "nobody listens there any more".to_owned(),
        _ => error.to_string(),
    }
}

/// A name as one segment of a path: everything but letters, digits and `-._~` becomes `%XX`.
pub fn segment(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    // These two mean folders, however they are written.
    match text.as_str() {
        "." => "%2E".into(),
        ".." => "%2E%2E".into(),
        _ => text,
    }
}

/// The number of a run on the command line.
///
/// # Errors
/// It is none.
pub fn run_number(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!(
            "{}: is not the number of a run; `proctor ls` shows them",
            brief(text)
        )),
        Ok(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_segment() {
        assert_eq!(segment("Jaro-Winkler"), "Jaro-Winkler");
        assert_eq!(segment("a/b ?#%\u{e9}"), "a%2Fb%20%3F%23%25%C3%A9");
        assert_eq!(
            (segment("."), segment("..")),
            ("%2E".into(), "%2E%2E".into())
        );
    }

    #[test]
    fn where_nobody_listens_is_said_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let client = Client::new(&folder.path().join("s")).unwrap();
        let error = client.get::<Problem>("/v1/queue").unwrap_err();
        assert!(error.may_pass());
        let text = error.to_string();
        assert!(
            text.contains("no daemon answers at")
                && text.contains("there is no such socket")
                && text.contains("proctor daemon"),
            "{text}"
        );
        assert_eq!(Error::from(error).exit().code(), 3);
    }

    #[test]
    fn a_run_is_a_number_from_one() {
        assert_eq!(run_number("12"), Ok(12));
        for bad in ["0", "-1", "x", "", "1.0"] {
            assert!(run_number(bad).is_err(), "{bad}");
        }
    }
}
