/**
 * Detects requests that repeat on a connection and differ only in their SQL text. After several
 * repetitions, more are likely, so the connection can be handed off to the engine ([decision
 * 67](../../../docs/decisions/0067-connection-handoff.md)).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

import {
  type DatabaseError,
  type HandoffResult,
  type HttpHandoffTerms,
  isOfText,
  type HandoffQuery,
  type LiftedQuery,
  liftLiterals,
  type Handoff,
  type PreparedStatement,
  type RowOptions,
  type Session,
  type Statement,
  type StatementDescription,
} from '../../session/index.js';
import { Patience, slotOf, stopReading } from '../../sockets/index.js';
import { answerHead } from './answer-head.js';
import { frameOf, type RequestFrame, splitAddress } from './request-frame.js';

/**
 * Maximum number of SQL texts per handoff. Each may represent all SQL texts that differ from it
 * only in literals.
 */
const MAX_TEXTS = 8;

/** A response that this process has sent; the engine's responses must have the same form. */
export interface Answered {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly session: Session;
  readonly statement: PreparedStatement;
  readonly options: RowOptions;
  readonly timeoutMs: number | undefined;
  /** The part of the response between the SQL text and the rows. */
  readonly columns: (description: StatementDescription) => string;
  readonly namesQuery: boolean;
  /** The part of the response after the row count. */
  readonly end: string;
}

/** Maximum request and response sizes for a handoff. */
export interface HandoffLimits {
  readonly maxRequestBytes: number;
  readonly maxBodyBytes: number;
}

interface Query {
  readonly terms: HandoffQuery;
  readonly statement: Statement;
}

/** A request that failed in the engine. */
interface Failed {
  readonly url: string;
  readonly error: DatabaseError;
}

export class RepeatedRequests {
  readonly #socket: Socket;
  readonly #failed: (error: unknown) => void;
  readonly #patience = new Patience();
  /** URL of the last request, without the SQL text. */
  #address = '';
  /** SQL texts requested at this URL, most recent last. */
  readonly #texts = new Set<string>();
  #frame: RequestFrame | null = null;
  /**
   * Result of comparing the current request with the previous one; `null` if they were not
   * compared.
   */
  #likeness: 'alike' | 'other' | null = null;
  /** Total bytes read from the socket when the request arrived. */
  #bytesRead = 0;
  #failure: Failed | null = null;

  /** `failed` is called with the reason a handoff failed. */
  constructor(socket: Socket, failed: (error: unknown) => void) {
    this.#socket = socket;
    this.#failed = failed;
  }

  /**
   * Records a request while Node's parser is reading it. If the engine has just failed to answer
   * this request during a handoff, returns the error.
   */
  received(request: IncomingMessage): DatabaseError | null {
    const { url = '' } = request;
    const failure = this.#failure;
    this.#failure = null;
    this.#likeness = null;
    const address = splitAddress(url)?.join(' ') ?? '';
    if (address !== this.#address) {
      this.#address = address;
      this.#texts.clear();
      this.#patience.interrupt();
    }
    // The comparison starts one request early, so that two frames are available.
    if (address !== '' && this.#patience.isTimeIn(2)) {
      this.#compare(request);
    }
    return failure?.url === url ? failure.error : null;
  }

  /** Records a response whose rows were sent completely. */
  answered(answered: Answered, limits: HandoffLimits): void {
    if (this.#address === '') {
      return;
    }
    this.#patience.ran();
    const { text } = answered.statement;
    this.#texts.delete(text);
    this.#texts.add(text);
    const [oldest] = this.#texts;
    if (this.#texts.size > MAX_TEXTS && oldest !== undefined) {
      this.#texts.delete(oldest);
    }
    if (!this.#patience.isTime) {
      return;
    }
    if (this.#likeness === 'alike') {
      answered.response.once('finish', () => {
        this.#handOff(answered, limits);
      });
    } else if (this.#likeness === 'other') {
      // If a client's headers change with each request, its requests are compared less and less
      // often.
      this.#patience.returned(0);
    } else {
      this.#patience.interrupt();
    }
  }

