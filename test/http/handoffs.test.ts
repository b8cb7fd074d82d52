/**
 * HTTP connections handed off to the engine. Responses and everything else must be byte-identical
 * to those without handoffs.
 */
import test from 'ava';

import type { TestServer } from '../golden/server.js';
import { suiteSeed } from '../seed.js';
import { until } from '../until.js';
import {
  get,
  handOff,
  handedOff,
  Repeater,
  type RequestOptions,
  run,
  startBoth,
} from './repeating.js';

let handingOff: TestServer;
let plain: TestServer;

test.before(async () => {
  [handingOff, plain] = await startBoth();
  for (const server of [handingOff, plain]) {
    for (const statement of TABLES) {
      await run(server, statement);
    }
  }
});

test.after.always(async () => {
  await Promise.all([handingOff, plain].map((server) => server.stop()));
});

const TABLES = [
  `CREATE TABLE trades AS (
     SELECT timestamp_sequence('2024-01-01', 1000000) ts, ('S' || (x % 20))::symbol symbol,
       x / 8.0 price, x amount, CASE WHEN x % 7 = 0 THEN NULL ELSE 'nöte ' || x END note,
       x % 2 = 0 even
     FROM long_sequence(20000)
   ) TIMESTAMP(ts) PARTITION BY DAY`,
  'CREATE TABLE numbers AS (SELECT x, x * 3000000000 large FROM long_sequence(10))',
  'CREATE TABLE nothing (a int, "b c" varchar, "ü" double)',
];

interface Case {
  readonly texts: readonly string[];
  readonly options?: RequestOptions;
  /** Whether the server must answer this request itself, instead of handing off the connection. */
  readonly staysHandedOff?: true;
}

const CASES: readonly Case[] = [
  { texts: ['SELECT 1', 'SELECT x FROM numbers', "SELECT 'ü\n\"\u0001\u2028' t"] },
  {
    texts: ['00:00:07', '00:00:08', '23:00:00'].map(
      (time) => `SELECT * FROM trades WHERE ts = '2024-01-01 ${time}'`,
    ),
  },
  {
    texts: ['S3', 'S4', 'missing', '', "it''s", 'ü'].map(
      (symbol) =>
        `SELECT * FROM trades WHERE symbol = '${symbol}' LATEST ON ts PARTITION BY symbol`,
    ),
  },
  {
    texts: ['01:00:00', '00:00:05', '00:00'].map(
      (time) => `SELECT * FROM trades WHERE ts < '2024-01-01 ${time}' ORDER BY ts DESC LIMIT 100`,
    ),
  },
  {
    texts: ['5', '10000', '3000000000'].map(
      (amount) =>
        `SELECT ts, symbol, avg(price) FROM trades\nWHERE symbol = 'S3' AND amount > ${amount} ` +
        'SAMPLE BY 1h',
    ),
  },
  {
    texts: ['1.5', '0.25', '7', '7.'].map(
      (price) => `SELECT amount FROM trades WHERE price <= ${price} AND amount IN (1, 2, 12)`,
    ),
  },
  { texts: ['1', '2', '77'].map((a) => `SELECT * FROM nothing WHERE a = ${a};`) },
  {
    texts: ['1', '5', '500'].map((x) => `SELECT * FROM trades WHERE amount < ${x}`),
    options: { parameters: '&limit=2,4&count=true' },
  },
  {
    texts: ['1', '5', '20'].map((x) => `SELECT * FROM numbers WHERE x < ${x}`),
    options: { parameters: '&quoteLargeNum=true&explain=true' },
  },
  {
    texts: ['1', '5', '20'].map((x) => `SELECT * FROM numbers WHERE x < ${x}`),
    options: { line: 'GET /exec?nm=true&count=true&query={}&limit=3 HTTP/1.1' },
  },
  {
    texts: ['1', '5', '20'].map((x) => `SELECT * FROM numbers WHERE x < ${x}`),
    options: { headers: ['Accept-Encoding: gzip, deflate', 'User-Agent: x', 'Accept:  */* '] },
  },
  {
    texts: ['3', '4', '5'].map((x) => `SELECT * FROM trades WHERE amount < ${x}`),
    options: { line: 'GET //exec?src=con&query={} HTTP/1.1', headers: ['connection:keep-alive'] },
  },
  ...['&timings=false', '&cols=x', '&session=false', '&query=SELECT+2', '&other=1'].map(
    (parameters): Case => ({
      texts: ['SELECT x FROM numbers'],
      options: { parameters },
      staysHandedOff: true,
    }),
  ),
  ...['GET /exec?query={} HTTP/1.0', 'HEAD /exec?query={} HTTP/1.1'].map((line): Case => ({
    texts: ['SELECT x FROM numbers'],
    options: { line, headers: ['Connection: keep-alive'] },
    staysHandedOff: true,
  })),
];

