/**
 * npm run system-faults -- [--runs N] [--seed S]
 *
 * Runs the real server under `strace -e inject`: a thread's k-th call of some kind fails. The seed
 * chooses the call, k and the error. Two thirds of the runs work on a new root until the call is
 * reached; the others start on the files of a killed server and close it again. Reads must
 * continue, no signal may end the process, and after a restart without the tracer everything
 * acknowledged must exist.
 */
import { cpSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { exitCode, startTestServer, type TestServer } from '../golden/server.js';
import { exec, importCsv } from './client.js';
import { Harness, type Random } from './harness.js';
import { Batch, COLUMNS, Ledger, summaryQuery, tableDefinition } from './ledger.js';
import { answers } from './tools.js';

const ERRORS = ['EIO', 'ENOSPC', 'EDQUOT', 'EMFILE', 'ENOMEM', 'EINTR'];
const MODES = ['sync', 'async', 'nosync'];

interface Call {
  readonly names: string;
  /**
   * Maximum k while the server is working. The tracer counts calls per thread, and a working thread
   * makes this many.
   */
  readonly atWork: number;
  /** Maximum k between a restart after a kill and the end of the process. */
  readonly restarting: number;
}

/** Calls that the engine makes, and that Node rarely makes after startup. */
const CALLS: readonly Call[] = [
  { names: 'pwrite64', atWork: 30, restarting: 8 },
  { names: 'fdatasync', atWork: 12, restarting: 4 },
  { names: 'fsync', atWork: 12, restarting: 9 },
  { names: 'rename,renameat,renameat2', atWork: 6, restarting: 1 },
  { names: 'mkdir,mkdirat', atWork: 16, restarting: 9 },
  { names: 'unlink,unlinkat', atWork: 12, restarting: 4 },
  { names: 'link,linkat', atWork: 10, restarting: 0 },
];
/** After this many rounds of load, a call counts as not reached. */
const MAX_ROUNDS = 40;

/** The failure of one run. */
interface Fault {
  readonly injection: string;
  readonly mode: string;
  readonly atWork: boolean;
}

const harness: Harness = new Harness('system-faults', ['runs']);
const runs = harness.number('runs', 8);
/** Number of runs in which the server reached the failing call. */
let met = 0;
if (!(await answers('strace', ['-V']))) {
  harness.skip('strace is not installed');
}
const folder = await mkdtemp(join(tmpdir(), 'tidemark-faults-'));
const root = join(folder, 'root');
const report = join(folder, 'strace');
const killedRoot = join(folder, 'killed');
const killedLedger = await leaveKilledRoot(harness.random.fork());
for (let run = 0; run < runs && harness.failures < 10; run++) {
  const random = harness.random.fork();
  const fault = chooseFault(random);
  const problem = await runFault(random, fault).catch((error: unknown) => String(error));
  const where = fault.atWork ? 'at work' : 'restarting';
  const what = `${fault.injection} ${where} in ${fault.mode}`;
  harness.judge(problem === undefined ? undefined : `run ${run}, ${what}: ${problem}`);
}
await rm(folder, { recursive: true, force: true });
harness.say(`${met} of ${runs} runs reached their fault`);
harness.finish();

function chooseFault(random: Random): Fault {
  const atWork = random.next() < 0.67;
  const maximum = (call: Call): number => (atWork ? call.atWork : call.restarting);
  const call = random.pick(CALLS.filter((candidate) => maximum(candidate) > 0));
  const when = random.between(1, maximum(call));
  const injection = `${call.names}:error=${random.pick(ERRORS)}:when=${when}`;
  return { injection, mode: random.pick(MODES), atWork };
}

/** Creates a root with tables, segments and a log that the next start replays. */
async function leaveKilledRoot(random: Random): Promise<Ledger> {
  const ledger = new Ledger();
  const server = await startTestServer({ root: killedRoot });
  await exec(server, tableDefinition('alpha', 'DAY'));
  for (let round = 0; round < 4; round++) {
    await runRound(server, random, ledger, round);
  }
  server.process.kill('SIGKILL');
  await exitCode(server.process);
  return ledger;
}

async function runFault(random: Random, fault: Fault): Promise<string | undefined> {
  await rm(root, { recursive: true, force: true });
  if (!fault.atWork) {
    cpSync(killedRoot, root, { recursive: true });
  }
  const ledger = fault.atWork ? new Ledger() : killedLedger;
  const problem = await underFault(random, fault, ledger);
  met += (await isMet()) ? 1 : 0;
  if (problem !== undefined) {
    return problem;
  }
  const server = await startTestServer({ root });
  try {
    return await verify(server, ledger);
  } finally {
    await server.stop();
  }
}

async function isMet(): Promise<boolean> {
  return (await readFile(report, 'utf8')).includes('(INJECTED)');
}

async function underFault(
  random: Random,
  { injection, mode, atWork }: Fault,
  ledger: Ledger,
): Promise<string | undefined> {
  const calls = injection.split(':')[0] ?? '';
  const trace = ['strace', '-f', '--seccomp-bpf', '-o', report, '-e', `trace=${calls}`];
  const wrapper = [...trace, '-e', `inject=${injection}`];
  let server: TestServer;
  try {
    server = await startTestServer({ root, wrapper, set: [`cairo.commit.mode=${mode}`] });
  } catch (error) {
    // Failing to start is acceptable if there is a message.
    return String(error).includes('tidemark: ') ? undefined : String(error);
  }
  const lost = atWork ? await work(server, random, ledger) : undefined;
  const died = await end(server);
  return died ?? lost;
}

/** Stops the server as an operator would; returns the signal that killed it, if any. */
async function end(server: TestServer): Promise<string | undefined> {
  const pid = Number((await readFile(join(root, 'lock'), 'utf8')).trim());
  const hung = setTimeout(() => process.kill(pid, 'SIGKILL'), 20_000);
  try {
    process.kill(pid, 'SIGTERM');
  } catch {
    // The process has already ended; the exit code is checked below.
  }
  const code = await exitCode(server.process);
  clearTimeout(hung);
  const { signalCode } = server.process;
  return code === null ? `ended by ${signalCode ?? 'a signal'}: ${server.log()}` : undefined;
}

/**
 * Works until the call has been reached, and then once more. After that, a reader must see
 * everything acknowledged.
 */
async function work(
  server: TestServer,
  random: Random,
  ledger: Ledger,
): Promise<string | undefined> {
  let isOver = false;
  for (let round = 0; round < MAX_ROUNDS && !isOver; round++) {
    isOver = await isMet();
    await exec(server, tableDefinition('alpha', 'DAY')).catch(() => undefined);
    await runRound(server, random, ledger, round).catch(() => undefined);
  }
  if (!(await isThere(server))) {
    return ledger.lost('alpha', []);
  }
  const { dataset } = await exec(server, summaryQuery('alpha'));
  return ledger.lost('alpha', dataset);
}

/** Runs a round of mixed steps. If a step is refused, the next round tries the remaining steps. */
async function runRound(
  server: TestServer,
  random: Random,
  ledger: Ledger,
  round: number,
): Promise<void> {
  const batches = [20, 20, 300].map((maximum, part) => {
    const batch = new Batch('alpha', 0, 3 * round + part, random, maximum);
    ledger.add(batch);
    return batch;
  });
  const [first, second, imported] = batches as [Batch, Batch, Batch];
  for (const batch of [first, second]) {
    await exec(server, `INSERT INTO alpha (${COLUMNS}) VALUES ${batch.values()}`);
    batch.acknowledged = true;
  }
  await importCsv(server, 'alpha', imported.csv());
  imported.acknowledged = true;
  const others = [
    ['ALTER TABLE alpha SQUASH PARTITIONS'],
    ['CHECKPOINT RELEASE', 'CHECKPOINT CREATE'],
    ['CREATE TABLE IF NOT EXISTS beta (x INT)', 'DROP TABLE IF EXISTS beta'],
    [],
  ];
  for (const statement of random.pick(others)) {
    await exec(server, statement);
  }
}

async function isThere(server: TestServer): Promise<boolean> {
  const found = await exec(server, "select table_name from tables() where table_name = 'alpha'");
  return found.dataset.length > 0;
}

async function verify(server: TestServer, ledger: Ledger): Promise<string | undefined> {
  if (!(await isThere(server))) {
    return ledger.settle('alpha', []);
  }
  const { dataset } = await exec(server, summaryQuery('alpha'));
  const problem = ledger.settle('alpha', dataset);
  if (problem === undefined) {
    await exec(server, "INSERT INTO alpha (ts, client) VALUES ('2024-03-01T00:00:00Z', 9)");
  }
  return problem;
}
