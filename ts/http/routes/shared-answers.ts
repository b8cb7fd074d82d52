/**
 * Queries that run repeatedly, once for all streams of a user that request them. Queries with the
 * same identity, SQL text and interval are shared, because their rights are the same.
 */
import { createHash } from 'node:crypto';

import {
  asDatabaseError,
  DatabaseError,
  type ExecuteReply,
  type PreparedStatement,
  type Session,
} from '../../session/index.js';
import { columnJson } from '../response/statement-answer.js';

/** Minimum delay before a failed query is retried. */
const FAILED_MS = 5_000;
/**
 * Maximum bytes of a cached result. If a result is larger, its query runs again for each new
 * stream.
 */
const KEPT_BYTES = 256 * 1024;

interface Asked {
  readonly query: string;
  readonly everyMs: number;
}

/** A result or an error, without the stream's name for the query. */
export interface SharedAnswer {
  readonly event: 'answer' | 'failed';
  /** The members of the JSON object as text, including the closing brace. */
  readonly rest: readonly Buffer[];
  readonly digest: string;
}

type Latest = Omit<SharedAnswer, 'rest'> & { readonly rest: readonly Buffer[] | undefined };

interface Member {
  readonly open: () => Session;
}

export class SharedAnswers {
  readonly #queries = new Map<string, SharedQuery>();
  readonly #mostBytes: () => number;

  constructor(mostBytes: () => number) {
    this.#mostBytes = mostBytes;
  }

  /**
   * Joins a query of an identity. The session is opened only if this member has to run the query.
   */
  join(identity: string, asked: Asked, open: () => Session): Membership {
    const key = JSON.stringify([identity, asked.query, asked.everyMs]);
    let query = this.#queries.get(key);
    if (!query) {
      query = new SharedQuery(asked, this.#mostBytes, () => this.#queries.delete(key));
      this.#queries.set(key, query);
    }
    return new Membership(query, { open });
  }
}

/** A stream's membership in a shared query, until it leaves. */
class Membership {
  readonly #query: SharedQuery;
  readonly #member: Member;

  constructor(query: SharedQuery, member: Member) {
    this.#query = query;
    this.#member = member;
    query.enter(member);
  }

  /** Returns the latest result whose digest differs from `digest`, waiting for it if necessary. */
  async next(digest: string, signal: AbortSignal): Promise<SharedAnswer | undefined> {
    return await this.#query.next(digest, signal);
  }

  leave(): void {
    this.#query.leave(this.#member);
  }
}

class SharedQuery {
  readonly #asked: Asked;
  readonly #mostBytes: () => number;
  readonly #ended: () => void;
  readonly #members = new Set<Member>();
  readonly #waiting = new Set<() => void>();
  #latest: Latest | undefined;
  /** The member whose session runs the query, and its statement. */
  #owner: Member | undefined;
  #statement: PreparedStatement | undefined;
  #abort = new AbortController();
  /** Ends the pause between two executions. */
  #wake: () => void = () => undefined;

  constructor(asked: Asked, mostBytes: () => number, ended: () => void) {
    this.#asked = asked;
    this.#mostBytes = mostBytes;
    this.#ended = ended;
  }

  enter(member: Member): void {
    this.#members.add(member);
    if (this.#members.size === 1) {
      void this.#run();
    }
  }

  leave(member: Member): void {
    this.#members.delete(member);
    if (this.#owner === member) {
      // Cancels the execution if it runs in this member's session; an execution in another member's
      // session continues.
      this.#abort.abort();
      this.#statement?.cancel();
    }
    if (this.#members.size === 0) {
      this.#ended();
      this.#wake();
    }
  }

  async next(digest: string, signal: AbortSignal): Promise<SharedAnswer | undefined> {
    while (!signal.aborted) {
      const latest = this.#latest;
      if (latest && latest.digest !== digest) {
        const { event, rest } = latest;
        if (rest) {
          return { event, rest, digest: latest.digest };
        }
        this.#wake();
      }
      await this.#changed(signal);
    }
    return undefined;
  }

