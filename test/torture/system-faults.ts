/**
 * npm run system-faults -- [--runs N] [--seed S]
 *
 * The real server under `strace -e inject`: the k-th call of a kind that a thread makes fails,
 * with call, k and error drawn by the seed. No signal ends the process, and after a restart
 * without the tracer everything acknowledged is there.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { exitCode, startTestServer, type TestServer } from '../golden/server.js';
import { exec, importCsv } from './client.js';
import { Harness, type Random } from './harness.js';
import { Batch, COLUMNS, Ledger, summaryQuery, tableDefinition } from './ledger.js';
import { answers } from './tools.js';

const ERRORS = ['EIO', 'ENOSPC', 'EDQUOT', 'EMFILE', 'ENOMEM', 'EINTR'];
/** Calls the engine makes and Node, once started, does not, with how often a thread makes them. */
const CALLS: readonly (readonly [string, number])[] = [
  ['pwrite64', 14],
  ['fdatasync', 6],
  ['fsync', 4],
  ['rename,renameat,renameat2', 3],
  ['mkdir,mkdirat', 4],
  ['unlink,unlinkat', 3],
];

const harness: Harness = new Harness('system-faults', ['runs']);
const runs = harness.number('runs', 8);
/** Runs whose load reached the call that fails. */
let met = 0;
if (!(await answers('strace', ['-V']))) {
  harness.skip('strace is not here');
}
for (let run = 0; run < runs && harness.failures < 10; run++) {
  const random = harness.random.fork();
  const [calls, most] = random.pick(CALLS);
  const injection = `${calls}:error=${random.pick(ERRORS)}:when=${random.between(1, most)}`;
  const problem = await oneRun(random, injection).catch((error: unknown) => String(error));
  harness.judge(problem === undefined ? undefined : `run ${run}, ${injection}: ${problem}`);
}
harness.say(`${met} of ${runs} runs met their fault`);
harness.finish();

async function oneRun(random: Random, injection: string): Promise<string | undefined> {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-faults-'));
  try {
    const ledger = new Ledger();
    const died = await underFault(root, random, injection, ledger);
    if (died !== undefined) {
      return died;
    }
    const server = await startTestServer({ root });
    try {
      return await verify(server, ledger);
    } finally {
      await server.stop();
    }
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

async function underFault(
  root: string,
  random: Random,
  injection: string,
  ledger: Ledger,
): Promise<string | undefined> {
  const calls = injection.split(':')[0] ?? '';
  const report = join(root, 'strace');
  const trace = ['strace', '-f', '--seccomp-bpf', '-o', report, '-e', `trace=${calls}`];
  const wrapper = [...trace, '-e', `inject=${injection}`];
  let server: TestServer;
  try {
    server = await startTestServer({ root, wrapper });
  } catch {
    return undefined; // A start that fails with a message is an answer.
  }
  await load(server, random, ledger);
  const pid = Number((await readFile(join(root, 'lock'), 'utf8')).trim());
  const hung = setTimeout(() => process.kill(pid, 'SIGKILL'), 20_000);
  try {
    process.kill(pid, 'SIGTERM');
  } catch {
    // It has ended already; how is looked at below.
  }
  const code = await exitCode(server.process);
  clearTimeout(hung);
  met += (await readFile(report, 'utf8')).includes('(INJECTED)') ? 1 : 0;
  const { signalCode } = server.process;
  return code === null ? `ended by ${signalCode ?? 'a signal'}: ${server.log()}` : undefined;
}

/** A little of everything; any step may be refused. */
async function load(server: TestServer, random: Random, ledger: Ledger): Promise<void> {
  const created = await exec(server, tableDefinition('alpha', 'DAY')).catch(() => undefined);
  for (let number = 0; number < 12 && created !== undefined; number++) {
    const batch = new Batch('alpha', 0, number, random, number % 4 === 3 ? 500 : 20);
    ledger.add(batch);
    try {
      if (number % 4 === 3) {
        await importCsv(server, 'alpha', batch.csv());
      } else {
        await exec(server, `INSERT INTO alpha (${COLUMNS}) VALUES ${batch.values()}`);
      }
      batch.acknowledged = true;
      await exec(server, summaryQuery('alpha'));
    } catch {
      // Refused, or not: the ledger allows both.
    }
  }
}

async function verify(server: TestServer, ledger: Ledger): Promise<string | undefined> {
  const there = await exec(server, "select table_name from tables() where table_name = 'alpha'");
  if (there.dataset.length === 0) {
    return ledger.settle('alpha', []);
  }
  const { dataset } = await exec(server, summaryQuery('alpha'));
  const problem = ledger.settle('alpha', dataset);
  if (problem === undefined) {
    await exec(server, "INSERT INTO alpha (ts, client) VALUES ('2024-03-01T00:00:00Z', 9)");
  }
  return problem;
}
