/** Checks Arrow values before they are appended, because the engine's casts are lossy. */
import { type Data, DataType, TimeUnit, Vector } from 'apache-arrow';

import { refuse, shownValue } from './vectors.js';

/** Number of bits of the SQL types that hold integers. */
const INTEGER_BITS: Readonly<Record<string, number>> = {
  BYTE: 8,
  SHORT: 16,
  INT: 32,
  LONG: 64,
  DATE: 64,
  TIMESTAMP: 64,
  TIMESTAMP_NS: 64,
};
const LONG_LIMIT = 2n ** 63n;
/** Seconds that are not a 64-bit number of milliseconds. */
const SECONDS_LIMIT = LONG_LIMIT / 1000n;

/**
 * Throws if the column would truncate a value or store null for it. A value that the engine itself
 * refuses is not checked here.
 */
export function checkArrowValues(data: Data, sqlType: string): void {
  const { type, dictionary } = data;
  const bits = INTEGER_BITS[sqlType];
  if (dictionary !== undefined) {
    dictionary.data.forEach((values: Data) => {
      checkArrowValues(values, sqlType);
    });
  } else if (sqlType === 'CHAR' && !isText(type)) {
    throw new TypeError(`cannot convert values of type ${shownValue(type)}, expected strings`);
  } else if (DataType.isFloat(type) && bits !== undefined) {
    checkFloats(data, 2 ** (bits - 1));
  } else if (DataType.isInt(type) && isUnsignedLong(type) && bits !== undefined) {
    checkUnsigned(data);
  } else if (DataType.isTimestamp(type) && type.unit === TimeUnit.SECOND) {
    checkSeconds(data);
  }
}

function isText(type: DataType): boolean {
  return DataType.isUtf8(type) || DataType.isLargeUtf8(type) || DataType.isNull(type);
}

function isUnsignedLong({ bitWidth, isSigned }: { bitWidth: number; isSigned: boolean }): boolean {
  return bitWidth === 64 && !isSigned;
}

/** NaN becomes null. `limit` is the smallest positive number that the column cannot represent. */
function checkFloats(data: Data, limit: number): void {
  for (const value of new Vector([data]) as Iterable<number | null>) {
    const isExact = Number.isInteger(value) && Number(value) >= -limit && Number(value) < limit;
    if (value !== null && !Number.isNaN(value) && !isExact) {
      refuse(value, `an integer of ${Math.log2(limit) + 1} bits`);
    }
  }
}

function checkUnsigned(data: Data): void {
  for (const value of new Vector([data]) as Iterable<bigint | null>) {
    if (value !== null && value >= LONG_LIMIT) {
      refuse(value, 'a value within 64 bits');
    }
  }
}

/** Reads the stored integers, because the vector returns them as floating-point milliseconds. */
function checkSeconds(data: Data): void {
  (data.values as BigInt64Array).forEach((value, row) => {
    const isTooLarge = value > SECONDS_LIMIT || value < -SECONDS_LIMIT;
    if (isTooLarge && data.getValid(row)) {
      refuse(value, `a number of seconds within ±${SECONDS_LIMIT}`);
    }
  });
}
