//! Passes received bytes to the reader for their format, through a queue with a byte limit. The
//! reader occupies a thread only while bytes are queued, so idle clients occupy none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tidemark_border::AppendProgress;
use tidemark_types::{EngineError, EngineResult, ErrorCode, failpoint};
use tokio::sync::Semaphore;

use super::queue::Queue;
use crate::database::Database;
use crate::runtime::guard;

/// Parses bytes in one format into rows.
pub(super) trait Reader: Send + 'static {
    /// The error that stops reading.
    type Failure: From<EngineError> + Send + 'static;

    /// Parses the next bytes. Must not be called again after an error.
    fn read(&mut self, bytes: &[u8]) -> Result<(), Self::Failure>;

    /// Number of rows parsed so far.
    fn rows(&self) -> u64;
}

/// The byte queue of one appender.
pub(super) struct Feed<R: Reader>(Arc<Shared<R>>);

struct Shared<R: Reader> {
    database: Arc<Database>,
    /// Maximum number of bytes in the queue.
    max_waiting_bytes: usize,
    free_bytes: Semaphore,
    bytes: AtomicU64,
    rows: AtomicU64,
    /// Set after a failure, the end of the input or an abort. Chunks that arrive later are
    /// discarded.
    is_over: AtomicBool,
    failure: Mutex<Option<R::Failure>>,
    chunks: Mutex<Queue<Vec<u8>>>,
    /// `None` after the end of the input or an abort.
    reader: Mutex<Option<R>>,
}

impl<R: Reader> Feed<R> {
    pub(super) fn new(database: &Arc<Database>, most_waiting: usize, reader: R) -> Self {
        Self(Arc::new(Shared {
            database: Arc::clone(database),
            max_waiting_bytes: most_waiting,
            free_bytes: Semaphore::new(most_waiting),
            bytes: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            failure: Mutex::new(None),
            chunks: Queue::new(),
            reader: Mutex::new(Some(reader)),
        }))
    }

    /// Queues bytes; resolves when the queue has space. Discards bytes that follow a failure.
    pub(super) async fn write(&self, chunk: Vec<u8>) -> EngineResult<AppendProgress> {
        let shared = &self.0;
        shared.database.check_open()?;
        let length = chunk.len();
        // A chunk that is larger than the queue waits until it can reserve the entire queue.
        let required = u32::try_from(length.min(shared.max_waiting_bytes)).unwrap_or(u32::MAX);
        if let Ok(permit) = shared.free_bytes.acquire_many(required).await {
            permit.forget(); // The reader releases the queue space.
            if shared.chunks.lock().add(chunk) {
                let shared = Arc::clone(shared);
                self.0.database.handle().spawn_blocking(move || shared.read_waiting());
            }
        }
        shared.database.metrics.bytes_imported.add(length as u64);
        let bytes = shared.bytes.fetch_add(length as u64, Ordering::Relaxed) + length as u64;
        let rows = shared.rows.load(Ordering::Relaxed);
        let ended = shared.is_over.load(Ordering::Acquire).then_some(true);
        Ok(AppendProgress { bytes, rows, ended })
    }

    /// Reads all queued chunks, then runs `work`, which receives the reader and may take it. If
    /// reading has failed, returns that failure instead.
    pub(super) async fn then<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Option<R>) -> Result<T, R::Failure> + Send + 'static,
    ) -> EngineResult<Result<T, R::Failure>> {
        let shared = Arc::clone(&self.0);
        guard::run_blocking("parser", move || {
            // The reading thread holds this lock until the queue is empty.
            let mut guard = shared.reader.lock();
            // Taken out of the shared state so that a panic drops the reader.
            let mut reader = guard.take();
            let done = guard::catch("parser", || {
                shared.read_all(&mut reader);
                let failure = shared.failure.lock().take();
                Ok(failure.map_or_else(|| work(&mut reader), Err))
            });
            let done = done.unwrap_or_else(|panicked| Err(panicked.into()));
            match reader {
                Some(reader) if done.is_ok() => *guard = Some(reader),
                _ => shared.end(),
            }
            Ok(done)
        })
        .await
    }

    /// Stops reading and discards the data. Returns the failure, if any.
    pub(super) async fn abort(&self) -> EngineResult<Option<R::Failure>> {
        let shared = Arc::clone(&self.0);
        shared.end();
        guard::run_blocking("parser", move || {
            let reader = shared.reader.lock().take();
            shared.chunks.lock().clear();
            drop(reader);
            Ok(shared.failure.lock().take())
        })
        .await
    }
}

impl<R: Reader> Shared<R> {
    fn read_waiting(&self) {
        let mut reader = self.reader.lock();
        let outcome = guard::catch("parser", || {
            self.read_all(&mut reader);
            Ok(())
        });
        if let Err(panicked) = outcome {
            // Removes the reader before another task can use it, because its rows may be
            // incomplete.
            *reader = None;
            self.fail(panicked.into());
        }
    }

    fn read_all(&self, reader: &mut Option<R>) {
        loop {
            let chunk = self.chunks.lock().next();
            let Some(chunk) = chunk else { return };
            match reader {
                Some(reader) if !self.is_over.load(Ordering::Acquire) => {
                    let read = failpoint::hit("engine.parser").map_err(R::Failure::from);
                    let read = read.and_then(|()| reader.read(&chunk));
                    self.rows.store(reader.rows(), Ordering::Relaxed);
                    if let Err(failure) = read {
                        self.fail(failure);
                    }
                }
                _ => {}
            }
            self.free_bytes.add_permits(chunk.len().min(self.max_waiting_bytes));
        }
    }

    /// Records a failure, unless one has already been recorded.
    fn fail(&self, failure: R::Failure) {
        self.failure.lock().get_or_insert(failure);
        self.end();
    }

    /// Stops reading, and wakes writers that wait for queue space.
    fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.free_bytes.close();
    }
}

pub(super) fn ended() -> EngineError {
    EngineError::new(ErrorCode::InvalidValue, "the appender is closed")
}
