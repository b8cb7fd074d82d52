/**
 * COPY jobs without an engine: scheduling, cancellation, shutdown; partition names; free disk
 * space.
 */
import { tmpdir } from 'node:os';

import test from 'ava';

import { Jobs, type Work } from '../../ts/copy/jobs.js';
import { partitionAt } from '../../ts/copy/partitions.js';
import { FreeSpace } from '../../ts/ingest/bytes/free-space.js';
import { DatabaseError } from '../../ts/session/index.js';

/** Work that runs until it is stopped. */
class BlockedWork implements Work {
  readonly name = 'held';
  readonly target: string;
  readonly journal: string[] = [];
  end: (error?: Error) => void = () => undefined;

  constructor(target: string) {
    this.target = target;
  }

  announce(): Promise<void> {
    this.journal.push('announced');
    return Promise.resolve();
  }

  async run(_id: string, signal: AbortSignal): Promise<void> {
    this.journal.push('began');
    await new Promise<void>((resolve, reject) => {
      this.end = (error) => {
        if (error === undefined) {
          resolve();
        } else {
          reject(error);
        }
      };
      signal.addEventListener('abort', () => {
        reject(new Error('aborted'));
      });
    });
    this.journal.push('did');
  }

  failed(_id: string, how: string, message: string): Promise<void> {
    this.journal.push(`${how}: ${message}`);
    return Promise.resolve();
  }
}

function jobs(capacity = 10): Jobs {
  return new Jobs({ capacity, ready: Promise.resolve() });
}

const soon = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

test('two jobs run concurrently; the third starts once one of them ends', async (t) => {
  const all = jobs();
  const works = ['a', 'b', 'c'].map((target) => new BlockedWork(target));
  for (const work of works) {
    t.regex(await all.start('u', work), /^[\da-f]{16}$/);
  }
  await soon();
  t.deepEqual(
    works.map(({ journal }) => journal.length),
    [2, 2, 1],
  );
  works[0]?.end();
  await soon();
  t.deepEqual(works[0]?.journal, ['announced', 'began', 'did']);
  t.deepEqual(works[2]?.journal, ['announced', 'began']);
  await all.close();
});

test('jobs with the same target run in sequence; other jobs overtake them', async (t) => {
  const all = jobs();
  const [first, second, other] = [new BlockedWork('a'), new BlockedWork('a'), new BlockedWork('b')];
  for (const work of [first, second, other]) {
    await all.start('u', work);
  }
  await soon();
  t.is(second.journal.length, 1);
  t.is(other.journal.length, 2);
  first.end(new DatabaseError({ code: 'InvalidValue', message: 'bad', hint: 'mend it' }));
  await soon();
  t.deepEqual(first.journal, ['announced', 'began', 'failed: bad, mend it']);
  t.is(second.journal.length, 2);
  await all.close();
});

test('cancel waits for a running job to end; a cancelled queued job never starts', async (t) => {
  const all = jobs();
  const works = ['a', 'b', 'c'].map((target) => new BlockedWork(target));
  const ids: string[] = [];
  for (const work of works) {
    ids.push(await all.start('u', work));
  }
  await soon();
  t.is(await all.cancel(ids[2] ?? ''), 'cancelled');
  t.deepEqual(works[2]?.journal, ['announced', 'cancelled: cancelled by user']);
  t.is(await all.cancel(ids[0] ?? ''), 'cancelled');
  t.deepEqual(works[0]?.journal, ['announced', 'began', 'cancelled: cancelled by user']);
  works[1]?.end();
  await soon();
  t.is(await all.cancel(ids[1] ?? ''), 'finished');
  t.is(await all.cancel('00'), null);
  t.is(all.ownerOf(ids[1] ?? ''), 'u');
  t.is(all.ownerOf('00'), null);
});

test('the limit on queued jobs is enforced, and shutdown refuses new jobs', async (t) => {
  const all = jobs(1);
  const works = ['a', 'b', 'c', 'd'].map((target) => new BlockedWork(target));
  for (const work of works.slice(0, 3)) {
    await all.start('u', work);
    await soon();
  }
  const fourth = works[3] ?? new BlockedWork('d');
  const busy = await t.throwsAsync(all.start('u', fourth), { instanceOf: DatabaseError });
  t.is(busy.code, 'Busy');
  await all.close();
  for (const work of works.slice(0, 3)) {
    t.is(work.journal.at(-1), 'cancelled: the server is shutting down');
  }
  const closed = await t.throwsAsync(all.start('u', fourth), { instanceOf: DatabaseError });
  t.is(closed.code, 'Closed');
});

test('a job that cannot be logged is not started', async (t) => {
  const all = jobs();
  const work = new BlockedWork('a');
  work.announce = () => Promise.reject(new Error('full'));
  await t.throwsAsync(all.start('u', work), { message: 'full' });
  await soon();
  t.deepEqual(work.journal, []);
  await all.close();
});

test('partition names and end timestamps are correct', (t) => {
  const of = (...from: Parameters<typeof partitionAt>): string => {
    const { name, to } = partitionAt(...from);
    return `${name} < ${to.slice(0, 'yyyy-MM-ddTHH'.length)}`;
  };
  t.is(of('HOUR', '2024-02-29T23:00:00.000000Z'), '2024-02-29T23 < 2024-03-01T00');
  t.is(of('DAY', '2024-02-29T00:00:00.000000000Z'), '2024-02-29 < 2024-03-01T00');
  t.is(of('MONTH', '2023-12-01T00:00:00.000000Z'), '2023-12 < 2024-01-01T00');
  t.is(of('YEAR', '2024-01-01T00:00:00.000000Z'), '2024 < 2025-01-01T00');
  t.is(of('WEEK', '2024-12-30T00:00:00.000000Z'), '2025-W01 < 2025-01-06T00');
  t.is(of('WEEK', '2020-12-28T00:00:00.000000Z'), '2020-W53 < 2021-01-04T00');
  t.is(of('WEEK', '2024-01-01T00:00:00.000000Z'), '2024-W01 < 2024-01-08T00');
  t.throws(() => partitionAt('DAY', 'nonsense'), { message: /cannot begin at 'nonsense'/ });
});

test('an export checks free space regularly and stops before the disk is full', async (t) => {
  const none = new FreeSpace(tmpdir(), Number.MAX_SAFE_INTEGER, 'the export directory');
  const error = await t.throwsAsync(none.check(1), { instanceOf: DatabaseError });
  t.is(error.code, 'DiskFull');
  await none.check(1024);
  await t.throwsAsync(none.check(64 * 1024 * 1024), { instanceOf: DatabaseError });
  await t.notThrowsAsync(new FreeSpace(tmpdir(), 1, 'the export directory').check(1));
});
