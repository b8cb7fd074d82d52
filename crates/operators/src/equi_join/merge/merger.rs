//! One worker in a join of two ordered sides. It reads batches from both sides and returns pairs.
//! The leading side's rows are the kernel's left rows.

use std::sync::Arc;

use arrow_array::{RecordBatch, UInt32Array, UInt64Array};
use arrow_buffer::ScalarBuffer;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::SendableRecordBatchStream;
use futures::TryStreamExt;
use tidemark_kernels::{EqualCursor, EqualPairs, match_equal, pack, run_end, upper_bound};

use super::found::{Found, MatchingRows, numbers};
use super::plan::MergeJoin;
use crate::bounded::bytes::memory_bytes;
use crate::materialize::pause;
use crate::operator::Run;
use crate::sample_by::partial::timestamps;
use crate::scan::rows::BATCH_ROWS;

/// A non-empty batch with its times.
struct Chunk {
    rows: RecordBatch,
    times: ScalarBuffer<i64>,
}

impl Chunk {
    fn first(&self) -> i64 {
        self.times.first().copied().unwrap_or(i64::MAX)
    }

    fn last(&self) -> i64 {
        self.times.last().copied().unwrap_or(i64::MIN)
    }
}

/// The batches of a side.
struct Side {
    batches: SendableRecordBatchStream,
    time: Arc<dyn PhysicalExpr>,
}

impl Side {
    fn new(run: &Run, input: usize, join: &MergeJoin) -> Result<Self> {
        let batches = run.rows(input, run.partition)?;
        Ok(Self { batches, time: Arc::clone(&join.times[input]) })
    }

    async fn next(&mut self) -> Result<Option<Chunk>> {
        loop {
            pause().await?;
            let Some(rows) = self.batches.try_next().await? else { return Ok(None) };
            if rows.num_rows() > 0 {
                let times = timestamps(&self.time, &rows)?;
                return Ok(Some(Chunk { rows, times }));
            }
        }
    }
}

/// Rows of the other side with the same timestamp, spread across multiple batches.
struct Group {
    time: i64,
    parts: Vec<RecordBatch>,
    /// Number of rows before each batch, followed by the total.
    starts: Vec<usize>,
    /// How many of the next row's pairs have already been returned.
    done: usize,
}

/// Position within the two sides.
pub(super) struct Merger {
    join: Arc<MergeJoin>,
    schema: SchemaRef,
    other_schema: SchemaRef,
    lead: Side,
    other: Side,
    /// The leading side's batch, which contains the cursor's left row.
    batch: Option<Chunk>,
    /// The other side's batch, which contains the cursor's right row. `None` if no rows remain.
    chunk: Option<Chunk>,
    /// The batch after `chunk`, if it has already been read.
    ahead: Option<Chunk>,
    cursor: EqualCursor,
    group: Option<Group>,
    pairs: EqualPairs,
    memory: MemoryReservation,
}

impl Merger {
    pub(super) async fn new(join: Arc<MergeJoin>, run: &Run) -> Result<Self> {
        let (lead, mut other) = (Side::new(run, 0, &join)?, Side::new(run, 1, &join)?);
        let chunk = other.next().await?;
        Ok(Self {
            join,
            schema: Arc::clone(&run.schema),
            other_schema: run.inputs[1].schema(),
            lead,
            other,
            batch: None,
            chunk,
            ahead: None,
            cursor: EqualCursor::default(),
            group: None,
            pairs: EqualPairs::default(),
            memory: run.memory(),
        })
    }

