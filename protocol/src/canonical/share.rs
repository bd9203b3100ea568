//! Sharing of equal texts while reading.

use std::sync::Arc;

/// Gives equal short texts one allocation: a bundle repeats its keys and ids in tens of thousands of rows.
///
/// A table of fixed size in which a newcomer displaces what it collides with, so hostile texts cost neither time nor
/// memory; sharing is a saving, never a promise.
pub(super) struct Shared {
    slots: Vec<Option<Arc<str>>>,
}

impl Shared {
    const SLOTS: usize = 1 << 12;
    const LONGEST: usize = 96;

    pub(super) fn new() -> Self {
        Self {
            slots: vec![None; Self::SLOTS],
        }
    }

    /// The text, shared with an equal one seen lately.
    pub(super) fn share(&mut self, text: &str) -> Arc<str> {
        if text.len() > Self::LONGEST {
            return text.into();
        }
        let slot = (hash(text.as_bytes()) >> 52) as usize;
        let slot = &mut self.slots[slot];
        match slot {
            Some(known) if known.as_ref() == text => known.clone(),
            _ => slot.insert(text.into()).clone(),
        }
    }
}

/// A quick hash of a short text, eight bytes at a time.
fn hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x517c_c1b7_2722_0a95;
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = bytes.len() as u64;
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    mix(
        hash,
        rest.iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    )
}
