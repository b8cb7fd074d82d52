//! One Parquet file with its footer and column positions.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;

use arrow::datatypes::{DataType, TimeUnit};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::SortingColumn;
use parquet::file::statistics::Statistics;
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, identifier};

use super::columns;
use super::footer::{check_depth, damaged};
use super::prune::{Bounds, bounds_of};
use crate::runtime::guard;

/// Footer key for the column that the whole file is sorted by; `tidemark-wire` writes it.
const SORTED_KEY: &str = "tidemark.sorted";

/// Column positions by name. Files may have tens of thousands of columns.
#[derive(Debug, Default)]
pub(super) struct Names {
    exact: HashMap<String, usize>,
    folded: HashMap<String, usize>,
}

impl Names {
    /// Adds a column. If a name occurs several times, its first column is used.
    pub(super) fn add(&mut self, name: &str, position: usize) {
        self.exact.entry(name.to_owned()).or_insert(position);
        self.folded.entry(identifier::fold(name)).or_insert(position);
    }

    /// Returns the column's position. An exact match takes precedence over a match that ignores
    /// case.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        let exact = self.exact.get(name);
        exact.or_else(|| self.folded.get(&identifier::fold(name))).copied()
    }
}

/// One file with its footer.
#[derive(Debug)]
pub(super) struct ParquetFile {
    pub(super) path: PathBuf,
    /// The path shown to users.
    pub(super) name: String,
    pub(super) metadata: ArrowReaderMetadata,
    pub(super) columns: Vec<Field>,
    names: Names,
}

impl ParquetFile {
    /// Opens a file and reads its footer.
    pub(super) fn open(path: PathBuf, name: String) -> EngineResult<Self> {
        let unreadable = |error: &dyn std::fmt::Display| {
            EngineError::new(ErrorCode::InvalidValue, format!("cannot read '{name}': {error}"))
        };
        let mut file = File::open(&path).map_err(|error| unreadable(&error))?;
        check_depth(&mut file, &name)?;
        let metadata = guard::catch_unreadable(
            "parquet",
            |_| damaged(&name),
            || {
                // If the embedded Arrow schema is nested too deeply, it is ignored.
                let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
                ArrowReaderMetadata::load(&file, ArrowReaderOptions::default())
                    .or_else(|_| ArrowReaderMetadata::load(&file, plain))
                    .map_err(|error| unreadable(&error))
            },
        )?;
        let columns = columns::columns_of(&metadata);
        let mut names = Names::default();
        for (position, column) in columns.iter().enumerate() {
            names.add(&column.name, position);
        }
        Ok(Self { path, name, metadata: columns::in_views(metadata), columns, names })
    }

    /// Returns the column's position. An exact match takes precedence over a match that ignores
    /// case.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.names.position(name)
    }

    /// Returns the leaf index of a column; `None` if the column is nested.
    fn leaf(&self, column: usize) -> Option<usize> {
        let schema = self.metadata.parquet_schema();
        let is_flat = schema.root_schema().get_fields().get(column)?.is_primitive();
        let is_meant = |leaf: &usize| schema.get_column_root_idx(*leaf) == column;
        let leaf = (0..schema.num_columns()).find(is_meant).filter(|_| is_flat)?;
        (schema.column(leaf).max_rep_level() == 0).then_some(leaf)
    }

    /// Whether the footer declares that each row group is sorted by this column and that the column
    /// has no nulls.
    pub(super) fn is_sorted_by(&self, column: usize) -> bool {
        let Some(leaf) = self.leaf(column) else { return false };
        let footer = self.metadata.metadata();
        let pairs = footer.file_metadata().key_value_metadata();
        let own = pairs.and_then(|pairs| pairs.iter().find(|pair| pair.key == SORTED_KEY));
        let named = own.is_some_and(|own| own.value.as_ref() == Some(&self.columns[column].name));
        footer.row_groups().iter().filter(|group| group.num_rows() > 0).all(|group| {
            let statistics = group.column(leaf).statistics();
            let nulls = statistics.and_then(Statistics::null_count_opt);
            let first = group.sorting_columns().and_then(|columns| columns.first());
            let is_meant = |first: &SortingColumn| {
                usize::try_from(first.column_idx) == Ok(leaf) && !first.descending
            };
            nulls == Some(0) && (named || first.is_some_and(is_meant))
        })
    }

    /// Returns a column's minimum and maximum in a row group, as stated in the footer.
    pub(super) fn bounds(&self, group: usize, column: usize) -> Option<Bounds> {
        let group = self.metadata.metadata().row_group(group);
        let leaf = self.leaf(column)?;
        let scale = match self.metadata.schema().field(column).data_type() {
            DataType::Timestamp(TimeUnit::Millisecond, _) => Some(1_000_000),
            DataType::Timestamp(TimeUnit::Microsecond, _) => Some(1_000),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => Some(1),
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
                return None; // The bounds are stored as signed numbers.
            }
            DataType::Date32 => Some(86_400_000_000_000),
            _ => None,
        };
        bounds_of(group.column(leaf).statistics()?, self.columns[column].sql_type, scale)
    }
}
