//! Encodes an execution's rows, chunk by chunk.

use std::sync::Arc;
use std::time::Instant;

use arrow::record_batch::RecordBatch;
use tidemark_border::Summary;
use tidemark_operators::{cell_bytes, rows_of_bytes};
use tidemark_types::{EngineResult, account, failpoint};
use tidemark_wire::RowEncoder;

use crate::execution::check_faults;
use crate::execution::source::BatchSource;
use crate::execution::window::{LastRows, RowWindow};
use crate::runtime::admission::Admitted;
use crate::runtime::cancel::until_stopped;
use crate::runtime::registry::Registration;
use crate::runtime::work::Work;

/// Size in bytes at which a chunk is closed. Chunks of 256 KiB to 1 MiB cross the border fastest.
const CHUNK_BYTES: usize = 512 * 1024;

/// Number of rows encoded between checks of the chunk size.
const ROWS_PER_STEP: usize = 8 * 1024;

/// Encoded rows.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The encoded bytes.
    pub bytes: Vec<u8>,
    /// Number of encoded rows.
    pub rows: u64,
}

/// A running query's registration and scheduling slot.
pub(crate) struct Running {
    pub(crate) registration: Registration,
    pub(crate) admitted: Admitted,
}

/// A running query, with its source, window and encoder.
pub(crate) struct Cursor {
    source: BatchSource,
    window: RowWindow,
    encoder: RowEncoder,
    /// Whether each chunk contains exactly one batch. Required for Arrow, whose arenas cannot be
    /// split.
    one_batch_per_chunk: bool,
    /// The rows of the current batch that are not yet encoded.
    pending: Option<RecordBatch>,
    /// Buffer for the last rows, if only these are requested. Taken when the source ends.
    last: Option<LastRows>,
    finished: bool,
    started: Instant,
    running: Running,
}

impl Cursor {
    pub(crate) fn new(
        source: BatchSource,
        window: RowWindow,
        last: Option<u64>,
        encoder: RowEncoder,
        one_batch_per_chunk: bool,
        running: Running,
    ) -> Self {
        Self {
            source,
            window,
            encoder,
            one_batch_per_chunk,
            pending: None,
            last: last.map(LastRows::new),
            finished: false,
            started: Instant::now(),
            running,
        }
    }

    pub(crate) fn token(&self) -> crate::runtime::cancel::CancelToken {
        self.running.registration.token.clone()
    }

    /// Returns the state shared by the query's tasks.
    pub(crate) fn work(&self) -> Arc<Work> {
        Arc::clone(&self.running.registration.work)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary {
            rows_returned: self.window.returned(),
            rows_total: self.window.read(),
            rows_affected: 0,
            execute_nanos: u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// Returns the next chunk, with at most `max_rows` rows. A chunk is closed when it reaches
    /// [`CHUNK_BYTES`]. The chunk with the last row also contains the encoder's tail; from then on
    /// [`Cursor::is_finished`] returns true.
    pub(crate) async fn produce(&mut self, max_rows: Option<u64>) -> EngineResult<Chunk> {
        let (token, deadline) = (self.token(), self.running.registration.deadline);
        let work = async {
            self.running.admitted.resume().await?;
            self.fill(max_rows).await
        };
        let chunk = until_stopped(&token, deadline, work).await?;
        // From here on, the chunk's memory is charged to the result's reader.
        self.running.registration.work.account.hand_over(chunk.bytes.capacity());
        Ok(chunk)
    }

    /// Releases the scheduling slot until the next chunk is requested.
    pub(crate) fn pause(&mut self) {
        self.running.admitted.pause();
    }

    async fn fill(&mut self, max_rows: Option<u64>) -> EngineResult<Chunk> {
        failpoint::hit("engine.produce")?;
        let mut chunk = Chunk::default();
        let mut remaining = max_rows.unwrap_or(u64::MAX);
        while remaining > 0 && chunk.bytes.len() < CHUNK_BYTES && self.encoder.free_rows() > 0 {
            let Some(batch) = self.next_rows().await? else {
                self.encoder.finish(&mut chunk.bytes)?;
                self.finished = true;
                break;
            };
            let max = if self.one_batch_per_chunk { usize::MAX } else { ROWS_PER_STEP };
            let max = max.min(self.encoder.free_rows());
            let step = (batch.num_rows().min(max) as u64).min(remaining) as usize;
            let step = if self.one_batch_per_chunk { step } else { rows_within(&batch, step) };
            account::check_allocation(written_bytes(&batch.slice(0, step)))?;
            self.encoder.encode(&batch.slice(0, step), &mut chunk.bytes)?;
            if step < batch.num_rows() {
                self.pending = Some(batch.slice(step, batch.num_rows() - step));
            }
            chunk.rows += step as u64;
            remaining -= step as u64;
            if self.one_batch_per_chunk {
                break;
            }
            if step == ROWS_PER_STEP || account::is_slice_over() {
                // Writing a Parquet row group takes many steps. Yielding between them lets the
                // query be stopped.
                tokio::task::yield_now().await;
            }
        }
        self.encoder.close_chunk(&mut chunk.bytes)?;
        // At this point all data for the chunk has been read.
        check_faults(self.running.registration.faults)?;
        Ok(chunk)
    }

    /// Returns the next rows inside the window.
    async fn next_rows(&mut self) -> EngineResult<Option<RecordBatch>> {
        if let Some(pending) = self.pending.take() {
            return Ok(Some(pending));
        }
        if let Some(last) = self.last.take() {
            self.collect_last(last).await?;
        }
        while !self.window.is_complete() {
            let Some(batch) = self.source.next().await? else { break };
            if let Some(rows) = self.window.cut(&batch) {
                return Ok(Some(rows));
            }
        }
        Ok(None)
    }

    async fn collect_last(&mut self, mut last: LastRows) -> EngineResult<()> {
        while let Some(batch) = self.source.next().await? {
            last.push(batch);
        }
        self.source = BatchSource::Ready(last.into_batches().into_iter());
        Ok(())
    }
}

/// Returns the number of leading rows whose data, including strings, fits in one chunk; at least 1.
fn rows_within(batch: &RecordBatch, max: usize) -> usize {
    rows_of_bytes(&batch.slice(0, max), CHUNK_BYTES)
}

/// Returns the bytes to reserve for rows with large strings. The estimate includes a factor for
/// buffer growth.
fn written_bytes(batch: &RecordBatch) -> usize {
    match cell_bytes(batch) {
        bytes if bytes <= CHUNK_BYTES => 0,
        bytes => 2 * bytes,
    }
}
