//! `read_csv`, `read_json`: texts in files as a table.
//!
//! What a text looks like (delimiter, header, columns, types) is found by TypeScript, as for an
//! import; what is neither CSV nor UTF-8 lies converted beside the database. Files are read in the
//! order of their names, one after the other, and never as a whole. Of several files, columns go
//! by their names.

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

/// Files of one table, at most: each is looked at before the first is read.
pub(crate) const MAX_TEXTS: usize = 1_000;
/// Tables whose types are known.
const KEPT_TABLES: usize = 64;
/// Columns of all files of a table that is kept, at most.
const KEPT_COLUMNS: usize = 20_000;

/// Texts of one table.
#[derive(Debug)]
pub(crate) struct TextTable {
    texts: Vec<Arc<Text>>,
    columns: Vec<Field>,
    schema: SchemaRef,
}

impl TextTable {
    /// Texts in files, given by where they are, read as it is `known`. `whole`: types are those of
    /// all that the files hold.
    fn open(
        files: Vec<(PathBuf, String)>,
        known: &[TextFile],
        whole: bool,
        most_line_bytes: usize,
    ) -> EngineResult<Self> {
        let mut texts = Vec::with_capacity(files.len());
        for ((path, _), known) in files.into_iter().zip(known) {
            texts.push(Text::new(path, known, most_line_bytes)?);
        }
        settle::settle(&mut texts, whole)?;
        let columns = common_columns(&texts);
        let field = |field: &Field| ArrowField::new(&field.name, field.sql_type.arrow_type(), true);
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        Ok(Self { texts: texts.into_iter().map(Arc::new).collect(), columns, schema })
    }

    /// Names and SQL types.
    pub(crate) fn columns(&self) -> &[Field] {
        &self.columns
    }
}

/// The columns of all texts, in the order in which they first appear.
fn common_columns(texts: &[Text]) -> Vec<Field> {
    let mut seen = std::collections::HashSet::new();
    let all = texts.iter().flat_map(|text| &text.columns);
    all.filter(|column| seen.insert(identifier::fold(&column.name)))
        .map(|column| Field::new(&column.name, column.sql_type))
        .collect()
}

/// Tables that were opened lately: each statement opens its table several times.
#[derive(Debug, Default)]
pub(crate) struct TextTables(Mutex<Vec<(u64, Arc<TextTable>)>>);

impl TextTables {
    /// Texts in files as a table. Files that are others than the `known` ones are to be looked at
    /// again.
    pub(crate) fn open(
        &self,
        files: Vec<(PathBuf, String)>,
        known: &[TextFile],
        whole: bool,
        most_line_bytes: usize,
    ) -> EngineResult<Arc<TextTable>> {
        let is_same = |((_, name), known): (&(_, String), &TextFile)| *name == known.name;
        if files.len() != known.len() || !files.iter().zip(known).all(is_same) {
            return Err(changed(files.first().map_or("", |(_, name)| name)));
        }
        let mut hasher = DefaultHasher::new();
        (&files, whole).hash(&mut hasher);
        for TextFile { version, converted, csv, .. } in known {
            (version, converted, format!("{csv:?}")).hash(&mut hasher);
        }
        let key = hasher.finish();
        if let Some(table) = self.known(key)
            && table.texts.iter().zip(known).all(|(text, known)| text.is_current(known))
        {
            return Ok(table);
        }
        let table = Arc::new(TextTable::open(files, known, whole, most_line_bytes)?);
        if table.texts.iter().map(|text| text.columns.len()).sum::<usize>() <= KEPT_COLUMNS {
            self.keep(key, &table);
        }
        Ok(table)
    }

    fn known(&self, key: u64) -> Option<Arc<TextTable>> {
        let tables = self.0.lock();
        tables.iter().find(|(known, _)| *known == key).map(|(_, table)| Arc::clone(table))
    }

    fn keep(&self, key: u64, table: &Arc<TextTable>) {
        let mut tables = self.0.lock();
        tables.retain(|(known, _)| *known != key);
        if tables.len() == KEPT_TABLES {
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
        let wanted = projection.cloned().unwrap_or_else(|| (0..self.columns.len()).collect());
        let schema = Arc::new(self.schema.project(&wanted)?);
        let columns = wanted.iter().map(|at| self.columns[*at].clone()).collect();
        Ok(Arc::new(TextScanExec::new(self.texts.clone(), columns, schema, limit)))
    }
}
