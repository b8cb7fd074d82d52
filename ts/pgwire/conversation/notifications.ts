/**
 * Notifications for a connection: messages from other sessions, and commits to tables whose name is
 * one of the connection's channels. They are sent between transactions, when no statement is
 * running.
 */
import {
  type ChangeFeed,
  DatabaseError,
  type Notification,
  type Session,
  type TableChange,
} from '../../session/index.js';
import { ProtocolError } from '../protocol/protocol-error.js';
import * as reply from '../protocol/server-messages.js';

/** PostgreSQL's limits. */
const MAX_CHANNEL_LENGTH = 63;
const MAX_PAYLOAD_LENGTH = 7_999;
/** Maximum number of channels per connection. */
const MAX_CHANNELS = 1_000;
/**
 * Maximum number of bytes buffered for a client that does not read. Beyond it, the connection is
 * closed.
 */
const MAX_WAITING_BYTES = 1_048_576;
/** Maximum number of messages that a block can send when it commits. */
const MAX_UNSENT = 10_000;
/** Interval between login checks on a connection that only listens. */
const POLL_MS = 1_000;

/** The connection interface that notifications need. */
export interface Line {
  /** Whether the connection is idle: no statement is running or has begun. */
  isIdle(): boolean;
  /**
   * Resolves when the client has accepted the bytes sent so far; rejects when it has disconnected.
   */
  drained(): Promise<void>;
  /** Returns an error if the user may no longer receive notifications. */
  refusal(): ProtocolError | null | Promise<ProtocolError | null>;
  /** Ends the connection. */
  fail(error: ProtocolError): void;
}

interface NotificationSetting {
  readonly session: Pick<Session, 'backend' | 'channels' | 'follow'> & {
    readonly database: Pick<Session['database'], 'tableMetadata'>;
  };
  readonly block: { readonly status: 'I' | 'T' | 'E' };
  readonly outlet: { queue(bytes: Buffer): void; flush(): void };
  /** The client's connection; absent if no client can receive notifications. */
  readonly line?: Line | undefined;
}

/** A channel with a listener. */
interface Listener {
  readonly stop: () => void;
  /** Changes to the table that has the channel's name, if it exists. */
  readonly feed: ChangeFeed | null;
}

export class Notifications {
  readonly #setting: NotificationSetting;
  readonly #listeners = new Map<string, Listener>();
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** Callbacks to run when all buffered notifications have been sent. */
  #emptied: (() => void)[] = [];
  /** Messages to send when the current block commits. */
  #unsent: Notification[] = [];

  constructor(setting: NotificationSetting) {
    this.#setting = setting;
  }

  get isListening(): boolean {
    return this.#listeners.size > 0;
  }

  /** Starts listening; once it resolves, no notification is missed. */
  async listen(channel: string): Promise<void> {
    const { session } = this.#setting;
    checkLength('channel name', channel, MAX_CHANNEL_LENGTH);
    if (this.#listeners.has(channel)) {
      return;
    }
    if (this.#listeners.size >= MAX_CHANNELS) {
      const message = `too many channels [limit=${MAX_CHANNELS}]`;
      throw new ProtocolError('54000', message);
    }
    const feed = await this.#feedOf(channel);
    const stop = session.channels.listen(channel, (notification) => {
      this.#receive(notification);
    });
    this.#listeners.set(channel, { stop, feed });
    if (feed !== null) {
      void this.#follow(channel, feed);
    }
  }

