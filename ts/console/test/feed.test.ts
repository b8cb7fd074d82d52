import test, { type ExecutionContext } from 'ava';
import type { AnswerHead, Row } from '../src/api/answer.js';
import { SqlError, Unreachable } from '../src/api/client.js';
import { EventReader, type ServerEvent } from '../src/api/events.js';
import { feedSource, type FeedServer } from '../src/follow/feed.js';
import { LastRows } from '../src/follow/last-rows.js';
import { troubleText } from '../src/follow/source.js';

test('events are parsed from chunks of any size', (t) => {
  const text =
    ': hello\n\nevent: rows\nid: 12-3\ndata: {"a":"ö"}\n\n' +
    'event: position\r\nid:13\r\ndata: {}\r\n\r\ndata: one\ndata: two\nretry: 5\n\n:\n\n';
  const whole: ServerEvent[] = [
    { name: 'comment', id: undefined, data: 'hello' },
    { name: 'rows', id: '12-3', data: '{"a":"ö"}' },
    { name: 'position', id: '13', data: '{}' },
    { name: 'message', id: undefined, data: 'one\ntwo' },
    { name: 'comment', id: undefined, data: '' },
  ];
  for (const size of [1, 2, 7, 1000]) {
    const reader = new EventReader();
    const found: ServerEvent[] = [];
    for (let at = 0; at < text.length; at += size) {
      found.push(...reader.feed(text.slice(at, at + size)));
    }
    t.deepEqual(found, whole, `in chunks of ${size} characters`);
  }
});

const COLUMNS = [
  { name: 'ts', type: 'TIMESTAMP' },
  { name: 'n', type: 'LONG' },
];
const HEAD: AnswerHead = { query: '', columns: COLUMNS, timestamp: 0 };

function row(second: number, n = second): Row {
  const at = new Date(1_700_000_000_000 + second * 1000);
  return [at.toISOString().replace('Z', '000Z'), String(n)];
}

function numbers(rows: readonly Row[]): unknown[] {
  return rows.map((one) => Number(one[1]));
}

test('rows are inserted by time, after rows with the same time', (t) => {
  const last = new LastRows(HEAD, [row(1), row(3), row(5)], 5);
  t.true(last.add([row(7), row(3, 33), row(0)]));
  t.deepEqual(numbers(last.rows), [1, 3, 33, 5, 7], 'rows before the window are not added');
  t.true(last.add([row(0)]));
  t.deepEqual(numbers(last.rows), [1, 3, 33, 5, 7]);
  const few = new LastRows(HEAD, [row(5)], 5);
  t.true(few.add([row(1), row(9)]));
  t.deepEqual(numbers(few.rows), [1, 5, 9], 'the whole small table is in the window');
  t.true(new LastRows(HEAD, [], 5).add([row(1)]));
  t.false(new LastRows(HEAD, [row(1)], 5).add([['-0001-01-01T00:00:00.000000Z', '1']]));
  const unordered = new LastRows({ ...HEAD, timestamp: -1 }, [row(5), row(1)], 3);
  t.true(unordered.add([row(3), row(2)]));
  t.deepEqual(
    numbers(unordered.rows),
    [1, 3, 2],
    'without a timestamp, rows keep their order of arrival',
  );
});

function event(name: string, id: string | undefined, more: object = {}): ServerEvent {
  return { name, id, data: JSON.stringify(more) };
}

const SCHEMA = event('schema', undefined, { columns: COLUMNS });

function at(txn: number): ServerEvent {
  return event('position', String(txn), { txn });
}

function change(txn: number, ...rows: Row[]): ServerEvent {
  return event('rows', String(txn), { txn, count: rows.length, dataset: rows });
}

/** A scripted server: its feeds and reads are predefined, and it records all calls. */
class Script {
  /** The position at which each feed started. */
  readonly began: string[] = [];
  readonly received: unknown[] = [];
  shown: readonly Row[] = [];
  reads = 0;
  open = 0;
  #push: ((event: ServerEvent | Error) => void) | undefined;
  readonly #close: () => void;

  constructor(
    table: (reads: number) => { rows: readonly Row[]; txn: number; head?: AnswerHead },
    refuse: (from: string, feeds: number) => Error | undefined = () => undefined,
    max = 10,
  ) {
    const server: FeedServer = {
      changes: (from, signal) => this.#changes(from, signal, refuse),
      read: () => {
        this.reads += 1;
        const { rows, txn, head = HEAD } = table(this.reads);
        return Promise.resolve({ head, rows, txn: rows.length === 0 ? undefined : txn });
      },
      poll: (_, signal) =>
        new Promise((resolve) => {
          this.received.push('poll');
          signal.addEventListener('abort', () => resolve());
        }),
    };
    const source = feedSource({ table: 't', rows: max }, server);
    const { close } = source.subscribe({
      rows: (_, rows) => {
        this.shown = rows;
        this.received.push('rows');
      },
      same: () => this.received.push('same'),
      polled: (reason) => reason !== undefined && this.received.push(reason),
      failed: (message, isLost, retryMs) => this.received.push([message, isLost, retryMs]),
    });
    this.#close = close;
  }

