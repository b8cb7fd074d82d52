//! The border between TypeScript and Rust, which only converts values.
//!
//! It has at most 30 functions (a test counts them). Small structured values cross as JSON, rows as
//! bytes. Every error is a JSON object `{code, message, start, end, detail, hint, retryable}`,
//! which only `ts/engine` reads. A JavaScript buffer is copied before a call leaves the JavaScript
//! thread. A panic anywhere below becomes an `Internal` error.

// napi's macros expand to unsafe code; this crate contains no other unsafe code.
#![deny(unsafe_op_in_unsafe_fn)]

mod calls;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mimalloc::MiMalloc;
use napi::Status;
use napi::bindgen_prelude::{
    ArrayBuffer, BigInt, Buffer, BufferSlice, ClassInstance, Either, Env, FnArgs, Function, Null,
    Object, PromiseRaw, Uint32Array,
};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi_derive::napi;
use tidemark_engine::{
    Appender, CLOSE_TIME, Chunk, CountingAllocator, Database, EngineError, EngineResult, ErrorCode,
    ExecuteOptions, ExecuteReply, Handle, Handoff, HandoffResult, LiftedQuery, Messages,
    OpenOptions, ResultStream, Statement, Transaction, WebSocketReader, failpoint, given, log,
    retain_main_heap,
};

use crate::calls::{
    encode, error_text, guarded, spawn, spawn_blocking, spawn_on, start_here, sync, to_napi,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator<MiMalloc> = CountingAllocator(MiMalloc);

/// How long closing a database waits for its log lines to be delivered.
const LOG_PATIENCE: Duration = Duration::from_secs(1);

/// Arms failure points before the first call; [`open_database`] reports a malformed list.
#[napi_derive::module_init]
fn arm_failure_points() {
    drop(failpoint::arm_from_environment());
}

/// Runs on each thread that loads the addon, and prepares for the thread's end.
#[napi(module_exports)]
pub fn on_load(_: Object<'_>) -> napi::Result<()> {
    retain_main_heap();
    Ok(())
}

/// Version of the addon.
#[napi]
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Major version of the on-disk format.
#[napi]
pub const FORMAT_MAJOR: u32 = tidemark_engine::FORMAT_VERSION.0;

/// Minor version of the on-disk format.
#[napi]
pub const FORMAT_MINOR: u32 = tidemark_engine::FORMAT_VERSION.1;

/// Reads all data in a root that is not in use, and verifies every checksum. Returns the damage
/// found, as a JSON list.
#[napi(catch_unwind)]
pub fn check_root(env: &Env, root: String) -> napi::Result<PromiseRaw<'_, String>> {
    spawn_blocking(env, "check_root", move || encode(&tidemark_engine::check_root(root.as_ref())?))
}

/// From now on, delivers log lines to `sink` in batches, as JSON lists. Never blocks the engine.
#[napi(catch_unwind)]
pub fn set_log_sink(sink: Function<'_, FnArgs<(String,)>, ()>) -> napi::Result<()> {
    let sink = sink.build_threadsafe_function().weak::<true>().build()?;
    sync("set_log_sink", || {
        std::thread::Builder::new()
            .name("tidemark-log".to_owned())
            .spawn(move || {
                loop {
                    let batch = log::take_batch();
                    let text = serde_json::to_string(&batch).unwrap_or_else(|_| "[]".to_owned());
                    let mode = ThreadsafeFunctionCallMode::NonBlocking;
                    let status = sink.call_with_return_value((text,).into(), mode, |_, _| {
                        log::delivered();
                        Ok(())
                    });
                    if status != Status::Ok {
                        log::delivered();
                    }
                }
            })
            .map_err(|error| EngineError::io("cannot start the log thread", &error))?;
        Ok(())
    })
}

/// Opens a root, or shares it if this process has opened it; `options` is the JSON of
/// `OpenOptions`.
#[napi(catch_unwind, ts_return_type = "Promise<NativeDatabase>")]
pub fn open_database(env: &Env, options: String) -> napi::Result<PromiseRaw<'_, NativeDatabase>> {
    spawn_blocking(env, "open_database", move || {
        let options: OpenOptions = given(options.as_bytes(), "open options")?;
        let handle = Arc::new(Handle::open(&options)?);
        Ok(NativeDatabase { database: Arc::clone(handle.database()), handle })
    })
}

