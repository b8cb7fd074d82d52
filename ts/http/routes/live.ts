/**
 * POST /live: streams the results of several queries on one connection as server-sent events. A
 * result is sent again only when it has changed. Each query runs repeatedly and read-only, with its
 * user's permissions. All streams of a user share the executions of a query.
 */
import { KEYS } from '../../config/index.js';
import {
  asDatabaseError,
  type DatabaseError,
  errorMeaning,
  type Principal,
  principalKey,
  type Session,
} from '../../session/index.js';
import type { HttpPaths } from '../paths.js';
import { slotOf } from '../../sockets/index.js';
import { BodyWriter, ClientDisconnected } from '../response/body-writer.js';
import { principalOf } from '../response/statement-answer.js';
import { answer, type HttpContext, type HttpServices, JSON_TYPE, type Route } from '../route.js';
import { LastingLogin } from '../websocket/lasting-login.js';
import { type SharedAnswer, SharedAnswers } from './shared-answers.js';

const EVENT_TYPE = 'text/event-stream; charset=utf-8';
const REQUEST_BYTES = 64 * 1024;
const MAX_QUERIES = 8;
const MIN_MS = 250;
const MAX_MS = 3_600_000;
/**
 * Interval between the events that contain the server's time and show that the server is running.
 */
const ALIVE_MS = 5_000;
const LOGIN_CHECK_MS = 1_000;

interface LiveQuery {
  readonly name: string;
  readonly query: string;
  readonly everyMs: number;
}

export function liveRoute(services: HttpServices, { base }: HttpPaths): Route {
  const { sessions, config } = services;
  const logger = services.logger.child('live');
  const shared = new SharedAnswers(() => config.get(KEYS.liveAnswerSize));
  return {
    path: `${base}/live`,
    methods: ['POST'],
    access: 'data',
    errors: 'json',
    body: { kind: 'bytes', limitBytes: REQUEST_BYTES },
    about: 'streams query results as server-sent events, and sends them again whenever they change',
    handle: async (context) => {
      const queries = queriesOf(context);
      if (typeof queries === 'string') {
        answer(context, 400, JSON_TYPE, JSON.stringify({ error: queries }));
        return;
      }
      const free = sessions.feeds.acquire();
      try {
        const { login } = context.state;
        const lasting = login === null ? null : new LastingLogin(login, true);
        const principal: Principal = lasting ?? principalOf(context, true);
        const open = (): Session => sessions.open(principal, true);
        const identity = (): string =>
          JSON.stringify([principalKey(principal), principal.identity]);
        const options = { context, queries, lasting, open, identity, shared };
        await new LiveAnswers(options).run((failure) => {
          const { code, message } = failure;
          logger.log(errorMeaning(code).logLevel, 'live_ended', { code, message });
        });
      } finally {
        free();
      }
    },
  };
}

const FORM = 'expected {"queries":[{"name":"…","query":"SELECT …","everyMs":1000}]}';

/** Returns the requested queries, or an error message. */
function queriesOf({ state }: HttpContext): readonly LiveQuery[] | string {
  let sent: unknown;
  try {
    sent = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(state.body));
  } catch {
    return FORM;
  }
  const list = (sent as { queries?: unknown } | null)?.queries;
  if (!Array.isArray(list) || list.length === 0) {
    return FORM;
  }
  if (list.length > MAX_QUERIES) {
    return `too many queries [count=${list.length}, limit=${MAX_QUERIES}]`;
  }
  const queries = new Map<string, LiveQuery>();
  for (const entry of list as readonly unknown[]) {
    const { name, query, everyMs } = (entry ?? {}) as Readonly<Record<string, unknown>>;
    if (typeof name !== 'string' || !/^\w{1,32}$/.test(name) || typeof query !== 'string') {
      return FORM;
    }
    if (queries.has(name)) {
      return `duplicate query name '${name}'`;
    }
    if (typeof everyMs !== 'number' || !(everyMs >= MIN_MS && everyMs <= MAX_MS)) {
      return `invalid everyMs for '${name}': expected a number from ${MIN_MS} to ${MAX_MS}`;
    }
    queries.set(name, { name, query, everyMs });
  }
  return [...queries.values()];
}

