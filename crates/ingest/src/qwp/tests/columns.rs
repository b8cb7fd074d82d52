//! Values of every type, with both representations of null, in new columns and in columns of other
//! types.

use tidemark_types::SqlType;

use super::harness::*;
use crate::shown_rows::{nothing, one_column};

fn message_of(code: u8, data: Vec<u8>) -> String {
    cells(code, data, nothing()).unwrap()
}

fn cast(code: u8, data: Vec<u8>, into: SqlType) -> Result<String, String> {
    cells(code, data, one_column(into)).map(|cells| cells.split_once('=').unwrap().1.to_owned())
}

#[test]
fn fixed_width_types_accept_both_null_encodings() {
    assert_eq!(message_of(0x01, vec![0, 0b10]), "BOOLEAN=[false|true]");
    assert_eq!(message_of(0x01, vec![1, 0b01, 0b1]), "BOOLEAN=[false|true]");
    assert_eq!(message_of(0x02, all([[5], [0xff]])), "BYTE=[5|-1]");
    assert_eq!(message_of(0x02, some(0b10, [[5]])), "BYTE=[5|0]");
    assert_eq!(message_of(0x03, all([5_i16, -5].map(i16::to_le_bytes))), "SHORT=[5|-5]");
    assert_eq!(message_of(0x04, all([5, i32::MIN].map(i32::to_le_bytes))), "INT=[5|-]");
    assert_eq!(message_of(0x04, some(0b01, [7_i32.to_le_bytes()])), "INT=[-|7]");
    assert_eq!(message_of(0x05, longs(&[i64::MIN, i64::MAX])), "LONG=[-|9223372036854775807]");
    assert_eq!(message_of(0x05, some(0b11, [[0; 8]; 0])), "LONG=[-|-]");
    assert_eq!(message_of(0x06, all([1.5, f32::NAN].map(f32::to_le_bytes))), "FLOAT=[1.5|-]");
    assert_eq!(
        message_of(0x07, all([f64::INFINITY, -1.5].map(f64::to_le_bytes))),
        "DOUBLE=[-|-1.5]"
    );
    assert_eq!(message_of(0x16, all([65_u16, 0].map(u16::to_le_bytes))), "CHAR=[65|-]");
    assert_eq!(message_of(0x18, all([[4, 3, 2, 1], [0; 4]])), "IPv4=[16909060|-]");
    assert_eq!(
        message_of(0x0b, longs(&[1_700_000_000_000, i64::MIN])),
        "DATE=[2023-11-14T22:13:20|-]"
    );
    assert_eq!(
        message_of(0x10, some(0b10, [1_i64.to_le_bytes()])),
        "TIMESTAMP_NS=[1970-01-01T00:00:00.000000001|-]"
    );
    let words = |words: [i64; 2]| [words[0].to_le_bytes(), words[1].to_le_bytes()].concat();
    let uuid = [vec![0], words([0x1122, 0x3344]), words([i64::MIN; 2])].concat();
    assert_eq!(message_of(0x0c, uuid), "UUID=[00000000000033440000000000001122|-]");
    let long256 = [vec![0], words([1, 2]), words([3, 4]), words([i64::MIN; 2]), words([0; 2])];
    let expected = "LONG256=[0000000000000004000000000000000300000000000000020000000000000001|\
                    000000000000000000000000000000008000000000000000";
    assert!(message_of(0x0d, long256.concat()).starts_with(expected));
}

#[test]
fn strings_geohashes_decimals_and_arrays_are_decoded() {
    let offsets = |ends: &[u32]| -> Vec<u8> {
        [0].iter().chain(ends).flat_map(|end: &u32| end.to_le_bytes()).collect()
    };
    let texts = [vec![0], offsets(&[3, 3]), "aé".as_bytes().to_vec()].concat();
    assert_eq!(message_of(0x0f, texts), "VARCHAR=[aé|]");
    let texts = [vec![1, 0b01], offsets(&[2]), b"ab".to_vec()].concat();
    assert_eq!(message_of(0x0f, texts.clone()), "VARCHAR=[-|ab]");
    assert_eq!(message_of(0x17, texts), "BINARY=[-|6162]");
    let geohash = [vec![0, 20], vec![1, 2, 3], vec![0xff; 3]].concat();
    assert_eq!(message_of(0x0e, geohash), "GEOHASH(4c)=[197121|-]");
    let decimal =
        |code, scale, value: &[u8]| message_of(code, [&[1, 0b10, scale][..], value].concat());
    assert_eq!(decimal(0x13, 2, &12_345_i64.to_le_bytes()), "DECIMAL(18,3)=[123.450|-]");
    assert_eq!(decimal(0x14, 4, &(-1_i128).to_le_bytes()), "DECIMAL(38,4)=[-0.0001|-]");
    assert_eq!(decimal(0x15, 0, &[[7].as_slice(), &[0; 31]].concat()), "DECIMAL(18,3)=[7.000|-]");
    let array = |shape: &[i32], values: &[f64]| -> Vec<u8> {
        let shape = shape.iter().flat_map(|length| length.to_le_bytes());
        shape.chain(values.iter().flat_map(|value| value.to_le_bytes())).collect()
    };
    let arrays = [vec![1, 0b10, 2], array(&[1, 2], &[1.5, f64::NAN])].concat();
    assert!(message_of(0x11, arrays).starts_with("DOUBLE[][]=[{"));
    let empty = [vec![0, 1], array(&[0], &[]), vec![1], array(&[1], &[2.0])].concat();
    assert!(message_of(0x11, empty).starts_with("DOUBLE[]=[{"));
    assert_eq!(message_of(0x11, vec![1, 0b11]), "none", "the number of dimensions is unknown");
    // Rejected, because otherwise a few length bytes could produce a string of any length.
    let hollow = [vec![1, 0b10, 2], array(&[i32::MAX, 0], &[])].concat();
    assert!(cells(0x11, hollow, nothing()).unwrap_err().contains("too many empty nested arrays"));
    let long_array = [vec![1, 0b10, 1], array(&[1], &[2.0])].concat();
    assert!(cells(0x12, long_array, nothing()).unwrap_err().contains("LONG_ARRAY"));
}

