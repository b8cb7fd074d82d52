//! Time ranges in which a table's rows changed, and the transactions that changed them. A
//! materialized view must recompute these ranges.
//!
//! A table is watched after a [`Watch`](crate::Change::Watch). Every step that changes its rows
//! adds the ranges it touched, so replaying the log yields the same ranges. A checkpoint writes
//! them with the other records. The number of ranges is limited; above the limit, neighbouring
//! ranges are merged. A range may be longer than the touched time, but never shorter.
//!
//! Partitions that expired or were removed by a statement do not count as touched, because results
//! computed from them are retained. Their ranges are stored in a separate list, because in these
//! ranges a view differs from the current result of its query.

use tidemark_types::EngineResult;

use crate::log::codec::{Decoder, Encoder};
use crate::mutation::retire::PartitionAction;
use crate::segment::column;
use crate::snapshot::Snapshot;
use crate::state::op::{Append, Op};
use crate::table::TableSnapshot;
use crate::table::partition::Partition;
use crate::table::records::{MATERIALIZED_RECORDS, TOUCHED_RECORDS};
use crate::table::schema::{ColumnSchema, TableId, TableSchema};
use crate::table::time_range::Span;

/// Maximum number of ranges per table.
const MAX_RANGES: usize = 1_024;
/// Rows added by one step form one range, unless they contain a gap longer than their total time
/// span divided by this number. A step therefore adds at most this many ranges.
const GAP_DIVISOR: i64 = 256;

/// Size of a range in the record, in bytes.
const RANGE_BYTES: usize = 24;
/// Size in bytes of the data that precedes the ranges in records of an older format. That format
/// did not track whether rows were added in order.
const OLDER_HEAD_BYTES: usize = 16;
/// Transaction number assumed for removed ranges in records of the older format.
const OLDER_REMOVAL: u64 = 0;

/// A time range in which rows were added, removed or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TouchedRange {
    /// First timestamp, in the unit of the designated timestamp.
    pub first: i64,
    /// Last timestamp, inclusive.
    pub last: i64,
    /// Latest transaction that touched the range.
    pub lsn: u64,
}

/// Touched time ranges of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    /// All changes after this transaction are included.
    pub since: u64,
    /// Latest transaction that touched the table since watching began, or the transaction that
    /// started the watching.
    pub last: u64,
    /// Latest transaction that changed existing rows, or added rows before existing rows. All later
    /// transactions only added rows at the end.
    pub disordered: u64,
    /// Ascending and disjoint.
    pub ranges: Vec<TouchedRange>,
    /// Ranges whose rows were removed as whole partitions, by a statement or a time to live.
    /// Ascending and disjoint.
    pub retired: Vec<TouchedRange>,
}

impl Touched {
    /// Returns the ranges touched after a transaction, ascending and disjoint; `None` if they are
    /// no longer known.
    #[must_use]
    pub fn after(&self, lsn: u64) -> Option<Vec<Span>> {
        if lsn < self.since {
            return None;
        }
        let later = self.ranges.iter().filter(|range| range.lsn > lsn);
        Some(later.map(|range| (range.first, range.last)).collect())
    }

    /// Ranges whose rows were removed and in which no row has been added or changed since. Results
    /// computed from the removed rows are retained. Once such a later change is forgotten, the
    /// changed range counts as removed again.
    #[must_use]
    pub fn removed(&self) -> Vec<Span> {
        let mut dropped = Vec::new();
        for one in &self.retired {
            let mut from = Some(one.first);
            let later = self.ranges.iter().filter(|range| range.lsn > one.lsn);
            for range in later.filter(|range| range.last >= one.first) {
                let Some(first) = from.filter(|from| *from <= one.last) else { break };
                if range.first > first {
                    dropped.push((first, (range.first - 1).min(one.last)));
                }
                from = range.last.checked_add(1).map(|next| next.max(first));
            }
            dropped.extend(from.filter(|from| *from <= one.last).map(|from| (from, one.last)));
        }
        dropped
    }

    /// Creates an empty list of ranges for a table that is watched starting with this transaction.
    pub(super) fn from(lsn: u64) -> Self {
        Self { since: lsn, last: lsn, disordered: lsn, ..Self::default() }
    }

