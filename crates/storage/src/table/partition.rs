//! One of a table's partitions: its runs and segments in arrival order, and the time-ordered view
//! for readers.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use tidemark_types::EngineResult;

use crate::disk::file::StoredFile;
use crate::segment::Segment;
use crate::segment::column::ColumnData;
use crate::table::merge::SourceRange;
use crate::table::row_source::living;
use crate::table::row_source::{Merged, RowSource, Run, order_of};
use crate::table::schema::{ColumnSchema, TableSchema};
use crate::table::upsert::UpsertKeys;

/// A range of at least this many rows of one run or segment is read in place; shorter ranges are
/// copied together.
const READ_IN_PLACE_ROWS: usize = 4_096;
/// Maximum number of rows copied together, so that a reader that needs few rows does not merge a
/// whole partition.
const MERGED_ROWS: usize = 256 << 10;

/// Minimum number of rows for a commit to form a separate run. For that many rows, reading an
/// additional run is cheaper than copying the rows into another run.
const LONG_RUN_ROWS: usize = 64 << 10;

/// Consecutive rows from a run or segment, in a partition's time order.
#[derive(Debug, Clone)]
pub(crate) struct Fragment {
    pub(crate) source: RowSource,
    pub(crate) rows: Range<usize>,
    pub(crate) bounds: (i64, i64),
}

impl Fragment {
    pub(crate) fn of_source(piece: RowSource) -> Self {
        Self { rows: 0..piece.rows(), bounds: piece.bounds(), source: piece }
    }
}

/// An immutable partition. A change creates a new partition that shares the runs and segments.
#[derive(Debug, Default)]
pub(crate) struct Partition {
    /// Segments, in arrival order.
    pub(crate) segments: Vec<Arc<Segment>>,
    /// In-memory runs, in arrival order.
    pub(crate) runs: Vec<Arc<Run>>,
    /// Latest transaction since startup that changed the partition's rows or cells. A checkpoint
    /// does not change this number, because it only moves rows.
    pub(crate) changed: u64,
    view: OnceLock<Arc<[Fragment]>>,
}

impl Partition {
    pub(crate) fn new(segments: Vec<Arc<Segment>>, runs: Vec<Arc<Run>>, changed: u64) -> Self {
        Self { segments, runs, changed, view: OnceLock::new() }
    }

    /// All runs and segments in arrival order.
    pub(crate) fn sources(&self) -> Vec<RowSource> {
        let segments = self.segments.iter().map(|s| RowSource::Segment(Arc::clone(s)));
        let runs = self.runs.iter().map(|run| RowSource::Run(Arc::clone(run)));
        let mut pieces: Vec<RowSource> = segments.chain(runs).collect();
        // The sort is stable, so segments of one transaction keep their order.
        pieces.sort_by_key(RowSource::lsn);
        pieces
    }

    /// Number of rows, excluding deleted rows but including rows that later rows replace.
    pub(crate) fn rows(&self) -> u64 {
        let runs: usize = self.runs.iter().map(|run| run.rows).sum();
        let segments: usize = self.segments.iter().map(|segment| segment.living_rows()).sum();
        (segments + runs) as u64
    }

    /// Latest transaction that added rows.
    pub(crate) fn last_lsn(&self) -> u64 {
        let segments = self.segments.iter().map(|segment| segment.meta.lsn);
        segments.chain(self.runs.iter().map(|run| run.last_lsn)).max().unwrap_or(0)
    }

    /// Files that contain the partition's rows.
    pub(crate) fn files(&self) -> impl Iterator<Item = Arc<StoredFile>> {
        self.segments.iter().map(|segment| Arc::clone(&segment.file))
    }

    /// Whether all of the partition's content is in files, and none of these files must be
    /// rewritten.
    pub(crate) fn is_written(&self) -> bool {
        let in_files = !self.segments.iter().any(|segment| segment.must_be_written(false));
        // A manifest contains no keys, so replaced rows must be removed first.
        self.runs.is_empty() && in_files && !self.upserts()
    }

    /// Whether some runs or segments may replace rows of earlier runs or segments.
    pub(crate) fn upserts(&self) -> bool {
        self.upsert_keys().next().is_some()
    }

