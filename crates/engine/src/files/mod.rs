//! Files that queries read as tables: Parquet, CSV and JSON.

pub(crate) mod csv_text;
pub(crate) mod parquet_table;
pub(crate) mod text_table;
