/**
 * Calls every function in the registry, by its signatures, with arguments that need a lot of memory
 * and time: one long string, many long strings, all equal, all distinct, no rows. Each call is
 * answered or refused without an internal error. The process stays within its memory limit and
 * answers other clients in the meantime. `npm test` samples one signature and one shape for every
 * third function, depending on the seed. With ADVERSARIAL_SHAPES=all every signature is called with
 * every shape (`npm run long-limits`).
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { suiteSeed } from '../seed.js';
import { rowsOf } from './client.js';
import { peakMegabytes, timed } from './measure.js';

const seed = suiteSeed();
const isFull = process.env['ADVERSARIAL_SHAPES'] === 'all';
const TIMEOUT_MS = isFull ? 2000 : 200;
/** Allowed delay after the timeout on a busy machine, in milliseconds. */
const LATE_MS = 8000;
const MORE_MEGABYTES = 512;
const PING_MS = 50;
/** Functions that affect the whole server, or are not called with values. */
const NOT_CALLED = /^(?:cancel_query|pg_cancel|pg_terminate|flush_query_cache|reload_|pg_sleep)/;

/** Errors that mean the arguments did not match the signature, so nothing was tested. */
const UNMATCHED = /no matching function|unknown function|wrong number of arguments|must be/;
/** Maximum fraction of functions whose arguments may fail to match. */
const MAX_UNMATCHED = 0.1;

/** Sources of arguments. In each, `t` is a string, `i` a number, `a` an array and `b` bytes. */
const SHAPES: readonly string[] = [
  // One long string.
  `(select concat(${Array.from({ length: 64 }, () => 't').join(',')}) t, i, ts, a, b, s from
    (select rpad('x', 1000000, 'xy ') t, 1 i, 0::timestamp ts, array_build(1, 1000000, 0.5) a,
      rnd_bin(1000000, 1000000, 0) b, 'k'::symbol s from long_sequence(1)))`,
  // Many long strings, all distinct.
  `(select rpad(x::varchar, 1000000, 'xy ') t, x i, x::timestamp ts,
    rnd_double_array(1, 0, 0, 100000) a, rnd_bin(100000, 100000, 0) b, rnd_symbol('a', 'b') s
    from long_sequence(100000))`,
  // Many long strings, all equal.
  `(select rpad('x', 1000000, 'xy ') t, 7 i, 7::timestamp ts, array_build(1, 100000, 1.5) a,
    rnd_bin(100000, 100000, 0) b, 'k'::symbol s from long_sequence(100000))`,
  // Many short strings, all distinct.
  `(select x::varchar t, x i, x::timestamp ts, array[x, -x] a, rnd_bin(1, 9, 0) b,
    rnd_symbol('a', 'b') s from long_sequence(100000000))`,
  // No rows.
  `(select x::varchar t, x i, x::timestamp ts, array[x, -x] a, rnd_bin(1, 9, 0) b,
    rnd_symbol('a', 'b') s from long_sequence(10) where x < 0)`,
];

