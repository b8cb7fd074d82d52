/**
 * A statement timeout covers the statement's Parse, Bind and Execute, and starts again with the
 * next statement.
 */
import test from 'ava';

import { start } from './harness.js';
import { clientMessage, RawClient } from './raw-client.js';

/** Long enough to stand out from delays on a busy machine. */
const PREPARING_MS = 1500;

const parse = (name: string, text: string): Buffer => clientMessage('P', name, text, [0]);
const bind = (name: string): Buffer => clientMessage('B', '', name, [0], [0], [0]);
const EXECUTE = clientMessage('E', '', 0);
const SYNC = clientMessage('S');

test("a statement's Parse, Bind and Execute share one time limit", async (t) => {
  const { port, server, engine } = await start();
  const client = await RawClient.login(port);
  const slow = `rows 1 ms=${PREPARING_MS}`;
  client.send(parse('a', slow), bind('a'), EXECUTE, parse('b', 'rows 2'), bind('b'), EXECUTE, SYNC);
  await client.until('Z');
  const { elapsedMs } = engine.journal;
  const of = (step: string, text: string): number[] =>
    elapsedMs.flatMap(([at, which, ms]) => (at === step && which === text ? [ms ?? -1] : []));
  t.true(of('prepare', slow).every((ms) => ms < PREPARING_MS));
  t.true(
    of('execute', slow).every((ms) => ms >= PREPARING_MS - 1),
    'Execute gets the time left over by Parse',
  );
  t.is(of('execute', slow).length, 1);
  // The statement's Parse arrived together with the first statement's and had to wait for that
  // statement. This wait does not count.
  t.true(of('prepare', 'rows 2').every((ms) => ms < PREPARING_MS));
  t.true(of('execute', 'rows 2').every((ms) => ms < PREPARING_MS));
  client.close();
  await server.close();
});

test('each statement in a simple query has its own time limit', async (t) => {
  const { port, server, engine } = await start();
  const client = await RawClient.login(port);
  client.send(clientMessage('Q', `rows 1 ms=${PREPARING_MS}; rows 2`));
  await client.until('Z');
  const late = engine.journal.elapsedMs.filter(
    ([step, text, ms]) => step === 'execute' && (ms ?? 0) >= PREPARING_MS && text === 'rows 2',
  );
  t.deepEqual(late, []);
  client.close();
  await server.close();
});

test('the values of an EXECUTE and its statement share one time limit', async (t) => {
  const { port, server, engine } = await start();
  const client = await RawClient.login(port);
  client.send(clientMessage('Q', 'PREPARE p(text, text) AS echo $1 $2'));
  await client.until('Z');
  client.send(clientMessage('Q', `EXECUTE p(rows 1 ms=${PREPARING_MS}, x)`));
  t.is(await client.types(), 'TDCZ');
  const executions = engine.journal.elapsedMs.filter(
    ([step, text]) => step === 'execute' && text.startsWith('echo'),
  );
  t.is(executions.length, 1);
  t.true((executions[0]?.[2] ?? 0) >= PREPARING_MS - 1);
  client.close();
  await server.close();
});
