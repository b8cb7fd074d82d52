import test from 'ava';
import { moveCell } from '../../src/grid/keys.js';
import { columnWindow, edgesOf, rowWindow, scrollInto } from '../../src/grid/window.js';

test('only visible rows and a small margin are rendered', (t) => {
  t.deepEqual(rowWindow(0, 260, 26, 100_000, 5), { first: 0, end: 15 });
  t.deepEqual(rowWindow(26_000, 260, 26, 100_000, 5), { first: 995, end: 1015 });
  t.deepEqual(rowWindow(2_599_740, 260, 26, 100_000, 5), { first: 99_985, end: 100_000 });
  t.deepEqual(rowWindow(0, 260, 26, 0, 5), { first: 0, end: 0 });
  t.deepEqual(rowWindow(5000, 260, 26, 3, 5), { first: 3, end: 3 });
});

test('only columns in view are rendered', (t) => {
  const edges = edgesOf([100, 50, 200, 80]);
  t.deepEqual(edges, [0, 100, 150, 350, 430]);
  t.deepEqual(columnWindow(0, 120, edges), { first: 0, end: 2 });
  t.deepEqual(columnWindow(149, 10, edges), { first: 1, end: 3 });
  t.deepEqual(columnWindow(400, 500, edges), { first: 3, end: 4 });
  t.deepEqual(columnWindow(0, 100, [0]), { first: 0, end: 0 });
});

test('scrolling to a cell moves as little as possible', (t) => {
  t.is(scrollInto(100, 50, 110, 120), 100);
  t.is(scrollInto(100, 50, 90, 100), 90);
  t.is(scrollInto(100, 50, 160, 170), 120);
});

test('cursor keys stay within the grid', (t) => {
  const bounds = { rows: 100, columns: 5, page: 10 };
  const press = (key: string, ctrlKey = false): unknown =>
    moveCell({ row: 50, column: 2 }, { key, ctrlKey, metaKey: false }, bounds);
  t.deepEqual(press('ArrowDown'), { row: 51, column: 2 });
  t.deepEqual(press('ArrowDown', true), { row: 99, column: 2 });
  t.deepEqual(press('PageUp'), { row: 40, column: 2 });
  t.deepEqual(press('Home'), { row: 50, column: 0 });
  t.deepEqual(press('End', true), { row: 99, column: 4 });
  t.is(press('a'), undefined);
  const empty = { rows: 0, columns: 0, page: 1 };
  const key = { key: 'ArrowDown', ctrlKey: false, metaKey: false };
  t.deepEqual(moveCell({ row: 0, column: 0 }, key, empty), { row: 0, column: 0 });
});
