//! What lies in run directories: stderr of methods, and bundles.

use super::error::ApiError;
use super::openapi::Always;
use super::runs::{method, query, run_id};
use super::segments::Segments;
use super::{Api, blocking};
use crate::daemon::page;
use crate::daemon::read::bundle_dir;
use crate::daemon::view::{LogView, RunState};
use crate::render::brief;
use crate::rundir::state;
use crate::rundir::{RunDir, regular};
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::Mode;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path as FilePath;
use utoipa::IntoParams;

/// The most of a log in one answer.
const LOG_BYTES: u64 = 64 << 10;
/// A file is sent in pieces of this size.
const PIECE: usize = 64 << 10;

/// Which part of a log.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Part {
    /// The attempt; the one that counts without it.
    attempt: Option<String>,
    /// The byte to begin at; `next` of the answer before.
    from: Option<u64>,
}

/// What a method wrote to stderr.
#[utoipa::path(get, path = "/v1/runs/{id}/methods/{method}/log", params(("id" = u64, Path, description = "Number of the run", minimum = 1), ("method" = String, Path, description = "Name or id of a method"), Part), responses((status = 200, body = LogView), Always))]
pub(super) async fn log(
    State(api): State<Api>,
    Segments((id, name)): Segments<(String, String)>,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Json<LogView>, ApiError> {
    let id = run_id(&id)?;
    let Query(part) = query(part)?;
    let view = blocking(move || {
        let (known, dir, plan) = api.open(id)?;
        let position = method(&plan, &name)?;
        let attempts = state::attempts(&RunDir::new(&dir), &plan.methods[position].id)
            .map_err(crate::error::Error::from)?;
        let attempt = match &part.attempt {
            None => state::counting(&attempts),
            Some(id) => attempts
                .iter()
                .find(|attempt| attempt.id.to_string() == *id),
        };
        let Some(attempt) = attempt else {
            let name = brief(&plan.methods[position].name);
            return Err(match &part.attempt {
                Some(wanted) => ApiError::unknown("attempt", wanted),
                None if known.summary.state == RunState::Ended => {
                    ApiError::NotStarted(format!("{name} was never started in run {id}"))
                }
                None => ApiError::NotStarted(format!("{name} of run {id} has not started yet")),
            });
        };
        let ended = attempt.terminal.is_some();
        let (text, next, more) = piece(&attempt.stderr_log(), part.from.unwrap_or(0), ended)
            .map_err(|error| ApiError::Internal(format!("the log cannot be read: {error}")))?;
        Ok(LogView {
            attempt: attempt.id.to_string(),
            text,
            next,
            complete: ended && !more,
        })
    });
    Ok(Json(view.await?))
}

/// Text of a log from a byte on, the byte after it, and whether the file has more. A character that is not wholly
/// written yet is left for the next time, unless nothing more will come.
fn piece(log: &FilePath, from: u64, ended: bool) -> io::Result<(String, u64, bool)> {
    let mut file = match regular::open(log) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok((String::new(), from, false));
        }
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let from = from.min(length);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES).read_to_end(&mut bytes)?;
    let more = from + (bytes.len() as u64) < length;
    if more || !ended {
        bytes.truncate(whole(&bytes));
    }
    let next = from + bytes.len() as u64;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), next, more))
}

/// How many of the bytes are not the beginning of a character whose end is missing.
fn whole(bytes: &[u8]) -> usize {
    let last = bytes
        .iter()
        .rev()
        .take(3)
        .position(|byte| byte & 0xc0 != 0x80);
    let Some(back) = last else {
        return bytes.len();
    };
    let at = bytes.len() - 1 - back;
    let needs = match bytes[at] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    if back + 1 < needs { at } else { bytes.len() }
}

