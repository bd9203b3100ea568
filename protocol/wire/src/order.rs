//! The permuted order in which texts and items are handed out.
//!
//! The order is a function of protocol, dataset and method alone, so the same run always asks the same questions in
//! the same order, while a position says nothing about the file it came from.

use sha2::{Digest, Sha256};

/// A permutation of `0..len`: wire position -> frozen position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    frozen: Vec<u32>,
}

impl Order {
    /// Derives the order of `len` things. `parts` name what is ordered, for example protocol id, dataset fingerprint,
    /// method id and `"pairs"`; each part is hashed with its length, so no two lists of parts are confused.
    ///
    /// Fisher-Yates over a stream of 64-bit words `SHA-256(seed || counter)`, each reduced without bias by rejection.
    pub fn derive(parts: &[&str], len: u32) -> Self {
        let mut seed = Sha256::new();
        for part in parts {
            seed.update((part.len() as u64).to_be_bytes());
            seed.update(part.as_bytes());
        }
        let mut stream = Stream::new(seed.finalize().into());
        let mut frozen: Vec<u32> = (0..len).collect();
        for i in (1..len).rev() {
            let j = stream.below(u64::from(i) + 1);
            frozen.swap(i as usize, j as usize);
        }
        Self { frozen }
    }

    /// How many things are ordered.
    pub fn len(&self) -> usize {
        self.frozen.len()
    }

    /// True when nothing is ordered.
    pub fn is_empty(&self) -> bool {
        self.frozen.is_empty()
    }

    /// Frozen positions in wire order.
    pub fn frozen(&self) -> &[u32] {
        &self.frozen
    }

    /// Wire position of each frozen position.
    pub fn wire(&self) -> Vec<u32> {
        let mut wire = vec![0; self.frozen.len()];
        for (position, &frozen) in self.frozen.iter().enumerate() {
            wire[frozen as usize] = position as u32;
        }
        wire
    }
}

struct Stream {
    seed: [u8; 32],
    counter: u64,
    block: [u8; 32],
    used: usize,
}

impl Stream {
    fn new(seed: [u8; 32]) -> Self {
        Self {
            seed,
            counter: 0,
            block: [0; 32],
            used: 32,
        }
    }

    fn word(&mut self) -> u64 {
        if self.used == 32 {
            let mut hash = Sha256::new();
            hash.update(self.seed);
            hash.update(self.counter.to_be_bytes());
            self.block = hash.finalize().into();
            self.counter += 1;
            self.used = 0;
        }
        let mut word = [0; 8];
        word.copy_from_slice(&self.block[self.used..self.used + 8]);
        self.used += 8;
        u64::from_be_bytes(word)
    }

    fn below(&mut self, bound: u64) -> u64 {
        let limit = u64::MAX - u64::MAX % bound;
        loop {
            let word = self.word();
            if word < limit {
                return word % bound;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_order_is_a_permutation(len in 0u32..300, name in ".{0,8}") {
            let order = Order::derive(&[&name, "x"], len);
            let mut seen = order.frozen().to_vec();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..len).collect::<Vec<_>>());
            for (frozen, &wire) in order.wire().iter().enumerate() {
                prop_assert_eq!(order.frozen()[wire as usize] as usize, frozen);
            }
        }
    }

    #[test]
    fn parts_are_not_confused_and_orders_repeat() {
        assert_eq!(
            Order::derive(&["a", "b"], 50),
            Order::derive(&["a", "b"], 50)
        );
        assert_ne!(
            Order::derive(&["a", "b"], 50),
            Order::derive(&["ab", ""], 50)
        );
    }
}
