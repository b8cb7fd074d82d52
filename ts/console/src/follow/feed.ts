/**
 * Follows the last rows of a table through the server's change feed. The feed contains added rows.
 * After any other change, or if too many rows were added, the last rows are read again. The feed
 * then resumes at the transaction of that read, so that no row is missed or repeated.
 */
import type { AnswerHead, Column, Row } from '../api/answer.js';
import { aborted, changes, query, SqlError, Unreachable } from '../api/client.js';
import type { ServerEvent } from '../api/events.js';
import { literal, quoted } from '../sql/names.js';
import { LastRows } from './last-rows.js';
import { listen } from './listen.js';
import { pollUntilRecheck, poll } from './polled.js';
import {
  isOfTable,
  pause,
  troubleText,
  waitAfter,
  type Followed,
  type FollowListener,
  type FollowSource,
} from './source.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

interface Read {
  readonly head: AnswerHead;
  readonly rows: readonly Row[];
  /** Last transaction of the table that the rows include, or `undefined` if there are no rows. */
  readonly txn: number | undefined;
}

/** The server requests that this module makes. */
export interface FeedServer {
  readonly changes: (from: string, signal: AbortSignal) => AsyncIterable<ServerEvent>;
  readonly read: (signal: AbortSignal) => Promise<Read>;
  /** Polls the table until the signal aborts. Used if the server provides no feed. */
  readonly poll: (listener: FollowListener, signal: AbortSignal) => Promise<void>;
}

/** Minimum interval between two reads of the last rows. */
const READ_MS = 1000;
/** Minimum interval between two updates of the displayed rows. */
const SHOW_MS = 100;
/**
 * Silence after which the connection counts as lost. The server sends heartbeats more often than
 * this.
 */
const SILENCE_MS = 60_000;
/**
 * Delay before a feed is reopened after it ended. A failure is reported only if reopening fails
 * too.
 */
const REOPEN_MS = 250;
/** Duration after which a feed counts as healthy. */
const LASTED_MS = 5000;

const GONE = 410;
const BUSY = 503;

export function feedSource(
  followed: Followed,
  server: FeedServer = serverOf(followed),
): FollowSource {
  return {
    subscribe: (listener) => {
      const abort = new AbortController();
      void new Feed(followed, server, listener, abort.signal).run();
      return { close: () => abort.abort() };
    },
  };
}

function serverOf(followed: Followed): FeedServer {
  return {
    changes: (from, signal) => changes(followed.table, from, signal),
    read: (signal) => read(followed, signal),
    poll: (listener, signal) => poll(followed, listener, signal),
  };
}

/**
 * Reads the last rows and their transaction in one statement, so that both belong to the same
 * version of the table.
 */
async function read({ table, rows: maxRows }: Followed, signal: AbortSignal): Promise<Read> {
  const txn = `(SELECT table_txn FROM tables() WHERE table_name = ${literal(table)}) AS table_txn`;
  const statement = `SELECT *, ${txn} FROM ${quoted(table)} LIMIT -${maxRows}`;
  const { head, rows } = await query(statement, { signal, maxRows });
  const last = rows.at(-1)?.at(-1);
  return {
    head: { ...head, columns: head.columns.slice(0, -1) },
    rows: rows.map((row) => row.slice(0, -1)),
    txn: last === undefined || last === null ? undefined : Number(last),
  };
}

/** Fields in the data of an event. Which fields are present depends on the event. */
interface EventData {
  readonly txn?: number;
  readonly count?: number;
  readonly columns?: readonly Column[];
  readonly dataset?: readonly Row[];
  readonly error?: string;
}

class Feed {
  readonly #followed: Followed;
  readonly #server: FeedServer;
  readonly #listener: FollowListener;
  readonly #signal: AbortSignal;
  /** Position up to which all rows have been received. The feed resumes after this position. */
  #position: string | undefined;
  #window: LastRows | undefined;
  /** True if the window does not match the table at `#position`. */
  #isStale = true;
  #readAt = -Infinity;
  #isReading = false;
  #shownAt = -Infinity;
  #showing: ReturnType<typeof setTimeout> | undefined;
  /**
   * Rows of a change that is still incomplete. If the feed breaks off, the server sends them again.
   */
  #open: Row[] = [];
  /** Number of rows received since the time `since`. */
  #received = { rows: 0, since: 0 };

  constructor(
    followed: Followed,
    server: FeedServer,
    listener: FollowListener,
    signal: AbortSignal,
  ) {
    this.#followed = followed;
    this.#server = server;
    this.#listener = listener;
    this.#signal = signal;
  }

