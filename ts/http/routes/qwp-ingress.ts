/**
 * /write/v4 and /api/v4/write: rows in the columnar protocol (QWP) over a WebSocket. An OK says
 * that every row of the messages up to it is as durable as is configured.
 */
import { type Config, KEYS } from '../../config/index.js';
import { ColumnFlow, type CommittedRows, MessageError } from '../../ingest/index.js';
import type { Logger, ProtocolMetrics } from '../../observability/index.js';
import {
  asDatabaseError,
  type ColumnOptions,
  type Database,
  WriteDoor,
} from '../../session/index.js';
import { ClientGone } from '../response/body-writer.js';
import { STATUS } from '../qwp-status.js';
import { answerText, type HttpContext, type HttpServices } from '../route.js';
import { CLOSE, type WebSocketConnection } from '../websocket/connection.js';
import { LastingLogin } from '../websocket/lasting-login.js';
import type { Acceptance, WebSocketRoute } from '../websocket/route.js';

const PATHS = ['/write/v4', '/api/v4/write'];
const VERSION = 1;

/** Of a message, whatever buffers are configured. */
const MOST_MESSAGE_BYTES = 16 * 1024 * 1024;
/** What a frame has beside its message, at most. */
const FRAME_HEAD_BYTES = 14;

const FLAGS_AT = 5;
const DEFER_COMMIT = 0x01;

/** What a message cannot be blamed for: clients send it again. */
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
    about: 'WebSocket: rows in the columnar protocol',
    accept: (context) => accept(context, services),
  }));
}

function accept(context: HttpContext, services: HttpServices): Acceptance | null {
  const { config, sessions, logger } = services;
  const readOnly = config.get(KEYS.httpReadOnly);
  if (readOnly) {
    // Not 403: clients that know several servers go on to the next one.
    answerText(context, 503, 'this server is read-only');
    return null;
  }
  const newest = context.get('X-QWP-Max-Version').trim();
  if (newest !== '' && !/^[1-9]\d{0,8}$/.test(newest)) {
    answerText(context, 400, 'Bad Request: X-QWP-Max-Version is no version');
    return null;
  }
  const mostMessageBytes = mostBytes(config);
  context.set('X-QWP-Version', String(VERSION));
  context.set('X-QWP-Max-Batch-Size', String(mostMessageBytes));
  const asksForDurable = context.get('X-QWP-Request-Durable-Ack').trim().toLowerCase() === 'true';
  // Otherwise the operating system writes when it likes, and says nothing of it.
  const tellsDurable = asksForDurable && config.get(KEYS.commitMode) === 'sync';
  if (tellsDurable) {
    context.set('X-QWP-Durable-Ack', 'enabled');
  }
  const login = LastingLogin.of(context, readOnly);
  const options = columnOptions(config);
  const metrics = services.ingest.of('qwp');
  const { commitSeconds } = metrics;
  const door = new WriteDoor(sessions.guard, { principal: login, commitSeconds });
  const setting = { database: sessions.database, options, login, door, tellsDurable, metrics };
  return {
    mostMessageBytes,
    run: (connection) => new Sender(connection, setting, logger.child('qwp')).run(),
  };
}

function mostBytes(config: Config): number {
  const bytes = config.get(KEYS.qwpMessageLimit) - FRAME_HEAD_BYTES;
  return Math.max(1, Math.min(bytes, MOST_MESSAGE_BYTES));
}

function columnOptions(config: Config): ColumnOptions {
  return {
    createTables: config.get(KEYS.lineCreateTables),
    createColumns: config.get(KEYS.lineCreateColumns),
    partitionBy: config.get(KEYS.linePartitionBy),
    mostRows: config.get(KEYS.qwpMostRows),
    mostTables: config.get(KEYS.qwpMostTables),
    mostDictionaryBytes: config.get(KEYS.qwpDictionaryBytes),
    mostWaitingRows: config.get(KEYS.qwpWaitingRows),
    mostHeldBytes: config.get(KEYS.qwpWaitingBytes),
    mostOpenBytes: config.get(KEYS.qwpOpenBytes),
  };
}

