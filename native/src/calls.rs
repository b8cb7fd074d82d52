//! Runs calls from JavaScript (on the JavaScript thread, on a runtime, or on blocking threads) and
//! settles their promises.

use std::future::Future;
use std::task::{Context, Poll, Waker};

use napi::JsDeferred;
use napi::bindgen_prelude::{Env, JsValue, PromiseRaw, ToNapiValue};
use serde::Serialize;
use tidemark_engine::{Database, EngineError, EngineResult, ErrorCode, failpoint, guard};

/// Runs a short function on the JavaScript thread.
pub(crate) fn sync<T>(
    entry: &'static str,
    work: impl FnOnce() -> EngineResult<T>,
) -> napi::Result<T> {
    guard::catch(entry, || {
        failpoint::hit(entry)?;
        work()
    })
    .map_err(to_napi)
}

/// Runs a future on the coordinating runtime and returns its promise.
pub(crate) fn spawn<'env, T>(
    env: &'env Env,
    entry: &'static str,
    work: impl Future<Output = EngineResult<T>> + Send + 'static,
) -> napi::Result<PromiseRaw<'env, T>>
where
    T: ToNapiValue + Send + 'static,
{
    env.spawn_future(async move { guarded(entry, work).await.map_err(to_napi) })
}

/// Wraps a future so that panics become errors. A failure point may also end it.
pub(crate) async fn guarded<T>(
    entry: &'static str,
    work: impl Future<Output = EngineResult<T>>,
) -> EngineResult<T> {
    let work = async move {
        failpoint::hit(entry)?;
        work.await
    };
    guard::catch_async(entry, work).await
}

/// Runs a future on the database's own runtime, where queries run, and returns its promise. This
/// takes one thread switch each way.
pub(crate) fn spawn_on<'env, R, T>(
    env: &'env Env,
    database: &Database,
    work: impl Future<Output = EngineResult<R>> + Send + 'static,
    convert: Convert<R, T>,
) -> napi::Result<PromiseRaw<'env, T>>
where
    R: Send + 'static,
    T: ToNapiValue + 'static,
{
    let (deferred, promise) = env.create_deferred::<T, Settle<T>>()?;
    let mut settled = Settled { deferred: Some(deferred) };
    database.handle().spawn(async move { settled.with(work.await, convert) });
    Ok(PromiseRaw::new(env.raw(), promise.raw()))
}

/// Polls a future once on the JavaScript thread, which avoids waking two threads. If the future is
/// still pending, passes it to the database's runtime.
pub(crate) fn start_here<'env, R, T>(
    env: &'env Env,
    database: &Database,
    work: impl Future<Output = EngineResult<R>> + Send + 'static,
    convert: Convert<R, T>,
) -> napi::Result<PromiseRaw<'env, T>>
where
    R: Send + 'static,
    T: ToNapiValue + 'static,
{
    let mut work = Box::pin(work);
    let first = {
        let _runtime = database.handle().enter();
        work.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    };
    match first {
        Poll::Ready(result) => PromiseRaw::resolve(env, convert(env, result.map_err(to_napi)?)?),
        Poll::Pending => spawn_on(env, database, work, convert),
    }
}

/// Converts an engine result to a JavaScript value, on the JavaScript thread.
pub(crate) type Convert<R, T> = fn(&Env, R) -> napi::Result<T>;
type Settle<T> = Box<dyn FnOnce(Env) -> napi::Result<T> + Send>;

/// A promise that is always settled, even if a runtime drops its task while shutting down.
struct Settled<T: ToNapiValue> {
    deferred: Option<JsDeferred<T, Settle<T>>>,
}

impl<T: ToNapiValue + 'static> Settled<T> {
    fn with<R: Send + 'static>(&mut self, result: EngineResult<R>, convert: Convert<R, T>) {
        let Some(deferred) = self.deferred.take() else { return };
        match result {
            Ok(value) => deferred.resolve(Box::new(move |env| convert(&env, value))),
            Err(error) => deferred.reject(to_napi(error)),
        }
    }
}

impl<T: ToNapiValue> Drop for Settled<T> {
    fn drop(&mut self) {
        if let Some(deferred) = self.deferred.take() {
            let error = EngineError::new(ErrorCode::Closed, "the database is closed");
            deferred.reject(to_napi(error));
        }
    }
}

/// Runs a function that may block (for example, by opening files or waiting for a disk) outside the
/// runtime's threads.
pub(crate) fn spawn_blocking<'env, T>(
    env: &'env Env,
    entry: &'static str,
    work: impl FnOnce() -> EngineResult<T> + Send + 'static,
) -> napi::Result<PromiseRaw<'env, T>>
where
    T: ToNapiValue + Send + 'static,
{
    spawn(env, entry, async move { guard::run_blocking(entry, work).await })
}

/// Encodes a value as JSON.
pub(crate) fn encode<T: Serialize>(value: &T) -> EngineResult<String> {
    serde_json::to_string(value).map_err(|error| EngineError::internal(error.to_string()))
}

pub(crate) fn to_napi(error: EngineError) -> napi::Error {
    napi::Error::from_reason(error_text(error))
}

/// Encodes an error as JSON, the only form in which errors cross the border.
pub(crate) fn error_text(error: EngineError) -> String {
    let error = guard::outward(error);
    let json = serde_json::json!({
        "code": error.code,
        "message": error.message,
        "start": error.span.map(|span| span.start),
        "end": error.span.map(|span| span.end),
        "detail": error.detail,
        "hint": error.hint,
        "retryable": error.retryable,
    });
    json.to_string()
}
