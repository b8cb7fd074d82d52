//! Test cases for formats, types, casts and errors.

use std::fmt::Write as _;

use tidemark_types::SqlType;

use super::harness::{nothing, one_column, options, read, read_chunks, reason, shown};
use crate::rows::TargetColumn;

#[test]
fn column_types_of_a_new_table_are_inferred_from_its_values() {
    let line = b"t,s=a\\ b f=1.5,i=42i,l=0x12abi,d=1.50d,b=t,v=\"x\\\"y\\\\z\",m=1t,n=2n \
        1700000000000000000\n";
    let shown = shown(&read(line, nothing()).unwrap());
    assert_eq!(
        shown,
        [
            "t.s:SYMBOL=[a b]",
            "t.f:DOUBLE=[1.5]",
            "t.i:LONG=[42]",
            "t.l:LONG256=[00000000000000000000000000000000000000000000000000000000000012ab]",
            "t.d:DECIMAL(18,3)=[1.500]",
            "t.b:BOOLEAN=[true]",
            "t.v:VARCHAR=[x\"y\\z]",
            "t.m:TIMESTAMP=[1970-01-01T00:00:00.000001]",
            "t.n:TIMESTAMP_NS=[1970-01-01T00:00:00.000000002]",
            "t.timestamp:TIMESTAMP=[2023-11-14T22:13:20]",
        ]
    );
}

/// Splits bytes captured from clients at every position.
#[test]
fn binary_values_may_be_split_at_any_byte() {
    let mut message = b"t,s=a f==\x10\0\0\0\0\0\0\xf8\x3f,".to_vec();
    message.extend(b"a==\x0e\x0a\x02\x02\0\0\0\x02\0\0\0");
    for value in [1.5_f64, 2.5, 3.5, 4.5] {
        message.extend(value.to_le_bytes());
    }
    message.extend(b",e==\x0e\x0a\x01\0\0\0\0,n==\x0e\x21,d==\x17\x02\x02\x30\x39,");
    message.extend(b"g==\x17\x01\x02\xff\xf1,z==\x17\0\x01\0 1700000000000000t\n");
    message.extend(b"t,s=b f==\x10\0\0\0\0\0\0\xf8\x7f,q=\"a\\\nb\" 1700000000000001t");
    let whole = shown(&read(&message, nothing()).unwrap());
    assert_eq!(
        whole,
        [
            "t.s:SYMBOL=[a|b]",
            "t.f:DOUBLE=[1.5|-]",
            "t.a:DOUBLE[][]=[{shape: [2, 2], values: [1.5, 2.5, 3.5, 4.5]}|-]",
            "t.e:DOUBLE[]=[{shape: [0], values: []}|-]",
            "t.d:DECIMAL(18,3)=[123.450|-]",
            "t.g:DECIMAL(18,3)=[-1.500|-]",
            "t.z:DECIMAL(18,3)=[0.000|-]",
            "t.timestamp:TIMESTAMP=[2023-11-14T22:13:20|2023-11-14T22:13:20.000001]",
            "t.q:VARCHAR=[-|a\nb]",
        ]
    );
    for at in 0..=message.len() {
        let (head, tail) = message.split_at(at);
        let tables = read_chunks([head, tail], &mut nothing(), options()).unwrap();
        assert_eq!(shown(&tables), whole, "cut at {at}");
    }
    let bytes = message.chunks(1);
    assert_eq!(shown(&read_chunks(bytes, &mut nothing(), options()).unwrap()), whole);
}

