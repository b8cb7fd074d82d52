//! Columns of a Parquet row group, encoded in parallel.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

use arrow_array::ArrayRef;
use arrow_schema::Field;
use parking_lot::Mutex;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, compute_leaves};
use parquet::errors::ParquetError;
use tidemark_types::{EngineError, EngineResult};

/// Maximum number of threads per file. Each thread holds its codec's windows and tables, which take
/// 45 MiB for ZSTD 9 (measured).
const MAX_THREADS: usize = 4;

/// Minimum number of rows for which several threads are worthwhile.
const MANY_ROWS: usize = 8 * 1024;

/// A row group being written.
pub(crate) struct RowGroup {
    columns: Vec<ArrowColumnWriter>,
    rows: usize,
}

impl RowGroup {
    /// Creates an empty row group. Each column in the file is one leaf of Parquet's schema.
    pub(crate) fn new(columns: Vec<ArrowColumnWriter>) -> Self {
        Self { columns, rows: 0 }
    }

    /// Returns the number of rows so far.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Adds rows; `array_of` returns the array of a column.
    pub(crate) fn write(
        &mut self,
        rows: usize,
        fields: &[impl AsRef<Field> + Sync],
        array_of: impl Fn(usize) -> EngineResult<ArrayRef> + Sync,
    ) -> EngineResult<()> {
        let columns = self.columns.iter_mut().zip(fields).enumerate();
        in_parallel(columns, rows, |(index, (column, field))| {
            for leaf in compute_leaves(field.as_ref(), &array_of(index)?).map_err(failed)? {
                column.write(&leaf).map_err(failed)?;
            }
            Ok(())
        })?;
        self.rows += rows;
        Ok(())
    }

    /// Returns the encoded columns in order.
    pub(crate) fn close(self) -> EngineResult<Vec<ArrowColumnChunk>> {
        in_parallel(self.columns.into_iter(), self.rows, |column| column.close().map_err(failed))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err requires")]
pub(crate) fn failed(error: ParquetError) -> EngineError {
    EngineError::internal(format!("writing Parquet failed: {error}"))
}

/// Applies `work` to each item and returns the results in order; uses several threads if there are
/// many rows.
fn in_parallel<I: Send, O: Send>(
    items: impl ExactSizeIterator<Item = I> + Send,
    rows: usize,
    work: impl Fn(I) -> EngineResult<O> + Sync,
) -> EngineResult<Vec<O>> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = if rows < MANY_ROWS { 1 } else { cores.min(MAX_THREADS).min(items.len()) };
    if threads < 2 {
        return items.map(work).collect();
    }
    let count = items.len();
    let queue = Mutex::new(items.enumerate());
    let next = || queue.lock().next();
    let run = || -> EngineResult<Vec<(usize, O)>> {
        let mut done = Vec::with_capacity(count);
        while let Some((index, item)) = next() {
            done.push((index, work(item)?));
        }
        Ok(done)
    };
    let outcomes = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let mut outcomes = vec![run()];
        for other in others {
            outcomes.push(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        outcomes
    });
    let mut done = Vec::with_capacity(count);
    for outcome in outcomes {
        done.extend(outcome?);
    }
    done.sort_unstable_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, results)| results).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_results_keep_the_order_of_their_items() {
        for rows in [0, MANY_ROWS] {
            let results = in_parallel(0..100, rows, |item| Ok(item * 2)).unwrap();
            assert_eq!(results, (0..100).map(|item| item * 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_failure_is_returned() {
        for rows in [0, MANY_ROWS] {
            let work = |item: usize| {
                if item == 7 { Err(EngineError::internal("seven")) } else { Ok(item) }
            };
            assert_eq!(in_parallel(0..100, rows, work).unwrap_err().reason(), "seven");
        }
    }
}
