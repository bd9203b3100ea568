//! Words of bits for the bit-parallel kernels: one text at a time, or eight side by side.
//!
//! The kernels in [`crate::kernel`] are written once over [`Word`]; this module has the words and the functions
//! compiled for the instruction sets that are asked for at run time. All give the same bits.
#![allow(
    clippy::inline_always,
    clippy::return_self_not_must_use,
    reason = "words are like numbers, and become part of functions compiled for an instruction set"
)]
#![allow(
    unsafe_code,
    reason = "vector instructions are chosen at run time; each use says why the processor has them"
)]

use crate::kernel::{self, State, Table};
use crate::text::Symbol;

/// How many texts lie side by side in a [`Lanes`].
pub const LANES: usize = 8;

/// Eight words, one for each text, in one cache line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Lanes(pub [u64; LANES]);

/// What the kernels do to words. Each lane is on its own; nothing carries between lanes.
pub trait Word: Copy {
    /// How the word is stored in tables and states.
    type Cell: Copy;
    /// Every lane 0.
    fn zero() -> Self;
    /// Reads a cell.
    fn load(cell: &Self::Cell) -> Self;
    /// Writes a cell.
    fn store(self, cell: &mut Self::Cell);
    /// `a & b`
    fn and(self, other: Self) -> Self;
    /// `a | b`
    fn or(self, other: Self) -> Self;
    /// `a + b`, wrapping.
    fn add(self, other: Self) -> Self;
    /// The highest bit, as 0 or 1.
    fn top(self) -> Self;
    /// `self << 1` with the highest bit of `below` coming in.
    fn shift_in(self, below: Self) -> Self;
    /// `(a ^ b) | c`
    fn xor_or(a: Self, b: Self, c: Self) -> Self;
    /// `a | !(b | c)`
    fn or_nor(a: Self, b: Self, c: Self) -> Self;
    /// `a | (b & !c)`
    fn or_without(a: Self, b: Self, c: Self) -> Self;
    /// `b & !a`
    fn without(self, b: Self) -> Self;
}

