//! Determines the final column types. A type guessed from a file's first lines is widened if later
//! values do not fit it, as in an import. A column that occurs in several files gets a type that
//! fits all its values.

use std::collections::HashMap;
use std::io::Read;

use tidemark_border::CsvAtomicity;
use tidemark_ingest::{CsvReader, CsvReport};
use tidemark_types::bounded::check_stop;
use tidemark_types::{EngineError, EngineResult, Field, SqlType, identifier};

use super::file::{Text, TextColumn, changed};
use super::scan::{CHUNK_BYTES, named};

/// Maximum number of bytes examined across all files, unless the statement requests that all data
/// be examined.
const MAX_SAMPLE_BYTES: u64 = 64 << 20;
/// Minimum number of bytes examined in each file.
const MIN_BYTES: u64 = 64 << 10;

/// Widens the column types to fit the beginning of each file, or all data if `reads_all`.
pub(super) fn settle(texts: &mut [Text], reads_all: bool) -> EngineResult<()> {
    let mut left = MAX_SAMPLE_BYTES;
    let mut looks: Vec<u64> = Vec::with_capacity(texts.len());
    for text in texts.iter() {
        let bytes = if reads_all { u64::MAX } else { left.max(MIN_BYTES) };
        left = left.saturating_sub(text.version.bytes());
        looks.push(bytes);
    }
    let mut unsettled: Vec<usize> = (0..texts.len()).collect();
    // Terminates because types only become wider.
    while !unsettled.is_empty() {
        for at in unsettled {
            settle_one(&mut texts[at], looks[at])?;
        }
        unsettled = unify(texts);
    }
    Ok(())
}

/// Examines a file until its types fit. Several passes may be needed, because a wider type may
/// reject a format that the narrower type accepted.
fn settle_one(text: &mut Text, bytes: u64) -> EngineResult<()> {
    loop {
        let widened = sample(text, bytes)?.widened;
        let mut holds = true;
        for (column, widened) in text.columns.iter_mut().zip(widened) {
            if let Some(widened) = widened {
                widen(column, widened.sql_type);
                holds = false;
            }
        }
        if holds {
            return Ok(());
        }
    }
}

/// Reads the beginning of a file to determine which column types its values need.
fn sample(text: &Text, bytes: u64) -> EngineResult<CsvReport> {
    let target = text.columns.iter();
    let target = target.map(|TextColumn { name, sql_type, .. }| Field::new(name, *sql_type));
    let mut spec = text.spec(target.collect());
    // Unreadable values are ignored here, because the scan reports them.
    spec.atomicity = CsvAtomicity::SkipCol;
    let mut reader = CsvReader::new(spec)?;
    if !text.columns.iter().any(|column| column.guessed) {
        return Ok(reader.report().clone());
    }
    let unreadable = |error: &std::io::Error| EngineError::io(&text.name, error);
    let mut file = text.open()?.take(text.version.bytes().min(bytes));
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        check_stop()?;
        let length = file.read(&mut chunk).map_err(|error| unreadable(&error))?;
        if length == 0 {
            break;
        }
        reader.feed(&chunk[..length], &mut |_| Ok(())).map_err(|error| named(error, text))?;
    }
    if text.version.bytes() <= bytes {
        if file.limit() > 0 {
            return Err(changed(&text.name));
        }
        reader.finish(&mut |_| Ok(())).map_err(|error| named(error, text))?;
    }
    Ok(reader.report().clone())
}

/// Changes a column's type. Retains the format pattern if it also applies to the new type.
fn widen(column: &mut TextColumn, sql_type: SqlType) {
    let is_number =
        matches!(sql_type, SqlType::Int | SqlType::Long | SqlType::Double | SqlType::Decimal(..));
    column.pattern.take_if(|_| !is_number);
    column.guessed = sql_type != SqlType::Varchar;
    column.sql_type = sql_type;
}

/// Assigns the same type to columns with the same name; returns the files that must be examined
/// again.
fn unify(texts: &mut [Text]) -> Vec<usize> {
    let mut types: HashMap<String, SqlType> = HashMap::new();
    for column in texts.iter().flat_map(|text| &text.columns) {
        types
            .entry(identifier::fold(&column.name))
            .and_modify(|known| *known = common_type(*known, column.sql_type))
            .or_insert(column.sql_type);
    }
    let mut unsettled = Vec::new();
    for (at, text) in texts.iter_mut().enumerate() {
        let mut is_settled = true;
        for column in &mut text.columns {
            let common = types[&identifier::fold(&column.name)];
            if common != column.sql_type {
                let is_time = is_time(column.sql_type) && is_time(common);
                let pattern = column.pattern.take().filter(|_| is_time);
                widen(column, common);
                column.pattern = pattern;
                is_settled &= common == SqlType::Varchar;
            }
        }
        if !is_settled {
            unsettled.push(at);
        }
    }
    unsettled
}

fn is_time(sql_type: SqlType) -> bool {
    matches!(sql_type, SqlType::Date | SqlType::Timestamp | SqlType::TimestampNs)
}

/// Returns a type that can parse all values of both types.
fn common_type(a: SqlType, b: SqlType) -> SqlType {
    let orders: [&[SqlType]; 3] = [
        &[SqlType::Int, SqlType::Long, SqlType::Double],
        &[SqlType::Int, SqlType::Long, SqlType::Decimal(38, 0), SqlType::Decimal(76, 0)],
        &[SqlType::Date, SqlType::Timestamp, SqlType::TimestampNs],
    ];
    if a == b {
        return a;
    }
    let order = orders.iter().find(|order| order.contains(&a) && order.contains(&b));
    let wider = order.and_then(|order| order.iter().rfind(|one| **one == a || **one == b));
    wider.copied().unwrap_or(SqlType::Varchar)
}
