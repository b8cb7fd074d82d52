/**
 * Object mappers against a real server. Each writes rows, reads them with a condition, and
 * introspects the catalog in its own way.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import test from 'ava';

import { answerOf, portFor, program, python, skip, TOOLS } from './harness.js';

const WHEN = '2024-01-01T00:00:00.001Z';

test.serial('knex, TypeORM, Sequelize and Kysely handle rows and catalog queries', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  const modules = join(TOOLS, 'node', 'node_modules');
  if (
    !['knex', 'typeorm', 'sequelize', 'kysely'].every((name) => existsSync(join(modules, name)))
  ) {
    skip(t, 'object mappers are not installed: node scripts/setup-tests.mjs');
    return;
  }
  const args = [program('mappers.mjs'), String(port), modules];
  const columns = [
    'ts timestamp without time zone',
    's character varying',
    'v double precision',
    'l bigint',
    'n numeric',
  ];
  t.deepEqual(await answerOf(process.execPath, args), {
    knex: { rows: [{ ts: WHEN, v: 1.5 }], there: [true, false], column: true, columns },
    typeorm: {
      found: [{ ts: WHEN, s: 'typeorm', v: 2.5 }],
      columns,
      others: [[], [], [], []],
    },
    sequelize: {
      count: 1,
      rows: [{ ts: WHEN, s: 'sequelize', v: 3.5 }],
      tables: true,
      columns: columns.map((column) => {
        const [name = '', ...type] = column.split(' ');
        return `${name} ${type.join(' ').toUpperCase()}`;
      }),
      others: [[], []],
    },
    kysely: {
      rows: [{ s: 'kysely', v: 4.5 }],
      columns: ['ts timestamp', 's varchar', 'v float8', 'l int8', 'n numeric'],
    },
  });
});

test.serial('Django runs models, transactions, introspection and inspectdb', async (t) => {
  const seen = await python(t, 'django', 'psycopg');
  if (seen === null) {
    return;
  }
  t.deepEqual(seen, {
    count: 3,
    sums: [
      ['x', 3],
      ['y', 7],
    ],
    first: '2024-01-01 00:00:00.000007',
    there: true,
    columns: ['ts DateTimeField', 's CharField', 'v FloatField', 'l BigIntegerField'],
    none: [{}, {}, []],
    model: [
      'ts = models.DateTimeField()',
      's = models.CharField(blank=True, null=True)',
      'v = models.FloatField(blank=True, null=True)',
      'l = models.BigIntegerField(blank=True, null=True)',
    ],
  });
});

test.serial('peewee generates models from the catalog', async (t) => {
  const seen = await python(t, 'peewee', 'psycopg2');
  if (seen === null) {
    return;
  }
  t.deepEqual(seen, {
    count: 2,
    columns: [
      'ts timestamp without time zone',
      's character varying',
      'v double precision',
      'l bigint',
    ],
    none: [[], [], []],
  });
});
