//! Target tables for protocol tests, and functions that format rows for comparison.

use std::collections::HashMap;

use arrow::util::display::{ArrayFormatter, FormatOptions};
use tidemark_types::{EngineResult, SqlType};

use crate::rows::{TableRows, TargetColumn, TargetTable, Targets};

pub(crate) struct Tables(pub(crate) HashMap<String, TargetTable>);

impl Targets for Tables {
    fn table(&mut self, name: &str) -> EngineResult<Option<TargetTable>> {
        Ok(self.0.get(&name.to_lowercase()).cloned())
    }
}

pub(crate) fn nothing() -> Tables {
    Tables(HashMap::new())
}

/// Returns a table with a timestamp and one other column.
pub(crate) fn one_column(sql_type: SqlType) -> Tables {
    let columns =
        vec![TargetColumn::new("timestamp", SqlType::Timestamp), TargetColumn::new("x", sql_type)];
    let table = TargetTable { name: "t".to_owned(), columns, timestamp: Some(0) };
    Tables(HashMap::from([("t".to_owned(), table)]))
}

/// Formats every cell of every table as `table.column:TYPE=[cells]`.
pub(crate) fn shown(tables: &[TableRows]) -> Vec<String> {
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
