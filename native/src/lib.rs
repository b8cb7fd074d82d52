//! The border between TypeScript and Rust: converts, and nothing else.
//!
//! At most 30 functions (a test counts them). Small structured values cross as JSON text, rows
//! as bytes. Every error is one JSON object `{code, message, start, end, detail, hint,
//! retryable}`, which `ts/engine` alone reads. A JavaScript buffer is copied before a call
//! leaves the JavaScript thread; a panic anywhere below becomes an `Internal` error.

// napi's macros expand to unsafe code; nothing written here is.
#![deny(unsafe_op_in_unsafe_fn)]

mod calls;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mimalloc::MiMalloc;
use napi::Status;
use napi::bindgen_prelude::{
    ArrayBuffer, BigInt, Buffer, BufferSlice, ClassInstance, Either, Env, FnArgs, Function, Null,
    PromiseRaw, Uint32Array,
};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi_derive::napi;
use tidemark_engine::{
    Appender, CLOSE_TIME, Chunk, CountingAllocator, Database, EngineError, EngineResult, ErrorCode,
    ExecuteOptions, ExecuteReply, Handoff, HandoffResult, LiftedQuery, Messages, OpenOptions,
    ResultStream, Statement, Transaction, WebSocketReader, failpoint, given, log,
};

use crate::calls::{
    encode, error_text, guarded, spawn, spawn_blocking, spawn_on, start_here, sync, to_napi,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator<MiMalloc> = CountingAllocator(MiMalloc);

/// How long the end of a database waits for its log to be read.
const LOG_PATIENCE: Duration = Duration::from_secs(1);

/// Arms failure points before the first call; [`open_database`] answers a malformed list.
#[napi_derive::module_init]
fn arm_failure_points() {
    drop(failpoint::arm_from_environment());
}

/// Version of the addon.
#[napi]
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Version of the on-disk format: its first number.
#[napi]
pub const FORMAT_MAJOR: u32 = tidemark_engine::FORMAT_VERSION.0;

/// Its second number.
#[napi]
pub const FORMAT_MINOR: u32 = tidemark_engine::FORMAT_VERSION.1;

/// Reads all of a root that no server uses and compares every checksum: a JSON list of damages.
#[napi(catch_unwind)]
pub fn check_root(env: &Env, root: String) -> napi::Result<PromiseRaw<'_, String>> {
    spawn_blocking(env, "check_root", move || encode(&tidemark_engine::check_root(root.as_ref())?))
}

/// Hands log lines to `sink` as JSON lists, in batches, from now on. Never blocks the engine.
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

/// Opens a root; `options` is the JSON of `OpenOptions`.
#[napi(catch_unwind, ts_return_type = "Promise<NativeDatabase>")]
pub fn open_database(env: &Env, options: String) -> napi::Result<PromiseRaw<'_, NativeDatabase>> {
    spawn_blocking(env, "open_database", move || {
        let options: OpenOptions = given(options.as_bytes(), "open options")?;
        Ok(NativeDatabase { database: Database::open(&options)? })
    })
}

/// A query with parameters that a text is one of, and what they are in it.
#[napi(object, object_from_js = false)]
pub struct NativeLifted {
    /// Its text.
    pub text: String,
    /// The types of the parameters; null for texts.
    pub types: Vec<Either<&'static str, Null>>,
    /// Their values.
    pub values: Vec<String>,
}

/// Takes the literals that parameters replace out of a text; null where there are none.
#[napi(catch_unwind)]
pub fn lift_literals(text: String) -> napi::Result<Option<NativeLifted>> {
    let lifted = |LiftedQuery { text, types, values }: LiftedQuery<'_>| NativeLifted {
        text,
        types: types.into_iter().map(|of| of.map_or(Either::B(Null), Either::A)).collect(),
        values: values.into_iter().map(Into::into).collect(),
    };
    sync("lift_literals", || Ok(LiftedQuery::of(&text).map(lifted)))
}

/// An open database.
#[napi]
pub struct NativeDatabase {
    database: Arc<Database>,
}

#[napi]
impl NativeDatabase {
    /// Binds a statement: `tree` is the JSON of a `Tree`, `context` of a `StatementContext`.
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

    /// The table's columns and partitioning as JSON, or null.
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

    /// Opens an appender; `spec` is the JSON of an `AppenderSpec`, a `LinesSpec`, a `ColumnsSpec`
    /// or a `CopySpec`, which takes the INSERT whose rows are copied in.
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

