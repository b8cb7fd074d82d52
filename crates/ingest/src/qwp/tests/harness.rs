//! Encodes messages as clients do.

use crate::qwp::{QwpFailure, QwpOptions, QwpReader, QwpStatus};
use crate::shown_rows::{Tables, shown};

pub(super) const DEFER: u8 = 0x01;
pub(super) const GORILLA: u8 = 0x04;
pub(super) const DELTA: u8 = 0x08;

pub(super) fn options() -> QwpOptions {
    QwpOptions {
        create_tables: true,
        create_columns: true,
        max_columns: 100,
        max_rows: 1_000,
        max_tables: 4,
        max_dictionary_bytes: 1 << 10,
        max_pending_bytes: 1 << 20,
    }
}

pub(super) fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

pub(super) fn text(text: &str) -> Vec<u8> {
    [varint(text.len() as u64), text.as_bytes().to_vec()].concat()
}

/// Adds the message header.
pub(super) fn message(flags: u8, tables: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = b"QWP1\x01".to_vec();
    bytes.push(flags);
    bytes.extend(tables.to_le_bytes());
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// Encodes dictionary entries whose ids begin at `start`.
pub(super) fn delta(start: u64, entries: &[&str]) -> Vec<u8> {
    let mut bytes = [varint(start), varint(entries.len() as u64)].concat();
    for entry in entries {
        bytes.extend(text(entry));
    }
    bytes
}

/// Column name, column type, and the bytes starting at the null flag.
pub(super) type Column<'a> = (&'a str, u8, Vec<u8>);

pub(super) fn block(table: &str, rows: u64, columns: &[Column<'_>]) -> Vec<u8> {
    let mut bytes = [text(table), varint(rows), varint(columns.len() as u64)].concat();
    for (name, code, _) in columns {
        bytes.extend(text(name));
        bytes.push(*code);
    }
    for (_, _, data) in columns {
        bytes.extend(data);
    }
    bytes
}

/// Values of a column without nulls.
pub(super) fn all<const SIZE: usize>(values: impl IntoIterator<Item = [u8; SIZE]>) -> Vec<u8> {
    let values: Vec<u8> = values.into_iter().flatten().collect();
    [vec![0], values].concat()
}

/// Encodes the non-null values of a column whose null bitmap is one byte.
pub(super) fn some<const SIZE: usize>(
    nulls: u8,
    values: impl IntoIterator<Item = [u8; SIZE]>,
) -> Vec<u8> {
    let values: Vec<u8> = values.into_iter().flatten().collect();
    [vec![1, nulls], values].concat()
}

pub(super) fn longs(values: &[i64]) -> Vec<u8> {
    all(values.iter().map(|value| value.to_le_bytes()))
}

/// Builds a message with two rows of one table that has a designated timestamp.
pub(super) fn two_rows(columns: &[Column<'_>]) -> Vec<u8> {
    let mut columns = columns.to_vec();
    columns.push(("", 0x0a, longs(&[1_000, 2_000])));
    message(0, 1, &block("t", 2, &columns))
}

pub(super) type Outcome = Result<Vec<String>, (QwpStatus, String)>;

/// Reads one connection's messages and returns the outcome.
pub(super) fn read_all(messages: &[Vec<u8>], mut tables: Tables, options: QwpOptions) -> Outcome {
    let mut reader = QwpReader::new(options);
    for message in messages {
        match reader.read(message, &mut tables) {
            Ok(_) => {}
            Err(QwpFailure::Refused(refusal)) => return Err((refusal.status, refusal.reason)),
            Err(QwpFailure::Failed(error)) => panic!("{error}"),
        }
    }
    Ok(shown(&reader.take_tables()))
}

pub(super) fn read(message: Vec<u8>, tables: Tables) -> Outcome {
    read_all(&[message], tables, options())
}

/// Returns the cells of column `x` in a new or existing table.
pub(super) fn cells(code: u8, data: Vec<u8>, tables: Tables) -> Result<String, String> {
    let shown = read(two_rows(&[("x", code, data)]), tables).map_err(|(_, reason)| reason)?;
    let column = shown.iter().find(|column| column.starts_with("t.x:"));
    Ok(column.map_or_else(|| "none".to_owned(), |column| column["t.x:".len()..].to_owned()))
}
