/**
 * GET /changes: streams the rows committed to a table, starting at a position, as server-sent
 * events. An error before the first event is a response with an error status; a later error is the
 * last event.
 */
import {
  asDatabaseError,
  ChangeFeed,
  type DatabaseError,
  errorMeaning,
  type ExecuteReply,
  type FeedStart,
  type FeedStep,
  parseFeedStart,
  positionText,
  type PreparedStatement,
  type Principal,
  type ResultColumn,
  quoteName,
} from '../../session/index.js';
import { KEYS } from '../../config/index.js';
import type { Logger } from '../../observability/index.js';
import { followSession } from '../login-cookie.js';
import type { HttpPaths } from '../paths.js';
import { BodyWriter, ClientDisconnected } from '../response/body-writer.js';
import {
  columnJson,
  prepareWhileConnected,
  principalOf,
  refuse,
  refusePlaceholders,
  whileConnected,
} from '../response/statement-answer.js';
import { answer, type HttpContext, type HttpServices, type Route } from '../route.js';
import { LastingLogin } from '../websocket/lasting-login.js';

const EVENT_TYPE = 'text/event-stream; charset=utf-8';
/** An expired login is detected within this time. */
const LOGIN_CHECK_MS = 1_000;
const COMMENT = ':\n\n';

export function changesRoute(services: HttpServices, { base }: HttpPaths): Route {
  const { config, sessions } = services;
  const readOnly = config.get(KEYS.httpReadOnly);
  const logger = services.logger.child('changes');
  return {
    path: `${base}/changes`,
    methods: ['GET'],
    access: 'data',
    errors: 'json',
    about: 'streams the changes of a table as server-sent events ([Changes](changes.md))',
    handle: async (context) => {
      followSession(context, services, `${base}/`);
      const problem = context.state.parameters.wrongSwitch(['quoteLargeNum']);
      if (problem !== null) {
        refuse(context, problem);
        return;
      }
      const text = statementOf(context);
      const start = text === null ? null : startOf(context);
      if (text === null || start === null) {
        return;
      }
      const free = sessions.feeds.acquire();
      try {
        const { login } = context.state;
        const lasting = login === null ? null : new LastingLogin(login, readOnly);
        const principal: Principal = lasting ?? principalOf(context, readOnly);
        const session = sessions.open(principal, true);
        const statement = await prepareWhileConnected(context, session, text);
        await whileConnected(context, statement, async (follow) => {
          if (!refusePlaceholders(context, statement)) {
            const heartbeatMs = config.get(KEYS.changesHeartbeat);
            const options = { context, lasting, heartbeatMs, follow, logger };
            await new EventFeed(statement, start, options).run();
          }
        });
      } finally {
        free();
      }
    },
  };
}

/**
 * Returns the query from the parameters. If they are invalid, sends the error and returns `null`.
 */
function statementOf(context: HttpContext): string | null {
  const { parameters } = context.state;
  const [query, table, columns, where] = ['query', 'table', 'columns', 'where'].map((name) =>
    parameters.isInvalid(name) ? '' : parameters.get(name),
  );
  const parts = [table, columns, where].filter((part) => part !== undefined);
  let text = query ?? '';
  if (query === undefined && table !== undefined && table !== '') {
    const name = quoteName(table);
    text = `SELECT ${columns ?? '*'} FROM ${name}${where === undefined ? '' : ` WHERE ${where}`}`;
  }
  context.state.statement = { text, sinceMs: performance.now() };
  if (query !== undefined && parts.length > 0) {
    refuse(context, 'expected either query, or table with columns and where');
    return null;
  }
  if (text === '') {
    refuse(context, 'missing parameter: table or query');
    return null;
  }
  return text;
}

/** Start of the feed; a reconnecting client sends the last id that it received. */
function startOf(context: HttpContext): FeedStart | null {
  const { parameters } = context.state;
  const text = context.get('Last-Event-ID') || (parameters.get('from') ?? 'now');
  const start = parseFeedStart(text);
  if (start === null) {
    refuse(context, `invalid 'from' value '${text}': expected start, now, or the id of an event`);
  }
  return start;
}

interface EventFeedOptions {
  readonly context: HttpContext;
  /** The login to check again; absent if no login is required. */
  readonly lasting: LastingLogin | null;
  readonly heartbeatMs: number;
  readonly follow: (stream: ExecuteReply['stream']) => void;
  readonly logger: Logger;
}

/** The event stream of one client. */
class EventFeed {
  readonly #statement: PreparedStatement;
  readonly #feed: ChangeFeed;
  readonly #options: EventFeedOptions;
  #writer: BodyWriter | null = null;
  #columns = '';
  /** `id` of the last event. */
  #sentId = '';
  #checkedAt = -Infinity;

