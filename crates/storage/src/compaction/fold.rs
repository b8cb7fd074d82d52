//! Decides which runs and segments of a partition a checkpoint rewrites, and in which row order.
//!
//! Runs must be written to disk. A segment is rewritten only if the benefit justifies the cost, so
//! the write cost per row is bounded for every arrival order:
//!
//! - A segment that overlaps newer rows is merged with them once it has at most [`MERGE_RATIO`]
//!   times as many rows. Until then, the newer rows become an overlapping segment, and readers
//!   merge the two. A merge therefore rewrites at most `MERGE_RATIO` old rows per new row, and at
//!   most about eight segments overlap at any time.
//! - Adjacent segments are combined if their sizes are similar. A row is therefore rewritten only
//!   if its segment grows by at least half.
//! - If there are more than [`SMALL_SEGMENTS`] small segments, they are combined regardless of
//!   their sizes, which rewrites at most [`SMALL_ROWS`] old rows. At most `9 + 2 * rows /
//!   SMALL_ROWS` segments that do not overlap therefore remain.
//!
//! When disk space is low and a fold is lean, no segment is rewritten for these reasons.
//!
//! Rows that replace earlier rows by DEDUP keys are always merged with them, and patched segments
//! are always rewritten. Parquet files are retained until their rows are changed or replaced.

use std::sync::Arc;

use arrow_buffer::ScalarBuffer;
use tidemark_types::EngineResult;

use crate::segment::Segment;
use crate::table::merge::SourceRange;
use crate::table::partition::{Partition, clusters};
use crate::table::row_source::living;
use crate::table::row_source::{RowSource, order_of};
use crate::table::schema::ColumnSchema;

/// Segments with fewer rows count as small. If a partition has many small segments, they are
/// combined.
const SMALL_ROWS: usize = 64 << 10;
/// Maximum number of small segments per partition.
const SMALL_SEGMENTS: usize = 8;
/// Maximum number of rows of an old segment that are rewritten for each new row in its time range.
const MERGE_RATIO: usize = 8;

/// One segment of the folded partition.
#[derive(Debug)]
pub(crate) enum Output {
    /// A segment that remains unchanged.
    Unchanged(Arc<Segment>),
    /// A segment to be written.
    Written {
        sources: Vec<RowSource>,
        order: Vec<SourceRange>,
        bounds: (i64, i64),
        /// Latest transaction in the segment.
        lsn: u64,
    },
}

/// Runs and segments that become one segment, or several if there are many rows.
#[derive(Debug)]
struct Group {
    /// Indices in arrival order.
    members: Vec<usize>,
    rows: usize,
    bounds: (i64, i64),
    lsn: u64,
    /// Whether the group must be written to disk. Only a group that consists of a single unchanged
    /// segment need not be written.
    dirty: bool,
    /// Whether the group should be combined with an adjacent group.
    joins: bool,
    /// Whether the group consists of in-memory runs only.
    fresh: bool,
    /// Last timestamp of the retained segments that this group overlaps, if any. A group that
    /// overlaps them is never combined with an adjacent group, and it is split at this timestamp.
    overlaps_until: Option<i64>,
}

impl Group {
    fn of(sources: &[RowSource], members: Vec<usize>, many: bool, lean: bool) -> Self {
        let of = |index: &usize| &sources[*index];
        let bounds = members.iter().map(|i| of(i).bounds());
        let is_dirty = |source: &RowSource| match source {
            RowSource::Segment(segment) => segment.must_be_written(lean),
            _ => true,
        };
        let dirty = members.len() > 1 || members.iter().any(|i| is_dirty(of(i)));
        let rows = members.iter().map(|i| of(i).rows()).sum();
        Self {
            rows,
            bounds: bounds.fold((i64::MAX, i64::MIN), |a, b| (a.0.min(b.0), a.1.max(b.1))),
            lsn: members.iter().map(|i| of(i).lsn()).max().unwrap_or(0),
            dirty,
            joins: dirty || (many && rows < SMALL_ROWS),
            fresh: members.iter().all(|i| matches!(of(i), RowSource::Run(_))),
            members,
            overlaps_until: None,
        }
    }

