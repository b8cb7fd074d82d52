//! The values of some rows, put together, and those of one of two columns.

use crate::Native;

/// Values that are copied one by one out of 64: with more, vectors are moved whole.
const FEW: u32 = 12;

/// The values whose bits are set, in their order. `kept` has one bit for each value, least
/// significant first; bits past the last value are zero.
#[must_use]
pub fn compact<T: Native>(values: &[T], kept: &[u64]) -> Vec<T> {
    let count: usize = kept.iter().map(|word| word.count_ones() as usize).sum();
    let mut target = vec![T::default(); count];
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("popcnt")
        {
            match size_of::<T>() {
                // SAFETY: this CPU has the instructions the function is compiled to, and values
                // have the size that it moves.
                8 => return unsafe { moved::eight_bytes(values, kept, target) },
                // SAFETY: as above.
                4 => return unsafe { moved::four_bytes(values, kept, target) },
                _ => {}
            }
        }
    }
    let mut at = 0;
    for (chunk, &word) in values.chunks(64).zip(kept) {
        at += one_by_one(chunk, word, &mut target[at..]);
    }
    target
}

/// For each row the value of one of two columns: of the first where its bit is set.
///
/// # Panics
///
/// When the columns are not of one length, or there are fewer bits than rows.
#[must_use]
pub fn choose<T: Native>(bits: &[u64], set: &[T], unset: &[T]) -> Vec<T> {
    assert_eq!(set.len(), unset.len());
    assert!(bits.len() >= set.len().div_ceil(64));
    let mut target = unset.to_vec();
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && matches!(size_of::<T>(), 4 | 8) {
        // SAFETY: this CPU has the instructions the function is compiled to, and values have a size
        // that it moves.
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

/// Vectors of which some values are taken.
#[cfg(target_arch = "x86_64")]
mod blended {
    use std::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_blendv_epi8, _mm256_cmpeq_epi32, _mm256_cmpeq_epi64,
        _mm256_loadu_si256, _mm256_set_epi32, _mm256_set_epi64x, _mm256_set1_epi32,
        _mm256_set1_epi64x, _mm256_storeu_si256,
    };

    use super::{Native, choose_by_one};

    /// Writes the values of set bits over those of `target`.
    #[target_feature(enable = "avx2")]
    pub(super) fn choose<T: Native>(bits: &[u64], set: &[T], target: &mut [T]) {
        let lanes = 32 / size_of::<T>();
        assert!(matches!(lanes, 4 | 8));
        for ((target, set), &word) in target.chunks_mut(64).zip(set.chunks(64)).zip(bits) {
            if target.len() < 64 || set.len() < 64 {
                choose_by_one(word, set, target);
                continue;
            }
            for part in (0..64).step_by(lanes) {
                let chosen =
                    if lanes == 4 { of_four(word >> part) } else { of_eight(word >> part) };
                // SAFETY: of 64 values on both sides as many as fit a vector, from a place that is
                // a multiple of that.
                unsafe {
                    let place = target.as_mut_ptr().add(part).cast();
                    let set = _mm256_loadu_si256(set.as_ptr().add(part).cast());
                    let unset = _mm256_loadu_si256(place);
                    _mm256_storeu_si256(place, _mm256_blendv_epi8(unset, set, chosen));
                }
            }
        }
    }

    /// The lowest four bits, each as eight bytes.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn of_four(bits: u64) -> __m256i {
        let each = _mm256_set_epi64x(8, 4, 2, 1);
        _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(bits.cast_signed()), each), each)
    }

    /// The lowest eight bits, each as four bytes.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn of_eight(bits: u64) -> __m256i {
        let each = _mm256_set_epi32(128, 64, 32, 16, 8, 4, 2, 1);
        _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(bits as i32), each), each)
    }
}

/// Copies the values of one word; how many they are.
#[inline]
fn one_by_one<T: Copy>(chunk: &[T], mut word: u64, target: &mut [T]) -> usize {
    let count = word.count_ones() as usize;
    if count == 64
        && let (Some(all), Some(place)) = (chunk.first_chunk::<64>(), target.first_chunk_mut())
    {
        *place = *all;
        return count;
    }
    for place in &mut target[..count] {
        *place = chunk[word.trailing_zeros() as usize];
        word &= word - 1;
    }
    count
}

/// Vectors whose wanted values are moved to the front, and stored whole: what is too much is
/// overwritten by those that follow.
#[cfg(target_arch = "x86_64")]
mod moved {
    use std::arch::x86_64::{_mm256_loadu_si256, _mm256_permutevar8x32_epi32, _mm256_storeu_si256};

    use super::{FEW, Native, one_by_one};

    /// For each four bits the halves of the values that they name.
    const OF_FOUR: [[u32; 8]; 16] = {
        let mut table = [[0; 8]; 16];
        let mut bits = 0;
        while bits < 16 {
            let (mut place, mut lane) = (0, 0);
            while lane < 4 {
                if bits >> lane & 1 == 1 {
                    table[bits][place] = 2 * lane as u32;
                    table[bits][place + 1] = 2 * lane as u32 + 1;
                    place += 2;
                }
                lane += 1;
            }
            bits += 1;
        }
        table
    };

