import test from 'ava';
import type { Row } from '../../src/api/answer.js';
import {
  elementHeight,
  isAtEdge,
  MAX_HEIGHT,
  pixelAt,
  scrollPositionOf,
} from '../../src/grid/tall.js';
import { MAX_WINDOW_ROWS, WINDOW_ROWS, Windows } from '../../src/model/windows.js';
import { readsOf, variesBy } from '../../src/sql/repeatable.js';

const TALL = { full: 2_600_000_000, view: 500 };

test('all rows can be reached beyond the maximum element height', (t) => {
  t.is(elementHeight(TALL.full), MAX_HEIGHT);
  t.is(elementHeight(1000), 1000);
  const start = scrollPositionOf(0, TALL);
  t.deepEqual(start, { top: 0, shift: 0 });
  const end = scrollPositionOf(TALL.full, TALL);
  t.is(end.top, MAX_HEIGHT - TALL.view);
  t.is(end.top + end.shift, TALL.full - TALL.view);
  // Dragging the scroll bar moves to the same fraction of all rows.
  const middle = (MAX_HEIGHT - TALL.view) / 2;
  t.is(pixelAt(middle, start, TALL), (TALL.full - TALL.view) / 2);
  t.is(pixelAt(MAX_HEIGHT - TALL.view, start, TALL), TALL.full - TALL.view);
  t.is(pixelAt(0, end, TALL), 0);
  // A wheel event scrolls by exactly the number of pixels that it reports.
  const position = scrollPositionOf(1_000_000_000, TALL);
  t.is(pixelAt(position.top + 120, position, TALL), 1_000_000_120);
  t.is(pixelAt(position.top - 120, position, TALL), 999_999_880);
  // Because the element is shifted, its end may be reached before the end of the rows.
  t.true(isAtEdge(0, 5000, TALL));
  t.false(isAtEdge(0, 0, TALL));
  t.true(isAtEdge(MAX_HEIGHT - TALL.view, 5000, TALL));
  t.false(isAtEdge(MAX_HEIGHT - TALL.view, TALL.full - TALL.view, TALL));
});

test('rows that fit the maximum element height are scrolled without offset', (t) => {
  const small = { full: 10_000, view: 500 };
  t.deepEqual(scrollPositionOf(3000, small), { top: 3000, shift: 0 });
  t.is(pixelAt(9000, scrollPositionOf(0, small), small), 9000);
  t.false(isAtEdge(0, 0, small));
});

interface RequestedRange {
  readonly from: number;
  readonly count: number;
}

function source(requested: RequestedRange[], fails: () => boolean = () => false) {
  return {
    isLoaded: (position: number) => position < 100_000,
    read: (from: number, count: number): Promise<readonly Row[]> => {
      requested.push({ from, count });
      return fails()
        ? Promise.reject(new Error('gone'))
        : Promise.resolve(Array.from({ length: count }, (_, at) => [from + at]));
    },
  };
}

const rest = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 90));

test('visible rows and their neighbours are loaded once', async (t) => {
  const requested: RequestedRange[] = [];
  const windows = new Windows(10_000_000, 3, source(requested));
  windows.setVisible(50, 90);
  await rest();
  t.deepEqual(requested, [], 'the first rows are already loaded');
  for (let at = 500_000; at < 600_000; at += 10_000) {
    windows.setVisible(at, at + 40);
  }
  await rest();
  t.deepEqual(
    requested,
    [{ from: 589_000, count: 3 * WINDOW_ROWS }],
    'rows are requested once scrolling stops',
  );
  t.deepEqual(windows.row(590_039), [590_039]);
  t.is(windows.row(600_000), undefined);
  windows.setVisible(590_960, 591_010);
  await rest();
  t.is(requested.length, 1);
  windows.setVisible(9_999_960, 10_000_000);
  await rest();
  t.deepEqual(requested[1], { from: 9_998_000, count: 2000 });
  t.deepEqual(windows.row(9_999_999), [9_999_999]);
  windows.setVisible(99_990, 100_020);
  await rest();
  t.deepEqual(requested[2], { from: 100_000, count: 2000 });
});