    pub(super) fn add(&mut self, span: Span, lsn: u64) {
        self.last = self.last.max(lsn);
        put(&mut self.ranges, span, Some(lsn));
    }

    fn forget(&mut self, through: u64) {
        self.ranges.retain(|range| range.lsn > through);
        self.since = self.since.max(through);
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.u64(self.since);
        out.u64(self.last);
        out.u64(self.disordered);
        out.u64(self.retired.len() as u64);
        for range in self.retired.iter().chain(&self.ranges) {
            out.i64(range.first);
            out.i64(range.last);
            out.u64(range.lsn);
        }
        out.bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> EngineResult<Self> {
        let mut input = Decoder::new(bytes);
        let (since, last) = (input.u64()?, input.u64()?);
        let is_older = bytes.len() % RANGE_BYTES == OLDER_HEAD_BYTES;
        let (disordered, retired) = if is_older { (last, 0) } else { (input.u64()?, input.u64()?) };
        let mut row_ranges = Vec::new();
        while !input.is_empty() {
            let (first, last, lsn) = (input.i64()?, input.i64()?, input.u64()?);
            row_ranges.push(TouchedRange { first, last, lsn });
        }
        let (retired, row_ranges) = if is_older {
            row_ranges.into_iter().partition(|range| range.lsn == OLDER_REMOVAL)
        } else {
            let retired = usize::try_from(retired).unwrap_or(usize::MAX).min(row_ranges.len());
            let later = row_ranges.split_off(retired);
            (row_ranges, later)
        };
        Ok(Self { since, last, disordered, ranges: row_ranges, retired })
    }
}

/// Sets a range's transaction; without a transaction, removes the range.
fn put(ranges: &mut Vec<TouchedRange>, (first, last): Span, lsn: Option<u64>) {
    let start = ranges.partition_point(|range| range.last < first);
    let end = ranges.partition_point(|range| range.first <= last).max(start);
    let mut new = Vec::with_capacity(3);
    if let Some(before) = ranges[start..end].first().filter(|one| one.first < first) {
        new.push(TouchedRange { last: first - 1, ..*before });
    }
    new.extend(lsn.map(|lsn| TouchedRange { first, last, lsn }));
    if let Some(after) = ranges[start..end].last().filter(|one| one.last > last) {
        new.push(TouchedRange { first: last + 1, ..*after });
    }
    ranges.splice(start..end, new);
    while ranges.len() > MAX_RANGES {
        join_nearest(ranges);
    }
}

/// Merges the two ranges with the smallest gap between them.
fn join_nearest(ranges: &mut Vec<TouchedRange>) {
    let gap = |pair: &[TouchedRange]| pair[1].first.saturating_sub(pair[0].last);
    let nearest = ranges.windows(2).enumerate().min_by_key(|(_, pair)| gap(pair));
    let Some((index, _)) = nearest else { return };
    let next = ranges.remove(index + 1);
    let one = &mut ranges[index];
    one.last = next.last;
    one.lsn = one.lsn.max(next.lsn);
}

impl Snapshot {
    /// Touched ranges of a table; `None` if the table is not watched.
    #[must_use]
    pub fn touched(&self, table: TableId) -> Option<Touched> {
        Touched::decode(self.touched_record(table)?).ok()
    }

    /// A table's touched ranges in encoded form. If two encodings are equal, nothing has been
    /// touched in between.
    #[must_use]
    pub fn touched_record(&self, table: TableId) -> Option<&[u8]> {
        self.record(TOUCHED_RECORDS, &table.to_string())
    }

