/**
 * Connections handed off to the engine. Responses must be byte-identical to those without handoffs,
 * regardless of the client's other messages and of how its connection ends.
 */
import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { suiteSeed } from '../seed.js';
import { until } from '../until.js';
import { clientMessage, errorFields, RawClient } from './raw-client.js';
import {
  answers,
  bind,
  type BindOptions,
  DESCRIBE,
  EXECUTE,
  FLUSH,
  handedOff,
  login,
  parse,
  run,
  shown,
  startBoth,
  SYNC,
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
  'CREATE TABLE numbers AS (SELECT x FROM long_sequence(10))',
];

interface Case {
  readonly text: string;
  readonly types?: readonly number[];
  readonly rows: readonly (readonly (string | Buffer | null)[])[];
  readonly options?: BindOptions;
}

function int64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes;
}

const CASES: readonly Case[] = [
  {
    text: 'SELECT * FROM trades WHERE ts = $1',
    rows: [['2024-01-01 00:00:07'], ['2024-01-01 00:00:08'], ['1999-01-01'], [null]],
  },
  {
    text: 'SELECT * FROM trades WHERE symbol = $1 LATEST ON ts PARTITION BY symbol',
    rows: [['S3'], ['S4'], ['missing'], ['']],
  },
  {
    text: 'SELECT * FROM trades WHERE ts < $1 ORDER BY ts DESC LIMIT 100',
    rows: [['2024-01-01 01:00:00'], ['2024-01-01 00:00:05']],
    options: { results: [1] },
  },
  {
    text:
      'SELECT ts, symbol, avg(price) FROM trades WHERE symbol = $1 AND amount > $2 ' +
      'SAMPLE BY 1h',
    types: [25, 20],
    rows: [
      ['S3', int64(5)],
      ['S4', int64(10_000)],
      [null, int64(1)],
    ],
    options: { formats: [0, 1], results: [1, 0, 1] },
  },
  {
    text: 'SELECT $1::varchar a, $2::long b, $3::double c, $4::boolean d',
    rows: [
      ['x', '5', '1.5', 'true'],
      ['ü', null, '-0.25', 'false'],
      [null, '-7', null, null],
    ],
  },
  { text: 'SELECT x FROM numbers', rows: [[], [], []] },
  {
    text: 'SELECT note, amount FROM trades WHERE amount <= $1 ORDER BY amount',
    rows: [['3'], ['0'], ['500'], ['20000']],
  },
];

for (const { text, types, rows, options } of CASES) {
  test(`answers have the same bytes with and without handoffs: ${text}`, async (t) => {
    const [a, b] = await Promise.all([login(handingOff), login(plain)]);
    t.teardown(() => {
      a.close();
      b.close();
    });
    const before = await handedOff(handingOff);
    for (const client of [a, b]) {
      t.regex(await typesOf(client, parse('q', text, types), SYNC), /^1Z$/);
    }
    for (let round = 0; round < 8; round += 1) {
      for (const values of rows) {
        const isDescribed = round % 2 === 1 ? [DESCRIBE] : [];
        const messages = [bind('q', values, options), ...isDescribed, EXECUTE, SYNC];
        const expected = await answers(b, messages);
        t.deepEqual(await answers(a, messages), expected, `${round}: ${String(values)}`);
      }
    }
    t.true(
      (await handedOff(handingOff)) > before + rows.length * 3,
      'the engine answered most statements',
    );
    t.is(await handedOff(plain), 0);
  });
}

async function typesOf(client: RawClient, ...messages: readonly Buffer[]): Promise<string> {
  client.send(...messages);
  return await client.types();
}

/** Executes a statement until the connection is handed off. */
async function warm(client: RawClient, messages: readonly Buffer[]): Promise<void> {
  const before = await handedOff(handingOff);
  for (let tries = 0; tries < 50; tries += 1) {
    await answers(client, messages);
    if (tries % 10 === 9 && (await handedOff(handingOff)) > before) {
      return;
    }
  }
  throw new Error('the connection is not handed off');
}

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

/**
 * Returns messages that a client may send, in any order and however fragmented, including messages
 * that cause errors.
 */
