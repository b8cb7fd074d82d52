/** HTTP clients that repeat requests over raw sockets. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

import { startTestServer, type TestServer } from '../golden/server.js';

/** Starts two servers with the same settings, except that only the first hands off connections. */
export async function startBoth(...set: string[]): Promise<[TestServer, TestServer]> {
  const all = [...set, 'metrics.enabled=true'];
  return await Promise.all([
    startTestServer({ set: all }),
    startTestServer({ set: [...all, 'http.fast.path.enabled=false'] }),
  ]);
}

/** Runs a statement on a separate connection. */
export async function run(
  { url }: TestServer,
  query: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<unknown[][]> {
  const address = `${url}/exec?query=${encodeURIComponent(query)}`;
  const response = await fetch(address, { headers });
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
export async function handedOff(
  { url }: TestServer,
  headers: Readonly<Record<string, string>> = {},
): Promise<number> {
  const text = await (await fetch(`${url}/metrics`, { headers })).text();
  return Number(/^\w*fast_path_statements_total (\d+)/m.exec(text)?.[1] ?? Number.NaN);
}

export interface RequestOptions {
  readonly headers?: readonly string[];
  readonly parameters?: string;
  readonly line?: string;
}

/** Returns the bytes of a query request. */
export function get(
  text: string,
  { headers = [], parameters = '', line = 'GET /exec?query={} HTTP/1.1' }: RequestOptions = {},
): Buffer {
  const first = line.replace('{}', () => `${encodeURIComponent(text)}${parameters}`);
  return Buffer.from([first, 'Host: 127.0.0.1', ...headers, '', ''].join('\r\n'));
}

/** A client connection. */
export class Repeater {
  readonly socket: Socket;
  #bytes = Buffer.alloc(0);
  #isOver = false;
  #wake: () => void = () => undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (bytes: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, bytes]);
      this.#wake();
    });
    socket.on('error', () => undefined);
    for (const event of ['end', 'close']) {
      socket.on(event, () => {
        this.#isOver = true;
        this.#wake();
      });
    }
  }

  static async open({ url }: TestServer): Promise<Repeater> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    return new Repeater(socket);
  }

  send(...bytes: readonly Buffer[]): void {
    this.socket.write(Buffer.concat(bytes));
  }

  /**
   * Returns the next response without its date and file number; null if the connection has ended.
   */
  async answer(): Promise<string | null> {
    for (;;) {
      const length = answerLength(this.#bytes);
      if (length !== null) {
        const answer = this.#bytes.toString('latin1', 0, length);
        this.#bytes = this.#bytes.subarray(length);
        const undated = answer.replace(/^(Date: )[A-Z][a-z]{2}, .{20} GMT\r$/m, '$1\r');
        return undated.replace(/(filename="questdb-query-)\d+/, '$1');
      }
      if (this.#isOver) {
        return null;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async exchange(bytes: Buffer): Promise<string | null> {
    this.send(bytes);
    return await this.answer();
  }

  close(): void {
    this.socket.destroy();
  }
}

/** Returns the length of the complete response; null if it is incomplete. */
function answerLength(bytes: Buffer): number | null {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) {
    return null;
  }
  const head = bytes.toString('latin1', 0, end);
  if (/^HTTP\/1\.1 (?:1\d\d|204) /.test(head)) {
    return end + 4;
  }
  const length = /^content-length: *(\d+)\r?$/im.exec(head)?.[1];
  const complete =
    length === undefined
      ? bytes.indexOf('0\r\n\r\n', end) + '0\r\n\r\n'.length
      : end + 4 + Number(length);
  return complete > end && complete <= bytes.length ? complete : null;
}

/**
 * Repeats requests until the connection is handed off, even after earlier handoffs were
 * unprofitable.
 */
export async function handOff(
  one: Repeater,
  server: TestServer,
  request: () => Buffer,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  for (let tries = 0; tries < 20; tries += 1) {
    for (let round = 0; round < 70; round += 1) {
      await one.exchange(request());
    }
    const before = await handedOff(server, headers);
    await one.exchange(request());
    await one.exchange(request());
    if ((await handedOff(server, headers)) > before) {
      return;
    }
  }
  throw new Error('the connection is not handed off');
}