    fn join(&mut self, other: Self) {
        self.members.extend(other.members);
        self.rows += other.rows;
        self.bounds = (self.bounds.0.min(other.bounds.0), self.bounds.1.max(other.bounds.1));
        self.lsn = self.lsn.max(other.lsn);
        self.dirty = true;
        self.joins = true;
        self.fresh &= other.fresh;
    }
}

/// Plans the folded partition's segments. `lean` retains every segment that need not change.
pub(crate) fn plan_fold(
    partition: &Partition,
    timestamp: Option<&ColumnSchema>,
    segment_rows: usize,
    lean: bool,
) -> EngineResult<Vec<Output>> {
    let (files, sources) = apart(partition.sources(), lean);
    let small = sources.iter().filter(|source| source.rows() < SMALL_ROWS).count();
    let many = small > SMALL_SEGMENTS && !lean;
    let mut groups = Vec::new();
    match timestamp {
        Some(timestamp) => {
            for mut cluster in clusters(&sources) {
                cluster.sort_unstable();
                let retained = worth_keeping(&sources, &cluster, many, lean, timestamp)?;
                let until = retained.iter().map(|&index| sources[index].bounds().1).max();
                cluster.retain(|index| !retained.contains(index));
                let apart = |index: usize| Group {
                    overlaps_until: until,
                    ..Group::of(&sources, vec![index], false, lean)
                };
                groups.extend(retained.iter().copied().map(apart));
                if !cluster.is_empty() {
                    let rest = Group::of(&sources, cluster, many, lean);
                    groups.push(Group { overlaps_until: until, ..rest });
                }
            }
        }
        None => groups.extend((0..sources.len()).map(|i| Group::of(&sources, vec![i], many, lean))),
    }
    let mut outputs = Vec::with_capacity(groups.len() + files.len());
    outputs.extend(files.into_iter().map(Output::Unchanged));
    for group in join_neighbours(groups, many, lean, segment_rows) {
        write_group(&sources, group, timestamp, segment_rows, &mut outputs)?;
    }
    Ok(outputs)
}

/// Returns the segments of an overlapping cluster that should be retained, because merging them
/// with the newer rows in their time range is not worthwhile. `cluster` is in arrival order. The
/// merged rows follow the retained segments in arrival order, so a segment can be retained only
/// with all older segments that it overlaps.
fn worth_keeping(
    sources: &[RowSource],
    cluster: &[usize],
    many: bool,
    lean: bool,
    timestamp: &ColumnSchema,
) -> EngineResult<Vec<usize>> {
    let mut retained: Vec<usize> = Vec::new();
    // Rows replaced by DEDUP keys must disappear from disk.
    if cluster.len() < 2 || cluster.iter().any(|&index| sources[index].upsert().is_some()) {
        return Ok(retained);
    }
    let meet = |a: (i64, i64), b: (i64, i64)| a.0 <= b.1 && b.0 <= a.1;
    let mut merged: Vec<ScalarBuffer<i64>> = Vec::new();
    let is_worth = |old: &RowSource, inside: usize| {
        let small = many && old.rows() < SMALL_ROWS;
        small || old.rows() <= inside.saturating_mul(MERGE_RATIO)
    };
    for (at, &index) in cluster.iter().enumerate().rev() {
        let source = &sources[index];
        let bounds = source.bounds();
        let over_kept = retained.iter().any(|&newer| meet(sources[newer].bounds(), bounds));
        let is_clean =
            matches!(source, RowSource::Segment(segment) if !segment.must_be_written(lean));
        if over_kept && !is_clean {
            return Ok(Vec::new()); // It must be written, so all segments are merged.
        }
        let inside = merged.iter().map(|times: &ScalarBuffer<i64>| rows_within(times, bounds));
        // Retaining a small segment would force all older segments that it overlaps to be retained
        // as well.
        let all = merged.iter().map(ScalarBuffer::len).sum();
        let slight = source.rows() < SMALL_ROWS.min(all);
        let pays = || slight || is_worth(source, inside.sum());
        let mut merges = !is_clean || (!lean && !over_kept && pays());
        if !merges && !over_kept && !lean {
            // A segment from a bulk write may itself have enough rows to justify merging the
            // segments before it.
            let times = source.timestamps(timestamp)?;
            let older = cluster[..at].iter().map(|&older| &sources[older]);
            merges = older
                .filter(|older| meet(older.bounds(), bounds))
                .any(|older| is_worth(older, rows_within(&times, older.bounds())));
        }
        if merges {
            merged.push(source.timestamps(timestamp)?);
        } else {
            retained.push(index);
        }
    }
    // Restores the arrival order, including the order of segments from the same transaction.
    retained.reverse();
    Ok(retained)
}

