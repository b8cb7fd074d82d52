/**
 * INSERT of literal rows, which are passed to the engine as written, gives the same result as
 * inserting them cell by cell.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { DatabaseError, open } from '../../ts/index.js';
import { Random } from '../torture/harness.js';
import { suiteSeed } from '../seed.js';

/** After a WITH query, rows are parsed token by token. */
const SLOW = 'WITH q AS (SELECT 1) ';
const ROUNDS = 120;

const TYPES = [
  ...['BOOLEAN', 'BYTE', 'SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE', 'DECIMAL(10,2)', 'CHAR'],
  ...['DATE', 'TIMESTAMP', 'TIMESTAMP_NS', 'SYMBOL', 'STRING', 'VARCHAR', 'UUID', 'IPV4'],
  'LONG256',
];
/**
 * Most of these cells are valid for some type. Both parsers must reject the others in the same way.
 */
const CELLS = [
  ...['null', 'NULL', 'true', 'False', '0', '7', '-7', '+12', '1.5', '-2.25', '1e3', '3.5E-2'],
  ...['300', '70000', '5000000000', '99999999999999999999', '-128', "'a'", "''", "'it''s'"],
  ...["'é€𝄞'", "'12'", "'1.5'", "'true'", "'2026-01-02'", "'2026-01-02T03:04:05.678Z'"],
  ...["'11111111-1111-1111-1111-111111111111'", "'10.0.0.1'", "'0x01'", "'(1), (2)'"],
];

test('the literal-row and full parsers insert the same rows, with the same errors', async (t) => {
  const seed = suiteSeed();
  const random = new Random(seed);
  const root = mkdtempSync(join(tmpdir(), 'tidemark-plain-'));
  const db = await open({ root });
  t.teardown(async () => {
    await db.close();
    rmSync(root, { recursive: true, force: true });
  });
  const insert = async (table: string, head: string, rows: string): Promise<string> => {
    await db.query(`TRUNCATE TABLE ${table}`);
    const text = `${head}INSERT INTO ${table} VALUES ${rows}`;
    try {
      await db.query(text);
    } catch (error) {
      if (!(error instanceof DatabaseError)) {
        throw error;
      }
      const { code, message, start } = error;
      const at = start === undefined || start < head.length ? start : start - head.length;
      return `${code} at ${at}: ${message.replaceAll(table, 'T')}`;
    }
    return JSON.stringify((await db.table(`SELECT * FROM ${table}`)).toArray().map(String));
  };
  const seen = { rows: 0, errors: 0 };
  for (let round = 0; round < ROUNDS; round += 1) {
    const types = Array.from({ length: random.between(1, 3) }, () => random.pick(TYPES));
    const columns = types.map((type, index) => `c${index} ${type}`).join(', ');
    const fitting: (readonly string[])[] = [];
    for (const type of types) {
      fitting.push(await fittingCells(type));
    }
    for (const table of ['table_1', 'table_2']) {
      await db.query(`DROP TABLE IF EXISTS ${table}`);
      await db.query(`CREATE TABLE ${table} (${columns})`);
    }
    const isWild = random.next() < 0.3;
    const row = (): string => {
      const width = types.length + (random.next() < 0.03 ? 1 : 0);
      const cells = Array.from({ length: width }, (_, index) =>
        random.pick(isWild ? CELLS : (fitting[index] ?? CELLS)),
      );
      return `(${cells.join(random.pick([',', ', ', ' ,\n']))})`;
    };
    const rows = Array.from({ length: random.between(1, 6) }, row).join(', ');
    const plain = await insert('table_1', '', rows);
    t.is(plain, await insert('table_2', SLOW, rows), `${columns}: ${rows}`);
    seen[plain.startsWith('[') ? 'rows' : 'errors'] += 1;
  }
  t.true(seen.rows > ROUNDS / 4 && seen.errors > ROUNDS / 20, JSON.stringify(seen));

  /** Returns the cells that a column of a type accepts. */
  async function fittingCells(type: string): Promise<readonly string[]> {
    const known = fits.get(type);
    if (known !== undefined) {
      return known;
    }
    await db.query('DROP TABLE IF EXISTS one');
    await db.query(`CREATE TABLE one (c ${type})`);
    const cells: string[] = [];
    for (const cell of CELLS) {
      if ((await insert('one', SLOW, `(${cell})`)).startsWith('[')) {
        cells.push(cell);
      }
    }
    fits.set(type, cells);
    return cells;
  }
});

const fits = new Map<string, readonly string[]>();
