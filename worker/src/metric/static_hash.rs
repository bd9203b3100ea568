//! The `static_hash` vector backend: token counts in hashed places, compared as vectors.

use crate::simd;
use crate::text::class::lowercase;
use crate::text::tokens::tokens;
use proctor_wire::builtin::{StaticHash, VectorSimilarity};

/// A vector of length 1, without its zeros.
#[derive(Debug, Clone, Default)]
pub struct Sparse {
    /// (place, value), in order of places.
    entries: Vec<(u32, f64)>,
}

impl Sparse {
    /// Counts the tokens of a text at the CRC-32 of each modulo the dimension, and divides by the length.
    pub fn new(text: &str, settings: &StaticHash) -> Self {
        let dimension = settings.dimension as u32;
        let mut places: Vec<u32> = tokens(text)
            .map(|token| {
                let hash = if settings.lowercase {
                    crc32fast::hash(lowercase(token).as_bytes())
                } else {
                    crc32fast::hash(token.as_bytes())
                };
                hash % dimension
            })
            .collect();
        places.sort_unstable();
        let mut entries: Vec<(u32, f64)> = Vec::new();
        for place in places {
            match entries.last_mut() {
                Some((last, count)) if *last == place => *count += 1.0,
                _ => entries.push((place, 1.0)),
            }
        }
        // Counts are integers, so the sum of squares is exact in any order.
        let square: f64 = entries.iter().map(|(_, count)| count * count).sum();
        let length = square.sqrt();
        for (_, value) in &mut entries {
            *value /= length;
        }
        Self { entries }
    }

    /// Writes all places into `dense`, which has the dimension as its length.
    pub fn spread(&self, dense: &mut [f64]) {
        dense.fill(0.0);
        for &(place, value) in &self.entries {
            dense[place as usize] = value;
        }
    }
}

/// Euclidean length of a dense vector, with NumPy's order of additions.
pub fn length(vector: &[f64]) -> f64 {
    simd::dot(vector, vector).sqrt()
}

/// Similarity of two dense vectors with their lengths.
pub fn similarity(settings: &StaticHash, left: (&[f64], f64), right: (&[f64], f64)) -> f64 {
    let distance = match settings.similarity {
        VectorSimilarity::Cosine => {
            let scale = left.1 * right.1;
            let cosine = if scale <= 0.0 {
                0.0
            } else {
                (simd::dot(left.0, right.0) / scale).clamp(-1.0, 1.0)
            };
            return bounded(settings, cosine);
        }
        VectorSimilarity::Dot => return bounded(settings, simd::dot(left.0, right.0)),
        VectorSimilarity::Euclidean => {
            let difference: Vec<f64> = left.0.iter().zip(right.0).map(|(a, b)| a - b).collect();
            length(&difference)
        }
        VectorSimilarity::Manhattan => {
            let difference: Vec<f64> = left
                .0
                .iter()
                .zip(right.0)
                .map(|(a, b)| (a - b).abs())
                .collect();
            sum(&difference)
        }
    };
    if settings.normalize {
        1.0 / (1.0 + distance)
    } else {
        -distance
    }
}

fn bounded(settings: &StaticHash, score: f64) -> f64 {
    if settings.normalize {
        score.clamp(0.0, 1.0)
    } else {
        score
    }
}

/// NumPy's pairwise sum: halves above 128 numbers, eight partial sums below.
fn sum(values: &[f64]) -> f64 {
    let count = values.len();
    if count < 8 {
        return values.iter().fold(0.0, |sum, value| sum + value);
    }
    if count > 128 {
        let half = count / 2;
        let (left, right) = values.split_at(half - half % 8);
        return sum(left) + sum(right);
    }
    let (whole, rest) = values.split_at(count - count % 8);
    let mut parts = [0.0; 8];
    for (at, chunk) in whole.chunks_exact(8).enumerate() {
        for (part, value) in parts.iter_mut().zip(chunk) {
            *part = if at == 0 { *value } else { *part + value };
        }
    }
    let halves = [0, 4].map(|at| (parts[at] + parts[at + 1]) + (parts[at + 2] + parts[at + 3]));
    let total = halves[0] + halves[1];
    rest.iter().fold(total, |sum, value| sum + value)
}