  async *#changes(
    from: string,
    signal: AbortSignal,
    refuse: (from: string, feeds: number) => Error | undefined,
  ): AsyncGenerator<ServerEvent> {
    this.began.push(from);
    const refusal = refuse(from, this.began.length);
    if (refusal) {
      throw refusal;
    }
    const queue: (ServerEvent | Error)[] = [];
    let wake = (): void => undefined;
    this.#push = (one) => {
      queue.push(one);
      wake();
    };
    signal.addEventListener('abort', () => this.#push?.(new DOMException('', 'AbortError')));
    this.open += 1;
    try {
      for (;;) {
        const next = queue.shift();
        if (next instanceof Error) {
          throw next;
        }
        if (next) {
          yield next;
        } else {
          await new Promise<void>((resolve) => (wake = resolve));
        }
      }
    } finally {
      this.open -= 1;
    }
  }

  send(...events: (ServerEvent | Error)[]): void {
    for (const one of events) {
      this.#push?.(one);
    }
  }

  close(): void {
    this.#close();
  }
}

async function until(t: ExecutionContext, what: () => boolean, message: string): Promise<void> {
  for (let ticks = 0; !what(); ticks += 1) {
    if (ticks > 2000) {
      t.fail(message);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test('the last rows are read once, and arriving rows are added', async (t) => {
  const script = new Script(() => ({ rows: [row(1), row(2)], txn: 5 }));
  await until(t, () => script.open === 1, 'a feed');
  script.send(SCHEMA, at(6));
  await until(t, () => script.shown.length === 2, 'the last rows');
  script.send(change(7, row(3)), change(9, row(4), row(2, 22)));
  await until(t, () => script.shown.length === 5, 'arriving rows');
  t.deepEqual(numbers(script.shown), [1, 2, 22, 3, 4]);
  t.deepEqual([script.reads, script.began], [1, ['now']]);
  script.send(event('comment', undefined));
  await until(t, () => script.received.at(-1) === 'same', 'unchanged rows');
  script.close();
  await until(t, () => script.open === 0, 'a closed feed');
  script.send(change(10, row(5)));
  await new Promise((resolve) => setTimeout(resolve, 150));
  t.is(script.shown.length, 5, 'no rows are reported after close');
});

test('a feed opened before the rows are read restarts from their transaction', async (t) => {
  const script = new Script(() => ({ rows: [row(1), row(2)], txn: 8 }));
  await until(t, () => script.open === 1, 'a feed');
  // The rows of transaction 8 are already displayed.
  script.send(SCHEMA, at(6), change(8, row(2)));
  await until(t, () => script.began.length === 2, 'another feed');
  t.deepEqual(script.began, ['now', '8']);
  script.send(SCHEMA, change(9, row(3)));
  await until(t, () => script.shown.length === 3, 'arriving rows');
  t.deepEqual([numbers(script.shown), script.reads], [[1, 2, 3], 1]);
  script.close();
});

test('a changed range causes a new read, after which the feed resumes', async (t) => {
  const script = new Script((reads) =>
    reads === 1 ? { rows: [row(1), row(2)], txn: 5 } : { rows: [row(1, 100)], txn: 12 },
  );
  await until(t, () => script.open === 1, 'a feed');
  script.send(SCHEMA, at(6));
  await until(t, () => script.shown.length === 2, 'the last rows');
  script.send(
    event('range', undefined, { txn: 11, ranges: [{ from: null, to: null }] }),
    change(11, ...Array.from({ length: 9 }, (_, n) => row(n))),
  );
  await until(t, () => script.reads === 2 && script.open === 1, 'another read');
  t.deepEqual(numbers(script.shown), [100], 'the read does not wait for the rows of the range');
  t.deepEqual(script.began, ['now', '12']);
  script.close();
});

test('if more new rows arrive than are shown, the last rows are read again', async (t) => {
  const script = new Script(
    (reads) => ({ rows: Array.from({ length: 3 }, (_, n) => row(n + reads)), txn: 4 * reads }),
    undefined,
    3,
  );
  await until(t, () => script.open === 1, 'a feed');
  script.send(SCHEMA, at(6));
  await until(t, () => script.shown.length === 3, 'the last rows');
  const many = Array.from({ length: 4 }, (_, n) => row(n));
  script.send(event('rows', '7-4', { txn: 7, dataset: many }));
  await until(t, () => script.reads === 2 && script.open === 1, 'another read');
  t.deepEqual(script.began, ['now', '8']);
  script.close();
});

test('an incomplete change is not shown; it is sent again after a lost connection', async (t) => {
  const script = new Script(() => ({ rows: [row(1)], txn: 5 }));
  await until(t, () => script.open === 1, 'a feed');
  script.send(SCHEMA, at(6));
  await until(t, () => script.shown.length === 1, 'the last rows');
  const half = event('rows', undefined, { txn: 7, dataset: [row(2)] });
  script.send(half, new Unreachable('broken off'));
  await until(t, () => script.began.length === 2 && script.open === 1, 'another feed');
  t.deepEqual(script.began, ['now', '6']);
  script.send(SCHEMA, half, change(7, row(3)));
  await until(t, () => script.shown.length === 3, 'the complete change');
  t.deepEqual(numbers(script.shown), [1, 2, 3]);
  t.false(script.received.some(Array.isArray), 'a single lost connection is not reported');
  script.close();
});

test('repeated failures are reported and retried with increasing delays', async (t) => {
  const script = new Script(
    () => ({ rows: [row(1)], txn: 5 }),
    (_, feeds) => (feeds > 1 && feeds < 4 ? new Unreachable('no answer') : undefined),
  );
  await until(t, () => script.open === 1, 'a feed');
  script.send(SCHEMA, at(6));
  await until(t, () => script.shown.length === 1, 'the last rows');
  script.send(new Unreachable('broken off'));
  await until(t, () => script.began.length === 4, 'three more attempts');
  t.deepEqual(script.received.filter(Array.isArray), [
    ['no answer', true, 1000],
    ['no answer', true, 2000],
  ]);
  t.deepEqual(script.began, ['now', '6', '6', '6'], 'each attempt resumes from the last position');
  script.close();
});

test('a table whose columns changed is read again', async (t) => {
  const columns = [...COLUMNS, { name: 'more', type: 'INT' }];
  const script = new Script((reads) =>
    reads === 1
      ? { rows: [row(1)], txn: 5 }
      : { rows: [[...row(1), null]], txn: 7, head: { ...HEAD, columns } },
  );
  await until(t, () => script.open === 1, 'a feed');
  script.send(SCHEMA, at(6));
  await until(t, () => script.shown.length === 1, 'the last rows');
  script.send(event('schema', undefined, { columns }));
  await until(t, () => script.reads === 2 && script.open === 1, 'another read');
  script.send(event('schema', undefined, { columns }), at(8));
  await until(t, () => script.received.at(-1) === 'same', 'rows that are up to date');
  t.deepEqual([script.shown[0]?.length, script.reads], [3, 2]);
  script.close();
});

test('an expired position restarts the feed', async (t) => {
  const script = new Script(
    () => ({ rows: [row(1)], txn: 5 }),
    (from) => (from === '6' ? new SqlError('too long ago', undefined, 410) : undefined),
  );
  await until(t, () => script.open === 1, 'a feed');
  script.send(SCHEMA, at(6));
  await until(t, () => script.shown.length === 1, 'the last rows');
  script.send(event('error', undefined, { error: 'the table is another one' }));
  await until(
    t,
    () => script.began.length === 3 || script.received.length > 9,
    'a feed from the current position',
  );
  await until(t, () => script.open === 1, 'a feed');
  script.send(SCHEMA, at(9));
  await until(t, () => script.reads === 2, 'another read');
  t.is(script.began.at(-1), 'now');
  script.close();
});

test('a missing table is reported, and a refused feed is replaced by polling', async (t) => {
  const refused = (message: string, status: number): Script =>
    new Script(
      () => ({ rows: [row(1)], txn: 5 }),
      () => new SqlError(message, undefined, status),
    );
  const gone = refused('table does not exist [table=t]', 400);
  const busy = refused('too many feeds of changes [limit=1, key=changes.max.feeds]', 503);
  const odd = refused('a feed cannot follow this', 400);
  await until(
    t,
    () => [gone, busy, odd].every(({ received }) => received.length > 0),
    'reported failures',
  );
  t.deepEqual(gone.received[0], ['There is no table or view named t.', false, 1000]);
  t.regex(String(busy.received[0]), /reached its change feed limit.*Polling every second/);
  t.is(busy.received[1], 'poll');
  t.regex(String(odd.received[0]), /no change feed for this: a feed cannot follow this/);
  for (const one of [gone, busy, odd]) {
    one.close();
  }
  t.is(
    troubleText(new SqlError('Access denied', undefined, 403), { table: 't', rows: 5 }),
    'You do not have permission to read t: Access denied.',
  );
});