    fn put_touched(&mut self, table: TableId, touched: &Touched) {
        self.put_record(TOUCHED_RECORDS, &table.to_string(), touched.encode().into());
    }
}

/// Starts watching a table, or forgets the ranges touched up to a transaction.
pub(crate) fn watch(snapshot: &mut Snapshot, table: TableId, through: u64, lsn: u64) {
    let known = snapshot.touched(table);
    let mut touched = known.unwrap_or_else(|| Touched::from(lsn));
    touched.forget(through);
    snapshot.put_touched(table, &touched);
}

/// Changes that a step makes to a watched table's rows.
pub(crate) struct Touch {
    /// Ranges in which rows are added, removed or changed.
    spans: Vec<Span>,
    /// Whether the step only adds rows at the end.
    in_order: bool,
    /// Ranges whose rows are removed together with whole partitions.
    retires: Vec<Span>,
    /// Ranges whose removed rows are restored.
    restores: Vec<Span>,
}

/// Determines which changes a step will make to a watched table.
pub(crate) fn touch(snapshot: &Snapshot, op: &Op) -> EngineResult<Option<Touch>> {
    let Some(id) = op.table() else { return Ok(None) };
    if snapshot.record(TOUCHED_RECORDS, &id.to_string()).is_none() {
        return Ok(None);
    }
    let Some(table) = snapshot.table_by_id(id) else { return Ok(None) };
    let Some(spans) = spans_of(snapshot, op, id)? else { return Ok(None) };
    let mut touch = Touch { spans, in_order: false, retires: Vec::new(), restores: Vec::new() };
    match op {
        Op::Partitions(op) if op.action == PartitionAction::Attach => {
            touch.restores = partitions(table.schema(), &op.floors);
        }
        Op::Partitions(op) => {
            if op.action != PartitionAction::DropDetached {
                touch.retires = partitions(table.schema(), &op.floors);
            }
            touch.spans.clear();
            touch.in_order = true;
        }
        // TRUNCATE removes the rows in all ranges. If the table is a materialized view, the view is
        // recomputed instead.
        Op::Truncate(_) if !is_materialized(snapshot, id) => {
            touch.spans.clear();
            touch.retires.extend(table.time_bounds());
            touch.in_order = true;
        }
        Op::Append(_) | Op::Adopt(_) => touch.in_order = is_after(&table, &touch.spans),
        _ => {}
    }
    Ok(Some(touch))
}

/// Time ranges of whole partitions; adjacent partitions form one range.
fn partitions(schema: &TableSchema, floors: &[i64]) -> Vec<Span> {
    let mut floors = floors.to_vec();
    floors.sort_unstable();
    let mut spans: Vec<Span> = Vec::with_capacity(floors.len());
    for floor in floors {
        let last = schema.partition_ceil(floor).saturating_sub(1);
        match spans.last_mut() {
            Some(open) if open.1.checked_add(1) == Some(floor) => open.1 = last,
            _ => spans.push((floor, last)),
        }
    }
    spans
}

fn is_materialized(snapshot: &Snapshot, table: TableId) -> bool {
    snapshot.record(MATERIALIZED_RECORDS, &table.to_string()).is_some()
}

/// Whether rows in these ranges follow all existing rows of a table. Rows with equal timestamps are
/// in arrival order, but a row that replaces an earlier row takes that row's position.
fn is_after(table: &TableSnapshot, spans: &[Span]) -> bool {
    let Some((_, last)) = table.time_bounds() else { return true };
    let first = spans.iter().map(|span| span.0).min().unwrap_or(i64::MAX);
    first > last || (first == last && table.schema().dedup_keys.is_empty())
}

/// Returns the ranges in which a step will add, remove or change rows; `None` if it changes no
/// rows.
pub(super) fn spans_of(
    snapshot: &Snapshot,
    op: &Op,
    id: TableId,
) -> EngineResult<Option<Vec<Span>>> {
    let Some(table) = snapshot.table_by_id(id) else { return Ok(None) };
    let whole = |floor: &i64| (*floor, table.schema().partition_ceil(*floor).saturating_sub(1));
    let spans = match op {
        Op::Append(append) => appended(&table, append)?,
        Op::Adopt(adopt) => adopt.segments.iter().map(|(_, meta)| meta.bounds).collect(),
        Op::Truncate(_) => vec![(i64::MIN, i64::MAX)],
        Op::Partitions(op) if op.action == PartitionAction::DropDetached => Vec::new(),
        Op::Partitions(op) => op.floors.iter().map(whole).collect(),
        // Large updates arrive as conversions. The cells of a conversion are not examined.
        Op::Convert(convert) => convert.partitions.iter().map(|(floor, _)| whole(floor)).collect(),
        Op::Update(update) => {
            let partitions = update
                .partitions
                .iter()
                .map(|partition| (partition.floor, partition.rows.as_slice()));
            changed(&table, partitions)?
        }
        Op::Delete(delete) => changed(
            &table,
            delete.partitions.iter().map(|(floor, rows)| (*floor, rows.as_slice())),
        )?,
        Op::Skip(_) => vec![(i64::MIN, i64::MAX)],
        Op::CreateTable(_)
        | Op::DropTable(_)
        | Op::ReplaceSchema(_)
        | Op::Watch { .. }
        | Op::Follow { .. } => {
            return Ok(None);
        }
        Op::PutRecord { .. } | Op::DeleteRecord { .. } => return Ok(None),
    };
    Ok(Some(joined(spans)))
}

/// Records the ranges that a step touched, after it was applied.
pub(crate) fn note(snapshot: &mut Snapshot, op: &Op, touch: Option<Touch>, lsn: u64) {
    let (Some(id), Some(touch)) = (op.table(), touch) else { return };
    if touch.spans.is_empty() && touch.retires.is_empty() {
        return;
    }
    let Some(mut touched) = snapshot.touched(id) else { return };
    if !touch.in_order {
        touched.disordered = lsn;
    }
    for span in touch.spans {
        touched.add(span, lsn);
    }
    for span in touch.retires {
        put(&mut touched.retired, span, Some(lsn));
    }
    for span in touch.restores {
        put(&mut touched.retired, span, None);
    }
    snapshot.put_touched(id, &touched);
}

fn appended(table: &TableSnapshot, append: &Append) -> EngineResult<Vec<Span>> {
    let Some(timestamp) = table.schema().timestamp_column() else { return Ok(Vec::new()) };
    let cells = append.columns.iter().find(|(id, ..)| *id == timestamp.id);
    let Some((_, _, cells)) = cells else { return Ok(Vec::new()) };
    let times = column::timestamps(cells.array())?;
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return Ok(Vec::new()) };
    let gap = last.saturating_sub(*first) / GAP_DIVISOR;
    let mut spans = vec![(*first, *first)];
    for &time in &times {
        match spans.last_mut() {
            Some(open) if time.saturating_sub(open.1) <= gap => open.1 = time,
            _ => spans.push((time, time)),
        }
    }
    Ok(spans)
}

