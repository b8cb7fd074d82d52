//! Sources of a partition's rows: in-memory runs, segments, and rows merged from several of them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow_buffer::ScalarBuffer;
use parking_lot::Mutex;
use tidemark_types::{EngineResult, SqlType};

use crate::segment::Segment;
use crate::segment::column::{self, ColumnData};
use crate::segment::dead_rows::DeadRows;
use crate::table::merge::SourceRange;
use crate::table::schema::ColumnSchema;
use crate::table::upsert::{Source, UpsertKeys, upsert_order};

/// Rows in memory, ascending in time.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) rows: usize,
    /// Column identifiers and cells.
    pub(crate) columns: Vec<(u32, SqlType, ColumnData)>,
    /// First and last timestamp; both are zero without a designated timestamp.
    pub(crate) bounds: (i64, i64),
    /// Latest transaction in the run.
    pub(crate) last_lsn: u64,
    /// Keys by which the run's rows replace rows of earlier runs and segments.
    pub(crate) upsert: Option<Arc<UpsertKeys>>,
}

impl Run {
    /// Returns the same rows without the keys by which they replace other rows.
    pub(crate) fn settled(&self) -> Self {
        let (columns, bounds) = (self.columns.clone(), self.bounds);
        Self { rows: self.rows, columns, bounds, last_lsn: self.last_lsn, upsert: None }
    }

    pub(crate) fn column(&self, target: &ColumnSchema) -> EngineResult<ColumnData> {
        match self.columns.iter().find(|(id, ..)| *id == target.id) {
            Some((_, _, cells)) => Ok(cells.clone()),
            None => ColumnData::nulls(target.sql_type, self.rows),
        }
    }
}

/// Rows from several overlapping sources in a common order. Columns are copied on first access.
pub(crate) struct Merged {
    pub(crate) rows: usize,
    pub(crate) bounds: (i64, i64),
    sources: Vec<RowSource>,
    order: Vec<SourceRange>,
    columns: Mutex<HashMap<u32, ColumnData>>,
}

impl Merged {
    pub(crate) fn new(
        sources: Vec<RowSource>,
        order: Vec<SourceRange>,
        bounds: (i64, i64),
    ) -> Self {
        let rows = order.iter().map(|range| range.len).sum();
        Self { rows, bounds, sources, order, columns: Mutex::default() }
    }

    /// Returns the sources of `len` rows starting at `start`, in row order.
    pub(crate) fn origins(
        &self,
        start: usize,
        len: usize,
    ) -> impl Iterator<Item = (&RowSource, SourceRange)> {
        let mut first = 0;
        self.order.iter().filter_map(move |range| {
            let (low, high) = (first.max(start), (first + range.len).min(start + len));
            let own = SourceRange {
                start: range.start + low.saturating_sub(first),
                len: high.saturating_sub(low),
                ..*range
            };
            first += range.len;
            (own.len > 0).then(|| (&self.sources[range.source], own))
        })
    }

    fn column(&self, target: &ColumnSchema) -> EngineResult<ColumnData> {
        if let Some(cells) = self.columns.lock().get(&target.id) {
            return Ok(cells.clone());
        }
        // Copies outside the lock. Two readers may copy the same column, but no reader waits while
        // another column is copied.
        let sources: Vec<_> =
            self.sources.iter().map(|source| source.column(target)).collect::<Result<_, _>>()?;
        let cells = ColumnData::gather(target.sql_type, &sources, &self.order)?;
        Ok(self.columns.lock().entry(target.id).or_insert(cells).clone())
    }
}

impl fmt::Debug for Merged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Merged").field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// Rows of one origin, ascending in time if the table has a designated timestamp.
#[derive(Debug, Clone)]
pub(crate) enum RowSource {
    Run(Arc<Run>),
    Segment(Arc<Segment>),
    Merged(Arc<Merged>),
}

impl RowSource {
    /// Number of addressable rows, including deleted rows.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Run(run) => run.rows,
            Self::Segment(segment) => segment.rows(),
            Self::Merged(merged) => merged.rows,
        }
    }

    pub(crate) fn bounds(&self) -> (i64, i64) {
        match self {
            Self::Run(run) => run.bounds,
            Self::Segment(segment) => segment.bounds(),
            Self::Merged(merged) => merged.bounds,
        }
    }

    /// Latest transaction in the source, which defines the arrival order.
    pub(crate) fn lsn(&self) -> u64 {
        match self {
            Self::Run(run) => run.last_lsn,
            Self::Segment(segment) => segment.meta.lsn,
            Self::Merged(_) => u64::MAX,
        }
    }

    /// Deleted rows that are still in the source's file, if any.
    pub(crate) fn dead(&self) -> Option<&Arc<DeadRows>> {
        match self {
            Self::Segment(segment) => segment.dead(),
            Self::Run(_) | Self::Merged(_) => None,
        }
    }

    /// Keys by which the source's rows replace rows of earlier sources, if any.
    pub(crate) fn upsert(&self) -> Option<&Arc<UpsertKeys>> {
        match self {
            Self::Run(run) => run.upsert.as_ref(),
            Self::Segment(segment) => segment.upsert.as_ref(),
            Self::Merged(_) => None,
        }
    }

    /// Returns the whole column; null if the source is older than the column.
    pub(crate) fn column(&self, target: &ColumnSchema) -> EngineResult<ColumnData> {
        match self {
            Self::Run(run) => run.column(target),
            Self::Segment(segment) => segment.column(target),
            Self::Merged(merged) => merged.column(target),
        }
    }

    pub(crate) fn timestamps(&self, column: &ColumnSchema) -> EngineResult<ScalarBuffer<i64>> {
        column::timestamps(self.column(column)?.array())
    }
}

/// Returns the row order of several sources, given in arrival order, excluding replaced and deleted
/// rows. `times` contains their timestamps.
pub(crate) fn order_of(pieces: &[RowSource], times: &[&[i64]]) -> EngineResult<Vec<SourceRange>> {
    let sources: Vec<Source<'_>> = pieces
        .iter()
        .zip(times)
        .map(|(source, times)| Source { times, upsert: source.upsert() })
        .collect();
    let order = upsert_order(&sources, &|index, column| pieces[index].column(column))?;
    Ok(living(order, pieces))
}

/// Removes the deleted rows of `sources` from a row order.
pub(crate) fn living(order: Vec<SourceRange>, sources: &[RowSource]) -> Vec<SourceRange> {
    if sources.iter().all(|source| source.dead().is_none()) {
        return order;
    }
    let mut living = Vec::with_capacity(order.len());
    for range in order {
        match sources[range.source].dead() {
            Some(dead) => dead.add_living(range, &mut living),
            None => living.push(range),
        }
    }
    living
}