impl Word for u64 {
    type Cell = u64;
    #[inline(always)]
    fn zero() -> Self {
        0
    }
    #[inline(always)]
    fn load(cell: &u64) -> Self {
        *cell
    }
    #[inline(always)]
    fn store(self, cell: &mut u64) {
        *cell = self;
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        self & other
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        self | other
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn top(self) -> Self {
        self >> 63
    }
    #[inline(always)]
    fn shift_in(self, below: Self) -> Self {
        self << 1 | below >> 63
    }
    #[inline(always)]
    fn xor_or(a: Self, b: Self, c: Self) -> Self {
        (a ^ b) | c
    }
    #[inline(always)]
    fn or_nor(a: Self, b: Self, c: Self) -> Self {
        a | !(b | c)
    }
    #[inline(always)]
    fn or_without(a: Self, b: Self, c: Self) -> Self {
        a | (b & !c)
    }
    #[inline(always)]
    fn without(self, b: Self) -> Self {
        b & !self
    }
}

/// Eight lanes without vector instructions of our own choice; what a processor without AVX2 runs.
#[derive(Clone, Copy)]
struct Plain([u64; LANES]);

impl Plain {
    #[inline(always)]
    fn map(f: impl Fn(usize) -> u64) -> Self {
        Self(std::array::from_fn(f))
    }
}

impl Word for Plain {
    type Cell = Lanes;
    #[inline(always)]
    fn zero() -> Self {
        Self([0; LANES])
    }
    #[inline(always)]
    fn load(cell: &Lanes) -> Self {
        Self(cell.0)
    }
    #[inline(always)]
    fn store(self, cell: &mut Lanes) {
        cell.0 = self.0;
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self::map(|i| self.0[i] & other.0[i])
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self::map(|i| self.0[i] | other.0[i])
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self::map(|i| self.0[i].wrapping_add(other.0[i]))
    }
    #[inline(always)]
    fn top(self) -> Self {
        Self::map(|i| self.0[i] >> 63)
    }
    #[inline(always)]
    fn shift_in(self, below: Self) -> Self {
        Self::map(|i| self.0[i] << 1 | below.0[i] >> 63)
    }
    #[inline(always)]
    fn xor_or(a: Self, b: Self, c: Self) -> Self {
        Self::map(|i| (a.0[i] ^ b.0[i]) | c.0[i])
    }
    #[inline(always)]
    fn or_nor(a: Self, b: Self, c: Self) -> Self {
        Self::map(|i| a.0[i] | !(b.0[i] | c.0[i]))
    }
    #[inline(always)]
    fn or_without(a: Self, b: Self, c: Self) -> Self {
        Self::map(|i| a.0[i] | (b.0[i] & !c.0[i]))
    }
    #[inline(always)]
    fn without(self, b: Self) -> Self {
        Self::map(|i| b.0[i] & !self.0[i])
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{LANES, Lanes, Word};
    use std::arch::x86_64::{
        __m256i, __m512i, _mm256_add_epi64, _mm256_and_si256, _mm256_andnot_si256,
        _mm256_load_si256, _mm256_or_si256, _mm256_set1_epi64x, _mm256_setzero_si256,
        _mm256_slli_epi64, _mm256_srli_epi64, _mm256_store_si256, _mm256_xor_si256,
        _mm512_add_epi64, _mm512_and_si512, _mm512_andnot_si512, _mm512_load_si512,
        _mm512_or_si512, _mm512_setzero_si512, _mm512_shldi_epi64, _mm512_srli_epi64,
        _mm512_store_si512, _mm512_ternarylogic_epi64,
    };

    /// Four of the eight lanes: the lower half for 0, the upper for 1.
    #[derive(Clone, Copy)]
    pub(super) struct Avx2<const HALF: usize>(__m256i);

    // SAFETY (every block of this implementation): the type is private to `simd`, and the only functions that use it
    // are compiled with the target feature AVX2 and called after the processor was asked for it. Loads and stores
    // touch half of one cell, 32-byte aligned because a cell is 64-byte aligned and the half starts at byte 0 or 32.
    impl<const HALF: usize> Word for Avx2<HALF> {
        type Cell = Lanes;
        #[inline(always)]
        fn zero() -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_setzero_si256() })
        }
        #[inline(always)]
        fn load(cell: &Lanes) -> Self {
            let half = &cell.0[HALF * LANES / 2..];
            // SAFETY: see above.
            Self(unsafe { _mm256_load_si256(half.as_ptr().cast()) })
        }
        #[inline(always)]
        fn store(self, cell: &mut Lanes) {
            let half = &mut cell.0[HALF * LANES / 2..];
            // SAFETY: see above.
            unsafe { _mm256_store_si256(half.as_mut_ptr().cast(), self.0) }
        }
        #[inline(always)]
        fn and(self, other: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_and_si256(self.0, other.0) })
        }
        #[inline(always)]
        fn or(self, other: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_or_si256(self.0, other.0) })
        }
        #[inline(always)]
        fn add(self, other: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_add_epi64(self.0, other.0) })
        }
        #[inline(always)]
        fn top(self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_srli_epi64::<63>(self.0) })
        }
        #[inline(always)]
        fn shift_in(self, below: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_slli_epi64::<1>(self.0) }).or(below.top())
        }
        #[inline(always)]
        fn xor_or(a: Self, b: Self, c: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_xor_si256(a.0, b.0) }).or(c)
        }
        #[inline(always)]
        fn or_nor(a: Self, b: Self, c: Self) -> Self {
            let either = b.or(c);
            // SAFETY: see above.
            let ones = unsafe { _mm256_set1_epi64x(-1) };
            // SAFETY: see above.
            a.or(Self(unsafe { _mm256_xor_si256(either.0, ones) }))
        }
        #[inline(always)]
        fn or_without(a: Self, b: Self, c: Self) -> Self {
            a.or(c.without(b))
        }
        #[inline(always)]
        fn without(self, b: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_andnot_si256(self.0, b.0) })
        }
    }

    /// All eight lanes in one register.
    #[derive(Clone, Copy)]
    pub(super) struct Avx512(__m512i);

    // SAFETY (every block of this implementation): the type is private to `simd`, and the only functions that use it
    // are compiled with the target features AVX-512 F and VBMI2 and called after the processor was asked for them.
    // Loads and stores touch exactly one cell, which is 64-byte aligned.
    impl Word for Avx512 {
        type Cell = Lanes;
        #[inline(always)]
        fn zero() -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_setzero_si512() })
        }
        #[inline(always)]
        fn load(cell: &Lanes) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_load_si512(cell.0.as_ptr().cast()) })
        }
        #[inline(always)]
        fn store(self, cell: &mut Lanes) {
            // SAFETY: see above.
            unsafe { _mm512_store_si512(cell.0.as_mut_ptr().cast(), self.0) }
        }
        #[inline(always)]
        fn and(self, other: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_and_si512(self.0, other.0) })
        }
        #[inline(always)]
        fn or(self, other: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_or_si512(self.0, other.0) })
        }
        #[inline(always)]
        fn add(self, other: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_add_epi64(self.0, other.0) })
        }
        #[inline(always)]
        fn top(self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_srli_epi64::<63>(self.0) })
        }
        #[inline(always)]
        fn shift_in(self, below: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_shldi_epi64::<1>(self.0, below.0) })
        }
        // The tables of `ternarylogic` are indexed by the bits a b c, most significant first.
        #[inline(always)]
        fn xor_or(a: Self, b: Self, c: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_ternarylogic_epi64::<0b1011_1110>(a.0, b.0, c.0) })
        }
        #[inline(always)]
        fn or_nor(a: Self, b: Self, c: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_ternarylogic_epi64::<0b1111_0001>(a.0, b.0, c.0) })
        }
        #[inline(always)]
        fn or_without(a: Self, b: Self, c: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_ternarylogic_epi64::<0b1111_0100>(a.0, b.0, c.0) })
        }
        #[inline(always)]
        fn without(self, b: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_andnot_si512(self.0, b.0) })
        }
    }
}

