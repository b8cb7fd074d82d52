/** Behaviour that only a real server shows: sockets that close, stall or carry many requests. */
import { readFileSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { until } from '../until.js';

const WAIT_MS = 60_000;
const MEGABYTE = 1024 * 1024;
/** A query that would run for days, so only cancellation ends it. */
const ENDLESS =
  'from long_sequence(1000000) a cross join long_sequence(1000000) b where a.x * b.x % 7 = 3';

let server: TestServer;

test.before(async () => {
  server = await startTestServer();
});

test.after.always(async () => {
  await server.stop();
});

async function exec(query: string): Promise<readonly (readonly unknown[])[]> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`);
  const answer = (await response.json()) as { dataset?: unknown[][]; error?: string };
  if (answer.error !== undefined) {
    throw new Error(answer.error);
  }
  return answer.dataset ?? [];
}

async function validate(query: string, more = ''): Promise<readonly [number, unknown]> {
  const path = `/api/v1/sql/validate?query=${encodeURIComponent(query)}${more}`;
  const response = await fetch(server.url + path);
  return [response.status, await response.json()];
}

test.serial('nonexistent dates are refused before a statement runs', async (t) => {
  await exec('create table dated (v int, ts timestamp) timestamp(ts) partition by day');
  for (const date of ['2024-13-45', '2024-02-30', '2023-02-29', '2024-04-31', '2024-01-01T25']) {
    for (const [before, after] of [
      ['select * from dated where ts > ', ''],
      ['select * from dated where ts between ', " and '2025-01-01'"],
      ['select * from dated where v = 1 and ts in ', ''],
      ['update dated set v = 2 where ts < ', ''],
    ] as const) {
      const query = `${before}'${date}'${after}`;
      const [status, body] = await validate(query);
      t.is(status, 400, query);
      t.like(body, { query, position: before.length }, query);
      t.regex((body as { error: string }).error, /date/i, query);
      t.deepEqual(await validate(query, '&inlineErrors=true'), [200, body], query);
    }
  }
  for (const query of [
    'dated',
    'show tables',
    'with d as (select 1) select * from d',
    'explain dated',
  ]) {
    t.is((await validate(query))[0], 200, query);
  }
});

test.serial('invalid constants are refused before a statement runs', async (t) => {
  await exec('create table priced (price double, n int, ts timestamp) timestamp(ts)');
  for (const [before, constant, after] of [
    ['select * from priced where price = ', "'abc'", ''],
    ['select * from priced where ', "'abc'", ' < price'],
    ['select price + ', "'abc'", ' from priced'],
    ['select * from priced a join priced b on a.price = ', "'abc'", ''],
    ['select n, max(price) from priced group by n having max(price) > ', "'abc'", ''],
    ['update priced set n = 2 where price = ', "'abc'", ''],
  ] as const) {
    const query = `${before}${constant}${after}`;
    const [status, body] = await validate(query);
    t.is(status, 400, query);
    t.like(body, { query, position: before.length }, query);
    t.regex((body as { error: string }).error, /^inconvertible value: /, query);
  }
  for (const where of ["n in ('a', '2')", "price between 'abc' and 3"]) {
    t.is((await validate(`select * from priced where ${where}`))[0], 400, where);
  }
  t.is((await validate("select * from priced where price = '1.5'"))[0], 200);
});

async function connect(): Promise<Socket> {
  const { hostname, port } = new URL(server.url);
  const socket = createConnection({ host: hostname, port: Number(port) });
  socket.on('error', () => undefined);
  await new Promise((resolve) => socket.once('connect', resolve));
  return socket;
}

function request(path: string, query: string, headers = ''): string {
  const target = `${path}?query=${encodeURIComponent(query)}`;
  return `GET ${target} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`;
}

/** Whether a statement that contains `mark` is running. */
async function isRunning(mark: string): Promise<boolean> {
  const rows = await exec('select query from query_activity()');
  return rows.some(([text]) => String(text).includes(mark) && !String(text).includes('activity'));
}

function residentBytes(): number {
  const status = readFileSync(`/proc/${server.process.pid ?? 0}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
}

/** Reads until the responses satisfy `isEnough`, or until the connection ends. */
async function collect(socket: Socket, isEnough: (text: string) => boolean): Promise<string> {
  let text = '';
  const timer = setTimeout(() => socket.destroy(), WAIT_MS);
  for await (const bytes of socket) {
    text += (bytes as Buffer).toString('latin1');
    if (isEnough(text)) {
      break;
    }
  }
  clearTimeout(timer);
  return text;
}

