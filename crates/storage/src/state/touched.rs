//! Which stretches of time the rows of a table changed in, and by which transaction: what a
//! materialized view has to compute again.
//!
//! A table is watched from a [`Watch`](crate::Change::Watch) on. Every step that changes its rows
//! adds the stretches it touched, so that replaying the log yields the same; a checkpoint writes
//! them with the other records. They are few: where there are too many, neighbours become one. A
//! stretch may be longer than what was touched, never shorter.
//!
//! Partitions that a time to live ended or a statement put away touch nothing: sums of them are
//! kept. That they are *gone* is noted as stretches of no transaction, until something is touched
//! there again: what was computed of them before is not what the table would give now.

use tidemark_types::EngineResult;

use crate::log::codec::{Decoder, Encoder};
use crate::mutation::retire::PartitionAction;
use crate::segment::column;
use crate::snapshot::Snapshot;
use crate::state::op::{Append, Op};
use crate::table::TableSnapshot;
use crate::table::partition::Partition;
use crate::table::records::TOUCHED_RECORDS;
use crate::table::schema::{ColumnSchema, TableId};
use crate::table::time_range::Span;

/// Stretches of a table, at most.
const MOST_STRETCHES: usize = 1_024;
/// Rows that one step adds are one stretch where no gap between them is longer than one part in so
/// many of the time between the first and the last: so it adds no more than so many stretches.
const GAP_SHARE: i64 = 256;

/// A stretch of time in which rows came, went or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TouchedStretch {
    /// The first instant, in the unit of the designated timestamp.
    pub first: i64,
    /// The last instant, which belongs to it.
    pub last: i64,
    /// The latest transaction that touched it; [`GONE`] where rows went without touching it.
    pub lsn: u64,
}

/// No transaction.
const GONE: u64 = 0;

/// The stretches of a table that were touched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    /// All that came after this transaction is there.
    pub since: u64,
    /// The latest transaction that touched the table since it is watched, or when that began.
    pub last: u64,
    /// Ascending, apart from each other.
    pub stretches: Vec<TouchedStretch>,
}

impl Touched {
    /// What was touched after a transaction, ascending and apart; `None` where that is not known
    /// any more.
    #[must_use]
    pub fn after(&self, lsn: u64) -> Option<Vec<Span>> {
        if lsn < self.since {
            return None;
        }
        let later = self.stretches.iter().filter(|stretch| stretch.lsn > lsn);
        Some(later.map(|stretch| (stretch.first, stretch.last)).collect())
    }

    /// The stretches whose rows are gone, though what was computed of them stays.
    pub fn gone(&self) -> impl Iterator<Item = (i64, i64)> {
        let gone = self.stretches.iter().filter(|stretch| stretch.lsn == GONE);
        gone.map(|stretch| (stretch.first, stretch.last))
    }

    /// Notes that rows are gone. What was touched there before is still to be looked at.
    fn lose(&mut self, (first, last): Span) {
        let start = self.stretches.partition_point(|stretch| stretch.last < first);
        let end = self.stretches.partition_point(|stretch| stretch.first <= last).max(start);
        let touched: Vec<TouchedStretch> =
            self.stretches[start..end].iter().filter(|one| one.lsn != GONE).copied().collect();
        let outer = self.stretches[start..end].iter().filter(|one| one.lsn == GONE);
        let (first, last) =
            outer.fold((first, last), |(a, b), one| (a.min(one.first), b.max(one.last)));
        let mut new = Vec::with_capacity(2 * touched.len() + 1);
        let mut next = Some(first);
        for stretch in touched {
            if let Some(first) = next.filter(|next| *next < stretch.first) {
                new.push(TouchedStretch { first, last: stretch.first - 1, lsn: GONE });
            }
            next = stretch.last.checked_add(1);
            new.push(stretch);
        }
        if let Some(first) = next.filter(|next| *next <= last) {
            new.push(TouchedStretch { first, last, lsn: GONE });
        }
        self.stretches.splice(start..end, new);
    }

    /// Nothing, of a table that is looked at from a transaction on.
    pub(super) fn from(lsn: u64) -> Self {
        Self { since: lsn, last: lsn, stretches: Vec::new() }
    }

    pub(super) fn add(&mut self, (first, last): Span, lsn: u64) {
        self.last = self.last.max(lsn);
        let start = self.stretches.partition_point(|stretch| stretch.last < first);
        let end = self.stretches.partition_point(|stretch| stretch.first <= last).max(start);
        let mut new = Vec::with_capacity(3);
        if let Some(before) = self.stretches[start..end].first().filter(|one| one.first < first) {
            new.push(TouchedStretch { last: first - 1, ..*before });
        }
        new.push(TouchedStretch { first, last, lsn });
        if let Some(after) = self.stretches[start..end].last().filter(|one| one.last > last) {
            new.push(TouchedStretch { first: last + 1, ..*after });
        }
        self.stretches.splice(start..end, new);
        while self.stretches.len() > MOST_STRETCHES && self.join_nearest() {}
    }