interface LiveOptions {
  readonly context: HttpContext;
  readonly queries: readonly LiveQuery[];
  /** The login to check again; absent if no login is required. */
  readonly lasting: LastingLogin | null;
  readonly open: () => Session;
  /** Key of the user whose permissions apply. */
  readonly identity: () => string;
  readonly shared: SharedAnswers;
}

/** The results of one client. */
class LiveAnswers {
  readonly #options: LiveOptions;
  readonly #writer: BodyWriter;
  readonly #over = new AbortController();
  #last: Promise<unknown> = Promise.resolve();
  #checkedAt = performance.now();

  constructor(options: LiveOptions) {
    this.#options = options;
    const { context } = options;
    const { res } = context;
    context.respond = false;
    res.statusCode = 200;
    res.setHeader('Content-Type', EVENT_TYPE);
    res.setHeader('Cache-Control', 'no-cache, no-transform');
    // Keeps proxies from buffering the events.
    res.setHeader('X-Accel-Buffering', 'no');
    this.#writer = new BodyWriter(res, null, context.state.timeouts.sendMs);
  }

  async run(failed: (failure: DatabaseError) => void): Promise<void> {
    const { context, queries } = this.#options;
    const onClose = (): void => {
      this.#over.abort();
    };
    context.res.once('close', onClose);
    const stopping = slotOf(context.req.socket)?.stopping;
    stopping?.addEventListener('abort', onClose);
    try {
      const streams = queries.map((query) => this.#streamQuery(query));
      const endless = [this.#sendHeartbeats(), this.#watchLogin(), ...streams];
      await Promise.all(endless);
      this.#writer.end('');
    } catch (error) {
      this.#over.abort();
      if (!(error instanceof ClientDisconnected || context.res.closed)) {
        const failure = asDatabaseError(error);
        failed(failure);
        this.#writer.end(event('error', { error: failure.message }));
      }
    } finally {
      context.res.off('close', onClose);
      stopping?.removeEventListener('abort', onClose);
      this.#over.abort();
    }
  }

  async #sendHeartbeats(): Promise<void> {
    while (!this.#isOver()) {
      await this.#checkLogin();
      await this.#write(event('alive', { now: new Date().toISOString() }));
      await this.#pause(ALIVE_MS);
    }
  }

  /** Sends the results of a query whenever they change, until the client disconnects. */
  async #streamQuery({ name, ...spec }: LiveQuery): Promise<void> {
    const { shared, identity, open } = this.#options;
    const member = shared.join(identity(), spec, open);
    try {
      let sent = '';
      while (!this.#isOver()) {
        const next = await member.next(sent, this.#over.signal);
        if (!next) {
          return;
        }
        await this.#checkLogin();
        await this.#write(named(name, next));
        sent = next.digest;
      }
    } finally {
      member.leave();
    }
  }

  /**
   * Ends the stream when the login ends or its permissions change, because streams with the same
   * permissions share queries.
   */
  async #watchLogin(): Promise<void> {
    const { lasting, identity } = this.#options;
    const before = identity();
    while (lasting && !this.#isOver()) {
      await this.#checkLogin();
      if (identity() !== before) {
        this.#over.abort();
      }
      await this.#pause(LOGIN_CHECK_MS);
    }
  }

  #isOver(): boolean {
    return this.#over.signal.aborted;
  }

  async #checkLogin(): Promise<void> {
    const now = performance.now();
    if (now - this.#checkedAt < LOGIN_CHECK_MS) {
      return;
    }
    this.#checkedAt = now;
    const refusal = await this.#options.lasting?.refusal();
    if (refusal !== undefined && refusal !== null) {
      throw refusal;
    }
  }

  /** Writes are sequential: each waits until the client has accepted the previous one. */
  #write(bytes: Buffer): Promise<void> {
    const written = this.#last.then(() => this.#writer.write(bytes));
    this.#last = written.catch(() => undefined);
    return written;
  }

  async #pause(ms: number): Promise<void> {
    const { signal } = this.#over;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal.addEventListener('abort', end);
      if (signal.aborted) {
        end();
      }
    });
  }
}

function event(name: string, data: object): Buffer {
  return Buffer.from(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** Formats a result as an event, with this stream's name for the query. */
function named(name: string, { event: kind, members }: SharedAnswer): Buffer {
  const head = `event: ${kind}\ndata: {"name":"${name}",`;
  return Buffer.concat([Buffer.from(head), ...members, Buffer.from('\n\n')]);
}
