//! Row sources other than tables: files under the import root, and runtime information about the
//! engine.

mod actions;
mod server_tables;

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::{Duration, UNIX_EPOCH};

use arrow::array::ArrayRef;
use arrow::record_batch::RecordBatch;
use datafusion::catalog::{MemTable, Session};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_plan::ExecutionPlanProperties;
use futures::StreamExt;
use parking_lot::Mutex;
use tidemark_border::{TextFormatRequest, TextPath, TextShape};
use tidemark_planner::{
    Action, ExternalSources, ExternalTable, FileRoot, ListedFile, TextRequest, TextRows,
    ViewProgress,
};
use tidemark_storage::{Storage, TableId};
use tidemark_types::bounded::{Deep, check_stop};
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, failpoint};
use tokio::runtime::Handle;

use crate::files::parquet_table::{MAX_FILES, ParquetTable, pattern};
use crate::files::text_table::{MAX_TEXTS, TextTables};
use crate::jobs::Jobs;
use crate::runtime::pool::SharedPool;
use crate::runtime::registry::QueryRegistry;
use crate::runtime::work::waited_for;
use crate::views::progress::Refresher;
use actions::{Actors, action_function};
use tidemark_operators::from_datafusion;
use tidemark_optimizer::PlanSession;

/// How often a binding that is waiting for rows checks whether the statement was stopped.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Row sources that the engine provides to the binder in addition to the tables.
pub(crate) struct EngineSources {
    pub(crate) refresher: Arc<Refresher>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) root: PathBuf,
    pub(crate) import_root: PathBuf,
    pub(crate) export_root: PathBuf,
    pub(crate) registry: Arc<QueryRegistry>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) memory: Arc<SharedPool>,
    pub(crate) session: Arc<PlanSession>,
    pub(crate) handle: Handle,
    /// Last sequence value of each column, by table and column.
    pub(crate) numbers: Mutex<HashMap<(TableId, u32), Arc<AtomicI64>>>,
    pub(crate) texts: TextTables,
    pub(crate) max_line_bytes: usize,
}

impl EngineSources {
    /// Resolves a path relative to the import root. Rejects devices, FIFOs, and symbolic links that
    /// lead out of the root.
    fn resolve(&self, path: &str) -> EngineResult<PathBuf> {
        let missing =
            || EngineError::new(ErrorCode::InvalidValue, format!("could not open, file: {path}"));
        let relative = self.relative(path)?;
        let real = self.import_root.join(relative).canonicalize().map_err(|_| missing())?;
        let is_file = std::fs::metadata(&real).is_ok_and(|metadata| metadata.is_file());
        if real.starts_with(&self.import_root) && is_file { Ok(real) } else { Err(missing()) }
    }
}

impl EngineSources {
    fn relative<'a>(&self, path: &'a str) -> EngineResult<&'a Path> {
        relative_to(&self.import_root, path).map_err(|failure| {
            failure.with_hint("put the file in the directory set by cairo.sql.copy.root")
        })
    }

    /// Adds the file at `path`. If `path` is a pattern, adds up to `max` matching files. Returns
    /// whether `path` is a pattern.
    fn add_files(
        &self,
        path: &str,
        max: usize,
        files: &mut Vec<(PathBuf, String)>,
    ) -> EngineResult<bool> {
        let named = self.resolve(path);
        if named.is_ok() || !pattern::is_pattern(path) {
            files.push((named?, path.to_owned()));
            return Ok(false);
        }
        let relative = self.relative(path)?.to_string_lossy();
        let found = pattern::find(&self.import_root, &relative)?;
        if found.is_empty() {
            let message = format!("no file matches '{path}'");
            return Err(EngineError::new(ErrorCode::InvalidValue, message)
                .with_hint("patterns are relative to the directory set by cairo.sql.copy.root"));
        }
        for name in found {
            if files.len() >= max {
                let message = format!("too many files [limit={max}]: exceeded by '{path}'");
                return Err(EngineError::new(ErrorCode::ResourceLimit, message));
            }
            files.push((self.resolve(&name)?, name));
        }
        Ok(true)
    }
}

/// Returns the path relative to a directory; rejects a path outside the directory.
fn relative_to<'a>(directory: &Path, path: &'a str) -> EngineResult<&'a Path> {
    let relative = Path::new(path);
    let relative = relative.strip_prefix(directory).unwrap_or(relative);
    let inside = relative.components().all(|component| matches!(component, Component::Normal(_)));
    if inside && !path.is_empty() {
        return Ok(relative);
    }
    let message = format!("path is outside the import directory: {path}");
    Err(EngineError::new(ErrorCode::InvalidValue, message))
}

impl ExternalSources for EngineSources {
    fn read_parquet(&self, paths: &[String]) -> EngineResult<ExternalTable> {
        failpoint::hit("engine.read_parquet")?;
        let mut files = Vec::new();
        let mut patterns = 0;
        for path in paths {
            patterns += usize::from(self.add_files(path, MAX_FILES, &mut files)?);
        }
        // Directory names become columns only if every file was matched by a pattern. Files named
        // individually do not get such columns.
        let table = ParquetTable::open(files, patterns == paths.len())?;
        let columns = table.columns().to_vec();
        let sorted_by = table.sorted_by();
        Ok(ExternalTable { provider: Arc::new(table), columns, sorted_by })
    }

