use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use rand::{Rng, SeedableRng};
use tidemark_border::CopyHeader;
use tidemark_types::{ErrorCode, SqlType};

use super::*;
use crate::parameters::BinaryKind;

fn column(name: &str) -> CopyColumn {
    CopyColumn {
        name: name.into(),
        sql_type: SqlType::Varchar,
        oid: 1043,
        force_not_null: false,
        force_null: false,
    }
}

fn text() -> CopySpec {
    let marks = LineMarks { delimiter: b'\t', null: b"\\N".to_vec() };
    let columns = vec![column("a"), column("b")];
    CopySpec { format: CopyFormat::Text(marks), header: CopyHeader::None, columns }
}

fn csv() -> CopySpec {
    let marks = LineMarks { delimiter: b',', null: Vec::new() };
    CopySpec { format: CopyFormat::Csv { marks, quote: b'"', escape: b'"' }, ..text() }
}

type Row = Vec<Option<String>>;

/// A failure's line and message.
type Failure = Option<(Option<u64>, String)>;

/// Returns the rows with their line numbers, and the failure that ended reading, if any.
fn read(spec: &CopySpec, chunks: &[&[u8]]) -> (Vec<(u64, Row)>, Failure) {
    let mut rows = Vec::new();
    let mut sink = |batch: CopyBatch| {
        for (row, line) in batch.lines.iter().enumerate() {
            let cell = |(_, cells): &(SqlType, ArrayRef)| {
                let cells = cells.as_string_view();
                (!arrow_array::Array::is_null(cells, row)).then(|| cells.value(row).to_owned())
            };
            rows.push((*line, batch.columns.iter().map(cell).collect()));
        }
        Ok(())
    };
    let mut reader = CopyReader::new(spec.clone());
    let fed = chunks.iter().try_for_each(|chunk| reader.feed(chunk, &mut sink));
    let ended = fed.and_then(|()| reader.finish(&mut sink));
    (rows, ended.err().map(|failure| (failure.line, failure.error.message)))
}

fn shown(rows: &[(u64, Row)]) -> Vec<String> {
    let cell = |cell: &Option<String>| cell.clone().unwrap_or_else(|| "~".into());
    let row = |(line, row): &(u64, Row)| {
        format!("{line}:{}", row.iter().map(cell).collect::<Vec<_>>().join("|"))
    };
    rows.iter().map(row).collect()
}

#[test]
fn text_format_escape_sequences_are_decoded() {
    for (data, expected) in [
        ("a\tb\r\n\\N\t\n\\.\nnever\n", &["1:a|b", "2:~|"][..]),
        ("\\t\\\\\\N\t\\x41\\101\\q\\\nx\nc\td", &["1:\t\\N|AAq\nx", "3:c|d"]),
        ("\\xc3\\251\u{e9}\t\\\\\r\n", &["1:\u{e9}\u{e9}|\\"]),
        ("a\t\\\r\n", &["1:a|\r"]),
        ("a\tb\r", &["1:a|b"]),
        ("a\tb\\", &["1:a|b\\"]),
        ("\u{feff}a\tb\n", &["1:a|b"]),
        ("\\x\t\\X4g\n", &["1:x|\u{4}g"]),
        ("\\.\ta\n\\.", &["1:.|a"]),
        ("", &[]),
    ] {
        let (rows, failure) = read(&text(), &[data.as_bytes()]);
        assert_eq!((shown(&rows), failure), (expected.iter().map(|s| (*s).into()).collect(), None));
    }
}

#[test]
fn quoted_values_are_parsed() {
    let mut spec = csv();
    let data = "a,\"b \"\"c\"\"\r\nd\"\r\n,\"\"\n\"x\r\",c\"d\"e\"f\"\r\n\\.\nno\n";
    let (rows, failure) = read(&spec, &[data.as_bytes()]);
    assert_eq!(shown(&rows), ["1:a|b \"c\"\r\nd", "3:~|", "4:x\r|cdef"]);
    assert_eq!(failure, None);
    spec.columns[0].force_not_null = true;
    spec.columns[1].force_null = true;
    assert_eq!(shown(&read(&spec, &[b",\"\"\n"]).0), ["1:|~"]);
    if let CopyFormat::Csv { escape, .. } = &mut spec.format {
        *escape = b'\\';
    }
    assert_eq!(shown(&read(&spec, &[b"\"a\\\"\\\\\\b\",\"\"c"]).0), ["1:a\"\\\\b|c"]);
}

