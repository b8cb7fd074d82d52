//! Partitions rows into files by the hashes of their keys.

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
use crate::bounded::bytes::held_bytes;
use crate::held::pause;
use crate::operator::Run;
use crate::parts::{hashes, in_parts, joined};

/// Number of files per side.
const FILES: usize = 32;
/// Hash seed, different from those of the exchange below and of the hash tables.
const SEED: u64 = 0x6772_6163_6500;
/// Maximum bytes of rows that are partitioned in one round.
const ROUND_BYTES: usize = 16 << 20;
/// The rows of one round may use 1/n of the operators' memory.
const ROUND_SHARE: usize = 64;

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
        let rows = rows.map(move |batch| texts.give(&batch?));
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(self.texts.schema()), rows)))
    }
}

/// Partitioning rule.
pub(crate) enum By<'a> {
    /// All rows go to one file.
    Nothing,
    /// The hashes of these keys, and the number of earlier passes over them.
    Keys(Vec<&'a Arc<dyn PhysicalExpr>>, usize),
}

/// Writes rows to files.
pub(crate) struct Spreader<'a> {
    pub(crate) run: &'a Run,
    /// Whether each column holds symbols from one table. Columns beyond the end of the slice do
    /// not.
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
            // Slices of the batch; the first one is last.
            let mut pieces = vec![batch];
            while let Some(batch) = pieces.pop() {
                if !round.has_room(&batch) {
                    append(&mut round)?;
                    if let Err(error) = round.make_room(&batch) {
                        let half = batch.num_rows() / 2;
                        if half == 0 {
                            return Err(error);
                        }
                        pieces.push(batch.slice(half, batch.num_rows() - half));
                        pieces.push(batch.slice(0, half));
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

/// Rows that are partitioned together, so that each file gets batches of a useful size. A batch of
/// few rows costs as much to write, read and join as one of many.
struct Round {
    batches: Vec<RecordBatch>,
    hashes: Vec<u64>,
    memory: MemoryReservation,
    /// Maximum bytes; a single batch may exceed it.
    most: usize,
}

impl Round {
    fn of(run: &Run) -> Self {
        let most = (run.held_at_most() / ROUND_SHARE).min(ROUND_BYTES);
        Self { batches: vec![], hashes: vec![], memory: run.memory(), most }
    }

    /// Reserves memory for a batch; false if it does not fit.
    fn has_room(&self, batch: &RecordBatch) -> bool {
        let size = self.memory.size().saturating_add(round_bytes(batch));
        size <= self.most && self.memory.try_grow(round_bytes(batch)).is_ok()
    }

    /// Reserves memory for the first batch of a round. The caller splits the batch if this fails.
    fn make_room(&self, batch: &RecordBatch) -> Result<()> {
        self.memory.try_resize(round_bytes(batch))
    }

    fn add(&mut self, batch: RecordBatch, hashes: Vec<u64>) {
        self.batches.push(batch);
        self.hashes.extend(hashes);
    }

    /// Takes the rows of each file and leaves the round empty.
    fn take(&mut self) -> Result<Vec<(usize, RecordBatch)>> {
        let (batches, hashes) = (take(&mut self.batches), take(&mut self.hashes));
        if hashes.is_empty() {
            let rows = batches.into_iter().filter(|batch| batch.num_rows() > 0);
            return Ok(rows.map(|batch| (0, batch)).collect());
        }
        let Some(schema) = batches.first().map(RecordBatch::schema) else { return Ok(vec![]) };
        let all = joined(&schema, batches)?;
        let mut starts = [0; FILES + 1];
        let all = in_parts(&all, &hashes, |hash| (hash >> 32) as usize % FILES, &mut starts)?;
        let of = |(file, start): (usize, &[u32])| {
            let rows = all.slice(start[0] as usize, (start[1] - start[0]) as usize);
            (rows.num_rows() > 0).then_some((file, rows))
        };
        Ok(starts.windows(2).enumerate().filter_map(of).collect())
    }
}

/// Memory of a batch: the batch itself, a copy in the concatenation and a copy in file order, plus
/// hashes and row positions.
fn round_bytes(batch: &RecordBatch) -> usize {
    3 * held_bytes(batch) + batch.num_rows() * size_of::<(u64, u32)>()
}