    fn read_text(
        &self,
        request: &TextRequest,
        known: Option<&TextShape>,
    ) -> EngineResult<TextRows> {
        failpoint::hit("engine.read_text")?;
        let mut files = Vec::new();
        for path in &request.paths {
            self.add_files(path, MAX_TEXTS, &mut files)?;
        }
        let option = |name: &str| request.options.get(name).map(String::as_str);
        let Some(known) = known else {
            let text_path = |(path, name): (PathBuf, String)| TextPath {
                name,
                path: path.to_string_lossy().into_owned(),
            };
            let options = request.options.iter();
            let options = options.map(|(name, value)| ((*name).to_owned(), value.clone()));
            return Ok(TextRows::Unknown(TextFormatRequest {
                key: request.key(),
                format: request.format,
                files: files.into_iter().map(text_path).collect(),
                options: options.collect(),
            }));
        };
        if let Some(problem) = &known.problem {
            return Err(EngineError::new(ErrorCode::InvalidValue, problem));
        }
        let reads_all = option("sample_size").is_some_and(|size| size == "-1");
        // Reading may take a long time, so the worker first hands its other tasks to another
        // thread.
        let table = tokio::task::block_in_place(|| {
            self.texts.open(files, &known.files, reads_all, self.max_line_bytes)
        })?;
        let columns = table.columns().to_vec();
        Ok(TextRows::Table(ExternalTable { provider: table, columns, sorted_by: None }))
    }

    fn files(&self, root: FileRoot, pattern: &str) -> EngineResult<Vec<ListedFile>> {
        failpoint::hit("engine.list_files")?;
        let directory = match root {
            FileRoot::Import => &self.import_root,
            FileRoot::Export => &self.export_root,
        };
        let relative = relative_to(directory, pattern)?.to_string_lossy();
        let listed = |path: String| {
            // Skips symbolic links and files that have since been removed.
            let metadata = std::fs::symlink_metadata(directory.join(&path)).ok()?;
            let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            metadata.is_file().then_some(ListedFile {
                path,
                bytes: metadata.len(),
                modified_millis: modified.as_millis() as i64,
            })
        };
        Ok(pattern::find(directory, &relative)?.into_iter().filter_map(listed).collect())
    }

    fn action(&self, action: Action) -> Option<Arc<ScalarUDF>> {
        let actors = Actors { registry: Arc::clone(&self.registry), jobs: Arc::clone(&self.jobs) };
        Some(Arc::new(action_function(actors, action)))
    }

    fn table_function(&self, name: &str, of: Option<&str>) -> EngineResult<Option<ExternalTable>> {
        match name.to_ascii_lowercase().as_str() {
            "query_activity" => self.running_queries(of).map(Some),
            "memory_metrics" => self.memory_metrics().map(Some),
            "writer_pool" => self.writer_pool().map(Some),
            "jobs" => self.jobs().map(Some),
            "checkpoint_status" => self.checkpoint_status().map(Some),
            _ => Ok(None),
        }
    }

    fn view_progress(&self, view: TableId) -> ViewProgress {
        self.refresher.view_progress(view)
    }

    fn last_number(&self, table: TableId, column: u32) -> Arc<AtomicI64> {
        Arc::clone(self.numbers.lock().entry((table, column)).or_default())
    }

    fn values(&self, plan: &LogicalPlan, max: usize) -> EngineResult<Vec<ScalarValue>> {
        let work = async {
            let planned = self.session.physical_plan(plan);
            let plan = Deep(Box::pin(planned)).await.map_err(from_datafusion)?;
            let mut values = Vec::new();
            // Reads the partitions one after another, as when returning results, because the order
            // of rows may matter.
            for partition in 0..plan.output_partitioning().partition_count() {
                let batches = plan.execute(partition, self.session.task_ctx());
                let mut batches = batches.map_err(from_datafusion)?;
                while values.len() < max
                    && let Some(batch) =
                        batches.next().await.transpose().map_err(from_datafusion)?
                {
                    for row in 0..batch.num_rows().min(max - values.len()) {
                        let value = ScalarValue::try_from_array(batch.column(0), row);
                        values.push(value.map_err(from_datafusion)?);
                    }
                }
            }
            Ok(values)
        };
        let work = async {
            tokio::select! {
                values = work => values,
                stopped = until_stopped() => Err(stopped),
            }
        };
        // The binder blocks a worker, so the worker first hands its other tasks to another thread.
        tokio::task::block_in_place(|| self.handle.block_on(waited_for(work)))
    }
}

/// Waits until the statement that is being bound is stopped.
async fn until_stopped() -> EngineError {
    loop {
        if let Err(stopped) = check_stop() {
            return stopped;
        }
        tokio::time::sleep(STOP_CHECK_INTERVAL).await;
    }
}

pub(crate) fn memory_table(
    columns: Vec<Field>,
    arrays: Vec<ArrayRef>,
) -> EngineResult<ExternalTable> {
    let named = columns.iter().map(|field| field.name.clone()).zip(arrays);
    let batch =
        RecordBatch::try_from_iter_with_nullable(named.map(|(name, array)| (name, array, true)))
            .map_err(|error| EngineError::internal(error.to_string()))?;
    let provider = MemTable::try_new(batch.schema(), vec![vec![batch]]).map_err(from_datafusion)?;
    Ok(ExternalTable { provider: Arc::new(provider), columns, sorted_by: None })
}
