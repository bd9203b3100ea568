//! Greedy String Tiling over tokens: the longest common tiles first, no token in two tiles.

/// The longest start of a tile by which candidates are found.
pub const INDEX_LENGTH: usize = 8;

/// The tokens of a text by number, and its windows by number: equal windows of `length` tokens have equal numbers.
#[derive(Debug, Clone, Default)]
pub struct Tokens {
    /// The tokens.
    pub tokens: Vec<u32>,
    /// (window number, where it starts), sorted; empty when the text is shorter than a window.
    pub windows: Vec<(u32, u32)>,
}

/// Numbers windows of `length` tokens across texts.
#[derive(Debug)]
pub struct WindowIndex {
    length: usize,
    numbers: std::collections::HashMap<Box<[u32]>, u32>,
}

impl WindowIndex {
    /// For tiles of at least `min_match` tokens.
    pub fn new(min_match: usize) -> Self {
        Self {
            length: min_match.clamp(1, INDEX_LENGTH),
            numbers: std::collections::HashMap::new(),
        }
    }

    /// Takes in the tokens of a text.
    pub fn add(&mut self, tokens: Vec<u32>) -> Tokens {
        let mut windows = Vec::new();
        for (at, window) in (0..).zip(tokens.windows(self.length)) {
            let fresh = self.numbers.len() as u32;
            let number = match self.numbers.get(window) {
                Some(&number) => number,
                None => *self.numbers.entry(window.into()).or_insert(fresh),
            };
            windows.push((number, at));
        }
        windows.sort_unstable();
        Tokens { tokens, windows }
    }
}

/// Covered tokens of both texts among all of them; 1 when neither has one.
pub fn similarity(left: &Tokens, right: &Tokens, min_match: usize) -> f64 {
    let (a, b) = (left.tokens.len(), right.tokens.len());
    if a == 0 && b == 0 {
        return 1.0;
    }
    if a == 0 || b == 0 {
        return 0.0;
    }
    let wanted = min_match.max(1);
    let shortest = wanted.min(a).min(b);
    let covered = if shortest.min(INDEX_LENGTH) == wanted.min(INDEX_LENGTH) {
        tile(left, right, shortest)
    } else {
        // A text shorter than a tile: the whole of it is the tile that is looked for.
        let mut index = WindowIndex::new(shortest);
        let left = index.add(left.tokens.clone());
        let right = index.add(right.tokens.clone());
        tile(&left, &right, shortest)
    };
    (2.0 * covered as f64) / (a + b) as f64
}

/// For each start of a window in the left text, where the equal windows are in `right.windows`.
fn shared<'a>(left: &Tokens, right: &'a Tokens) -> Vec<&'a [(u32, u32)]> {
    let mut places: Vec<&[(u32, u32)]> = vec![&[]; left.windows.len()];
    let mut rest = right.windows.as_slice();
    for group in left.windows.chunk_by(|a, b| a.0 == b.0) {
        let number = group[0].0;
        let skipped = rest.iter().take_while(|window| window.0 < number).count();
        rest = &rest[skipped..];
        let equal = rest.iter().take_while(|window| window.0 == number).count();
        let (here, later) = rest.split_at(equal);
        rest = later;
        for window in group {
            places[window.1 as usize] = here;
        }
    }
    places
}

/// Tiles two texts; how many tokens of one are covered. A tile has at least `shortest` tokens, and the windows are not
/// longer than that.
fn tile(left: &Tokens, right: &Tokens, shortest: usize) -> usize {
    let places = shared(left, right);
    let (left, right) = (left.tokens.as_slice(), right.tokens.as_slice());
    let mut left_taken = vec![false; left.len()];
    let mut right_taken = vec![false; right.len()];
    let mut covered = 0;
    loop {
        let mut best = shortest;
        let mut tiles: Vec<(usize, usize)> = Vec::new();
        let free = |i: usize, j: usize| left[i] == right[j] && !left_taken[i] && !right_taken[j];
        for (i, &windows) in places.iter().enumerate() {
            if left.len() - i < best {
                break;
            }
            for &(_, j) in windows {
                let j = j as usize;
                let most = (left.len() - i).min(right.len() - j);
                // A match that could start one token earlier is not the longest.
                if most < best || (i > 0 && j > 0 && free(i - 1, j - 1)) {
                    continue;
                }
                let length = (0..most)
                    .take_while(|&step| free(i + step, j + step))
                    .count();
                if length > best {
                    best = length;
                    tiles.clear();
                }
                if length == best {
                    tiles.push((i, j));
                }
            }
        }
        if tiles.is_empty() {
            return covered;
        }
        // All tiles of a round have one length, so a tile overlaps an earlier one only at one of its ends.
        for (i, j) in tiles {
            let end = best - 1;
            if left_taken[i] || left_taken[i + end] || right_taken[j] || right_taken[j + end] {
                continue;
            }
            left_taken[i..=i + end].fill(true);
            right_taken[j..=j + end].fill(true);
            covered += best;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(left: &[u32], right: &[u32], min_match: usize) -> f64 {
        let mut index = WindowIndex::new(min_match);
        let left = index.add(left.to_vec());
        let right = index.add(right.to_vec());
        similarity(&left, &right, min_match)
    }

    #[test]
    fn tiles_are_taken_longest_first() {
        assert_eq!(score(&[], &[], 5), 1.0);
        assert_eq!(score(&[1], &[], 5), 0.0);
        assert_eq!(score(&[1, 2], &[1, 2, 3], 5), 0.8);
        // 1 2 3 4 and 5 6 7, swapped.
        assert_eq!(
            score(&[1, 2, 3, 4, 5, 6, 7], &[5, 6, 7, 1, 2, 3, 4], 3),
            1.0
        );
        assert_eq!(
            score(&[1, 2, 3, 4, 5, 6, 7], &[5, 6, 7, 1, 2, 3, 4], 4),
            8.0 / 14.0
        );
        // The run of four is tiled once: its repetition overlaps.
        assert_eq!(score(&[1, 1, 1, 1, 1], &[1, 1, 1, 1], 4), 8.0 / 9.0);
    }
}