  #compare(request: IncomingMessage): void {
    const before = this.#frame;
    const frame = frameOf(request);
    this.#frame = frame;
    this.#bytesRead = this.#socket.bytesRead;
    if (frame !== null && before !== null) {
      const isSame = frame.before === before.before && frame.after === before.after;
      this.#likeness = isSame ? 'alike' : 'other';
    }
  }

  /** Hands the connection off to the engine, unless more bytes have arrived. */
  #handOff(answered: Answered, limits: HandoffLimits): void {
    const socket = this.#socket;
    const frame = this.#frame;
    const slot = slotOf(socket);
    const isQuiet = slot?.mayBeHandedOff === true && socket.bytesRead === this.#bytesRead;
    if (slot === undefined || frame === null || !isQuiet) {
      return;
    }
    const head = answerHead(answered.response);
    const queries = head === null ? [] : this.#queries(answered);
    const stopped = queries.length === 0 ? null : stopReading(socket);
    if (head === null || stopped === null) {
      this.#patience.returned(0);
      return;
    }
    const terms = termsOf(answered, { ...frame, ...limits, head });
    let handoff: Handoff;
    try {
      const conversation = { ...terms, queries: queries.map((query) => query.terms) };
      const statements = queries.map(({ statement }) => statement);
      handoff = answered.session.handOff(
        stopped.descriptor,
        { protocol: 'http', ...conversation },
        statements,
        answered.timeoutMs,
      );
    } catch (error) {
      // The handoff failed, so the connection stays in Node.
      stopped.resume();
      this.#patience.returned(0);
      this.#failed(error);
      return;
    }
    // Suspends Node's idle timeout, which does not notice bytes that the engine reads.
    const { timeout = 0 } = socket;
    socket.setTimeout(0);
    const revoke = (): void => {
      handoff.revoke(false);
    };
    socket.once('close', revoke);
    const ended = handoff.ended.then(
      (back) => {
        slot.handedOff = null;
        socket.off('close', revoke);
        this.#endHandoff(back, timeout, () => {
          stopped.resume();
        });
      },
      (error: unknown) => {
        slot.handedOff = null;
        this.#failed(error);
        // The response may be truncated, so the connection can no longer be used.
        socket.destroy();
      },
    );
    slot.handedOff = { ...handoff, ended };
  }

  /**
   * Resumes with the bytes that the engine did not answer. Node parses them as if they had just
   * arrived.
   */
  #endHandoff(back: HandoffResult, timeoutMs: number, resume: () => void): void {
    const socket = this.#socket;
    const { bytes, error, unsent, micros } = back;
    this.#patience.returned(micros.length);
    if (socket.destroyed) {
      return;
    }
    if (error !== null && !isOfText(error)) {
      const [, url = ''] = bytes.toString('latin1').split(' ', 2);
      this.#failure = { url, error };
    }
    socket.setTimeout(timeoutMs);
    if (unsent.length > 0) {
      socket.write(unsent);
    }
    resume();
    if (bytes.length > 0) {
      socket.emit('data', bytes);
    }
  }

  /**
   * The queries to hand off. Exact SQL texts come first, because their results may be cached;
   * parameterised queries follow.
   */
  #queries({ session, columns }: Answered): Query[] {
    const query = (
      statement: Statement,
      { text, types }: Pick<LiftedQuery, 'text' | 'types'>,
    ): Query => ({
      statement,
      terms: { text, types: [...types], columns: columns(statement.description) },
    });
    const texts: Query[] = [];
    const shapes = new Map<string, Query>();
    for (const text of this.#texts) {
      const plain = session.eligible(text, null);
      if (plain !== null) {
        texts.push(query(plain, { text, types: [] }));
      }
      const lifted = liftLiterals(text);
      const isNew = lifted !== null && !shapes.has(lifted.text);
      const shape = isNew ? session.eligible(text, lifted) : null;
      if (lifted !== null && shape !== null) {
        shapes.set(lifted.text, query(shape, lifted));
      }
    }
    return [...texts, ...shapes.values()];
  }
}

function termsOf(
  { options, namesQuery, end }: Answered,
  frame: Pick<HttpHandoffTerms, 'before' | 'after' | 'maxRequestBytes' | 'maxBodyBytes' | 'head'>,
): Omit<HttpHandoffTerms, 'queries'> {
  const { rows, skip = 0, take, countAll = false } = options;
  return { ...frame, rows, skip, take: take ?? null, countAll, namesQuery, end };
}
