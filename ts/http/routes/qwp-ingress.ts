/**
 * /write/v4 and /api/v4/write: rows in the columnar protocol (QWP) over a WebSocket. An OK confirms
 * that all rows of its message and of earlier messages are as durable as configured.
 */
import { type Config, KEYS } from '../../config/index.js';
import {
  ColumnFlow,
  type ColumnSender,
  type CommittedRows,
  MessageError,
} from '../../ingest/index.js';
import type { Logger, ProtocolMetrics } from '../../observability/index.js';
import {
  asDatabaseError,
  type ColumnOptions,
  type Database,
  WriteAuthorizer,
} from '../../session/index.js';
import { ClientDisconnected } from '../response/body-writer.js';
import { STATUS } from '../qwp-status.js';
import { answerText, type HttpContext, type HttpServices } from '../route.js';
import { CLOSE, type WebSocketConnection } from '../websocket/connection.js';
import { LastingLogin } from '../websocket/lasting-login.js';
import type { Acceptance, WebSocketRoute } from '../websocket/route.js';

const PATHS = ['/write/v4', '/api/v4/write'];
const VERSION = 1;

/** Maximum message size in bytes, regardless of the configured buffers. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/** Maximum size of a frame header, in bytes. */
const FRAME_HEAD_BYTES = 14;

/** Errors that the message itself did not cause; clients send the message again. */
const WRITE_ERRORS: ReadonlySet<string> = new Set([
  'Busy',
  'Closed',
  'Damaged',
  'DiskFull',
  'Io',
  'OutOfMemory',
  'ReadOnly',
  'Replan',
  'RootLocked',
  'Timeout',
  'Cancelled',
]);

export function qwpIngressRoutes(services: HttpServices): WebSocketRoute[] {
  return PATHS.map((path) => ({
    path,
    about: 'WebSocket that accepts rows in the columnar protocol',
    accept: (context) => accept(context, services),
  }));
}

function accept(context: HttpContext, services: HttpServices): Acceptance | null {
  const { config, sessions, logger } = services;
  const readOnly = config.get(KEYS.httpReadOnly);
  if (readOnly) {
    // Status 403 is not used, so that clients that know several servers try the next one.
    answerText(context, 503, 'this server is read-only');
    return null;
  }
  const newest = context.get('X-QWP-Max-Version').trim();
  if (newest !== '' && !/^[1-9]\d{0,8}$/.test(newest)) {
    answerText(context, 400, 'Bad Request: X-QWP-Max-Version must be a number from 1');
    return null;
  }
  const maxMessageBytes = maxMessageBytesOf(config);
  context.set('X-QWP-Version', String(VERSION));
  context.set('X-QWP-Max-Batch-Size', String(maxMessageBytes));
  const requestsDurable = context.get('X-QWP-Request-Durable-Ack').trim().toLowerCase() === 'true';
  // In other commit modes, the server never learns when the operating system has written the data.
  const tellsDurable = requestsDurable && config.get(KEYS.commitMode) === 'sync';
  if (tellsDurable) {
    context.set('X-QWP-Durable-Ack', 'enabled');
  }
  const login = LastingLogin.of(context, readOnly);
  const options = columnOptions(config);
  const metrics = services.ingest.of('qwp');
  const { commitSeconds } = metrics;
  const writeAuthorizer = new WriteAuthorizer(sessions.guard, { principal: login, commitSeconds });
  const setting = {
    database: sessions.database,
    options,
    login,
    writeAuthorizer,
    tellsDurable,
    metrics,
  };
  return {
    maxMessageBytes,
    buffersMessages: true,
    run: (connection) => new Sender(connection, setting, logger.child('qwp')).run(),
  };
}

function maxMessageBytesOf(config: Config): number {
  const bytes = config.get(KEYS.qwpMessageLimit) - FRAME_HEAD_BYTES;
  return Math.max(1, Math.min(bytes, MAX_MESSAGE_BYTES));
}

function columnOptions(config: Config): ColumnOptions {
  return {
    createTables: config.get(KEYS.lineCreateTables),
    createColumns: config.get(KEYS.lineCreateColumns),
    partitionBy: config.get(KEYS.linePartitionBy),
    maxRows: config.get(KEYS.qwpMaxRows),
    maxTables: config.get(KEYS.qwpMaxTables),
    maxDictionaryBytes: config.get(KEYS.qwpDictionaryBytes),
    maxPendingRows: config.get(KEYS.qwpWaitingRows),
    maxPendingBytes: config.get(KEYS.qwpWaitingBytes),
    maxTotalBytes: config.get(KEYS.qwpOpenBytes),
  };
}

