/**
 * npm run login-timing -- [--count N] [--seed S]
 *
 * Checks whether the time taken to refuse a login reveals that part of it was correct: a known
 * user, or the beginning of a password or token. Computes Welch's t for each interleaved pair;
 * above 4.5, an attacker could tell the two apart.
 */
import { request } from 'node:http';
import { parseArgs } from 'node:util';

import { run, startAccessServer } from '../access/harness.js';

const { values } = parseArgs({
  options: { count: { type: 'string', default: '10000' }, seed: { type: 'string', default: '1' } },
});
const count = Number(values.count);
const LIMIT = 4.5;
/**
 * The slowest times are discarded, because they come from pauses of the machine rather than from
 * logins.
 */
const KEPT_FRACTION = 0.9;

const server = await startAccessServer();
await run(server, "CREATE USER ann WITH PASSWORD 'a good password'");
const { hostname, port } = new URL(server.url);

let state = Number(values.seed) >>> 0;
function random(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
}

let address = 0;
/**
 * Returns the time until the refusal. Each attempt uses a different address, because after too many
 * attempts an address is refused without a check.
 */
function microsOf(authorization: string): Promise<number> {
  address += 1;
  const localAddress = `127.${1 + ((address >> 16) & 127)}.${(address >> 8) & 255}.${address & 255}`;
  return new Promise((resolve, reject) => {
    const headers = { Authorization: authorization };
    const path = '/exec?query=select%201';
    const call = request({ hostname, port, path, headers, localAddress, agent: false });
    let start = 0n;
    call.on('socket', (socket) => {
      socket.on('connect', () => {
        start = process.hrtime.bigint();
      });
    });
    call.on('response', (response) => {
      const micros = Number(process.hrtime.bigint() - start) / 1000;
      response.resume();
      response.on('end', () => {
        if (response.statusCode === 401) {
          resolve(micros);
        } else {
          reject(new Error(`answered ${response.statusCode ?? 0}, expected a refusal`));
        }
      });
    });
    call.on('error', reject);
    call.end();
  });
}

function meanAndVariance(times: number[]): [mean: number, variance: number, count: number] {
  const kept = times.sort((a, b) => a - b).slice(0, Math.floor(times.length * KEPT_FRACTION));
  const mean = kept.reduce((sum, time) => sum + time, 0) / kept.length;
  const squares = kept.reduce((sum, time) => sum + (time - mean) ** 2, 0);
  return [mean, squares / (kept.length - 1), kept.length];
}

async function compare(what: string, one: string, other: string): Promise<boolean> {
  const times: [number[], number[]] = [[], []];
  for (let round = 0; round < count; round += 1) {
    const first = random() < 0.5 ? 0 : 1;
    for (const which of first === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      times[which].push(await microsOf(which === 0 ? one : other));
    }
  }
  const [a, b] = times.map(meanAndVariance);
  if (a === undefined || b === undefined) {
    return false;
  }
  const t = (a[0] - b[0]) / Math.sqrt(a[1] / a[2] + b[1] / b[2]);
  const means = `${a[0].toFixed(1)} and ${b[0].toFixed(1)} µs`;
  process.stdout.write(`${what.padEnd(44)} ${means}, t = ${t.toFixed(2)}\n`);
  return Math.abs(t) < LIMIT;
}

const basic = (login: string): string => `Basic ${Buffer.from(login).toString('base64')}`;
const fine = [
  await compare('known and unknown user', basic('ann:wrong'), basic('bob:wrong')),
  await compare('beginning of the password, or not', basic('ann:a good'), basic('ann:xxxxxx')),
  await compare(
    'beginning of the token, or not',
    'Bearer tdm_0123456789abcdex',
    'Bearer tdm_xxxxxxxxxxxxxxxx',
  ),
];
await server.stop();
process.exitCode = fine.every(Boolean) ? 0 : 1;
