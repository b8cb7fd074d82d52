//! Cells that are encoded identically in every format: identifiers, addresses, geohashes, arrays.

use arrow_buffer::IntervalMonthDayNano;
use tidemark_types::period::Period;

use crate::columns::Fixed;
use crate::digits::{TimestampWriter, push_integer};

const HEX: &[u8; 16] = b"0123456789abcdef";
const GEOHASH_BASE32: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";

fn push_hex(out: &mut Vec<u8>, byte: u8) {
    out.push(HEX[usize::from(byte >> 4)]);
    out.push(HEX[usize::from(byte & 15)]);
}

/// `11111111-2222-3333-4444-555555555555`
pub(crate) fn push_uuid(out: &mut Vec<u8>, bytes: &[u8]) {
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        push_hex(out, *byte);
    }
}

/// Writes `0x12`: whole bytes without leading zero bytes. The last byte is always written.
pub(crate) fn push_long256(out: &mut Vec<u8>, big_endian: &[u8]) {
    out.extend_from_slice(b"0x");
    let zeros = big_endian.iter().take_while(|byte| **byte == 0).count();
    for byte in &big_endian[zeros.min(big_endian.len().saturating_sub(1))..] {
        push_hex(out, *byte);
    }
}

pub(crate) fn push_ipv4(out: &mut Vec<u8>, address: u32) {
    for (index, octet) in address.to_be_bytes().into_iter().enumerate() {
        if index > 0 {
            out.push(b'.');
        }
        push_integer(out, octet);
    }
}

/// Writes a geohash: in base 32 if its bits form whole characters, otherwise in binary digits.
pub(crate) fn push_geohash(out: &mut Vec<u8>, bits: u8, value: u64) {
    let (step, count) = if bits.is_multiple_of(5) { (5, bits / 5) } else { (1, bits) };
    for position in (0..count).rev() {
        let digit = value >> (u32::from(position) * step) & ((1 << step) - 1);
        out.push(GEOHASH_BASE32[digit as usize]);
    }
}

/// Writes a CHAR as UTF-8. Half of a surrogate pair cannot be encoded and becomes U+FFFD.
pub(crate) fn push_char(out: &mut Vec<u8>, unit: u16) {
    let character = char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Writes `('2024-01-01T00:00:00.000Z', '2024-01-02T00:00:00.000Z')`, with microseconds only if
/// they are not zero.
pub(crate) fn push_interval(out: &mut Vec<u8>, ends: [Fixed<'_, i64>; 2], row: usize) {
    let mut writer = TimestampWriter::new(crate::digits::TimestampStyle::Iso);
    for (index, end) in ends.into_iter().enumerate() {
        out.extend_from_slice(if index == 0 { b"(" } else { b", " });
        match end.get(row) {
            None => out.extend_from_slice(b"null"),
            Some(micros) => {
                out.push(b'\'');
                if micros % 1_000 == 0 {
                    writer.push_millis(out, micros / 1_000);
                } else {
                    writer.push_micros(out, micros);
                }
                out.push(b'\'');
            }
        }
    }
    out.push(b')');
}

/// Writes `1 year 2 mons 3 days 04:05:06.5`.
pub(crate) fn push_period(out: &mut Vec<u8>, period: IntervalMonthDayNano) {
    out.extend_from_slice(Period::from(period).text().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn identifiers_and_addresses_are_formatted() {
        let bytes: Vec<u8> = (0..16).map(|byte| byte * 17).collect();
        assert_eq!(text(|out| push_uuid(out, &bytes)), "00112233-4455-6677-8899-aabbccddeeff");
        let mut wide = [0; 32];
        assert_eq!(text(|out| push_long256(out, &wide)), "0x00");
        wide[31] = 0x12;
        assert_eq!(text(|out| push_long256(out, &wide)), "0x12");
        wide[30] = 0x0a;
        assert_eq!(text(|out| push_long256(out, &wide)), "0x0a12");
        assert_eq!(text(|out| push_ipv4(out, 0x0102_0304)), "1.2.3.4");
    }

    #[test]
    fn geohashes_are_formatted_as_characters_or_bits() {
        assert_eq!(text(|out| push_geohash(out, 7, 0b101_0101)), "1010101");
        // u33de: 26, 3, 3, 12, 13
        let value = (((26 * 32 + 3) * 32 + 3) * 32 + 12) * 32 + 13;
        assert_eq!(text(|out| push_geohash(out, 25, value)), "u33de");
    }

    #[test]
    fn chars_are_encoded_as_utf8() {
        assert_eq!(text(|out| push_char(out, u16::from(b'a'))), "a");
        assert_eq!(text(|out| push_char(out, 0x20ac)), "€");
        assert_eq!(text(|out| push_char(out, 0xd800)), "\u{fffd}");
    }
}