/// A parameterized query extracted from SQL text, with the values of its parameters.
#[napi(object, object_from_js = false)]
pub struct NativeLifted {
    /// The SQL text with parameters.
    pub text: String,
    /// Parameter types; null for strings.
    pub types: Vec<Either<&'static str, Null>>,
    /// Parameter values.
    pub values: Vec<String>,
}

/// Replaces the literals in SQL text with parameters; returns null if none can be replaced.
#[napi(catch_unwind)]
pub fn lift_literals(text: String) -> napi::Result<Option<NativeLifted>> {
    let lifted = |LiftedQuery { text, types, values }: LiftedQuery<'_>| NativeLifted {
        text,
        types: types.into_iter().map(|of| of.map_or(Either::B(Null), Either::A)).collect(),
        values: values.into_iter().map(Into::into).collect(),
    };
    sync("lift_literals", || Ok(LiftedQuery::of(&text).map(lifted)))
}

/// A handle on an open database, which other handles of the process may share.
#[napi]
pub struct NativeDatabase {
    database: Arc<Database>,
    handle: Arc<Handle>,
}

#[napi]
impl NativeDatabase {
    /// Binds a statement: `tree` is a `Tree` as JSON, and `context` a `StatementContext` as JSON.
    #[napi(catch_unwind)]
    pub fn prepare<'env>(
        &self,
        env: &'env Env,
        tree: BufferSlice<'_>,
        context: String,
        transaction: Option<&NativeTransaction>,
    ) -> napi::Result<PromiseRaw<'env, NativePrepared>> {
        let database = Arc::clone(&self.database);
        let tree = tree.to_vec();
        let transaction = transaction.map(|transaction| Arc::clone(&transaction.transaction));
        let work = guarded("prepare", async move {
            let statement = Statement::prepare(&database, &tree, context.as_bytes(), transaction)?;
            let description = encode(&statement.describe())?;
            Ok(NativePrepared { statement: NativeStatement::new(statement), description })
        });
        spawn_on(env, &self.database, work, |_, prepared| Ok(prepared))
    }

    /// Returns the table's columns and partitioning as JSON, or null.
    #[napi(catch_unwind)]
    pub fn table_metadata<'env>(
        &self,
        env: &'env Env,
        name: String,
    ) -> napi::Result<PromiseRaw<'env, Option<String>>> {
        let database = Arc::clone(&self.database);
        spawn(env, "table_metadata", async move {
            database.table_metadata(&name)?.as_ref().map(encode).transpose()
        })
    }

    /// Opens an appender. `spec` is the JSON of an `AppenderSpec`, `LinesSpec`, `ColumnsSpec` or
    /// `CopySpec`; `insert` is the INSERT of a COPY.
    #[napi(catch_unwind)]
    pub fn open_appender<'env>(
        &self,
        env: &'env Env,
        spec: String,
        insert: Option<&NativeStatement>,
    ) -> napi::Result<PromiseRaw<'env, NativeAppender>> {
        let database = Arc::clone(&self.database);
        let insert = insert.map(NativeStatement::get).transpose().map_err(to_napi)?;
        spawn_blocking(env, "open_appender", move || {
            let target = insert.as_deref().map(Statement::for_copy).transpose()?;
            let appender = Appender::open(&database, spec.as_bytes(), target)?;
            Ok(NativeAppender { database, appender: Arc::new(appender) })
        })
    }

    /// Cancels a query or revokes a handoff; returns false for an unknown id. With `gently`, the
    /// running statement of a handoff may finish first.
    #[napi(catch_unwind)]
    pub fn cancel_query(&self, query_id: BigInt, gently: Option<bool>) -> napi::Result<bool> {
        let (id, gently) = (query_id.get_u64().1, gently.unwrap_or_default());
        sync("cancel_query", || Ok(self.database.cancel_query(id, gently)))
    }

    /// Serves the client on a socket. No other code may read or write the socket until the promise
    /// is settled. `spec` is the JSON of a `HandoffSpec`, which lists the statements in order.
    #[napi(catch_unwind)]
    pub fn hand_off<'env>(
        &self,
        env: &'env Env,
        descriptor: i32,
        spec: String,
        statements: Vec<ClassInstance<'_, NativeStatement>>,
    ) -> napi::Result<PromiseRaw<'env, NativeHandoffResult>> {
        // This runs synchronously, because the descriptor may later belong to another connection,
        // and because the handoff can be revoked from now on.
        let handoff = sync("lend", || {
            let statements = statements.iter().map(|one| one.get()).collect::<EngineResult<_>>()?;
            Handoff::take(&self.database, descriptor, spec.as_bytes(), statements)
        })?;
        spawn_on(env, &self.database, handoff.run(), NativeHandoffResult::new)
    }

    /// Returns counters and gauges, known damage, and the running queries as a JSON object.
    #[napi(catch_unwind)]
    pub fn observe(&self) -> napi::Result<String> {
        sync("observe", || encode(&self.database.observe()))
    }

    /// Begins an insert transaction.
    #[napi(catch_unwind)]
    pub fn begin(&self) -> napi::Result<NativeTransaction> {
        sync("begin", || {
            Ok(NativeTransaction {
                database: Arc::clone(&self.database),
                transaction: Arc::new(Transaction::begin(&self.database)),
            })
        })
    }

    /// Returns the durable records of one kind.
    #[napi(catch_unwind)]
    pub fn load_records<'env>(
        &self,
        env: &'env Env,
        kind: String,
    ) -> napi::Result<PromiseRaw<'env, Vec<NativeRecord>>> {
        let database = Arc::clone(&self.database);
        let work = guarded("load_records", async move { database.load_records(&kind) });
        spawn_on(env, &self.database, work, |_, records| {
            Ok(records.into_iter().map(NativeRecord::from).collect())
        })
    }

    /// Commits records; records without a value are deleted. Returns the new epoch.
    #[napi(catch_unwind)]
    pub fn commit_records<'env>(
        &self,
        env: &'env Env,
        kind: String,
        changes: Vec<NativeRecord>,
    ) -> napi::Result<PromiseRaw<'env, BigInt>> {
        let database = Arc::clone(&self.database);
        let bytes = |value: Buffer| value.to_vec();
        let changes = changes.into_iter().map(|one| (one.key, one.value.map(bytes))).collect();
        spawn_blocking(env, "commit_records", move || {
            Ok(BigInt::from(database.commit_records(&kind, changes)?))
        })
    }

    /// Sets the effective configuration for SHOW PARAMETERS: a JSON list of `Setting`.
    #[napi(catch_unwind)]
    pub fn set_parameters(&self, list: String) -> napi::Result<()> {
        sync("set_parameters", || self.database.set_parameters(list.as_bytes()))
    }

    /// Closes the handle. The last handle stops running work, writes a checkpoint and releases the
    /// root, all within roughly this many milliseconds. The log reports the result. Fails if
    /// acknowledged data may not be durable.
    #[napi(catch_unwind)]
    pub fn close<'env>(
        &self,
        env: &'env Env,
        within_ms: Option<u32>,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let handle = Arc::clone(&self.handle);
        let within = within_ms.map_or(CLOSE_TIME, |ms| Duration::from_millis(u64::from(ms)));
        spawn_blocking(env, "close", move || {
            let closed = handle.close(within);
            log::wait_until_delivered(LOG_PATIENCE);
            closed
        })
    }
}

