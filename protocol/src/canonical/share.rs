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
        let mut hash = text.len() as u64;
        for chunk in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = (hash.rotate_left(5) ^ u64::from_le_bytes(word))
                .wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        let slot = &mut self.slots[(hash >> 52) as usize];
        match slot {
            Some(known) if known.as_ref() == text => known.clone(),
            _ => slot.insert(text.into()).clone(),
        }
    }
}
