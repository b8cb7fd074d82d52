//! One row of values and one row of nulls, for every type and format.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal32Array, Decimal128Array, DictionaryArray,
    FixedSizeBinaryArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array,
    Int64Array, LargeBinaryArray, RecordBatch, StringArray, StringViewArray, StructArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, UInt16Array,
    UInt32Array,
};
use arrow::datatypes::{DataType, Float64Type, Int32Type, Int64Type, Schema, TimeUnit};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::LogicalType;
use tidemark_types::double_array::DoubleArrayBuilder;
use tidemark_types::{Field, SqlType};
use tidemark_wire::{Codec, ParquetOptions, RowEncoder, RowFormat, write_arena};

const MICROS: i64 = 1_704_164_645_678_901;
const UUID: [u8; 16] = *b"\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff";

fn sized(size: i32, value: &[u8]) -> ArrayRef {
    let values = [Some(value), None];
    Arc::new(
        FixedSizeBinaryArray::try_from_sparse_iter_with_size(values.into_iter(), size).unwrap(),
    )
}

type NamedColumn = (&'static str, SqlType, ArrayRef);

fn micros(value: i64) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from(vec![Some(value), None]))
}

fn numbers_and_timestamps() -> Vec<NamedColumn> {
    vec![
        ("boolean", SqlType::Boolean, Arc::new(BooleanArray::from(vec![true, false]))),
        ("byte", SqlType::Byte, Arc::new(Int8Array::from(vec![-1, 0]))),
        ("short", SqlType::Short, Arc::new(Int16Array::from(vec![2, 0]))),
        ("char", SqlType::Char, Arc::new(UInt16Array::from(vec![Some(99), None]))),
        ("int", SqlType::Int, Arc::new(Int32Array::from(vec![Some(3), None]))),
        ("long", SqlType::Long, Arc::new(Int64Array::from(vec![Some(4), None]))),
        ("float", SqlType::Float, Arc::new(Float32Array::from(vec![Some(1.5), None]))),
        ("double", SqlType::Double, Arc::new(Float64Array::from(vec![Some(1e10), None]))),
        (
            "date",
            SqlType::Date,
            Arc::new(TimestampMillisecondArray::from(vec![Some(MICROS / 1_000), None])),
        ),
        ("timestamp", SqlType::Timestamp, micros(MICROS)),
        (
            "timestamp_ns",
            SqlType::TimestampNs,
            Arc::new(TimestampNanosecondArray::from(vec![Some(MICROS * 1_000 + 234), None])),
        ),
    ]
}

fn strings_and_others() -> Vec<NamedColumn> {
    let mut long256 = [0_u8; 32];
    long256[31] = 0x12;
    let mut doubles = DoubleArrayBuilder::new(1);
    doubles.push(&[3], [1.0, f64::NAN, 3.5]).unwrap();
    doubles.push_null();
    let symbols = DictionaryArray::<Int32Type>::try_new(
        Int32Array::from(vec![Some(1), None]),
        Arc::new(StringArray::from(vec!["unused", "sy\"m"])),
    );
    let interval_type = SqlType::Interval.arrow_type();
    let DataType::Struct(ends) = &interval_type else { panic!("INTERVAL is a struct") };
    let interval = StructArray::new(
        ends.clone(),
        vec![micros(0), micros(86_400_000_000)],
        Some(vec![true, false].into()),
    );
    vec![
        ("symbol", SqlType::Symbol, Arc::new(symbols.unwrap())),
        ("string", SqlType::String, Arc::new(StringViewArray::from(vec![Some("a\nb\\"), None]))),
        ("varchar", SqlType::Varchar, Arc::new(StringViewArray::from(vec![Some(""), None]))),
        ("uuid", SqlType::Uuid, sized(16, &UUID)),
        ("long256", SqlType::Long256, sized(32, &long256)),
        ("ipv4", SqlType::Ipv4, Arc::new(UInt32Array::from(vec![Some(0x0102_0304), None]))),
        ("geohash", SqlType::Geohash(7), Arc::new(Int8Array::from(vec![Some(85), None]))),
        (
            "binary",
            SqlType::Binary,
            Arc::new(LargeBinaryArray::from(vec![Some(&b"\x01\x02"[..]), None])),
        ),
        (
            "decimal",
            SqlType::Decimal(9, 2),
            Arc::new(
                Decimal32Array::from(vec![Some(-1_234), None])
                    .with_precision_and_scale(9, 2)
                    .unwrap(),
            ),
        ),
        (
            "wide",
            SqlType::Decimal(38, 3),
            Arc::new(
                Decimal128Array::from(vec![Some(123_450_000_678), None])
                    .with_precision_and_scale(38, 3)
                    .unwrap(),
            ),
        ),
        ("doubles", SqlType::DoubleArray(1), doubles.finish().unwrap()),
        ("interval", SqlType::Interval, Arc::new(interval)),
        ("nothing", SqlType::Null, Arc::new(StringViewArray::from(vec![None::<&str>, None]))),
    ]
}