/// State returned when a handoff ends.
#[napi(object, object_from_js = false)]
pub struct NativeHandoffResult {
    /// Bytes that the client sent but that have not been answered.
    pub bytes: Buffer,
    /// Bytes to send to the client before anything else.
    pub unsent: Buffer,
    /// Index of the statement executed last, unless a Sync followed it.
    pub last: Option<u32>,
    /// If that statement failed, its error as JSON, which has not yet been sent to the client.
    pub failure: Option<String>,
    /// Rows of that statement if they exceed one chunk. None of them has been sent.
    pub reply: Option<NativeReply>,
    /// Duration of each execution in microseconds.
    pub micros: Uint32Array,
}

impl NativeHandoffResult {
    fn new(env: &Env, back: HandoffResult) -> napi::Result<Self> {
        let HandoffResult { bytes, unsent, last, failure, reply, micros } = back;
        Ok(Self {
            bytes: bytes.into(),
            unsent: unsent.into(),
            last: last.map(|at| at as u32),
            failure: failure.map(error_text),
            reply: reply.map(|reply| NativeReply::new(env, reply)).transpose()?,
            micros: micros.into(),
        })
    }
}

/// Inserts that become visible together.
#[napi]
pub struct NativeTransaction {
    database: Arc<Database>,
    transaction: Arc<Transaction>,
}

#[napi]
impl NativeTransaction {
    /// Commits; returns the new epoch, or null if there was nothing to commit.
    #[napi(catch_unwind)]
    pub fn commit<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, Option<BigInt>>> {
        let (database, transaction) = (Arc::clone(&self.database), Arc::clone(&self.transaction));
        spawn_blocking(env, "transaction_commit", move || {
            Ok(transaction.commit(&database)?.map(BigInt::from))
        })
    }

