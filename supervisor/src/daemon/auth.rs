//! Who may ask. On the Unix socket the file's mode decides, so whoever can connect may do everything. On TCP a token
//! decides: every program and every web page on the machine can reach that.

use proctor_protocol::canonical::sha256_hex;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The fewest characters of a token: fewer could be guessed.
const SHORTEST: usize = 16;
/// The most characters of a token.
const LONGEST: usize = 1024;
/// The cookie of a browser that was shown the token.
const COOKIE: &str = "proctor-read";

/// How a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// The Unix socket.
    Unix,
    /// TCP on loopback, at this port.
    Tcp(u16),
}

/// What a request may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Nothing.
    None,
    /// Look.
    Read,
    /// Everything.
    Full,
}

/// A secret as its digest: comparing digests takes the same time whatever is compared.
#[derive(Clone)]
pub struct Token {
    digest: String,
    cookie: String,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Why a token file or an address is refused.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The file cannot be used.
    #[error("--token-file {path}: {problem}")]
    File {
        /// The file.
        path: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// Others could reach it.
    #[error(
        "--listen {0}: is not a loopback address, and this API is not for networks; use 127.0.0.1:PORT or [::1]:PORT, and ssh -L from elsewhere"
    )]
    NotLoopback(SocketAddr),
}

impl Token {
    /// A token of this text.
    pub fn new(text: &str) -> Self {
        Self {
            digest: sha256_hex(text.as_bytes()),
            cookie: sha256_hex(format!("{COOKIE}:{text}").as_bytes()),
        }
    }

    /// Reads a token file: one line, readable by its owner alone.
    ///
    /// # Errors
    /// It cannot be read, others can read it, or it holds no good token.
    pub fn read(path: &Path) -> Result<Self, AuthError> {
        let wrong = |problem: String| AuthError::File {
            path: crate::render::brief(&path.display().to_string()),
            problem,
        };
        let file = crate::rundir::regular::open(path).map_err(|error| wrong(error.to_string()))?;
        let found = file.metadata().map_err(|error| wrong(error.to_string()))?;
        if found.mode() & 0o077 != 0 {
            return Err(wrong(format!(
                "its mode is {:o}, so that others can read it; chmod 600 it, and make a new token if somebody may have",
                found.mode() & 0o7777
            )));
        }
        let uid = nix::unistd::geteuid().as_raw();
        if found.uid() != uid && found.uid() != 0 {
            return Err(wrong(format!(
                "belongs to user {}; it must be yours",
                found.uid()
            )));
        }
        let mut text = String::new();
        file.take(LONGEST as u64 + 2)
            .read_to_string(&mut text)
            .map_err(|error| wrong(error.to_string()))?;
        let token = text.trim();
        let graphic = token.bytes().all(|byte| byte.is_ascii_graphic());
        if token.len() < SHORTEST || token.len() > LONGEST || !graphic {
            return Err(wrong(format!(
                "must hold one line of {SHORTEST} to {LONGEST} visible ASCII characters; `head -c 32 /dev/urandom | base64` makes a good one"
            )));
        }
        Ok(Self::new(token))
    }

    /// Whether somebody's text is the token.
    pub fn is(&self, text: &str) -> bool {
        same(&sha256_hex(text.as_bytes()), &self.digest)
    }

    /// The `Set-Cookie` of a browser that showed the token. It is good for looking only.
    pub fn set_cookie(&self) -> String {
        format!(
            "{COOKIE}={}; HttpOnly; SameSite=Strict; Path=/",
            self.cookie
        )
    }

    /// What a request over TCP may do by its `Authorization` and `Cookie` headers.
    pub fn access(&self, authorization: Option<&str>, cookies: Option<&str>) -> Access {
        if let Some(given) = authorization {
            let bearer = given.split_once(' ');
            let token = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
            return match token {
                Some((_, token)) if self.is(token.trim()) => Access::Full,
                _ => Access::None,
            };
        }
        let mut cookies = cookies.unwrap_or_default().split(';');
        let shown = cookies.any(|cookie| {
            let value = cookie.trim().strip_prefix(COOKIE);
            let value = value.and_then(|rest| rest.strip_prefix('='));
            value.is_some_and(|value| same(value, &self.cookie))
        });
        if shown { Access::Read } else { Access::None }
    }
}

/// Compares without telling by its time where two texts differ.
fn same(one: &str, other: &str) -> bool {
    let differs = one
        .bytes()
        .zip(other.bytes())
        .fold(0, |so_far, (a, b)| std::hint::black_box(so_far | (a ^ b)));
    one.len() == other.len() && differs == 0
}

