/**
 * GET and POST /exec: runs one statement and returns its rows as JSON. This module writes the start
 * and end of the response; the rows arrive as bytes from the engine. The headers are sent only with
 * the first rows, so that an earlier error is a plain 400.
 */
import {
  asDatabaseError,
  DatabaseError,
  type ExecuteReply,
  type RowOptions,
  type PreparedStatement,
  type ResultColumn,
  type Session,
  type StatementDescription,
  type Summary,
} from '../../session/index.js';
import { KEYS } from '../../config/index.js';
import { BodyWriter, ClientDisconnected } from '../response/body-writer.js';
import { MIN_COMPRESSED_BYTES } from '../request/negotiation.js';
import { setBody, streamedCoding } from '../response/compression.js';
import { type Answered, requestHandoffs } from '../handoffs/index.js';
import { followSession } from '../login-cookie.js';
import type { Parameters } from '../request/parameters.js';
import type { HttpPaths } from '../paths.js';
import {
  answer,
  type HttpContext,
  type HttpServices,
  JSON_TYPE,
  keepAliveHeader,
  type Route,
} from '../route.js';
import { execRange, type RowRange } from '../request/row-range.js';
import {
  answerEmpty,
  columnJson,
  errorBody,
  finish,
  openSession,
  prepareWhileConnected,
  readStatement,
  refuse,
  positionOf,
  refusePlaceholders,
  STATEMENT_FORM,
  statementBounds,
  whileConnected,
} from '../response/statement-answer.js';

const NO_BYTES = Buffer.alloc(0);
/**
 * Maximum number of row bytes that are copied into the same write as the start of the response.
 * Copying more would delay other requests.
 */
const MAX_JOINED_BYTES = 1024 * 1024;
const SWITCHES = ['count', 'nm', 'timings', 'explain', 'quoteLargeNum', 'session', 'exactPosition'];

export function execRoute(services: HttpServices, paths: HttpPaths): Route {
  const { config } = services;
  const keepAlive = keepAliveHeader(config);
  const readOnly = config.get(KEYS.httpReadOnly);
  const handoffs = requestHandoffs(services, MAX_JOINED_BYTES);
  return {
    path: paths.execute,
    methods: ['GET', 'POST'],
    access: 'data',
    errors: 'json',
    body: STATEMENT_FORM,
    isHot: true,
    about: 'runs one statement and returns JSON',
    handle: async (context) => {
      // Called before anything else, while the parser's buffer still contains the request.
      const repeated = handoffs?.of(context) ?? null;
      const failure = repeated?.received(context.req) ?? null;
      followSession(context, services, `${paths.base}/`);
      const text = readStatement(context, keepAlive);
      if (text === null) {
        return;
      }
      const problem = context.state.parameters.wrongSwitch(SWITCHES);
      if (problem !== null) {
        refuse(context, problem);
        return;
      }
      if (failure !== null) {
        throw services.sessions.failure(failure);
      }
      const started = process.hrtime.bigint();
      const session = openSession(context, services, readOnly);
      const statement = await prepareWhileConnected(context, session, text);
      const compilerNanos = Number(process.hrtime.bigint() - started);
      const answered = (how: Answered): void => {
        const limits = repeated === null ? null : (handoffs?.limits(context) ?? null);
        if (limits !== null) {
          repeated?.answered(how, limits);
        }
      };
      await whileConnected(context, statement, (follow) =>
        new Execution(context, session, statement, { compilerNanos, answered }).run(follow),
      );
    },
  };
}

type Follow = (stream: ExecuteReply['stream']) => void;

interface ExecutionSetting {
  readonly compilerNanos: number;
  /** Called after a response whose rows all fitted into one write. */
  readonly answered: (how: Answered) => void;
}

class Execution {
  readonly #context: HttpContext;
  readonly #parameters: Parameters;
  readonly #session: Session;
  readonly #statement: PreparedStatement;
  readonly #setting: ExecutionSetting;

  constructor(
    context: HttpContext,
    session: Session,
    statement: PreparedStatement,
    setting: ExecutionSetting,
  ) {
    this.#context = context;
    this.#parameters = context.state.parameters;
    this.#session = session;
    this.#statement = statement;
    this.#setting = setting;
  }

