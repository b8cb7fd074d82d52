//! Delivers chunks to the border with back-pressure.
//!
//! A stream without row limits is produced in advance: a task runs up to [`CHUNKS_AHEAD`] chunks
//! ahead of the socket. A portal with row limits produces chunks on demand, because only the client
//! knows the maximum number of rows for the next chunk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tidemark_border::Summary;
use tidemark_types::{EngineError, EngineResult};
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, mpsc};

use crate::execution::cursor::{Chunk, Cursor};
use crate::runtime::cancel::{CancelToken, Deadline, until_stopped};
use crate::runtime::guard;
use crate::runtime::work::Work;

/// Maximum number of chunks produced ahead of the reader.
const CHUNKS_AHEAD: usize = 2;

/// The rows after the first chunk.
pub struct ResultStream {
    feed: Feed,
    summary: Arc<Mutex<Option<Summary>>>,
    token: CancelToken,
    runtime: Handle,
    /// Whether a cancellation discarded chunks that no reader had received.
    is_emptied: AtomicBool,
}

enum Feed {
    Pumped(AsyncMutex<mpsc::Receiver<EngineResult<Chunk>>>),
    OnDemand(Paused, Arc<Work>),
}

/// A cursor between two chunks; `None` after its end. A stopped cursor is dropped immediately
/// because it holds memory and a snapshot, and its reader may never return.
type Paused = Arc<AsyncMutex<Option<Cursor>>>;

impl ResultStream {
    /// Creates a stream that produces chunks ahead of its reader.
    pub(crate) fn pumped(cursor: Cursor, runtime: Handle) -> Self {
        let token = cursor.token();
        let summary = Arc::new(Mutex::new(None));
        let (sender, receiver) = mpsc::channel(CHUNKS_AHEAD);
        let work = cursor.work();
        runtime.spawn(work.of(pump(cursor, sender, Arc::clone(&summary))));
        let is_emptied = AtomicBool::default();
        Self { feed: Feed::Pumped(AsyncMutex::new(receiver)), summary, token, runtime, is_emptied }
    }

    /// Creates a stream whose reader sets the number of rows per chunk.
    pub(crate) fn on_demand(mut cursor: Cursor, runtime: Handle) -> Self {
        cursor.pause();
        let token = cursor.token();
        let work = cursor.work();
        let cursor = Arc::new(AsyncMutex::new(Some(cursor)));
        runtime.spawn(drop_when_stopped(token.clone(), Arc::clone(&cursor)));
        let feed = Feed::OnDemand(cursor, work);
        Self { feed, summary: Arc::default(), token, runtime, is_emptied: AtomicBool::default() }
    }

    /// Returns the next chunk; `None` at the end.
    pub async fn next(&self, max_rows: Option<u64>) -> EngineResult<Option<Chunk>> {
        match &self.feed {
            Feed::Pumped(receiver) => match receiver.lock().await.recv().await.transpose()? {
                None if self.is_emptied.load(Ordering::Acquire) => Err(self.token.error()),
                chunk => Ok(chunk),
            },
            Feed::OnDemand(cursor, work) => self.produce(Arc::clone(cursor), work, max_rows).await,
        }
    }

    async fn produce(
        &self,
        cursor: Paused,
        query: &Arc<Work>,
        max_rows: Option<u64>,
    ) -> EngineResult<Option<Chunk>> {
        let (summary, token) = (Arc::clone(&self.summary), self.token.clone());
        let work = async move {
            let mut guard = cursor.lock().await;
            let Some(cursor) = guard.as_mut() else {
                return if summary.lock().is_some() { Ok(None) } else { Err(token.error()) };
            };
            let chunk = cursor.produce(max_rows).await?;
            cursor.pause();
            if cursor.is_finished() {
                *summary.lock() = Some(cursor.summary());
                *guard = None;
                // Ends the background task that waits to drop the cursor on cancellation.
                token.cancel();
            }
            let is_empty = chunk.rows == 0 && chunk.bytes.is_empty();
            Ok((!is_empty).then_some(chunk))
        };
        let task = self.runtime.spawn(guard::catch_async("stream", query.of(work)));
        task.await.map_err(|error| EngineError::internal(error.to_string()))?
    }

    /// Returns the totals once the end is reached.
    pub fn summary(&self) -> Option<Summary> {
        *self.summary.lock()
    }

    /// Whether the reader has reached the end.
    pub fn is_finished(&self) -> bool {
        self.summary.lock().is_some()
    }

    /// Stops the query and discards the chunks it has produced.
    pub fn cancel(&self) {
        self.token.cancel();
        if let Feed::Pumped(receiver) = &self.feed
            && let Ok(mut chunks) = receiver.try_lock()
        {
            self.is_emptied.store(true, Ordering::Release);
            chunks.close();
            while chunks.try_recv().is_ok() {}
        }
    }
}

impl Drop for ResultStream {
    fn drop(&mut self) {
        self.token.cancel();
    }
}

/// Drops a cursor as soon as any caller stops its query.
async fn drop_when_stopped(token: CancelToken, cursor: Paused) {
    token.cancelled().await;
    // The same token stops a reader that is currently using the cursor.
    *cursor.lock().await = None;
}

/// Produces chunks until the rows end, the query is cancelled, or the reader disappears. The cursor
/// is dropped before an error is sent, so a reader that never reads again cannot keep the query
/// running.
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
                break; // No reader is left.
            }
        }
        Ok(())
    };
    if let Err(error) = guard::catch_async("stream", work).await {
        // Sending fails if no reader is left to receive the error.
        let _ = sender.send(Err(error)).await;
    }
}