/// Refuses an address that others than this machine could reach.
///
/// # Errors
/// It is one.
pub fn check_loopback(address: SocketAddr) -> Result<(), AuthError> {
    if address.ip().is_loopback() {
        Ok(())
    } else {
        Err(AuthError::NotLoopback(address))
    }
}

/// Whether the `Host` of a request over TCP names this machine's loopback and our port. A web page whose name was made
/// to lead here (DNS rebinding) has its own name there.
pub fn host_is_ours(host: &str, port: u16) -> bool {
    let (name, given) = match host.rsplit_once(':') {
        Some((name, digits)) if !digits.contains(']') => (name, digits.parse::<u16>().ok()),
        _ => (host, Some(80)),
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    let loopback = name.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    loopback && given == Some(port)
}

/// Whether an `Origin` is the page of ours that a request with this `Host` came from.
pub fn origin_is_ours(origin: &str, host: &str) -> bool {
    origin
        .strip_prefix("http://")
        .is_some_and(|from| from.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const TEXT: &str = "0123456789abcdef-token";

    #[test]
    fn a_token_is_asked_for_in_the_header_or_was_shown_before() {
        let token = Token::new(TEXT);
        let bearer = |text: &str| token.access(Some(text), None);
        assert_eq!(bearer(&format!("Bearer {TEXT}")), Access::Full);
        assert_eq!(bearer(&format!("bearer {TEXT}")), Access::Full);
        for wrong in ["", "Bearer", "Bearer ", "Bearer x", TEXT] {
            assert_eq!(bearer(wrong), Access::None, "{wrong}");
        }
        let set = token.set_cookie();
        let cookie = set.split(';').next().unwrap();
        assert_eq!(
            token.access(None, Some(&format!("a=b; {cookie}"))),
            Access::Read
        );
        for wrong in [
            format!("x{cookie}"),
            format!("{COOKIE}={TEXT}"),
            String::new(),
        ] {
            assert_eq!(token.access(None, Some(&wrong)), Access::None, "{wrong}");
        }
        // A wrong token is not made up for by a cookie.
        assert_eq!(token.access(Some("Bearer x"), Some(cookie)), Access::None);
        assert_eq!(token.access(None, None), Access::None);
        assert_eq!(format!("{token:?}"), "Token(..)");
    }

    #[test]
    fn a_token_file_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let with = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            Token::read(&path).map_err(|error| error.to_string())
        };
        assert!(with(&format!("{TEXT}\n"), 0o600).unwrap().is(TEXT));
        assert!(with(TEXT, 0o400).is_ok());
        let text = with(TEXT, 0o640).unwrap_err();
        assert!(text.contains("mode is 640"), "{text}");
        for bad in ["", "short", "two lines of\ntext here", &"x".repeat(2000)] {
            let text = with(bad, 0o600).unwrap_err();
            assert!(text.contains("one line of 16 to 1024"), "{text}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(Token::read(&path).is_err());
        assert!(Token::read(folder.path()).is_err());
    }

    #[test]
    fn only_names_of_this_machine_are_hosts() {
        for good in [
            "127.0.0.1:81",
            "localhost:81",
            "LOCALHOST:81",
            "[::1]:81",
            "127.9.9.9:81",
        ] {
            assert!(host_is_ours(good, 81), "{good}");
        }
        assert!(host_is_ours("localhost", 80));
        for bad in [
            "",
            "localhost",
            "localhost:82",
            "localhost:x",
            "evil.example:81",
            "127.0.0.1.evil.example:81",
            "10.0.0.1:81",
            "[::1]",
        ] {
            assert!(!host_is_ours(bad, 81), "{bad}");
        }
        assert!(origin_is_ours("http://localhost:81", "localhost:81"));
        for bad in [
            "null",
            "https://localhost:81",
            "http://evil.example",
            "http://localhost:82",
        ] {
            assert!(!origin_is_ours(bad, "localhost:81"), "{bad}");
        }
    }

    #[test]
    fn only_loopback_is_listened_on() {
        for (address, good) in [
            ("127.0.0.1:0", true),
            ("[::1]:0", true),
            ("0.0.0.0:80", false),
            ("[::]:80", false),
            ("192.168.0.1:80", false),
        ] {
            assert_eq!(check_loopback(address.parse().unwrap()).is_ok(), good);
        }
    }
}
