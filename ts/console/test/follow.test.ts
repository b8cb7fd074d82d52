import test from 'ava';
import type { AnswerHead, Row } from '../src/api/answer.js';
import { Follower } from '../src/follow/follower.js';
import { slideOf } from '../src/follow/slide.js';
import { lastRows, type FollowSource } from '../src/follow/source.js';

function rowsOf(from: number, to: number): Row[] {
  return Array.from({ length: to - from }, (_, at) => [from + at, `row ${from + at}`]);
}

test('a moving window drops its first rows and gets new rows', (t) => {
  t.deepEqual(slideOf([], []), { dropped: 0, fresh: 0, isGap: false });
  t.deepEqual(slideOf([], rowsOf(0, 3)), { dropped: 0, fresh: 3, isGap: false });
  t.deepEqual(slideOf(rowsOf(0, 3), rowsOf(0, 3)), { dropped: 0, fresh: 0, isGap: false });
  t.deepEqual(slideOf(rowsOf(0, 3), rowsOf(0, 5)), { dropped: 0, fresh: 2, isGap: false });
  t.deepEqual(slideOf(rowsOf(0, 10), rowsOf(4, 14)), { dropped: 4, fresh: 4, isGap: false });
  t.deepEqual(slideOf(rowsOf(0, 10), rowsOf(9, 19)), { dropped: 9, fresh: 9, isGap: false });
});

test('a gap is shown if all previous rows have disappeared', (t) => {
  t.deepEqual(slideOf(rowsOf(0, 10), rowsOf(20, 30)), { dropped: 10, fresh: 10, isGap: true });
  t.deepEqual(slideOf(rowsOf(0, 10), []), { dropped: 10, fresh: 0, isGap: true });
});

test('a changed first row does not count as a gap', (t) => {
  const changed: Row[] = [[4, 'changed'], ...rowsOf(5, 12)];
  t.deepEqual(slideOf(rowsOf(0, 10), changed), { dropped: 4, fresh: 2, isGap: false });
});

test('duplicate rows are distinguished by the rows after them', (t) => {
  const same: Row = [1, 'same'];
  const before = [same, [2, 'a'], same, [3, 'b'], [4, 'c']] satisfies Row[];
  const after = [same, [3, 'b'], [4, 'c'], [5, 'd'], [6, 'e']] satisfies Row[];
  t.deepEqual(slideOf(before, after), { dropped: 2, fresh: 2, isGap: false });
});

const HEAD: AnswerHead = {
  query: '',
  columns: [
    { name: 'x', type: 'LONG' },
    { name: 's', type: 'STRING' },
  ],
  timestamp: -1,
};

/** Creates a follower whose source is controlled by the test. */
function followed(): {
  readonly follower: Follower;
  readonly give: (rows: Row[], head?: AnswerHead) => void;
  readonly fail: (isLost: boolean) => void;
  readonly open: () => number;
} {
  let listener: Parameters<FollowSource['subscribe']>[0] | undefined;
  let open = 0;
  const source: FollowSource = {
    subscribe: (given) => {
      listener = given;
      open += 1;
      return { close: () => (open -= 1) };
    },
  };
  const follower = new Follower({ table: 't', rows: 10 }, source);
  return {
    follower,
    give: (rows, head = HEAD) => listener?.rows(head, rows),
    fail: (isLost) => listener?.failed('no answer', isLost, 1000),
    open: () => open,
  };
}

function shown({ follower }: ReturnType<typeof followed>): unknown[] {
  return (follower.result()?.rows ?? []).map(([x]) => x);
}

test('rows appear as they arrive and keep their numbers', (t) => {
  const one = followed();
  one.follower.start();
  t.is(one.follower.feed().state, 'starting');
  one.give(rowsOf(0, 10));
  const first = one.follower.result();
  one.give(rowsOf(4, 14));
  t.is(one.follower.result(), first, 'the grid keeps its result and its scroll position');
  t.deepEqual(shown(one), [4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
  t.is(first?.numberOf(0), 5);
  t.deepEqual(one.follower.unseen(), { count: 0, isLowerBound: false });
  t.is(one.follower.feed().state, 'live');
});

test('displayed rows stay while the user scrolls back; new rows are counted', (t) => {
  const one = followed();
  one.follower.start();
  one.give(rowsOf(0, 10));
  one.follower.hold(true);
  one.give(rowsOf(3, 13));
  one.give(rowsOf(5, 15));
  t.deepEqual(shown(one), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  t.deepEqual(one.follower.unseen(), { count: 5, isLowerBound: false });
  one.give(rowsOf(50, 60));
  t.deepEqual(one.follower.unseen(), { count: 15, isLowerBound: true });
  one.follower.hold(false);
  t.deepEqual(shown(one)[0], 50);
  t.deepEqual(one.follower.unseen(), { count: 0, isLowerBound: false });
});

test('a paused follower requests nothing; changed columns start a new result', (t) => {
  const one = followed();
  one.follower.start();
  one.follower.start();
  t.is(one.open(), 1);
  one.give(rowsOf(0, 3));
  one.follower.pause();
  t.is(one.open(), 0);
  one.follower.start();
  t.is(one.open(), 0, 'it stays paused when the tab becomes active');
  one.follower.resume();
  t.is(one.open(), 1);
  const first = one.follower.result();
  one.follower.hold(true);
  one.give([[1]], { ...HEAD, columns: [{ name: 'x', type: 'LONG' }] });
  t.not(one.follower.result(), first);
  t.deepEqual(shown(one), [1]);
});

test('a failure is reported, and the rows stay visible', (t) => {
  const one = followed();
  one.follower.start();
  one.give(rowsOf(0, 3));
  one.fail(true);
  t.like(one.follower.feed(), { state: 'lost', message: 'no answer' });
  t.is(shown(one).length, 3);
  one.fail(false);
  t.is(one.follower.feed().state, 'refused');
  one.give(rowsOf(0, 4));
  t.is(one.follower.feed().state, 'live');
});

test('the query for the last rows quotes unusual table names', (t) => {
  t.is(lastRows({ table: 'trades', rows: 500 }), 'SELECT * FROM trades LIMIT -500');
  t.is(lastRows({ table: 'a "b"', rows: 5 }), 'SELECT * FROM "a ""b""" LIMIT -5');
});
