//! Reads messages and shows what became of them.

use std::collections::HashMap;

use arrow::util::display::{ArrayFormatter, FormatOptions};
use tidemark_types::{EngineResult, SqlType};

use crate::line::{LineFailure, LineOptions, LineReader, Precision, Refusal};
use crate::rows::{TableRows, TargetColumn, TargetTable, Targets};

pub(super) struct Tables(pub(super) HashMap<String, TargetTable>);

impl Targets for Tables {
    fn table(&mut self, name: &str) -> EngineResult<Option<TargetTable>> {
        Ok(self.0.get(&name.to_lowercase()).cloned())
    }
}

pub(super) fn nothing() -> Tables {
    Tables(HashMap::new())
}

/// A table with a timestamp and one column.
pub(super) fn one_column(sql_type: SqlType) -> Tables {
    let columns =
        vec![TargetColumn::new("timestamp", SqlType::Timestamp), TargetColumn::new("x", sql_type)];
    let table = TargetTable { name: "t".to_owned(), columns, timestamp: Some(0) };
    Tables(HashMap::from([("t".to_owned(), table)]))
}

pub(super) fn options() -> LineOptions {
    LineOptions {
        precision: Precision::Nanos,
        create_tables: true,
        create_columns: true,
        most_columns: 100,
        most_line_bytes: 1 << 20,
        most_held_bytes: 64 << 20,
        goes_on: false,
    }
}

pub(super) type Outcome = Result<Vec<TableRows>, Refusal>;

/// Reads a message that comes in these pieces.
pub(super) fn read_pieces<'b>(
    pieces: impl IntoIterator<Item = &'b [u8]>,
    targets: &mut Tables,
    options: LineOptions,
) -> Outcome {
    let mut reader = LineReader::new(options);
    let all: Result<(), LineFailure> = pieces
        .into_iter()
        .try_for_each(|piece| reader.feed(piece, targets))
        .and_then(|()| reader.finish(targets));
    match all {
        Ok(()) => Ok(reader.into_tables().unwrap()),
        Err(LineFailure::Refused(refusal)) => Err(refusal),
        Err(LineFailure::Failed(error)) => panic!("{error}"),
    }
}

pub(super) fn read(bytes: &[u8], mut targets: Tables) -> Outcome {
    read_pieces([bytes], &mut targets, options())
}

/// Every cell of every table, as `table.column:TYPE=[cells]`.
pub(super) fn shown(tables: &[TableRows]) -> Vec<String> {
    let format = FormatOptions::new().with_null("-");
    let mut all = Vec::new();
    for TableRows { table, chunks, .. } in tables {
        for (index, column) in table.columns.iter().enumerate() {
            let mut cells = Vec::new();
            for chunk in chunks {
                let found = chunk.cells.iter().find(|cells| cells.column == index);
                let Some(found) = found else {
                    cells.extend((0..chunk.rows).map(|_| "-".to_owned()));
                    continue;
                };
                assert_eq!(found.array.data_type(), &column.sql_type.arrow_type());
                assert_eq!(found.array.len(), chunk.rows);
                let formatter = ArrayFormatter::try_new(&found.array, &format).unwrap();
                cells.extend((0..chunk.rows).map(|row| formatter.value(row).to_string()));
            }
            let (name, type_name) = (&column.name, column.sql_type.name());
            all.push(format!("{}.{name}:{type_name}=[{}]", table.name, cells.join("|")));
        }
    }
    all
}

/// What a line says that is one of a message, and why it is refused.
pub(super) fn reason(bytes: &[u8], targets: Tables) -> String {
    let Refusal { line, reason, .. } = read(bytes, targets).unwrap_err();
    format!("{line}: {reason}")
}

/// The only value of a column of this type.
pub(super) fn cast(value: &str, sql_type: SqlType) -> Result<String, String> {
    let line = format!("t x={value} 1000\n");
    let tables = read(line.as_bytes(), one_column(sql_type)).map_err(|refusal| refusal.reason)?;
    let shown = shown(&tables);
    let cells = shown[1].split_once("=[").unwrap().1;
    Ok(cells.trim_end_matches(']').to_owned())
}