/// Returns the time ranges of rows identified by their positions in partitions.
fn changed<'a>(
    table: &TableSnapshot,
    partitions: impl Iterator<Item = (i64, &'a [(u64, u64)])>,
) -> EngineResult<Vec<Span>> {
    let Some(timestamp) = table.schema().timestamp_column() else { return Ok(Vec::new()) };
    let mut spans = Vec::new();
    for (floor, rows) in partitions {
        if let Some(partition) = table.partition(floor) {
            spans_of_rows(partition, timestamp, rows, &mut spans)?;
        }
    }
    Ok(spans)
}

fn spans_of_rows(
    partition: &Partition,
    timestamp: &ColumnSchema,
    rows: &[(u64, u64)],
    spans: &mut Vec<Span>,
) -> EngineResult<()> {
    let view = partition.view(Some(timestamp))?;
    let mut required = rows.iter().copied().filter(|(_, len)| *len > 0).peekable();
    let mut start = 0;
    for fragment in view.iter() {
        let end = start + fragment.rows.len() as u64;
        let times = fragment.source.timestamps(timestamp)?;
        let times = &times[fragment.rows.clone()];
        while let Some(&(row, len)) = required.peek()
            && row < end
        {
            let first = row.max(start) - start;
            let last = (row + len).min(end) - start - 1;
            spans.push((times[first as usize], times[last as usize]));
            if row + len > end {
                break;
            }
            required.next();
        }
        start = end;
    }
    Ok(())
}

