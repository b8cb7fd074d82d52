use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal32Array, Decimal128Array, DictionaryArray,
    FixedSizeBinaryArray, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array,
    LargeBinaryArray, NullArray, StringArray, StringViewArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, UInt16Array, UInt32Array,
};
use tidemark_types::SqlType;

use super::*;

const PLAIN: QwpOptions = QwpOptions { max_rows: 1_000, max_bytes: 1 << 20, zstd_level: None };

fn batch(arrays: Vec<ArrayRef>) -> RecordBatch {
    RecordBatch::try_from_iter(
        arrays.into_iter().enumerate().map(|(index, array)| (format!("c{index}"), array)),
    )
    .unwrap()
}

fn messages(types: &[SqlType], options: QwpOptions) -> QwpMessages {
    let name = |(index, sql_type): (usize, &SqlType)| Field::new(format!("c{index}"), *sql_type);
    QwpMessages::new(&types.iter().enumerate().map(name).collect::<Vec<_>>(), options).unwrap()
}

fn closed(messages: &mut QwpMessages) -> Vec<u8> {
    let mut out = Vec::new();
    messages.close(&mut out).unwrap();
    out
}

/// Returns the bytes of the only column of a result.
fn column(sql_type: SqlType, array: impl arrow_array::Array + 'static) -> Vec<u8> {
    let mut messages = messages(&[sql_type], PLAIN);
    let rows = array.len();
    messages.encode(&batch(vec![Arc::new(array)])).unwrap();
    messages.finish();
    let out = closed(&mut messages);
    let head = [FLAG_GORILLA | FLAG_DELTA_DICTIONARY, 0, 0, 0, 0, rows as u8, 1, 2, b'c', b'0'];
    assert_eq!(out[..head.len()], head);
    assert_eq!(out[head.len()], messages.columns[0].code());
    out[head.len() + 1..].to_vec()
}

#[test]
fn nulls_are_marked_only_in_the_bitmap_and_values_are_packed() {
    let longs = Int64Array::from(vec![Some(1), None, Some(-2)]);
    let expected = [&[1, 0b010][..], &1_i64.to_le_bytes(), &(-2_i64).to_le_bytes()].concat();
    assert_eq!(column(SqlType::Long, longs), expected);
    let ints = Int32Array::from(vec![7, 8]);
    assert_eq!(column(SqlType::Int, ints), [0, 7, 0, 0, 0, 8, 0, 0, 0]);
    let doubles = Float64Array::from(vec![None::<f64>; 9]);
    assert_eq!(column(SqlType::Double, doubles), [1, 0xff, 1]);
    let addresses = UInt32Array::from(vec![Some(0x0102_0304), None]);
    assert_eq!(column(SqlType::Ipv4, addresses), [1, 2, 4, 3, 2, 1]);
    let binary = LargeBinaryArray::from(vec![Some(&b"ab"[..]), None, Some(&b""[..])]);
    let expected = [1, 2, 0, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, b'a', b'b'];
    assert_eq!(column(SqlType::Binary, binary), expected);
    let views = StringViewArray::from(vec!["é", "longer than twelve bytes"]);
    let bytes = column(SqlType::Varchar, views);
    assert_eq!(bytes[..13], [0, 0, 0, 0, 0, 2, 0, 0, 0, 26, 0, 0, 0]);
    assert_eq!(&bytes[13..], "élonger than twelve bytes".as_bytes());
}

#[test]
fn types_without_null_have_no_bitmap() {
    let truths = BooleanArray::from(vec![Some(true), None, Some(true)]);
    assert_eq!(column(SqlType::Boolean, truths), [0, 0b101]);
    assert_eq!(column(SqlType::Byte, Int8Array::from(vec![Some(-1), None])), [0, 0xff, 0]);
    assert_eq!(column(SqlType::Short, Int16Array::from(vec![None, Some(2)])), [0, 0, 0, 2, 0]);
    assert_eq!(column(SqlType::Char, UInt16Array::from(vec![Some(65), None])), [0, 65, 0, 0, 0]);
    for (sql_type, width) in [(SqlType::Byte, 1), (SqlType::Short, 2), (SqlType::Char, 2)] {
        assert_eq!(column(sql_type, NullArray::new(2)), vec![0; 1 + 2 * width]);
    }
    assert_eq!(column(SqlType::Boolean, NullArray::new(2)), [0, 0]);
}

#[test]
fn all_null_columns_keep_their_prefixes() {
    assert_eq!(column(SqlType::Long, NullArray::new(2)), [1, 3]);
    assert_eq!(column(SqlType::Timestamp, NullArray::new(2)), [1, 3, 0]);
    assert_eq!(column(SqlType::Varchar, NullArray::new(2)), [1, 3, 0, 0, 0, 0]);
    assert_eq!(column(SqlType::Geohash(20), NullArray::new(1)), [1, 1, 20]);
    assert_eq!(column(SqlType::Decimal(10, 3), NullArray::new(1)), [1, 1, 3]);
    let empty = TimestampMicrosecondArray::from(Vec::<i64>::new());
    assert_eq!(column(SqlType::Timestamp, empty), [0, 0]);
}