#[test]
fn timestamps_are_read_in_every_unit() {
    use tidemark_border::LinePrecision::{Hours, Micros, Millis, Minutes, Nanos, Seconds};
    let time = |text: &str, precision| {
        let options = crate::line::LineOptions { precision, ..options() };
        let line = format!("t x=1i {text}\n");
        let tables = read_chunks([line.as_bytes()], &mut nothing(), options);
        tables.map(|tables| shown(&tables)[1].clone()).map_err(|refusal| refusal.reason)
    };
    for (text, precision, shown) in [
        ("3600000000001", Nanos, "TIMESTAMP=[1970-01-01T01:00:00]"),
        ("3600000001", Micros, "TIMESTAMP=[1970-01-01T01:00:00.000001]"),
        ("3600001", Millis, "TIMESTAMP=[1970-01-01T01:00:00.001]"),
        ("3601", Seconds, "TIMESTAMP=[1970-01-01T01:00:01]"),
        ("61", Minutes, "TIMESTAMP=[1970-01-01T01:01:00]"),
        ("25", Hours, "TIMESTAMP=[1970-01-02T01:00:00]"),
        ("1t", Hours, "TIMESTAMP=[1970-01-01T00:00:00.000001]"),
        ("1n", Hours, "TIMESTAMP_NS=[1970-01-01T00:00:00.000000001]"),
    ] {
        assert_eq!(time(text, precision).unwrap(), format!("t.timestamp:{shown}"), "{text}");
    }
    assert_eq!(
        time("9223372036854775807", Hours).unwrap_err(),
        "invalid timestamp: '9223372036854775807'"
    );
    assert_eq!(time("12x", Nanos).unwrap_err(), "invalid timestamp: '12x'");
    for early in ["-1", "-1t", "-1n"] {
        let refused = time(early, Seconds).unwrap_err();
        assert_eq!(refused, "designated timestamp before 1970-01-01 is not allowed", "{early}");
    }
}

#[test]
fn errors_contain_line_column_value_and_type() {
    let first = "t x=1i 1\n";
    for (line, expected) in [
        ("t x=1.5 2", "2: column 'x' of type LONG does not accept value '1.5'"),
        ("\n#c\nt x=1q", "4: column 'x': cannot parse value '1q'"),
        ("t x=", "2: column 'x': cannot parse value ''"),
        ("t x=1e400", "2: column 'x': cannot parse value '1e400'"),
        ("t x=99999999999999999999i", "2: column 'x': cannot parse value '99999999999999999999i'"),
        ("t", "2: the line has neither symbols nor fields"),
        ("t x", "2: expected an equals sign and a value after 'x'"),
        ("t 1000", "2: expected an equals sign and a value after '1000'"),
        (" x=1i", "2: the line has no table name"),
        ("t=u x=1i", "2: an equals sign in a table name must be escaped"),
        ("t,=a x=1i", "2: a column has no name"),
        ("t,a=b=c x=1i", "2: an equals sign in a symbol must be escaped"),
        ("t x=1i 5 6", "2: expected a line feed after the timestamp"),
        ("t y=\"abc", "2: a string has no closing quote"),
        ("t y=\"abc\"d", "2: expected a comma or a space after the value of 'y'"),
        ("t x-y=1i", "2: invalid column name: 'x-y'"),
        ("a?b x=1i", "2: invalid table name: 'a?b'"),
        ("pg_class x=1i", "2: invalid table name: 'pg_class'"),
        ("t,a=x\rb c=1i", "2: a carriage return must be escaped"),
        ("t y==\u{1}", "2: unknown binary value type 1"),
        ("t y==\u{10}123", "2: a binary value is truncated"),
        ("t y==\u{e}\u{5}", "2: unknown array element type 5"),
        ("t y==\u{e}\n\u{21}", "2: an array has 33 dimensions, expected 1 to 32"),
        ("t y==\u{17}\u{4d}\u{1}1", "2: a decimal is too large: scale 77, 1 bytes"),
        ("t y==\u{17}\u{1}\u{21}1", "2: a decimal is too large: scale 1, 33 bytes"),
    ] {
        let message = format!("{first}{line}");
        assert_eq!(reason(message.as_bytes(), nothing()), expected, "{line:?}");
    }
    let many = b"t y==\x0e\x0a\x02\xff\xff\xff\x7f\0\0\0\0";
    assert!(reason(many, nothing()).contains("an empty array has too many nested arrays"));
    let huge = b"t y==\x0e\x0a\x02\xff\xff\xff\x7f\xff\xff\xff\x7f";
    assert!(reason(huge, nothing()).contains("elements, expected at most"));
    assert_eq!(
        reason(b"t,s=\xff x=1i", nothing()),
        "1: column 's': symbol '\u{fffd}' is not valid UTF-8"
    );
    assert_eq!(
        reason(b"t x=\"\xff\"", nothing()),
        "1: column 'x': string '\u{fffd}' is not valid UTF-8"
    );
}