    /// Stops a query, or ends a handoff; false when none has this id. `gently`: what runs in a
    /// handoff may end first.
    #[napi(catch_unwind)]
    pub fn cancel_query(&self, query_id: BigInt, gently: Option<bool>) -> napi::Result<bool> {
        let (id, gently) = (query_id.get_u64().1, gently.unwrap_or_default());
        sync("cancel_query", || Ok(self.database.cancel_query(id, gently)))
    }

    /// Answers the client of a socket, which no other code reads or writes until the promise is
    /// settled. `spec` is the JSON of a `HandoffSpec`, which names the statements in their order.
    #[napi(catch_unwind)]
    pub fn hand_off<'env>(
        &self,
        env: &'env Env,
        descriptor: i32,
        spec: String,
        statements: Vec<ClassInstance<'_, NativeStatement>>,
    ) -> napi::Result<PromiseRaw<'env, NativeHandoffResult>> {
        // At once: the descriptor may be another connection's later, and a handoff can be revoked.
        let handoff = sync("lend", || {
            let statements = statements.iter().map(|one| one.get()).collect::<EngineResult<_>>()?;
            Handoff::take(&self.database, descriptor, spec.as_bytes(), statements)
        })?;
        spawn_on(env, &self.database, handoff.run(), NativeHandoffResult::new)
    }

    /// Counters and gauges, what is known to be damaged, and the running queries, as a JSON
    /// object.
    #[napi(catch_unwind)]
    pub fn observe(&self) -> napi::Result<String> {
        sync("observe", || encode(&self.database.observe()))
    }

    /// Begins a transaction of inserts.
    #[napi(catch_unwind)]
    pub fn begin(&self) -> napi::Result<NativeTransaction> {
        sync("begin", || {
            Ok(NativeTransaction {
                database: Arc::clone(&self.database),
                transaction: Arc::new(Transaction::begin(&self.database)),
            })
        })
    }

    /// Durable records of one kind.
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

    /// Commits records; those without a value are deleted. Answers the new epoch.
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

    /// Effective configuration for SHOW PARAMETERS: a JSON list of `Setting`.
    #[napi(catch_unwind)]
    pub fn set_parameters(&self, list: String) -> napi::Result<()> {
        sync("set_parameters", || self.database.set_parameters(list.as_bytes()))
    }

    /// Stops what runs, checkpoints, releases the root, within about so many milliseconds; the log
    /// reports it. It fails where something acknowledged may not be durable.
    #[napi(catch_unwind)]
    pub fn close<'env>(
        &self,
        env: &'env Env,
        within_ms: Option<u32>,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let database = Arc::clone(&self.database);
        let within = within_ms.map_or(CLOSE_TIME, |ms| Duration::from_millis(u64::from(ms)));
        spawn_blocking(env, "close", move || {
            let closed = database.close(within);
            log::wait_until_delivered(LOG_PATIENCE);
            closed
        })
    }
}

/// What comes back when a handoff ends.
#[napi(object, object_from_js = false)]
pub struct NativeHandoffResult {
    /// What the client sent and was not answered.
    pub bytes: Buffer,
    /// What the client is to be sent before anything else.
    pub unsent: Buffer,
    /// The statement that was executed last, where no Sync was answered since.
    pub last: Option<u32>,
    /// Why it failed, as errors cross; its client has not been answered that.
    pub failure: Option<String>,
    /// Its rows, where they are more than one chunk; none of them was sent.
    pub reply: Option<NativeReply>,
    /// Microseconds that each execution took.
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
    /// Commits; answers the new epoch, or null when there was nothing to commit.
    #[napi(catch_unwind)]
    pub fn commit<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, Option<BigInt>>> {
        let (database, transaction) = (Arc::clone(&self.database), Arc::clone(&self.transaction));
        spawn_blocking(env, "transaction_commit", move || {
            Ok(transaction.commit(&database)?.map(BigInt::from))
        })
    }

    /// Forgets everything, or what came after a savepoint.
    #[napi(catch_unwind)]
    pub fn rollback(&self, savepoint: Option<u32>) -> napi::Result<()> {
        sync("transaction_rollback", || match savepoint {
            Some(savepoint) => self.transaction.rollback_to(savepoint),
            None => self.transaction.rollback(),
        })
    }