fn fields_and_batch() -> (Vec<Field>, RecordBatch) {
    let mut fields = Vec::new();
    let mut arrow_fields = Vec::new();
    let mut arrays = Vec::new();
    for (name, sql_type, array) in numbers_and_timestamps().into_iter().chain(strings_and_others())
    {
        fields.push(Field::new(name, sql_type));
        let nullable = sql_type.is_nullable();
        arrow_fields.push(arrow::datatypes::Field::new(name, array.data_type().clone(), nullable));
        arrays.push(array);
    }
    (fields, RecordBatch::try_new(Arc::new(Schema::new(arrow_fields)), arrays).unwrap())
}

fn encode(format: RowFormat) -> Vec<u8> {
    let (fields, batch) = fields_and_batch();
    let mut encoder = RowEncoder::new(&fields, None, format).unwrap();
    let mut out = Vec::new();
    encoder.encode(&batch, &mut out).unwrap();
    encoder.finish(&mut out).unwrap();
    out
}

fn encode_text(format: RowFormat) -> String {
    String::from_utf8(encode(format)).unwrap()
}

#[test]
fn json_rows_have_the_expected_format() {
    let text = encode_text(RowFormat::Json { quote_large_numbers: false, columns: None });
    let values = concat!(
        r#"[true,-1,2,"c",3,4,1.5,1.0E10,"2024-01-02T03:04:05.678Z","#,
        r#""2024-01-02T03:04:05.678901Z","2024-01-02T03:04:05.678901234Z","sy\"m","a\nb\\","","#,
        r#""00112233-4455-6677-8899-aabbccddeeff","0x12","1.2.3.4","1010101",[],"-12.34","#,
        r#""123450000.678",[1.0,null,3.5],"#,
        r#""('1970-01-01T00:00:00.000Z', '1970-01-02T00:00:00.000Z')",null]"#,
    );
    let nulls = concat!(
        r#"[false,0,0,"",null,null,null,null,null,null,null,null,null,null,null,"",null,null,[],"#,
        "null,null,null,null,null]"
    );
    assert_eq!(text, format!("{values},{nulls}"));
}

#[test]
fn json_writes_selected_columns_and_quotes_longs() {
    let format = RowFormat::Json { quote_large_numbers: true, columns: Some(vec![5, 4, 5]) };
    assert_eq!(encode_text(format), r#"["4",3,"4"],[null,null,null]"#);
    let (fields, _) = fields_and_batch();
    let format = RowFormat::Json { quote_large_numbers: false, columns: Some(vec![99]) };
    assert!(RowEncoder::new(&fields, None, format).is_err());
}

#[test]
fn json_separates_rows_across_batches_with_commas() {
    let fields = [Field::new("x", SqlType::Varchar)];
    let format = RowFormat::Json { quote_large_numbers: false, columns: None };
    let mut encoder = RowEncoder::new(&fields, None, format).unwrap();
    let mut out = Vec::new();
    for text in ["a\u{1}\t", "é/\u{7f}"] {
        let array: ArrayRef = Arc::new(StringViewArray::from(vec![text]));
        let batch = RecordBatch::try_from_iter([("x", array)]).unwrap();
        encoder.encode(&batch.slice(0, 0), &mut out).unwrap();
        encoder.encode(&batch, &mut out).unwrap();
    }
    assert_eq!(String::from_utf8(out).unwrap(), "[\"a\\u0001\\t\"],[\"é/\u{7f}\"]");
}

#[test]
fn parquet_writes_no_dictionary_for_unique_values() {
    const ROWS: i64 = 50_000;
    let names = [("ts", SqlType::Timestamp), ("once", SqlType::Double), ("often", SqlType::Double)];
    let fields = names.map(|(name, sql_type)| Field::new(name, sql_type));
    let times = TimestampMicrosecondArray::from_iter_values((0..ROWS).map(|row| row * 1_000));
    let once = Float64Array::from_iter_values((0..ROWS).map(|row| row as f64));
    let often = Float64Array::from_iter_values((0..ROWS).map(|row| (row % 100) as f64));
    let columns: [ArrayRef; 3] = [Arc::new(times), Arc::new(once), Arc::new(often)];
    let batch =
        RecordBatch::try_from_iter(["ts", "once", "often"].into_iter().zip(columns)).unwrap();
    let options = ParquetOptions { codec: Codec::Uncompressed, ..Default::default() };
    let mut encoder = RowEncoder::new(&fields, Some(0), RowFormat::Parquet(options)).unwrap();
    let mut out = Vec::new();
    encoder.encode(&batch, &mut out).unwrap();
    encoder.finish(&mut out).unwrap();
    let file = std::env::temp_dir().join(format!("tidemark-sizes-{}.parquet", std::process::id()));
    std::fs::write(&file, &out).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(&file).unwrap());
    std::fs::remove_file(&file).unwrap();
    let reader = reader.unwrap();
    let bytes_per_row =
        |column: usize| reader.metadata().row_group(0).column(column).compressed_size() / ROWS;
    assert!(bytes_per_row(0) < 1, "timestamps are stored as differences");
    assert!(bytes_per_row(1) <= 9, "values take 8 bytes without an index");
    assert!(bytes_per_row(2) < 2, "an index");
}

