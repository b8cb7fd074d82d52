//! Rows in files by the hashes of their keys.

use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::common::Result;
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
use crate::parts::in_parts;

/// Files of each side.
const FILES: usize = 32;
/// Other than that of the exchange below and of the tables.
const SEED: u64 = 0x6772_6163_6500;

/// Rows in a file.
#[derive(Clone)]
pub(super) struct File {
    pub(super) rows: usize,
    spilled: Arc<dyn SpillFile>,
    manager: Arc<SpillManager>,
    texts: Arc<Texts>,
}

impl File {
    pub(super) fn read(&self) -> Result<SendableRecordBatchStream> {
        let rows = self.manager.read_spill_as_stream(Arc::clone(&self.spilled), None)?;
        let texts = Arc::clone(&self.texts);
        let rows = rows.map(move |batch| texts.give(&batch?));
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(self.texts.schema()), rows)))
    }
}

/// What rows are spread by.
pub(super) enum By<'a> {
    /// All are in one file.
    Nothing,
    /// The hashes of these keys; they were so often before.
    Keys(Vec<&'a Arc<dyn PhysicalExpr>>, usize),
}

/// Writes rows to files.
pub(super) struct Spreader<'a> {
    pub(super) run: &'a Run,
    /// Which columns are symbols of one table; the others are not, nor are those after them.
    pub(super) symbols: &'a [bool],
    pub(super) by: By<'a>,
}

impl Spreader<'_> {
    /// Writes rows to files; rows of equal keys to the same one. `None`: it has no rows.
    pub(super) async fn write(
        &self,
        mut rows: SendableRecordBatchStream,
    ) -> Result<Vec<Option<File>>> {
        let (run, texts) = (self.run, Texts::of(rows.schema(), self.symbols));
        let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), run.partition);
        let stored = Arc::clone(texts.schema_without());
        let manager = SpillManager::new(run.context.runtime_env(), metrics, stored);
        let compression = run.context.session_config().spill_compression();
        let manager = Arc::new(manager.with_compression_type(compression));
        let memory = run.memory();
        let mut files: Vec<_> = (0..FILES).map(|_| (None, 0)).collect();
        while let Some(batch) = rows.try_next().await? {
            pause().await?;
            // Once in the order of the files, and once on the way into one.
            memory.try_resize(2 * held_bytes(&batch))?;
            let (batch, starts) = self.sorted(&batch)?;
            let batch = texts.take(&batch)?;
            for (file, start) in files.iter_mut().zip(starts.windows(2)) {
                let (start, count) = (start[0] as usize, (start[1] - start[0]) as usize);
                if count == 0 {
                    continue;
                }
                let (file, rows) = file;
                let file = match file {
                    Some(file) => file,
                    None => file.insert(manager.create_in_progress_file("GraceHashJoin")?),
                };
                file.append_batch(&batch.slice(start, count))?;
                *rows += count;
            }
        }
        let texts = Arc::new(texts);
        let finished = files.into_iter().map(|(file, rows)| {
            let Some(mut file) = file else { return Ok(None) };
            let (manager, texts) = (Arc::clone(&manager), Arc::clone(&texts));
            let of = |spilled| File { rows, spilled, manager, texts };
            Ok(file.finish()?.map(of))
        });
        finished.collect()
    }

    /// The rows by their files, and where those of each begin.
    fn sorted(&self, batch: &RecordBatch) -> Result<(RecordBatch, [u32; FILES + 1])> {
        let By::Keys(keys, level) = &self.by else {
            let mut starts = [batch.num_rows() as u32; FILES + 1];
            starts[0] = 0;
            return Ok((batch.clone(), starts));
        };
        let mut starts = [0; FILES + 1];
        let (seed, file) = (SEED + *level as u64, |hash| (hash >> 32) as usize % FILES);
        let batch = in_parts(batch, keys.iter().copied(), seed, file, &mut starts)?;
        Ok((batch, starts))
    }
}