#[test]
fn names_up_to_the_length_limit_are_accepted() {
    for (length, is_fine) in [(127, true), (128, false)] {
        let name = "n".repeat(length);
        for line in [format!("{name} x=1i"), format!("t {name}=1i")] {
            assert_eq!(read(line.as_bytes(), nothing()).is_ok(), is_fine, "{length}");
        }
    }
    let emoji = read("😀,é=ü ñ=\"😀\" 1".as_bytes(), nothing()).unwrap();
    let shown = shown(&emoji);
    assert_eq!(shown[..2], ["😀.é:SYMBOL=[ü]", "😀.ñ:VARCHAR=[😀]"]);
    assert!(read(b"t a\0b=1i", nothing()).is_err());
}

#[test]
fn harmless_syntax_deviations_are_accepted() {
    let message = b"#comment\n\nT X=1i,x=2i,  \n";
    assert!(read(message, nothing()).is_err());
    for message in
        [&b"T X=1i,x=2i 1\r\n\r\nt x=2i  1000  \nt x=3i, "[..], b"T X=1i,x=7i 1\nt x=2i\nT x=3i"]
    {
        let message = message.strip_suffix(b", ").unwrap_or(message);
        let tables = read(message, nothing()).unwrap();
        assert_eq!(tables.len(), 1);
        assert_eq!(shown(&tables)[0], "T.X:LONG=[1|2|3]");
    }
    let retained = read(b"t,p=C:\\Users\\x v=\"a\\nb\" 1", nothing()).unwrap();
    assert_eq!(shown(&retained)[..2], ["t.p:SYMBOL=[C:\\Users\\x]", "t.v:VARCHAR=[a\\nb]"]);
    let raw = read(b"t v=\"two\nlines\" 1\nt v=\"x\" 2", nothing()).unwrap();
    assert_eq!(shown(&raw)[0], "t.v:VARCHAR=[two\nlines|x]");
    let symbols = read(b"t,a=b 1000\nt,a=\nt,a=c", nothing()).unwrap();
    assert_eq!(shown(&symbols)[0], "t.a:SYMBOL=[b||c]");
}

#[test]
fn a_timestamp_field_overrides_the_trailing_timestamp() {
    let tables = read(b"t x=1i,timestamp=5t 9", one_column(SqlType::Long)).unwrap();
    assert_eq!(shown(&tables)[0], "t.timestamp:TIMESTAMP=[1970-01-01T00:00:00.000005]");
    let new = read(b"t x=1i,timestamp=5n 9", nothing()).unwrap();
    assert_eq!(new[0].table.timestamp, Some(1));
    assert_eq!(shown(&new)[1], "t.timestamp:TIMESTAMP_NS=[1970-01-01T00:00:00.000000005]");
    let wrong = reason(b"t x=1i,timestamp=5i 9", nothing());
    assert_eq!(wrong, "1: column 'timestamp' is reserved for the designated timestamp, found LONG");
}

#[test]
fn disallowed_tables_columns_and_sizes_are_rejected() {
    let closed =
        crate::line::LineOptions { create_tables: false, create_columns: false, ..options() };
    let refused = |line: &[u8]| {
        read_chunks([line], &mut one_column(SqlType::Long), closed).unwrap_err().reason
    };
    assert_eq!(refused(b"u x=1i"), "table 'u' does not exist, and creating tables is disabled");
    assert_eq!(
        refused(b"t x=1i,y=1i"),
        "table 't' has no column 'y', and creating columns is disabled"
    );
    let narrow = crate::line::LineOptions { max_columns: 3, ..options() };
    let refused = read_chunks([&b"t x=1i,y=1i,z=2i"[..]], &mut one_column(SqlType::Long), narrow);
    assert_eq!(refused.unwrap_err().reason, "table 't' has too many columns [limit=3]");
    let short = crate::line::LineOptions { max_line_bytes: 100, ..options() };
    let long = format!("t x=\"{}", "a".repeat(200));
    let refused = read_chunks(long.as_bytes().chunks(7), &mut nothing(), short);
    assert_eq!(refused.unwrap_err().reason, "the line is longer than 100 bytes");
    let small = crate::line::LineOptions { max_pending_bytes: 1 << 20, ..options() };
    let many = "t x=1i 1\n".repeat(300_000);
    let refused = read_chunks([many.as_bytes()], &mut nothing(), small).unwrap_err();
    assert!(refused.is_too_large, "{refused:?}");
}