test('the row cache is limited and evicts the least recently viewed rows', async (t) => {
  const windows = new Windows(10_000_000, 3, source([]));
  for (let at = 1_000_000; at < 1_200_000; at += 20_000) {
    windows.setVisible(at, at + 20_000);
    await rest();
  }
  t.true(windows.size <= MAX_WINDOW_ROWS, String(windows.size));
  t.true(windows.size > MAX_WINDOW_ROWS - 2 * WINDOW_ROWS);
  t.is(windows.row(1_000_000), undefined);
  t.truthy(windows.row(1_198_000));
  const wide = new Windows(10_000_000, 500, source([]));
  for (let at = 1_000_000; at < 1_012_000; at += 3000) {
    wide.setVisible(at, at + 10);
    await rest();
  }
  t.true(wide.size <= 6000, String(wide.size));
});

test('a failed load is reported, and retrying loads the rows', async (t) => {
  let isGone = true;
  const windows = new Windows(
    10_000_000,
    1,
    source([], () => isGone),
  );
  windows.setVisible(5_000_000, 5_000_010);
  await rest();
  t.is(windows.failure(), 'gone');
  isGone = false;
  windows.retry();
  await rest();
  t.is(windows.failure(), undefined);
  t.deepEqual(windows.row(5_000_000), [5_000_000]);
});

test('queries that return the same rows each time are recognized', (t) => {
  const reads = readsOf(
    'WITH a AS (SELECT * FROM T1) SELECT *, abs(v) FROM a WHERE v > 1 ORDER BY v',
  );
  t.deepEqual(reads, { tables: ['t1'], functions: ['abs'], overRows: [] });
  for (const [query, why] of [
    ['SELECT * FROM a JOIN b ON a.x = b.x', /^Joined/],
    ['SELECT * FROM a UNION ALL SELECT * FROM b', /several/],
    ['SELECT s, sum(v) FROM a GROUP BY s', /^Grouped/],
    ['SELECT ts, sum(v) FROM a SAMPLE BY 1h', /^Grouped/],
    ['SELECT * FROM a LATEST ON ts PARTITION BY s', /^Grouped/],
    ['SELECT DISTINCT s FROM a', /^Distinct/],
    ['SELECT * FROM (SELECT DISTINCT s FROM a) ORDER BY s', /^Distinct/],
    ['INSERT INTO a VALUES (1)', /not a query/],
    ['SHOW TABLES', /^(The statement is not a query|Results of SHOW)/],
    ['SELECT FROM', /cannot be parsed/],
  ] as const) {
    const found = readsOf(query);
    t.regex(typeof found === 'string' ? found : '', why, query);
  }
});

test('volatile, aggregate and unknown functions are reported as unrepeatable', (t) => {
  const known = [
    { name: 'abs', type: 'STANDARD', varies: false },
    { name: 'now', type: 'STANDARD', varies: true },
    { name: 'sum', type: 'GROUP_BY', varies: false },
    { name: 'long_sequence', type: 'CURSOR', varies: true },
    { name: 'tables', type: 'CURSOR', varies: true },
  ];
  const why = (query: string): string | undefined => {
    const reads = readsOf(query);
    return typeof reads === 'string' ? reads : variesBy(reads, known);
  };
  t.is(why('SELECT abs(x) FROM long_sequence(5)'), undefined);
  t.is(why('SELECT x, sum(x) OVER (ORDER BY x) FROM t'), undefined);
  t.regex(why('SELECT sum(x) FROM t') ?? '', /^Grouped/);
  t.regex(why('SELECT x FROM t WHERE ts > now()') ?? '', /^now\(\)/);
  t.regex(why('SELECT * FROM tables()') ?? '', /^tables\(\)/);
  t.regex(why('SELECT mine(x) FROM t') ?? '', /^mine\(\)/);
});
