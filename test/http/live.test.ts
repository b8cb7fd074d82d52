/**
 * Continuously updated answers: their content, their recipients, their limits, and how they end.
 */
import { setTimeout as sleep } from 'node:timers/promises';

import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { until } from '../until.js';

interface LiveEvent {
  readonly event: string;
  readonly data: Record<string, unknown>;
}

/** A stream that is read as it arrives. */
class Stream {
  readonly events: LiveEvent[] = [];
  readonly status: number;
  isOver = false;
  readonly #stop: AbortController;

  private constructor(response: Response, stop: AbortController) {
    this.status = response.status;
    this.#stop = stop;
    void this.#read(response)
      .catch(() => undefined)
      .finally(() => (this.isOver = true));
  }

  static async open(
    t: ExecutionContext,
    server: TestServer,
    queries: unknown,
    login?: string,
  ): Promise<Stream> {
    const stop = new AbortController();
    t.teardown(() => {
      stop.abort();
    });
    const response = await fetch(`${server.url}/live`, {
      method: 'POST',
      body: JSON.stringify({ queries }),
      headers: login === undefined ? {} : { Authorization: `Basic ${btoa(login)}` },
      signal: stop.signal,
    });
    return new Stream(response, stop);
  }

  of(name: string): Record<string, unknown>[] {
    return this.events.filter(({ data }) => data['name'] === name).map(({ data }) => data);
  }

  async until(what: () => boolean): Promise<void> {
    await until(what, JSON.stringify(this.events).slice(-2000));
  }

  close(): void {
    this.#stop.abort();
  }

  async #read({ body }: Response): Promise<void> {
    let text = '';
    for await (const chunk of (body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const all = text.split('\n\n');
      text = all.pop() ?? '';
      for (const one of all) {
        const [, event = '', data = '{}'] = /^event: (.*)\ndata: (.*)$/s.exec(one) ?? [];
        this.events.push({ event, data: JSON.parse(data) as Record<string, unknown> });
      }
    }
  }
}

async function start(t: ExecutionContext, ...set: string[]): Promise<TestServer> {
  const server = await startTestServer({ set });
  t.teardown(() => server.stop());
  return server;
}

async function exec(server: TestServer, query: string, login?: string): Promise<number> {
  const headers = login === undefined ? {} : { Authorization: `Basic ${btoa(login)}` };
  const address = `${server.url}/exec?query=${encodeURIComponent(query)}`;
  return (await fetch(address, { headers })).status;
}

const FAST = 250;

test('a live result is sent immediately, and again only if it changes', async (t) => {
  const server = await start(t);
  await exec(server, 'CREATE TABLE t (ts TIMESTAMP, x LONG) TIMESTAMP(ts)');
  const stream = await Stream.open(t, server, [
    { name: 'rows', query: 'SELECT x FROM t', everyMs: FAST },
    { name: 'same', query: 'SELECT 1 one', everyMs: FAST },
  ]);
  await stream.until(() => stream.of('rows').length === 1 && stream.of('same').length === 1);
  t.deepEqual(stream.of('same')[0], {
    name: 'same',
    columns: [{ name: 'one', type: 'INT' }],
    dataset: [[1]],
  });
  t.is(stream.events[0]?.event, 'alive');
  await sleep(1000);
  t.is(stream.events.filter(({ event }) => event === 'answer').length, 2);
  await exec(server, "INSERT INTO t VALUES ('2026-01-01', 9007199254740993)");
  await stream.until(() => stream.of('rows').length === 2);
  t.deepEqual(stream.of('rows')[1]?.['dataset'], [['9007199254740993']]);
});

test('a large result arrives in full; a result over the size limit is refused', async (t) => {
  const server = await start(t, 'live.max.answer.size=1M');
  const stream = await Stream.open(t, server, [
    { name: 'many', query: 'SELECT x FROM long_sequence(100000)', everyMs: FAST },
    { name: 'more', query: 'SELECT x FROM long_sequence(10000000)', everyMs: FAST },
  ]);
  await stream.until(() => stream.of('many').length === 1 && stream.of('more').length === 1);
  t.is((stream.of('many')[0]?.['dataset'] as unknown[]).length, 100_000);
  t.regex(
    String(stream.of('more')[0]?.['error']),
    /too large \[limit=1048576 bytes, key=live\.max\.answer\.size\]/,
  );
});

test('an error is reported once, and results resume when the query succeeds', async (t) => {
  const server = await start(t);
  const queries = [{ name: 'rows', query: 'SELECT count() FROM later', everyMs: FAST }];
  const stream = await Stream.open(t, server, queries);
  await stream.until(() => stream.of('rows').length === 1);
  t.regex(String(stream.of('rows')[0]?.['error']), /later/);
  await exec(server, 'CREATE TABLE later (x INT)');
  await stream.until(() => stream.of('rows').length === 2);
  t.deepEqual(stream.of('rows')[1]?.['dataset'], [['0']]);
  await exec(server, 'DROP TABLE later');
  await stream.until(() => stream.of('rows').length === 3);
  t.true('error' in (stream.of('rows')[2] ?? {}));
});