/// Counts the timestamps within the bounds. The timestamps are ascending.
fn rows_within(times: &[i64], (first, last): (i64, i64)) -> usize {
    times.partition_point(|&ts| ts <= last) - times.partition_point(|&ts| ts < first)
}

/// Separates the Parquet files that remain unchanged. If rows were only added, the new rows are
/// stored alongside the files. Once any row in a file is changed or replaced, all files are
/// converted to native segments, so native segments are always newer than Parquet files.
fn apart(sources: Vec<RowSource>, lean: bool) -> (Vec<Arc<Segment>>, Vec<RowSource>) {
    let is_parquet =
        |source: &&RowSource| matches!(source, RowSource::Segment(s) if s.is_parquet());
    let changed = sources.iter().filter(is_parquet).any(|file| {
        let (first, last) = file.bounds();
        let replaces = |source: &RowSource| {
            let (start, end) = source.bounds();
            source.upsert().is_some() && start <= last && end >= first
        };
        matches!(file, RowSource::Segment(s) if s.must_be_written(lean))
            || sources.iter().any(replaces)
    });
    if changed {
        return (Vec::new(), sources);
    }
    let (mut retained, mut others) = (Vec::new(), Vec::with_capacity(sources.len()));
    for source in sources {
        match source {
            RowSource::Segment(segment) if segment.is_parquet() => retained.push(segment),
            source => others.push(source),
        }
    }
    (retained, others)
}

/// Combines each group that must be written anyway with adjacent groups of similar size. Also
/// combines adjacent groups that share a boundary timestamp and would otherwise be in the wrong
/// order.
fn join_neighbours(groups: Vec<Group>, many: bool, lean: bool, segment_rows: usize) -> Vec<Group> {
    let small = if many { SMALL_ROWS } else { 0 };
    let limits = limits(&groups);
    let mut joined: Vec<Group> = Vec::with_capacity(groups.len());
    for (mut group, limit) in groups.into_iter().zip(limits) {
        while let Some(left) = joined.last() {
            let either = left.joins || group.joins;
            let apart = left.overlaps_until.or(group.overlaps_until).is_some();
            let (less, more) = (left.rows.min(group.rows), left.rows.max(group.rows));
            let fresh = left.fresh && group.fresh;
            let alike = fresh || (!lean && more <= less.saturating_mul(2).max(small));
            let stays = left.lsn.max(group.lsn) <= limit;
            let fits = left.rows + group.rows <= segment_rows && stays;
            let crossed = left.bounds.1 == group.bounds.0 && left.lsn > group.lsn;
            if apart || !(either && (alike && fits || crossed)) {
                break;
            }
            if let Some(mut left) = joined.pop() {
                left.join(group);
                group = left;
            }
        }
        joined.push(group);
    }
    joined
}

/// Returns, for each group, the latest transaction that may be added to the group. Adding a later
/// transaction would move the group's rows behind rows with equal timestamps in the next group,
/// unless the next group is added as well.
fn limits(groups: &[Group]) -> Vec<u64> {
    let mut limits = vec![u64::MAX; groups.len()];
    // Earliest start of all following groups, and the limit that applies to a group ending there.
    let mut next = (i64::MAX, u64::MAX);
    for (limit, group) in limits.iter_mut().zip(groups).rev() {
        let (first, last) = group.bounds;
        if next.0 == last {
            *limit = next.1;
        }
        // If the group can itself be combined with the next group, the next group's limit applies.
        let own = if group.overlaps_until.is_some() { group.lsn } else { *limit };
        if first < next.0 {
            next = (first, own);
        } else if first == next.0 {
            next.1 = next.1.min(own);
        }
    }
    limits
}