  constructor(statement: PreparedStatement, start: FeedStart, options: EventFeedOptions) {
    this.#statement = statement;
    const quoteLargeNumbers = options.context.state.parameters.isTrue('quoteLargeNum');
    this.#feed = new ChangeFeed(statement, start, { quoteLargeNumbers });
    this.#options = options;
  }

  async run(): Promise<void> {
    const { context, logger } = this.#options;
    if (context.method === 'HEAD') {
      answer(context, 200, EVENT_TYPE, '');
      return;
    }
    // Errors in the query, the permissions or the position are reported before the first event.
    let step: FeedStep | null = await this.#feed.next(0);
    const writer = this.#begin();
    try {
      while (step !== null) {
        await this.#send(step);
        step = context.res.closed ? null : await this.#feed.next(this.#options.heartbeatMs);
      }
    } catch (error) {
      if (!(error instanceof ClientDisconnected || context.res.closed)) {
        const failure = asDatabaseError(error);
        const { code, message } = failure;
        logger.log(errorMeaning(code).logLevel, 'feed_failed', { code, message });
        writer.end(event('error', null, JSON.stringify(errorOf(failure))));
      }
    }
  }

  #begin(): BodyWriter {
    const { context } = this.#options;
    const { res } = context;
    context.respond = false;
    res.statusCode = 200;
    res.setHeader('Content-Type', EVENT_TYPE);
    res.setHeader('Cache-Control', 'no-cache, no-transform');
    // Keeps proxies from buffering the events.
    res.setHeader('X-Accel-Buffering', 'no');
    this.#writer = new BodyWriter(res, null, context.state.timeouts.sendMs);
    return this.#writer;
  }

  async #send(step: FeedStep): Promise<void> {
    const { change, reply } = step;
    this.#options.follow(reply.stream);
    try {
      await this.#checkLogin();
      await this.#sendColumns(step);
      switch (change.kind) {
        case 'none':
          await this.#sendPosition();
          break;
        case 'rows':
          await this.#sendRows(step);
          break;
        case 'range':
          await this.#sendRange(step);
          break;
      }
    } finally {
      reply.stream?.cancel();
      this.#options.follow(null);
    }
  }

  /** Sends the columns at the start, and again after the table has changed. */
  async #sendColumns({ change, description }: FeedStep): Promise<void> {
    const columns = description.columns.map((column: ResultColumn) => columnJson(column)).join(',');
    const name = JSON.stringify(change.table);
    const { timestamp } = description;
    const text = `{"table":${name},"columns":[${columns}],"timestamp":${timestamp}}`;
    if (text !== this.#columns) {
      this.#columns = text;
      await this.#write('schema', null, text);
    }
  }

  /**
   * Sends the current position, so that a reconnecting client can resume there. This also keeps
   * idle connections alive through proxies.
   */
  async #sendPosition(): Promise<void> {
    const { position } = this.#feed;
    const id = position === null ? '' : positionText(position);
    if (position === null || id === this.#sentId) {
      await this.#writer?.write(COMMENT);
    } else {
      await this.#write('position', id, JSON.stringify({ txn: position.txn }));
    }
  }

  async #sendRows(step: FeedStep): Promise<void> {
    for await (const { bytes, rows, position } of this.#feed.chunks(step)) {
      await this.#checkLogin();
      const id = position === null ? null : positionText(position);
      const head = `{"txn":${step.change.txn},"count":${rows},"dataset":[`;
      await this.#write('rows', id, head, bytes, ']}');
    }
  }

  async #sendRange(step: FeedStep): Promise<void> {
    const { txn, ranges } = step.change;
    await this.#write('range', null, JSON.stringify({ txn, ranges }));
    await this.#sendRows(step);
    await this.#sendPosition();
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
    this.#statement.authorise();
  }

  async #write(
    name: string,
    id: string | null,
    ...data: readonly (string | Buffer)[]
  ): Promise<void> {
    this.#sentId = id ?? this.#sentId;
    const [first = '', ...remaining] = data;
    const chunks = [event(name, id, first, remaining.length === 0), ...remaining];
    if (remaining.length > 0) {
      chunks.push('\n\n');
    }
    const bytes = chunks.map((chunk) => (typeof chunk === 'string' ? Buffer.from(chunk) : chunk));
    await this.#writer?.write(Buffer.concat(bytes));
  }
}

/** Formats an event, or its beginning. */
function event(name: string, id: string | null, data: string | Buffer, isComplete = true): string {
  const idLine = id === null ? '' : `id: ${id}\n`;
  return `event: ${name}\n${idLine}data: ${data.toString()}${isComplete ? '\n\n' : ''}`;
}

function errorOf({ message, start, hint }: DatabaseError): object {
  return {
    error: message,
    ...(start === undefined ? {} : { position: start }),
    ...(hint === undefined ? {} : { hint }),
  };
}