    /// Makes one of the two stretches with the least time between them. What is gone and what was
    /// touched stay apart: to compute it again would take away what is kept.
    fn join_nearest(&mut self) -> bool {
        let gap = |pair: &[TouchedStretch]| pair[1].first.saturating_sub(pair[0].last);
        let pairs = self.stretches.windows(2).enumerate();
        let alike = pairs.filter(|(_, pair)| (pair[0].lsn == GONE) == (pair[1].lsn == GONE));
        let nearest = alike.min_by_key(|(_, pair)| gap(pair));
        let Some((index, _)) = nearest else { return false };
        let next = self.stretches.remove(index + 1);
        let one = &mut self.stretches[index];
        one.last = next.last;
        one.lsn = one.lsn.max(next.lsn);
        true
    }

    fn forget(&mut self, through: u64) {
        self.stretches.retain(|stretch| stretch.lsn == GONE || stretch.lsn > through);
        self.since = self.since.max(through);
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.u64(self.since);
        out.u64(self.last);
        for stretch in &self.stretches {
            out.i64(stretch.first);
            out.i64(stretch.last);
            out.u64(stretch.lsn);
        }
        out.bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> EngineResult<Self> {
        let mut input = Decoder::new(bytes);
        let (since, last) = (input.u64()?, input.u64()?);
        let mut stretches = Vec::new();
        while !input.is_empty() {
            let (first, last, lsn) = (input.i64()?, input.i64()?, input.u64()?);
            stretches.push(TouchedStretch { first, last, lsn });
        }
        Ok(Self { since, last, stretches })
    }
}

impl Snapshot {
    /// What was touched of a table; `None` where it is not watched.
    #[must_use]
    pub fn touched(&self, table: TableId) -> Option<Touched> {
        let bytes = self.record(TOUCHED_RECORDS, &table.to_string())?;
        Touched::decode(bytes).ok()
    }

    fn put_touched(&mut self, table: TableId, touched: &Touched) {
        self.put_record(TOUCHED_RECORDS, &table.to_string(), touched.encode().into());
    }
}

/// Begins to watch a table, or forgets what was touched up to a transaction.
pub(crate) fn watch(snapshot: &mut Snapshot, table: TableId, through: u64, lsn: u64) {
    let known = snapshot.touched(table);
    let mut touched = known.unwrap_or_else(|| Touched::from(lsn));
    touched.forget(through);
    snapshot.put_touched(table, &touched);
}

/// What a step does to the rows of a watched table.
pub(crate) enum Effect {
    /// It touches these stretches.
    Touches(Vec<Span>),
    /// Rows of these stretches go, and what was computed of them stays.
    Loses(Vec<Span>),
}

/// What a step will do to a watched table; before it is applied.
pub(crate) fn effect(snapshot: &Snapshot, op: &Op) -> EngineResult<Option<Effect>> {
    let Some(id) = op.table() else { return Ok(None) };
    if snapshot.record(TOUCHED_RECORDS, &id.to_string()).is_none() {
        return Ok(None);
    }
    // Sums of what a time to live ends, or a statement puts away, are kept.
    let loses = matches!(op, Op::Partitions(op) if op.action != PartitionAction::Attach);
    let effect = if loses { Effect::Loses } else { Effect::Touches };
    Ok(spans_of(snapshot, op, id)?.map(effect))
}

/// The stretches of a table in which a step will make rows come, go or change; `None` for one that
/// leaves rows alone.
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
        // Large updates come as conversions: their cells are not looked at.
        Op::Convert(convert) => convert.parts.iter().map(|(floor, _)| whole(floor)).collect(),
        Op::Update(update) => {
            let parts = update.parts.iter().map(|part| (part.floor, part.rows.as_slice()));
            changed(&table, parts)?
        }
        Op::Delete(delete) => {
            changed(&table, delete.parts.iter().map(|(floor, rows)| (*floor, rows.as_slice())))?
        }
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

/// Notes what a step did; after it was applied.
pub(crate) fn note(snapshot: &mut Snapshot, op: &Op, effect: Option<Effect>, lsn: u64) {
    let (Some(id), Some(effect)) = (op.table(), effect) else { return };
    if matches!(&effect, Effect::Touches(spans) if spans.is_empty()) {
        return;
    }
    let Some(mut touched) = snapshot.touched(id) else { return };
    match effect {
        Effect::Touches(spans) => spans.into_iter().for_each(|span| touched.add(span, lsn)),
        Effect::Loses(spans) => spans.into_iter().for_each(|span| touched.lose(span)),
    }
    snapshot.put_touched(id, &touched);
}

fn appended(table: &TableSnapshot, append: &Append) -> EngineResult<Vec<Span>> {
    let Some(timestamp) = table.schema().timestamp_column() else { return Ok(Vec::new()) };
    let cells = append.columns.iter().find(|(id, ..)| *id == timestamp.id);
    let Some((_, _, cells)) = cells else { return Ok(Vec::new()) };
    let times = column::timestamps(cells.array())?;
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return Ok(Vec::new()) };
    let gap = last.saturating_sub(*first) / GAP_SHARE;
    let mut spans = vec![(*first, *first)];
    for &time in &times {
        match spans.last_mut() {
            Some(open) if time.saturating_sub(open.1) <= gap => open.1 = time,
            _ => spans.push((time, time)),
        }
    }
    Ok(spans)
}

