//! Evaluates a predicate on every value in a column and returns a bitmap.

/// Returns a bitmap of the values that satisfy `test`, least significant bit first. The last word
/// is padded with zeros.
pub fn matching<T: Copy>(values: &[T], test: impl Fn(T) -> bool) -> Vec<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f")]
        fn avx512<T: Copy>(values: &[T], test: impl Fn(T) -> bool) -> Vec<u64> {
            words(values, |chunk| word(chunk, &test))
        }
        #[target_feature(enable = "avx2")]
        fn avx2<T: Copy>(values: &[T], test: impl Fn(T) -> bool) -> Vec<u64> {
            words(values, |chunk| word(chunk, &test))
        }
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: this CPU has the instructions the function is compiled for.
            return unsafe { avx512(values, test) };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { avx2(values, test) };
        }
    }
    words(values, |chunk| narrow_word(chunk, &test))
}

/// Converts each chunk of 64 values into one word, and the remainder into another.
// Inlined so that it is compiled for each caller's vector width.
#[allow(clippy::inline_always)]
#[inline(always)]
fn words<T: Copy>(values: &[T], of: impl Fn(&[T]) -> u64) -> Vec<u64> {
    let (chunks, rest) = values.as_chunks::<64>();
    let mut words = Vec::with_capacity(values.len().div_ceil(64));
    words.extend(chunks.iter().map(|chunk| of(chunk.as_slice())));
    if !rest.is_empty() {
        words.push(of(rest));
    }
    words
}

/// Tests a chunk in one pass. With wide vectors, each step consists of a comparison and an OR of
/// the lanes' bits.
#[allow(clippy::inline_always)]
#[inline(always)]
fn word<T: Copy>(chunk: &[T], test: &impl Fn(T) -> bool) -> u64 {
    let mut word = 0;
    for (bit, &value) in chunk.iter().enumerate() {
        word |= u64::from(test(value)) << bit;
    }
    word
}

/// Tests a chunk in one pass using two-value vectors. Bits are shifted in groups of eight.
#[allow(clippy::inline_always)]
#[inline(always)]
fn narrow_word<T: Copy>(chunk: &[T], test: &impl Fn(T) -> bool) -> u64 {
    let (chunks, rest) = chunk.as_chunks::<8>();
    let mut lanes = [0; 8];
    for (part, values) in chunks.iter().enumerate() {
        for (bit, (lane, &value)) in lanes.iter_mut().zip(values).enumerate() {
            *lane |= u64::from(test(value)) << (8 * part + bit);
        }
    }
    let known = lanes.iter().fold(0, |word, lane| word | lane);
    match rest {
        [] => known,
        _ => known | word(rest, test) << (8 * chunks.len()),
    }
}

/// Maximum number of keys that fit in a bitmap of eight words.
const FEW_KEYS: usize = 256;

/// Returns a bitmap of the codes whose key passes, in the layout of [`matching`]. Only nulls may
/// have a code that is negative or beyond the keys; the bit of a null is undefined.
#[must_use]
pub fn matching_keys(codes: &[i32], passes: &[bool]) -> Vec<u64> {
    if passes.len() <= FEW_KEYS {
        let mut table = [0_u32; 8];
        for (key, &passing) in passes.iter().enumerate() {
            table[key / 32] |= u32::from(passing) << (key % 32);
        }
        return matching_few(codes, table);
    }
    matching(codes, |code| passes.get(code as usize).is_some_and(|&passing| passing))
}

/// Returns a bitmap of the codes whose key passes. `table` has one bit per key.
fn matching_few(codes: &[i32], table: [u32; 8]) -> Vec<u64> {
    let bit = |code: i32| table[(code >> 5) as usize & 7] >> (code & 31) & 1 == 1;
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn avx2(codes: &[i32], table: [u32; 8], bit: impl Fn(i32) -> bool) -> Vec<u64> {
            let table = looked_up::load(&table);
            words(codes, |chunk| {
                let (chunks, rest) = chunk.as_chunks::<8>();
                let mut word = 0;
                for (part, codes) in chunks.iter().enumerate() {
                    word |= u64::from(looked_up::eight(table, codes)) << (8 * part);
                }
                for (position, &code) in rest.iter().enumerate() {
                    word |= u64::from(bit(code)) << (8 * chunks.len() + position);
                }
                word
            })
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: this CPU has the instructions the function is compiled for.
            return unsafe { avx2(codes, table, bit) };
        }
    }
    words(codes, |chunk| narrow_word(chunk, &bit))
}