    /// Discards all rows, or only those added after a savepoint.
    #[napi(catch_unwind)]
    pub fn rollback(&self, savepoint: Option<u32>) -> napi::Result<()> {
        sync("transaction_rollback", || match savepoint {
            Some(savepoint) => self.transaction.rollback_to(savepoint),
            None => self.transaction.rollback(),
        })
    }

    /// Creates a savepoint; returns the number to pass to `rollback`.
    #[napi(catch_unwind)]
    pub fn savepoint(&self) -> napi::Result<u32> {
        sync("transaction_savepoint", || self.transaction.savepoint())
    }
}

/// A durable record.
#[napi(object)]
pub struct NativeRecord {
    /// The key, unique within the record's kind.
    pub key: String,
    /// The value's bytes; absent to delete the record.
    pub value: Option<Buffer>,
}

impl From<(String, Vec<u8>)> for NativeRecord {
    fn from((key, value): (String, Vec<u8>)) -> Self {
        Self { key, value: Some(value.into()) }
    }
}

/// Result of `prepare`.
#[napi(object, object_from_js = false)]
pub struct NativePrepared {
    /// The statement.
    pub statement: NativeStatement,
    /// The JSON of a `StatementDescription`.
    pub description: String,
}

/// A bound statement.
#[napi]
pub struct NativeStatement {
    statement: Mutex<Option<Arc<Statement>>>,
}

impl NativeStatement {
    fn new(statement: Statement) -> Self {
        Self { statement: Mutex::new(Some(Arc::new(statement))) }
    }

    fn get(&self) -> EngineResult<Arc<Statement>> {
        let statement = self.statement.lock().unwrap_or_else(PoisonError::into_inner);
        let closed = || EngineError::new(ErrorCode::Closed, "the statement is closed");
        statement.as_ref().map(Arc::clone).ok_or_else(closed)
    }
}

/// Encoded rows.
#[napi(object, object_from_js = false)]
pub struct NativeChunk {
    /// The bytes.
    pub bytes: ArrayBuffer<'static>,
    /// Number of rows in the bytes.
    pub rows: f64,
}

/// A chunk of at least this many bytes is assumed to be one long row and is not copied.
const LONG_ROW_BYTES: usize = 4 << 20;

impl NativeChunk {
    /// Copies the bytes to the JavaScript heap, which is collected as it fills. If JavaScript
    /// referenced Rust memory instead, that memory would be freed only at the next collection,
    /// which may be much later.
    ///
    /// While 10 M rows are read at full speed, the bytes in memory amount to 19 MiB as JSON and 1
    /// MiB as CSV; without copying, they amount to 29 and 25 MiB. A long row is passed without
    /// copying, because copying 64 MiB blocks the JavaScript thread for more than 50 ms.
    fn new(env: &Env, Chunk { bytes, rows }: Chunk) -> napi::Result<Self> {
        let bytes = match bytes.len() {
            LONG_ROW_BYTES.. => ArrayBuffer::from_data(env, bytes)?,
            _ => ArrayBuffer::copy_from(env, &bytes)?,
        };
        Ok(Self { bytes, rows: rows as f64 })
    }
}

/// Result of `execute`: the first rows, and either the summary (JSON) or a stream of the remaining
/// rows. Reading the stream returns the same type, with rows or, at the end, the summary.
#[napi(object, object_from_js = false)]
pub struct NativeReply {
    /// The first rows.
    pub chunk: Option<NativeChunk>,
    /// The totals; present once there are no more rows.
    pub summary: Option<String>,
    /// The remaining rows, if any.
    pub stream: Option<NativeResultStream>,
    /// Sequence values assigned to the rows, as JSON, if any.
    pub sequence_values: Option<String>,
    /// The change that the rows belong to, as JSON, for a change feed.
    pub change: Option<String>,
    /// The epoch in which every identical request receives this reply, if there is one.
    pub valid_epoch: Option<f64>,
}

impl NativeReply {
    fn new(env: &Env, reply: ExecuteReply) -> napi::Result<Self> {
        let chunk = reply.chunk.map(|chunk| NativeChunk::new(env, chunk)).transpose()?;
        let summary = reply.summary.as_ref().map(encode).transpose().map_err(to_napi)?;
        let stream = reply.stream.map(|stream| NativeResultStream { stream: Arc::new(stream) });
        let kept_for = reply.valid_epoch.map(|epoch| epoch as f64);
        let values = (!reply.sequence_values.is_empty()).then(|| encode(&reply.sequence_values));
        let values = values.transpose().map_err(to_napi)?;
        let change = reply.change.as_ref().map(encode).transpose().map_err(to_napi)?;
        Ok(Self { chunk, summary, stream, sequence_values: values, change, valid_epoch: kept_for })
    }
}

