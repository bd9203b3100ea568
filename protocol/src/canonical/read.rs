//! The reader: strict JSON (RFC 8259) with Python's number types and bounds on size, depth and count.

use std::sync::Arc;

use super::share::Shared;
use super::{Object, Value};

/// Bounds on untrusted JSON.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest document, in bytes.
    pub bytes: usize,
    /// Deepest nesting of arrays and objects.
    pub depth: usize,
    /// Most values of any kind.
    pub nodes: usize,
}

impl Default for Limits {
    /// 256 MiB, 64 levels, 20 million values: room for a bundle of hundreds of methods.
    fn default() -> Self {
        Self {
            bytes: 256 << 20,
            depth: 64,
            nodes: 20_000_000,
        }
    }
}

/// Why a document was refused, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct ReadError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong and, where it helps, what to do.
    pub problem: String,
}

/// The longest integer, in digits: the bound Python has.
const MAX_INTEGER_DIGITS: usize = 4300;

/// Reads a document with the default [`Limits`].
///
/// # Errors
/// [`ReadError`] for anything that is not one JSON document: duplicate keys, `NaN`, lone surrogates, bytes that are not
/// UTF-8, text after the end, or a limit passed.
pub fn read(bytes: &[u8]) -> Result<Value, ReadError> {
    read_with(bytes, Limits::default())
}

/// Reads a document with given limits.
///
/// # Errors
/// As [`read`].
pub fn read_with(bytes: &[u8], limits: Limits) -> Result<Value, ReadError> {
    read_document(bytes, limits, None)
}

/// Reads a document whose member `key` is an array of many items: they are handed to `each` in order and the array is left
/// empty, so that they never lie in memory together. A member that is no array is kept.
///
/// # Errors
/// As [`read`]. Items before the fault have been handed over by then.
pub fn read_streaming(
    bytes: &[u8],
    limits: Limits,
    key: &str,
    each: &mut dyn FnMut(Value),
) -> Result<Value, ReadError> {
    read_document(bytes, limits, Some(Stream { key, each }))
}

fn read_document<'a>(
    bytes: &'a [u8],
    limits: Limits,
    stream: Option<Stream<'a>>,
) -> Result<Value, ReadError> {
    if bytes.len() > limits.bytes {
        return Err(ReadError {
            line: 1,
            column: 1,
            problem: format!(
                "the document has {} bytes, more than the {} allowed",
                bytes.len(),
                limits.bytes
            ),
        });
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            let head = std::str::from_utf8(valid).unwrap_or_default();
            return Err(error_at(
                head,
                head.len(),
                format!(
                    "byte 0x{:02x} is not UTF-8",
                    rest.first().copied().unwrap_or(0)
                ),
            ));
        }
    };
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        at: 0,
        depth: 0,
        nodes: 0,
        limits,
        shared: Shared::new(),
        items: Vec::new(),
        entries: Vec::new(),
        key_starts: Vec::new(),
        unescaped: String::new(),
        stream,
        last_keys: Vec::new(),
    };
    reader
        .document()
        .map_err(|fault| error_at(text, fault.at, fault.problem))
}

/// Turns a byte offset into line and column.
fn error_at(text: &str, at: usize, problem: String) -> ReadError {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let head = &text[..at];
    let line_start = head.rfind('\n').map_or(0, |newline| newline + 1);
    ReadError {
        line: head.bytes().filter(|&byte| byte == b'\n').count() + 1,
        column: head[line_start..].chars().count() + 1,
        problem,
    }
}

/// True for a byte that does not stand for itself in a string.
fn ends_plain(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < 0x20
}

/// True when none of eight bytes is a quote, a backslash or a control character.
fn is_plain(bytes: [u8; 8]) -> bool {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let word = u64::from_le_bytes(bytes);
    // The high bit of a byte is set when it is zero, or below 0x20; bytes from 0x80 are left out by their own high bit.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let quote = zero(word ^ (ONES * u64::from(b'"')));
    let backslash = zero(word ^ (ONES * u64::from(b'\\')));
    (control | quote | backslash) & HIGH == 0
}

struct Fault {
    at: usize,
    problem: String,
}

