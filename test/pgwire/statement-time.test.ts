/**
 * The time of a statement runs from its first message on, through Parse, Bind and Execute; that of
 * the next statement begins anew.
 */
import test from 'ava';

import { start } from './harness.js';
import { clientMessage, RawClient } from './raw-client.js';

/** Long enough that a busy machine does not take it for the times that are compared with it. */
const PREPARING_MS = 1500;

const parse = (name: string, text: string): Buffer => clientMessage('P', name, text, [0]);
const bind = (name: string): Buffer => clientMessage('B', '', name, [0], [0], [0]);
const EXECUTE = clientMessage('E', '', 0);
const SYNC = clientMessage('S');

test('one time for Parse, Bind and Execute of a statement', async (t) => {
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
    'Execute has what Parse left of it',
  );
  t.is(of('execute', slow).length, 1);
  // Its own Parse came with the first statement's, and waited for it: that is not its time.
  t.true(of('prepare', 'rows 2').every((ms) => ms < PREPARING_MS));
  t.true(of('execute', 'rows 2').every((ms) => ms < PREPARING_MS));
  client.close();
  await server.close();
});

test('the texts of one query message have times of their own', async (t) => {
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