test('identical queries of one user share a single run, even after a stream closes', async (t) => {
  const server = await start(t);
  const queries = [{ name: 'r', query: 'SELECT rnd_long() v', everyMs: FAST }];
  const values = (stream: Stream): string[] =>
    stream.of('r').map(({ dataset }) => JSON.stringify(dataset));
  const first = await Stream.open(t, server, queries);
  await first.until(() => values(first).length >= 2);
  // The second stream requests the same query under a different name. The streams share the query,
  // and fields such as the name are added for each stream.
  const second = await Stream.open(t, server, [{ ...queries[0], name: 'r' }]);
  await second.until(() => values(second).length >= 3);
  await first.until(() => values(first).includes(values(second)[2] ?? ''));
  t.deepEqual(
    values(second).filter((value) => !values(first).includes(value)),
    [],
  );
  // The query had been running in the session of the first stream.
  first.close();
  const seen = values(second).length;
  await second.until(() => values(second).length >= seen + 3);
  t.true(second.of('r').every((one) => !('error' in one)));
  const other = await Stream.open(t, server, [{ ...queries[0], everyMs: FAST + 1 }]);
  await other.until(() => values(other).length >= 2);
  t.deepEqual(
    values(other).filter((value) => values(second).includes(value)),
    [],
  );
});

test('a later stream immediately gets the cached result, even a large one', async (t) => {
  const server = await start(t);
  const rarely = 3_600_000;
  const queries = [
    { name: 'small', query: 'SELECT rnd_long() v', everyMs: rarely },
    { name: 'large', query: 'SELECT x FROM long_sequence(100000)', everyMs: rarely },
  ];
  const all = (stream: Stream): boolean =>
    stream.of('small').length === 1 && stream.of('large').length === 1;
  const first = await Stream.open(t, server, queries);
  await first.until(() => all(first));
  const second = await Stream.open(t, server, queries);
  await second.until(() => all(second));
  t.deepEqual(second.of('small'), first.of('small'));
  t.is((second.of('large')[0]?.['dataset'] as unknown[]).length, 100_000);
  await sleep(500);
  t.true(all(first), 'an unchanged answer is not sent twice');
});

test('only queries are accepted, and malformed requests are refused', async (t) => {
  const server = await start(t);
  await exec(server, 'CREATE TABLE kept (x INT)');
  const stream = await Stream.open(t, server, [
    { name: 'a', query: 'DROP TABLE kept', everyMs: FAST },
    { name: 'b', query: 'INSERT INTO kept VALUES (1)', everyMs: FAST },
    { name: 'c', query: 'SELECT $1', everyMs: FAST },
    { name: 'd', query: '', everyMs: FAST },
  ]);
  await stream.until(() => ['a', 'b', 'c', 'd'].every((name) => stream.of(name).length === 1));
  t.true(stream.events.every(({ event }) => event !== 'answer'));
  t.is(await exec(server, 'SELECT * FROM kept'), 200);
  const one = { name: 'a', query: 'SELECT 1', everyMs: FAST };
  const wrong: unknown[] = [
    null,
    [],
    {},
    [null],
    [{ ...one, name: 'a"\n' }],
    [{ ...one, everyMs: 1 }],
    [{ ...one, everyMs: '1000' }],
    [{ ...one, everyMs: 1e9 }],
    [one, one],
    Array.from({ length: 9 }, (_, index) => ({ ...one, name: `q${index}` })),
  ];
  for (const queries of wrong) {
    const { status } = await Stream.open(t, server, queries);
    t.is(status, 400, JSON.stringify(queries));
  }
});

test('rights are checked for each result; an expired login ends the stream', async (t) => {
  const server = await start(t, 'acl.enabled=true', 'acl.admin.password=secret');
  const admin = 'admin:secret';
  for (const statement of [
    'CREATE TABLE t (x INT)',
    "CREATE USER ann WITH PASSWORD 'p'",
    'GRANT HTTP TO ann',
    'GRANT SELECT ON t TO ann',
  ]) {
    t.is(await exec(server, statement, admin), 200);
  }
  const queries = [{ name: 'rows', query: 'SELECT count() FROM t', everyMs: FAST }];
  t.is((await Stream.open(t, server, queries)).status, 401);
  const stream = await Stream.open(t, server, queries, 'ann:p');
  await stream.until(() => stream.of('rows').length === 1);
  await exec(server, 'REVOKE SELECT ON t FROM ann', admin);
  await stream.until(() => stream.of('rows').length === 2);
  t.true('error' in (stream.of('rows')[1] ?? {}), 'no row is sent after the permission is revoked');
  await exec(server, 'DROP USER ann', admin);
  await stream.until(() => stream.isOver);
});

test('streams count towards the feed limit, and end with their client or server', async (t) => {
  const server = await start(t, 'changes.max.feeds=2');
  const queries = [{ name: 'q', query: 'SELECT sleep(1000)', everyMs: FAST }];
  const plain = [{ name: 'q', query: 'SELECT 1', everyMs: 3_600_000 }];
  const [first] = await Promise.all([
    Stream.open(t, server, queries),
    Stream.open(t, server, plain),
  ]);
  const refused = await fetch(`${server.url}/live`, {
    method: 'POST',
    body: JSON.stringify({ queries: plain }),
  });
  t.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
  t.deepEqual(await refused.json(), {
    error: 'too many change feeds [limit=2, key=changes.max.feeds]',
  });
  first.close();
  const isAccepted = async (): Promise<boolean> =>
    (await Stream.open(t, server, plain)).status === 200;
  await until(isAccepted, 'the slot is free again');
  const began = performance.now();
  t.is(await server.stop(), 0);
  t.true(performance.now() - began < 5000, 'the shutdown does not wait for the next answer');
});
