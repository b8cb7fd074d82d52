/** The values of a Bind message, passed to the engine unchanged. */
import { isUtf8 } from 'node:buffer';

import { isSentAsText, ParameterBatch, parameterHeader } from '../../session/index.js';
import type { BindMessage, BoundParameters } from '../protocol/client-messages.js';
import { ProtocolError } from '../protocol/protocol-error.js';
import { formatCodes } from './format-codes.js';

/** Lookup table by byte value: 1 for ASCII characters except NUL. */
const ASCII = Uint8Array.from({ length: 256 }, (_, byte) => (byte > 0 && byte < 128 ? 1 : 0));
const COUNT_BYTES = 2;
const LENGTH_BYTES = 4;
const NO_OIDS: readonly number[] = [];

export class BoundValues {
  readonly count: number;
  /** The header that describes the encoding of the values. */
  readonly header: Buffer;
  /** The Bind message with the values, if any. */
  readonly source: BoundParameters | null;
  private readonly row: ParameterBatch | null;

  private constructor(header: Buffer, source: BoundParameters | null, row: ParameterBatch | null) {
    this.header = header;
    this.source = source;
    this.row = row;
    this.count = source?.count ?? row?.width ?? 0;
  }

  /** Values for a statement without parameters. */
  static readonly none: BoundValues = BoundValues.of(ParameterBatch.none);

  static of(row: ParameterBatch): BoundValues {
    return new BoundValues(row.header, null, row);
  }

  /** Creates the values from a Bind message. `oids` contains their types. */
  static ofBind(
    { parameters, parameterFormats }: BindMessage,
    oids: readonly number[],
  ): BoundValues {
    const header = headerOf(parameterFormats, parameters.count, oids);
    const { body, start, end } = parameters;
    if (BoundValues.endOf(header, body, start, end) !== end) {
      throw new ProtocolError('22021', 'invalid byte sequence for encoding "UTF8"');
    }
    return new BoundValues(header, parameters, null);
  }

  /**
   * Returns the offset of the end of the values; the offset of their count is `start`. Returns -1
   * if a value extends beyond `end`, or if a text value is not UTF-8.
   */
  static endOf(header: Buffer, bytes: Buffer, start: number, end: number): number {
    const count = bytes.readUInt16BE(start);
    let at = start + COUNT_BYTES;
    for (let index = 0; index < count; index += 1) {
      if (at + LENGTH_BYTES > end) {
        return -1;
      }
      const length = bytes.readInt32BE(at);
      const from = at + LENGTH_BYTES;
      at = from + (length === -1 ? 0 : length);
      if (length < -1 || at > end || (isSentAsText(header, index) && !isText(bytes, from, at))) {
        return -1;
      }
    }
    return at;
  }

  /** The values as one parameter row. */
  get parameters(): ParameterBatch {
    if (this.row !== null) {
      return this.row;
    }
    const { source } = this;
    if (source === null || source.count === 0) {
      return ParameterBatch.none;
    }
    const batch = new ParameterBatch(this.header, source.end - source.start);
    batch.addBytes(source.body, source.start, source.end);
    return batch;
  }
}

/** Whether the bytes are valid text in the protocol: UTF-8 without NUL bytes. */
function isText(bytes: Buffer, start: number, end: number): boolean {
  let at = start;
  while (at < end && ASCII[bytes[at] ?? 0] === 1) {
    at += 1;
  }
  const remainder = bytes.subarray(at, end);
  return at === end || (isUtf8(remainder) && !remainder.includes(0));
}

/**
 * The last header, cached because clients usually bind a statement with the same formats and types
 * each time.
 */
let last: {
  readonly formats: string;
  readonly oids: readonly number[];
  readonly header: Buffer;
} = { formats: '', oids: NO_OIDS, header: parameterHeader([]) };

function headerOf(codes: readonly number[], count: number, oids: readonly number[]): Buffer {
  const formats = codes.join();
  if (last.oids !== oids || last.formats !== formats) {
    const formatOf = formatCodes(codes, count, 'parameter');
    const sent = oids.map((oid, index) => ({ format: formatOf[index] ?? 0, oid }));
    last = { formats, oids, header: parameterHeader(sent) };
  }
  return last.header;
}