#[test]
fn rows_before_an_error_are_returned_and_the_error_has_a_line_number() {
    for (spec, data, line, message) in [
        (text(), &b"a\tb\na\n"[..], 2, "missing data for column \"b\""),
        (text(), b"a\tb\\\n\na\tb\tc", 3, "extra data after last expected column"),
        (text(), b"a\tb\n\xff\tb\n", 2, "invalid byte sequence for encoding \"UTF8\""),
        (text(), b"a\tb\n\\xff\tb\n", 2, "invalid byte sequence for encoding \"UTF8\""),
        (text(), b"a\tb\na\t\0\n", 2, "invalid byte sequence for encoding \"UTF8\": 0x00"),
        (text(), b"a\tb\na\t\\0\n", 2, "invalid byte sequence for encoding \"UTF8\": 0x00"),
        (csv(), b"a,b\n\"a,b\n", 2, "unterminated CSV quoted field"),
        (csv(), b"\"\n\n\",b\n\"a\"\n", 4, "missing data for column \"b\""),
    ] {
        let (rows, failure) = read(&spec, &[data]);
        assert_eq!(failure, Some((Some(line), message.into())), "{data:?}");
        assert_eq!(rows.len(), 1);
    }
    let mut spec = text();
    spec.header = CopyHeader::Match;
    assert_eq!(shown(&read(&spec, &[b"A\tb\n1\t2\n"]).0), ["2:1|2"]);
    let (_, failure) = read(&spec, &[b"a\tx\n"]);
    let message = "column 2 of the header: got \"x\", expected \"b\"";
    assert_eq!(failure, Some((Some(1), message.into())));
}

#[test]
fn chunk_boundaries_do_not_change_the_result() {
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(7);
    let chunks: &[&[u8]] = &[
        b"a", b"\\", b"\t", b"\n", b"\r", b",", b"\"", b"\xc3", b"\xa9", b"N", b".", b"x4", b"\0",
    ];
    for spec in [text(), csv()] {
        for _ in 0..4_000 {
            let count = random.random_range(0..24);
            let data: Vec<u8> = (0..count)
                .flat_map(|_| chunks[random.random_range(0..chunks.len())])
                .copied()
                .collect();
            let whole = read(&spec, &[&data]);
            let bytes: Vec<&[u8]> = data.chunks(1).collect();
            assert_eq!(read(&spec, &bytes), whole, "{:?}", String::from_utf8_lossy(&data));
            let (head, tail) = data.split_at(random.random_range(0..=data.len()));
            assert_eq!(read(&spec, &[head, tail]), whole, "{:?}", String::from_utf8_lossy(&data));
        }
    }
}

#[test]
fn a_long_value_is_not_rescanned_for_every_chunk() {
    let data = [&b"\""[..], &b"\n".repeat(4 << 20), b"\",b\n"].concat();
    let chunks: Vec<&[u8]> = data.chunks(8 << 10).collect();
    let began = std::time::Instant::now();
    let (rows, failure) = read(&csv(), &chunks);
    assert_eq!((rows.len(), failure), (1, None));
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

#[test]
fn a_row_that_never_ends_is_rejected() {
    let chunk = vec![b'x'; 1 << 20];
    let mut reader = CopyReader::new(text());
    let mut sink = |_| Ok(());
    let failure = (0..66).find_map(|_| reader.feed(&chunk, &mut sink).err()).unwrap();
    assert_eq!((failure.line, failure.error.code), (Some(1), ErrorCode::ResourceLimit));
}

#[test]
fn binary_values_are_decoded_as_the_declared_type() {
    for (oid, bytes) in [
        (16, &[1][..]),
        (17, &[0, 1]),
        (20, &[0; 8]),
        (21, &[0; 2]),
        (23, &[0; 4]),
        (25, b"a"),
        (26, &[0; 4]),
        (700, &[0; 4]),
        (701, &[0; 8]),
        (1043, b"a"),
        (1082, &[0; 4]),
        (1114, &[0; 8]),
        (1184, &[0; 8]),
        (2950, &[0; 16]),
    ] {
        let column = CopyColumn { oid, ..column("a") };
        let mut cells = Cells::new(&column, true);
        cells.push(&crate::parameters::binary_value(bytes, oid, 0).unwrap()).unwrap();
        let (sql_type, cells) = cells.finish(1).unwrap();
        assert_eq!((cells.len(), cells.null_count()), (1, 0), "{oid}");
        assert_eq!(cells.data_type(), &sql_type.arrow_type(), "{oid}");
        assert_eq!(BinaryKind::of(oid) == BinaryKind::Text, sql_type == SqlType::Varchar);
    }
}
