/** What clients that read results over QWP say, as bytes. */

/** A parameter: its type, and what follows the type. */
export type Bind = readonly [code: number, ...parts: readonly Buffer[]];

export interface RequestOptions {
  readonly credit?: number;
  readonly binds?: readonly Bind[];
  readonly flags?: number;
}

export function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 128) {
    bytes.push((rest % 128) | 128);
    rest = Math.floor(rest / 128);
  }
  return Buffer.from([...bytes, rest]);
}

export function int64(value: bigint | number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(BigInt(value));
  return bytes;
}

/** A value behind its flag: no bitmap. */
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
  { credit = 0, binds = [], flags }: RequestOptions = {},
): Buffer {
  const text = Buffer.from(sql);
  return Buffer.concat([
    Buffer.from([0x10]),
    int64(id),
    varint(text.length),
    text,
    varint(credit),
    varint(binds.length),
    ...binds.flatMap(([code, ...parts]) => [Buffer.from([code]), ...parts]),
    ...(flags === undefined ? [] : [varint(flags)]),
  ]);
}
