/** Reads the arenas that transfer record batches between Rust and JavaScript. */
import type { RecordBatch } from 'apache-arrow';
import { parseRecordBatch } from 'arrow-js-ffi';

/** Typed here because the package's declarations refer to files that Node cannot resolve. */
const readBatch = parseRecordBatch as (
  buffer: ArrayBuffer,
  array: number,
  schema: number,
  copy: boolean,
) => RecordBatch;

/**
 * Offsets in the arena's header, whose fields are 32-bit little-endian numbers.
 * `crates/wire/src/arena.rs` writes them.
 */
const ARRAY_POINTER = 4;
const SCHEMA_POINTER = 8;
const HEADER_BYTES = 64;

/**
 * Returns the record batch in an arena. Its columns are views of a single copy of the arena,
 * aligned to 64 bytes.
 */
export function arenaToBatch(arena: Uint8Array): RecordBatch {
  if (arena.byteLength < HEADER_BYTES) {
    throw new RangeError(`arena is too small [bytes=${arena.byteLength}, least=${HEADER_BYTES}]`);
  }
  // A Node buffer may start anywhere in its ArrayBuffer; pointers are relative to the arena's
  // start.
  const bytes = new Uint8Array(arena);
  const header = new DataView(bytes.buffer);
  const array = header.getUint32(ARRAY_POINTER, true);
  const schema = header.getUint32(SCHEMA_POINTER, true);
  return readBatch(bytes.buffer, array, schema, false);
}
