//! Hands chunks to the border with back-pressure.
//!
//! A stream read without row limits is pumped: a task stays up to [`CHUNKS_AHEAD`] chunks ahead
//! of the socket. A portal with row limits is read on demand, since only the client knows how
//! many rows the next chunk may hold.

use std::sync::Arc;

use parking_lot::Mutex;
use tidemark_types::{EngineError, EngineResult};
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, mpsc};

use crate::cancel::{CancelToken, Deadline, until_stopped};
use crate::execution::cursor::{Chunk, Cursor};
use crate::guard;
use crate::options::Summary;

/// Chunks made before the reader takes one.
const CHUNKS_AHEAD: usize = 2;

/// The rows after the first chunk.
pub struct ResultStream {
    feed: Feed,
    summary: Arc<Mutex<Option<Summary>>>,
    token: CancelToken,
    runtime: Handle,
}

enum Feed {
    Pumped(AsyncMutex<mpsc::Receiver<EngineResult<Chunk>>>),
    OnDemand(Arc<AsyncMutex<Cursor>>),
}

impl ResultStream {
    /// A stream that runs ahead of its reader.
    pub(crate) fn pumped(cursor: Cursor, runtime: Handle) -> Self {
        let token = cursor.token();
        let summary = Arc::new(Mutex::new(None));
        let (sender, receiver) = mpsc::channel(CHUNKS_AHEAD);
        runtime.spawn(pump(cursor, sender, Arc::clone(&summary)));
        Self { feed: Feed::Pumped(AsyncMutex::new(receiver)), summary, token, runtime }
    }

    /// A stream whose reader says how many rows each chunk may hold.
    pub(crate) fn on_demand(mut cursor: Cursor, runtime: Handle) -> Self {
        cursor.pause();
        let token = cursor.token();
        let cursor = Arc::new(AsyncMutex::new(cursor));
        Self { feed: Feed::OnDemand(cursor), summary: Arc::default(), token, runtime }
    }

    /// The next chunk; `None` at the end.
    pub async fn next(&self, max_rows: Option<u64>) -> EngineResult<Option<Chunk>> {
        match &self.feed {
            Feed::Pumped(receiver) => receiver.lock().await.recv().await.transpose(),
            Feed::OnDemand(cursor) => self.produce(Arc::clone(cursor), max_rows).await,
        }
    }

    async fn produce(
        &self,
        cursor: Arc<AsyncMutex<Cursor>>,
        max_rows: Option<u64>,
    ) -> EngineResult<Option<Chunk>> {
        let summary = Arc::clone(&self.summary);
        let work = async move {
            let mut cursor = cursor.lock().await;
            if cursor.is_finished() {
                return Ok(None);
            }
            let chunk = cursor.produce(max_rows).await?;
            cursor.pause();
            if cursor.is_finished() {
                *summary.lock() = Some(cursor.summary());
            }
            let is_empty = chunk.rows == 0 && chunk.bytes.is_empty();
            Ok((!is_empty).then_some(chunk))
        };
        let task = self.runtime.spawn(guard::catch_async("stream", work));
        task.await.map_err(|error| EngineError::internal(error.to_string()))?
    }

    /// Totals, once the end was reached.
    pub fn summary(&self) -> Option<Summary> {
        *self.summary.lock()
    }

    /// Whether the end was reached.
    pub fn is_finished(&self) -> bool {
        self.summary.lock().is_some()
    }

    /// Stops the query.
    pub fn cancel(&self) {
        self.token.cancel();
    }
}

impl Drop for ResultStream {
    fn drop(&mut self) {
        self.token.cancel();
    }
}

/// Makes chunks until the end, the reader's end, or a cancel. The cursor goes before an error is
/// handed over: a reader that never reads again must not keep the query running.
async fn pump(
    mut cursor: Cursor,
    sender: mpsc::Sender<EngineResult<Chunk>>,
    summary: Arc<Mutex<Option<Summary>>>,
) {
    let chunks = &sender;
    let work = async move {
        let token = cursor.token();
        while !cursor.is_finished() {
            let chunk = cursor.produce(None).await?;
            if cursor.is_finished() {
                *summary.lock() = Some(cursor.summary());
            }
            if chunk.rows == 0 && chunk.bytes.is_empty() {
                continue;
            }
            if chunks.capacity() == 0 {
                cursor.pause();
            }
            let hand_over = async { Ok(chunks.send(Ok(chunk)).await.is_ok()) };
            if !until_stopped(&token, Deadline::default(), hand_over).await? {
                break; // the reader is gone
            }
        }
        Ok(())
    };
    if let Err(error) = guard::catch_async("stream", work).await {
        // A closed channel means that nobody waits for the error either.
        let _ = sender.send(Err(error)).await;
    }
}
