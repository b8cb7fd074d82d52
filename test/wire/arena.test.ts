/**
 * The arena written by the Rust tests (`crates/wire/tests/every_type.rs`), read with arrow-js-ffi:
 * one row of values and one of nulls, for every type.
 */
import { readFileSync } from 'node:fs';

import type { RecordBatch } from 'apache-arrow';
import { parseRecordBatch } from 'arrow-js-ffi';
import test from 'ava';

const ARRAY_POINTER_AT = 4;
const SCHEMA_POINTER_AT = 8;
const ROWS_AT = 12;
const BYTES_AT = 16;

type Parse = (arena: ArrayBuffer, array: number, schema: number, copy: boolean) => unknown;

/** The package's declarations do not resolve under NodeNext. */
const parse = parseRecordBatch as unknown as Parse;

function readArena(): { arena: ArrayBuffer; batch: RecordBatch; header: DataView } {
  const file = readFileSync('test/wire/every-type.arena');
  const arena = new ArrayBuffer(file.length);
  new Uint8Array(arena).set(file);
  const header = new DataView(arena);
  const array = header.getUint32(ARRAY_POINTER_AT, true);
  const schema = header.getUint32(SCHEMA_POINTER_AT, true);
  const batch = parse(arena, array, schema, false) as RecordBatch;
  return { arena, batch, header };
}

test('the arena header contains the row count and size', (t) => {
  const { arena, batch, header } = readArena();
  t.is(header.getUint32(0, true), 0);
  t.is(header.getUint32(ROWS_AT, true), batch.numRows);
  t.is(header.getUint32(BYTES_AT, true), arena.byteLength);
});

test('values of every type are read from the arena without copying', (t) => {
  const { arena, batch } = readArena();
  const value = (name: string): unknown => batch.getChild(name)?.get(0) as unknown;
  t.is(value('boolean'), true);
  t.is(value('byte'), -1);
  t.is(value('short'), 2);
  t.is(value('char'), 'c');
  t.is(value('int'), 3);
  t.is(value('long'), 4n);
  t.is(value('float'), 1.5);
  t.is(value('double'), 1e10);
  t.is(value('symbol'), 'sy"m');
  t.is(value('string'), 'a\nb\\');
  t.is(value('varchar'), '');
  t.is(value('ipv4'), '1.2.3.4');
  t.is(value('geohash'), '1010101');
  t.is(value('decimal'), '-12.34');
  t.is(value('wide'), '123450000.678');
  t.deepEqual([...(value('binary') as Uint8Array)], [1, 2]);
  t.is(
    Buffer.from(value('uuid') as Uint8Array).toString('hex'),
    '00112233445566778899aabbccddeeff',
  );
  t.deepEqual([...(value('doubles') as Iterable<number | null>)], [1, null, 3.5]);
  for (const [name, timestamp] of [
    ['date', 1_704_164_645_678n],
    ['timestamp', 1_704_164_645_678_901n],
    ['timestamp_ns', 1_704_164_645_678_901_234n],
  ] as const) {
    const values = batch.getChild(name)?.data[0]?.values as BigInt64Array;
    t.is(values[0], timestamp, name);
  }
  t.is(value('interval'), "('1970-01-01T00:00:00.000Z', '1970-01-02T00:00:00.000Z')");
  for (const name of ['double', 'timestamp', 'int', 'symbol']) {
    t.is((batch.getChild(name)?.data[0]?.values as Float64Array).buffer, arena, name);
  }
});

test('null values are read as null, and columns have type names', (t) => {
  const { batch } = readArena();
  for (const field of batch.schema.fields) {
    const neverNull = ['boolean', 'byte', 'short'].includes(field.name);
    t.is(batch.getChild(field.name)?.isValid(1) ?? true, neverNull, field.name);
    t.truthy(field.metadata.get('tidemark.type'), field.name);
  }
  t.is(
    batch.schema.fields.find(({ name }) => name === 'decimal')?.metadata.get('tidemark.type'),
    'DECIMAL(9,2)',
  );
});