  async #changed(signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const end = (): void => {
        this.#waiting.delete(end);
        signal.removeEventListener('abort', end);
        resolve();
      };
      this.#waiting.add(end);
      signal.addEventListener('abort', end);
    });
  }

  async #run(): Promise<void> {
    for (let member = this.#first(); member; member = this.#first()) {
      const began = performance.now();
      let pauseMs = this.#asked.everyMs;
      let latest: SharedAnswer;
      try {
        latest = await this.#answerBy(member);
      } catch (error) {
        this.#forget();
        latest = failureOf(error);
        pauseMs = Math.max(pauseMs, FAILED_MS);
      }
      if (!this.#members.has(member)) {
        // The member left during the execution, so its result may be incomplete.
        this.#forget();
        continue;
      }
      this.#publish(latest);
      // If a query is slower than its interval, it pauses for as long as it ran, so that half of
      // the time is left for other work.
      await this.#pause(Math.max(pauseMs, performance.now() - began));
    }
    this.#forget();
  }

  #first(): Member | undefined {
    const [first] = this.#members;
    return first;
  }

  #forget(): void {
    this.#statement?.close();
    this.#statement = undefined;
    this.#owner = undefined;
  }

  /**
   * Passes the result to all waiting members. Only a small result is cached for members that join
   * later.
   */
  #publish(answer: SharedAnswer): void {
    const isSame = this.#latest?.digest === answer.digest && this.#latest.rest !== undefined;
    this.#latest = answer;
    const waiting = isSame ? [] : [...this.#waiting];
    waiting.forEach((end) => {
      end();
    });
    const length = answer.rest.reduce((sum, part) => sum + part.length, 0);
    if (length > KEPT_BYTES) {
      // Runs after the waiting members have read the result.
      setImmediate(() => {
        if (this.#latest === answer) {
          this.#latest = { ...answer, rest: undefined };
        }
      });
    }
  }

  async #answerBy(member: Member): Promise<SharedAnswer> {
    if (this.#owner !== member) {
      this.#forget();
      this.#owner = member;
      this.#abort = new AbortController();
    }
    const statement = (this.#statement ??= await this.#prepared(member));
    const rows = { format: 'json', quoteLargeNumbers: true } as const;
    const reply = await statement.execute([], () => ({ rows }));
    const columns = statement.description.columns.map((column) => columnJson(column)).join(',');
    const rest = [
      Buffer.from(`"columns":[${columns}],"dataset":[`),
      ...(await this.#rowsOf(reply)),
      Buffer.from(']}'),
    ];
    return digested('answer', rest);
  }

  async #prepared(member: Member): Promise<PreparedStatement> {
    const within = { signal: this.#abort.signal, elapsedMs: 0 };
    const statement = await member.open().prepare(this.#asked.query, undefined, within);
    const { kind, parameters } = statement.description;
    if (kind !== 'select' || parameters.length > 0) {
      statement.close();
      const message = 'only queries without parameters are supported';
      throw new DatabaseError({ code: 'NotSupported', message, start: 0 });
    }
    return statement;
  }

  async #rowsOf({ chunk, stream }: ExecuteReply): Promise<Buffer[]> {
    const most = this.#mostBytes();
    const parts: Buffer[] = [];
    let length = 0;
    let next = chunk ?? (await stream?.next()) ?? null;
    while (next !== null) {
      length += next.bytes.length;
      if (length > most) {
        stream?.cancel();
        const message = `the result is too large [limit=${most} bytes, key=live.max.answer.size]`;
        throw new DatabaseError({ code: 'ResourceLimit', message });
      }
      parts.push(next.bytes);
      next = (await stream?.next()) ?? null;
    }
    return parts;
  }

  async #pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

function failureOf(error: unknown): SharedAnswer {
  const { message, start } = asDatabaseError(error);
  const place = start === undefined ? {} : { position: start };
  // Without the opening brace, because the name is inserted after it.
  const rest = JSON.stringify({ error: message, ...place }).slice(1);
  return digested('failed', [Buffer.from(rest)]);
}

function digested(event: SharedAnswer['event'], rest: readonly Buffer[]): SharedAnswer {
  const hash = createHash('sha256').update(event);
  rest.forEach((part) => hash.update(part));
  return { event, rest, digest: hash.digest('base64') };
}
