//! Table functions about the running engine: `query_activity()`, `memory_metrics()`,
//! `writer_pool()`, `checkpoint_status()`.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use arrow::array::{
    ArrayRef, BooleanArray, Int64Array, StringViewArray, TimestampMicrosecondArray,
};
use tidemark_planner::ExternalTable;
use tidemark_storage::BACKUP_FOLDER;
use tidemark_types::{EngineResult, Field, SqlType};

use crate::external::{EngineSources, memory_table};
use crate::jobs::JobReport;
use crate::runtime::resident::{process_bytes, resident_bytes};

fn fields(columns: &[(&str, SqlType)]) -> Vec<Field> {
    columns.iter().map(|(name, sql_type)| Field::new(*name, *sql_type)).collect()
}

fn texts<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringViewArray::from_iter_values(values))
}

impl EngineSources {
    /// Returns the running queries of all users or of one user. The worker column is null because
    /// queries move between workers.
    pub(crate) fn running_queries(&self, of: Option<&str>) -> EngineResult<ExternalTable> {
        let mut queries = self.registry.list_with_state();
        queries.retain(|(query, _)| of.is_none_or(|identity| query.identity == identity));
        let columns = fields(&[
            ("query_id", SqlType::Long),
            ("worker_id", SqlType::Long),
            ("worker_pool", SqlType::String),
            ("username", SqlType::String),
            ("query_start", SqlType::Timestamp),
            ("state_change", SqlType::Timestamp),
            ("state", SqlType::String),
            ("is_wal", SqlType::Boolean),
            ("query", SqlType::String),
        ]);
        let started = || -> ArrayRef {
            let times = queries.iter().map(|(query, _)| query.started_micros);
            Arc::new(TimestampMicrosecondArray::from_iter_values(times))
        };
        let state = |cancelled: &bool| if *cancelled { "cancelled" } else { "active" };
        let ids = queries.iter().map(|(query, _)| query.query_id as i64);
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(ids)),
            Arc::new(Int64Array::new_null(queries.len())),
            texts(queries.iter().map(|_| "tidemark-worker")),
            texts(queries.iter().map(|(query, _)| query.user.as_str())),
            started(),
            started(),
            texts(queries.iter().map(|(_, cancelled)| state(cancelled))),
            Arc::new(BooleanArray::from(vec![false; queries.len()])),
            texts(queries.iter().map(|(query, _)| query.text.as_str())),
        ];
        memory_table(columns, arrays)
    }

    /// Returns memory use by category, in bytes.
    pub(crate) fn memory_metrics(&self) -> EngineResult<ExternalTable> {
        let (queries, unwritten) = (self.memory.used() as u64, self.storage.unwritten_bytes());
        let own = resident_bytes().unwrap_or(0);
        let all = process_bytes().unwrap_or(own);
        let metrics = [
            ("TOTAL_USED", queries + unwritten),
            ("RSS", all),
            ("MMAP_SEGMENTS", all.saturating_sub(own)),
            ("NATIVE_RESIDENT", own),
            ("NATIVE_QUERIES", queries),
            ("NATIVE_UNWRITTEN_ROWS", unwritten),
        ];
        let columns = fields(&[("memory_tag", SqlType::String), ("bytes", SqlType::Long)]);
        let bytes = metrics.iter().map(|(_, bytes)| *bytes as i64);
        let arrays: Vec<ArrayRef> = vec![
            texts(metrics.iter().map(|(tag, _)| *tag)),
            Arc::new(Int64Array::from_iter_values(bytes)),
        ];
        memory_table(columns, arrays)
    }

    /// Returns the tables on which a running change is blocking other writers. Other tables never
    /// block, because there is no writer pool.
    pub(crate) fn writer_pool(&self) -> EngineResult<ExternalTable> {
        let snapshot = self.storage.snapshot();
        let locked = self.storage.write_locked_tables();
        let locked = locked.into_iter().filter_map(|id| snapshot.table_by_id(id));
        let mut names: Vec<String> = locked.map(|table| table.schema().name.clone()).collect();
        names.sort_unstable();
        let columns = fields(&[
            ("table_name", SqlType::String),
            ("owner_thread_id", SqlType::Long),
            ("last_access_timestamp", SqlType::Timestamp),
            ("ownership_reason", SqlType::String),
        ]);
        let arrays: Vec<ArrayRef> = vec![
            texts(names.iter().map(String::as_str)),
            Arc::new(Int64Array::new_null(names.len())),
            Arc::new(TimestampMicrosecondArray::new_null(names.len())),
            texts(names.iter().map(|_| "UPDATE, DELETE or ALTER TABLE")),
        ];
        memory_table(columns, arrays)
    }

    /// Returns the background jobs.
    pub(crate) fn jobs(&self) -> EngineResult<ExternalTable> {
        let reports = self.jobs.reports();
        let columns = fields(&[
            ("kind", SqlType::String),
            ("name", SqlType::String),
            ("state", SqlType::String),
            ("last_error", SqlType::String),
            ("last_start", SqlType::Timestamp),
            ("last_micros", SqlType::Long),
            ("total_micros", SqlType::Long),
            ("next_run", SqlType::Timestamp),
            ("runs", SqlType::Long),
            ("failures", SqlType::Long),
        ]);
        let times = |of: fn(&JobReport) -> Option<i64>| -> ArrayRef {
            Arc::new(reports.iter().map(of).collect::<TimestampMicrosecondArray>())
        };
        let longs = |of: fn(&JobReport) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(reports.iter().map(of)))
        };
        let errors = reports.iter().map(|report| report.last_error.as_deref());
        let arrays: Vec<ArrayRef> = vec![
            texts(reports.iter().map(|report| report.kind)),
            texts(reports.iter().map(|report| report.name.as_str())),
            texts(reports.iter().map(|report| report.state.name())),
            Arc::new(errors.collect::<StringViewArray>()),
            times(|report| report.last_began_micros),
            longs(|report| report.last_took_micros),
            longs(|report| report.total_micros),
            times(|report| report.next_micros),
            longs(|report| report.runs as i64),
            longs(|report| report.failures as i64),
        ];
        memory_table(columns, arrays)
    }

    /// Returns whether a copy made by CHECKPOINT CREATE exists, and when it was created.
    pub(crate) fn checkpoint_status(&self) -> EngineResult<ExternalTable> {
        let there = self.storage.has_backup()?;
        let created =
            std::fs::metadata(self.root.join(BACKUP_FOLDER)).and_then(|meta| meta.modified());
        let created = created.ok().and_then(|created| created.duration_since(UNIX_EPOCH).ok());
        let created = created.and_then(|since| i64::try_from(since.as_micros()).ok());
        let columns =
            fields(&[("in_progress", SqlType::Boolean), ("started_at", SqlType::Timestamp)]);
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(BooleanArray::from(vec![there])),
            Arc::new(TimestampMicrosecondArray::from(vec![created.filter(|_| there)])),
        ];
        memory_table(columns, arrays)
    }
}
