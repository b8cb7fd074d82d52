/** Columnar protocol messages as encoded by clients, and the server's responses. */
import { KIND, type WebSocketClient } from '../http/websocket-client.js';
import { varint } from './requests.js';

export const FLAG = { defer: 0x01, gorilla: 0x04, delta: 0x08 } as const;
export const TYPE = { long: 0x05, double: 0x07, symbol: 0x09, timestamp: 0x0a } as const;
/** Deliberately duplicated, so a wrong value in the server is noticed. */
export const STATUS = {
  ok: 0,
  durable: 2,
  schemaMismatch: 3,
  parseError: 5,
  securityError: 8,
  writeError: 9,
  cancelled: 10,
  limitExceeded: 11,
  dictionaryGap: 13,
  queryTimeout: 14,
} as const;

function text(content: string): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([varint(bytes.length), bytes]);
}

export function message(flags: number, tables: number, ...payload: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(12);
  head.write('QWP1');
  head[4] = 1;
  head[5] = flags;
  head.writeUInt16LE(tables, 6);
  head.writeUInt32LE(
    payload.reduce((sum, part) => sum + part.length, 0),
    8,
  );
  return Buffer.concat([head, ...payload]);
}

export function delta(start: number, entries: readonly string[]): Buffer {
  return Buffer.concat([varint(start), varint(entries.length), ...entries.map(text)]);
}

/** A column without nulls: its name, its type, and the bytes after the null flag. */
type Column = readonly [string, number, Buffer];

export function block(table: string, rows: number, ...columns: readonly Column[]): Buffer {
  const schema = columns.flatMap(([name, type]) => [text(name), Buffer.from([type])]);
  const data = columns.flatMap(([, , values]) => [Buffer.from([0]), values]);
  return Buffer.concat([text(table), varint(rows), varint(columns.length), ...schema, ...data]);
}

export function longs(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(8 * values.length);
  values.forEach((value, at) => bytes.writeBigInt64LE(BigInt(value), 8 * at));
  return bytes;
}

/** A row with a LONG `x` at a timestamp in microseconds. */
export function row(table: string, x: number, micros = 1): Buffer {
  return block(table, 1, ['x', TYPE.long, longs(x)], ['', TYPE.timestamp, longs(micros)]);
}

interface Answer {
  readonly status: number;
  /** Absent from durability acknowledgements. */
  readonly sequence?: number;
  readonly tables?: Readonly<Record<string, number>>;
  readonly reason?: string;
}

/** Returns the next response, skipping pongs; null at the end of the connection. */
export async function answer(client: WebSocketClient): Promise<Answer | null> {
  let frame = await client.receive();
  while (frame?.kind === KIND.pong) {
    frame = await client.receive();
  }
  if (frame?.kind !== KIND.binary) {
    return null;
  }
  const { payload } = frame;
  const [status = -1] = payload;
  if (status === STATUS.durable) {
    return { status, tables: tables(payload, 1) };
  }
  const sequence = Number(payload.readBigInt64LE(1));
  if (status === STATUS.ok) {
    return { status, sequence, tables: tables(payload, 9) };
  }
  const length = payload.readUInt16LE(9);
  return { status, sequence, reason: payload.toString('utf8', 11, 11 + length) };
}

function tables(payload: Buffer, start: number): Record<string, number> {
  const found: Record<string, number> = {};
  let at = start + 2;
  for (let left = payload.readUInt16LE(start); left > 0; left -= 1) {
    const end = at + 2 + payload.readUInt16LE(at);
    found[payload.toString('utf8', at + 2, end)] = Number(payload.readBigInt64LE(end));
    at = end + 8;
  }
  return found;
}
