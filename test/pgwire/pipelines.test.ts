/**
 * Pipelines of INSERTs. However their bytes are split, and whether or not a message repeats the
 * previous one, responses arrive in order and a statement's rows are committed together.
 */
import test from 'ava';
import fc from 'fast-check';

import { suiteSeed } from '../seed.js';
import { start } from './harness.js';
import { clientMessage, RawClient } from './raw-client.js';

const seed = suiteSeed();

/** A client's next action: it sends a row for one of two statements, or a different message. */
interface Step {
  readonly kind: 'row' | 'described' | 'limited' | 'bound';
  readonly statement: 'i' | 'j';
  readonly value: string | null;
  /** Whether Bind has a format for each value. */
  readonly formats: boolean;
}

const steps = fc.array(
  fc.record({
    kind: fc.constantFrom<Step['kind'][]>(
      'row',
      'row',
      'row',
      'row',
      'described',
      'limited',
      'bound',
    ),
    statement: fc.constantFrom<Step['statement'][]>('i', 'i', 'i', 'j'),
    value: fc.constantFrom<Step['value'][]>('a', 'bc', '', null, 'é', 'x'.repeat(70), 'a\tb'),
    formats: fc.integer({ max: 9, min: 0 }).map((number) => number === 0),
  }),
  { maxLength: 12, minLength: 1 },
);

function messages({ kind, statement, value, formats }: Step): Buffer {
  const bytes = value === null ? null : Buffer.from(value);
  const cell = bytes === null ? [-1] : [bytes.length, bytes];
  const codes: [number][] = formats ? [[1], [0]] : [[0]];
  const bind = clientMessage('B', '', statement, ...codes, [1], ...cell, [0]);
  const describe = clientMessage('D', Buffer.from('P'), '');
  const execute = clientMessage('E', '', kind === 'limited' ? 3 : 0);
  const parts = {
    row: [bind, execute],
    described: [bind, describe, execute],
    limited: [bind, execute],
    bound: [bind],
  };
  return Buffer.concat(parts[kind]);
}

const ANSWERS = { row: '2C', described: '2nC', limited: '2C', bound: '2' };

/** Returns the batches: consecutive rows for the same statement. */
function batches(all: readonly Step[]): string[] {
  const found: { statement: string; rows: string[] }[] = [];
  for (const { kind, statement, value } of all) {
    const last = found.at(-1);
    if (kind === 'bound') {
      continue;
    }
    if (last?.statement === statement) {
      last.rows.push(value ?? '');
    } else {
      found.push({ statement, rows: [value ?? ''] });
    }
  }
  return found.map(({ rows }) => rows.join(';'));
}

test('pipelines get the same answers and commits however they are split', async (t) => {
  const { port, server, engine } = await start();
  const client = await RawClient.login(port);
  const parse = (name: string): Buffer => clientMessage('P', name, `insert $1 ${name}`, [0]);
  client.send(parse('i'), parse('j'), clientMessage('S'));
  t.is(await client.types(), '11Z');
  const cuts = fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 6 });
  const property = fc.asyncProperty(steps, cuts, async (all, sizes) => {
    const bytes = Buffer.concat([...all.map(messages), clientMessage('S')]);
    let at = 0;
    for (const size of sizes) {
      client.send(bytes.subarray(at, at + size));
      at += size;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    client.send(bytes.subarray(at));
    t.is(await client.types(), `${all.map(({ kind }) => ANSWERS[kind]).join('')}Z`);
    t.deepEqual(engine.journal.committed.splice(0), batches(all));
  });
  await fc.assert(property, { seed, numRuns: 200 });
  client.close();
  await server.close();
});

test('a malformed message is reported after the preceding Bind is answered', async (t) => {
  const { port, server, engine } = await start();
  const client = await RawClient.login(port);
  const row = (value: string): Buffer[] => [
    clientMessage('B', '', 'i', [0], [1], value.length, Buffer.from(value), [0]),
    clientMessage('E', '', 0),
  ];
  client.send(clientMessage('P', 'i', 'insert $1', [0]), ...row('a'), ...row('b'));
  client.send(row('c')[0] ?? Buffer.alloc(0), clientMessage('D', Buffer.from('?'), ''));
  client.send(...row('d'), clientMessage('S'));
  t.is(await client.types(), '12C2C2EZ');
  t.deepEqual(engine.journal.committed, ['a;b']);
  client.close();
  await server.close();
});