#[test]
fn csv_rows_have_the_expected_format() {
    let text = encode_text(RowFormat::Csv { delimiter: b',', header: true });
    let (header, rows) = text.split_once("\r\n").unwrap();
    assert!(header.starts_with(r#""boolean","byte","#));
    let values = concat!(
        r#"true,-1,2,c,3,4,1.5,1.0E10,"2024-01-02T03:04:05.678Z","#,
        r#""2024-01-02T03:04:05.678901Z","2024-01-02T03:04:05.678901234Z","sy""m","#,
        "\"a\nb\\\",\"\",",
        r#"00112233-4455-6677-8899-aabbccddeeff,0x12,1.2.3.4,"1010101",,"-12.34","#,
        r#""123450000.678","[1.0,null,3.5]","#,
        r#""('1970-01-01T00:00:00.000Z', '1970-01-02T00:00:00.000Z')","#,
    );
    let nulls = format!("false,0,0{}", ",".repeat(21));
    assert_eq!(rows, format!("{values}\r\n{nulls}\r\n"));
}

#[test]
fn csv_of_an_empty_result_contains_only_a_header() {
    let fields = [Field::new("say \"hi\"", SqlType::Int)];
    let mut out = Vec::new();
    let format = RowFormat::Csv { delimiter: b';', header: true };
    RowEncoder::new(&fields, None, format).unwrap().finish(&mut out).unwrap();
    assert_eq!(out, b"\"say \"\"hi\"\"\"\r\n");
}

/// Returns the fields of one `DataRow`, and the bytes after it.
fn data_row(bytes: &[u8]) -> (Vec<Option<Vec<u8>>>, &[u8]) {
    assert_eq!(bytes[0], b'D');
    let length = u32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize;
    let count = u16::from_be_bytes(bytes[5..7].try_into().unwrap());
    let mut rest = &bytes[7..];
    let fields = (0..count)
        .map(|_| {
            let size = i32::from_be_bytes(rest[..4].try_into().unwrap());
            rest = &rest[4..];
            let size = usize::try_from(size).ok()?;
            let (field, tail) = rest.split_at(size);
            rest = tail;
            Some(field.to_vec())
        })
        .collect();
    assert_eq!(bytes.len() - rest.len(), length + 1);
    (fields, rest)
}

#[test]
fn pg_text_cells_have_the_expected_text() {
    let bytes = encode(RowFormat::Pg { format_codes: vec![], nanoseconds: true });
    let (values, rest) = data_row(&bytes);
    let texts: Vec<_> = values
        .iter()
        .map(|field| String::from_utf8_lossy(field.as_deref().unwrap_or(b"-")).into_owned())
        .collect();
    assert_eq!(
        texts,
        [
            "t",
            "-1",
            "2",
            "c",
            "3",
            "4",
            "1.5",
            "1.0E10",
            "2024-01-02 03:04:05.678",
            "2024-01-02 03:04:05.678901",
            "2024-01-02 03:04:05.678901234",
            "sy\"m",
            "a\nb\\",
            "",
            "00112233-4455-6677-8899-aabbccddeeff",
            "0x12",
            "1.2.3.4",
            "1010101",
            "\u{1}\u{2}",
            "-12.34",
            "123450000.678",
            "{1.0,NULL,3.5}",
            "('1970-01-01T00:00:00.000Z', '1970-01-02T00:00:00.000Z')",
            "-",
        ]
    );
    let (nulls, rest) = data_row(rest);
    assert_eq!(nulls[..3], [Some(b"f".to_vec()), Some(b"0".to_vec()), Some(b"0".to_vec())]);
    assert!(nulls[3..].iter().all(Option::is_none));
    assert!(rest.is_empty());
}

#[test]
fn pg_binary_cells_have_the_expected_bytes() {
    let bytes = encode(RowFormat::Pg { format_codes: vec![1], nanoseconds: true });
    let (values, rest) = data_row(&bytes);
    let field = |index: usize| values[index].as_deref().unwrap();
    let since_2000 = (MICROS - 946_684_800_000_000).to_be_bytes();
    assert_eq!(field(0), [1]);
    assert_eq!(field(1), (-1_i16).to_be_bytes());
    assert_eq!(field(2), 2_i16.to_be_bytes());
    assert_eq!(field(3), b"c");
    assert_eq!(field(4), 3_i32.to_be_bytes());
    assert_eq!(field(5), 4_i64.to_be_bytes());
    assert_eq!(field(6), 1.5_f32.to_be_bytes());
    assert_eq!(field(7), 1e10_f64.to_be_bytes());
    assert_eq!(field(8), (MICROS / 1_000 * 1_000 - 946_684_800_000_000).to_be_bytes());
    assert_eq!(field(9), since_2000);
    assert_eq!(field(10), since_2000);
    assert_eq!(field(14), UUID);
    assert_eq!(field(16), b"1.2.3.4");
    assert_eq!(field(18), [1, 2]);
    // -12.34: two digit groups from weight 0, negative, two decimals.
    assert_eq!(field(19), [0, 2, 0, 0, 0x40, 0, 0, 2, 0, 12, 0x0d, 0x48]);
    // 1 | 2345 | 0000 . 6780
    assert_eq!(field(20), [0, 4, 0, 2, 0, 0, 0, 3, 0, 1, 0x09, 0x29, 0, 0, 0x1a, 0x7c]);
    assert_eq!(field(21)[..20], [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 2, 0xbd, 0, 0, 0, 3, 0, 0, 0, 1]);
    assert_eq!(field(21).len(), 20 + 12 + 4 + 12);
    let (nulls, _) = data_row(rest);
    assert!(nulls[3..].iter().all(Option::is_none));
}

#[test]
fn pg_format_codes_must_match_the_column_count() {
    let (fields, _) = fields_and_batch();
    for format_codes in [vec![0, 1], vec![2]] {
        assert!(
            RowEncoder::new(&fields, None, RowFormat::Pg { format_codes, nanoseconds: true })
                .is_err()
        );
    }
}

#[test]
fn parquet_files_round_trip_with_each_codec() {
    let (fields, batch) = fields_and_batch();
    for (codec, version) in [
        (Codec::Uncompressed, 1),
        (Codec::Snappy, 2),
        (Codec::Gzip, 1),
        (Codec::Lz4Hadoop, 2),
        (Codec::Lz4Raw, 2),
        (Codec::Zstd, 2),
        (Codec::Brotli, 1),
    ] {
        let options = ParquetOptions { codec, version, row_group_rows: 3, ..Default::default() };
        let mut encoder = RowEncoder::new(&fields, Some(9), RowFormat::Parquet(options)).unwrap();
        let mut file = Vec::new();
        for _ in 0..4 {
            encoder.encode(&batch, &mut file).unwrap();
        }
        encoder.finish(&mut file).unwrap();
        let path = std::env::temp_dir().join(format!("tidemark-wire-{codec:?}.parquet"));
        std::fs::write(&path, &file).unwrap();
        let reader =
            ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(&path).unwrap()).unwrap();
        let columns = reader.parquet_schema().columns();
        assert_eq!(columns[14].logical_type_ref(), Some(&LogicalType::Uuid));
        assert_eq!(reader.metadata().num_row_groups(), 3);
        let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 8);
        check_parquet_values(&batches[0]);
        std::fs::remove_file(&path).unwrap();
    }
}