  async run(follow: Follow): Promise<void> {
    if (refusePlaceholders(this.#context, this.#statement)) {
      return;
    }
    const { kind, columns } = this.#statement.description;
    if (this.#context.method === 'HEAD') {
      // HEAD must not change anything, so the statement is prepared but not executed.
      answer(this.#context, 200, JSON_TYPE, '');
    } else if (kind === 'select' || columns.length > 0) {
      await this.#answerRows(follow);
    } else if (kind === 'empty') {
      answerEmpty(this.#context, this.#statement.text);
    } else {
      await this.#answerDone(follow);
    }
  }

  async #answerDone(follow: Follow): Promise<void> {
    const options = { rows: { format: 'json' } } as const;
    const bounds = statementBounds(this.#context);
    const reply = await this.#statement.execute([], () => options, bounds);
    follow(reply.stream);
    const summary = await finish(reply);
    answer(
      this.#context,
      200,
      JSON_TYPE,
      JSON.stringify(doneBody(this.#statement.description, summary)),
    );
  }

  async #answerRows(follow: Follow): Promise<void> {
    const names = this.#parameters.get('cols') ?? '';
    const range = execRange(this.#parameters.get('limit'));
    let chosen: readonly number[] | null = null;
    let reply;
    try {
      const how = ({ columns }: StatementDescription): RowOptions => {
        chosen = chooseColumns(columns, names);
        return this.#options(chosen, range);
      };
      reply = await this.#statement.execute([], how, statementBounds(this.#context));
    } catch (error) {
      if (!(error instanceof NoSuchColumn)) {
        throw error;
      }
      const body = errorBody(this.#statement.text, error.message, null);
      answer(this.#context, 400, JSON_TYPE, body);
      return;
    }
    follow(reply.stream);
    const { description } = this.#statement;
    const first = reply.chunk?.bytes ?? NO_BYTES;
    const head = this.#head(description, chosen);
    if (reply.summary === null || first.length > MAX_JOINED_BYTES) {
      await this.#streamRows(reply, range, head, first);
      return;
    }
    const tail = this.#tail(reply.summary, range);
    if (head.length + first.length + tail.length < MIN_COMPRESSED_BYTES) {
      // Node sends a string body in the same write as the headers.
      answer(this.#context, 200, JSON_TYPE, head + first.toString() + tail);
    } else {
      await answerBuffered(this.#context, [Buffer.from(head), first, Buffer.from(tail)]);
    }
    this.#setting.answered(this.#howAnswered(range));
  }

  /** Describes all columns; a request with `cols` is never handed off. */
  #howAnswered(range: RowRange): Answered {
    const { req, res } = this.#context;
    return {
      request: req,
      response: res,
      session: this.#session,
      statement: this.#statement,
      options: this.#options(null, range),
      timeoutMs: statementBounds(this.#context).timeoutMs,
      columns: (description) => this.#columns(description, null),
      namesQuery: !this.#parameters.isTrue('nm'),
      end: this.#end(),
    };
  }

  #options(chosen: readonly number[] | null, range: RowRange): RowOptions {
    const parameters = this.#parameters;
    const quote = parameters.isTrue('quoteLargeNum') || parameters.get('src') === 'con';
    return {
      rows: {
        format: 'json',
        quoteLargeNumbers: quote,
        ...(chosen === null ? {} : { columns: chosen }),
      },
      countAll: parameters.isTrue('count'),
      skip: range.skip,
      take: range.take,
    };
  }

  async #streamRows(
    reply: ExecuteReply,
    range: RowRange,
    head: string,
    first: Buffer,
  ): Promise<void> {
    const { stream } = reply;
    const context = this.#context;
    context.respond = false;
    context.res.statusCode = 200;
    context.res.setHeader('Content-Type', JSON_TYPE);
    const writer = new BodyWriter(
      context.res,
      streamedCoding(context.req),
      context.state.timeouts.sendMs,
    );
    try {
      if (first.length > MAX_JOINED_BYTES) {
        await writer.write(head);
        await writer.write(first);
      } else {
        await writer.write(Buffer.concat([Buffer.from(head), first]));
      }
      let chunk = (await stream?.next()) ?? null;
      while (chunk !== null) {
        await writer.write(chunk.bytes);
        chunk = (await stream?.next()) ?? null;
      }
      const summary = reply.summary ?? stream?.summary() ?? null;
      writer.end(summary === null ? '],"count":0}' : this.#tail(summary, range));
    } catch (error) {
      stream?.cancel();
      if (!(error instanceof ClientDisconnected)) {
        await writer.cut(brokenTail(this.#context, asDatabaseError(error)));
      }
    }
  }

  #head(description: StatementDescription, chosen: readonly number[] | null): string {
    const columns = this.#columns(description, chosen);
    return this.#parameters.isTrue('nm')
      ? columns
      : `{"query":${JSON.stringify(this.#statement.text)}${columns}`;
  }

  /** The part of the response between the SQL text and the rows. */
  #columns(description: StatementDescription, chosen: readonly number[] | null): string {
    if (this.#parameters.isTrue('nm')) {
      return '{"dataset":[';
    }
    const timestamp =
      chosen === null ? description.timestamp : chosen.indexOf(description.timestamp);
    return `,"columns":[${columnsJson(description, chosen)}],"timestamp":${timestamp},"dataset":[`;
  }

  #tail(summary: Summary, range: RowRange): string {
    const parameters = this.#parameters;
    const lastRow = summary.rowsReturned === 0 ? 0 : (range.skip ?? 0) + summary.rowsReturned;
    const count = parameters.isTrue('count') ? summary.rowsTotal : lastRow;
    const timings = parameters.isTrue('timings')
      ? `,"timings":${JSON.stringify({
          authentication: this.#context.state.authenticationNanos,
          compiler: this.#setting.compilerNanos,
          execute: summary.executeNanos,
          count: 0,
        })}`
      : '';
    return `],"count":${count}${timings}${this.#end()}`;
  }

  #end(): string {
    return this.#parameters.isTrue('explain') ? ',"explain":{"jitCompiled":false}}' : '}';
  }
}

/** Cached by description object, because equal requests share that object. */
const described = new WeakMap<StatementDescription, string>();

function columnsJson(description: StatementDescription, chosen: readonly number[] | null): string {
  if (chosen !== null) {
    return chosen.map((index) => columnJson(description.columns[index])).join(',');
  }
  let text = described.get(description);
  if (text === undefined) {
    text = description.columns.map(columnJson).join(',');
    described.set(description, text);
  }
  return text;
}

/** The rows were already sent, so the error is appended and the response then ends prematurely. */
function brokenTail(context: HttpContext, error: DatabaseError): string {
  const position = positionOf(context, error);
  return `],"error":${JSON.stringify(error.message)},"position":${position}}`;
}

function doneBody(description: StatementDescription, summary: Summary): object {
  switch (description.kind) {
    case 'insert':
      return { dml: 'OK', inserted: summary.rowsAffected };
    case 'update':
      return { ddl: 'OK', dml: 'OK', updated: summary.rowsAffected };
    default:
      return description.notice === undefined
        ? { ddl: 'OK' }
        : { ddl: 'OK', notice: description.notice };
  }
}

/** Reports that `cols` names a column that the query does not return. */
class NoSuchColumn extends DatabaseError {
  constructor(name: string) {
    super({ code: 'ColumnNotFound', message: `column not found: '${name}'` });
  }
}

/** Column indices in the requested order; `null` for all. */
export function chooseColumns(
  columns: readonly ResultColumn[],
  names: string,
): readonly number[] | null {
  const requested = splitNames(names);
  if (requested.length === 0) {
    return null;
  }
  const chosen: number[] = [];
  for (const name of requested) {
    const exact = columns.findIndex((column) => column.name === name);
    const folded = name.toLowerCase();
    const index =
      exact >= 0 ? exact : columns.findIndex((column) => column.name.toLowerCase() === folded);
    if (index < 0) {
      throw new NoSuchColumn(name);
    }
    chosen.push(index);
  }
  return chosen;
}

/** Splits comma-separated names; a name in double quotes may contain commas. */
function splitNames(names: string): string[] {
  if (names === '') {
    return [];
  }
  const found = names.match(/"(?:[^"]|"")*"|[^,]+/g) ?? [];
  return found
    .map((name) => name.trim())
    .filter((name) => name !== '')
    .map((name) => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name));
}

async function answerBuffered(context: HttpContext, chunks: readonly Buffer[]): Promise<void> {
  context.status = 200;
  context.set('Content-Type', JSON_TYPE);
  await setBody(context, Buffer.concat(chunks));
}