#[napi]
impl NativeStatement {
    /// Returns the newest epoch if preparing the statement again is certain to return the same
    /// description.
    #[napi(catch_unwind)]
    pub fn current_epoch(&self) -> napi::Result<Option<f64>> {
        sync("current_epoch", || Ok(self.get()?.current_epoch().map(|epoch| epoch as f64)))
    }

    /// Executes the statement. `parameters` is one parameter row as written by
    /// `ts/engine/parameters.ts`; `options` is the JSON of `ExecuteOptions`.
    #[napi(catch_unwind)]
    pub fn execute<'env>(
        &self,
        env: &'env Env,
        parameters: BufferSlice<'_>,
        options: String,
    ) -> napi::Result<PromiseRaw<'env, NativeReply>> {
        let statement = self.get().map_err(to_napi)?;
        let database = Arc::clone(statement.database());
        let here = statement.is_immediate();
        // This runs synchronously, so that a cancel request finds the execution.
        let (options, registration) = sync("execute", || {
            let options: ExecuteOptions = given(options.as_bytes(), "options")?;
            let registration = statement.register(&options)?;
            Ok((options, registration))
        })?;
        let parameters = parameters.to_vec();
        let work = guarded("execute", async move {
            statement.execute(registration, &parameters, options).await
        });
        let convert = NativeReply::new;
        if here {
            start_here(env, &database, work, convert)
        } else {
            spawn_on(env, &database, work, convert)
        }
    }

    /// Executes an INSERT for many parameter rows in the same encoding, in one commit.
    #[napi(catch_unwind)]
    pub fn execute_batch<'env>(
        &self,
        env: &'env Env,
        parameter_rows: BufferSlice<'_>,
    ) -> napi::Result<PromiseRaw<'env, NativeReply>> {
        let statement = self.get().map_err(to_napi)?;
        let rows = parameter_rows.to_vec();
        let database = Arc::clone(statement.database());
        let work = guarded("execute_batch", async move { statement.execute_batch(rows).await });
        spawn_on(env, &database, work, NativeReply::new)
    }

    /// Releases the plan and its snapshot.
    #[napi(catch_unwind)]
    pub fn close(&self) -> napi::Result<()> {
        sync("statement_close", || {
            self.statement.lock().unwrap_or_else(PoisonError::into_inner).take();
            Ok(())
        })
    }
}

/// Rows after the first chunk.
#[napi]
pub struct NativeResultStream {
    stream: Arc<ResultStream>,
}

#[napi]
impl NativeResultStream {
    /// Returns the next chunk; at the end, the summary. If the query was opened with a row limit,
    /// the chunk has at most `max_rows` rows.
    #[napi(catch_unwind)]
    pub fn next<'env>(
        &self,
        env: &'env Env,
        max_rows: Option<f64>,
    ) -> napi::Result<PromiseRaw<'env, NativeReply>> {
        let stream = Arc::clone(&self.stream);
        let work = guarded("next", async move {
            let chunk = stream.next(max_rows.map(|rows| rows as u64)).await?;
            let summary = chunk.is_none().then(|| stream.summary()).flatten();
            Ok(ExecuteReply { chunk, summary, ..ExecuteReply::default() })
        });
        env.spawn_future_with_callback(async move { work.await.map_err(to_napi) }, |env, reply| {
            NativeReply::new(env, reply)
        })
    }

    /// Stops the query.
    #[napi(catch_unwind)]
    pub fn cancel(&self) -> napi::Result<()> {
        sync("cancel", || {
            self.stream.cancel();
            Ok(())
        })
    }
}

/// Accepts bytes to write to tables.
#[napi]
pub struct NativeAppender {
    database: Arc<Database>,
    appender: Arc<Appender>,
}

