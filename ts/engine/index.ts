/**
 * The engine API for TypeScript. Only this folder imports the native addon. It converts JSON
 * strings into the types in `types.ts`, and native errors into `DatabaseError`.
 */
import { threadId } from 'node:worker_threads';

import { native } from './addon.js';
import type { ColumnsSpec, CopySpec, LinesSpec, HandoffSpec } from '../border/types.generated.js';
import { asEngineError, decoded, decodedSync } from './decode.js';
import { type Answered, CachedResult } from './cached-result.js';
import { DatabaseError } from './error.js';
import { exclusiveMemory } from './memory.js';
import { ParameterBatch } from './parameters.js';
import type { WebSocketReader } from './websocket.js';
import type {
  ActiveQuery,
  AllExecuteOptions,
  AppendProgress,
  AppendReport,
  Appender,
  AppenderSpec,
  PermissionRequest,
  BatchReply,
  Chunk,
  ColumnOptions,
  ColumnsAppender,
  CopyAppender,
  CopyForm,
  CopyReply,
  CsvTextSpec,
  Damage,
  Database,
  SequenceValue,
  EngineMetrics,
  ExecuteOptions,
  ExecuteReply,
  HandoffResult,
  LineOptions,
  Handoff,
  HandoffTerms,
  LogLine,
  MessagesProgress,
  Observed,
  OpenOptions,
  Parameters,
  ResultStream,
  RowsAppender,
  RowsReply,
  Setting,
  Statement,
  StatementContext,
  StatementDescription,
  Summary,
  TableChange,
  TableMetadata,
  TextFormatRequest,
  TextShape,
  TextReport,
  Transaction,
} from './types.js';
import type {
  NativeAppender,
  NativeChunk,
  NativeDatabase,
  NativeHandoffResult,
  NativePrepared,
  NativeReply,
  NativeResultStream,
  NativeStatement,
  NativeTransaction,
} from './addon.js';

export { DatabaseError } from './error.js';
export { ParameterBatch } from './parameters.js';
export type * from './types.js';

/** Opens a root directory, and recovers after a crash. */
export async function openDatabase(options: OpenOptions): Promise<Database> {
  const { logSink, ...rest } = options;
  if (logSink !== undefined) {
    setLogSink(logSink);
  }
  return new EngineDatabase(await decoded(native.openDatabase(JSON.stringify(rest))));
}

/** Reads a root that no server is using and verifies every checksum; writes nothing. */
export async function checkRoot(root: string): Promise<readonly Damage[]> {
  return JSON.parse(await decoded(native.checkRoot(root))) as Damage[];
}

let currentSink: ((batch: readonly LogLine[]) => void) | undefined;

/** The process has a single native log sink; opening another database replaces it. */
function setLogSink(sink: (batch: readonly LogLine[]) => void): void {
  const isFirst = currentSink === undefined;
  currentSink = sink;
  if (isFirst) {
    decodedSync(() => {
      native.setLogSink((text) => {
        currentSink?.(JSON.parse(text) as LogLine[]);
      });
    });
  }
}

/** Answers to the binder's permission questions: whether each access is granted. */
type Answers = Readonly<Record<string, boolean>>;

/** Answers to questions that earlier bindings of a statement asked. */
interface Known {
  readonly answers?: Answers;
  readonly texts?: Readonly<Record<string, TextShape>>;
}

type Described = StatementDescription & {
  readonly permissionRequests?: readonly PermissionRequest[];
  readonly texts?: readonly TextFormatRequest[];
};

/** Maximum number of schema detections per statement, in case its files keep changing. */
const MAX_DETECTIONS = 8;

/** Adds answers to a statement's questions. */
async function answered(
  { questions, texts: files }: EngineStatement,
  { allows, detectTextShape }: StatementContext,
  { answers, texts }: Known,
): Promise<Known> {
  const granted = questions.map(({ key, access }) => [key, allows?.(access) === true] as const);
  let more = texts;
  for (const request of files) {
    if (detectTextShape === undefined) {
      throw new DatabaseError({
        code: 'NotSupported',
        message: 'reading text files is not supported here',
      });
    }
    more = { ...more, [request.key]: await detectTextShape(request) };
  }
  return {
    ...(answers === undefined ? {} : { answers: { ...answers, ...Object.fromEntries(granted) } }),
    ...(more === undefined ? {} : { texts: more }),
  };
}

