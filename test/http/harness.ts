/** The HTTP application over the fake database, on a free port. */
import { type Authenticator, createAuthenticator } from '../../ts/auth/index.js';
import { loadConfig } from '../../ts/config/index.js';
import { type HttpServices, type RunningHttp, startHttp } from '../../ts/http/index.js';
import { Documents } from '../../ts/mcp/documents.js';
import { ServerMetrics } from '../../ts/observability/index.js';
import { SILENT } from '../silent.js';
import { SessionHost } from '../../ts/session/index.js';
import { type FakeDatabase, fakeDatabase, fakeParse } from './fake-database.js';

export interface Harness {
  readonly url: string;
  readonly port: number;
  readonly database: FakeDatabase;
  readonly server: RunningHttp;
}

export interface HarnessOptions {
  readonly set?: readonly string[];
  readonly files?: HttpServices['console'];
  readonly importRoot?: string;
  readonly authenticator?: Authenticator;
}

/** Returns the services of an HTTP server over `database`. */
export function fakeServices(options: HarnessOptions, database: FakeDatabase): HttpServices {
  const settings = new Map(
    (options.set ?? []).map((item) => item.split('=', 2) as [string, string]),
  );
  const metrics = new ServerMetrics({
    engine: () => ({}),
    connections: () => null,
    waitingLines: () => null,
    root: '.',
  });
  return {
    sessions: new SessionHost({ database, parse: fakeParse }),
    config: loadConfig({ set: ['http.bind.to=127.0.0.1:0', ...(options.set ?? [])] }),
    authenticator:
      options.authenticator ??
      oneUser(settings.get('http.user') ?? '', settings.get('http.password') ?? ''),
    logger: SILENT,
    metrics: metrics.registry,
    ingest: metrics.ingest,
    statements: metrics.statements,
    servesLinesOverTcp: false,
    console: options.files ?? new Map(),
    documents: new Documents('/nowhere'),
    version: '0.1.0',
    importRoot: options.importRoot ?? '/nowhere',
  };
}

/** Single-user mode: an empty user or password admits every user. */
function oneUser(user: string, password: string): Authenticator {
  return createAuthenticator(user === '' || password === '' ? {} : { owner: { user, password } });
}

export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
  const database = fakeDatabase();
  const server = await startHttp(fakeServices(options, database));
  return { url: `http://${server.address}`, port: server.port, database, server };
}

/** Sends raw bytes and reads until the server closes the connection. */
export async function sendRaw(port: number, bytes: string): Promise<string> {
  const { connect } = await import('node:net');
  return await new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    let answer = '';
    socket.setEncoding('latin1');
    socket.setTimeout(3000, () => socket.destroy());
    socket.on('data', (text: string) => {
      answer += text;
    });
    socket.on('close', () => {
      resolve(answer);
    });
    socket.on('error', reject);
  });
}