function step(rng: Dice): readonly Buffer[] {
  const names = ['one', 'many', 'time'];
  const name = rng.one(names);
  const values = rng.one<readonly (string | null)[]>(VALUES);
  const repeat = [bind(name, values), ...(rng.chance(0.3) ? [DESCRIBE] : []), EXECUTE];
  const good = [bind(name, [String(rng.below(30))]), EXECUTE];
  switch (rng.below(12)) {
    case 0:
      return [clientMessage('Q', rng.one(['SELECT 7', 'SELECT nothing', 'BEGIN', 'ROLLBACK', '']))];
    case 1:
      return [...good, FLUSH, ...good, SYNC];
    case 2:
      return [clientMessage('C', Buffer.from('S'), name), parse(name, TEXTS[name] ?? ''), SYNC];
    case 3:
      return [bind(name, ['5']), clientMessage('E', '', 2), EXECUTE, SYNC];
    case 4:
      return [EXECUTE, SYNC];
    case 5:
      return [...repeat, ...repeat, SYNC];
    case 6:
      return [...good, ...good, ...good, SYNC, ...good, SYNC];
    default:
      return [...good, SYNC];
  }
}

const VALUES = [['3'], ['17'], ['-1'], ['nonsense'], [null], ['4', '5'], ['1\u0000']];
const TEXTS: Readonly<Record<string, string>> = {
  one: 'SELECT symbol, price FROM trades WHERE amount = $1::long',
  many: 'SELECT * FROM trades WHERE amount < $1::long',
  time: 'SELECT dateadd($1::int, 1, ts) FROM trades LIMIT 3',
};

test('interleaved messages get the same answers as without handoffs', async (t) => {
  const rng = new Dice(suiteSeed());
  const clients = await Promise.all([login(handingOff), login(plain)]);
  t.teardown(() => {
    clients.forEach((client) => {
      client.close();
    });
  });
  const before = await handedOff(handingOff);
  const [a, b] = clients;
  const prepare = Object.entries(TEXTS).map(([name, text]) => parse(name, text));
  for (const client of clients) {
    await answers(client, [...prepare, SYNC]);
  }
  const good = [bind('one', ['3']), EXECUTE, SYNC];
  for (let round = 0; round < 600; round += 1) {
    if (round % 5 === 0) {
      // Sends enough executions to trigger a handoff, even after earlier handoffs were
      // unprofitable.
      for (const client of clients) {
        await answers(client, [clientMessage('Q', 'ROLLBACK')]);
        await answers(client, Array.from({ length: 70 }, () => good).flat());
        await answers(client, [...good, ...good, ...good]);
      }
    }
    const messages = Array.from({ length: 1 + rng.below(6) }, () => step(rng)).flat();
    const expected = await answers(b, messages);
    // The socket may deliver the bytes in arbitrary fragments.
    const bytes = Buffer.concat(messages);
    const cut = rng.below(bytes.length + 1);
    a.send(bytes.subarray(0, cut));
    if (rng.chance(0.5)) {
      await new Promise((resolve) => setTimeout(resolve, rng.below(3)));
    }
    a.send(bytes.subarray(cut));
    const got: string[] = [];
    for (const message of expected) {
      if (message.startsWith('Z ')) {
        got.push(...(await a.until('Z')).map(shown));
      }
    }
    t.deepEqual(got, expected, `round ${round}`);
  }
  t.true((await handedOff(handingOff)) > before + 300, 'the engine answered many statements');
});

test('a result with many chunks is returned completely', async (t) => {
  const client = await login(handingOff);
  t.teardown(() => {
    client.close();
  });
  await answers(client, [parse('n', 'SELECT x, x * 2 y FROM long_sequence($1::long)'), SYNC]);
  await warm(client, [bind('n', ['3']), EXECUTE, SYNC]);
  client.send(bind('n', ['300000']), EXECUTE, SYNC);
  const all = await client.until('Z');
  t.is(all.filter(({ type }) => type === 'D').length, 300_000);
  t.is(all.at(-2)?.body.toString(), 'SELECT 300000\0');
  t.is(await typesOf(client, bind('n', ['2']), EXECUTE, SYNC), '2DDCZ');
});

test('a query on a changed table returns new rows or reports changed columns', async (t) => {
  await run(handingOff, 'CREATE TABLE changing (a int, b int)');
  const client = await login(handingOff);
  t.teardown(() => {
    client.close();
  });
  await answers(client, [parse('c', 'SELECT * FROM changing WHERE a >= $1::int'), SYNC]);
  const messages = [bind('c', ['0']), EXECUTE, SYNC];
  await warm(client, messages);
  await run(handingOff, 'INSERT INTO changing VALUES (1, 2)');
  t.is(await typesOf(client, ...messages), '2DCZ');
  await warm(client, messages);
  await run(handingOff, 'ALTER TABLE changing ADD COLUMN d int');
  client.send(...messages);
  const [bound, error] = await client.until('Z');
  t.is(bound?.type, '2');
  t.is(errorFields(error)['C'], '0A000');
  await run(handingOff, 'DROP TABLE changing');
  client.send(...messages);
  t.regex(errorFields((await client.until('Z')).find(({ type }) => type === 'E'))['M'] ?? '', /./);
});

