//! Timestamps encoded as differences between consecutive deltas, which need one bit per value if
//! the intervals are regular.

/// Size of a value in bytes.
const WIDTH: usize = size_of::<i64>();

/// Bit writer, lowest bit first.
struct Bits<'a> {
    out: &'a mut Vec<u8>,
    word: u128,
    used: u32,
}

impl Bits<'_> {
    #[inline]
    fn push(&mut self, bits: u64, count: u32) {
        self.word |= u128::from(bits) << self.used;
        self.used += count;
        if self.used >= u64::BITS {
            self.out.extend_from_slice(&(self.word as u64).to_le_bytes());
            self.word >>= u64::BITS;
            self.used -= u64::BITS;
        }
    }

    fn finish(self) {
        let bytes = self.used.div_ceil(8) as usize;
        self.out.extend_from_slice(&(self.word as u64).to_le_bytes()[..bytes]);
    }
}

/// Size classes of differences: minimum, maximum, prefix, prefix length in bits, number length in
/// bits.
const BUCKETS: [(i64, i64, u64, u32, u32); 4] = [
    (-64, 63, 0b01, 2, 7),
    (-256, 255, 0b011, 3, 9),
    (-2048, 2047, 0b0111, 4, 12),
    (i32::MIN as i64, i32::MAX as i64, 0b1111, 4, 32),
];

/// Appends `values`, which are little-endian 64-bit numbers. Returns `false` and appends nothing if
/// there are fewer than three values, a difference is too large, or the result would not be
/// smaller.
pub(super) fn encode(values: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    if values.len() < 3 * WIDTH {
        return false;
    }
    if differences(values, out).is_some() && out.len() - start < values.len() {
        return true;
    }
    out.truncate(start);
    false
}

fn differences(values: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let max = out.len() + values.len();
    let (values, _) = values.as_chunks::<WIDTH>();
    let (first, second) = (i64::from_le_bytes(values[0]), i64::from_le_bytes(values[1]));
    out.extend_from_slice(values[..2].as_flattened());
    let mut bits = Bits { out, word: 0, used: 0 };
    let mut previous = second;
    let mut step = second.checked_sub(first)?;
    for value in &values[2..] {
        let value = i64::from_le_bytes(*value);
        let next = value.checked_sub(previous)?;
        let change = next.checked_sub(step)?;
        if change == 0 {
            bits.push(0, 1);
        } else {
            let fits =
                |(min, max, ..): &&(i64, i64, u64, u32, u32)| (*min..=*max).contains(&change);
            let &(_, _, prefix, prefix_bits, number_bits) = BUCKETS.iter().find(fits)?;
            let number = change as u64 & ((1 << number_bits) - 1);
            bits.push(prefix | number << prefix_bits, prefix_bits + number_bits);
            if bits.out.len() >= max {
                return None;
            }
        }
        (previous, step) = (value, next);
    }
    bits.finish();
    Some(())
}

#[cfg(test)]
pub(super) fn decode(bytes: &[u8], count: usize) -> (Vec<i64>, usize) {
    let number = |at: usize| i64::from_le_bytes(bytes[at..at + WIDTH].try_into().unwrap());
    let mut values = vec![number(0), number(WIDTH)];
    let mut at = 2 * WIDTH * 8;
    let bit = |at: usize| bytes[at / 8] >> (at % 8) & 1;
    let mut step = values[1] - values[0];
    while values.len() < count {
        let mut ones = 0;
        while ones < 4 && bit(at) == 1 {
            (ones, at) = (ones + 1, at + 1);
        }
        at += usize::from(ones < 4);
        let size = [0, 7, 9, 12, 32][ones];
        let mut number = 0_i64;
        for place in 0..size {
            number |= i64::from(bit(at + place)) << place;
        }
        if size > 0 {
            number = number << (64 - size) >> (64 - size);
        }
        at += size;
        step += number;
        values.push(values[values.len() - 1] + step);
    }
    (values, at.div_ceil(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(values: &[i64]) -> Option<Vec<u8>> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut out = b"before".to_vec();
        let is_smaller = encode(&bytes, &mut out);
        assert_eq!(is_smaller, out.len() > 6);
        is_smaller.then(|| out.split_off(6))
    }

    #[test]
    fn differences_at_bucket_boundaries_round_trip() {
        for change in [0, -1, 63, -64, 64, -65, 255, -256, 256, 2047, -2048, 2048, -2049] {
            let values = [1_000, 2_000, 3_000, 4_000 + change, 5_000];
            let bytes = encoded(&values).expect("the encoded form is smaller");
            assert_eq!(decode(&bytes, values.len()), (values.to_vec(), bytes.len()));
        }
        let far = i64::from(i32::MAX);
        let values = [0, 0, far, far, far - 1, 7];
        let bytes = encoded(&values).expect("the encoded form is smaller");
        assert_eq!(decode(&bytes, values.len()).0, values);
    }

    #[test]
    fn encoded_bits_follow_the_protocol() {
        // Bits 1 and 0, then 7 bits of -1.
        assert_eq!(encoded(&[0, 1, 1]).unwrap()[16..], [0b1111_1101, 0b1]);
        assert_eq!(encoded(&[0, 1, 2, 3]).unwrap()[16..], [0]);
    }

    #[test]
    fn values_that_would_not_shrink_are_not_encoded() {
        assert_eq!(encoded(&[]), None);
        assert_eq!(encoded(&[1, 2]), None);
        assert_eq!(encoded(&[0, 0, i64::from(i32::MAX) + 1]), None);
        assert_eq!(encoded(&[i64::MIN, i64::MAX, 0]), None);
        assert_eq!(encoded(&[0, i64::MAX, i64::MIN]), None);
    }
}