#[test]
fn wide_values_are_written_in_little_endian_byte_order() {
    let bytes: Vec<u8> = (0..16).collect();
    let uuids = FixedSizeBinaryArray::try_from_iter([bytes.clone()].into_iter()).unwrap();
    let turned: Vec<u8> = bytes.into_iter().rev().collect();
    assert_eq!(column(SqlType::Uuid, uuids), [&[0], &turned[..]].concat());
    let hashes = Int32Array::from(vec![0xa_bcde]);
    assert_eq!(column(SqlType::Geohash(20), hashes), [0, 20, 0xde, 0xbc, 0x0a]);
    let narrow = Decimal32Array::from(vec![Some(-5), None]).with_precision_and_scale(9, 2).unwrap();
    let expected = [&[1, 2, 2][..], &(-5_i64).to_le_bytes()].concat();
    assert_eq!(column(SqlType::Decimal(9, 2), narrow), expected);
    let wide = Decimal128Array::from(vec![7]).with_precision_and_scale(20, 0).unwrap();
    assert_eq!(
        column(SqlType::Decimal(20, 0), wide),
        [&[0, 0][..], &7_i128.to_le_bytes()].concat()
    );
}

#[test]
fn regular_timestamps_are_compressed() {
    let regular: Vec<i64> = (0..100).map(|row| 1_000 * row).collect();
    let bytes = column(SqlType::Date, TimestampMillisecondArray::from(regular.clone()));
    assert_eq!(bytes[..2], [0, 1]);
    assert_eq!(gorilla::decode(&bytes[2..], 100), (regular, bytes.len() - 2));
    let wild = TimestampMicrosecondArray::from(vec![0, i64::MAX, 5]);
    assert_eq!(column(SqlType::Timestamp, wild).len(), 2 + 24);
}

#[test]
fn each_symbol_has_one_id_across_all_columns_and_messages() {
    let dictionary: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), Some("b"), None]));
    let of = |keys: Vec<Option<i32>>| -> ArrayRef {
        let keys = Int32Array::from(keys);
        Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::clone(&dictionary)).unwrap())
    };
    let texts: ArrayRef = Arc::new(StringViewArray::from(vec![Some("b"), None, Some("c"), None]));
    let mut messages = messages(&[SqlType::Symbol, SqlType::Symbol], PLAIN);
    let first = of(vec![Some(1), Some(2), None, Some(1)]);
    messages.encode(&batch(vec![first, texts])).unwrap();
    let out = closed(&mut messages);
    assert_eq!(out[2..8], [0, 2, 1, b'b', 1, b'c'], "only symbols that occur, each once");
    assert_eq!(out[out.len() - 8..], [1, 0b0110, 0, 0, 1, 0b1010, 0, 1]);
    let second = [of(vec![Some(0), Some(1)]), of(vec![Some(1), Some(0)])];
    messages.encode(&batch(second.to_vec())).unwrap();
    assert_eq!(closed(&mut messages)[1..], [1, 2, 1, 1, b'a', 0, 2, 0, 2, 0, 0, 0, 2]);
}

#[test]
fn an_empty_result_describes_its_columns() {
    let mut messages = messages(&[SqlType::Int], PLAIN);
    assert!(closed(&mut messages).is_empty(), "more rows may follow");
    messages.finish();
    assert_eq!(closed(&mut messages)[1..], [0, 0, 0, 0, 0, 1, 2, b'c', b'0', 4, 0]);
    assert!(closed(&mut messages).is_empty());
}

#[test]
fn messages_are_split_by_row_count_and_bytes() {
    let options = QwpOptions { max_rows: 10, max_bytes: 32, zstd_level: None };
    let mut messages = messages(&[SqlType::Long], options);
    assert_eq!(messages.free_rows(), 4);
    messages.encode(&batch(vec![Arc::new(Int64Array::from(vec![1, 2, 3, 4]))])).unwrap();
    assert_eq!(messages.free_rows(), 0);
    assert!(!closed(&mut messages).is_empty());
    assert_eq!(messages.free_rows(), 4);
    let wide = QwpOptions { max_rows: 10, max_bytes: 1, zstd_level: None };
    assert_eq!(self::messages(&[SqlType::Long], wide).free_rows(), 1, "at least one row");
    let few = QwpOptions { max_rows: 3, ..PLAIN };
    assert_eq!(self::messages(&[SqlType::Long], few).free_rows(), 3);
}

#[test]
fn a_row_that_exceeds_the_maximum_message_size_is_refused() {
    let mut messages = messages(&[SqlType::Varchar], PLAIN);
    let long = "x".repeat(ROW_BYTES + 1);
    let error = messages.encode(&batch(vec![Arc::new(StringArray::from(vec![long]))]));
    assert_eq!(error.unwrap_err().code, ErrorCode::ResourceLimit);
}

#[test]
fn compression_is_used_only_if_it_saves_bytes() {
    let options = QwpOptions { zstd_level: Some(1), ..PLAIN };
    let mut messages = messages(&[SqlType::Long], options);
    messages.encode(&batch(vec![Arc::new(Int64Array::from(vec![7; 500]))])).unwrap();
    let out = closed(&mut messages);
    assert_eq!(out[..2], [FLAG_GORILLA | FLAG_DELTA_DICTIONARY | FLAG_ZSTD, 0]);
    let body = zstd::bulk::decompress(&out[2..], 1 << 20).unwrap();
    assert_eq!(body.len(), 4 + 1 + 1 + 4 + 1 + 500 * 8);
    messages.encode(&batch(vec![Arc::new(Int64Array::from(vec![7]))])).unwrap();
    assert_eq!(closed(&mut messages)[..2], [FLAG_GORILLA | FLAG_DELTA_DICTIONARY, 1]);
}

#[test]
fn an_array_of_an_unexpected_type_is_an_error() {
    let mut messages = messages(&[SqlType::Long], PLAIN);
    let days: ArrayRef = Arc::new(Date32Array::from(vec![1]));
    assert!(messages.encode(&batch(vec![days])).is_err());
}