  /** Follows the table until the signal aborts. */
  async run(): Promise<void> {
    let failures = 0;
    while (!this.#signal.aborted) {
      const beganAt = performance.now();
      try {
        await this.#connection();
        failures = 0;
      } catch (cause) {
        failures = performance.now() - beganAt > LASTED_MS ? 1 : failures + 1;
        await this.#mend(cause, failures);
      }
    }
    clearTimeout(this.#showing);
  }

  /**
   * Reads one feed until it must resume at another position. Rejects if the server ends the feed.
   */
  async #connection(): Promise<void> {
    if (this.#isStale && this.#position !== undefined) {
      await this.#read();
    }
    this.#open = [];
    const open = (until: AbortSignal): AsyncIterable<ServerEvent> =>
      this.#server.changes(this.#position ?? 'now', until);
    const take = (event: ServerEvent): Promise<boolean> => this.#take(event);
    if (!(await listen(open, { signal: this.#signal, silenceMs: SILENCE_MS, take }))) {
      throw new Unreachable(texts.follow.feedInterrupted);
    }
  }

  /** Handles an event. Returns true if the feed continues, false if it must be reopened. */
  async #take({ name, id, data }: ServerEvent): Promise<boolean> {
    if (name === 'comment') {
      this.#listener.same();
      return true;
    }
    const { txn = 0, dataset = [], columns, error } = JSON.parse(data) as EventData;
    if (error !== undefined) {
      throw new Unreachable(error);
    }
    if (this.#position === undefined) {
      return id === undefined || (await this.#begin(id));
    }
    if (name === 'schema') {
      this.#isStale = JSON.stringify(columns) !== JSON.stringify(this.#window?.head.columns);
    } else if (name === 'range') {
      this.#isStale = true;
      this.#position = later(this.#position, txn);
    } else if (name === 'rows') {
      this.#open.push(...dataset);
      this.#isStale = this.#isTooMuch(dataset.length);
    }
    if (id !== undefined && !this.#isStale) {
      this.#position = id;
      this.#add();
    }
    return !this.#isStale;
  }

  /** Starts following at a position: reads the last rows. */
  async #begin(id: string): Promise<boolean> {
    this.#position = id;
    await this.#read();
    this.#listener.polled(undefined);
    // If the rows include later commits, the feed must resume after those commits.
    return this.#position === id;
  }

  async #read(): Promise<void> {
    await pause(this.#readAt + READ_MS - performance.now(), this.#signal);
    this.#readAt = performance.now();
    this.#isReading = true;
    const { head, rows, txn } = await this.#server.read(this.#signal);
    this.#isReading = false;
    this.#window = new LastRows(head, rows, this.#followed.rows);
    this.#isStale = false;
    this.#received = { rows: 0, since: performance.now() };
    if (this.#position !== undefined && txn !== undefined) {
      this.#position = later(this.#position, txn);
    }
    this.#show();
  }

  /** True if rows arrive so fast that reading the last rows again is cheaper. */
  #isTooMuch(count: number): boolean {
    const now = performance.now();
    if (now - this.#received.since > READ_MS) {
      this.#received = { rows: 0, since: now };
    }
    this.#received.rows += count;
    return this.#received.rows > this.#followed.rows;
  }

  #add(): void {
    if (this.#open.length === 0) {
      this.#listener.same();
      return;
    }
    this.#isStale = this.#window?.add(this.#open) === false;
    this.#open = [];
    if (!this.#isStale) {
      const wait = Math.max(0, this.#shownAt + SHOW_MS - performance.now());
      this.#showing ??= setTimeout(() => this.#show(), wait);
    }
  }

  #show(): void {
    clearTimeout(this.#showing);
    this.#showing = undefined;
    this.#shownAt = performance.now();
    if (this.#window && !this.#signal.aborted) {
      this.#listener.rows(this.#window.head, this.#window.rows);
    }
  }

  /** Reports a failure and waits before the next attempt. */
  async #mend(cause: unknown, failures: number): Promise<void> {
    if (this.#signal.aborted) {
      return;
    }
    const isRefused = cause instanceof SqlError;
    if (!isRefused && failures === 1 && this.#window) {
      // Reopen the feed first. If that fails, the response explains why the feed ended.
      await pause(REOPEN_MS, this.#signal);
      return;
    }
    if (isRefused) {
      this.#position = undefined;
      this.#isStale = true;
    }
    if (isRefused && cause.status === GONE && failures === 1) {
      return;
    }
    if (isRefused && !this.#isReading && !isOfTable(cause) && cause.status !== GONE) {
      await this.#poll(cause);
      return;
    }
    this.#isReading = false;
    const wait = waitAfter(Math.max(1, failures - 1));
    const text = aborted(cause) ? SILENT : troubleText(cause, this.#followed);
    this.#listener.failed(text, !isRefused, wait);
    await pause(wait, this.#signal);
  }

  /** Polls the server because no feed is available. Retries the feed from time to time. */
  async #poll({ status, message }: SqlError): Promise<void> {
    const why =
      status === BUSY ? texts.follow.tooManyFeeds : fill(texts.follow.noFeed, { message });
    this.#listener.polled(fill(texts.follow.pollingInstead, { reason: why }));
    await pollUntilRecheck((signal) => this.#server.poll(this.#listener, signal), this.#signal);
  }
}

const SILENT = texts.follow.silentForMinute;

/** Returns the later of two positions: `position`, and the end of transaction `txn`. */
function later(position: string, txn: number): string {
  return txn >= Number(position.split('-')[0]) ? String(txn) : position;
}
