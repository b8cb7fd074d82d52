/** JDBC sinks of Kafka Connect that are not in a package registry: their recorded messages. */
import { readFileSync } from 'node:fs';

import test from 'ava';

import { ADMIN, rows, run as runAll, startAccessServer } from '../access/harness.js';
import type { TestServer } from '../golden/server.js';
import { RawClient } from '../pgwire/raw-client.js';
import { blocksOf } from './pages.js';
import { type RecordedSink, SINKS_FILE } from './kafka-sinks.js';

const sinks = JSON.parse(readFileSync(SINKS_FILE, 'utf8')) as Record<string, RecordedSink>;
let server: TestServer;

test.before(async () => {
  server = await startAccessServer(undefined, 'pg.auth.method=cleartext');
  const [account = ''] = await blocksOf('kafka-connect', 'sql');
  await runAll(server, ...account.split(/;\s*/).filter((one) => one !== ''));
});
test.after.always(() => server.stop());

for (const [name, { config, connections }] of Object.entries(sinks)) {
  test.serial(`${name}: the recorded messages create, fill and widen a table`, async (t) => {
    const blocks = await blocksOf('kafka-connect', 'properties');
    t.is(config, blocks.at(-1) ?? '', 'the page has the recorded configuration');
    for (const groups of connections) {
      const client = await RawClient.login(Number(server.pg.split(':').at(-1)), 'kafka', 'secret');
      for (const group of groups) {
        client.send(Buffer.from(group, 'base64'));
        const answers = await client.until('Z');
        const error = answers.find(({ type }) => type === 'E');
        t.is(error?.body.toString(), undefined);
        t.is(answers.at(-1)?.type, 'Z');
      }
      client.close();
    }
    t.deepEqual(await rows(server, ADMIN, 'SELECT ts, sensor, value, note FROM readings'), [
      ['2026-01-01T10:00:00.000000Z', 'north', 9.5, 'new'],
      ['2026-01-01T10:00:01.000000Z', 'south', 2.5, null],
      ['2026-01-01T10:00:02.000000Z', 'south', 3.5, null],
    ]);
    await runAll(server, 'DROP TABLE readings');
  });
}

test('both sinks are recorded', (t) => {
  t.deepEqual(Object.keys(sinks), ['aiven', 'confluent']);
});