    /// Whether this column decides which rows are replaced.
    pub(crate) fn upserts_by(&self, column: u32) -> bool {
        self.upsert_keys().any(|keys| keys.has(column))
    }

    fn upsert_keys(&self) -> impl Iterator<Item = &Arc<UpsertKeys>> {
        let segments = self.segments.iter().filter_map(|segment| segment.upsert.as_ref());
        segments.chain(self.runs.iter().filter_map(|run| run.upsert.as_ref()))
    }

    /// Returns the partition without replaced rows: overlapping runs and segments become one run.
    pub(crate) fn resolved(&self, schema: &TableSchema) -> EngineResult<Self> {
        let Some(timestamp) = schema.timestamp_column() else {
            return Ok(Self::new(self.segments.clone(), self.runs.clone(), self.changed));
        };
        let pieces = self.sources();
        let (mut segments, mut runs) = (Vec::new(), Vec::new());
        for mut cluster in clusters(&pieces) {
            cluster.sort_unstable();
            let sources: Vec<RowSource> =
                cluster.iter().map(|&index| pieces[index].clone()).collect();
            match &sources[..] {
                // A single run or segment has no rows left to replace. If it kept its keys, an
                // update could give several of its rows equal keys, and a later merge would drop
                // all but one of them.
                [RowSource::Segment(segment)] => segments.push(Arc::new(segment.settled())),
                [RowSource::Run(run)] => runs.push(Arc::new(run.settled())),
                _ => runs.push(Arc::new(one_run(&sources, schema, timestamp)?)),
            }
        }
        segments.sort_by_key(|segment| segment.meta.lsn);
        runs.sort_by_key(|run| run.last_lsn);
        Ok(Self::new(segments, runs, self.changed))
    }

    /// Number of rows in [`Self::rows`] that later rows replace. Reads data where runs and segments
    /// with upsert keys overlap.
    pub(crate) fn replaced(&self, timestamp: Option<&ColumnSchema>) -> EngineResult<u64> {
        if !self.upserts() {
            return Ok(0);
        }
        let shown: usize = self.view(timestamp)?.iter().map(|fragment| fragment.rows.len()).sum();
        Ok(self.rows() - shown as u64)
    }