/** A query whose duration depends on its parameter. */
const LONG =
  'SELECT sum(a.x * b.x) FROM long_sequence($1::long) a CROSS JOIN long_sequence(20000) b';

async function handoffClient(t: ExecutionContext, text: string): Promise<[RawClient, Buffer]> {
  const client = await RawClient.open(Number(handingOff.pg.split(':').at(-1)));
  t.teardown(() => {
    client.close();
  });
  client.send(
    clientMessage('', 196_608, 'user', 'admin', Buffer.from([0])),
    clientMessage('p', 'quest'),
  );
  const key = (await client.until('Z')).find(({ type }) => type === 'K')?.body ?? Buffer.alloc(0);
  await answers(client, [parse('l', text), SYNC]);
  await warm(client, [bind('l', ['1']), EXECUTE, SYNC]);
  return [client, key];
}

const isRunning = async (): Promise<boolean> => {
  const rows = await run(handingOff, 'SELECT query FROM query_activity()');
  return rows.some(
    ([text]) => String(text).includes('CROSS JOIN') && !String(text).includes('_act'),
  );
};

test('a cancel request cancels a handed-off query', async (t) => {
  const [client, key] = await handoffClient(t, LONG);
  client.send(bind('l', ['10000000']), EXECUTE, SYNC);
  await until(isRunning, 'the query runs');
  const other = await RawClient.open(Number(handingOff.pg.split(':').at(-1)));
  other.send(clientMessage('', 80_877_102, key));
  const all = await client.until('Z');
  t.is(errorFields(all.find(({ type }) => type === 'E'))['C'], '57014');
  t.is(await typesOf(client, bind('l', ['1']), EXECUTE, SYNC), '2DCZ');
  other.close();
});

test('a handed-off query has a timeout', async (t) => {
  const [client] = await handoffClient(t, LONG);
  await answers(client, [clientMessage('Q', 'SET statement_timeout = 300')]);
  await warm(client, [bind('l', ['1']), EXECUTE, SYNC]);
  client.send(bind('l', ['10000000']), EXECUTE, SYNC);
  const all = await client.until('Z');
  t.regex(errorFields(all.find(({ type }) => type === 'E'))['M'] ?? '', /timeout/);
});

test('Terminate closes the connection, even during a query', async (t) => {
  for (const runs of [false, true]) {
    const [client, key] = await handoffClient(t, LONG);
    if (runs) {
      client.send(bind('l', ['10000000']), EXECUTE, SYNC);
      await until(isRunning, 'the query runs');
    }
    t.deepEqual(await run(handingOff, `SELECT pg_terminate_backend(${key.readInt32BE(0)})`), [
      [true],
    ]);
    const all = await client.until('never');
    t.is(errorFields(all.filter(({ type }) => type === 'E').at(-1))['C'], '57P01', String(runs));
  }
});

test('a client that disconnects cancels its query and frees its slot', async (t) => {
  const [client] = await handoffClient(t, LONG);
  client.send(bind('l', ['10000000']), EXECUTE, SYNC);
  await until(isRunning, 'the query runs');
  client.close();
  await until(async () => !(await isRunning()), 'the query has ended');
  t.pass();
});

test.serial('a paused reader does not increase memory use and later gets all rows', async (t) => {
  const [client] = await handoffClient(t, 'SELECT * FROM trades WHERE amount <= $1::long * 400');
  client.socket.pause();
  const before = (await memory()) / 2 ** 20;
  // About 70 MB of responses.
  const many = Array.from({ length: 3_000 }, () => [bind('l', ['1']), EXECUTE]).flat();
  client.send(...many, SYNC);
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  t.true(
    (await memory()) / 2 ** 20 - before < 40,
    'rows are not generated before the client reads them',
  );
  client.socket.resume();
  const all = await client.until('Z');
  t.is(all.filter(({ type }) => type === 'D').length, 3_000 * 400);
});