/// Sorts ranges. If there are many, merges those near each other.
fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let (Some(first), Some(last)) = (spans.first(), spans.iter().map(|span| span.1).max()) else {
        return spans;
    };
    let gap = if spans.len() > GAP_DIVISOR as usize {
        last.saturating_sub(first.0) / GAP_DIVISOR
    } else {
        0
    };
    let mut joined: Vec<Span> = Vec::with_capacity(spans.len().min(GAP_DIVISOR as usize));
    for span in spans {
        match joined.last_mut() {
            Some(open) if span.0.saturating_sub(open.1) <= gap => open.1 = open.1.max(span.1),
            _ => joined.push(span),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: i64, last: i64, lsn: u64) -> TouchedRange {
        TouchedRange { first, last, lsn }
    }

    #[test]
    fn a_later_change_overrides_earlier_changes_of_the_same_range() {
        let mut touched = Touched::default();
        touched.add((0, 100), 1);
        touched.add((40, 60), 2);
        touched.add((200, 300), 3);
        touched.add((90, 210), 4);
        let expected = vec![
            range(0, 39, 1),
            range(40, 60, 2),
            range(61, 89, 1),
            range(90, 210, 4),
            range(211, 300, 3),
        ];
        assert_eq!(touched.ranges, expected);
        assert_eq!(touched.after(2), Some(vec![(90, 210), (211, 300)]));
        put(&mut touched.retired, (0, 50), Some(3));
        put(&mut touched.retired, (20, 30), None);
        assert_eq!(touched.retired, vec![range(0, 19, 3), range(31, 50, 3)]);
        assert_eq!(Touched::decode(&touched.encode()).unwrap(), touched);
        touched.forget(2);
        assert_eq!(touched.ranges, vec![range(90, 210, 4), range(211, 300, 3)]);
        assert_eq!(touched.after(1), None);
        assert_eq!(touched.after(4), Some(Vec::new()));
    }

    #[test]
    fn a_removed_range_is_reported_until_it_is_touched_again() {
        let mut touched = Touched::default();
        touched.add((30, 40), 1);
        put(&mut touched.retired, (20, 99), Some(2));
        put(&mut touched.retired, (0, 19), Some(3));
        assert_eq!(touched.removed(), vec![(0, 19), (20, 99)]);
        assert_eq!(touched.after(0), Some(vec![(30, 40)]));
        touched.add((15, 15), 3);
        touched.add((50, 60), 4);
        touched.add((61, 61), 5);
        touched.add((98, 120), 6);
        put(&mut touched.retired, (90, 120), Some(7));
        let removed = vec![(0, 19), (20, 49), (62, 89), (90, 120)];
        assert_eq!(touched.removed(), removed);
        touched.forget(4);
        assert_eq!(touched.removed(), vec![(0, 19), (20, 60), (62, 89), (90, 120)]);
        put(&mut touched.retired, (i64::MAX - 5, i64::MAX), Some(8));
        touched.add((i64::MAX - 1, i64::MAX), 9);
        assert_eq!(touched.removed().last(), Some(&(i64::MAX - 5, i64::MAX - 2)));
    }

    #[test]
    fn records_from_older_versions_are_decoded() {
        let mut out = Encoder::default();
        out.u64(5);
        out.u64(9);
        for (first, last, lsn) in [(0, 9, OLDER_REMOVAL), (10, 19, 9)] {
            out.i64(first);
            out.i64(last);
            out.u64(lsn);
        }
        let touched = Touched::decode(&out.bytes).unwrap();
        assert_eq!((touched.since, touched.last, touched.disordered), (5, 9, 9));
        assert_eq!(touched.removed(), vec![(0, 9)]);
        assert_eq!(touched.after(5), Some(vec![(10, 19)]));
    }

    /// The model stores one number per timestamp. The ranges always cover at least the timestamps
    /// in the model, and exactly these if there are few ranges.
    #[test]
    fn random_changes_match_the_model() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % below
        };
        for _ in 0..200 {
            let mut touched = Touched::default();
            let mut model = [0_u64; 512];
            for lsn in 1..60 {
                let first = random(512);
                let last = (first + random(40)).min(511);
                touched.add((first as i64, last as i64), lsn);
                model[first as usize..=last as usize].fill(lsn);
            }
            for position in [0, 10, 30, 59] {
                let later = touched.after(position).unwrap();
                for (timestamp, lsn) in (0_i64..).zip(model) {
                    let is_in =
                        later.iter().any(|(first, last)| (*first..=*last).contains(&timestamp));
                    assert_eq!(is_in, lsn > position, "instant {timestamp} after {position}");
                }
            }
        }
    }

    #[test]
    fn excess_ranges_are_merged_with_their_neighbours() {
        let mut touched = Touched::default();
        for number in 0..5_000_i64 {
            touched.add((number * 10, number * 10), number as u64 + 1);
        }
        assert_eq!(touched.ranges.len(), MAX_RANGES);
        let later = touched.after(2_500).unwrap();
        for number in 2_500..5_000_i64 {
            let time = number * 10;
            assert!(later.iter().any(|(first, last)| (*first..=*last).contains(&time)));
        }
    }
}