for (const { texts, options, staysHandedOff } of CASES) {
  const how = JSON.stringify(options ?? {});
  test.serial(`handoffs do not change the response: ${texts[0] ?? ''} ${how}`, async (t) => {
    const [a, b] = await Promise.all([Repeater.open(handingOff), Repeater.open(plain)]);
    t.teardown(() => {
      a.close();
      b.close();
    });
    const before = await handedOff(handingOff);
    for (let round = 0; round < 12; round += 1) {
      for (const text of texts) {
        const request = get(text, options);
        const expected = await b.exchange(request);
        t.regex(expected ?? '', /^HTTP\/1\.1 200 OK\r\n/);
        t.is(await a.exchange(request), expected, `${round}: ${text}`);
      }
    }
    const answered = (await handedOff(handingOff)) - before;
    if (staysHandedOff) {
      t.is(answered, 0);
    } else {
      t.true(answered > texts.length * 3, `the engine answered ${answered} statements`);
    }
    t.is(await handedOff(plain), 0);
  });
}

test.serial('large responses are compressed when the client accepts compression', async (t) => {
  const [a, b] = await Promise.all([Repeater.open(handingOff), Repeater.open(plain)]);
  t.teardown(() => {
    a.close();
    b.close();
  });
  const of = (maximum: number): Buffer =>
    get(`SELECT amount FROM trades WHERE amount < ${maximum}`, {
      headers: ['Accept-Encoding: gzip'],
    });
  await handOff(a, handingOff, () => of(3));
  for (let maximum = 1; maximum < 500; maximum += 7) {
    t.is(await a.exchange(of(maximum)), await b.exchange(of(maximum)), String(maximum));
  }
});

/** Random numbers. */
class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  below(count: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * count);
  }

  chance(part: number): boolean {
    return this.below(1_000) < part * 1_000;
  }

  one<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }
}

const VALUES = ["'x'", '1.5', "'17'", '3000000000', '-1', '1e3', '0x1', '1_0', 'NULL', "''", "'"];

