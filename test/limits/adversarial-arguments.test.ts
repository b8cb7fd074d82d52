/**
 * Calls every function with edge values of its argument types: minimum, maximum, 0, -1, non-finite,
 * null, unusual strings. Each call must return a value or a refusal that refers to the statement.
 * No call may crash the server, panic, or run for long. The calls are generated from the server's
 * list of functions.
 */
import test from 'ava';

import { internalWord } from '../internal-words.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { rows } from '../scenario/statements.js';

const TEXTS = ["''", "'x'", "'-'", "'[[('", "'9223372036854775808'", "'%1$s\u{1f600}'", 'null'];
const TIMES = [
  'cast(9223372036854775807 as timestamp)',
  'cast(-9223372036854775807 as timestamp)',
  'cast(0 as timestamp)',
  'cast(null as timestamp)',
];

/** Edge values by parameter type name. */
const EDGES: Readonly<Record<string, readonly string[]>> = {
  BOOLEAN: ['true', 'false'],
  BYTE: ['-128::byte', '127::byte', '0::byte', '-1::byte'],
  SHORT: ['-32768::short', '32767::short', '0::short', '-1::short'],
  CHAR: ["'a'", "'\u{ffff}'", "' '", 'cast(null as char)'],
  INT: ['2147483647', '-2147483647', '0', '-1', 'cast(null as int)', '1'],
  LONG: ['9223372036854775807', '-9223372036854775807', '0', '-1', 'cast(null as long)'],
  FLOAT: ['3.4e38f', '-3.4e38f', '1e-45f', '0.0f', "cast('NaN' as float)"],
  DOUBLE: ['1.7976931348623157e308', '-1.7976931348623157e308', '5e-324', '0.0', '-1.0'],
  DATE: ['cast(9223372036854775807 as date)', 'cast(-9223372036854775807 as date)', 'null::date'],
  TIMESTAMP: TIMES,
  TIMESTAMP_NS: TIMES.map((time) => time.replace('timestamp', 'timestamp_ns')),
  SYMBOL: TEXTS,
  STRING: TEXTS,
  VARCHAR: TEXTS,
  UUID: ["'00000000-0000-0000-0000-000000000000'::uuid", 'null::uuid'],
  IPv4: ["'255.255.255.255'::ipv4", "'0.0.0.0'::ipv4", 'null::ipv4'],
  LONG256: ['0x00', 'cast(null as long256)'],
  DECIMAL: ['99999999999999999999999999999999999999m', '-0.0000000001m', '0m'],
  'DOUBLE[…]': ['ARRAY[1.0]', 'ARRAY[[1.0],[2.0]]', 'ARRAY[1.7e308, -1.7e308]', 'null::double[]'],
  'DOUBLE[]': ['ARRAY[1.0, null]', 'ARRAY[1e308]', 'null::double[]'],
  BINARY: ['null'],
  ANY: ['2147483647', "''", 'null', '-1.0', 'true', 'ARRAY[1.0]', '9223372036854775807'],
};
/** Accepted response statuses: success, refusal, busy server, or size limit. */
const STATUSES: ReadonlySet<number> = new Set([200, 400, 403, 503, 507]);
const TIMEOUT_MS = 5_000;
const AT_ONCE = 4;
/** Functions that act on the server or that wait. */
const NOT_CALLED = /sleep|cancel|terminate|simulate|flush|reload|hydrate|kill|crash|dump_/;

interface Signature {
  readonly name: string;
  readonly argumentTypes: readonly string[];
  readonly kind: string;
}

/** Parses `name(TYPE, TYPE, …) -> TYPE`. */
function parsed(name: string, signature: string, kind: string): Signature {
  const list = /\(([^()]*(?:\([^()]*\)[^()]*)*)\)/.exec(signature)?.[1] ?? '';
  const argumentTypes = list
    .split(',')
    .map((type) => type.trim())
    .filter((type) => type !== '' && type !== '…');
  return { name, argumentTypes, kind };
}

function edgesOf(type: string): readonly string[] {
  const bare = /^[\w[\]…]+/.exec(type)?.[0] ?? '';
  return EDGES[type] ?? EDGES[bare] ?? EDGES[bare.toUpperCase()] ?? EDGES['ANY'] ?? [];
}

/**
 * Returns calls in which every argument cycles through its edge values. The cycles are shifted
 * against each other, so that different combinations occur.
 */
function calls({ name, argumentTypes, kind }: Signature): readonly string[] {
  const edges = argumentTypes.map(edgesOf);
  const rounds = Math.max(1, ...edges.map(({ length }) => length));
  const texts: string[] = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const shift of argumentTypes.length > 1 ? [0, 1, 2] : [0]) {
      const values = edges.map((own, at) => own[(round + at * shift) % own.length] ?? 'null');
      const byRow = values.map((value) => `CASE WHEN x > 0 THEN ${value} END`);
      const call = (given: readonly string[]): string => `${name}(${given.join(', ')})`;
      if (kind === 'CURSOR') {
        texts.push(`SELECT * FROM ${call(values)} LIMIT 3`);
      } else if (kind === 'WINDOW') {
        texts.push(`SELECT ${call(values)} OVER () FROM long_sequence(2)`);
      } else if (shift === 1) {
        texts.push(`SELECT ${call(byRow)} FROM long_sequence(2)`);
      } else {
        texts.push(`SELECT ${call(values)} FROM long_sequence(2)`);
      }
    }
  }
  return [...new Set(texts)];
}

async function problemOf(server: TestServer, query: string): Promise<string | null> {
  const headers = { 'Statement-Timeout': String(TIMEOUT_MS) };
  const body = new URLSearchParams({ query });
  let reply;
  try {
    reply = await fetch(`${server.url}/exec`, { method: 'POST', body, headers });
  } catch (error) {
    return `no answer: ${String(error)}: ${query}`;
  }
  const text = await reply.text();
  const error = /"error":"(.*?)"(?:,"position"|\})/.exec(text)?.[1] ?? '';
  const inner = internalWord(error);
  if (!STATUSES.has(reply.status) || inner !== null) {
    return `${reply.status} ${inner ?? ''} ${error}: ${query}`;
  }
  return null;
}

test('no function crashes on any argument', async (t) => {
  t.timeout(600_000);
  const set = ['cairo.commit.mode=nosync', 'log.level=error', 'query.memory.pool=512M'];
  const server = await startTestServer({ set });
  try {
    const listed = await rows(server, 'SELECT name, signature, type FROM functions()');
    const signatures = listed
      .map(([name, signature, kind]) => parsed(String(name), String(signature), String(kind)))
      .filter(({ name }) => !NOT_CALLED.test(name));
    t.true(signatures.length > 300, `${signatures.length}`);
    const queries = signatures.flatMap(calls);
    const problems: string[] = [];
    let next = 0;
    const worker = async (): Promise<void> => {
      while (next < queries.length && server.process.exitCode === null) {
        const query = queries[next] ?? '';
        next += 1;
        const problem = await problemOf(server, query);
        if (problem !== null) {
          problems.push(problem);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    t.log(`${queries.length} calls of ${signatures.length} signatures`);
    t.is(server.process.exitCode, null, 'the server is alive');
    t.deepEqual(problems.slice(0, 40), []);
  } finally {
    await server.stop();
  }
});