fn write_group(
    pieces: &[RowSource],
    mut group: Group,
    timestamp: Option<&ColumnSchema>,
    segment_rows: usize,
    outputs: &mut Vec<Output>,
) -> EngineResult<()> {
    if let ([single], false) = (&group.members[..], group.dirty)
        && let RowSource::Segment(segment) = &pieces[*single]
    {
        outputs.push(Output::Unchanged(Arc::clone(segment)));
        return Ok(());
    }
    group.members.sort_unstable();
    let sources: Vec<RowSource> =
        group.members.iter().map(|&index| pieces[index].clone()).collect();
    let whole =
        |(source, piece): (usize, &RowSource)| SourceRange { source, start: 0, len: piece.rows() };
    let Some(timestamp) = timestamp else {
        let order = living(sources.iter().enumerate().map(whole).collect(), &sources);
        for order in split(order, segment_rows) {
            let (pieces, lsn) = (sources.clone(), group.lsn);
            outputs.push(Output::Written { sources: pieces, order, bounds: (0, 0), lsn });
        }
        return Ok(());
    };
    let times: Vec<_> =
        sources.iter().map(|piece| piece.timestamps(timestamp)).collect::<Result<_, _>>()?;
    let slices: Vec<&[i64]> = times.iter().map(|times| &times[..]).collect();
    let mut late = order_of(&sources, &slices)?;
    // New rows after all retained segments should not appear to overlap them.
    let tail = group.overlaps_until.map(|until| cut_after(&mut late, &slices, until));
    let tail = tail.unwrap_or_default();
    for order in split(late, segment_rows).into_iter().chain(split(tail, segment_rows)) {
        let first = order.first().map_or(0, |s| slices[s.source][s.start]);
        let last = order.last().map_or(0, |s| slices[s.source][s.start + s.len - 1]);
        let (pieces, lsn) = (sources.clone(), group.lsn);
        outputs.push(Output::Written { sources: pieces, order, bounds: (first, last), lsn });
    }
    Ok(())
}

/// Removes the rows after `until` from a row order and returns them.
fn cut_after(order: &mut Vec<SourceRange>, times: &[&[i64]], until: i64) -> Vec<SourceRange> {
    let cut = order.partition_point(|s| times[s.source][s.start] <= until);
    let mut tail = order.split_off(cut);
    if let Some(last) = order.last_mut() {
        let rows = &times[last.source][last.start..last.start + last.len];
        let len = rows.partition_point(|&ts| ts <= until);
        if len < last.len {
            let (start, rest) = (last.start + len, last.len - len);
            tail.insert(0, SourceRange { start, len: rest, ..*last });
            last.len = len;
        }
    }
    tail
}

/// Splits a row order into non-empty portions of at most `rows` rows.
pub(crate) fn split(order: Vec<SourceRange>, rows: usize) -> Vec<Vec<SourceRange>> {
    if !order.is_empty() && order.iter().map(|range| range.len).sum::<usize>() <= rows {
        return vec![order];
    }
    let mut portions = Vec::new();
    let mut portion = Vec::new();
    let mut remaining = rows.max(1);
    for mut range in order {
        while range.len > remaining {
            if remaining > 0 {
                portion.push(SourceRange { len: remaining, ..range });
            }
            portions.push(std::mem::take(&mut portion));
            range.start += remaining;
            range.len -= remaining;
            remaining = rows.max(1);
        }
        remaining -= range.len;
        if range.len > 0 {
            portion.push(range);
        }
    }
    if !portion.is_empty() {
        portions.push(portion);
    }
    portions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_returns_full_portions_and_no_empty_ranges() {
        let range = |start, len| SourceRange { source: 0, start, len };
        let portions = split(vec![range(0, 3), range(3, 7), range(10, 5)], 5);
        let sizes: Vec<usize> = portions.iter().map(|p| p.iter().map(|s| s.len).sum()).collect();
        assert_eq!(sizes, [5, 5, 5]);
        assert!(portions.iter().flatten().all(|s| s.len > 0));
        assert_eq!(portions[1], [range(5, 5)]);
    }
}