#[test]
fn values_of_other_types_are_converted_as_in_the_line_protocol() {
    let ints = all([7, i32::MIN].map(i32::to_le_bytes));
    assert_eq!(cast(0x04, ints.clone(), SqlType::Long).unwrap(), "[7|-]");
    assert_eq!(cast(0x04, ints.clone(), SqlType::Byte).unwrap(), "[7|0]");
    assert_eq!(cast(0x04, ints.clone(), SqlType::Double).unwrap(), "[7.0|-]");
    assert_eq!(cast(0x04, ints.clone(), SqlType::Symbol).unwrap(), "[7|-]");
    assert_eq!(cast(0x04, ints, SqlType::Decimal(10, 2)).unwrap(), "[7.00|-]");
    let reason = cast(0x05, longs(&[300, 1]), SqlType::Byte).unwrap_err();
    assert_eq!(reason, "column 'x' of 't' has type BYTE and cannot hold this LONG");
    let reason = cast(0x05, longs(&[300, 1]), SqlType::Uuid).unwrap_err();
    assert_eq!(reason, "column 'x' of 't' has type UUID and does not accept LONG");
    let doubles = all([1.5, f64::NAN].map(f64::to_le_bytes));
    assert_eq!(cast(0x07, doubles, SqlType::Float).unwrap(), "[1.5|-]");
    let nanos = longs(&[1_999, i64::MIN]);
    let shown = cast(0x10, nanos, SqlType::Timestamp).unwrap();
    assert_eq!(shown, "[1970-01-01T00:00:00.000001|-]");
    assert_eq!(cast(0x0b, longs(&[5, 6]), SqlType::Long).unwrap(), "[5|6]");
    let chars = all([0x20ac_u16, 0].map(u16::to_le_bytes));
    assert_eq!(cast(0x16, chars, SqlType::Varchar).unwrap(), "[€|-]");
    let uuid = "11111111-2222-3333-4444-555555555555";
    let ends: Vec<u8> = [0, 36].iter().flat_map(|end: &u32| end.to_le_bytes()).collect();
    let texts = [vec![1, 0b10], ends, uuid.as_bytes().to_vec()].concat();
    let shown = cast(0x0f, texts, SqlType::Uuid).unwrap();
    assert_eq!(shown, format!("[{}|-]", uuid.replace('-', "")));
    let finer = [vec![1, 0b10, 20], vec![0xff, 0xff, 0x07]].concat();
    assert_eq!(cast(0x0e, finer.clone(), SqlType::Geohash(5)).unwrap(), "[15|-]");
    assert!(cast(0x0e, finer, SqlType::Geohash(25)).is_err());
}

#[test]
fn gorilla_decoder_handles_every_bucket() {
    let mut values = vec![1_700_000_000_000_000_i64, 1_700_000_000_001_000];
    let (min, max) = (i64::from(i32::MIN), i64::from(i32::MAX));
    for step in [0, 1, -64, 63, -256, 255, -2048, 2047, min, max] {
        let [.., before, last] = values[..] else { unreachable!() };
        values.push(last + (last - before) + step);
    }
    let rows = values.len() as u64;
    let encoded = [vec![0, 1], super::fuzz::gorilla(&values)].concat();
    let plain = [vec![0, 0], longs(&values)[1..].to_vec()].concat();
    let shown = [encoded, plain].map(|data| {
        let block = block("t", rows, &[("", 0x0a, data), ("d", 0x0b, longs(&values))]);
        read(message(GORILLA, 1, &block), nothing()).unwrap()
    });
    assert_eq!(shown[0], shown[1]);
    for count in 0..3 {
        let some = &values[..count];
        let data = [vec![0, 1], super::fuzz::gorilla(some)].concat();
        let block = block("t", count as u64, &[("", 0x0a, data)]);
        assert!(read(message(GORILLA, 1, &block), nothing()).is_ok());
    }
}