/** Argument for each type in a signature. */
const ARGUMENTS: readonly (readonly [type: RegExp, argument: string])[] = [
  [/\[|array/i, 'a'],
  [/^(?:varchar|string|text|any|value|key|separator)/i, 't'],
  [/^binary/i, 'b'],
  [/^symbol/i, 's'],
  [/^(?:timestamp|date|time)/i, 'ts'],
  [/^(?:int|short|byte)/i, '1000000'],
  [/^(?:p|digits|places)$/i, '1'],
  [/^boolean/i, 'i > 5'],
  [/^char/i, "'x'::char"],
  [/^uuid/i, 'rnd_uuid4()'],
  [/^long256/i, 'rnd_long256()'],
  [/^ipv4/i, 'rnd_ipv4()'],
  [/^geohash/i, 'rnd_geohash(20)'],
  [/^interval/i, "interval('1970-01-01', '2200-01-01')"],
  [/./, 'i'],
];

function argumentOf(type: string): string {
  return ARGUMENTS.find(([name]) => name.test(type))?.[1] ?? 'i';
}

/** Number of arguments for a variadic parameter. */
const REPEATED = Array.from({ length: 8 });

interface Call {
  readonly kind: string;
  readonly name: string;
  readonly text: string;
}

/**
 * Builds a call from a signature: `round(DOUBLE [, INT]) -> DOUBLE` becomes `round(i, 1000000)`.
 */
function callOf(kind: string, signature: string): Call {
  const [, name = '', list = ''] = /^([^(]+)\((.*?)\)(?: ->|$)/.exec(signature) ?? [];
  const types = list
    .replaceAll(/\w*\[[\]…[]*\]/g, 'array')
    .replaceAll(/[[\]]/g, '')
    .split(',')
    .map((type) => type.trim())
    .filter((type) => type !== '');
  const args = types.flatMap((type, at) =>
    type === '…' ? REPEATED.map(() => argumentOf(types[at - 1] ?? '')) : argumentOf(type),
  );
  return { kind, name, text: `${name}(${args.join(', ')})` };
}

/** Counts rows in a way that reads every value, whatever its type. */
const COUNT = 'sum(case when r is null then 0 else 1 end)';

/** Builds a statement that computes the whole call but returns little. */
function statementOf({ kind, text }: Call, shape: string): string {
  switch (kind) {
    case 'GROUP_BY':
      return `select ${text} r from ${shape}`;
    case 'WINDOW':
      return `select ${COUNT} from (select ${text} over (order by i) r from ${shape})`;
    default:
      return `select ${COUNT} from (select ${text} r from ${shape})`;
  }
}

let server: TestServer;

test.before(async () => {
  server = await startTestServer({
    set: [
      'memory.limit=1500M',
      'query.memory.pool=256M',
      'query.memory.limit=96M',
      'shared.query.worker.count=2',
      'log.level=error',
    ],
  });
});

test.after.always(async () => {
  await server.stop();
});

async function calls(): Promise<Call[]> {
  const list = "select type, signature from functions() where type != 'CURSOR' order by signature";
  const rows = await rowsOf(server, list);
  const found = rows.map(([kind, signature]) => callOf(String(kind), String(signature)));
  // A call without string or array arguments cannot be made large.
  const expected = found.filter(
    ({ kind, name, text }) =>
      !NOT_CALLED.test(name) && (kind !== 'STANDARD' || /[(,] ?[tab][,)]/.test(text)),
  );
  if (isFull) {
    return expected;
  }
  const names = [...new Set(expected.map(({ name }) => name))];
  return names
    .filter((_, at) => at % 3 === seed % 3)
    .flatMap((name) => {
      const ofName = expected.filter((call) => call.name === name);
      const at = seed % ofName.length;
      return ofName.slice(at, at + 1);
    });
}

test('no function call exhausts the memory, or runs past its timeout', async (t) => {
  t.timeout(3_600_000);
  const list = await calls();
  t.true(list.length > 50, `${list.length} calls`);
  const unmatched: string[] = [];
  const before = await peakMegabytes(server);
  const pings: number[] = [];
  const state = { ended: false };
  const pinging = ping(pings, state);
  let [refused, answered] = [0, 0];
  for (const [index, call] of list.entries()) {
    const one = SHAPES[(index + seed) % SHAPES.length] ?? '';
    for (const shape of isFull ? SHAPES : [one]) {
      const statement = statementOf(call, shape);
      const { answer, ms } = await timed(server, statement, TIMEOUT_MS);
      const shown = `${statement}: ${answer.slice(0, 200)}`;
      t.regex(answer, /^(?:200|400|503) /, shown);
      t.notRegex(answer, /internal error/, shown);
      t.true(ms < TIMEOUT_MS + LATE_MS, `${Math.round(ms)} ms: ${shown}`);
      const grown = (await peakMegabytes(server)) - before;
      if (grown >= MORE_MEGABYTES) {
        t.fail(`${grown} MiB more: ${shown}`);
        return;
      }
      if (UNMATCHED.test(answer)) {
        unmatched.push(shown);
      }
      [refused, answered] = answer.startsWith('200')
        ? [refused, answered + 1]
        : [refused + 1, answered];
    }
  }
  state.ended = true;
  await pinging;
  const median = pings.sort((a, b) => a - b)[pings.length >> 1] ?? 0;
  t.true(median < PING_MS, `/ping takes ${median.toFixed(1)} ms`);
  t.true(unmatched.length < list.length * MAX_UNMATCHED, unmatched.join('\n'));
  const grown = (await peakMegabytes(server)) - before;
  t.log(
    `${list.length} calls: ${answered} answered, ${refused} refused; ${grown} MiB more at the ` +
      `peak; /ping in ${median.toFixed(1)} ms`,
  );
});

async function ping(times: number[], state: { ended: boolean }): Promise<void> {
  while (!state.ended) {
    const began = performance.now();
    await (await fetch(`${server.url}/ping`)).arrayBuffer();
    times.push(performance.now() - began);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