/** What a connection is served with. */
interface Setting {
  readonly database: Database;
  readonly options: ColumnOptions;
  readonly login: LastingLogin;
  readonly door: WriteDoor;
  readonly tellsDurable: boolean;
  readonly metrics: ProtocolMetrics;
}

/** One client that sends rows. */
class Sender {
  readonly #connection: WebSocketConnection;
  readonly #setting: Setting;
  readonly #logger: Logger;
  /** Messages are numbered from 0. */
  #sequence = -1n;

  constructor(connection: WebSocketConnection, setting: Setting, logger: Logger) {
    this.#connection = connection;
    this.#setting = setting;
    this.#logger = logger;
  }

  async run(): Promise<void> {
    const { database, options, door } = this.#setting;
    const flow = await ColumnFlow.open(database, options, door);
    try {
      for await (const message of this.#connection.messages()) {
        this.#sequence += 1n;
        await this.#take(flow, message);
      }
    } catch (error) {
      if (error instanceof ClientGone) {
        throw error;
      }
      await this.#refuse(error);
    } finally {
      await flow.close();
    }
  }

  async #take(flow: ColumnFlow, message: Buffer): Promise<void> {
    const { login, metrics, tellsDurable } = this.#setting;
    const refusal = await login.refusal();
    if (refusal !== null) {
      throw refusal;
    }
    const began = performance.now();
    metrics.bytes.increment(message.length);
    const defers = ((message[FLAGS_AT] ?? 0) & DEFER_COMMIT) !== 0;
    const { commit, isForced } = await flow.take(message, defers);
    if (commit === null) {
      // The OK of the commit is that of its messages, too.
      return;
    }
    if (commit.tables.length > 0) {
      metrics.rows.increment(commit.rows);
      metrics.commits.increment();
    }
    if (isForced) {
      this.#logger.info('commit_forced', { rows: commit.rows, tables: commit.tables.length });
    }
    metrics.requestSeconds?.observe((performance.now() - began) / 1000);
    await this.#connection.send(okFrame(this.#sequence, commit));
    if (tellsDurable && commit.tables.length > 0) {
      await this.#connection.send(Buffer.from([STATUS.durable]), tableList(commit));
    }
  }

  /** Nothing after a message that is wrong is applied: the client begins anew with it. */
  async #refuse(error: unknown): Promise<void> {
    const { status, message } = refusalOf(error);
    this.#setting.metrics.errors.increment();
    const isOurs = status === STATUS.internalError || status === STATUS.writeError;
    const sequence = Number(this.#sequence);
    this.#logger.log(isOurs ? 'warn' : 'info', 'message_refused', { status, message, sequence });
    await this.#connection.send(errorFrame(status, this.#sequence, message));
    this.#connection.close(CLOSE.failure, message);
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

function okFrame(sequence: bigint, commit: CommittedRows): Buffer {
  const head = Buffer.alloc(9);
  head[0] = STATUS.ok;
  head.writeBigInt64LE(sequence, 1);
  return Buffer.concat([head, tableList(commit)]);
}

/** Each with its transaction, which is that of the commit. */
function tableList({ tables, transaction }: CommittedRows): Buffer {
  const count = Buffer.alloc(2);
  count.writeUInt16LE(tables.length);
  const number = Buffer.alloc(8);
  number.writeBigInt64LE(BigInt(transaction));
  return Buffer.concat([count, ...tables.flatMap((table) => [text(table), number])]);
}

function errorFrame(status: number, sequence: bigint, message: string): Buffer {
  const head = Buffer.alloc(9);
  head[0] = status;
  head.writeBigInt64LE(sequence, 1);
  return Buffer.concat([head, text(message)]);
}

/** Cut where it is longer than its length can say. */
function text(content: string): Buffer {
  const bytes = Buffer.from(content).subarray(0, 0xff_ff);
  const length = Buffer.alloc(2);
  length.writeUInt16LE(bytes.length);
  return Buffer.concat([length, bytes]);
}
