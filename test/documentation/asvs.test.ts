/** The ASVS page lists each requirement of level 1, and names an existing test for each claim. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import test from 'ava';

const page = fileURLToPath(new URL('../../../docs/asvs.md', import.meta.url));
const STATUS = ['met', 'partly', 'not met', 'not applicable'];
/** The requirements of level 1 in ASVS 5.0.0, by section. */
const LEVEL_1: Readonly<Record<string, readonly number[]>> = {
  '1.2': [1, 2, 3, 4, 5],
  '1.3': [1, 2],
  '1.5': [1],
  '2.1': [1],
  '2.2': [1, 2],
  '2.3': [1],
  '3.2': [1, 2],
  '3.3': [1],
  '3.4': [1, 2],
  '3.5': [1, 2, 3],
  '4.1': [1],
  '4.4': [1],
  '5.2': [1, 2],
  '5.3': [1, 2],
  '6.1': [1],
  '6.2': [1, 2, 3, 4, 5, 6, 7, 8],
  '6.3': [1, 2],
  '6.4': [1, 2],
  '7.2': [1, 2, 3, 4],
  '7.4': [1, 2],
  '8.1': [1],
  '8.2': [1, 2],
  '8.3': [1],
  '9.1': [1, 2, 3],
  '9.2': [1],
  '10.4': [1, 2, 3, 4, 5],
  '11.3': [1, 2],
  '11.4': [1],
  '12.1': [1],
  '12.2': [1, 2],
  '13.4': [1],
  '14.2': [1],
  '14.3': [1],
  '15.1': [1],
  '15.2': [1],
  '15.3': [1],
};

const rows = [
  ...readFileSync(page, 'utf8').matchAll(/^\| (\d+\.\d+\.\d+) \| (.*?) \| (.*) \| (.*?) \|$/gm),
].map(([, id = '', status = '', , tests = '']) => ({ id, status, tests }));

test('the page lists every level 1 requirement once and in order', (t) => {
  const expected = Object.entries(LEVEL_1).flatMap(([section, numbers]) =>
    numbers.map((number) => `${section}.${number}`),
  );
  t.deepEqual(
    rows.map(({ id }) => id),
    expected,
  );
});

test('every claim links to an existing test', (t) => {
  for (const { id, status, tests } of rows) {
    t.true(STATUS.includes(status), `${id}: ${status}`);
    const links = [...tests.matchAll(/\]\(([^)]+\.test\.ts)\)/g)].map(([, link = '']) => link);
    t.is(links.length > 0, status === 'met' || status === 'partly', id);
    t.deepEqual(
      links.filter((link) => !existsSync(join(dirname(page), link))),
      [],
      id,
    );
  }
});

test('the counts at the top match the tables', (t) => {
  const text = readFileSync(page, 'utf8');
  for (const status of STATUS) {
    const count = rows.filter((row) => row.status === status).length;
    t.true(text.includes(`| ${status} | ${count} |\n`), `${status}: ${count}`);
  }
});