fn check_parquet_values(read: &RecordBatch) {
    let text = |name: &str| {
        let column = arrow::compute::cast(read.column_by_name(name).unwrap(), &DataType::Utf8);
        let column = column.unwrap();
        assert!(column.is_null(1), "{name}");
        column.as_string::<i32>().value(0).to_owned()
    };
    assert_eq!(text("char"), "c");
    assert_eq!(text("symbol"), "sy\"m");
    assert_eq!(text("string"), "a\nb\\");
    assert_eq!(text("varchar"), "");
    assert_eq!(text("ipv4"), "1.2.3.4");
    assert_eq!(text("geohash"), "1010101");
    assert_eq!(text("decimal"), "-12.34");
    assert_eq!(text("wide"), "123450000.678");
    assert_eq!(text("double"), "10000000000.0");
    for (name, unit, value) in [
        ("date", TimeUnit::Millisecond, MICROS / 1_000),
        ("timestamp", TimeUnit::Microsecond, MICROS),
        ("timestamp_ns", TimeUnit::Nanosecond, MICROS * 1_000 + 234),
    ] {
        let column = read.column_by_name(name).unwrap();
        assert_eq!(column.data_type(), &DataType::Timestamp(unit, Some("UTC".into())));
        let values = arrow::compute::cast(column, &DataType::Int64).unwrap();
        let values = values.as_primitive::<Int64Type>();
        assert_eq!((values.value(0), values.is_null(1)), (value, true), "{name}");
    }
    assert_eq!(read.column_by_name("uuid").unwrap().as_fixed_size_binary().value(0), UUID);
    let doubles = read.column_by_name("doubles").unwrap().as_list::<i32>().value(0);
    assert_eq!(
        doubles.as_primitive::<Float64Type>().iter().collect::<Vec<_>>(),
        [Some(1.0), None, Some(3.5)]
    );
    assert!(read.column_by_name("nothing").unwrap().is_null(0));
}

