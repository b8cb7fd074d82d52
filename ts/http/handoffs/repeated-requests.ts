/**
 * What the client of a connection repeats: requests that are alike but for the text of their query.
 * One that has done so several times is likely to go on, and its connection can be handed off to
 * the engine ([decision 67](../../../docs/decisions/0067-handed off-connections.md)).
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

/** Texts of one handoff, those asked last; each may stand for all that are lifted alike. */
const MAX_TEXTS = 8;

/** An answer that was given here, as all others of its request are given. */
export interface Answered {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly session: Session;
  readonly statement: PreparedStatement;
  readonly options: RowOptions;
  readonly timeoutMs: number | undefined;
  /** What the answer says between the text of the query and the rows. */
  readonly columns: (description: StatementDescription) => string;
  readonly namesQuery: boolean;
  /** What follows the count of the rows. */
  readonly end: string;
}

/** Bytes that a handoff may take and give. */
export interface HandoffLimits {
  readonly longest: number;
  readonly largest: number;
}

interface Query {
  readonly terms: HandoffQuery;
  readonly statement: Statement;
}

/** A request that the engine began to answer, and failed. */
interface Failed {
  readonly url: string;
  readonly error: DatabaseError;
}

export class RepeatedRequests {
  readonly #socket: Socket;
  readonly #failed: (error: unknown) => void;
  readonly #patience = new Patience();
  /** The address of the last request, without the text of its query. */
  #address = '';
  /** What was asked at it, the last one at the end. */
  readonly #texts = new Set<string>();
  #frame: RequestFrame | null = null;
  /** What the request that is answered now is to the one before, where both were looked at. */
  #likeness: 'alike' | 'other' | null = null;
  /** What was read of the socket when it came. */
  #bytesRead = 0;
  #failure: Failed | null = null;

  /** `failed` receives why a connection could not be handed off. */
  constructor(socket: Socket, failed: (error: unknown) => void) {
    this.#socket = socket;
    this.#failed = failed;
  }

  /**
   * A request came: called while Node's parser reads it. Answers why the engine failed to answer
   * the same one a moment ago.
   */
  asked(request: IncomingMessage): DatabaseError | null {
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
    // The one before the last is looked at as well.
    if (address !== '' && this.#patience.isTimeIn(2)) {
      this.#look(request);
    }
    return failure?.url === url ? failure.error : null;
  }

  /** Its rows are there as a whole. */
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
      // A client whose headers change with each request is looked at less and less often.
      this.#patience.returned(0);
    } else {
      this.#patience.interrupt();
    }
  }

  #look(request: IncomingMessage): void {
    const before = this.#frame;
    const frame = frameOf(request);
    this.#frame = frame;
    this.#bytesRead = this.#socket.bytesRead;
    if (frame !== null && before !== null) {
      const isAlike = frame.before === before.before && frame.after === before.after;
      this.#likeness = isAlike ? 'alike' : 'other';
    }
  }

  /** Lets the engine answer, unless something else came meanwhile. */
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
      // It is answered here.
      stopped.resume();
      this.#patience.returned(0);
      this.#failed(error);
      return;
    }
    // Node's time for a client that idles does not count what the engine hears.
    const { timeout = 0 } = socket;
    socket.setTimeout(0);
    const gone = (): void => {
      handoff.revoke(false);
    };
    socket.once('close', gone);
    const ended = handoff.ended.then(
      (back) => {
        slot.handedOff = null;
        socket.off('close', gone);
        this.#takeBack(back, timeout, () => {
          stopped.resume();
        });
      },
      (error: unknown) => {
        slot.handedOff = null;
        this.#failed(error);
        // An answer may have been cut in two.
        socket.destroy();
      },
    );
    slot.handedOff = { ...handoff, ended };
  }

  /** Goes on with what the engine has not answered: Node reads it as if it came now. */
  #takeBack(back: HandoffResult, timeoutMs: number, resume: () => void): void {
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

  /** What may be handed off of what was asked: the texts first, which may have an answer kept. */
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
  frame: Pick<HttpHandoffTerms, 'before' | 'after' | 'longest' | 'largest' | 'head'>,
): Omit<HttpHandoffTerms, 'queries'> {
  const { rows, skip = 0, take, countAll = false } = options;
  return { ...frame, rows, skip, take: take ?? null, countAll, namesQuery, end };
}