/// In a new table, one wide line adds its columns to every row.
#[test]
fn wide_rows_of_new_tables_are_rejected_before_they_are_written() {
    let mut message = String::from("t ");
    (0..90).for_each(|column| write!(message, "c{column}=1i,").unwrap());
    message.push('\n');
    message.push_str(&"t c0=1i 1\n".repeat(100_000));
    let small = crate::line::LineOptions { max_pending_bytes: 48 << 20, ..options() };
    let read = |targets: &mut super::harness::Tables| {
        read_chunks(message.as_bytes().chunks(65_536), targets, small)
    };
    let refused = read(&mut nothing()).unwrap_err();
    assert!(refused.is_too_large && refused.line < 100_000, "{refused:?}");
    let mut wide = one_column(SqlType::Long);
    let columns = &mut wide.0.get_mut("t").unwrap().columns;
    columns.extend((0..90).map(|at| TargetColumn::new(format!("c{at}"), SqlType::Long)));
    assert_eq!(read(&mut wide).unwrap()[0].rows(), 100_001);
}

#[test]
fn missing_values_get_defaults_or_are_rejected() {
    let mut tables = one_column(SqlType::Long);
    let columns = &mut tables.0.get_mut("t").unwrap().columns;
    columns[1].required = true;
    columns.push(TargetColumn { has_default: true, ..TargetColumn::new("d", SqlType::Boolean) });
    let rows =
        read_chunks([&b"t x=1i 1\nt x=2i,d=t 2\nt x=3i 3"[..]], &mut tables, options()).unwrap();
    let missing = rows[0].chunks[0].cells.iter().find(|cells| cells.column == 2).unwrap();
    let missing = missing.missing.as_ref().unwrap();
    assert_eq!(missing.iter().collect::<Vec<_>>(), [true, false, true]);
    let refused = read_chunks([&b"t x=1i 1\nt d=t 2"[..]], &mut tables, options()).unwrap_err();
    assert_eq!(refused.reason, "column 'x' is NOT NULL: expected a value");
}

/// Columns that are missing from some rows, across chunk boundaries.
#[test]
fn values_of_sparse_columns_are_assigned_to_the_correct_rows() {
    let mut message = String::new();
    for row in 0..200_000 {
        let name = row % 7;
        writeln!(message, "t,s=s{name} c{name}={row}i {row}000").unwrap();
    }
    let tables = read_chunks(message.as_bytes().chunks(65_536), &mut nothing(), options()).unwrap();
    assert!(tables[0].chunks.len() > 1);
    assert_eq!(tables[0].rows(), 200_000);
    let table = shown(&tables);
    for name in 0..7 {
        let column =
            table.iter().find(|column| column.starts_with(&format!("t.c{name}:"))).unwrap();
        let cells = column.split_once('[').unwrap().1.trim_end_matches(']').split('|');
        for (row, cell) in cells.enumerate() {
            let expected = if row % 7 == name { row.to_string() } else { "-".to_owned() };
            assert_eq!(cell, expected);
        }
    }
}

/// Splits a stream into messages at every position. If a message ends within a line, the next
/// message continues that line.
#[test]
fn a_continued_message_ends_after_its_last_complete_line() {
    let stream =
        b"t x=1i 1\n# none\nt x=2i,v=\"a\nb\" 2\r\nt d==\x10\n\n\n\n\n\n\n\n 3\nt x=4i 4\n";
    let goes_on = crate::line::LineOptions { is_continued: true, ..options() };
    let ended = |bytes: &[u8]| {
        let (mut reader, mut tables) = (crate::line::LineReader::new(goes_on), nothing());
        reader.feed(bytes, &mut tables).unwrap();
        reader.finish(&mut tables).unwrap();
        let (lines, whole) = reader.ended();
        let rows =
            reader.into_tables().unwrap().iter().map(crate::rows::TableRows::rows).sum::<u64>();
        (lines, whole, rows)
    };
    let ends = [(0, 0, 0), (1, 9, 1), (2, 16, 1), (3, 34, 2), (4, 51, 3), (5, 60, 4)];
    assert_eq!(stream.len(), 60);
    for at in 0..=stream.len() {
        let expected = ends.iter().rev().find(|(_, whole, _)| *whole <= at as u64).unwrap();
        assert_eq!(ended(&stream[..at]), *expected, "cut at {at}");
    }
    let bad = read_chunks([b"t x=1i 1\nt x=zz\nt x=2i".as_slice()], &mut nothing(), goes_on);
    let refusal = bad.unwrap_err();
    assert_eq!((refusal.line, refusal.at), (2, 9));
}
