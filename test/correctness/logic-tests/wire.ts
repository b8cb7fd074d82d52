/**
 * Databases reached through the PostgreSQL protocol: a Tidemark server, which is restarted if it
 * crashes, or an oracle given by its URL. Values stay in the text format in which the server sent
 * them.
 */
import { once } from 'node:events';

import pg from 'pg';

import { startTestServer, type TestServer } from '../../golden/server.js';
import { noteInternalError } from '../../internal-errors.js';
import type { WireCell } from './values.js';

/** Server-side statement timeout in milliseconds. */
const STATEMENT_TIMEOUT_MS = 10_000;
/**
 * Time allowed for a response beyond the timeout, in milliseconds, before the server counts as
 * unresponsive.
 */
const GRACE_MS = 60_000;
/** Memory limit of a server that runs third-party statements. */
const MEMORY_LIMIT = '3G';

/** Maximum number of server log characters quoted with an internal error. */
const MAX_LOG_CHARACTERS = 1000;

interface Answer {
  readonly kind: 'rows';
  readonly width: number;
  readonly rows: readonly (readonly WireCell[])[];
  /** Number of affected rows, if the command tag contains it. */
  readonly count: number | undefined;
}

export interface Failure {
  readonly kind: 'error';
  readonly code: string;
  readonly message: string;
  /** Whether the error is XX000, a missing response, or a crash of the server. */
  readonly isInternal: boolean;
}

export type Outcome = Answer | Failure;

const RAW = { getTypeParser: () => (value: string) => value };

interface PgConnection {
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

/** A COPY … FROM STDIN statement with its data, as an entry in the `pg` client's queue. */
class CopyIn {
  readonly #sql: string;
  readonly #data: string;
  readonly #done: (error?: Error) => void;

  constructor(sql: string, data: string, done: (error?: Error) => void) {
    this.#sql = sql;
    this.#data = data;
    this.#done = done;
  }