/** Several threads may share a database, so their query ids differ in the upper bits. */
const THREAD_SHIFT = 40n;
let lastQueryId = BigInt(threadId) << THREAD_SHIFT;

class EngineDatabase implements Database {
  readonly #native: NativeDatabase;
  /**
   * Counts of replies from the cache. The engine did not see these requests, but its metrics must
   * include them.
   */
  readonly #answered: Answered = { statements: 0, rows: 0 };
  #isClosed = false;

  constructor(database: NativeDatabase) {
    this.#native = database;
  }

  /** Throws if this handle is closed; other handles may still use the database. */
  #refuseIfClosed(): void {
    if (this.#isClosed) {
      throw new DatabaseError({ code: 'Closed', message: 'the database is closed' });
    }
  }

  async prepare(
    tree: Buffer,
    context: StatementContext,
    transaction?: Transaction,
  ): Promise<Statement> {
    this.#refuseIfClosed();
    const inner = transaction instanceof EngineTransaction ? transaction.native : undefined;
    const prepared = (known: Known): Promise<EngineStatement> =>
      this.#prepared(tree, { ...context, ...known }, inner);
    const nothing: Known = context.allows === undefined ? {} : { answers: {} };
    let detections = 0;
    for (let known = nothing; ;) {
      try {
        const statement = await prepared(known);
        if (statement.isBound) {
          return statement;
        }
        statement.close();
        detections += statement.texts.length > 0 && known.texts === undefined ? 1 : 0;
        known = await answered(statement, context, known);
      } catch (error) {
        const isOther = error instanceof DatabaseError && error.code === 'Replan';
        if (!isOther || detections === 0 || detections === MAX_DETECTIONS) {
          throw error;
        }
        // A file changed, so the schema of all files is detected again.
        known = nothing;
      }
    }
  }

  async #prepared(
    tree: Buffer,
    context: StatementContext & Known,
    inner: NativeTransaction | undefined,
  ): Promise<EngineStatement> {
    const call = this.#native.prepare(tree, JSON.stringify(context), inner);
    const prepared = await decoded(call);
    return new EngineStatement(prepared, this.#native, () => this.newQueryId(), this.#answered);
  }

  async tableMetadata(name: string): Promise<TableMetadata | null> {
    const text = await decoded(this.#native.tableMetadata(name));
    return text == null ? null : (JSON.parse(text) as TableMetadata);
  }

  async openAppender(spec: AppenderSpec): Promise<Appender> {
    this.#refuseIfClosed();
    return new EngineAppender(await decoded(this.#native.openAppender(JSON.stringify(spec))));
  }

  async openLines(options: LineOptions): Promise<RowsAppender> {
    const spec: LinesSpec = { kind: 'lines', ...options };
    return new EngineRowsAppender(await decoded(this.#native.openAppender(JSON.stringify(spec))));
  }

  async openColumns(options: ColumnOptions): Promise<ColumnsAppender> {
    const spec: ColumnsSpec = { kind: 'columns', ...options };
    return new EngineColumnsAppender(
      await decoded(this.#native.openAppender(JSON.stringify(spec))),
    );
  }

  begin(): Transaction {
    this.#refuseIfClosed();
    return new EngineTransaction(decodedSync(() => this.#native.begin()));
  }

  async loadRecords(kind: string): Promise<Map<string, Buffer>> {
    const records = await decoded(this.#native.loadRecords(kind));
    return new Map(records.map(({ key, value }) => [key, value ?? Buffer.alloc(0)]));
  }

  async commitRecords(kind: string, changes: ReadonlyMap<string, Buffer | null>): Promise<bigint> {
    const list = [...changes].map(([key, value]) => (value === null ? { key } : { key, value }));
    return await decoded(this.#native.commitRecords(kind, list));
  }

  setParameters(parameters: readonly Setting[]): void {
    decodedSync(() => {
      this.#native.setParameters(JSON.stringify(parameters));
    });
  }

  newQueryId(): bigint {
    lastQueryId += 1n;
    return lastQueryId;
  }

  cancelQuery(queryId: bigint): boolean {
    return decodedSync(() => this.#native.cancelQuery(queryId));
  }

  handOff(descriptor: number, terms: HandoffTerms, statements: readonly Statement[]): Handoff {
    const id = this.newQueryId();
    const spec = JSON.stringify({ id: Number(id), ...terms } satisfies HandoffSpec);
    const natives = statements.filter((statement) => statement instanceof EngineStatement);
    const ended = decodedSync(() =>
      this.#native.handOff(
        descriptor,
        spec,
        natives.map((statement) => statement.native),
      ),
    );
    return {
      ended: decoded(ended).then(handoffResult),
      revoke: (gently) => void decodedSync(() => this.#native.cancelQuery(id, gently)),
    };
  }

  activeQueries(): readonly ActiveQuery[] {
    return this.#observed().queries.map((query) => ({
      ...query,
      queryId: BigInt(query.queryId),
      startedMicros: BigInt(query.startedMicros),
    }));
  }

  metrics(): EngineMetrics {
    const { numbers } = this.#observed();
    return numbers;
  }

  damages(): readonly Damage[] {
    return this.#observed().damages;
  }

  #observed(): Observed {
    const observed = JSON.parse(decodedSync(() => this.#native.observe())) as Observed;
    const { statements_total: statements = 0, rows_returned_total: rows = 0 } = observed.numbers;
    const all = {
      statements_total: statements + this.#answered.statements,
      rows_returned_total: rows + this.#answered.rows,
    };
    return { ...observed, numbers: { ...observed.numbers, ...all } };
  }

  async close(withinMs?: number): Promise<void> {
    this.#isClosed = true;
    await decoded(this.#native.close(withinMs === undefined ? null : Math.floor(withinMs)));
  }
}

class EngineTransaction implements Transaction {
  readonly native: NativeTransaction;

  constructor(transaction: NativeTransaction) {
    this.native = transaction;
  }

  async commit(): Promise<bigint | null> {
    return (await decoded(this.native.commit())) ?? null;
  }

  rollback(savepoint?: number): void {
    decodedSync(() => {
      this.native.rollback(savepoint);
    });
  }

  savepoint(): number {
    return decodedSync(() => this.native.savepoint());
  }
}

class EngineStatement implements Statement {
  readonly description: StatementDescription;
  /** Questions to answer before the statement can be bound. */
  readonly questions: readonly PermissionRequest[];
  readonly texts: readonly TextFormatRequest[];
  readonly native: NativeStatement;
  readonly #database: NativeDatabase;
  readonly #newQueryId: () => bigint;
  readonly #cachedResult: CachedResult;

  constructor(
    prepared: NativePrepared,
    database: NativeDatabase,
    newQueryId: () => bigint,
    answered: Answered,
  ) {
    this.native = prepared.statement;
    this.#database = database;
    this.#newQueryId = newQueryId;
    this.#cachedResult = new CachedResult(answered);
    const described = JSON.parse(prepared.description) as Described;
    this.description = described;
    this.questions = described.permissionRequests ?? [];
    this.texts = described.texts ?? [];
  }

  get isBound(): boolean {
    return this.questions.length === 0 && this.texts.length === 0;
  }

  async execute(parameters: Parameters, options: ExecuteOptions): Promise<ExecuteReply> {
    const known =
      options.changes === undefined
        ? this.#cachedResult.find(options, () => this.#currentEpoch())
        : null;
    if (known !== null) {
      return known;
    }
    const { rows, skip, take, countAll, last, firstChunkRows } = options;
    const { timeoutMs, elapsedMs, changes, text } = options;
    const queryId = Number(options.queryId ?? this.#newQueryId());
    const sent = {
      rows,
      skip,
      take,
      countAll,
      last,
      firstChunkRows,
      timeoutMs,
      elapsedMs,
      queryId,
      changes,
      text,
    };
    const all: Record<keyof AllExecuteOptions, unknown> = sent;
    try {
      const row =
        parameters instanceof ParameterBatch ? parameters : ParameterBatch.row(parameters);
      const native = await this.native.execute(row.bytes, JSON.stringify(all));
      const answer = reply(native);
      if (native.validEpoch != null) {
        this.#cachedResult.store(native.validEpoch, options, answer);
      }
      return answer;
    } catch (error) {
      throw asEngineError(error);
    }
  }

  async executeBatch(rows: ParameterBatch): Promise<BatchReply> {
    const call = decodedSync(() => this.native.executeBatch(rows.bytes));
    const { summary, sequenceValues } = reply(await decoded(call));
    if (summary === null) {
      throw new DatabaseError({ code: 'Internal', message: 'the batch has no summary' });
    }
    return { summary, ...(sequenceValues === undefined ? {} : { sequenceValues }) };
  }

  async openCopy(form: CopyForm): Promise<CopyAppender> {
    const spec: CopySpec = { kind: 'copy', ...form };
    const opened = decodedSync(() =>
      this.#database.openAppender(JSON.stringify(spec), this.native),
    );
    return new EngineCopyAppender(await decoded(opened));
  }

  isCurrent(): boolean {
    return this.#currentEpoch() !== null;
  }

  #currentEpoch(): number | null {
    return decodedSync(() => this.native.currentEpoch());
  }

  close(): void {
    decodedSync(() => {
      this.native.close();
    });
  }
}

function handoffResult(native: NativeHandoffResult): HandoffResult {
  const { bytes, unsent, last, failure, reply: more, micros } = native;
  return {
    bytes,
    unsent,
    last: last ?? null,
    error: failure == null ? null : asEngineError(failure),
    reply: more == null ? null : reply(more),
    micros,
  };
}

function chunkOf({ bytes, rows }: NativeChunk): Chunk {
  return { bytes: Buffer.from(bytes), rows };
}

function summaryOf({ summary }: NativeReply): Summary | null {
  return summary == null ? null : (JSON.parse(summary) as Summary);
}

function reply(native: NativeReply): ExecuteReply {
  return {
    chunk: native.chunk == null ? null : chunkOf(native.chunk),
    summary: summaryOf(native),
    stream: native.stream == null ? null : new EngineResultStream(native.stream),
    ...(native.change == null ? {} : { change: JSON.parse(native.change) as TableChange }),
    ...(native.sequenceValues == null
      ? {}
      : { sequenceValues: JSON.parse(native.sequenceValues) as SequenceValue[] }),
  };
}

class EngineResultStream implements ResultStream {
  readonly #native: NativeResultStream;
  #summary: Summary | null = null;

  constructor(stream: NativeResultStream) {
    this.#native = stream;
  }

  async next(maxRows?: number): Promise<Chunk | null> {
    const native = await decoded(this.#native.next(maxRows));
    this.#summary = summaryOf(native);
    if (native.chunk == null && this.#summary === null) {
      // The database was closed before the query had sent all of its rows.
      throw new DatabaseError({ code: 'Closed', message: 'the database is closed' });
    }
    return native.chunk == null ? null : chunkOf(native.chunk);
  }

  summary(): Summary {
    if (this.#summary === null) {
      throw asEngineError(new Error('the result has more rows: no summary yet'));
    }
    return this.#summary;
  }

  cancel(): void {
    decodedSync(() => {
      this.#native.cancel();
    });
  }
}

/** Base class of all appenders, which provides their common `abort`. */
class Input {
  protected readonly native: NativeAppender;

  constructor(appender: NativeAppender) {
    this.native = appender;
  }

  async abort(): Promise<void> {
    await decoded(this.native.abort());
  }
}

/** Base class of appenders that receive bytes. */
class Chunks extends Input {
  async write(chunk: Buffer): Promise<AppendProgress> {
    return await this.queued(chunk, null);
  }

  protected async queued(chunk: Buffer, memory: ArrayBuffer | null): Promise<AppendProgress> {
    // Errors that occur immediately are thrown; later errors reject the promise.
    const written = decodedSync(() => this.native.write(chunk, memory));
    return JSON.parse(await decoded(written)) as AppendProgress;
  }
}

class EngineColumnsAppender extends Input implements ColumnsAppender {
  async read({ native }: WebSocketReader): Promise<MessagesProgress> {
    return JSON.parse(await decoded(this.native.write(native))) as MessagesProgress;
  }

  async finish(split: boolean): Promise<RowsReply> {
    return JSON.parse(await decoded(this.native.finish(split))) as RowsReply;
  }
}

class EngineRowsAppender extends Chunks implements RowsAppender {
  async transfer(chunk: Buffer): Promise<AppendProgress> {
    return await this.queued(chunk, exclusiveMemory(chunk));
  }

  async finish(): Promise<RowsReply> {
    return JSON.parse(await decoded(this.native.finish())) as RowsReply;
  }
}

class EngineCopyAppender extends Chunks implements CopyAppender {
  async finish(): Promise<CopyReply> {
    return JSON.parse(await decoded(this.native.finish())) as CopyReply;
  }
}

class EngineAppender extends Chunks implements Appender {
  async nextText(csv: CsvTextSpec): Promise<TextReport> {
    return JSON.parse(await decoded(this.native.nextText(JSON.stringify(csv)))) as TextReport;
  }

  async finish(): Promise<AppendReport> {
    return JSON.parse(await decoded(this.native.finish())) as AppendReport;
  }
}