/// The stretches of rows that are named by their places in their partitions.
fn changed<'a>(
    table: &TableSnapshot,
    parts: impl Iterator<Item = (i64, &'a [(u64, u64)])>,
) -> EngineResult<Vec<Span>> {
    let Some(timestamp) = table.schema().timestamp_column() else { return Ok(Vec::new()) };
    let mut spans = Vec::new();
    for (floor, rows) in parts {
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
    let mut wanted = rows.iter().copied().filter(|(_, len)| *len > 0).peekable();
    let mut start = 0;
    for fragment in view.iter() {
        let end = start + fragment.rows.len() as u64;
        let times = fragment.piece.timestamps(timestamp)?;
        let times = &times[fragment.rows.clone()];
        while let Some(&(row, len)) = wanted.peek()
            && row < end
        {
            let first = row.max(start) - start;
            let last = (row + len).min(end) - start - 1;
            spans.push((times[first as usize], times[last as usize]));
            if row + len > end {
                break;
            }
            wanted.next();
        }
        start = end;
    }
    Ok(())
}

/// Ascending, and where they are many those that lie near each other made one.
fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let (Some(first), Some(last)) = (spans.first(), spans.iter().map(|span| span.1).max()) else {
        return spans;
    };
    let gap =
        if spans.len() > GAP_SHARE as usize { last.saturating_sub(first.0) / GAP_SHARE } else { 0 };
    let mut joined: Vec<Span> = Vec::with_capacity(spans.len().min(GAP_SHARE as usize));
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

    fn stretch(first: i64, last: i64, lsn: u64) -> TouchedStretch {
        TouchedStretch { first, last, lsn }
    }

    #[test]
    fn a_later_touch_takes_the_place_of_an_earlier_one() {
        let mut touched = Touched::default();
        touched.add((0, 100), 1);
        touched.add((40, 60), 2);
        touched.add((200, 300), 3);
        touched.add((90, 210), 4);
        let expected = vec![
            stretch(0, 39, 1),
            stretch(40, 60, 2),
            stretch(61, 89, 1),
            stretch(90, 210, 4),
            stretch(211, 300, 3),
        ];
        assert_eq!(touched.stretches, expected);
        assert_eq!(touched.after(2), Some(vec![(90, 210), (211, 300)]));
        assert_eq!(Touched::decode(&touched.encode()).unwrap(), touched);
        touched.forget(2);
        assert_eq!(touched.stretches, vec![stretch(90, 210, 4), stretch(211, 300, 3)]);
        assert_eq!(touched.after(1), None);
        assert_eq!(touched.after(4), Some(Vec::new()));
    }

    #[test]
    fn what_is_gone_is_known_until_it_is_touched_again() {
        let mut touched = Touched::default();
        touched.add((30, 40), 1);
        touched.lose((20, 99));
        touched.lose((0, 19));
        assert_eq!(touched.gone().collect::<Vec<_>>(), vec![(0, 19), (20, 29), (41, 99)]);
        assert_eq!(touched.after(0), Some(vec![(30, 40)]));
        touched.add((50, 60), 2);
        touched.forget(2);
        touched.lose((90, 120));
        let gone = vec![(0, 19), (20, 29), (41, 49), (61, 120)];
        assert_eq!(touched.gone().collect::<Vec<_>>(), gone);
        assert_eq!(touched.after(2), Some(Vec::new()));
        assert_eq!(Touched::decode(&touched.encode()).unwrap(), touched);
    }

    /// Against a model that has one number for each instant: never less, and no more than the
    /// model where there are few stretches.
    #[test]
    fn random_touches_cover_what_was_touched() {
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
                for (instant, lsn) in (0_i64..).zip(model) {
                    let is_in =
                        later.iter().any(|(first, last)| (*first..=*last).contains(&instant));
                    assert_eq!(is_in, lsn > position, "instant {instant} after {position}");
                }
            }
        }
    }

    #[test]
    fn many_stretches_become_fewer_and_longer() {
        let mut touched = Touched::default();
        for number in 0..5_000_i64 {
            touched.add((number * 10, number * 10), number as u64 + 1);
        }
        assert_eq!(touched.stretches.len(), MOST_STRETCHES);
        let later = touched.after(2_500).unwrap();
        for number in 2_500..5_000_i64 {
            let time = number * 10;
            assert!(later.iter().any(|(first, last)| (*first..=*last).contains(&time)));
        }
    }
}