    /// First and last timestamp.
    pub(crate) fn bounds(&self) -> Option<(i64, i64)> {
        let segments = self.segments.iter().map(|segment| segment.bounds());
        let runs = self.runs.iter().map(|run| run.bounds);
        segments.chain(runs).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Maximum number of runs and segments that span one timestamp. Runs and segments that only
    /// touch do not count.
    pub(crate) fn overlap(&self) -> usize {
        let segments = self.segments.iter().map(|segment| segment.bounds());
        let sources = segments.chain(self.runs.iter().map(|run| run.bounds));
        // At equal timestamps, ends come before starts. The only exception is the end of a source
        // with a single timestamp.
        let edges = sources.flat_map(|(first, last)| {
            [(first, 1, 1), (last, if first < last { 0 } else { 2 }, -1)]
        });
        let mut edges: Vec<(i64, u8, isize)> = edges.collect();
        edges.sort_unstable();
        let open = edges.iter().scan(0, |open, (_, _, change)| {
            *open += change;
            Some(*open)
        });
        open.max().unwrap_or(0) as usize
    }

    /// Returns the partition with one more run. Runs of similar size are merged: a million one-row
    /// commits leave about twenty runs, and each row is copied about twenty times. A long run is
    /// not merged.
    pub(crate) fn with_run(
        &self,
        run: Run,
        timestamp: Option<&ColumnSchema>,
        frozen_lsn: u64,
        run_rows: usize,
    ) -> EngineResult<Self> {
        let mut runs = self.runs.clone();
        let changed = run.last_lsn;
        let mut new = Arc::new(run);
        // Two runs are never merged if a segment arrived between them.
        let last_segment = self.segments.iter().map(|segment| segment.meta.lsn).max();
        let kept_lsn = frozen_lsn.max(last_segment.unwrap_or(0));
        let is_long = new.rows >= LONG_RUN_ROWS;
        while let Some(last) = runs.last().filter(|_| !is_long) {
            let small = last.rows <= new.rows.saturating_mul(2);
            let full = last.rows + new.rows > run_rows;
            if !small || full || last.last_lsn <= kept_lsn || last.upsert != new.upsert {
                break;
            }
            new = Arc::new(merge_runs(last, &new, timestamp)?);
            runs.pop();
        }
        runs.push(new);
        Ok(Self::new(self.segments.clone(), runs, changed))
    }

    /// Returns the rows in time order, or in arrival order without a designated timestamp.
    pub(crate) fn view(&self, timestamp: Option<&ColumnSchema>) -> EngineResult<Arc<[Fragment]>> {
        if let Some(view) = self.view.get() {
            return Ok(Arc::clone(view));
        }
        let sources = self.sources();
        let view: Arc<[Fragment]> = match timestamp {
            None => in_order_of_arrival(sources).into(),
            Some(timestamp) => in_time_order(&sources, timestamp)?.into(),
        };
        Ok(Arc::clone(self.view.get_or_init(|| view)))
    }
}

/// Combines the rows to keep from several runs and segments into one run.
pub(crate) fn one_run(
    sources: &[RowSource],
    schema: &TableSchema,
    timestamp: &ColumnSchema,
) -> EngineResult<Run> {
    let times: Vec<_> =
        sources.iter().map(|source| source.timestamps(timestamp)).collect::<Result<_, _>>()?;
    let slices: Vec<&[i64]> = times.iter().map(|times| &times[..]).collect();
    let order = order_of(sources, &slices)?;
    let mut columns = Vec::with_capacity(schema.columns.len());
    for column in &schema.columns {
        let cells = sources.iter().map(|source| source.column(column));
        let cells: Vec<_> = cells.collect::<EngineResult<_>>()?;
        let gathered = ColumnData::gather(column.sql_type, &cells, &order)?;
        columns.push((column.id, column.sql_type, gathered));
    }
    let bounds = sources.iter().map(RowSource::bounds);
    Ok(Run {
        rows: order.iter().map(|range| range.len).sum(),
        columns,
        bounds: bounds.fold((i64::MAX, i64::MIN), |a, b| (a.0.min(b.0), a.1.max(b.1))),
        last_lsn: sources.iter().map(RowSource::lsn).max().unwrap_or(0),
        upsert: None,
    })
}

/// Merges two runs. Among equal timestamps, rows of `first` precede those of `second`.
fn merge_runs(
    first: &Arc<Run>,
    second: &Arc<Run>,
    timestamp: Option<&ColumnSchema>,
) -> EngineResult<Run> {
    let whole = |source, rows| SourceRange { source, start: 0, len: rows };
    let (end, start) = (first.bounds.1, second.bounds.0);
    let in_order = end < start || (end == start && second.upsert.is_none());
    let order = match timestamp {
        Some(timestamp) if !in_order => {
            let pieces = [first, second].map(|run| RowSource::Run(Arc::clone(run)));
            let (a, b) = (pieces[0].timestamps(timestamp)?, pieces[1].timestamps(timestamp)?);
            order_of(&pieces, &[&a, &b])?
        }
        _ => vec![whole(0, first.rows), whole(1, second.rows)],
    };
    let mut columns = Vec::with_capacity(second.columns.len());
    // The definition may have changed in the meantime, so the merged run has the columns of both
    // runs, with nulls where cells are missing.
    let added = first
        .columns
        .iter()
        .filter(|(id, ..)| second.columns.iter().all(|(other, ..)| other != id));
    for (id, sql_type, _) in second.columns.iter().chain(added) {
        let sources =
            [first, second].map(|run| match run.columns.iter().find(|(other, ..)| other == id) {
                Some((_, _, cells)) => Ok(cells.clone()),
                None => ColumnData::nulls(*sql_type, run.rows),
            });
        let [a, b] = sources;
        columns.push((*id, *sql_type, ColumnData::gather(*sql_type, &[a?, b?], &order)?));
    }
    Ok(Run {
        rows: order.iter().map(|range| range.len).sum(),
        columns,
        bounds: (first.bounds.0.min(second.bounds.0), first.bounds.1.max(second.bounds.1)),
        last_lsn: second.last_lsn,
        upsert: second.upsert.clone(),
    })
}

/// Splits overlapping runs and segments into fragments in time order. `pieces` are in arrival
/// order, which decides among equal timestamps.
fn in_time_order(pieces: &[RowSource], timestamp: &ColumnSchema) -> EngineResult<Vec<Fragment>> {
    let mut fragments = Vec::with_capacity(pieces.len());
    for mut cluster in clusters(pieces) {
        if let [single] = cluster[..]
            && pieces[single].dead().is_none()
        {
            fragments.push(Fragment::of_source(pieces[single].clone()));
            continue;
        }
        cluster.sort_unstable();
        let sources: Vec<RowSource> = cluster.iter().map(|&index| pieces[index].clone()).collect();
        merge_cluster(&sources, timestamp, &mut fragments)?;
    }
    Ok(fragments)
}

/// Groups runs and segments that overlap in time; the groups are in time order. Two items that only
/// share a boundary timestamp overlap in two cases: the item that must come second arrived first,
/// or that item may replace rows of the first.
pub(crate) fn clusters(sources: &[RowSource]) -> Vec<Vec<usize>> {
    let mut by_time: Vec<usize> = (0..sources.len()).collect();
    by_time.sort_by_key(|&index| (sources[index].bounds(), index));
    let mut clusters: Vec<(i64, Vec<usize>)> = Vec::new();
    for index in by_time {
        let (min, max) = sources[index].bounds();
        let (mut end, mut members) = (max, vec![index]);
        while let Some((last_end, last)) = clusters.last() {
            let meet = || sources[index].upsert().is_some() || last.iter().any(|&o| o > index);
            if min > *last_end || (min == *last_end && !meet()) {
                break;
            }
            end = end.max(*last_end);
            members.extend(last);
            clusters.pop();
        }
        clusters.push((end, members));
    }
    clusters.into_iter().map(|(_, members)| members).collect()
}

fn merge_cluster(
    sources: &[RowSource],
    timestamp: &ColumnSchema,
    fragments: &mut Vec<Fragment>,
) -> EngineResult<()> {
    let times: Vec<_> =
        sources.iter().map(|source| source.timestamps(timestamp)).collect::<Result<_, _>>()?;
    let slices: Vec<&[i64]> = times.iter().map(|times| &times[..]).collect();
    let bounds = |ranges: &[SourceRange]| {
        let first = ranges.first().map_or(0, |s| slices[s.source][s.start]);
        let last = ranges.last().map_or(0, |s| slices[s.source][s.start + s.len - 1]);
        (first, last)
    };
    add_fragments(sources, order_of(sources, &slices)?, &bounds, fragments);
    Ok(())
}

/// Returns the fragments for a table without a designated timestamp.
fn in_order_of_arrival(pieces: Vec<RowSource>) -> Vec<Fragment> {
    let mut fragments = Vec::with_capacity(pieces.len());
    for piece in pieces {
        if piece.dead().is_none() {
            fragments.push(Fragment::of_source(piece));
            continue;
        }
        let whole = vec![SourceRange { source: 0, start: 0, len: piece.rows() }];
        let sources = [piece];
        add_fragments(&sources, living(whole, &sources), &|_| (0, 0), &mut fragments);
    }
    fragments
}

/// Adds fragments for a row order. Long ranges are read in place; short ranges are copied together.
fn add_fragments(
    sources: &[RowSource],
    order: Vec<SourceRange>,
    bounds: &dyn Fn(&[SourceRange]) -> (i64, i64),
    fragments: &mut Vec<Fragment>,
) {
    let mut short: Vec<SourceRange> = Vec::new();
    let mut short_rows = 0;
    let copy = |short: &mut Vec<SourceRange>, fragments: &mut Vec<Fragment>| {
        if !short.is_empty() {
            let order = std::mem::take(short);
            let merged = Merged::new(sources.to_vec(), order.clone(), bounds(&order));
            fragments.push(Fragment::of_source(RowSource::Merged(Arc::new(merged))));
        }
    };
    for range in order {
        if range.len >= READ_IN_PLACE_ROWS {
            copy(&mut short, fragments);
            short_rows = 0;
            fragments.push(Fragment {
                source: sources[range.source].clone(),
                rows: range.start..range.start + range.len,
                bounds: bounds(&[range]),
            });
        } else {
            short_rows += range.len;
            short.push(range);
            if short_rows >= MERGED_ROWS {
                copy(&mut short, fragments);
                short_rows = 0;
            }
        }
    }
    copy(&mut short, fragments);
}