/// A file of a bundle.
#[utoipa::path(get, path = "/v1/runs/{id}/bundles/{number}/{path}", params(("id" = u64, Path, description = "Number of the run", minimum = 1), ("number" = String, Path, description = "Number of the bundle"), ("path" = String, Path, description = "Path of the file below the bundle; may hold `/`")), responses((status = 200, description = "The bytes of the file", content(([u8] = "application/octet-stream"), (Value = "application/json"), (String = "text/html"), (String = "text/plain"))), Always))]
pub(super) async fn bundle_file(
    State(api): State<Api>,
    Segments((id, number, path)): Segments<(String, String, String)>,
) -> Result<Response, ApiError> {
    let id = run_id(&id)?;
    let served = page::served(&path);
    let (file, length) = blocking(move || {
        api.queue.find(id)?;
        let dir = bundle_dir(&api.queue.state().run_dir(id), &number)
            .ok_or_else(|| ApiError::unknown("bundle", &number))?;
        if !dir.is_dir() {
            return Err(ApiError::unknown("bundle", &number));
        }
        beneath(&dir, &path).ok_or_else(|| ApiError::unknown("file", &path))
    })
    .await?;
    let pieces = stream::unfold(Some(file), |file| async {
        let read = tokio::task::spawn_blocking(move || next_piece(file?)).await;
        match read {
            Ok(read) => read,
            Err(error) => Some((Err(io::Error::other(error)), None)),
        }
    });
    let mut response = Body::from_stream(pieces).into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(served.content_type),
    );
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(served.policy),
    );
    Ok(response)
}

type Piece = (io::Result<Bytes>, Option<File>);

fn next_piece(mut file: File) -> Option<Piece> {
    let mut bytes = vec![0; PIECE];
    match file.read(&mut bytes) {
        Ok(0) => None,
        Ok(length) => {
            bytes.truncate(length);
            Some((Ok(bytes.into()), Some(file)))
        }
        Err(error) => Some((Err(error), None)),
    }
}

/// Opens a regular file below a directory. The kernel sees to it that nothing leads out: no `..`, no link.
fn beneath(dir: &FilePath, path: &str) -> Option<(File, u64)> {
    let root = File::open(dir).ok()?;
    let how = OpenHow::new()
        .flags(OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)
        .mode(Mode::empty())
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
    let file = File::from(openat2(&root, path, how).ok()?);
    let found = file.metadata().ok()?;
    found.is_file().then_some((file, found.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_not_cut() {
        assert_eq!(whole("a\u{e9}".as_bytes()), 3);
        for (text, kept) in [("\u{e9}", 0), ("ab\u{20ac}", 2), ("x\u{1f600}", 1)] {
            let bytes = text.as_bytes();
            assert_eq!(whole(bytes), bytes.len());
            for cut in kept + 1..bytes.len() {
                assert_eq!(whole(&bytes[..cut]), kept, "{text} cut at {cut}");
            }
        }
        // What is no UTF-8 at all does not hold anything up.
        assert_eq!(whole(&[0x80; 8]), 8);
        assert_eq!(whole(&[0xff]), 1);
        assert_eq!(whole(&[]), 0);
    }

    #[test]
    fn a_log_is_read_on_from_where_it_was_left() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("stderr");
        assert_eq!(piece(&log, 0, false).unwrap(), (String::new(), 0, false));
        std::fs::write(&log, "one\n\u{e9}".as_bytes().split_last().unwrap().1).unwrap();
        assert_eq!(piece(&log, 0, false).unwrap(), ("one\n".into(), 4, false));
        assert_eq!(piece(&log, 4, true).unwrap(), ("\u{fffd}".into(), 5, false));
        std::fs::write(&log, vec![b'x'; LOG_BYTES as usize + 1]).unwrap();
        let (text, next, more) = piece(&log, 0, true).unwrap();
        assert_eq!(
            (text.len() as u64, next, more),
            (LOG_BYTES, LOG_BYTES, true)
        );
        assert_eq!(
            piece(&log, next, true).unwrap(),
            ("x".into(), LOG_BYTES + 1, false)
        );
        // Somebody asks for what never was.
        assert_eq!(piece(&log, u64::MAX, true).unwrap().0, "");
    }

    #[test]
    fn nothing_outside_a_bundle_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("0001");
        std::fs::create_dir_all(dir.join("scores")).unwrap();
        std::fs::write(dir.join("scores/a.csv"), "1").unwrap();
        std::fs::write(folder.path().join("secret"), "2").unwrap();
        std::os::unix::fs::symlink("../secret", dir.join("link")).unwrap();
        nix::unistd::mkfifo(&dir.join("pipe"), Mode::S_IRWXU).unwrap();
        assert_eq!(beneath(&dir, "scores/a.csv").unwrap().1, 1);
        for bad in [
            "../secret",
            "scores/../../secret",
            "/etc/passwd",
            "link",
            "pipe",
            "scores",
            ".",
            "",
            "nothing",
            "a\0b",
        ] {
            assert!(beneath(&dir, bad).is_none(), "{bad}");
        }
    }
}
