/** The list of functions and the document generated from it. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import test from 'ava';
import { format, resolveConfig } from 'prettier';

import { execute } from '../golden/http-client.js';
import { startTestServer } from '../golden/server.js';
import { functionsDocument } from './functions/document.js';
import { PEER_ABSENT, PEER_FORMS, PEER_NAMES } from './functions/names.js';

const DOCUMENT = fileURLToPath(new URL('../../../docs/functions.md', import.meta.url));

test('every example runs and returns the documented result', async (t) => {
  const options = (await resolveConfig(DOCUMENT)) ?? {};
  const current = await format(await functionsDocument(), { ...options, parser: 'markdown' });
  t.is(readFileSync(DOCUMENT, 'utf8'), current, 'run `npm run generate`');
});

test('every QuestDB function name is known', async (t) => {
  const server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  try {
    const { body } = await execute(server.url, 'SELECT DISTINCT name FROM functions()');
    const { dataset } = JSON.parse(body.toString('utf8')) as { dataset: [string][] };
    const known = new Set(dataset.map(([name]) => name.toLowerCase()));
    t.deepEqual(
      PEER_NAMES.filter((name) => !known.has(name.toLowerCase())),
      [],
    );
    t.deepEqual(
      Object.keys(PEER_ABSENT).filter((name) => known.has(name)),
      [],
      'listed as missing, but exist',
    );
    for (const [name, statement] of Object.entries(PEER_FORMS)) {
      t.is((await execute(server.url, statement)).status, 200, name);
    }
  } finally {
    await server.stop();
  }
});

test('numbers are stored in the low bits of a LONG256', async (t) => {
  const server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  try {
    for (const [value, shown] of [
      ['to_long256(1, 2, 0, -1)', `0xffffffffffffffff${'0'.repeat(31)}2${'0'.repeat(15)}1`],
      ['to_long256(1, NULL, 0, 0)', ''],
      ['CAST(1000 AS LONG256)', '0x03e8'],
      ['CAST(-5 AS LONG256)', '0xfffffffffffffffb'],
      ['CAST(NULL::INT AS LONG256)', ''],
      ['(x / 2.0 + 255)::LONG256', '0xff'],
      ['x::TIMESTAMP::LONG256', '0x01'],
      ['TRUE::LONG256', '0x01'],
    ] as const) {
      const { body } = await execute(server.url, `SELECT ${value} FROM long_sequence(1)`);
      const { dataset } = JSON.parse(body.toString('utf8')) as { dataset?: [string][] };
      t.deepEqual(dataset, [[shown]], value);
    }
  } finally {
    await server.stop();
  }
});

test('a misspelt function name is refused with the closest name', async (t) => {
  const server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  try {
    for (const [text, near] of [
      ["SELECT lenght('abc')", 'length'],
      ['SELECT array_aggg(1.0)', 'array_agg'],
      ['SELECT row_numbr() FROM long_sequence(1)', 'row_number'],
      ['SELECT quite_another()', null],
    ] as const) {
      const { body } = await execute(server.url, text);
      const { error, position } = JSON.parse(body.toString('utf8')) as {
        error: string;
        position: number;
      };
      t.is(position, 7, text);
      t.true(error.startsWith('unknown function name: '), error);
      t.is(/did you mean '(\w+)'\?$/.exec(error)?.[1] ?? null, near, error);
    }
  } finally {
    await server.stop();
  }
});

test('an invalid argument is refused with its position', async (t) => {
  const server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  try {
    for (const [text, message, position] of [
      ['SELECT make_geohash(181, 52.5, 20)', 'longitude must be in [-180.0..180.0] range', 20],
      ['SELECT make_geohash(13.4, 52.5, 61)', 'precision must be in [1..60] range', 32],
      [
        "SELECT json_extract('{}', x::varchar) FROM long_sequence(1)",
        'constant or bind variable expected',
        26,
      ],
      [
        'SELECT percentile(x, 2) FROM long_sequence(1)',
        'percentile must be between 0.0 and 1.0',
        7,
      ],
      ['SELECT approx_median(x, 9) FROM long_sequence(1)', 'precision must be between 0 and 5', 24],
      ["SELECT rnd_symbol_weighted('a', -1)", 'weight must be non-negative', 32],
      ['SELECT 1.5m / 0m', "'/' operation failed: Division by zero", 12],
      [
        'SELECT 1.5m + 1.5',
        'there is no matching operator `+` with the argument types: DECIMAL(2,1) + DOUBLE',
        12,
      ],
      [
        'SELECT 1.255::decimal(5, 2)',
        "decimal '1.255' has 3 decimal places but scale is limited to 2",
        7,
      ],
      ['SELECT 123456::decimal(5, 2)', 'inconvertible value: 123456 [INT -> DECIMAL(5,2)]', 7],
      [
        'SELECT upper(1)',
        'there is no matching function `upper` with the argument types: (INT)',
        7,
      ],
      [
        'SELECT ARRAY[1.0, 2.0] + ARRAY[1.0, 2.0, 3.0]',
        'arrays have incompatible shapes [leftShape=[2], rightShape=[3]]',
        23,
      ],
    ] as const) {
      const { body } = await execute(server.url, text);
      const answer = JSON.parse(body.toString('utf8')) as { error: string; position: number };
      t.is(answer.error, message, text);
      t.is(answer.position, position, text);
    }
  } finally {
    await server.stop();
  }
});
