//! The right side of a WINDOW JOIN. Rows are sorted by key and then by time, so a window is a
//! single range of positions.

use std::sync::Arc;

use datafusion::common::{Result, resources_err};
use datafusion::execution::memory_pool::MemoryReservation;
use tidemark_kernels::{NO_MATCH, RightChunk, pack, run_end, unpack, upper_bound};

use super::index::{self, RangeAggregate, Window};
use super::plan::{Computed, WindowPlan};
use crate::asof::gather::gather;
use crate::asof::keys::{KeySpace, Side};
use crate::asof::right::{RightSide, SideExprs};
use crate::operator::Run;

/// The right rows, with timestamps and indexes by position.
pub(crate) struct WindowSide {
    right: RightSide,
    /// First position of each key, followed by the end of the last key.
    starts: Vec<usize>,
    /// Timestamp by position.
    times: Vec<i64>,
    /// Packed row by position.
    rows: Vec<u64>,
    /// The index for each aggregate; `None` for aggregates computed over pairs of rows.
    indexes: Vec<Option<Box<dyn RangeAggregate>>>,
    _memory: MemoryReservation,
}

impl WindowSide {
    pub(crate) async fn read(run: &Run, plan: &WindowPlan) -> Result<Self> {
        let memory = run.memory();
        let keys = plan.keys.iter().map(|(_, right)| Arc::clone(right)).collect();
        let exprs = SideExprs { timestamp: Arc::clone(&plan.right_timestamp), keys };
        let space = (Side::Right, KeySpace::new(&plan.key_kind)?);
        let right = RightSide::read(run, 1, &exprs, space).await?;
        let (starts, times, rows) = arrange(&right, plan, &memory)?;
        let mut touched = vec![false; right.chunks().len()];
        for &row in &rows {
            touched[unpack(row).0] = true;
        }
        let mut indexes = Vec::with_capacity(plan.aggregates.len());
        for aggregate in &plan.aggregates {
            let Computed::Indexed(kind) = aggregate.computed else {
                indexes.push(None);
                continue;
            };
            let column = match aggregate.plan.arguments.first() {
                Some(argument) => {
                    let chunks = right.evaluate(argument, |chunk| touched[chunk])?;
                    let empty = arrow_array::new_empty_array(&argument.data_type(right.schema())?);
                    Some(gather(&chunks, &rows, &empty)?)
                }
                None => None,
            };
            let output = aggregate.plan.function.field().data_type().clone();
            let index = index::build(kind, column.as_ref(), output)?;
            memory.try_grow(index.size())?;
            indexes.push(Some(index));
        }
        Ok(Self { right, starts, times, rows, indexes, _memory: memory })
    }

    /// The right rows.
    pub(crate) fn right(&self) -> &RightSide {
        &self.right
    }

    /// Positions of a key's rows; empty if no right row has the key.
    pub(crate) fn of_key(&self, key: u32) -> Window {
        let bounds = (self.starts.get(key as usize), self.starts.get(key as usize + 1));
        let (Some(&start), Some(&end)) = bounds else { return Window::default() };
        Window { start, end }
    }

    /// Number of keys.
    pub(crate) fn keys(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the key's first position at or after `from` whose timestamp is at or after `bound`.
    pub(crate) fn at_or_after(&self, of_key: Window, from: usize, bound: i64) -> usize {
        run_end(&self.times[..of_key.end], from, bound)
    }

    /// Returns the key's first position at or after `from` whose timestamp is after `bound`.
    pub(crate) fn after(&self, of_key: Window, from: usize, bound: i64) -> usize {
        upper_bound(&self.times[..of_key.end], from, bound)
    }

    /// Returns the timestamp at a position.
    pub(crate) fn time(&self, position: usize) -> i64 {
        self.times[position]
    }

    /// Returns the packed row at a position.
    pub(crate) fn row(&self, position: usize) -> u64 {
        self.rows[position]
    }

    /// Returns an aggregate's index, if it has one.
    pub(crate) fn index(&self, aggregate: usize) -> Option<&dyn RangeAggregate> {
        self.indexes.get(aggregate)?.as_deref()
    }
}

type Arranged = (Vec<usize>, Vec<i64>, Vec<u64>);

/// Sorts by key the rows that the windows can reach. The counting sort preserves their time order.
fn arrange(right: &RightSide, plan: &WindowPlan, memory: &MemoryReservation) -> Result<Arranged> {
    let chunks = right.chunks();
    let keys = right.space().len().max(1);
    let key_of =
        |chunk: &RightChunk<'_>, row: usize| chunk.keys.get(row).map_or(0, |&key| key as usize);
    let (oldest, newest) = plan.reach.unwrap_or((i64::MIN, i64::MAX));
    let within: Vec<_> = chunks
        .iter()
        .map(|chunk| {
            let times = chunk.timestamps;
            times.partition_point(|&ts| ts < oldest)..times.partition_point(|&ts| ts <= newest)
        })
        .collect();
    let before = if plan.include_prevailing {
        prevailing(&chunks, &within, keys)
    } else {
        vec![NO_MATCH; keys]
    };
    let mut starts = vec![0_usize; keys + 1];
    for (key, &row) in before.iter().enumerate() {
        starts[key + 1] += usize::from(row != NO_MATCH);
    }
    for (chunk, rows) in chunks.iter().zip(&within) {
        rows.clone().for_each(|row| starts[key_of(chunk, row) + 1] += 1);
    }
    for key in 0..keys {
        starts[key + 1] += starts[key];
    }
    let total = starts[keys];
    if total >= u32::MAX as usize {
        return resources_err!("the right side of WINDOW JOIN has more than {} rows", u32::MAX);
    }
    memory.try_grow(16 * total + 8 * keys)?;
    let (mut times, mut rows) = (vec![0_i64; total], vec![NO_MATCH; total]);
    let mut next = starts.clone();
    let mut position = |key: usize, chunk: usize, row: usize| {
        times[next[key]] = chunks[chunk].timestamps[row];
        rows[next[key]] = pack(chunk, row);
        next[key] += 1;
    };
    for (key, &row) in before.iter().enumerate().filter(|(_, row)| **row != NO_MATCH) {
        let (chunk, row) = unpack(row);
        position(key, chunk, row);
    }
    for (index, (chunk, within)) in chunks.iter().zip(within).enumerate() {
        within.for_each(|row| position(key_of(chunk, row), index, row));
    }
    Ok((starts, times, rows))
}

/// Returns the last row of each key that precedes the rows the windows can reach.
fn prevailing(
    chunks: &[RightChunk<'_>],
    within: &[std::ops::Range<usize>],
    keys: usize,
) -> Vec<u64> {
    let mut found = vec![NO_MATCH; keys];
    let mut missing = keys;
    for (index, (chunk, within)) in chunks.iter().zip(within).enumerate().rev() {
        for row in (0..within.start).rev() {
            let key = chunk.keys.get(row).map_or(0, |&key| key as usize);
            if found[key] == NO_MATCH {
                found[key] = pack(index, row);
                missing -= 1;
                if missing == 0 {
                    return found;
                }
            }
        }
    }
    found
}
