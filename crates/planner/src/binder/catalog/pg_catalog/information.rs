//! `information_schema.columns`.

use tidemark_storage::ColumnSchema;
use tidemark_types::SqlType;

use super::cell::{Cell, Row};
use super::object::{DATABASE, Object, shown_default};
use super::types;

/// Rows of `information_schema.columns`; `native` uses `QuestDB` type names instead of
/// `PostgreSQL`'s.
pub(super) fn information_columns(object: &Object, native: bool) -> Vec<Row> {
    let columns = object.columns.iter().enumerate();
    let row = |(index, column): (usize, &ColumnSchema)| {
        let of = types::of_column(column);
        let data_type = match column.sql_type {
            other if native => other.name(),
            _ if of.element != 0 => "ARRAY".to_owned(),
            _ => of.title.to_owned(),
        };
        let number = |value: Option<i32>| value.map_or(Cell::Null, Cell::from);
        let (precision, scale) = match column.sql_type {
            SqlType::Byte | SqlType::Short => (Some(16), Some(0)),
            SqlType::Int => (Some(32), Some(0)),
            SqlType::Long => (Some(64), Some(0)),
            SqlType::Float => (Some(24), None),
            SqlType::Double => (Some(53), None),
            SqlType::Decimal(precision, scale) => (Some(precision.into()), Some(scale.into())),
            _ => (None, None),
        };
        let decimal = matches!(column.sql_type, SqlType::Decimal(..));
        let radix = precision.map(|_| if decimal { 10 } else { 2 });
        let mut row = row!(
            table_catalog: DATABASE, table_schema: "public", table_name: object.name.clone(),
            column_name: column.name.clone(), ordinal_position: index as i32 + 1,
            is_nullable: if column.not_null || object.timestamp == Some(index) {
                "NO"
            } else {
                "YES"
            },
            data_type: data_type,
            udt_catalog: DATABASE, udt_schema: "pg_catalog", udt_name: of.name,
            is_identity: "NO", is_generated: "NEVER",
            is_updatable: if object.kind == "r" { "YES" } else { "NO" },
        );
        let length = (column.length > 0).then_some(column.length as i32);
        row.push(("character_maximum_length", number(length)));
        row.push(("numeric_precision", number(precision)));
        row.push(("numeric_precision_radix", number(radix)));
        row.push(("numeric_scale", number(scale)));
        let digits = column.precision.map_or(6, i32::from);
        row.push(("datetime_precision", number(column.sql_type.is_timestamp().then_some(digits))));
        if let Some(default) = shown_default(&object.name, column) {
            row.push(("column_default", Cell::from(default)));
        }
        row
    };
    columns.map(row).collect()
}