test.serial('closing the socket cancels a running SELECT', async (t) => {
  const socket = await connect();
  socket.write(request('/exec', `select count() as gone ${ENDLESS}`));
  await until(() => isRunning('as gone'), 'the query is running');
  socket.destroy();
  await until(async () => !(await isRunning('as gone')), 'the query is cancelled');
  t.pass();
});

test.serial('closing the socket cancels INSERT … SELECT, which leaves no rows', async (t) => {
  await exec('create table filled (x long)');
  const socket = await connect();
  socket.write(request('/exec', `insert into filled select a.x ${ENDLESS}`));
  await until(() => isRunning('into filled'), 'the query is running');
  socket.destroy();
  await until(async () => !(await isRunning('into filled')), 'the query is cancelled');
  t.deepEqual(await exec('select count() from filled'), [[0]]);
  await exec('insert into filled values (1)');
  t.deepEqual(await exec('select x from filled'), [[1]]);
});

test.serial('snapshots() shows the snapshot that a running query holds', async (t) => {
  await exec('create table read (x long)');
  const socket = await connect();
  socket.write(request('/exec', `select count() as reads ${ENDLESS}`));
  await until(() => isRunning('as reads'), 'the query is running');
  await exec('insert into read values (1)');
  const pinned = await exec('select epoch, readers from snapshots()');
  t.true(pinned.length >= 2, JSON.stringify(pinned));
  t.true(Number(pinned[0]?.[0]) < Number(pinned.at(-1)?.[0]));
  socket.destroy();
  await until(async () => !(await isRunning('as reads')), 'the query is cancelled');
  await until(
    async () => (await exec('select epoch from snapshots()')).length === 1,
    'only the newest snapshot remains',
  );
});

test.serial('Statement-Timeout limits a statement; an invalid value is ignored', async (t) => {
  const send = async (path: string, query: string, time: string): Promise<[number, string]> => {
    const headers = { 'Statement-Timeout': time };
    const target = `${server.url}${path}?query=${encodeURIComponent(query)}`;
    const response = await fetch(target, { headers });
    return [response.status, await response.text()];
  };
  for (const path of ['/exec', '/exp']) {
    const [status, text] = await send(path, `select count() ${ENDLESS}`, '100');
    t.is(status, 400, path);
    t.regex(text, /"error":"timeout, query aborted[^"]*"/, path);
    for (const time of ['', '0', '-1', 'soon', '1e3', '9'.repeat(30)]) {
      t.is((await send(path, 'select 1', time))[0], 200, `${path} ${time}`);
    }
  }
});

for (const path of ['/exec', '/exp']) {
  test.serial(`${path} pauses for a slow reader, and memory does not grow`, async (t) => {
    if (process.platform !== 'linux') {
      t.pass('memory is read from /proc');
      return;
    }
    const before = residentBytes();
    const socket = await connect();
    socket.pause();
    const mark = `slow${path.slice(1)}`;
    socket.write(request(path, `select x as ${mark}, x * 2 as y from long_sequence(50000000)`));
    await until(() => isRunning(mark), 'the query is running');
    await sleep(2_000);
    t.true(await isRunning(mark), 'the query is still running');
    const grown = residentBytes() - before;
    t.true(grown < 200 * MEGABYTE, `${Math.round(grown / MEGABYTE)} MB more`);
    socket.destroy();
    await until(async () => !(await isRunning(mark)), 'the query is cancelled');
  });
}

test.serial('an aborted import leaves no trace', async (t) => {
  const socket = await connect();
  const lines = Array.from({ length: 20_000 }, (_, i) => `${i},name ${i}\n`).join('');
  socket.write(
    'POST /imp?name=half&forceHeader=true HTTP/1.1\r\nHost: localhost\r\n' +
      'Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000000\r\n\r\n' +
      '--b\r\nContent-Disposition: form-data; name="data"; filename="x.csv"\r\n\r\n' +
      `a,b\n${lines}`,
  );
  await sleep(500);
  socket.destroy();
  await sleep(500);
  await t.throwsAsync(exec('select count() from half'), { message: /does not exist/ });
  await exec('create table half (a int)');
  await exec('insert into half values (1)');
  t.deepEqual(await exec('select a from half'), [[1]]);
});