  submit(connection: PgConnection): void {
    connection.query(this.#sql);
  }

  handleCopyInResponse(connection: PgConnection): void {
    connection.sendCopyFromChunk(Buffer.from(this.#data));
    connection.endCopyFrom();
  }

  handleError(error: Error): void {
    this.#done(error);
  }

  handleReadyForQuery(): void {
    this.#done();
  }

  handleCommandComplete(): void {
    // Nothing to do, because ReadyForQuery follows.
  }
}

/** Connections to one database, by their names in a test file. */
export class Connections {
  readonly #url: () => string;
  readonly #clients = new Map<string, pg.Client>();
  readonly #processOutput: (() => string) | undefined;

  /** `processOutput` returns the server output to quote with an internal error. */
  constructor(url: () => string, processOutput?: () => string) {
    this.#url = url;
    this.#processOutput = processOutput;
  }

  async run(sql: string, connection = '', copyData?: string): Promise<Outcome> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const limit = STATEMENT_TIMEOUT_MS + GRACE_MS;
      timer = setTimeout(() => {
        reject(new Error(`no answer within ${String(limit)} ms`));
      }, limit);
    });
    try {
      return await Promise.race([this.#query(sql, connection, copyData), late]);
    } catch (error) {
      return this.#failure(sql, connection, error as Error & { code?: string });
    } finally {
      clearTimeout(timer);
    }
  }

  async #query(sql: string, connection: string, copyData: string | undefined): Promise<Outcome> {
    const client = await this.#client(connection);
    return await (copyData === undefined ? send(client, sql) : copyIn(client, sql, copyData));
  }

  async close(): Promise<void> {
    const all = [...this.#clients.values()];
    this.#clients.clear();
    await Promise.all(all.map((client) => client.end().catch(() => undefined)));
  }

  async #client(name: string): Promise<pg.Client> {
    const known = this.#clients.get(name);
    if (known !== undefined) {
      return known;
    }
    const client = new pg.Client({ connectionString: this.#url() });
    client.on('error', () => this.#clients.delete(name));
    await client.connect();
    this.#clients.set(name, client);
    return client;
  }

  #failure(sql: string, connection: string, error: Error & { code?: string }): Failure {
    const { code, message } = error;
    const isFromServer = code !== undefined && /^[0-9A-Z]{5}$/.test(code);
    if (!isFromServer || (code === 'XX000' && this.#processOutput !== undefined)) {
      const client = this.#clients.get(connection);
      this.#clients.delete(connection);
      void client?.end().catch(() => undefined);
      if (this.#processOutput === undefined) {
        return { kind: 'error', code: 'NONE', message, isInternal: false };
      }
      const said = `${message} ${this.#processOutput()}`;
      noteInternalError(sql, `${code ?? ''} ${said}`);
      return { kind: 'error', code: code ?? 'NONE', message: said, isInternal: true };
    }
    return { kind: 'error', code, message, isInternal: false };
  }
}

async function send(client: pg.Client, sql: string): Promise<Outcome> {
  const query = { text: sql, rowMode: 'array', types: RAW };
  const all = (await client.query(query as unknown as string)) as unknown;
  const results = (Array.isArray(all) ? all : [all]) as readonly pg.QueryArrayResult[];
  const result = results.findLast(({ fields }) => fields.length > 0) ?? results.at(-1);
  return {
    kind: 'rows',
    width: result?.fields.length ?? 0,
    rows: (result?.rows ?? []) as readonly (readonly WireCell[])[],
    count: result?.rowCount ?? undefined,
  };
}

async function copyIn(client: pg.Client, sql: string, data: string): Promise<Outcome> {
  await new Promise<void>((resolve, reject) => {
    const done = (error?: Error): void => {
      if (error === undefined) {
        resolve();
      } else {
        reject(error);
      }
    };
    client.query(new CopyIn(sql, data, done) as unknown as pg.Submittable);
  });
  return { kind: 'rows', width: 0, rows: [], count: undefined };
}

/** A Tidemark server that runs one test file at a time; each file starts without tables. */
export class FreshServer {
  readonly #settings: readonly string[];
  #server: TestServer;
  readonly connections: Connections;
  #restarts = 0;

  private constructor(server: TestServer, settings: readonly string[]) {
    this.#server = server;
    this.#settings = settings;
    this.connections = new Connections(
      () => `postgres://admin:quest@${this.#server.pg}/qdb`,
      () => `${hasEnded(this.#server) ? 'the server ended ' : ''}${this.#lastLogLine()}`,
    );
  }

  static async start(set: readonly string[] = []): Promise<FreshServer> {
    const settings = [
      'cairo.commit.mode=nosync',
      'log.level=error',
      `memory.limit=${MEMORY_LIMIT}`,
      `query.timeout=${String(STATEMENT_TIMEOUT_MS / 1000)}s`,
      ...set,
    ];
    return new FreshServer(await startTestServer({ set: settings }), settings);
  }

  #lastLogLine(): string {
    return this.#server.log().trimEnd().split('\n').at(-1)?.slice(0, MAX_LOG_CHARACTERS) ?? '';
  }

  get restarts(): number {
    return this.#restarts;
  }

  /**
   * Drops every table and view. If the server has crashed, restarts it with an empty root
   * directory.
   */
  async empty(): Promise<void> {
    await this.connections.close();
    const dropped = hasEnded(this.#server)
      ? undefined
      : await this.connections.run('DROP ALL TABLES');
    if (dropped?.kind !== 'rows') {
      this.#restarts += 1;
      await this.connections.close();
      await this.#server.stop();
      this.#server = await startTestServer({ set: this.#settings });
    }
  }

  /** Kills the server immediately; used by the runner's own tests. */
  async kill(): Promise<void> {
    const ended = once(this.#server.process, 'exit');
    this.#server.process.kill('SIGKILL');
    await ended;
  }

  /** Restarts the server if it crashed while running a file. */
  async revive(): Promise<void> {
    if (hasEnded(this.#server)) {
      await this.empty();
    }
  }

  async close(): Promise<void> {
    await this.connections.close();
    await this.#server.stop();
  }
}

function hasEnded({ process: { exitCode, signalCode } }: TestServer): boolean {
  return exitCode !== null || signalCode !== null;
}
