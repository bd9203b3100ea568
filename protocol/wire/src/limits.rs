//! The bounds of the conversation. A line over a bound ends the attempt; nothing is cut in silence.

/// The longest line, in bytes, the line feed not counted.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// The longest line that does not begin as every message does, with `{`. It is refused whatever follows, so a program that
/// prints something else is not listened to up to [`MAX_LINE_BYTES`], and costs its reader no memory.
pub const MAX_STRANGE_LINE_BYTES: usize = 64 << 10;

/// The deepest nesting of arrays and objects in a line a worker sends.
pub const MAX_DEPTH: usize = 64;

/// The longest piece of text, in bytes of UTF-8, put into one message. JSON escapes a byte into at most six
/// (`\u0000`), so a message of this much text stays below [`MAX_LINE_BYTES`].
pub const TEXT_PIECE_BYTES: usize = 160 << 10;

/// How many texts one message holds at most.
pub const TEXT_BATCH: usize = 1024;

/// How many pairs one message holds at most.
pub const PAIR_BATCH: usize = 8192;

/// How many scores a built-in worker puts into one message. A shortest double has at most 24 characters.
pub const SCORE_BATCH: usize = 8192;

/// The longest error text, in characters, that is kept of what a worker says.
pub const MAX_ERROR_CHARS: usize = 2000;
