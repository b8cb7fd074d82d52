//! MD5, SHA-1 and SHA-256 of texts and bytes, in lower-case hexadecimal. They are fingerprints for
//! queries, not for secrets, so plain portable loops do.

use arrow::array::{Array, ArrayRef, AsArray};
use datafusion::common::Result;
use tidemark_types::SqlType::{Binary, Varchar};

use crate::column::{Call, build_text, internal};
use crate::registry::Param::{Is, Text};
use crate::registry::{Function, direct, pure};

/// The message with its padding: a one bit, zeros, and the length in bits in the last 8 bytes.
fn padded(message: &[u8], big_endian: bool) -> Vec<u8> {
    let bits = (message.len() as u64).wrapping_mul(8);
    let mut bytes = message.to_vec();
    bytes.push(0x80);
    while bytes.len() % 64 != 56 {
        bytes.push(0);
    }
    bytes.extend(if big_endian { bits.to_be_bytes() } else { bits.to_le_bytes() });
    bytes
}

fn words<const N: usize>(block: &[u8], big_endian: bool) -> [u32; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
        *word = if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
    }
    words
}

fn md5(message: &[u8]) -> Vec<u8> {
    const TURNS: [[u32; 4]; 4] =
        [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in padded(message, false).chunks_exact(64) {
        let words = words::<16>(block, false);
        let [mut a, mut b, mut c, mut d] = state;
        for round in 0..64_usize {
            let (mix, index) = match round / 16 {
                0 => ((b & c) | (!b & d), round),
                1 => ((d & b) | (!d & c), (5 * round + 1) % 16),
                2 => (b ^ c ^ d, (3 * round + 5) % 16),
                _ => (c ^ (b | !d), 7 * round % 16),
            };
            // The constants are the first 32 bits of |sin(n)|, n in radians from 1.
            let constant = (((round + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
            let sum = a.wrapping_add(mix).wrapping_add(constant).wrapping_add(words[index]);
            let turned = sum.rotate_left(TURNS[round / 16][round % 4]);
            (a, d, c, b) = (d, c, b, b.wrapping_add(turned));
        }
        for (sum, part) in state.iter_mut().zip([a, b, c, d]) {
            *sum = sum.wrapping_add(part);
        }
    }
    state.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The bits of `one` where `mask` is set, those of `other` elsewhere.
fn choice(mask: u32, one: u32, other: u32) -> u32 {
    (mask & one) | (!mask & other)
}

/// The bits that most of the three have set.
fn majority(one: u32, two: u32, three: u32) -> u32 {
    (one & two) | (one & three) | (two & three)
}

fn mixed(word: u32, rotations: [u32; 3]) -> u32 {
    rotations.iter().fold(0, |sum, &by| sum ^ word.rotate_right(by))
}

fn sha1(message: &[u8]) -> Vec<u8> {
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in padded(message, true).chunks_exact(64) {
        let mut schedule = words::<80>(block, true);
        for at in 16..80 {
            let mixed = schedule[at - 3] ^ schedule[at - 8] ^ schedule[at - 14] ^ schedule[at - 16];
            schedule[at] = mixed.rotate_left(1);
        }
        let mut turn = state;
        for (round, word) in schedule.iter().enumerate() {
            let [_, b, c, d, _] = turn;
            let (mix, constant) = match round / 20 {
                0 => (choice(b, c, d), 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => (majority(b, c, d), 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6),
            };
            let next = turn[0].rotate_left(5).wrapping_add(mix).wrapping_add(turn[4]);
            let next = next.wrapping_add(constant).wrapping_add(*word);
            turn = [next, turn[0], b.rotate_left(30), c, d];
        }
        for (sum, part) in state.iter_mut().zip(turn) {
            *sum = sum.wrapping_add(part);
        }
    }
    state.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// The first `N` primes' roots: the first 32 bits of their fraction. Integer arithmetic, since a
/// DOUBLE's cube root is not exact to the last of them.
fn prime_roots<const N: usize>(cube: bool) -> [u32; N] {
    let mut roots = [0; N];
    let is_prime = |n: &u128| (2..*n).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
    for (root, prime) in roots.iter_mut().zip((2_u128..).filter(is_prime)) {
        let shift = if cube { 96 } else { 64 };
        let target = prime << shift;
        let (mut low, mut high) = (0_u128, 1 << 40);
        while high - low > 1 {
            let middle = u128::midpoint(low, high);
            let power = if cube { middle * middle * middle } else { middle * middle };
            if power <= target { low = middle } else { high = middle }
        }
        *root = low as u32;
    }
    roots
}

fn sha256(message: &[u8]) -> Vec<u8> {
    let constants = SHA256_CONSTANTS.as_ref();
    let mut state: [u32; 8] = *SHA256_START;
    for block in padded(message, true).chunks_exact(64) {
        let mut schedule = words::<64>(block, true);
        for at in 16..64 {
            let (early, late) = (schedule[at - 15], schedule[at - 2]);
            let first = early.rotate_right(7) ^ early.rotate_right(18) ^ (early >> 3);
            let second = late.rotate_right(17) ^ late.rotate_right(19) ^ (late >> 10);
            let sum = schedule[at - 16].wrapping_add(first).wrapping_add(schedule[at - 7]);
            schedule[at] = sum.wrapping_add(second);
        }
        let mut turn = state;
        for (word, constant) in schedule.iter().zip(constants) {
            let first = turn[7].wrapping_add(mixed(turn[4], [6, 11, 25]));
            let first = first.wrapping_add(choice(turn[4], turn[5], turn[6]));
            let first = first.wrapping_add(*constant).wrapping_add(*word);
            let second = mixed(turn[0], [2, 13, 22]);
            let second = second.wrapping_add(majority(turn[0], turn[1], turn[2]));
            // The words move on by one; the last makes room, the fifth takes the sum in.
            turn.rotate_right(1);
            turn[4] = turn[4].wrapping_add(first);
            turn[0] = first.wrapping_add(second);
        }
        for (sum, part) in state.iter_mut().zip(turn) {
            *sum = sum.wrapping_add(part);
        }
    }
    state.iter().flat_map(|word| word.to_be_bytes()).collect()
}

static SHA256_START: std::sync::LazyLock<[u32; 8]> =
    std::sync::LazyLock::new(|| prime_roots(false));
static SHA256_CONSTANTS: std::sync::LazyLock<[u32; 64]> =
    std::sync::LazyLock::new(|| prime_roots(true));

/// Appends two lower-case digits per byte.
pub(crate) fn hexadecimal(bytes: &[u8], out: &mut impl Extend<char>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.extend([byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)])));
    }
}

fn of_texts(call: &Call<'_>, digest: fn(&[u8]) -> Vec<u8>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    build_text(call.rows, |row, out| {
        let Some(text) = texts.get(row) else { return false };
        hexadecimal(&digest(text.as_bytes()), out);
        true
    })
}

fn of_bytes(call: &Call<'_>, digest: fn(&[u8]) -> Vec<u8>) -> Result<ArrayRef> {
    let (array, scalar) = call.array(0)?;
    let values = array.as_binary_opt::<i64>().ok_or_else(|| internal("not binary"))?;
    build_text(call.rows, |row, out| {
        let row = if scalar { 0 } else { row };
        if values.is_null(row) {
            return false;
        }
        hexadecimal(&digest(values.value(row)), out);
        true
    })
}

macro_rules! digest {
    ($name:literal, $digest:ident, $summary:literal) => {
        pure(
            $name,
            &[
                direct(&[Text], Varchar, |call| of_texts(call, $digest)),
                direct(&[Is(Binary)], Varchar, |call| of_bytes(call, $digest)),
            ],
            $summary,
        )
    };
}

pub(crate) const FUNCTIONS: &[Function] = &[
    digest!("md5", md5, "MD5 in hexadecimal"),
    digest!("sha1", sha1, "SHA-1 in hexadecimal"),
    digest!("sha256", sha256, "SHA-256 in hexadecimal"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        let mut out = String::new();
        hexadecimal(bytes, &mut out);
        out
    }

    #[test]
    fn published_vectors() {
        assert_eq!(hex(&md5(b"")), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(hex(&md5(b"abc")), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(hex(&sha1(b"abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(
            hex(&sha256(b"abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        let long = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(hex(&sha1(long)), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
        assert_eq!(
            hex(&sha256(long)),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
    }
}