    /// Returns the next pairs; `None` if no pairs remain.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            pause().await?;
            let Some(time) = self.next_time().await? else { return Ok(None) };
            if self.group.as_ref().is_some_and(|group| group.time == time) {
                return self.of_group().map(Some);
            }
            if self.group.take().is_some() {
                self.memory.free();
            }
            self.reach(time).await?;
            if self.chunk.is_none() {
                if !self.join.is_outer() {
                    return Ok(None);
                }
                return self.unmatched().map(Some);
            }
            let end = self.known_end().await?;
            if self.cursor.left == end {
                self.collect(time).await?;
                continue;
            }
            let found = self.of_chunk(end)?;
            if found.num_rows() > 0 {
                return Ok(Some(found));
            }
        }
    }

    /// Returns the time of the leading side's next row.
    async fn next_time(&mut self) -> Result<Option<i64>> {
        if let Some(batch) = &self.batch
            && let Some(&time) = batch.times.get(self.cursor.left)
        {
            return Ok(Some(time));
        }
        self.batch = self.lead.next().await?;
        self.cursor.restart_left();
        Ok(self.batch.as_ref().map(Chunk::first))
    }

    /// Moves to the next batch of the other side.
    async fn go_on(&mut self) -> Result<()> {
        self.chunk = match self.ahead.take() {
            Some(chunk) => Some(chunk),
            None => self.other.next().await?,
        };
        self.cursor.restart_right();
        Ok(())
    }

    /// Skips batches of the other side that end before this time.
    async fn reach(&mut self, time: i64) -> Result<()> {
        while self.chunk.as_ref().is_some_and(|chunk| chunk.last() < time) {
            self.go_on().await?;
        }
        Ok(())
    }

    /// Returns the row of the leading batch up to which all matches are in memory. A row is
    /// excluded if its timestamp may also occur in the next batch of the other side.
    async fn known_end(&mut self) -> Result<usize> {
        let (Some(batch), Some(chunk)) = (&self.batch, &self.chunk) else { return Ok(0) };
        let last = chunk.last();
        if batch.last() < last {
            return Ok(batch.times.len());
        }
        if self.ahead.is_none() {
            self.ahead = self.other.next().await?;
        }
        let goes_on = self.ahead.as_ref().is_some_and(|ahead| ahead.first() == last);
        let from = self.cursor.left;
        Ok(if goes_on {
            run_end(&batch.times, from, last)
        } else {
            upper_bound(&batch.times, from, last)
        })
    }

    /// Collects all of the other side's rows with this timestamp, starting in the current batch.
    async fn collect(&mut self, time: i64) -> Result<()> {
        let mut group = Group { time, parts: vec![], starts: vec![0], done: 0 };
        let mut rows = 0;
        while let Some(chunk) = &self.chunk {
            let from = run_end(&chunk.times, self.cursor.right, time);
            let to = upper_bound(&chunk.times, from, time);
            let slice = chunk.rows.slice(from, to - from);
            if !self.join.is_mapped {
                self.memory.try_grow(memory_bytes(&slice))?;
            }
            rows += to - from;
            group.parts.push(slice);
            group.starts.push(rows);
            self.cursor.right = to;
            if to < chunk.times.len() {
                break;
            }
            self.go_on().await?;
            if self.chunk.as_ref().is_none_or(|chunk| chunk.first() > time) {
                break;
            }
        }
        self.group = Some(group);
        Ok(())
    }

    /// Pairs rows whose timestamp spans multiple batches.
    fn of_group(&mut self) -> Result<RecordBatch> {
        let (Some(batch), Some(group)) = (&self.batch, &mut self.group) else {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.schema)));
        };
        let all = group.starts.last().copied().unwrap_or(0);
        let end = upper_bound(&batch.times, self.cursor.left, group.time);
        let mut row = self.cursor.left;
        let (mut rows, mut others) = (vec![], vec![]);
        while row < end && rows.len() < BATCH_ROWS {
            let to = all.min(group.done + BATCH_ROWS - rows.len());
            let mut batch_index = group.starts.partition_point(|&start| start <= group.done) - 1;
            for position in group.done..to {
                if position == group.starts[batch_index + 1] {
                    batch_index += 1;
                }
                others.push(pack(batch_index, position - group.starts[batch_index]));
            }
            rows.resize(others.len(), row as u32);
            (row, group.done) = if to < all { (row, to) } else { (row + 1, 0) };
        }
        let (rows, others) = (UInt32Array::from(rows), UInt64Array::from(others));
        let others = MatchingRows::Several(&group.parts, others);
        let found = Found { lead: &batch.rows, rows, matching: others }
            .batch(&self.join.join, &self.schema);
        self.cursor.pass(row);
        found
    }

    /// Pairs the rows up to `end` with the rows in the other side's batch.
    fn of_chunk(&mut self, end: usize) -> Result<RecordBatch> {
        let (Some(batch), Some(chunk)) = (&self.batch, &self.chunk) else {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.schema)));
        };
        let (pairs, outer) = (&mut self.pairs, self.join.is_outer());
        pairs.clear();
        let (left, right) = (&batch.times[..end], &chunk.times);
        match_equal(left, right, &mut self.cursor, pairs, BATCH_ROWS, outer);
        let rows = numbers(std::mem::take(&mut pairs.left), false);
        let others = numbers(std::mem::take(&mut pairs.right), outer);
        let others = MatchingRows::One(&chunk.rows, others);
        Found { lead: &batch.rows, rows, matching: others }.batch(&self.join.join, &self.schema)
    }

    /// Returns the remaining rows of the leading batch once the other side has ended.
    fn unmatched(&mut self) -> Result<RecordBatch> {
        let Some(batch) = &self.batch else {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.schema)));
        };
        let rows = self.cursor.left as u32..batch.times.len() as u32;
        let rows = UInt32Array::from_iter_values(rows);
        self.cursor.pass(batch.times.len());
        let found =
            Found { lead: &batch.rows, rows, matching: MatchingRows::Nulls(&self.other_schema) };
        found.batch(&self.join.join, &self.schema)
    }
}