    /// For each eight bits the values that they name.
    static OF_EIGHT: [[u32; 8]; 256] = {
        let mut table = [[0; 8]; 256];
        let mut bits = 0;
        while bits < 256 {
            let (mut place, mut lane) = (0, 0);
            while lane < 8 {
                if bits >> lane & 1 == 1 {
                    table[bits][place] = lane as u32;
                    place += 1;
                }
                lane += 1;
            }
            bits += 1;
        }
        table
    };

    /// Values of eight bytes each.
    #[target_feature(enable = "avx2,popcnt")]
    pub(super) fn eight_bytes<T: Native>(values: &[T], kept: &[u64], mut target: Vec<T>) -> Vec<T> {
        assert_eq!(size_of::<T>(), 8);
        let mut at = 0;
        for (chunk, &word) in values.chunks(64).zip(kept) {
            let room = &mut target[at..];
            // A vector beyond the last value that is wanted has to fit as well.
            let is_whole = chunk.len() == 64 && room.len() >= 64;
            if word.count_ones() <= FEW || word == u64::MAX || !is_whole {
                at += one_by_one(chunk, word, room);
                continue;
            }
            let mut place = 0;
            for part in 0..16 {
                let bits = (word >> (4 * part)) as usize & 15;
                // SAFETY: of the chunk's 64 values four from the place `4 * part`; of the room for
                // 64 values four from a place that is no further than that.
                unsafe {
                    let four = _mm256_loadu_si256(chunk.as_ptr().add(4 * part).cast());
                    let order = _mm256_loadu_si256(OF_FOUR[bits].as_ptr().cast());
                    let front = _mm256_permutevar8x32_epi32(four, order);
                    _mm256_storeu_si256(room.as_mut_ptr().add(place).cast(), front);
                }
                place += bits.count_ones() as usize;
            }
            at += place;
        }
        target
    }

    /// Values of four bytes each.
    #[target_feature(enable = "avx2,popcnt")]
    pub(super) fn four_bytes<T: Native>(values: &[T], kept: &[u64], mut target: Vec<T>) -> Vec<T> {
        assert_eq!(size_of::<T>(), 4);
        let mut at = 0;
        for (chunk, &word) in values.chunks(64).zip(kept) {
            let room = &mut target[at..];
            let is_whole = chunk.len() == 64 && room.len() >= 64;
            if word.count_ones() <= FEW || word == u64::MAX || !is_whole {
                at += one_by_one(chunk, word, room);
                continue;
            }
            let mut place = 0;
            for part in 0..8 {
                let bits = (word >> (8 * part)) as usize & 255;
                // SAFETY: of the chunk's 64 values eight from the place `8 * part`; of the room for
                // 64 values eight from a place that is no further than that.
                unsafe {
                    let eight = _mm256_loadu_si256(chunk.as_ptr().add(8 * part).cast());
                    let order = _mm256_loadu_si256(OF_EIGHT[bits].as_ptr().cast());
                    let front = _mm256_permutevar8x32_epi32(eight, order);
                    _mm256_storeu_si256(room.as_mut_ptr().add(place).cast(), front);
                }
                place += bits.count_ones() as usize;
            }
            at += place;
        }
        target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_set_bits_are_kept() {
        let mut seed = 5_u64;
        let mut random = move |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % bound
        };
        for round in 0..600 {
            let rows = random(1_000) as usize;
            let percent = [0, 1, 20, 50, 95, 100][round % 6];
            let mut kept = vec![0_u64; rows.div_ceil(64)];
            for row in 0..rows {
                kept[row / 64] |= u64::from(random(100) < percent) << (row % 64);
            }
            let is_kept = |row: &usize| kept[row / 64] >> (row % 64) & 1 == 1;
            let rows: Vec<usize> = (0..rows).collect();
            let expected: Vec<usize> = rows.iter().copied().filter(is_kept).collect();
            macro_rules! same {
                ($($type:ty),*) => {$(
                    let values: Vec<$type> = rows.iter().map(|&row| row as $type).collect();
                    let expected: Vec<$type> = expected.iter().map(|&row| row as $type).collect();
                    assert_eq!(compact(&values, &kept), expected, "round {round}");
                )*};
            }
            same!(f64, i64, f32, i32, i16, i8);
            macro_rules! chosen {
                ($($type:ty),*) => {$(
                    let set: Vec<$type> = rows.iter().map(|&row| row as $type).collect();
                    let unset: Vec<$type> = set.iter().map(|&row| row + 1 as $type).collect();
                    let one = |row: &usize| if is_kept(row) { set[*row] } else { unset[*row] };
                    let expected: Vec<$type> = rows.iter().map(one).collect();
                    assert_eq!(choose(&kept, &set, &unset), expected, "round {round}");
                )*};
            }
            chosen!(f64, i64, f32, i32, i16);
        }
    }
}