/** A connection's dependencies and settings. */
interface Setting {
  readonly database: Database;
  readonly options: ColumnOptions;
  readonly login: LastingLogin;
  readonly writeAuthorizer: WriteAuthorizer;
  readonly tellsDurable: boolean;
  readonly metrics: ProtocolMetrics;
}

/** A client that sends rows. */
class Sender implements ColumnSender {
  readonly #connection: WebSocketConnection;
  readonly #setting: Setting;
  readonly #logger: Logger;
  /** Sequence number of the last answered message; messages are numbered from 0. */
  #sequence = -1n;
  /** Bytes of messages read so far. */
  #bytes = 0;
  /**
   * Time at which processing of the current messages started, in milliseconds on the process clock.
   */
  #began = 0;

  constructor(connection: WebSocketConnection, setting: Setting, logger: Logger) {
    this.#connection = connection;
    this.#setting = setting;
    this.#logger = logger;
  }

  async run(): Promise<void> {
    const { database, options, login, writeAuthorizer, metrics } = this.#setting;
    const flow = await ColumnFlow.open(database, options, writeAuthorizer, this);
    try {
      for await (const messages of this.#connection.bufferedMessages()) {
        const refusal = await login.refusal();
        if (refusal !== null) {
          await flow.refuse(refusal);
          break;
        }
        this.#began = performance.now();
        const progress = await flow.take(messages);
        if (progress === null) {
          break;
        }
        metrics.bytes.increment(progress.bytes - this.#bytes);
        this.#bytes = progress.bytes;
        this.#connection.reportRemaining({ count: progress.left, bytes: progress.leftBytes });
      }
    } finally {
      await flow.close();
    }
  }

  /** Sends an OK for each requested commit, even if several were written together. */
  async committed(commit: CommittedRows): Promise<void> {
    const { metrics, tellsDurable } = this.#setting;
    if (commit.tables.length > 0) {
      metrics.rows.increment(commit.rows);
      metrics.commits.increment();
    }
    metrics.requestSeconds?.observe((performance.now() - this.#began) / 1000);
    const answers: Buffer[][] = [];
    for (const { messages, rows, tables, forced } of commit.commits) {
      if (forced) {
        this.#logger.info('commit_forced', { rows, tables: tables.length });
      }
      this.#sequence += BigInt(messages);
      const names = tables.flatMap((index) => commit.tables[index] ?? []);
      const list = tableList(names, commit.transaction);
      answers.push([head(STATUS.ok, this.#sequence), list]);
      if (tellsDurable && names.length > 0) {
        answers.push([Buffer.from([STATUS.durable]), list]);
      }
    }
    await this.#connection.sendAll(answers);
  }

  /**
   * Refuses a message and closes the connection. No later message is applied; the client resends
   * the refused message and all later ones.
   */
  async failed(error: unknown, sequence: number): Promise<void> {
    if (error instanceof ClientDisconnected) {
      return;
    }
    const { status, message } = refusalOf(error);
    this.#setting.metrics.errors.increment();
    const isOurs = status === STATUS.internalError || status === STATUS.writeError;
    this.#logger.log(isOurs ? 'warn' : 'info', 'message_refused', { status, message, sequence });
    const refusal = [head(status, BigInt(sequence)), text(message)];
    await this.#connection.send(...refusal).catch(ignoreDisconnect);
    this.#connection.close(CLOSE.failure, message);
  }
}

function ignoreDisconnect(error: unknown): void {
  if (!(error instanceof ClientDisconnected)) {
    throw error;
  }
}

function refusalOf(error: unknown): { readonly status: number; readonly message: string } {
  if (error instanceof MessageError) {
    return error;
  }
  const { code, message } = asDatabaseError(error);
  if (code === 'AccessDenied') {
    return { status: STATUS.securityError, message };
  }
  if (code === 'Internal') {
    return { status: STATUS.internalError, message };
  }
  const status = WRITE_ERRORS.has(code) ? STATUS.writeError : STATUS.schemaMismatch;
  return { status, message };
}

function head(status: number, sequence: bigint): Buffer {
  const bytes = Buffer.alloc(9);
  bytes[0] = status;
  bytes.writeBigInt64LE(sequence, 1);
  return bytes;
}

/** Encodes a list of tables, each with the commit's transaction number. */
function tableList(tables: readonly string[], transaction: number): Buffer {
  const count = Buffer.alloc(2);
  count.writeUInt16LE(tables.length);
  const number = Buffer.alloc(8);
  number.writeBigInt64LE(BigInt(transaction));
  return Buffer.concat([count, ...tables.flatMap((table) => [text(table), number])]);
}

/** Encodes a string, truncated if it exceeds the length field. */
function text(content: string): Buffer {
  const bytes = Buffer.from(content).subarray(0, 0xff_ff);
  const length = Buffer.alloc(2);
  length.writeUInt16LE(bytes.length);
  return Buffer.concat([length, bytes]);
}
