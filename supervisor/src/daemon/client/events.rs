//! Reading an event stream.

use super::{Client, ClientError};
use crate::daemon::view::Event;
use hyper::Method;
use hyper::body::{Bytes, Incoming};

/// The longest event.
const MOST: usize = 64 << 20;

/// The events of a stream, as they come.
#[derive(Debug)]
pub struct Events<'a> {
    client: &'a Client,
    body: Incoming,
    buffer: Buffer,
}

impl Client {
    /// Opens an event stream.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn events(&self, path: &str) -> Result<Events<'_>, ClientError> {
        let answer = self.ask(&Method::GET, path, &Bytes::new())?;
        Ok(Events {
            client: self,
            body: answer.into_body(),
            buffer: Buffer::default(),
        })
    }
}

impl Events<'_> {
    /// Waits for the next event; `None` when the stream has ended.
    ///
    /// # Errors
    /// The connection broke, or what came is no event.
    pub fn next_event(&mut self) -> Result<Option<Event>, ClientError> {
        loop {
            if let Some(data) = self.buffer.take() {
                let event = serde_json::from_str(&data)
                    .map_err(|error| self.client.strange(error.to_string()))?;
                return Ok(Some(event));
            }
            match self.client.piece(&mut self.body)? {
                Some(bytes) => self.buffer.add(&bytes),
                None => return Ok(None),
            }
            if self.buffer.bytes.len() > MOST {
                return Err(self.client.strange("an event is too long".into()));
            }
        }
    }
}

/// What came and was not taken yet.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
}

impl Buffer {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The data of the next event that has come whole. Comments, which keep a connection alive, have none.
    fn take(&mut self) -> Option<String> {
        loop {
            let end = self.bytes.windows(2).position(|pair| pair == b"\n\n")?;
            let block: Vec<u8> = self.bytes.drain(..end + 2).collect();
            let block = String::from_utf8_lossy(&block);
            let data: Vec<&str> = block
                .lines()
                .filter_map(|line| line.strip_prefix("data:"))
                .map(|data| data.strip_prefix(' ').unwrap_or(data))
                .collect();
            if !data.is_empty() {
                return Some(data.join("\n"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_however_the_bytes_come() {
        let stream = b": hello\n\nevent: run\ndata: {\"a\":1}\n\n:\n\ndata: x\ndata:y\n\nevent: z";
        for size in 1..stream.len() {
            let mut buffer = Buffer::default();
            let mut found = Vec::new();
            for piece in stream.chunks(size) {
                buffer.add(piece);
                found.extend(std::iter::from_fn(|| buffer.take()));
            }
            assert_eq!(found, ["{\"a\":1}", "x\ny"], "in pieces of {size}");
        }
    }
}