  /** Stops listening to a channel, or to all if `channel` is `null`. */
  unlisten(channel: string | null): void {
    const names = channel === null ? [...this.#listeners.keys()] : [channel];
    for (const name of names) {
      const listener = this.#listeners.get(name);
      this.#listeners.delete(name);
      listener?.stop();
      listener?.feed?.close();
    }
  }

  /** Sends a message, either immediately or when the open block commits. */
  notify(channel: string, payload: string): void {
    checkLength('channel name', channel, MAX_CHANNEL_LENGTH);
    checkLength('payload string', payload, MAX_PAYLOAD_LENGTH);
    const { session, block } = this.#setting;
    const notification = { channel, payload, backend: session.backend };
    if (block.status === 'I') {
      session.channels.notify(notification);
    } else if (this.#unsent.length < MAX_UNSENT) {
      this.#unsent.push(notification);
    } else {
      throw new ProtocolError('54000', `too many pending notifications [limit=${MAX_UNSENT}]`);
    }
  }

  endBlock(isCommitted: boolean): void {
    const unsent = this.#unsent;
    this.#unsent = [];
    if (isCommitted) {
      unsent.forEach((notification) => {
        this.#setting.session.channels.notify(notification);
      });
    }
  }

  /** Sends buffered notifications, unless a block is open. */
  deliver(): void {
    if (this.#setting.block.status !== 'I') {
      return;
    }
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    waiting.forEach((bytes) => {
      this.#setting.outlet.queue(bytes);
    });
    const emptied = this.#emptied;
    this.#emptied = [];
    emptied.forEach((resolve) => {
      resolve();
    });
  }

  close(): void {
    this.unlisten(null);
    this.#unsent = [];
    this.#waiting = [];
    this.deliver();
  }

  /**
   * Returns the change feed of the table with this name; `null` if the table does not exist or the
   * user may not read it.
   */
  async #feedOf(channel: string): Promise<ChangeFeed | null> {
    const { session } = this.#setting;
    if ((await session.database.tableMetadata(channel)) === null) {
      return null;
    }
    let feed: ChangeFeed | null = null;
    try {
      feed = await session.follow(channel);
      await feed.next(0, true);
      return feed;
    } catch (error) {
      feed?.close();
      if (error instanceof DatabaseError && error.code === 'AccessDenied') {
        return null;
      }
      throw error;
    }
  }

  /** Reports changes one at a time: each waits until the client has accepted the previous one. */
  async #follow(channel: string, feed: ChangeFeed): Promise<void> {
    const { line } = this.#setting;
    try {
      while (!feed.isClosed) {
        const { change } = await feed.next(POLL_MS, true);
        const refusal = (await line?.refusal()) ?? null;
        if (refusal !== null) {
          line?.fail(refusal);
          return;
        }
        if (change.kind !== 'none') {
          this.#receive({ channel, payload: payloadOf(change), backend: 0 });
          await this.#delivered();
        }
      }
    } catch (error) {
      if (!feed.isClosed) {
        const message = error instanceof Error ? error.message : String(error);
        const payload = JSON.stringify({ table: channel, error: message.slice(0, 1_000) });
        this.#receive({ channel, payload, backend: 0 });
        this.unlisten(channel);
      }
    }
  }

  #receive({ channel, payload, backend }: Notification): void {
    const { line, outlet } = this.#setting;
    const bytes = reply.notificationResponse(backend, channel, payload);
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (line?.isIdle() === true) {
      this.deliver();
      outlet.flush();
    }
    if (this.#waitingBytes > MAX_WAITING_BYTES) {
      const message = 'too many unread notifications: the client does not read them';
      line?.fail(new ProtocolError('53400', message, true));
    }
  }

  async #delivered(): Promise<void> {
    if (this.#waiting.length > 0) {
      await new Promise<void>((resolve) => this.#emptied.push(resolve));
    }
    await this.#setting.line?.drained();
  }
}

function payloadOf({ table, txn, kind, rows, ranges }: TableChange): string {
  const [from, to] = [ranges[0]?.from ?? null, ranges.at(-1)?.to ?? null];
  return JSON.stringify({ table, txn, kind, rows, from, to });
}

function checkLength(what: string, text: string, limit: number): void {
  const length = Buffer.byteLength(text);
  if (length > limit) {
    throw new ProtocolError('22023', `${what} too long [length=${length}, limit=${limit}]`);
  }
}
