//! `read_csv`, `read_json`: text files as a table.
//!
//! TypeScript detects the format (delimiter, header, columns, types) as it does for an import. A
//! file that is not UTF-8 CSV is first converted to a copy next to the database. Files are streamed
//! one after another in name order. With several files, columns are matched by name.

mod file;
mod scan;
mod settle;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::{Field as ArrowField, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result as DataFusionResult;
use datafusion::datasource::TableType;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::Mutex;
use tidemark_border::TextFile;
use tidemark_types::{EngineResult, Field, identifier};

use file::{Text, changed};
use scan::TextScanExec;

/// Maximum number of files per table. All files are examined before the first is read.
pub(crate) const MAX_TEXTS: usize = 1_000;
/// Maximum number of tables in the cache.
const MAX_CACHED_TABLES: usize = 64;
/// Maximum number of columns in a cached table, summed across its files.
const MAX_CACHED_COLUMNS: usize = 20_000;

/// A table backed by text files.
#[derive(Debug)]
pub(crate) struct TextTable {
    texts: Vec<Arc<Text>>,
    columns: Vec<Field>,
    schema: SchemaRef,
}

impl TextTable {
    /// Opens the files with their `known` formats. `reads_all` states whether types are determined
    /// from all data.
    fn open(
        files: Vec<(PathBuf, String)>,
        known: &[TextFile],
        reads_all: bool,
        most_line_bytes: usize,
    ) -> EngineResult<Self> {
        let mut texts = Vec::with_capacity(files.len());
        for ((path, _), known) in files.into_iter().zip(known) {
            texts.push(Text::new(path, known, most_line_bytes)?);
        }
        settle::settle(&mut texts, reads_all)?;
        let columns = common_columns(&texts);
        let field = |field: &Field| ArrowField::new(&field.name, field.sql_type.arrow_type(), true);
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        Ok(Self { texts: texts.into_iter().map(Arc::new).collect(), columns, schema })
    }

    /// Returns the column names and SQL types.
    pub(crate) fn columns(&self) -> &[Field] {
        &self.columns
    }
}

/// Returns the columns of all files in order of first appearance.
fn common_columns(texts: &[Text]) -> Vec<Field> {
    let mut seen = std::collections::HashSet::new();
    let all = texts.iter().flat_map(|text| &text.columns);
    all.filter(|column| seen.insert(identifier::fold(&column.name)))
        .map(|column| Field::new(&column.name, column.sql_type))
        .collect()
}

/// Cache of recently opened tables. Each statement opens its table several times.
#[derive(Debug, Default)]
pub(crate) struct TextTables(Mutex<Vec<(u64, Arc<TextTable>)>>);

impl TextTables {
    /// Opens text files as a table. Fails if a file no longer matches its `known` description and
    /// must be examined again.
    pub(crate) fn open(
        &self,
        files: Vec<(PathBuf, String)>,
        known: &[TextFile],
        reads_all: bool,
        most_line_bytes: usize,
    ) -> EngineResult<Arc<TextTable>> {
        let is_same = |((_, name), known): (&(_, String), &TextFile)| *name == known.name;
        if files.len() != known.len() || !files.iter().zip(known).all(is_same) {
            return Err(changed(files.first().map_or("", |(_, name)| name)));
        }
        let mut hasher = DefaultHasher::new();
        (&files, reads_all).hash(&mut hasher);
        for TextFile { version, converted, csv, .. } in known {
            (version, converted, format!("{csv:?}")).hash(&mut hasher);
        }
        let key = hasher.finish();
        if let Some(table) = self.known(key)
            && table.texts.iter().zip(known).all(|(text, known)| text.is_current(known))
        {
            return Ok(table);
        }
        let table = Arc::new(TextTable::open(files, known, reads_all, most_line_bytes)?);
        if table.texts.iter().map(|text| text.columns.len()).sum::<usize>() <= MAX_CACHED_COLUMNS {
            self.insert(key, &table);
        }
        Ok(table)
    }

    fn known(&self, key: u64) -> Option<Arc<TextTable>> {
        let tables = self.0.lock();
        tables.iter().find(|(known, _)| *known == key).map(|(_, table)| Arc::clone(table))
    }

    fn insert(&self, key: u64, table: &Arc<TextTable>) {
        let mut tables = self.0.lock();
        tables.retain(|(known, _)| *known != key);
        if tables.len() == MAX_CACHED_TABLES {
            tables.remove(0);
        }
        tables.push((key, Arc::clone(table)));
    }
}

#[async_trait]
impl TableProvider for TextTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let required = projection.cloned().unwrap_or_else(|| (0..self.columns.len()).collect());
        let schema = Arc::new(self.schema.project(&required)?);
        let columns = required.iter().map(|at| self.columns[*at].clone()).collect();
        Ok(Arc::new(TextScanExec::new(self.texts.clone(), columns, schema, limit)))
    }
}
