/** Messages from clients that read results over QWP, as bytes. */

/** Request flag: a timeout follows. */
const FLAG_TIMEOUT = 0x02;

/** A parameter: its type, and the bytes after the type. */
export type Bind = readonly [code: number, ...parts: readonly Buffer[]];

export interface RequestOptions {
  readonly credit?: number;
  readonly binds?: readonly Bind[];
  readonly flags?: number;
  /** The timeout in milliseconds, which is sent after the flags. */
  readonly timeoutMs?: bigint | number;
}

export function varint(value: bigint | number): Buffer {
  const bytes: number[] = [];
  let rest = BigInt(value);
  while (rest >= 128n) {
    bytes.push(Number(rest % 128n) | 128);
    rest /= 128n;
  }
  return Buffer.from([...bytes, Number(rest)]);
}

export function int64(value: bigint | number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(BigInt(value));
  return bytes;
}

/** Encodes a non-null parameter value: the null flag without a bitmap, then the value. */
export function given(value: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0]), value]);
}

export function textBind(value: string): Bind {
  const bytes = Buffer.from(value);
  const offsets = Buffer.alloc(8);
  offsets.writeUInt32LE(bytes.length, 4);
  return [0x0f, given(Buffer.concat([offsets, bytes]))];
}

export const NULL = Buffer.from([1, 1]);

export function queryRequest(
  id: number,
  sql: string,
  { credit = 0, binds = [], flags, timeoutMs }: RequestOptions = {},
): Buffer {
  const allFlags = timeoutMs === undefined ? flags : (flags ?? 0) | FLAG_TIMEOUT;
  const text = Buffer.from(sql);
  return Buffer.concat([
    Buffer.from([0x10]),
    int64(id),
    varint(text.length),
    text,
    varint(credit),
    varint(binds.length),
    ...binds.flatMap(([code, ...parts]) => [Buffer.from([code]), ...parts]),
    ...(allFlags === undefined ? [] : [varint(allFlags)]),
    ...(timeoutMs === undefined ? [] : [varint(timeoutMs)]),
  ]);
}
