/**
 * One line protocol connection: checks the sender's login, reads lines and commits them. The
 * protocol has no replies. A failed write is therefore retried while the sender waits. An invalid
 * line closes the connection, and the reason is logged.
 */
import type { Socket } from 'node:net';

import { LineError, LineStream } from '../ingest/index.js';
import type { BoundedLog, Logger, ProtocolMetrics } from '../observability/index.js';
import {
  asDatabaseError,
  type Database,
  errorMeaning,
  type LineOptions,
  WriteAuthorizer,
} from '../session/index.js';
import type { Slot } from '../sockets/index.js';
import type { KeyLogin } from './key-login.js';
import type { Sender, SenderAuthenticator } from './sender-authenticator.js';
import type { BufferBudget } from './buffer-budget.js';
import type { CommitSlots } from './commit-slots.js';

/** Number of uncommitted bytes that triggers a commit before the end of the interval. */
const COMMIT_BYTES = 256 * 1024;
/**
 * How long the first lines after an idle interval wait for more lines before they are committed.
 */
const GATHER_MS = 10;
/** Maximum number of buffered bytes, unless two lines of maximum length need more. */
const MAX_BUFFERED_BYTES = 1024 * 1024;
/** Initial and maximum pause before a failed write is retried. */
const RETRY_MS = 100;
const MAX_RETRY_MS = 2_000;
/** Total time after which a failed write is no longer retried. */
const RETRY_TIMEOUT_MS = 60_000;
/** Login timeout. */
const LOGIN_MS = 10_000;
/** How long a stopping server still accepts incoming bytes. */
const LAST_BYTES_MS = 100;

export interface ConnectionServices {
  readonly database: Database;
  readonly authenticator: SenderAuthenticator;
  readonly commitSlots: CommitSlots;
  readonly bufferBudget: BufferBudget;
  readonly metrics: ProtocolMetrics;
  readonly logger: Logger;
  readonly refusals: BoundedLog;
  readonly refusedLogins: BoundedLog;
  readonly lines: Omit<LineOptions, 'isContinued'>;
  readonly maxRows: number;
  readonly intervalMs: number;
  readonly idleMs: number;
  /** Whether an invalid line closes the connection; otherwise the line is skipped. */
  readonly disconnects: boolean;
  /** Whether the log contains the reason. */
  readonly showsReason: boolean;
}

type End = 'open' | 'ending' | 'ended';

export class Connection {
  readonly #socket: Socket;
  readonly #slot: Slot;
  readonly #services: ConnectionServices;
  readonly #onEnded: () => void;
  #login: KeyLogin | null;
  #sender: Sender | null = null;
  #stream: LineStream | null = null;
  #timer: NodeJS.Timeout | null = null;
  #end: End = 'open';
  #isWorking = false;
  #isStopping = false;
  #committedAt = -Infinity;
  #wake: (() => void) | null = null;