/// `test/wire/arena.test.ts` reads the same file. `UPDATE_FIXTURES=1` rewrites it.
#[test]
fn the_arena_matches_the_fixture_that_typescript_reads() {
    let arena = encode(RowFormat::Arrow);
    // A relative path, because clones share compiled binaries. Cargo runs tests in the crate
    // directory.
    let path = "../../test/wire/every-type.arena";
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        std::fs::write(path, &arena).unwrap();
    }
    assert_eq!(std::fs::read(path).unwrap(), arena);
}

#[test]
fn the_arena_of_a_slice_contains_only_its_rows() {
    let (_, batch) = fields_and_batch();
    let whole = write_arena(&batch).unwrap();
    let slice = write_arena(&batch.slice(1, 1)).unwrap();
    assert_eq!(whole.len() % 64, 0);
    assert!(slice.len() < whole.len());
    assert_eq!(u32::from_le_bytes(slice[12..16].try_into().unwrap()), 1);
}

#[test]
fn an_array_of_an_undeclared_type_is_an_internal_error() {
    let fields = [Field::new("x", SqlType::Long)];
    let array: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let batch = RecordBatch::try_from_iter([("x", array)]).unwrap();
    let format = RowFormat::Csv { delimiter: b',', header: false };
    let error = RowEncoder::new(&fields, None, format)
        .unwrap()
        .encode(&batch, &mut Vec::new())
        .unwrap_err();
    assert_eq!(error.reason(), "column \"x\" has type LONG but its array has type Int32");
}

#[test]
fn nulls_from_joins_become_false_or_zero_in_non_nullable_columns() {
    let arrays: [(&str, SqlType, ArrayRef); 3] = [
        ("b", SqlType::Boolean, Arc::new(BooleanArray::from(vec![None, Some(true)]))),
        ("y", SqlType::Byte, Arc::new(Int8Array::from(vec![None, Some(1)]))),
        ("s", SqlType::Short, Arc::new(Int16Array::from(vec![None, Some(2)]))),
    ];
    let fields = arrays.clone().map(|(name, sql_type, _)| Field::new(name, sql_type));
    let columns = arrays.map(|(name, _, array)| (name, array));
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let encode = |format| {
        let mut out = Vec::new();
        let mut encoder = RowEncoder::new(&fields, None, format).unwrap();
        encoder.encode(&batch, &mut out).unwrap();
        encoder.finish(&mut out).unwrap();
        out
    };
    let json = encode(RowFormat::Json { quote_large_numbers: false, columns: None });
    assert_eq!(json, b"[false,0,0],[true,1,2]");
    assert!(encode(RowFormat::Parquet(ParquetOptions::default())).ends_with(b"PAR1"));
}
