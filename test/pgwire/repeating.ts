/** Test helpers that repeat prepared queries and count the queries answered by the engine. */
import { startTestServer, type TestServer } from '../golden/server.js';
import { clientMessage, RawClient, type ServerMessage } from './raw-client.js';

/** Starts a server that hands off connections, and a server that does not. */
export function startBoth(): Promise<[handingOff: TestServer, plain: TestServer]> {
  const set = ['pg.auth.method=cleartext', 'metrics.enabled=true'];
  return Promise.all([
    startTestServer({ set }),
    startTestServer({ set: [...set, 'pg.fast.path.enabled=false'] }),
  ]);
}

export async function run({ url }: TestServer, query: string): Promise<unknown[][]> {
  const response = await fetch(`${url}/exec?query=${encodeURIComponent(query)}`);
  const { dataset = [], error } = (await response.json()) as {
    dataset?: unknown[][];
    error?: string;
  };
  if (error !== undefined) {
    throw new Error(error);
  }
  return dataset;
}

/** Returns the number of statements that handoffs have executed. */
export async function handedOff({ url }: TestServer): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^\w*fast_path_statements_total (\d+)/m.exec(text)?.[1] ?? Number.NaN);
}

export const login = (server: TestServer): Promise<RawClient> =>
  RawClient.login(Number(server.pg.split(':').at(-1)));

export const SYNC = clientMessage('S');
export const FLUSH = clientMessage('H');

export function parse(name: string, text: string, types: readonly number[] = []): Buffer {
  return clientMessage('P', name, text, [types.length], ...types.map((type) => type));
}

export interface BindOptions {
  readonly formats?: readonly number[];
  readonly results?: readonly number[];
}

export function bind(
  name: string,
  values: readonly (string | Buffer | null)[],
  { formats = [], results = [] }: BindOptions = {},
): Buffer {
  const bytes = values.flatMap((value) => {
    const buffer = value === null ? null : Buffer.from(value);
    return buffer === null ? [-1] : [buffer.length, buffer];
  });
  return clientMessage(
    'B',
    '',
    name,
    [formats.length],
    ...formats.map((format) => [format] as const),
    [values.length],
    ...bytes,
    [results.length],
    ...results.map((format) => [format] as const),
  );
}

export const DESCRIBE = clientMessage('D', Buffer.from('P'), '');
export const EXECUTE = clientMessage('E', '', 0);

export const shown = ({ type, body }: ServerMessage): string => `${type} ${body.toString('hex')}`;

/** Sends messages and reads the expected number of ReadyForQuery messages. */
export async function answers(client: RawClient, messages: readonly Buffer[]): Promise<string[]> {
  client.send(...messages);
  const all: string[] = [];
  for (const message of messages) {
    if (message.equals(SYNC) || message[0] === 'Q'.charCodeAt(0)) {
      all.push(...(await client.until('Z')).map(shown));
    }
  }
  return all;
}