/// Where the items of one top-level array go.
struct Stream<'a> {
    key: &'a str,
    each: &'a mut dyn FnMut(Value),
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    nodes: usize,
    limits: Limits,
    shared: Shared,
    // Items of all containers that are still open. A closed one takes its tail, so every vector has its exact size.
    items: Vec<Value>,
    entries: Vec<(Arc<str>, Value)>,
    key_starts: Vec<usize>,
    unescaped: String,
    stream: Option<Stream<'a>>,
    // Keys of the object closed last: the rows of a table repeat them in the same order.
    last_keys: Vec<Arc<str>>,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<Value, Fault> {
        if self.bytes.starts_with(b"\xef\xbb\xbf") {
            return Err(
                self.fault("a byte order mark is not allowed; save the file as plain UTF-8")
            );
        }
        self.space();
        let value = self.value()?;
        self.space();
        if self.at < self.bytes.len() {
            return Err(self.fault("more text after the end of the document"));
        }
        Ok(value)
    }

    fn fault(&self, problem: impl Into<String>) -> Fault {
        self.fault_at(self.at, problem)
    }

    #[expect(clippy::unused_self, reason = "reads better next to fault()")]
    fn fault_at(&self, at: usize, problem: impl Into<String>) -> Fault {
        Fault {
            at,
            problem: problem.into(),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn unexpected(&self, wanted: &str) -> Fault {
        match self
            .text
            .get(self.at..)
            .and_then(|rest| rest.chars().next())
        {
            None => self.fault(format!("the document ends here; expected {wanted}")),
            Some(other) => self.fault(format!("expected {wanted}, found {other:?}")),
        }
    }

    fn value(&mut self) -> Result<Value, Fault> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            return Err(self.fault(format!(
                "more than the {} values allowed in one document",
                self.limits.nodes
            )));
        }
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => {
                let text = self.string()?;
                Ok(Value::String(text))
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(b'N' | b'I') => Err(self.fault(
                "NaN and Infinity are not JSON; a value that is not known is written as null",
            )),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Fault> {
        if self.bytes[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(value)
        } else {
            Err(self.unexpected("a value"))
        }
    }

    fn nested(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<Value, Fault>,
    ) -> Result<Value, Fault> {
        self.depth += 1;
        if self.depth > self.limits.depth {
            return Err(self.fault(format!(
                "arrays and objects are nested deeper than the {} levels allowed",
                self.limits.depth
            )));
        }
        self.at += 1;
        let value = inner(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn array(&mut self) -> Result<Value, Fault> {
        let first = self.items.len();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(Vec::new()));
        }
        loop {
            self.space();
            let item = self.value()?;
            self.items.push(item);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(self.items.drain(first..).collect()));
                }
                _ => return Err(self.unexpected("`,` or `]`")),
            }
        }
    }

    /// True at the array of the document whose items are handed over.
    fn is_streamed(&self, key: &str) -> bool {
        let streamed = self.stream.as_ref().is_some_and(|stream| stream.key == key);
        streamed && self.depth == 1 && self.peek() == Some(b'[')
    }

    fn stream_array(&mut self) -> Result<Value, Fault> {
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(Vec::new()));
        }
        loop {
            self.space();
            let item = self.value()?;
            if let Some(stream) = &mut self.stream {
                (stream.each)(item);
            }
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(Vec::new()));
                }
                _ => return Err(self.unexpected("`,` or `]`")),
            }
        }
    }

    fn object(&mut self) -> Result<Value, Fault> {
        let first = self.entries.len();
        // Not the same: the key under which this object stands has begun already.
        let first_key = self.key_starts.len();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(Object::new()));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a key in quotes"));
            }
            self.key_starts.push(self.at);
            let key = match self.repeated_key(self.entries.len() - first) {
                Some(key) => key,
                None => self.string()?,
            };
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.unexpected("`:` after the key"));
            }
            self.at += 1;
            self.space();
            let value = if self.is_streamed(&key) {
                self.nested(Self::stream_array)?
            } else {
                self.value()?
            };
            self.entries.push((key, value));
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return self.close_object(first, first_key);
                }
                _ => return Err(self.unexpected("`,` or `}`")),
            }
        }
    }

    /// The key at this place of the last object, if it comes again here.
    fn repeated_key(&mut self, place: usize) -> Option<Arc<str>> {
        let key = self.last_keys.get(place)?;
        let rest = &self.bytes[self.at + 1..];
        if !rest.starts_with(key.as_bytes()) || rest.get(key.len()) != Some(&b'"') {
            return None;
        }
        self.at += key.len() + 2;
        Some(key.clone())
    }

    fn close_object(&mut self, first: usize, first_key: usize) -> Result<Value, Fault> {
        let entries: Vec<_> = self.entries.drain(first..).collect();
        let keys = || entries.iter().map(|(key, _)| key);
        if !keys().eq(self.last_keys.iter()) {
            self.last_keys.clear();
            // A key with characters that must be escaped looks otherwise in the text.
            let escaped = |key: &&Arc<str>| key.bytes().any(ends_plain);
            self.last_keys
                .extend(keys().take_while(|key| !escaped(key)).cloned());
        }
        match Object::from_entries(entries) {
            Ok(object) => {
                self.key_starts.truncate(first_key);
                Ok(Value::Object(object))
            }
            Err(key) => {
                let starts = self.key_starts.split_off(first_key);
                let mut at = self.at;
                let mut seen = false;
                for start in starts {
                    self.at = start;
                    if self.string()? == key {
                        if seen {
                            at = start;
                            break;
                        }
                        seen = true;
                    }
                }
                Err(self.fault_at(
                    at,
                    format!("the key {key:?} comes twice in one object; keep one"),
                ))
            }
        }
    }

    /// Reads a string; the reader stands on its opening quote.
    fn string(&mut self) -> Result<Arc<str>, Fault> {
        let open = self.at;
        self.at += 1;
        let start = self.at;
        self.plain();
        if self.peek() == Some(b'"') {
            let text = &self.text[start..self.at];
            self.at += 1;
            return Ok(self.shared.share(text));
        }
        let mut out = std::mem::take(&mut self.unescaped);
        out.clear();
        out.push_str(&self.text[start..self.at]);
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    let text = self.shared.share(&out);
                    self.unescaped = out;
                    return Ok(text);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(byte) => {
                    return Err(self.fault(format!(
                        "a control character (0x{byte:02x}) must be escaped inside a string"
                    )));
                }
                None => return Err(self.fault_at(open, "this string is never closed")),
            }
            let start = self.at;
            self.plain();
            out.push_str(&self.text[start..self.at]);
        }
    }

    /// Passes over characters that stand for themselves in a string.
    fn plain(&mut self) {
        let rest = &self.bytes[self.at..];
        let (words, _) = rest.as_chunks::<8>();
        let plain = 8 * words.iter().take_while(|word| is_plain(**word)).count();
        let end = rest[plain..].iter().position(|&byte| ends_plain(byte));
        self.at += end.map_or(rest.len(), |end| plain + end);
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let start = self.at;
        self.at += 2;
        Ok(match self.bytes.get(start + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(start),
            _ => return Err(self.fault_at(start, "not an escape of JSON")),
        })
    }

    fn unicode_escape(&mut self, start: usize) -> Result<char, Fault> {
        let lone = "half of a surrogate pair alone is not a character";
        let first = self.hex4(start)?;
        if !(0xd800..0xe000).contains(&first) {
            return char::from_u32(first).ok_or_else(|| self.fault_at(start, lone));
        }
        if first >= 0xdc00 || !self.bytes[self.at..].starts_with(b"\\u") {
            return Err(self.fault_at(start, lone));
        }
        self.at += 2;
        let second = self.hex4(start)?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err(self.fault_at(start, lone));
        }
        let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        char::from_u32(code).ok_or_else(|| self.fault_at(start, lone))
    }

    fn hex4(&mut self, start: usize) -> Result<u32, Fault> {
        let digits = self.bytes.get(self.at..self.at + 4);
        let code = digits.and_then(|digits| {
            digits.iter().try_fold(0, |code, &digit| {
                Some(code * 16 + char::from(digit).to_digit(16)?)
            })
        });
        self.at += 4;
        code.ok_or_else(|| self.fault_at(start, "`\\u` needs four hexadecimal digits"))
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Result<Value, Fault> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let first = self.peek();
        let whole = self.digits();
        if whole == 0 {
            return Err(self.unexpected("a digit"));
        }
        if first == Some(b'0') && whole > 1 {
            return Err(self.fault_at(start, "a number must not begin with extra zeros"));
        }
        let mut exact = true;
        if self.peek() == Some(b'.') {
            exact = false;
            self.at += 1;
            if self.digits() == 0 {
                return Err(self.unexpected("a digit after the point"));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            exact = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.unexpected("a digit of the exponent"));
            }
        }
        let text = &self.text[start..self.at];
        if exact {
            if whole > MAX_INTEGER_DIGITS {
                return Err(self.fault_at(
                    start,
                    format!(
                        "an integer of {whole} digits; at most {MAX_INTEGER_DIGITS} are allowed"
                    ),
                ));
            }
            return Ok(text
                .parse()
                .map_or_else(|_| Value::BigInt(text.into()), Value::Int));
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Value::Float(value)),
            _ => Err(self.fault_at(start, format!("{text} is too large for a double"))),
        }
    }
}
