import test, { type ExecutionContext } from 'ava';
import { SqlError, type LiveQuery } from '../src/api/client.js';
import type { ServerEvent } from '../src/api/events.js';
import { answerSource } from '../src/follow/answers.js';
import { lastRows, type Followed } from '../src/follow/source.js';

const FOLLOWED: Followed = { table: 'Query 1', query: 'SELECT a FROM t -- all\n;', rows: 3 };

function event(name: string, data: object): ServerEvent {
  return { name, id: undefined, data: JSON.stringify({ name: 'rows', ...data }) };
}

const COLUMNS = [{ name: 'a', type: 'LONG' }];
const ANSWER = event('answer', { columns: COLUMNS, dataset: [[1], [2]] });

/** Follows a server whose streams send the given events, one list per stream. */
function followed(...streams: (readonly ServerEvent[] | Error)[]) {
  const received: unknown[] = [];
  const requested: LiveQuery[] = [];
  let open = 0;
  let polled = 0;
  const source = answerSource(FOLLOWED, {
    async *live(query, signal) {
      requested.push(query);
      const next = streams.shift() ?? [];
      if (next instanceof Error) {
        throw next;
      }
      open += 1;
      try {
        yield* next;
        // The last stream remains open.
        while (streams.length === 0 && !signal.aborted) {
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
      } finally {
        open -= 1;
      }
    },
    poll: async (_, signal) => {
      polled += 1;
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    },
  });
  const { close } = source.subscribe({
    rows: (head, rows) => received.push([head.columns, rows]),
    same: () => undefined,
    polled: (reason) => reason !== undefined && received.push(reason),
    failed: (message, isLost, retryMs) => received.push([message, isLost, retryMs]),
  });
  return { heard: received, requested, open: () => open, polled: () => polled, close };
}

async function until(t: ExecutionContext, holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 600 && !holds(); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  t.true(holds());
}

test('the query for the last rows wraps the original, including its comments', (t) => {
  t.is(lastRows(FOLLOWED), 'SELECT * FROM (SELECT a FROM t -- all\n) LIMIT -3');
});

test('results arrive as rows, and closing stops all requests', async (t) => {
  const { heard, requested, open, close } = followed([
    event('alive', {}),
    ANSWER,
    event('alive', {}),
  ]);
  await until(t, () => heard.length === 1);
  t.deepEqual(heard, [[COLUMNS, [[1], [2]]]]);
  t.deepEqual(requested, [{ name: 'rows', query: lastRows(FOLLOWED), everyMs: 1000 }]);
  t.is(open(), 1);
  close();
  await until(t, () => open() === 0);
  await new Promise((resolve) => setTimeout(resolve, 20));
  t.is(requested.length, 1);
});

test('the error of a failed query is reported and the stream continues', async (t) => {
  const failed = event('failed', { error: 'table does not exist [table=t]', position: 3 });
  const { heard, requested, close } = followed([ANSWER, failed, ANSWER]);
  await until(t, () => heard.length === 3);
  t.deepEqual(heard[1], ['table does not exist [table=t]', false, 5000]);
  t.deepEqual(heard[2], heard[0]);
  t.is(requested.length, 1);
  close();
});

test('a stream that breaks off is reopened', async (t) => {
  const { heard, requested, close } = followed([ANSWER], [ANSWER]);
  await until(t, () => heard.length === 3);
  t.deepEqual(heard[1], ['The result stream was interrupted.', true, 1000]);
  t.is(requested.length, 2);
  close();
});

test('the server is polled when it has no capacity for another stream', async (t) => {
  const busy = new SqlError('too many feeds', undefined, 503);
  const { heard, polled, close } = followed(busy);
  await until(t, () => polled() === 1);
  t.regex(String(heard[0]), /reached its stream limit.*Polling every second/);
  close();
});

test('polling does not start when a sign-in is required', async (t) => {
  const out = new SqlError('You are not signed in.', undefined, 401);
  const { heard, polled, close } = followed(out, [ANSWER]);
  await until(t, () => heard.length === 2);
  t.deepEqual(heard[0], ['You are not signed in.', false, 1000]);
  t.is(polled(), 0);
  close();
});