    /// Marks this moment; answers what `rollback` takes to come back to it.
    #[napi(catch_unwind)]
    pub fn savepoint(&self) -> napi::Result<u32> {
        sync("transaction_savepoint", || self.transaction.savepoint())
    }
}

/// A durable record.
#[napi(object)]
pub struct NativeRecord {
    /// Its key, unique in its kind.
    pub key: String,
    /// Its bytes.
    pub value: Option<Buffer>,
}

impl From<(String, Vec<u8>)> for NativeRecord {
    fn from((key, value): (String, Vec<u8>)) -> Self {
        Self { key, value: Some(value.into()) }
    }
}

/// The answer of `prepare`.
#[napi(object, object_from_js = false)]
pub struct NativePrepared {
    /// The statement.
    pub statement: NativeStatement,
    /// What it is: the JSON of a `StatementDescription`.
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
    /// Rows in them.
    pub rows: f64,
}

/// Bytes from which a chunk is one long row, which is not copied.
const LONG_ROW_BYTES: usize = 4 << 20;

impl NativeChunk {
    /// Copies the bytes into memory of the JavaScript heap, which is collected as it fills; memory
    /// of ours in its hands waits for the next collection, whatever brings it about. Of 10 M rows
    /// read at full speed 19 MiB are held as JSON and 1 as CSV, and were 29 and 25. A long row is
    /// handed over as it is: to copy 64 MiB keeps JavaScript's thread for more than 50 ms.
    fn new(env: &Env, Chunk { bytes, rows }: Chunk) -> napi::Result<Self> {
        let bytes = match bytes.len() {
            LONG_ROW_BYTES.. => ArrayBuffer::from_data(env, bytes)?,
            _ => ArrayBuffer::copy_from(env, &bytes)?,
        };
        Ok(Self { bytes, rows: rows as f64 })
    }
}

/// The answer of `execute`: the first rows, and either the summary (JSON) or the rest. Then the
/// answers of the rest: rows, or at the end the summary.
#[napi(object, object_from_js = false)]
pub struct NativeReply {
    /// The first rows.
    pub chunk: Option<NativeChunk>,
    /// Totals, when nothing follows.
    pub summary: Option<String>,
    /// The rest.
    pub stream: Option<NativeResultStream>,
    /// The numbers that rows were given, as JSON, where they were.
    pub drawn: Option<String>,
    /// What the rows are of a change, as JSON.
    pub change: Option<String>,
    /// The epoch as long as which the same question has the same answer.
    pub kept_for: Option<f64>,
}

impl NativeReply {
    fn new(env: &Env, reply: ExecuteReply) -> napi::Result<Self> {
        let chunk = reply.chunk.map(|chunk| NativeChunk::new(env, chunk)).transpose()?;
        let summary = reply.summary.as_ref().map(encode).transpose().map_err(to_napi)?;
        let stream = reply.stream.map(|stream| NativeResultStream { stream: Arc::new(stream) });
        let kept_for = reply.kept_for.map(|epoch| epoch as f64);
        let drawn = (!reply.drawn.is_empty()).then(|| encode(&reply.drawn));
        let drawn = drawn.transpose().map_err(to_napi)?;
        let change = reply.change.as_ref().map(encode).transpose().map_err(to_napi)?;
        Ok(Self { chunk, summary, stream, drawn, change, kept_for })
    }
}

#[napi]
impl NativeStatement {
    /// The newest epoch, if preparing it anew would surely give the same description.
    #[napi(catch_unwind)]
    pub fn current_epoch(&self) -> napi::Result<Option<f64>> {
        sync("current_epoch", || Ok(self.get()?.current_epoch().map(|epoch| epoch as f64)))
    }

    /// Runs the statement. `parameters` is one row of them, as `ts/engine/parameters.ts` writes
    /// it; `options` the JSON of `ExecuteOptions`.
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
        // Before the caller goes on, so that a request to cancel it finds it.
        let (options, registration) = sync("execute", || {
            let options: ExecuteOptions = given(options.as_bytes(), "options")?;
            let registration = statement.register(&options)?;
            Ok((options, registration))
        })?;
        let parameters = parameters.to_vec();
        let work = guarded("execute", async move {
            statement.execute(registration, &parameters, options).await
        });
        let made = NativeReply::new;
        if here {
            start_here(env, &database, work, made)
        } else {
            spawn_on(env, &database, work, made)
        }
    }

    /// Runs an INSERT for many rows of parameters in the same form, in one commit.
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

    /// Lets the plan and its snapshot go.
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
    /// The next chunk, of at most `max_rows` rows when the query was opened with a row limit; at
    /// the end the summary.
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

