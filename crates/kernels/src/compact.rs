//! Selection by bitmap: compacts a column, or selects values from two columns.

use crate::Native;

/// Maximum number of set bits in a 64-bit word at which values are copied individually. Above this
/// number, whole vectors are moved.
#[cfg(target_arch = "x86_64")]
const FEW: u32 = 12;

/// Returns the values whose bits are set, in order. `mask` has one bit per value, least significant
/// bit first; the bits after the last value are zero.
#[must_use]
pub fn compact<T: Native>(values: &[T], mask: &[u64]) -> Vec<T> {
    let count: usize = mask.iter().map(|word| word.count_ones() as usize).sum();
    let mut target = vec![T::default(); count];
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("popcnt")
        {
            match size_of::<T>() {
                // SAFETY: this CPU has the instructions the function is compiled for, and the
                // values have the size it moves.
                8 => return unsafe { moved::eight_bytes(values, mask, target) },
                // SAFETY: as above.
                4 => return unsafe { moved::four_bytes(values, mask, target) },
                _ => {}
            }
        }
    }
    let mut at = 0;
    for (chunk, &word) in values.chunks(64).zip(mask) {
        at += one_by_one(chunk, word, &mut target[at..]);
    }
    target
}

/// Returns one value per row, from `set` if the row's bit is set and from `unset` otherwise.
///
/// # Panics
///
/// If the columns differ in length, or if there are fewer bits than rows.
#[must_use]
pub fn choose<T: Native>(bits: &[u64], set: &[T], unset: &[T]) -> Vec<T> {
    assert_eq!(set.len(), unset.len());
    assert!(bits.len() >= set.len().div_ceil(64));
    let mut target = unset.to_vec();
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && matches!(size_of::<T>(), 4 | 8) {
        // SAFETY: this CPU has the instructions the function is compiled for, and the values have a
        // size it supports.
        unsafe { blended::choose(bits, set, &mut target) };
        return target;
    }
    for ((target, set), &word) in target.chunks_mut(64).zip(set.chunks(64)).zip(bits) {
        choose_by_one(word, set, target);
    }
    target
}

#[inline]
fn choose_by_one<T: Copy>(word: u64, set: &[T], target: &mut [T]) {
    for (bit, (target, &set)) in target.iter_mut().zip(set).enumerate() {
        *target = if word >> bit & 1 == 1 { set } else { *target };
    }
}

/// Blends vectors by a bitmap.
#[cfg(target_arch = "x86_64")]
mod blended {
    use std::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_blendv_epi8, _mm256_cmpeq_epi32, _mm256_cmpeq_epi64,
        _mm256_loadu_si256, _mm256_set_epi32, _mm256_set_epi64x, _mm256_set1_epi32,
        _mm256_set1_epi64x, _mm256_storeu_si256,
    };

    use super::{Native, choose_by_one};

    /// Overwrites the values of `target` whose bits are set.
    #[target_feature(enable = "avx2")]
    pub(super) fn choose<T: Native>(bits: &[u64], set: &[T], target: &mut [T]) {
        let lanes = 32 / size_of::<T>();
        assert!(matches!(lanes, 4 | 8));
        for ((target, set), &word) in target.chunks_mut(64).zip(set.chunks(64)).zip(bits) {
            if target.len() < 64 || set.len() < 64 {
                choose_by_one(word, set, target);
                continue;
            }
            for offset in (0..64).step_by(lanes) {
                let chosen =
                    if lanes == 4 { of_four(word >> offset) } else { of_eight(word >> offset) };
                // SAFETY: both sides have 64 values; one vector is accessed at an offset that is a
                // multiple of the vector length.
                unsafe {
                    let position = target.as_mut_ptr().add(offset).cast();
                    let set = _mm256_loadu_si256(set.as_ptr().add(offset).cast());
                    let unset = _mm256_loadu_si256(position);
                    _mm256_storeu_si256(position, _mm256_blendv_epi8(unset, set, chosen));
                }
            }
        }
    }

    /// Expands the lowest four bits to eight bytes each.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn of_four(bits: u64) -> __m256i {
        let each = _mm256_set_epi64x(8, 4, 2, 1);
        _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(bits.cast_signed()), each), each)
    }

    /// Expands the lowest eight bits to four bytes each.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn of_eight(bits: u64) -> __m256i {
        let each = _mm256_set_epi32(128, 64, 32, 16, 8, 4, 2, 1);
        _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(bits as i32), each), each)
    }
}

/// Copies the values selected by one word and returns their number.
#[inline]
fn one_by_one<T: Copy>(chunk: &[T], mut word: u64, target: &mut [T]) -> usize {
    let count = word.count_ones() as usize;
    if count == 64
        && let (Some(all), Some(position)) = (chunk.first_chunk::<64>(), target.first_chunk_mut())
    {
        *position = *all;
        return count;
    }
    for index in &mut target[..count] {
        *index = chunk[word.trailing_zeros() as usize];
        word &= word - 1;
    }
    count
}

/// Moves a vector's selected values to its front and stores the whole vector. The next store
/// overwrites the surplus values.
#[cfg(target_arch = "x86_64")]
mod moved {
    use std::arch::x86_64::{_mm256_loadu_si256, _mm256_permutevar8x32_epi32, _mm256_storeu_si256};

    use super::{FEW, Native, one_by_one};