test.serial('pipelined requests are answered in order', async (t) => {
  const socket = await connect();
  const numbers = [1, 2, 3, 4, 5];
  socket.write(numbers.map((number) => request('/exec', `select ${number} n`)).join(''));
  const pattern = /"dataset":\[\[(\d)\]\]/g;
  const text = await collect(socket, (so) => [...so.matchAll(pattern)].length === numbers.length);
  t.deepEqual(
    [...text.matchAll(pattern)].map(([, number]) => Number(number)),
    numbers,
  );
});

test.serial('a connection stays open, even after errors, until Connection: close', async (t) => {
  const socket = await connect();
  const send = async (query: string, headers?: string): Promise<string> => {
    socket.write(request('/exec', query, headers));
    return await new Promise((resolve) => {
      let text = '';
      const take = (bytes: Buffer): void => {
        text += bytes.toString('latin1');
        if (text.endsWith('\r\n0\r\n\r\n') || /\r\n\r\n\{.*\}$/s.test(text)) {
          socket.off('data', take);
          resolve(text);
        }
      };
      socket.on('data', take);
    });
  };
  for (let round = 0; round < 20; round += 1) {
    t.regex(await send('select 1'), /^HTTP\/1\.1 200 OK/);
    t.regex(await send('select nope'), /^HTTP\/1\.1 400 /);
  }
  const closed = new Promise((resolve) => socket.once('close', resolve));
  t.regex(await send('select 1', 'Connection: close\r\n'), /^HTTP\/1\.1 200 OK/);
  await closed;
});

test('a repeated query sees later commits', async (t) => {
  await exec('create table again (x int, ts timestamp) timestamp(ts) partition by day');
  const count = 'select count() from again';
  const all = 'select * from again';
  t.deepEqual(await exec(count), [[0]]);
  t.deepEqual(await exec(count), [[0]]);
  await exec("insert into again values (7, '2024-01-01')");
  t.deepEqual(await exec(count), [[1]]);
  t.deepEqual(await exec(all), [[7, '2024-01-01T00:00:00.000000Z']]);
  await exec('drop table again');
  await t.throwsAsync(() => exec(all), { message: /does not exist/ });
  await exec('create table again (y symbol)');
  t.deepEqual(await exec(all), []);
  await exec("insert into again values ('s')");
  t.deepEqual(await exec(all), [['s']]);
  for (const moving of ['select now()', 'select rnd_long()', 'select rnd_long() from again']) {
    const seen = new Set<unknown>();
    for (let round = 0; round < 5; round += 1) {
      seen.add((await exec(moving))[0]?.[0]);
      await sleep(2);
    }
    t.is(seen.size, 5, moving);
  }
});

test('timestamp_sequence continues across batches, and restarts with each query', async (t) => {
  const query =
    'select count_distinct(ts), max(ts) from ' +
    '(select timestamp_sequence(0, 1000) ts from long_sequence(200000))';
  for (let round = 0; round < 2; round += 1) {
    t.deepEqual(await exec(query), [[200_000, '1970-01-01T00:03:19.999000Z']]);
  }
});

test('GROUP BY over no rows returns no rows, whatever the keys', async (t) => {
  await exec('create table nothing (a varchar, b long, c double)');
  for (const keys of ['a', 'b', 'a, b', 'a, b, c', "concat(a, 'x'), b % 3"]) {
    t.deepEqual(await exec(`select ${keys}, count() from nothing group by ${keys}`), [], keys);
  }
});

test('joins, sorts and sub-queries can be run again from the cached plan', async (t) => {
  await exec('create table twice (k symbol, v int, ts timestamp) timestamp(ts)');
  const rows = "('a', 1, 0), ('b', 2, 1), ('a', 3, 2), ('c', null, 3)";
  await exec(`insert into twice values ${rows}`);
  for (const query of [
    'select a.v, b.v from twice a join twice b on a.k = b.k order by 1, 2',
    'select k, v from twice order by v desc limit 2',
    'select k, sum(v) from twice where v in (select v from twice where v > 1) order by k',
    'select a.v, b.v from twice a cross join twice b order by 1, 2',
    'select distinct k from twice order by k',
    'select v, row_number() over (partition by k order by ts) from twice order by 1, 2',
    'select k, v from twice latest on ts partition by k',
    'select a.v, b.v from twice a asof join twice b on (k)',
    'select ts, sum(v) from twice sample by 1h fill(prev)',
  ]) {
    const first = await exec(query);
    t.true(first.length > 0, query);
    for (let round = 0; round < 3; round += 1) {
      t.deepEqual(await exec(query), first, query);
    }
  }
});
