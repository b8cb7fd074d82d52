//! Partitions rows into files by key hash.

use std::mem::take;
use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::spill_file::SpillFile;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{SendableRecordBatchStream, SpillManager};
use futures::{StreamExt, TryStreamExt};

use super::texts::Texts;
use crate::bounded::bytes::memory_bytes;
use crate::hash_partition::{hashes, joined, sort_by_partition};
use crate::materialize::pause;
use crate::operator::Run;

/// Number of files per side.
const FILES: usize = 32;
/// Hash seed. It differs from the seeds used by the exchange below and by the hash tables.
const SEED: u64 = 0x6772_6163_6500;
/// Maximum size in bytes of the rows partitioned in one round.
const ROUND_BYTES: usize = 16 << 20;
/// The rows of one round may use 1/n of the memory for operators.
const ROUND_MEMORY_DIVISOR: usize = 64;

/// Rows in a file.
#[derive(Clone)]
pub(crate) struct File {
    pub(super) rows: usize,
    spilled: Arc<dyn SpillFile>,
    manager: Arc<SpillManager>,
    texts: Arc<Texts>,
}

impl File {
    pub(crate) fn read(&self) -> Result<SendableRecordBatchStream> {
        let rows = self.manager.read_spill_as_stream(Arc::clone(&self.spilled), None)?;
        let texts = Arc::clone(&self.texts);
        let rows = rows.map(move |batch| texts.restore(&batch?));
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(self.texts.schema()), rows)))
    }
}

/// Partitioning rule.
pub(crate) enum By<'a> {
    /// All rows go to one file.
    Nothing,
    /// The keys whose hashes are used, and how many earlier partitioning passes used them.
    Keys(Vec<&'a Arc<dyn PhysicalExpr>>, usize),
}

/// Writes rows to files.
pub(crate) struct Spreader<'a> {
    pub(crate) run: &'a Run,
    /// Whether each column contains symbols from a single table; false for columns beyond the end
    /// of the slice.
    pub(crate) symbols: &'a [bool],
    pub(crate) by: By<'a>,
}

impl Spreader<'_> {
    /// Writes rows to files; rows with equal keys go to the same file. Files without rows are
    /// `None`.
    pub(crate) async fn write(
        &self,
        mut rows: SendableRecordBatchStream,
    ) -> Result<Vec<Option<File>>> {
        let (run, texts) = (self.run, Texts::of(rows.schema(), self.symbols));
        let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), run.partition);
        let stored = Arc::clone(texts.schema_without());
        let manager = SpillManager::new(run.context.runtime_env(), metrics, stored);
        let compression = run.context.session_config().spill_compression();
        let manager = Arc::new(manager.with_compression_type(compression));
        let mut files: Vec<_> = (0..FILES).map(|_| (None, 0)).collect();
        let mut append = |round: &mut Round| -> Result<()> {
            for (file, batch) in round.take()? {
                let (file, rows) = &mut files[file];
                let file = match file {
                    Some(file) => file,
                    None => file.insert(manager.create_in_progress_file("GraceHashJoin")?),
                };
                file.append_batch(&batch)?;
                *rows += batch.num_rows();
            }
            Ok(())
        };
        let mut round = Round::of(run);
        while let Some(batch) = rows.try_next().await? {
            pause().await?;
            // Slices of the batch in reverse order, used as a stack.
            let mut slices = vec![batch];
            while let Some(batch) = slices.pop() {
                if !round.try_reserve(&batch) {
                    append(&mut round)?;
                    if let Err(error) = round.reserve_first(&batch) {
                        let half = batch.num_rows() / 2;
                        if half == 0 {
                            return Err(error);
                        }
                        slices.push(batch.slice(half, batch.num_rows() - half));
                        slices.push(batch.slice(0, half));
                        continue;
                    }
                }
                round.add(texts.take(&batch)?, self.hashes(&batch)?);
            }
        }
        append(&mut round)?;
        let texts = Arc::new(texts);
        let finished = files.into_iter().map(|(file, rows)| {
            let Some(mut file) = file else { return Ok(None) };
            let (manager, texts) = (Arc::clone(&manager), Arc::clone(&texts));
            let of = |spilled| File { rows, spilled, manager, texts };
            Ok(file.finish()?.map(of))
        });
        finished.collect()
    }

    /// Returns the hashes that select the files; empty if all rows go to one file.
    fn hashes(&self, batch: &RecordBatch) -> Result<Vec<u64>> {
        let By::Keys(keys, level) = &self.by else { return Ok(vec![]) };
        let keys = keys.iter().map(|key| key.evaluate(batch)?.into_array(batch.num_rows()));
        hashes(&keys.collect::<Result<Vec<_>>>()?, batch.num_rows(), SEED + *level as u64)
    }
}

/// Rows that are partitioned together so that each file gets batches of a useful size. Writing,
/// reading and joining a small batch costs as much as a large one.
struct Round {
    batches: Vec<RecordBatch>,
    hashes: Vec<u64>,
    memory: MemoryReservation,
    /// Maximum size of the round in bytes. A single batch may exceed the limit.
    max_bytes: usize,
}

impl Round {
    fn of(run: &Run) -> Self {
        let max = (run.memory_limit() / ROUND_MEMORY_DIVISOR).min(ROUND_BYTES);
        Self { batches: vec![], hashes: vec![], memory: run.memory(), max_bytes: max }
    }

    /// Reserves memory for a batch; returns false if it does not fit.
    fn try_reserve(&self, batch: &RecordBatch) -> bool {
        let size = self.memory.size().saturating_add(round_bytes(batch));
        size <= self.max_bytes && self.memory.try_grow(round_bytes(batch)).is_ok()
    }

    /// Reserves memory for a round's first batch. If this fails, the caller splits the batch.
    fn reserve_first(&self, batch: &RecordBatch) -> Result<()> {
        self.memory.try_resize(round_bytes(batch))
    }

    fn add(&mut self, batch: RecordBatch, hashes: Vec<u64>) {
        self.batches.push(batch);
        self.hashes.extend(hashes);
    }

    /// Removes and returns each file's rows, leaving the round empty.
    fn take(&mut self) -> Result<Vec<(usize, RecordBatch)>> {
        let (batches, hashes) = (take(&mut self.batches), take(&mut self.hashes));
        if hashes.is_empty() {
            let rows = batches.into_iter().filter(|batch| batch.num_rows() > 0);
            return Ok(rows.map(|batch| (0, batch)).collect());
        }
        let Some(schema) = batches.first().map(RecordBatch::schema) else { return Ok(vec![]) };
        let all = joined(&schema, batches)?;
        let mut starts = [0; FILES + 1];
        let all =
            sort_by_partition(&all, &hashes, |hash| (hash >> 32) as usize % FILES, &mut starts)?;
        let of = |(file, start): (usize, &[u32])| {
            let rows = all.slice(start[0] as usize, (start[1] - start[0]) as usize);
            (rows.num_rows() > 0).then_some((file, rows))
        };
        Ok(starts.windows(2).enumerate().filter_map(of).collect())
    }
}

/// Returns the memory needed for a batch: the batch itself, a copy in the concatenation and a copy
/// in file order, plus hashes and row positions.
fn round_bytes(batch: &RecordBatch) -> usize {
    3 * memory_bytes(batch) + batch.num_rows() * size_of::<(u64, u32)>()
}
