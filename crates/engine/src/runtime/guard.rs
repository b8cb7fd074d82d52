//! Converts panics to errors, at every public entry point of the engine and in every worker.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::runtime::log::{self, Level};
use crate::runtime::work::following_run;

static NEXT_INCIDENT: AtomicU64 = AtomicU64::new(1);

/// Runs `work`; converts a panic to an `Internal` error.
pub fn catch<T>(entry: &'static str, work: impl FnOnce() -> EngineResult<T>) -> EngineResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(panicked(entry, &*payload)))
}

/// Runs `work` on a file written by another program. If `work` panics, returns the reader's error
/// for an invalid file and logs the panic message.
pub fn catch_unreadable<T>(
    entry: &'static str,
    unreadable: impl FnOnce(EngineError) -> EngineError,
    work: impl FnOnce() -> EngineResult<T>,
) -> EngineResult<T> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|payload| Err(unreadable(panicked(entry, &*payload))))
}

/// Runs `work` to completion; converts a panic to an `Internal` error.
pub async fn catch_async<T>(
    entry: &'static str,
    work: impl Future<Output = EngineResult<T>>,
) -> EngineResult<T> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(result) => result,
        Err(payload) => Err(panicked(entry, &*payload)),
    }
}

/// Runs `work` on a separate thread. Work that tasks wait for must not need a blocking thread,
/// because these tasks may already occupy all blocking threads.
pub fn run_on_thread<T: Send + 'static>(
    entry: &'static str,
    work: impl FnOnce() -> EngineResult<T> + Send + 'static,
) -> impl Future<Output = EngineResult<T>> {
    on_own_thread(entry, following_run(work))
}

async fn on_own_thread<T: Send + 'static>(
    entry: &'static str,
    work: impl FnOnce() -> EngineResult<T> + Send + 'static,
) -> EngineResult<T> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().name(format!("tidemark-{entry}"));
    let spawned = thread.spawn(move || {
        // Sending fails if the statement was cancelled and its receiver is gone.
        let _ = sender.send(catch(entry, work));
    });
    spawned.map_err(|error| EngineError::io("cannot start a thread", &error))?;
    receiver.await.map_err(|error| EngineError::internal(error.to_string()))?
}

/// Runs `work` on a blocking thread. Must be called inside a tokio runtime.
pub fn run_blocking<T: Send + 'static>(
    entry: &'static str,
    work: impl FnOnce() -> EngineResult<T> + Send + 'static,
) -> impl Future<Output = EngineResult<T>> {
    on_blocking_thread(entry, following_run(work))
}

async fn on_blocking_thread<T: Send + 'static>(
    entry: &'static str,
    work: impl FnOnce() -> EngineResult<T> + Send + 'static,
) -> EngineResult<T> {
    match tokio::task::spawn_blocking(move || catch(entry, work)).await {
        Ok(result) => result,
        Err(error) => Err(EngineError::internal(error.to_string())),
    }
}

/// Returns the error for a worker that panicked. The panic message is logged under an id, which the
/// client receives.
pub fn panicked(entry: &'static str, payload: &(dyn Any + Send)) -> EngineError {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("panic without a message");
    let incident = next_incident();
    let fields = serde_json::json!({ "incident": incident, "entry": entry, "panic": text });
    log::write(Level::Error, "engine", "panic", fields);
    let message = format!("internal error {incident} in {entry}; see the server log");
    EngineError::new(ErrorCode::Internal, message)
}

/// Returns the error to send to the client. If the error contains a library's message, logs that
/// message under an id and returns the id instead. Every error that crosses the border passes
/// through this function.
#[must_use]
pub fn outward(mut error: EngineError) -> EngineError {
    let Some(inner) = error.inner.take() else { return error };
    let incident = next_incident();
    let is_defect = error.code == ErrorCode::Internal;
    let level = if is_defect { Level::Error } else { Level::Info };
    let fields = serde_json::json!({
        "incident": incident,
        "code": error.code,
        "error": error.message,
        "inner": inner,
    });
    log::write(level, "engine", "failed", fields);
    if is_defect {
        error.message = format!("internal error {incident}; see the server log");
    }
    error
}

fn next_incident() -> u64 {
    NEXT_INCIDENT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_error_messages_are_logged_but_not_returned() {
        let error = outward(EngineError::internal("Schema error: no field r1.a"));
        assert!(error.message.starts_with("internal error "), "{error}");
        assert_eq!(error.inner, None);
        let known = EngineError::new(ErrorCode::InvalidValue, "out of range").with_inner("Arrow");
        assert_eq!(outward(known).message, "out of range");
    }

    #[test]
    fn a_panic_becomes_an_internal_error() {
        let result: EngineResult<()> = catch("test", || panic!("boom"));
        assert_eq!(result.unwrap_err().code, ErrorCode::Internal);
        let result: EngineResult<()> =
            futures::executor::block_on(catch_async("test", async { panic!("boom") }));
        assert_eq!(result.unwrap_err().code, ErrorCode::Internal);
    }
}
