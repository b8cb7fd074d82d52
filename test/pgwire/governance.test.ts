/**
 * Listener limits (login time, idle time, slow readers), and the permissions needed to cancel and
 * terminate.
 */
import { existsSync } from 'node:fs';

import test from 'ava';
import type pg from 'pg';

import { startTestServer } from '../golden/server.js';
import { residentBytes } from '../torture/process.js';
import { until } from '../until.js';
import { start } from './harness.js';
import { clientMessage, errorFields, RawClient, startup } from './raw-client.js';
import { pgClient } from '../pg-client.js';

const addon = existsSync(new URL('../../../native/index.js', import.meta.url));
const real = addon ? test.serial : test.serial.skip;
const MEBIBYTE = 1024 * 1024;

test('a connection over the limit gets 53300; closing one frees its slot', async (t) => {
  const { port, server } = await start({ connectionsMax: 2 });
  const first = await RawClient.login(port);
  const second = await RawClient.login(port);
  const third = await RawClient.open(port);
  third.send(startup('admin'));
  t.is(errorFields((await third.until('-'))[0])['C'], '53300');
  first.send(clientMessage('X'));
  t.is(await first.next(), null);
  let admitted = false;
  while (!admitted) {
    const next = await RawClient.open(port);
    next.send(startup('admin'));
    admitted = (await next.next())?.type === 'R';
    next.close();
  }
  second.close();
  await server.close();
  t.pass();
});

test('a slow login gets 57014 and an idle transaction gets 57P05', async (t) => {
  const { port, server, engine } = await start({ loginMs: 100, idleMs: 150 });
  for (const sent of [Buffer.alloc(0), startup('admin')]) {
    const late = await RawClient.open(port);
    late.send(sent);
    const last = (await late.until('-')).at(-1);
    t.is(errorFields(last)['C'], '57014');
    t.regex(errorFields(last)['M'] ?? '', /login took too long/);
  }
  const idle = await RawClient.login(port);
  idle.send(clientMessage('Q', 'begin; insert'));
  await idle.until('Z');
  t.is(errorFields((await idle.until('-')).at(-1))['C'], '57P05');
  t.deepEqual(engine.journal.committed, []);
  t.is(engine.journal.rolledBack, 1);
  await server.close();
});

test('a client that does not read its rows is disconnected', async (t) => {
  const { port, server, engine } = await start({ stallMs: 200 });
  const client = await RawClient.login(port);
  client.socket.pause();
  client.send(clientMessage('Q', 'rows 20000000'));
  const { journal } = engine;
  await until(
    () => journal.rowsEncoded > 0 && journal.streamsOpen === 0,
    'the client is disconnected',
  );
  t.true(journal.rowsEncoded < 20_000_000);
  client.close();
  await server.close();
});

async function failure(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return 'done';
  } catch (error) {
    return (error as pg.DatabaseError).code ?? String(error);
  }
}

const SLOW = 'SELECT sum(sqrt(x)) FROM long_sequence(100000000000)';

real('statements time out and can be cancelled by backend pid', async (t) => {
  const server = await startTestServer({ set: ['pg.readonly.user.enabled=true'] });
  const connect = async (user = 'admin', options?: string): Promise<pg.Client> => {
    const client = pgClient(server.pg, { user, ...(options === undefined ? {} : { options }) });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };
  const one = async (client: pg.Client, text: string): Promise<unknown> => {
    const { rows } = await client.query<unknown[]>({ text, rowMode: 'array' });
    return rows[0]?.[0];
  };
  try {
    const hasty = await connect('admin', '-c statement_timeout=100');
    t.is(await failure(hasty.query(SLOW)), '57014');
    await hasty.query('SET statement_timeout = 50');
    t.is(await failure(hasty.query(SLOW)), '57014');
    t.is(await one(hasty, 'SELECT 7::int'), 7);
    await hasty.end();

    const [victim, master, reader] = [await connect(), await connect(), await connect('user')];
    const number = Number(await one(victim, 'SELECT pg_backend_pid()'));
    t.true(number > 0);
    t.not(number, Number(await one(master, 'SELECT pg_backend_pid()')));
    t.is(await one(master, 'SELECT pg_cancel_backend(1)'), false);
    t.is(await failure(reader.query(`SELECT pg_cancel_backend(${number})`)), '25006');
    const running = failure(victim.query(SLOW));
    const isRunning = `SELECT count() FROM query_activity() WHERE query = '${SLOW}'`;
    while (Number(await one(master, isRunning)) === 0) {
      // Polls until the query runs.
    }
    t.is(await one(master, `SELECT pg_catalog.pg_cancel_backend(${number});`), true);
    t.is(await running, '57014');
    t.is(await one(victim, 'SELECT 8::int'), 8);
    const ended = failure(victim.query(SLOW));
    while (Number(await one(master, isRunning)) === 0) {
      // Polls until the query runs.
    }
    t.is(await one(master, `SELECT pg_terminate_backend(${number}, 1000)`), true);
    t.is(await ended, '57P01');
    while (Number(await one(master, isRunning)) > 0) {
      // Polls until the statement has ended.
    }
    t.is(await one(master, `SELECT pg_terminate_backend(${number})`), false);
    await Promise.all([master.end(), reader.end()]);
  } finally {
    await server.stop();
  }
});

real('500 idle connections use at most 50 MiB', async (t) => {
  t.timeout(120_000);
  const server = await startTestServer({
    set: ['pg.auth.method=cleartext', 'pg.net.connection.limit=600'],
  });
  const port = Number(server.pg.split(':').at(-1));
  try {
    const open = async (count: number): Promise<RawClient[]> => {
      const clients: RawClient[] = [];
      for (let index = 0; index < count; index += 1) {
        const client = await RawClient.login(port);
        client.send(clientMessage('Q', 'SELECT 1'));
        await client.until('Z');
        clients.push(client);
      }
      return clients;
    };
    // The memory of the first connections includes one-time costs.
    const first = await open(50);
    const before = residentBytes(server);
    const clients = await open(500);
    const used = (residentBytes(server) - before) / MEBIBYTE;
    t.log(`${used.toFixed(1)} MiB, ${((used * 1024) / 500).toFixed(1)} KiB each`);
    t.true(used <= 50, `${used.toFixed(1)} MiB`);
    [...first, ...clients].forEach((client) => {
      client.close();
    });
  } finally {
    await server.stop();
  }
});