const OTHERS: readonly ((rng: Dice) => Buffer)[] = [
  () => get('SELECT nothing FROM trades'),
  () => get('nonsense'),
  () => get(''),
  () => get('SELECT * FROM trades'),
  () => get('SELECT 1', { parameters: '&limit=1' }),
  () => get('SELECT 1', { headers: ['X-Other: 1'] }),
  () => get('SELECT 1', { line: 'HEAD /exec?query={} HTTP/1.1' }),
  () => get('SELECT 1', { line: 'GET /exp?query={} HTTP/1.1' }),
  () => get('SELECT 1', { line: 'GET /nowhere?query={} HTTP/1.1' }),
  () => Buffer.from('GET /exec?query=%ff HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'),
  () => Buffer.from('GET /exec?query=SELECT+%2 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'),
  () => Buffer.from('GET /exec?query=SELECT%201 HTTP/1.1\r\nHost: elsewhere\r\n\r\n'),
  () => {
    const body = `query=${encodeURIComponent('SELECT 2')}`;
    const type = 'Content-Type: application/x-www-form-urlencoded';
    const head = `POST /exec HTTP/1.1\r\nHost: 127.0.0.1\r\n${type}\r\n`;
    return Buffer.from(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
  },
  (rng) => get(`SELECT amount FROM trades WHERE amount = ${rng.one(VALUES)}`),
  (rng) => get(`SELECT amount FROM trades WHERE symbol = ${rng.one(VALUES)}`),
  (rng) => get(`SELECT * FROM trades WHERE amount < ${rng.below(20_000)}`),
];
/** Requests that close the connection. */
const LAST: readonly (() => Buffer)[] = [
  () => get('SELECT 1', { headers: ['Connection: close'] }),
  () => get('SELECT 1', { line: 'GET /exec?query={} HTTP/1.0' }),
];
/** Malformed requests. Their responses may overtake the pending responses to earlier requests. */
const MALFORMED: readonly (() => Buffer)[] = [
  () => Buffer.from('GET /exec?query=1 1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'),
  () => Buffer.from('NONSENSE\r\n\r\n'),
];

const good = (rng: Dice): Buffer =>
  get(`SELECT symbol, price FROM trades WHERE amount = ${rng.below(30_000)}`);

/** A pipelined batch, with the maximum number of responses. */
function batch(rng: Dice): Buffer[] {
  const requests = Array.from({ length: 1 + rng.below(5) }, () =>
    rng.chance(0.6) ? good(rng) : rng.one(OTHERS)(rng),
  );
  const last = rng.below(40);
  return last === 0 ? [rng.one(MALFORMED)()] : last < 3 ? [...requests, rng.one(LAST)()] : requests;
}

test.serial('interleaved requests get the same responses as without handoffs', async (t) => {
  const rng = new Dice(suiteSeed());
  const open = (): Promise<Repeater[]> =>
    Promise.all([handingOff, plain].map((server) => Repeater.open(server)));
  let clients = await open();
  t.teardown(() => {
    clients.forEach((client) => {
      client.close();
    });
  });
  const before = await handedOff(handingOff);
  for (let round = 0; round < 600; round += 1) {
    const [a, b] = clients as [Repeater, Repeater];
    if (round % 5 === 0) {
      // Sends enough requests to trigger a handoff, even after earlier handoffs were unprofitable.
      for (const client of clients) {
        for (let times = 0; times < 68; times += 1) {
          await client.exchange(good(rng));
        }
      }
    }
    const requests = batch(rng);
    const bytes = Buffer.concat(requests);
    b.send(bytes);
    const expected: (string | null)[] = [];
    for (let at = 0; at < requests.length && expected.at(-1) !== null; at += 1) {
      expected.push(await b.answer());
    }
    // The socket may deliver the bytes in arbitrary fragments.
    const cut = rng.below(bytes.length + 1);
    a.send(bytes.subarray(0, cut));
    if (rng.chance(0.5)) {
      await new Promise((resolve) => setTimeout(resolve, rng.below(3)));
    }
    a.send(bytes.subarray(cut));
    const got: (string | null)[] = [];
    while (got.length < expected.length) {
      got.push(await a.answer());
    }
    t.deepEqual(got, expected, `round ${round}: ${bytes.toString('latin1')}`);
    if (expected.at(-1) === null || /^connection: close/im.test(expected.at(-1) ?? '')) {
      clients.forEach((client) => {
        client.close();
      });
      clients = await open();
    }
  }
  t.true((await handedOff(handingOff)) > before + 300, 'the engine answered many statements');
});

test.serial('a connection is handed off and back thousands of times', async (t) => {
  const one = await Repeater.open(handingOff);
  t.teardown(() => {
    one.close();
  });
  const query = (x: number): Buffer => get(`SELECT x FROM numbers WHERE x = ${x}`);
  await handOff(one, handingOff, () => query(1));
  const before = await handedOff(handingOff);
  const row = /"dataset":\[\[(\d+)\]\]/;
  const rounds = 2_000;
  for (let round = 0; round < rounds; round += 1) {
    // A handoff pays off after sixteen responses. The engine returns the dissimilar request to the
    // server, along with all requests that follow it.
    const numbers = Array.from({ length: 20 }, (_, at) => 1 + ((round + at) % 10));
    const other = get(`SELECT ${round}`, { headers: ['X-Other: 1'] });
    one.send(...numbers.map(query), other, query(7));
    for (const x of numbers) {
      t.is(row.exec((await one.answer()) ?? '')?.[1], String(x));
    }
    t.is(row.exec((await one.answer()) ?? '')?.[1], String(round));
    t.is(row.exec((await one.answer()) ?? '')?.[1], '7');
    // Repeats the usual request, so that the dissimilar request no longer counts.
    await one.exchange(query(1));
    await one.exchange(query(2));
  }
  const answered = (await handedOff(handingOff)) - before;
  t.true(answered > rounds * 10, `the engine answered ${answered} statements`);
});

test.serial('new rows and columns of a changed table are returned', async (t) => {
  const [a, b] = await Promise.all([Repeater.open(handingOff), Repeater.open(plain)]);
  t.teardown(() => {
    a.close();
    b.close();
  });
  const both = async (statement: string): Promise<void> => {
    await Promise.all([run(handingOff, statement), run(plain, statement)]);
  };
  let x = 0;
  const next = (): Buffer => get(`SELECT * FROM changing WHERE a >= ${(x += 1) % 5}`);
  const same = async (): Promise<void> => {
    const request = next();
    t.is(await a.exchange(request), await b.exchange(request));
  };
  await both('CREATE TABLE changing (a int, b varchar)');
  for (const change of [
    "INSERT INTO changing VALUES (1, 'x')",
    'ALTER TABLE changing ADD COLUMN d int',
    'ALTER TABLE changing RENAME COLUMN b TO c',
    'ALTER TABLE changing ALTER COLUMN a TYPE double',
    'ALTER TABLE changing ALTER COLUMN a TYPE varchar',
    'DROP TABLE changing',
    'CREATE TABLE changing (a long)',
    'INSERT INTO changing VALUES (4)',
    'RENAME TABLE changing TO changed',
    'CREATE TABLE changing (a symbol)',
  ]) {
    await handOff(a, handingOff, () => get('SELECT x FROM numbers WHERE x = 3'));
    for (let round = 0; round < 80; round += 1) {
      await same();
    }
    await both(change);
    for (let round = 0; round < 3; round += 1) {
      await same();
    }
  }
});

test.serial('query_activity() shows the SQL of a handed-off query', async (t) => {
  const one = await Repeater.open(handingOff);
  t.teardown(() => {
    one.close();
  });
  const shown = (x: number): string =>
    `SELECT query FROM query_activity() WHERE query LIKE '%activity%' AND query_id > ${x}`;
  let x = 0;
  for (let round = 0; round < 80; round += 1) {
    x += 1;
    const answer = await one.exchange(get(shown(x)));
    t.true(answer?.includes(`"dataset":[[${JSON.stringify(shown(x))}]`), answer ?? '');
  }
});

/** A query that is slow if it joins all rows. */
const cross = (x: number, y: number, headers: readonly string[] = []): Buffer =>
  get(`SELECT sum(a.x * b.x) FROM big a CROSS JOIN big b WHERE a.x <= ${x} AND b.x <= ${y}`, {
    headers,
  });

test.serial('a handed-off query obeys its timeout and does not run twice', async (t) => {
  await run(handingOff, 'CREATE TABLE IF NOT EXISTS big AS (SELECT x FROM long_sequence(1000000))');
  const one = await Repeater.open(handingOff);
  t.teardown(() => {
    one.close();
  });
  const headers = ['Statement-Timeout: 1500'];
  let x = 0;
  await handOff(one, handingOff, () => cross((x = (x + 1) % 90), 2, headers));
  const before = await handedOff(handingOff);
  const began = Date.now();
  t.regex((await one.exchange(cross(1_000_000, 1_000_000, headers))) ?? '', /"error":"timeout/);
  t.true(Date.now() - began < 2_900, 'the query runs only once');
  t.is(await handedOff(handingOff), before + 1);
});

test.serial('a handed-off query can be cancelled by its id', async (t) => {
  const one = await Repeater.open(handingOff);
  t.teardown(() => {
    one.close();
  });
  await run(handingOff, 'CREATE TABLE IF NOT EXISTS big AS (SELECT x FROM long_sequence(1000000))');
  let x = 0;
  await handOff(one, handingOff, () => cross((x = (x + 1) % 90), 2));
  one.send(cross(1_000_000, 1_000_000));
  let id: unknown;
  await until(async () => {
    const rows = await run(handingOff, 'SELECT query_id, query FROM query_activity()');
    id = rows.find(([, query]) => String(query).includes('<= 1000000'))?.[0];
    return id !== undefined;
  }, 'the query runs');
  t.true(Number(id) >= 2 ** 48, 'the connection is handed off');
  await run(handingOff, `CANCEL QUERY ${String(id)}`);
  t.regex((await one.answer()) ?? '', /cancelled/);
  t.regex((await one.exchange(cross(1, 1))) ?? '', /^HTTP\/1\.1 200 OK/);
});