#[napi]
impl NativeAppender {
    /// Queues bytes and returns the progress as JSON. The bytes are copied before this returns.
    /// `memory` is the buffer that holds the bytes; it is detached and freed. If given a WebSocket
    /// instead of bytes, reads the messages that it has queued and returns a `MessagesProgress`.
    #[napi(catch_unwind)]
    pub fn write<'env>(
        &self,
        env: &'env Env,
        chunk: Either<BufferSlice<'_>, ClassInstance<'_, NativeWebSocket>>,
        memory: Option<ArrayBuffer<'_>>,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let appender = Arc::clone(&self.appender);
        match chunk {
            Either::A(bytes) => {
                let bytes = bytes.to_vec();
                memory.map(ArrayBuffer::detach).transpose()?;
                // Queueing takes little time, and usually there is space in the queue.
                let work = guarded("append", async move { encode(&appender.write(bytes).await?) });
                start_here(env, &self.database, work, |_, progress| Ok(progress))
            }
            Either::B(socket) => {
                let queue = socket.queue.as_ref().map(Arc::clone).unwrap_or_default();
                spawn(env, "append", async move { encode(&appender.read(queue).await?) })
            }
        }
    }

    /// Ends one CSV input and begins another in the same commit; returns the report on the first.
    #[napi(catch_unwind)]
    pub fn next_text<'env>(
        &self,
        env: &'env Env,
        csv: String,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let appender = Arc::clone(&self.appender);
        spawn(env, "append_text", async move { encode(&appender.next_text(csv.as_bytes()).await?) })
    }

    /// Commits and returns the report as JSON. For line protocol and the columnar protocol, the
    /// first call returns the planned changes. With `split`, a plan for several commits is replaced
    /// with a plan for the first commit.
    #[napi(catch_unwind)]
    pub fn finish<'env>(
        &self,
        env: &'env Env,
        split: Option<bool>,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let appender = Arc::clone(&self.appender);
        let split = split.unwrap_or_default();
        spawn(env, "append_finish", async move { encode(&appender.finish(split).await?) })
    }

    /// Discards all data.
    #[napi(catch_unwind)]
    pub fn abort<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, ()>> {
        let appender = Arc::clone(&self.appender);
        spawn(env, "append_abort", async move { appender.abort().await })
    }
}

/// Reads frames that a WebSocket client sends.
#[napi]
pub struct NativeWebSocket {
    reader: WebSocketReader,
    /// Message queue for an appender; the messages never reach JavaScript.
    queue: Option<Arc<Messages>>,
}

/// Result of receiving bytes from a WebSocket.
#[napi(object, object_from_js = false)]
pub struct NativeReceived<'env> {
    /// Complete messages, unless they are queued for an appender.
    pub messages: Vec<BufferSlice<'env>>,
    /// Number of messages queued for the appender.
    pub queued_messages: u32,
    /// Total size of these messages in bytes.
    pub queued_bytes: f64,
    /// Bytes to send to the client, if any.
    pub reply: Option<Buffer>,
    /// Whether no more data follows.
    pub is_over: bool,
    /// The connection's close code, if the client violated the protocol.
    pub close_code: Option<u16>,
    /// The violation.
    pub reason: Option<String>,
}

#[napi]
impl NativeWebSocket {
    /// `most_message_bytes` limits the message size. `keeps` specifies whether messages are queued
    /// for an appender.
    #[napi(constructor, catch_unwind)]
    pub fn new(most_message_bytes: u32, keeps: bool) -> Self {
        let reader = WebSocketReader::new(most_message_bytes as usize);
        Self { reader, queue: keeps.then(Arc::default) }
    }

    /// Processes received bytes. Their memory is freed immediately, because it would otherwise
    /// trigger garbage collections.
    #[napi(catch_unwind)]
    pub fn receive<'env>(
        &mut self,
        env: &'env Env,
        bytes: ArrayBuffer<'_>,
    ) -> napi::Result<NativeReceived<'env>> {
        let received = sync("websocket_receive", || Ok(self.reader.receive(&bytes)))?;
        bytes.detach()?;
        let (messages, (queue, kept_bytes)) = match &self.queue {
            Some(queue) => {
                queue.add(received.messages);
                (Vec::new(), queue.left())
            }
            None => {
                // Copies messages to memory that JavaScript collects as it fills.
                let message = |bytes: &_| BufferSlice::copy_from(env, bytes);
                let messages = received.messages.iter().map(message);
                (messages.collect::<napi::Result<_>>()?, (0, 0))
            }
        };
        let (close_code, reason) = received.failure.unzip();
        Ok(NativeReceived {
            messages,
            queued_messages: u32::try_from(queue).unwrap_or(u32::MAX),
            queued_bytes: kept_bytes as f64,
            reply: (!received.reply.is_empty()).then(|| received.reply.into()),
            is_over: received.is_over,
            close_code,
            reason,
        })
    }
}