/// Bytes on their way into tables.
#[napi]
pub struct NativeAppender {
    database: Arc<Database>,
    appender: Arc<Appender>,
}

#[napi]
impl NativeAppender {
    /// Queues bytes, copied before this returns; answers bytes and rows so far as JSON.
    /// `memory`: that of the bytes, which is free afterwards. Or reads messages that a WebSocket
    /// keeps; answers a `MessagesProgress`.
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
                // Queueing is short, and most often there is room.
                let work = guarded("append", async move { encode(&appender.write(bytes).await?) });
                start_here(env, &self.database, work, |_, progress| Ok(progress))
            }
            Either::B(socket) => {
                let kept = socket.kept.as_ref().map(Arc::clone).unwrap_or_default();
                spawn(env, "append", async move { encode(&appender.read(kept).await?) })
            }
        }
    }

    /// Ends one text and begins another in the same commit; answers what was read of the first.
    #[napi(catch_unwind)]
    pub fn next_text<'env>(
        &self,
        env: &'env Env,
        csv: String,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let appender = Arc::clone(&self.appender);
        spawn(env, "append_text", async move { encode(&appender.next_text(csv.as_bytes()).await?) })
    }

    /// Commits; answers the report as JSON. Of lines and columns, the first call answers what they
    /// would change. `split`: a plan of several commits is given up for one of the first.
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

    /// Leaves no trace.
    #[napi(catch_unwind)]
    pub fn abort<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, ()>> {
        let appender = Arc::clone(&self.appender);
        spawn(env, "append_abort", async move { appender.abort().await })
    }
}

/// Reads the frames that the client of a WebSocket sends.
#[napi]
pub struct NativeWebSocket {
    reader: WebSocketReader,
    /// Messages for an appender, which never become JavaScript's.
    kept: Option<Arc<Messages>>,
}

/// What bytes of a WebSocket came to.
#[napi(object, object_from_js = false)]
pub struct NativeReceived<'env> {
    /// Messages that are whole, unless they are kept.
    pub messages: Vec<BufferSlice<'env>>,
    /// Messages that are kept.
    pub kept: u32,
    /// Bytes of them.
    pub kept_bytes: f64,
    /// What the client is to be sent.
    pub reply: Option<Buffer>,
    /// Whether nothing follows.
    pub is_over: bool,
    /// The code to close the connection with where the client broke a rule.
    pub close_code: Option<u16>,
    /// Which one.
    pub reason: Option<String>,
}

#[napi]
impl NativeWebSocket {
    /// No message may be longer. `keeps`: they are for an appender.
    #[napi(constructor, catch_unwind)]
    pub fn new(most_message_bytes: u32, keeps: bool) -> Self {
        let reader = WebSocketReader::new(most_message_bytes as usize);
        Self { reader, kept: keeps.then(Arc::default) }
    }

    /// Takes what came. The memory is free afterwards: what waits for the collector makes it run.
    #[napi(catch_unwind)]
    pub fn receive<'env>(
        &mut self,
        env: &'env Env,
        bytes: ArrayBuffer<'_>,
    ) -> napi::Result<NativeReceived<'env>> {
        let received = sync("websocket_receive", || Ok(self.reader.receive(&bytes)))?;
        bytes.detach()?;
        let (messages, (kept, kept_bytes)) = match &self.kept {
            Some(kept) => {
                kept.add(received.messages);
                (Vec::new(), kept.left())
            }
            None => {
                // Copied into memory that JavaScript collects as it fills.
                let message = |bytes: &_| BufferSlice::copy_from(env, bytes);
                let messages = received.messages.iter().map(message);
                (messages.collect::<napi::Result<_>>()?, (0, 0))
            }
        };
        let (close_code, reason) = received.failure.unzip();
        Ok(NativeReceived {
            messages,
            kept: u32::try_from(kept).unwrap_or(u32::MAX),
            kept_bytes: kept_bytes as f64,
            reply: (!received.reply.is_empty()).then(|| received.reply.into()),
            is_over: received.is_over,
            close_code,
            reason,
        })
    }
}