  /** `onEnded` is called when the connection has ended completely. */
  constructor(socket: Socket, slot: Slot, services: ConnectionServices, onEnded: () => void) {
    this.#socket = socket;
    this.#slot = slot;
    this.#services = services;
    this.#onEnded = onEnded;
    this.#login = services.authenticator.login();
    socket.setTimeout(services.idleMs, () => {
      this.#close();
    });
    if (this.#login === null) {
      this.#enter(services.authenticator.anonymous());
    } else {
      this.#timer = setTimeout(() => {
        this.#refuseLogin('', 'the login timed out');
      }, LOGIN_MS).unref();
    }
    socket.on('data', (chunk: Buffer) => {
      this.#receive(chunk);
    });
    socket.on('error', () => undefined);
    socket.on('end', () => {
      this.#close();
    });
    socket.on('close', () => {
      this.#close();
    });
  }

  /** Commits everything received, because the server is stopping. */
  shutdown(): void {
    setTimeout(() => {
      this.#isStopping = true;
      this.#wake?.();
      this.#close();
    }, LAST_BYTES_MS);
  }

  /** Resumes reading if possible. */
  readonly resume = (): void => {
    const { bufferBudget } = this.#services;
    if (
      this.#end === 'open' &&
      this.#socket.isPaused() &&
      !this.#isFull() &&
      !bufferBudget.isFull
    ) {
      this.#socket.resume();
    }
  };

  #receive(chunk: Buffer): void {
    if (this.#end !== 'open') {
      return;
    }
    this.#services.metrics.bytes.increment(chunk.length);
    if (this.#login === null) {
      this.#push(chunk);
      return;
    }
    const step = this.#login.receive(chunk);
    switch (step.state) {
      case 'more':
        if (step.send !== undefined) {
          this.#socket.write(step.send);
        }
        break;
      case 'refused':
        this.#refuseLogin(step.name, step.reason);
        break;
      case 'entered': {
        const sender = this.#services.authenticator.authenticate(step.proof, this.#slot.address);
        if (sender === null) {
          this.#refuseLogin(step.proof.name, 'the user may not send lines');
          return;
        }
        this.#enter(sender);
        this.#push(step.remainder);
      }
    }
  }

  #enter(sender: Sender): void {
    const { database, lines, maxRows, metrics, bufferBudget, authenticator } = this.#services;
    clearTimeout(this.#timer ?? undefined);
    this.#timer = null;
    this.#login = null;
    this.#sender = sender;
    this.#slot.enter();
    this.#stream = new LineStream({
      database,
      lines,
      maxRows,
      writeAuthorizer: new WriteAuthorizer(authenticator.guard, {
        principal: sender.principal,
        commitSeconds: metrics.commitSeconds,
      }),
      committed: (rows) => {
        metrics.rows.increment(rows);
        metrics.commits.increment();
      },
      buffered: (change) => {
        bufferBudget.add(change);
      },
    });
  }

  #refuseLogin(name: string, reason: string): void {
    const { authenticator, refusedLogins } = this.#services;
    if (this.#end === 'open') {
      authenticator.refused(name, this.#slot.address);
      refusedLogins.add({ user: name, address: this.#slot.address, reason });
      this.#abandon();
    }
  }

  #push(chunk: Buffer): void {
    const stream = this.#stream;
    if (stream === null || chunk.length === 0) {
      return;
    }
    stream.push(chunk);
    const isOverfull = this.#services.bufferBudget.isFull;
    if (this.#isFull() || isOverfull) {
      this.#socket.pause();
    }
    if (isOverfull || stream.unread >= Math.max(COMMIT_BYTES, stream.size - stream.unread)) {
      void this.#work();
    } else {
      this.#schedule();
    }
  }

  #isFull(): boolean {
    const limit = Math.max(MAX_BUFFERED_BYTES, 2 * this.#services.lines.maxLineBytes);
    return (this.#stream?.size ?? 0) >= limit;
  }

  #schedule(): void {
    if (this.#timer === null && !this.#isWorking && (this.#stream?.unread ?? 0) > 0) {
      const delayMs = this.#committedAt + this.#services.intervalMs - performance.now();
      this.#timer = setTimeout(
        () => {
          void this.#work();
        },
        Math.max(delayMs, GATHER_MS),
      );
    }
  }

  /** Commits lines until no further commit is possible at the moment. */
  async #work(): Promise<void> {
    const stream = this.#stream;
    clearTimeout(this.#timer ?? undefined);
    this.#timer = null;
    if (this.#isWorking || stream === null) {
      return;
    }
    this.#isWorking = true;
    try {
      do {
        await this.#services.commitSlots.run(() => this.#commit(stream));
        this.#committedAt = performance.now();
        this.resume();
      } while (stream.isBehind || stream.unread >= (this.#end === 'ending' ? 1 : COMMIT_BYTES));
    } catch (error) {
      this.#fail(error);
    }
    this.#isWorking = false;
    if (this.#end === 'ending') {
      this.#finish();
    } else if (this.#end === 'open') {
      this.#schedule();
    }
  }

  /** Writes one commit; retries while writes fail temporarily. */
  async #commit(stream: LineStream): Promise<void> {
    const retriesEndAt = performance.now() + RETRY_TIMEOUT_MS;
    for (let pauseMs = RETRY_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_RETRY_MS)) {
      try {
        if (this.#sender !== null) {
          this.#services.authenticator.check(this.#sender);
        }
        await stream.commit();
        return;
      } catch (error) {
        if (error instanceof LineError && !this.#services.disconnects) {
          this.#report(error);
          stream.skipLine();
          return;
        }
        if (!isTemporary(error) || this.#isStopping || performance.now() > retriesEndAt) {
          throw error;
        }
        await this.#pause(pauseMs);
      }
    }
  }

  async #pause(milliseconds: number): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, milliseconds);
    });
    this.#wake = null;
  }

  #fail(error: unknown): void {
    this.#report(error);
    this.#abandon();
  }

  #report(error: unknown): void {
    const { metrics, logger, refusals, showsReason } = this.#services;
    metrics.errors.increment();
    const { address } = this.#slot;
    const user = this.#sender?.principal.name ?? '';
    if (error instanceof LineError) {
      const { line, message } = error;
      refusals.add({ address, user, line, ...(showsReason ? { message } : {}) });
      return;
    }
    const { code, message } = asDatabaseError(error);
    if (errorMeaning(code).httpStatus >= 500) {
      logger.error('lines_lost', { address, user, code, message, error });
    } else {
      refusals.add({ address, user, message });
    }
  }

  /** Discards all remaining data. */
  #abandon(): void {
    this.#end = 'ending';
    this.#socket.destroy();
    this.#stream?.close();
    if (!this.#isWorking) {
      this.#finish();
    }
  }

  /** Stops reading; received lines are committed. */
  #close(): void {
    if (this.#end !== 'open') {
      return;
    }
    this.#end = 'ending';
    if (!this.#isWorking) {
      void this.#work().then(() => {
        this.#finish();
      });
    }
  }

  #finish(): void {
    if (this.#end !== 'ended') {
      this.#end = 'ended';
      clearTimeout(this.#timer ?? undefined);
      this.#stream?.close();
      this.#socket.end();
      this.#onEnded();
    }
  }
}

/** Whether the write can be retried: the error is temporary and the lines are valid. */
function isTemporary(error: unknown): boolean {
  if (error instanceof LineError) {
    return false;
  }
  const { code, retryable } = asDatabaseError(error);
  const { httpStatus } = errorMeaning(code);
  return retryable || httpStatus === 503 || httpStatus === 507;
}
