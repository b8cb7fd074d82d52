//! Tests of every value of a column, as a bitmap.

/// One bit per value, least significant first: whether `test` holds. The last word is padded
/// with zeros.
pub fn matching<T: Copy>(values: &[T], test: impl Fn(T) -> bool) -> Vec<u64> {
    let (chunks, rest) = values.as_chunks::<64>();
    let mut words = Vec::with_capacity(values.len().div_ceil(64));
    words.extend(chunks.iter().map(|chunk| {
        // Eight bits at a time: a fixed inner loop becomes compares and one gathering of bits.
        let (bytes, _) = chunk.as_chunks::<8>();
        let byte = |lanes: &[T; 8]| -> u8 {
            let mut bits = 0;
            for (lane, &value) in lanes.iter().enumerate() {
                bits |= u8::from(test(value)) << lane;
            }
            bits
        };
        let mut word = [0u8; 8];
        for (out, lanes) in word.iter_mut().zip(bytes) {
            *out = byte(lanes);
        }
        u64::from_le_bytes(word)
    }));
    if !rest.is_empty() {
        let bits = rest.iter().enumerate();
        words.push(bits.fold(0, |word, (bit, &value)| word | u64::from(test(value)) << bit));
    }
    words
}