/// Looks up eight codes at a time in a 256-bit table.
#[cfg(target_arch = "x86_64")]
mod looked_up {
    use std::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_castsi256_ps, _mm256_loadu_si256, _mm256_movemask_ps,
        _mm256_permutevar8x32_epi32, _mm256_set1_epi32, _mm256_slli_epi32, _mm256_srli_epi32,
        _mm256_srlv_epi32,
    };

    #[target_feature(enable = "avx2")]
    pub(super) fn load(table: &[u32; 8]) -> __m256i {
        // SAFETY: the load reads eight 32-bit numbers and may be unaligned.
        unsafe { _mm256_loadu_si256(table.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn eight(table: __m256i, codes: &[i32; 8]) -> u8 {
        // SAFETY: the load reads eight 32-bit numbers and may be unaligned.
        let codes = unsafe { _mm256_loadu_si256(codes.as_ptr().cast()) };
        // Bits 5 to 7 of a code select a word, and bits 0 to 4 select a bit within the word.
        let words = _mm256_permutevar8x32_epi32(table, _mm256_srli_epi32::<5>(codes));
        let within = _mm256_and_si256(codes, _mm256_set1_epi32(31));
        let signs = _mm256_slli_epi32::<31>(_mm256_srlv_epi32(words, within));
        _mm256_movemask_ps(_mm256_castsi256_ps(signs)) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive<T: Copy>(values: &[T], test: impl Fn(T) -> bool) -> Vec<u64> {
        let mut words = vec![0; values.len().div_ceil(64)];
        for (row, &value) in values.iter().enumerate() {
            words[row / 64] |= u64::from(test(value)) << (row % 64);
        }
        words
    }

    fn random(seed: &mut u64, bound: usize) -> usize {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*seed >> 33) as usize % bound
    }

    #[test]
    fn matching_returns_the_same_bitmap_as_a_naive_loop() {
        let mut seed = 11;
        for round in 0..300 {
            let doubles: Vec<f64> =
                (0..random(&mut seed, 300)).map(|_| random(&mut seed, 100) as f64).collect();
            let bytes: Vec<i8> = doubles.iter().map(|&value| value as i8).collect();
            let bound = random(&mut seed, 100);
            let of_doubles = |value: f64| value > bound as f64;
            let of_bytes = |value: i8| value != bound as i8;
            let expected = naive(&doubles, of_doubles);
            assert_eq!(matching(&doubles, of_doubles), expected, "round {round}");
            assert_eq!(words(&doubles, |c| word(c, &of_doubles)), expected, "round {round}");
            assert_eq!(words(&doubles, |c| narrow_word(c, &of_doubles)), expected, "{round}");
            assert_eq!(matching(&bytes, of_bytes), naive(&bytes, of_bytes), "round {round}");
        }
    }

    #[test]
    fn matching_keys_returns_the_same_bitmap_as_a_table_lookup() {
        let mut seed = 12;
        for round in 0..300 {
            let keys = 1 + random(&mut seed, if round % 2 == 0 { 256 } else { 600 });
            let passes: Vec<bool> = (0..keys).map(|_| random(&mut seed, 3) == 0).collect();
            let codes: Vec<i32> =
                (0..random(&mut seed, 300)).map(|_| random(&mut seed, keys) as i32).collect();
            let expected = naive(&codes, |code| passes[code as usize]);
            assert_eq!(matching_keys(&codes, &passes), expected, "round {round}");
        }
        // A null may have any code.
        assert_eq!(matching_keys(&[-1, i32::MIN, i32::MAX, 7], &[false; 3]), [0]);
    }
}