/// The instruction sets there is code for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every processor of the architecture has.
    Plain,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F and VBMI2, and FMA.
    Avx512,
}

impl Level {
    /// The levels this processor has, the best last.
    pub fn available() -> Vec<Self> {
        let mut levels = vec![Self::Plain];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                levels.push(Self::Avx2);
                if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vbmi2") {
                    levels.push(Self::Avx512);
                }
            }
        }
        levels
    }

    /// The best level this processor has.
    pub fn best() -> Self {
        Self::available().pop().unwrap_or(Self::Plain)
    }
}

/// Defines one kernel for lanes: the entry point that picks by level, and the function compiled for each level.
macro_rules! dispatch {
    ($(#[$doc:meta])* $name:ident, $avx2:ident, $avx512:ident) => {
        $(#[$doc])*
        ///
        /// `level` must be one of [`Level::available`]; a higher one panics.
        pub fn $name(level: Level, table: &Table<Lanes>, text: &[Symbol], state: &mut State<Lanes>) {
            assert!(level <= Level::best(), "the processor lacks {level:?}");
            match level {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the assertion above asked the processor for the features.
                Level::Avx512 => unsafe { $avx512(table, text, state) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the assertion above asked the processor for the features.
                Level::Avx2 => unsafe { $avx2(table, text, state) },
                _ => kernel::$name::<Plain>(table, text, state),
            }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn $avx2(table: &Table<Lanes>, text: &[Symbol], state: &mut State<Lanes>) {
            kernel::$name::<x86::Avx2<0>>(table, text, state);
            kernel::$name::<x86::Avx2<1>>(table, text, state);
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512vbmi2")]
        fn $avx512(table: &Table<Lanes>, text: &[Symbol], state: &mut State<Lanes>) {
            kernel::$name::<x86::Avx512>(table, text, state);
        }
    };
}

dispatch!(
    /// [`kernel::lcs`] for eight patterns.
    lcs, lcs_avx2, lcs_avx512
);
dispatch!(
    /// [`kernel::levenshtein`] for eight patterns.
    levenshtein, levenshtein_avx2, levenshtein_avx512
);
dispatch!(
    /// [`kernel::osa`] for eight patterns.
    osa, osa_avx2, osa_avx512
);

/// Inner product of two vectors of one length, with the additions of the OpenBLAS kernel for AVX-512 (SkylakeX), which
/// NumPy runs there: four accumulators of eight places with fused multiplication, folded to four places, a step of
/// four by four for what is left of 32, then one by one. Fused operations round once, so every machine gives these
/// bits.
pub fn dot(left: &[f64], right: &[f64]) -> f64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor was asked for both features.
        return unsafe { dot_fma(left, right) };
    }
    dot_fused(left, right)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn dot_fma(left: &[f64], right: &[f64]) -> f64 {
    dot_fused(left, right)
}

#[inline(always)]
fn dot_fused(left: &[f64], right: &[f64]) -> f64 {
    let mut wide = [[0.0_f64; 8]; 4];
    let left_wide = left.chunks_exact(32);
    let right_wide = right.chunks_exact(32);
    let (left, right) = (left_wide.remainder(), right_wide.remainder());
    for (a, b) in left_wide.zip(right_wide) {
        for (part, (a, b)) in wide
            .iter_mut()
            .zip(a.chunks_exact(8).zip(b.chunks_exact(8)))
        {
            for (sum, (a, b)) in part.iter_mut().zip(a.iter().zip(b)) {
                *sum = a.mul_add(*b, *sum);
            }
        }
    }
    let mut parts: [[f64; 4]; 4] =
        std::array::from_fn(|i| std::array::from_fn(|j| wide[i][j] + wide[i][j + 4]));
    let left_narrow = left.chunks_exact(16);
    let right_narrow = right.chunks_exact(16);
    let (left, right) = (left_narrow.remainder(), right_narrow.remainder());
    for (a, b) in left_narrow.zip(right_narrow) {
        for (part, (a, b)) in parts
            .iter_mut()
            .zip(a.chunks_exact(4).zip(b.chunks_exact(4)))
        {
            for (sum, (a, b)) in part.iter_mut().zip(a.iter().zip(b)) {
                *sum = a.mul_add(*b, *sum);
            }
        }
    }
    let [a, b, c, d] = parts;
    let [a, b, c, d]: [f64; 4] = std::array::from_fn(|i| ((a[i] + b[i]) + c[i]) + d[i]);
    let start = (a + c) + (b + d);
    left.iter()
        .zip(right)
        .fold(start, |sum, (a, b)| b.mul_add(*a, sum))
}