    /// For each four-bit mask, the indexes of the 32-bit halves of the selected values.
    const OF_FOUR: [[u32; 8]; 16] = {
        let mut table = [[0; 8]; 16];
        let mut bits = 0;
        while bits < 16 {
            let (mut position, mut lane) = (0, 0);
            while lane < 4 {
                if bits >> lane & 1 == 1 {
                    table[bits][position] = 2 * lane as u32;
                    table[bits][position + 1] = 2 * lane as u32 + 1;
                    position += 2;
                }
                lane += 1;
            }
            bits += 1;
        }
        table
    };

    /// For each eight-bit mask, the indexes of the selected values.
    static OF_EIGHT: [[u32; 8]; 256] = {
        let mut table = [[0; 8]; 256];
        let mut bits = 0;
        while bits < 256 {
            let (mut position, mut lane) = (0, 0);
            while lane < 8 {
                if bits >> lane & 1 == 1 {
                    table[bits][position] = lane as u32;
                    position += 1;
                }
                lane += 1;
            }
            bits += 1;
        }
        table
    };

    /// Compacts eight-byte values.
    #[target_feature(enable = "avx2,popcnt")]
    pub(super) fn eight_bytes<T: Native>(values: &[T], mask: &[u64], mut target: Vec<T>) -> Vec<T> {
        assert_eq!(size_of::<T>(), 8);
        let mut at = 0;
        for (chunk, &word) in values.chunks(64).zip(mask) {
            let target_rest = &mut target[at..];
            // A whole vector is stored, so the target needs space for it after the last selected
            // value.
            let is_whole = chunk.len() == 64 && target_rest.len() >= 64;
            if word.count_ones() <= FEW || word == u64::MAX || !is_whole {
                at += one_by_one(chunk, word, target_rest);
                continue;
            }
            let mut position = 0;
            for offset in 0..16 {
                let bits = (word >> (4 * offset)) as usize & 15;
                // SAFETY: four of the chunk's 64 values are read at `4 * part`. The target has
                // space for 64 values, and four are written at an offset of at most `4 * part`.
                unsafe {
                    let four = _mm256_loadu_si256(chunk.as_ptr().add(4 * offset).cast());
                    let order = _mm256_loadu_si256(OF_FOUR[bits].as_ptr().cast());
                    let front = _mm256_permutevar8x32_epi32(four, order);
                    _mm256_storeu_si256(target_rest.as_mut_ptr().add(position).cast(), front);
                }
                position += bits.count_ones() as usize;
            }
            at += position;
        }
        target
    }

    /// Compacts four-byte values.
    #[target_feature(enable = "avx2,popcnt")]
    pub(super) fn four_bytes<T: Native>(values: &[T], mask: &[u64], mut target: Vec<T>) -> Vec<T> {
        assert_eq!(size_of::<T>(), 4);
        let mut at = 0;
        for (chunk, &word) in values.chunks(64).zip(mask) {
            let target_rest = &mut target[at..];
            let is_whole = chunk.len() == 64 && target_rest.len() >= 64;
            if word.count_ones() <= FEW || word == u64::MAX || !is_whole {
                at += one_by_one(chunk, word, target_rest);
                continue;
            }
            let mut position = 0;
            for offset in 0..8 {
                let bits = (word >> (8 * offset)) as usize & 255;
                // SAFETY: eight of the chunk's 64 values are read at `8 * part`. The target has
                // space for 64 values, and eight are written at an offset of at most `8 * part`.
                unsafe {
                    let eight = _mm256_loadu_si256(chunk.as_ptr().add(8 * offset).cast());
                    let order = _mm256_loadu_si256(OF_EIGHT[bits].as_ptr().cast());
                    let front = _mm256_permutevar8x32_epi32(eight, order);
                    _mm256_storeu_si256(target_rest.as_mut_ptr().add(position).cast(), front);
                }
                position += bits.count_ones() as usize;
            }
            at += position;
        }
        target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_returns_the_values_at_set_bits() {
        let mut seed = 5_u64;
        let mut random = move |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % bound
        };
        for round in 0..600 {
            let rows = random(1_000) as usize;
            let percent = [0, 1, 20, 50, 95, 100][round % 6];
            let mut mask = vec![0_u64; rows.div_ceil(64)];
            for row in 0..rows {
                mask[row / 64] |= u64::from(random(100) < percent) << (row % 64);
            }
            let is_selected = |row: &usize| mask[row / 64] >> (row % 64) & 1 == 1;
            let rows: Vec<usize> = (0..rows).collect();
            let expected: Vec<usize> = rows.iter().copied().filter(is_selected).collect();
            macro_rules! same {
                ($($type:ty),*) => {$(
                    let values: Vec<$type> = rows.iter().map(|&row| row as $type).collect();
                    let expected: Vec<$type> = expected.iter().map(|&row| row as $type).collect();
                    assert_eq!(compact(&values, &mask), expected, "round {round}");
                )*};
            }
            same!(f64, i64, f32, i32, i16, i8);
            macro_rules! chosen {
                ($($type:ty),*) => {$(
                    let set: Vec<$type> = rows.iter().map(|&row| row as $type).collect();
                    let unset: Vec<$type> = set.iter().map(|&row| row + 1 as $type).collect();
                    let one = |row: &usize| if is_selected(row) { set[*row] } else { unset[*row] };
                    let expected: Vec<$type> = rows.iter().map(one).collect();
                    assert_eq!(choose(&mask, &set, &unset), expected, "round {round}");
                )*};
            }
            chosen!(f64, i64, f32, i32, i16);
        }
    }
}
