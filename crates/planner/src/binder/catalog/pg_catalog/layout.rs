//! The catalog tables and their columns: the tables of `PostgreSQL` 15 and some additional ones.
//!
//! A line in `pg_catalog.txt` or `information_schema.txt` defines a table: its OID, its name and
//! its columns with their `PostgreSQL` types. `cell.rs` maps these to storage types. Tables that
//! are always empty describe features that this database lacks: triggers, comments, rules.

use std::sync::LazyLock;

/// A catalog table.
pub(crate) struct Layout {
    /// The table's OID, which is the same as in `PostgreSQL` if clients hard-code it.
    pub(crate) oid: i32,
    pub(crate) name: &'static str,
    columns: &'static str,
}

impl Layout {
    /// The columns' names and types.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.columns.split(' ').filter_map(|column| column.split_once(':'))
    }

    fn read(line: &'static str) -> Option<Self> {
        let (oid, rest) = line.split_once(' ')?;
        let (name, columns) = rest.split_once(' ')?;
        Some(Self { oid: oid.parse().ok()?, name, columns })
    }
}

/// Tables in the `pg_catalog` schema.
pub(crate) static PG_CATALOG: LazyLock<Vec<Layout>> =
    LazyLock::new(|| include_str!("pg_catalog.txt").lines().filter_map(Layout::read).collect());

/// Tables in the `information_schema` schema.
pub(crate) static INFORMATION_SCHEMA: LazyLock<Vec<Layout>> = LazyLock::new(|| {
    include_str!("information_schema.txt").lines().filter_map(Layout::read).collect()
});

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::binder::catalog::pg_catalog::types;

    #[test]
    fn every_catalog_line_defines_a_table_with_a_unique_oid() {
        let lines = include_str!("pg_catalog.txt").lines().count()
            + include_str!("information_schema.txt").lines().count();
        let all = || PG_CATALOG.iter().chain(INFORMATION_SCHEMA.iter());
        assert_eq!(all().map(|table| table.oid).collect::<HashSet<_>>().len(), lines);
        for table in all() {
            let written = table.columns.split(' ').count();
            assert_eq!(table.fields().count(), written, "{}", table.name);
            for (column, of) in table.fields() {
                assert!(types::by_name(of).is_some(), "{}.{column}: {of}", table.name);
            }
        }
    }
}
