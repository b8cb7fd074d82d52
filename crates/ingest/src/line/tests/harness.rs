//! Reads messages and formats their results.

use tidemark_types::SqlType;

use crate::line::{LineFailure, LineOptions, LineReader, Refusal};
use crate::rows::TableRows;
pub(super) use crate::shown_rows::{Tables, nothing, one_column, shown};
use tidemark_border::LinePrecision;

pub(super) fn options() -> LineOptions {
    LineOptions {
        precision: LinePrecision::Nanos,
        create_tables: true,
        create_columns: true,
        max_columns: 100,
        max_line_bytes: 1 << 20,
        max_pending_bytes: 64 << 20,
        is_continued: false,
    }
}

pub(super) type Outcome = Result<Vec<TableRows>, Refusal>;

/// Reads one message whose bytes arrive in these chunks.
pub(super) fn read_chunks<'b>(
    chunks: impl IntoIterator<Item = &'b [u8]>,
    targets: &mut Tables,
    options: LineOptions,
) -> Outcome {
    let mut reader = LineReader::new(options);
    let all: Result<(), LineFailure> = chunks
        .into_iter()
        .try_for_each(|chunk| reader.feed(chunk, targets))
        .and_then(|()| reader.finish(targets));
    match all {
        Ok(()) => Ok(reader.into_tables().unwrap()),
        Err(LineFailure::Refused(refusal)) => Err(refusal),
        Err(LineFailure::Failed(error)) => panic!("{error}"),
    }
}

pub(super) fn read(bytes: &[u8], mut targets: Tables) -> Outcome {
    read_chunks([bytes], &mut targets, options())
}

/// Returns the error for a message that consists of one line.
pub(super) fn reason(bytes: &[u8], targets: Tables) -> String {
    let Refusal { line, reason, .. } = read(bytes, targets).unwrap_err();
    format!("{line}: {reason}")
}

/// Assigns a value to a column of this type and returns the resulting cell.
pub(super) fn cast(value: &str, sql_type: SqlType) -> Result<String, String> {
    let line = format!("t x={value} 1000\n");
    let tables = read(line.as_bytes(), one_column(sql_type)).map_err(|refusal| refusal.reason)?;
    let shown = shown(&tables);
    let cells = shown[1].split_once("=[").unwrap().1;
    Ok(cells.trim_end_matches(']').to_owned())
}
