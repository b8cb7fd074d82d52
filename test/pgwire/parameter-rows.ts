/** Decodes parameters as the engine does, for fake engines and comparisons. */
import type { BindMessage } from '../../ts/pgwire/protocol/client-messages.js';
import type { Parameters } from '../../ts/engine/types.js';
import { ParameterBatch } from '../../ts/session/index.js';

type Row = (string | null)[];

/** Decodes the values that follow their count, and returns the end offset. */
function valuesAt(bytes: Buffer, start: number): [values: (Buffer | null)[], end: number] {
  const values: (Buffer | null)[] = [];
  let at = start + 2;
  while (values.length < bytes.readUInt16BE(start)) {
    const length = bytes.readInt32BE(at);
    at += 4 + Math.max(0, length);
    values.push(length < 0 ? null : bytes.subarray(at - length, at));
  }
  return [values, at];
}

/** Returns rows as strings, with binary values in hexadecimal. */
export function rowsOf({ bytes, header }: ParameterBatch): Row[] {
  const isBinary = (index: number): boolean =>
    index < header.readUInt16BE(0) && header.readUInt8(2 + index * 5) === 1;
  const rows: Row[] = [];
  for (let at = header.length; at < bytes.length;) {
    const [values, end] = valuesAt(bytes, at);
    rows.push(
      values.map((value, index) => value?.toString(isBinary(index) ? 'hex' : 'utf8') ?? null),
    );
    at = end;
  }
  return rows;
}

/** Returns the values of a single execution. */
export function rowOf(parameters: Parameters): Row {
  return parameters instanceof ParameterBatch ? (rowsOf(parameters)[0] ?? []) : [...parameters];
}

/** Returns the values of a Bind: strings for text format, otherwise bytes. */
export function boundValues({ parameters, parameterFormats }: BindMessage): unknown[] {
  const [values] = valuesAt(parameters.body, parameters.start);
  const format = (index: number): number =>
    (parameterFormats.length === 1 ? parameterFormats[0] : parameterFormats[index]) ?? 0;
  return values.map((value, index) =>
    format(index) === 0 ? (value?.toString('utf8') ?? null) : value,
  );
}
