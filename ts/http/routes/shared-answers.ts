/**
 * Runs queries repeatedly, but only once for all streams of a user that request the same query.
 * Queries with the same identity, SQL text and interval are shared, because their permissions are
 * the same.
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
 * Maximum size of a cached result, in bytes. A query with a larger result runs again for each new
 * stream.
 */
const MAX_CACHED_BYTES = 256 * 1024;

interface SharedQuerySpec {
  readonly query: string;
  readonly everyMs: number;
}

/** A result or an error. It does not contain the name by which a stream knows the query. */
export interface SharedAnswer {
  readonly event: 'answer' | 'failed';
  /** The members of the JSON object as text, with the closing brace. */
  readonly members: readonly Buffer[];
  readonly digest: string;
}

type Latest = Omit<SharedAnswer, 'members'> & { readonly members: readonly Buffer[] | undefined };

interface Member {
  readonly open: () => Session;
}

export class SharedAnswers {
  readonly #queries = new Map<string, SharedQuery>();
  readonly #maxBytes: () => number;

  constructor(maxBytes: () => number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * Adds a member to the shared query of an identity. Its session is opened only if the query has
   * to run in that session.
   */
  join(identity: string, spec: SharedQuerySpec, open: () => Session): Membership {
    const key = JSON.stringify([identity, spec.query, spec.everyMs]);
    let query = this.#queries.get(key);
    if (!query) {
      query = new SharedQuery(spec, this.#maxBytes, () => this.#queries.delete(key));
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

  /** Returns a result whose digest differs from `digest`; waits if there is none yet. */
  async next(digest: string, signal: AbortSignal): Promise<SharedAnswer | undefined> {
    return await this.#query.next(digest, signal);
  }

  leave(): void {
    this.#query.leave(this.#member);
  }
}

class SharedQuery {
  readonly #spec: SharedQuerySpec;
  readonly #maxBytes: () => number;
  readonly #ended: () => void;
  readonly #members = new Set<Member>();
  readonly #waiting = new Set<() => void>();
  #latest: Latest | undefined;
  /** The member whose session runs the query, and its statement. */
  #owner: Member | undefined;
  #statement: PreparedStatement | undefined;
  #abort = new AbortController();
  /** Ends the current pause between executions. */
  #wake: () => void = () => undefined;

  constructor(spec: SharedQuerySpec, maxBytes: () => number, ended: () => void) {
    this.#spec = spec;
    this.#maxBytes = maxBytes;
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
        const { event, members } = latest;
        if (members) {
          return { event, members, digest: latest.digest };
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
      let pauseMs = this.#spec.everyMs;
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
   * Passes the result to all waiting members. Only a small result stays cached for members that
   * join later.
   */
  #publish(answer: SharedAnswer): void {
    const isSame = this.#latest?.digest === answer.digest && this.#latest.members !== undefined;
    this.#latest = answer;
    const waiting = isSame ? [] : [...this.#waiting];
    waiting.forEach((end) => {
      end();
    });
    const length = answer.members.reduce((sum, chunk) => sum + chunk.length, 0);
    if (length > MAX_CACHED_BYTES) {
      // Delayed until the waiting members have read the result.
      setImmediate(() => {
        if (this.#latest === answer) {
          this.#latest = { ...answer, members: undefined };
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
    const members = [
      Buffer.from(`"columns":[${columns}],"dataset":[`),
      ...(await this.#rowsOf(reply)),
      Buffer.from(']}'),
    ];
    return digested('answer', members);
  }

  async #prepared(member: Member): Promise<PreparedStatement> {
    const within = { signal: this.#abort.signal, elapsedMs: 0 };
    const statement = await member.open().prepare(this.#spec.query, undefined, within);
    const { kind, parameters } = statement.description;
    if (kind !== 'select' || parameters.length > 0) {
      statement.close();
      const message = 'only queries without parameters are supported';
      throw new DatabaseError({ code: 'NotSupported', message, start: 0 });
    }
    return statement;
  }

  async #rowsOf({ chunk, stream }: ExecuteReply): Promise<Buffer[]> {
    const limit = this.#maxBytes();
    const chunks: Buffer[] = [];
    let length = 0;
    let next = chunk ?? (await stream?.next()) ?? null;
    while (next !== null) {
      length += next.bytes.length;
      if (length > limit) {
        stream?.cancel();
        const message = `the result is too large [limit=${limit} bytes, key=live.max.answer.size]`;
        throw new DatabaseError({ code: 'ResourceLimit', message });
      }
      chunks.push(next.bytes);
      next = (await stream?.next()) ?? null;
    }
    return chunks;
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
  const positionMember = start === undefined ? {} : { position: start };
  // Starts without an opening brace, because each stream inserts the brace and its name for the
  // query.
  const member = JSON.stringify({ error: message, ...positionMember }).slice(1);
  return digested('failed', [Buffer.from(member)]);
}

function digested(event: SharedAnswer['event'], members: readonly Buffer[]): SharedAnswer {
  const hash = createHash('sha256').update(event);
  members.forEach((chunk) => hash.update(chunk));
  return { event, members, digest: hash.digest('base64') };
}
