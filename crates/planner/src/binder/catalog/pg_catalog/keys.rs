//! DEDUP UPSERT KEYS as constraints of `information_schema`: rows with the same keys replace each
//! other, so the keys are unique; where none of them may be null they are a primary key.

use super::cell::{Cell, Row};
use super::object::{DATABASE, Object};

/// The key of a table.
struct Key<'a> {
    table: &'a Object,
    name: String,
    is_primary: bool,
    columns: Vec<&'a str>,
}

/// The keys of all tables.
fn keys(objects: &[Object]) -> Vec<Key<'_>> {
    let keyed = objects.iter().filter(|object| !object.keys.is_empty());
    keyed
        .map(|table| {
            let columns = table.keys.iter().map(|&index| &table.columns[index]);
            let is_primary = columns.clone().enumerate().all(|(place, column)| {
                column.not_null || table.timestamp == Some(table.keys[place])
            });
            let suffix = if is_primary { "pkey" } else { "key" };
            Key {
                table,
                name: format!("{}_{suffix}", table.name),
                is_primary,
                columns: columns.map(|column| column.name.as_str()).collect(),
            }
        })
        .collect()
}

impl Key<'_> {
    fn word(&self) -> &'static str {
        if self.is_primary { "PRIMARY KEY" } else { "UNIQUE" }
    }

    fn declared(&self) -> Row {
        row!(
            constraint_catalog: DATABASE, constraint_schema: "public",
            constraint_name: self.name.clone(), table_catalog: DATABASE,
            table_schema: "public", table_name: self.table.name.clone(),
            constraint_type: self.word(), is_deferrable: "NO", initially_deferred: "NO",
            enforced: "YES", nulls_distinct: "NO",
        )
    }

    fn used(&self) -> Vec<Row> {
        let columns = self.columns.iter().enumerate();
        columns
            .map(|(index, column)| {
                row!(
                    constraint_catalog: DATABASE, constraint_schema: "public",
                    constraint_name: self.name.clone(), table_catalog: DATABASE,
                    table_schema: "public", table_name: self.table.name.clone(),
                    column_name: (*column).to_owned(), ordinal_position: index as i32 + 1,
                )
            })
            .collect()
    }
}

/// The rows of a table of the catalog about keys; `None` for every other.
pub(crate) fn key_rows(table: &str, objects: &[Object]) -> Option<Vec<Row>> {
    let row: fn(&Key<'_>) -> Vec<Row> = match table {
        "table_constraints" => |key| vec![key.declared()],
        "key_column_usage" | "constraint_column_usage" => |key| key.used(),
        _ => return None,
    };
    Some(keys(objects).iter().flat_map(row).collect())
}
