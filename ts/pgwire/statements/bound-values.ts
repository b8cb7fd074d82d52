/** The values of a Bind: texts for one execution, bytes for many that go together. */
import type { ParameterBatch, ParameterValues } from '../../session/index.js';
import type { BindMessage, BoundParameters } from '../protocol/client-messages.js';
import { formatCodes, isPlainText, parameterText } from './parameter-values.js';

/** By byte: 1 for ASCII but zero. */
const PLAIN = Uint8Array.from({ length: 256 }, (_, byte) => (byte > 0 && byte < 128 ? 1 : 0));
const COUNT_BYTES = 2;
const LENGTH_BYTES = 4;

export class BoundValues {
  readonly count: number;
  /** Where they came from, when the engine can read them as they came. */
  readonly plain: BoundParameters | null;
  private read: ParameterValues | null;

  private constructor(count: number, read: ParameterValues | null, plain: BoundParameters | null) {
    this.count = count;
    this.read = read;
    this.plain = plain;
  }

  static of(values: ParameterValues): BoundValues {
    return new BoundValues(values.length, values, null);
  }

  /** `oids`: the types of the values. With `later`, texts are read on first use. */
  static ofBind(
    { parameters, parameterFormats }: BindMessage,
    oids: readonly number[],
    later: boolean,
  ): BoundValues {
    const { count, body, start, end } = parameters;
    const isText = parameterFormats.length <= 1 && parameterFormats.every((code) => code === 0);
    if (
      later &&
      isText &&
      oids.every(isPlainText) &&
      BoundValues.plainEnd(body, start, end) === end
    ) {
      return new BoundValues(count, null, parameters);
    }
    const formatOf = formatCodes(parameterFormats, count, 'parameter');
    const values = parameters
      .values()
      .map((value, index) =>
        value === null ? null : parameterText(value, formatOf[index] ?? 0, oids[index] ?? 0),
      );
    return BoundValues.of(values);
  }

  /**
   * Where values end that begin with their count at `start`: all of them printable, so that no
   * decoder has to look at them, and none beyond `end`; -1 where it is not so.
   */
  static plainEnd(bytes: Buffer, start: number, end: number): number {
    let at = start + COUNT_BYTES;
    for (let left = bytes.readUInt16BE(start); left > 0; left -= 1) {
      if (at + LENGTH_BYTES > end) {
        return -1;
      }
      const length = bytes.readInt32BE(at);
      at += LENGTH_BYTES;
      const after = at + (length === -1 ? 0 : length);
      if (length < -1 || after > end) {
        return -1;
      }
      while (at < after) {
        if (PLAIN[bytes[at] ?? 0] !== 1) {
          return -1;
        }
        at += 1;
      }
    }
    return at;
  }

  get texts(): ParameterValues {
    this.read ??= (this.plain?.values() ?? []).map((value) =>
      value === null ? null : parameterText(value, 0, 0),
    );
    return this.read;
  }

  addTo(batch: ParameterBatch): void {
    if (this.plain === null) {
      batch.add(this.texts);
    } else {
      batch.addBytes(this.plain.body, this.plain.start, this.plain.end);
    }
  }
}