async function memory(): Promise<number> {
  const text = await (await fetch(`${handingOff.url}/metrics`)).text();
  return Number(/^\w*resident_bytes (\d+)/m.exec(text)?.[1] ?? Number.NaN);
}

test('a revoked right takes effect at the next statement', async (t) => {
  const acl = await startTestServer({
    set: ['acl.enabled=true', 'pg.auth.method=cleartext', 'metrics.enabled=true'],
  });
  t.teardown(() => acl.stop());
  const port = Number(acl.pg.split(':').at(-1));
  const admin = await RawClient.login(port);
  const order = (text: string): Promise<string[]> => answers(admin, [clientMessage('Q', text)]);
  for (const text of [
    'CREATE TABLE secrets (a int)',
    "CREATE USER ada WITH PASSWORD 'passw0rd-of-ada'",
    'GRANT PGWIRE TO ada',
    'GRANT SELECT ON secrets TO ada',
  ]) {
    await order(text);
  }
  const ada = await RawClient.login(port, 'ada', 'passw0rd-of-ada');
  await answers(ada, [parse('s', 'SELECT a FROM secrets WHERE a > $1::int'), SYNC]);
  const messages = [bind('s', ['0']), EXECUTE, SYNC];
  for (let round = 0; round < 5; round += 1) {
    const before = await handedOffIn(acl);
    for (let tries = 0; tries < 40; tries += 1) {
      t.is(await typesOf(ada, ...messages), '2CZ');
    }
    t.true((await handedOffIn(acl)) > before, `round ${round}`);
    await order('REVOKE SELECT ON secrets FROM ada');
    ada.send(...messages);
    const error = (await ada.until('Z')).find(({ type }) => type === 'E');
    t.is(errorFields(error)['C'], '42501');
    await order('GRANT SELECT ON secrets TO ada');
  }
  await order('ALTER USER ada DISABLE');
  ada.send(...messages);
  t.is((await ada.until('Z')).filter(({ type }) => type === 'D' || type === 'C').length, 0);
  ada.close();
  admin.close();
});

async function handedOffIn(server: TestServer): Promise<number> {
  const credentials = Buffer.from('admin:quest').toString('base64');
  const answer = await fetch(`${server.url}/metrics`, {
    headers: { authorization: `Basic ${credentials}` },
  });
  return Number(
    /^\w*fast_path_statements_total (\d+)/m.exec(await answer.text())?.[1] ?? Number.NaN,
  );
}

test('server shutdown completes running queries', async (t) => {
  const server = await startTestServer({
    set: ['pg.auth.method=cleartext', 'metrics.enabled=true'],
  });
  const clients = await Promise.all(Array.from({ length: 8 }, () => login(server)));
  const ends = clients.map(async (client) => {
    await answers(client, [parse('n', 'SELECT x FROM long_sequence($1::long)'), SYNC]);
    let complete = 0;
    for (;;) {
      client.send(bind('n', ['5']), EXECUTE, SYNC);
      const types = (await client.until('Z')).map(({ type }) => type).join('');
      if (types !== '2DDDDDCZ') {
        return { complete, types };
      }
      complete += 1;
    }
  });
  await until(async () => (await handedOff(server)) > 500, 'connections are handed off');
  const began = Date.now();
  t.is(await server.stop(), 0);
  t.true(Date.now() - began < 10_000);
  for (const { complete, types } of await Promise.all(ends)) {
    t.true(complete > 0);
    t.regex(types, /^E?$/, 'a response is complete or absent');
  }
});

test('a repeated locking query is refused in a read-only session', async (t) => {
  const client = await login(handingOff);
  t.teardown(() => {
    client.close();
  });
  const text = 'SELECT x FROM numbers WHERE x = $1';
  client.send(parse('plain', text), parse('locking', `${text} FOR UPDATE`), SYNC);
  t.is(await client.types(), '11Z');
  const run8 = async (name: string): Promise<void> => {
    for (let round = 0; round < 8; round += 1) {
      t.is(await typesOf(client, bind(name, ['1']), EXECUTE, SYNC), '2DCZ', name);
    }
  };
  await run8('locking');
  client.send(clientMessage('Q', 'SET default_transaction_read_only = on'));
  await client.until('Z');
  const before = await handedOff(handingOff);
  await run8('plain');
  t.true((await handedOff(handingOff)) > before, 'the engine answered some statements');
  client.send(bind('locking', ['1']), EXECUTE, SYNC);
  t.is(errorFields((await client.until('Z'))[1])['C'], '25006');
});
