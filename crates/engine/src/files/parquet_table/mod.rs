//! `read_parquet`: Parquet files as a table.
//!
//! Files are read but never memory-mapped, because users may truncate them during a query. Columns
//! written by this database retain their SQL type (footer key `tidemark`, written by
//! `tidemark-wire`); other columns get the nearest type. With several files, columns are matched by
//! name. Directory names (`year=2026/month=01`) also become columns.

pub(crate) mod columns;
mod file;
mod footer;
mod hive;
mod intervals;
mod nested;
mod order;
pub(crate) mod pattern;
mod prune;
mod scan;

use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::{Field as ArrowField, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result as DataFusionResult;
use datafusion::common::ScalarValue;
use datafusion::datasource::TableType;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use tidemark_types::bounded::check_stop;
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, SqlType, identifier};

use file::{Names, ParquetFile};
use prune::{Bounds, Value, is_useful, may_pass};
use scan::{FileSelection, ParquetScanExec, Source};

/// Maximum number of files per table.
pub(crate) const MAX_FILES: usize = 10_000;

/// A table backed by Parquet files.
#[derive(Debug)]
pub(crate) struct ParquetTable {
    files: Vec<Arc<ParquetFile>>,
    /// The directory columns' values for each file.
    paths: Vec<Vec<ScalarValue>>,
    /// All columns: first the columns in the files, then the directory columns.
    columns: Vec<Field>,
    /// Number of columns in the files; these come first in `columns`.
    in_files: usize,
    schema: SchemaRef,
    /// The timestamp column that sorts all rows in ascending order, if the files declare such a
    /// column.
    sorted_by: Option<usize>,
}

impl ParquetTable {
    /// Reads the files' footers. Each file is given as a path and the name shown to users.
    /// `with_directories` states whether directory names become columns.
    pub(crate) fn open(
        paths: Vec<(PathBuf, String)>,
        with_directories: bool,
    ) -> EngineResult<Self> {
        let mut files = Vec::with_capacity(paths.len());
        for (path, name) in paths {
            files.push(Arc::new(ParquetFile::open(path, name)?));
        }
        let mut columns = common_columns(&files)?;
        let in_files = columns.len();
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        let known = |name: &str| columns.iter().any(|column| identifier::same(&column.name, name));
        let (more, paths) = if with_directories {
            hive::columns_of(&names, &known)
        } else {
            (Vec::new(), vec![Vec::new(); files.len()])
        };
        columns.extend(more);
        let field = |field: &Field| ArrowField::new(&field.name, field.sql_type.arrow_type(), true);
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let sorted_by = order::sorted_by(&files, &columns[..in_files]);
        Ok(Self { files, paths, columns, in_files, schema, sorted_by })
    }

    /// Returns the timestamp column that sorts all rows in ascending order, if the files declare
    /// such a column.
    pub(crate) fn sorted_by(&self) -> Option<usize> {
        self.sorted_by
    }

    /// Returns the column names and SQL types.
    pub(crate) fn columns(&self) -> &[Field] {
        &self.columns
    }

    /// Returns the row groups and columns to read from a file; `None` if pruning excludes all its
    /// row groups.
    fn selection(
        &self,
        index: usize,
        columns: &[usize],
        filters: &[Expr],
    ) -> Option<FileSelection> {
        let file = &self.files[index];
        let of_path = |name: &str| {
            let at = self.columns[self.in_files..].iter().position(|one| one.name == name)?;
            let value = prune::value_of(&self.paths[index][at])?;
            Some(Bounds { low: Value::clone(&value), high: value })
        };
        let groups = file.metadata.metadata().num_row_groups();
        let may_hold = |group: &usize| {
            let bounds =
                |name: &str| of_path(name).or_else(|| file.bounds(*group, file.column(name)?));
            filters.iter().all(|filter| may_pass(filter, &bounds))
        };
        let row_groups: Vec<usize> = (0..groups).filter(may_hold).collect();
        if row_groups.is_empty() {
            return None;
        }
        let source = |column: &usize| match column.checked_sub(self.in_files) {
            Some(at) => Source::Path(self.paths[index][at].clone()),
            None => match file.column(&self.columns[*column].name) {
                Some(at) => Source::Column(at, file.columns[at].sql_type),
                None => Source::Missing,
            },
        };
        let sources = columns.iter().map(source).collect();
        Some(FileSelection { file: Arc::clone(file), row_groups, sources })
    }
}

/// Returns the columns of all files in order of first appearance.
fn common_columns(files: &[Arc<ParquetFile>]) -> EngineResult<Vec<Field>> {
    let mut columns: Vec<Field> = Vec::new();
    let mut names = Names::default();
    for file in files {
        check_stop()?;
        for column in &file.columns {
            // The first file may have duplicate names. A query that uses such a name fails.
            let found = names.position(&column.name).filter(|_| !Arc::ptr_eq(file, &files[0]));
            let Some(known) = found.and_then(|at| columns.get_mut(at)) else {
                names.add(&column.name, columns.len());
                columns.push(column.clone());
                continue;
            };
            known.sql_type =
                columns::common_type(known.sql_type, column.sql_type).ok_or_else(|| {
                    let message = format!(
                        "column '{}' is {} in '{}' but {} in earlier files",
                        column.name,
                        column.sql_type.name(),
                        file.name,
                        known.sql_type.name()
                    );
                    EngineError::new(ErrorCode::TypeMismatch, message)
                })?;
        }
    }
    Ok(columns)
}

#[async_trait]
impl TableProvider for ParquetTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> DataFusionResult<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| {
            if is_useful(filter) {
                TableProviderFilterPushDown::Inexact
            } else {
                TableProviderFilterPushDown::Unsupported
            }
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let columns = projection.cloned().unwrap_or_else(|| (0..self.columns.len()).collect());
        let schema = Arc::new(self.schema.project(&columns)?);
        let types: Vec<SqlType> = columns.iter().map(|at| self.columns[*at].sql_type).collect();
        let files = self.files.len();
        let selections =
            (0..files).filter_map(|file| self.selection(file, &columns, filters)).collect();
        let groups = self.files.iter().map(|file| file.metadata.metadata().num_row_groups());
        let all = (files, groups.sum());
        let ascending = self.sorted_by.and_then(|time| columns.iter().position(|at| *at == time));
        Ok(Arc::new(ParquetScanExec::new(selections, types, schema, limit, all, ascending)))
    }
}
