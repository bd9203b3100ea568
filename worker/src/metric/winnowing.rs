//! Winnowing: fingerprints of token k-grams, compared as sets.

use std::cmp::Ordering;

/// Fingerprints of a token sequence: of every window of k-gram hashes the smallest, sorted, each once.
pub fn fingerprints(tokens: &[&str], kgram: usize, window: usize) -> Vec<u64> {
    if tokens.is_empty() {
        return Vec::new();
    }
    let kgram = kgram.clamp(1, tokens.len());
    let hashes: Vec<u64> = tokens.windows(kgram).map(hash).collect();
    let window = window.clamp(1, hashes.len());
    let mut chosen: Vec<u64> = hashes
        .windows(window)
        .filter_map(|window| window.iter().min().copied())
        .collect();
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// The first 8 bytes of BLAKE2b over the tokens joined by U+001F, big-endian.
fn hash(tokens: &[&str]) -> u64 {
    let mut state = blake2b_simd::Params::new().hash_length(8).to_state();
    for (at, token) in tokens.iter().enumerate() {
        if at > 0 {
            state.update(b"\x1f");
        }
        state.update(token.as_bytes());
    }
    let digest = state.finalize();
    let mut bytes = [0; 8];
    bytes.copy_from_slice(digest.as_bytes());
    u64::from_be_bytes(bytes)
}

/// Shared fingerprints among all; 1 when neither text has one.
pub fn similarity(left: &[u64], right: &[u64]) -> f64 {
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < left.len() && j < right.len() {
        let order = left[i].cmp(&right[j]);
        shared += usize::from(order == Ordering::Equal);
        i += usize::from(order != Ordering::Greater);
        j += usize::from(order != Ordering::Less);
    }
    let all = left.len() + right.len() - shared;
    if all == 0 {
        return 1.0;
    }
    shared as f64 / all as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_one_kgram() {
        assert_eq!(fingerprints(&["a", "b"], 5, 4).len(), 1);
        assert_eq!(fingerprints(&["a", "b"], 5, 4), [hash(&["a", "b"])]);
        assert_eq!(fingerprints(&[], 5, 4), [0; 0]);
    }

    #[test]
    fn sets_are_compared_by_jaccard() {
        assert_eq!(similarity(&[], &[]), 1.0);
        assert_eq!(similarity(&[1], &[]), 0.0);
        assert_eq!(similarity(&[1, 2, 3], &[2, 3, 4]), 0.5);
    }
}
