//! The places where a daemon is asked, and how it says that it can be.

use super::auth::{AuthError, check_loopback};
use nix::sys::stat::{Mode, umask};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The most bytes of a socket's path, which is the kernel's limit.
const PATH_BYTES: usize = 107;

/// A place cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The path is too long for a socket.
    #[error("--socket {path}: is longer than the {PATH_BYTES} bytes that the path of a socket may have; name a shorter one", path = path.display())]
    TooLong {
        /// The path.
        path: PathBuf,
    },
    /// Something lies there that is no socket of a dead daemon.
    #[error("--socket {path}: {problem}", path = path.display())]
    Taken {
        /// The path.
        path: PathBuf,
        /// What lies there, and what to do.
        problem: String,
    },
    /// The system refused.
    #[error("could not {action} {place}: {source}")]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// Where.
        place: String,
        /// What the system said.
        source: io::Error,
    },
    /// The address is none for this.
    #[error(transparent)]
    Address(#[from] AuthError),
}

/// A listening Unix socket. It is taken away when this is dropped.
#[derive(Debug)]
pub struct Socket {
    /// The socket.
    pub listener: UnixListener,
    path: PathBuf,
    inode: u64,
    _lock: File,
}

impl Socket {
    /// Listens at a path, with this file mode. What a dead daemon left there is replaced; a living one is not.
    ///
    /// # Errors
    /// A daemon answers there, something else lies there, or the system refused.
    pub fn bind(path: &Path, mode: u32) -> Result<Self, ListenError> {
        let io = |action, at: &Path| {
            let place = at.display().to_string();
            move |source| ListenError::Io {
                action,
                place,
                source,
            }
        };
        let path = std::path::absolute(path).map_err(io("find", path))?;
        if path.as_os_str().len() > PATH_BYTES {
            return Err(ListenError::TooLong { path });
        }
        let lock = lock(&path)?;
        match std::fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io("look at", &path)(error)),
            Ok(found) if !found.file_type().is_socket() => {
                return Err(taken(
                    path,
                    "something lies there that is not a socket; move it away, or name another path",
                ));
            }
            // A program that holds no lock of ours may answer there all the same.
            Ok(_) if UnixStream::connect(&path).is_ok() => {
                return Err(taken(
                    path,
                    "a program answers there; stop it, or name another path",
                ));
            }
            Ok(_) => std::fs::remove_file(&path).map_err(io("remove", &path))?,
        }
        // From its first instant nobody else can connect.
        let before = umask(Mode::from_bits_truncate(0o177));
        let bound = UnixListener::bind(&path);
        umask(before);
        let listener = bound.map_err(io("listen on", &path))?;
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&path, permissions).map_err(io("set the mode of", &path))?;
        let found = std::fs::symlink_metadata(&path).map_err(io("look at", &path))?;
        Ok(Self {
            listener,
            inode: found.ino(),
            path,
            _lock: lock,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Unless somebody put another one there.
        if std::fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn taken(path: PathBuf, problem: &str) -> ListenError {
    ListenError::Taken {
        path,
        problem: problem.to_owned(),
    }
}

/// Of two daemons that want one socket, one gets this.
fn lock(socket: &Path) -> Result<File, ListenError> {
    let mut name = socket.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    let path = socket.with_file_name(name);
    let failed = |action| {
        let place = path.display().to_string();
        move |source| ListenError::Io {
            action,
            place,
            source,
        }
    };
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(failed("open"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(taken(
            socket.to_path_buf(),
            "another daemon listens there; stop it, or name another path",
        )),
        Err(TryLockError::Error(source)) => Err(failed("lock")(source)),
    }
}

/// Listens on TCP. Gives the listener and the address it has.
///
/// # Errors
/// The address is not loopback, or the system refused.
pub fn tcp(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ListenError> {
    check_loopback(address)?;
    let failed = |source| ListenError::Io {
        action: "listen on",
        place: address.to_string(),
        source,
    };
    let listener = TcpListener::bind(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Tells systemd, if it started us and asked to be told (`Type=notify`). Whoever is not there is not told.
pub fn notify(state: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let Ok(datagram) = UnixDatagram::unbound() else {
        return;
    };
    let name = socket.as_encoded_bytes();
    let _ = match name.strip_prefix(b"@") {
        Some(name) => std::os::unix::net::SocketAddr::from_abstract_name(name)
            .and_then(|address| datagram.send_to_addr(state.as_bytes(), &address)),
        None => datagram.send_to(state.as_bytes(), &socket),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_socket_is_replaced_and_a_living_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        // As a killed process leaves it.
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let first = Socket::bind(&path, 0o600).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        let text = Socket::bind(&path, 0o600).unwrap_err().to_string();
        assert!(text.contains("another daemon listens"), "{text}");
        drop(first);
        assert!(!path.exists());
        let foreign = UnixListener::bind(&path).unwrap();
        let text = Socket::bind(&path, 0o600).unwrap_err().to_string();
        assert!(text.contains("a program answers there"), "{text}");
        drop(foreign);
        let second = Socket::bind(&path, 0o660).unwrap();
        assert_eq!(second.path(), path);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o660);
    }

    #[test]
    fn what_is_no_socket_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        std::fs::write(&path, "mine").unwrap();
        let text = Socket::bind(&path, 0o600).unwrap_err().to_string();
        assert!(text.contains("not a socket"), "{text}");
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        let long = folder.path().join("x".repeat(120));
        let text = Socket::bind(&long, 0o600).unwrap_err().to_string();
        assert!(text.contains("107 bytes"), "{text}");
        assert!(Socket::bind(&folder.path().join("no/where"), 0o600).is_err());
    }

    #[test]
    fn tcp_is_for_this_machine() {
        assert!(tcp("0.0.0.0:0".parse().unwrap()).is_err());
        let (_listener, address) = tcp("127.0.0.1:0".parse().unwrap()).unwrap();
        assert_ne!(address.port(), 0);
    }
}
