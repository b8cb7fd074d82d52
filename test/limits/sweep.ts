/**
 * Gate G26: sends every construct of `constructs.ts` to a server, with few and with far too many
 * repetitions. Each statement must end with a result or a clear error soon after its timeout. In
 * the meantime the server answers other clients and its memory stays bounded.
 */
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

import { startTestServer, type TestServer } from '../golden/server.js';
import { type Construct, COUNTS, PREPARATION } from './constructs.js';
import { pgClient } from '../pg-client.js';

export type Protocol = 'http' | 'pgwire';

interface SweepOptions {
  readonly protocols: readonly Protocol[];
  readonly timeoutMs: number;
  /** How long after the timeout a response may arrive. */
  readonly marginMs: number;
  /** Selects the statements to send. */
  readonly accepts?: (construct: Construct, count: number) => boolean;
  readonly report?: (outcome: Outcome) => void;
}

interface Outcome {
  readonly name: string;
  readonly count: number;
  readonly protocol: Protocol;
  readonly answer: string;
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly peakMebibytes: number;
  /** The problem; null if there is none. */
  readonly problem: string | null;
}

const MEBIBYTE = 1024 * 1024;
const MEMORY_LIMIT_MEBIBYTES = 1024;
/** Memory that the process may use beyond its limit, in MiB. */
const SLACK_MEBIBYTES = 512;
/** Maximum CPU time that the server may use while other clients are waiting for a response. */
const DEAF_MS = 1_000;
const TICKS_PER_SECOND = 100;
/** A server that uses this much memory is killed before the machine suffers. */
const MAX_MEBIBYTES = 3_000;
const NO_ANSWER = 'no answer';

/**
 * Patterns of unclear errors. A clear error names the mistake; these errors show an unhandled case.
 */
const UNCLEAR = /internal error|panic|Stack overflow|DataFusion|Physical plan/i;

/** A response that is not an error. */
const IS_ROWS = /^200 |^\d+ rows$/;

/** Sends all statements and returns their outcomes. A crashed server is restarted. */
export async function sweep(
  constructs: readonly Construct[],
  options: SweepOptions,
): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  let server: TestServer | null = null;
  try {
    for (const construct of constructs) {
      for (const count of construct.counts ?? COUNTS) {
        if (options.accepts?.(construct, count) === false) {
          continue;
        }
        for (const protocol of options.protocols) {
          server ??= await prepared();
          const outcome = await tried(server, construct, count, protocol, options);
          outcomes.push(outcome);
          options.report?.(outcome);
          if (server.process.exitCode !== null || server.process.signalCode !== null) {
            server = null;
          }
        }
      }
    }
  } finally {
    await server?.stop();
  }
  return outcomes;
}

async function prepared(): Promise<TestServer> {
  const server = await startTestServer({
    set: [`memory.limit=${MEMORY_LIMIT_MEBIBYTES}M`, 'shared.query.worker.count=2'],
  });
  for (const statement of PREPARATION) {
    await send(server, 'http', statement, 60_000);
  }
  return server;
}

async function tried(
  server: TestServer,
  construct: Construct,
  count: number,
  protocol: Protocol,
  { timeoutMs, marginMs }: SweepOptions,
): Promise<Outcome> {
  const statement = construct.of(count);
  for (const before of construct.before?.(count) ?? []) {
    await send(server, protocol, before, timeoutMs);
  }
  const pings = new Pings(server);
  const [startedMs, cpuBefore] = [performance.now(), await cpuMs(server)];
  // A statement that does not end is abandoned together with the server.
  const late = sleep(3 * timeoutMs + 5_000, NO_ANSWER, { ref: false });
  const answer = await Promise.race([send(server, protocol, statement, timeoutMs), late]);
  const wallMs = Math.round(performance.now() - startedMs);
  const usedMs = (await cpuMs(server)) - cpuBefore;
  const deafMs = await pings.end();
  const peakMebibytes = await resetPeak(server);
  if (answer === NO_ANSWER) {
    server.process.kill('SIGKILL');
    await once(server.process, 'close');
  }
  const isAlive = server.process.exitCode === null && server.process.signalCode === null;
  const maximum = timeoutMs + marginMs;
  const problem = !isAlive
    ? `the server died [${server.process.signalCode ?? ''}]`
    : answer === NO_ANSWER || (wallMs > maximum && usedMs > maximum)
      ? 'the answer is late'
      : UNCLEAR.test(answer)
        ? 'the error is unclear'
        : construct.isRefused === true && IS_ROWS.test(answer)
          ? 'it was not refused'
          : deafMs > DEAF_MS
            ? `others waited for ${deafMs} ms`
            : peakMebibytes > MEMORY_LIMIT_MEBIBYTES + SLACK_MEBIBYTES
              ? 'too much memory'
              : null;
  const { name } = construct;
  return { name, count, protocol, answer, wallMs, cpuMs: usedMs, peakMebibytes, problem };
}

/** Returns the server's response, truncated. Never rejects. */
async function send(
  server: TestServer,
  protocol: Protocol,
  statement: string,
  timeoutMs: number,
): Promise<string> {
  try {
    const answer = await (protocol === 'http'
      ? sendOverHttp(server, statement, timeoutMs)
      : sendOverPgwire(server, statement, timeoutMs));
    return answer.replaceAll(/\s+/g, ' ').slice(0, 240);
  } catch (error) {
    return `no connection: ${String(error)}`;
  }
}

async function sendOverHttp(server: TestServer, query: string, timeoutMs: number): Promise<string> {
  const response = await fetch(`${server.url}/exec`, {
    method: 'POST',
    body: new URLSearchParams({ query, limit: '2', nm: 'true' }),
    headers: { 'Statement-Timeout': String(timeoutMs) },
  });
  const text = await response.text();
  const error = /"error":"((?:[^"\\]|\\.)*)"/.exec(text.slice(-8_000) + text.slice(0, 8_000))?.[1];
  return `${response.status} ${error ?? 'rows'}`;
}

async function sendOverPgwire(
  server: TestServer,
  statement: string,
  timeoutMs: number,
): Promise<string> {
  const client = pgClient(server.pg, { options: `-c statement_timeout=${timeoutMs}` });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const { rowCount } = await client.query(statement);
    return `${rowCount ?? 0} rows`;
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    return `${code ?? 'no code'} ${message}`;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Pings the server repeatedly. */
class Pings {
  readonly #stop = new AbortController();
  readonly #maxMs: Promise<number>;

  constructor(server: TestServer) {
    this.#maxMs = this.#run(server);
  }

  /** Returns the most CPU time that the server used while a ping was unanswered. */
  async end(): Promise<number> {
    this.#stop.abort();
    return await this.#maxMs;
  }

  async #run(server: TestServer): Promise<number> {
    let maxMs = 0;
    while (!this.#stop.signal.aborted) {
      const started = performance.now();
      const before = await threadMs(server);
      try {
        await (await fetch(`${server.url}/ping`)).arrayBuffer();
      } catch {
        return maxMs;
      }
      const wall = performance.now() - started;
      if ((await memory(server, 'VmRSS')) > MAX_MEBIBYTES) {
        server.process.kill('SIGKILL');
      }
      // On a busy machine, only the JavaScript thread's CPU time counts.
      maxMs = Math.max(maxMs, Math.min(wall, (await threadMs(server)) - before));
      await sleep(50);
    }
    return Math.round(maxMs);
  }
}

async function cpuMs(server: TestServer): Promise<number> {
  return await ticks(`/proc/${server.process.pid ?? 0}/stat`);
}

/** Returns the CPU time of the JavaScript thread. */
async function threadMs(server: TestServer): Promise<number> {
  const pid = server.process.pid ?? 0;
  return await ticks(`/proc/${pid}/task/${pid}/stat`);
}

async function ticks(file: string): Promise<number> {
  try {
    const fields = (await readFile(file, 'utf8')).replace(/^.*\)/, '').trim().split(' ');
    return ((Number(fields[11]) + Number(fields[12])) * 1_000) / TICKS_PER_SECOND;
  } catch {
    return 0;
  }
}

/** Returns the process's peak memory since the previous call. */
async function resetPeak(server: TestServer): Promise<number> {
  const peak = await memory(server, 'VmHWM');
  await writeFile(`/proc/${server.process.pid ?? 0}/clear_refs`, '5').catch(() => undefined);
  return peak;
}

/** Returns the mebibytes in a line of the process status; 0 if the process is gone. */
async function memory(server: TestServer, line: string): Promise<number> {
  try {
    const status = await readFile(`/proc/${server.process.pid ?? 0}/status`, 'utf8');
    const kibibytes = Number(new RegExp(`${line}:\\s+(\\d+) kB`).exec(status)?.[1] ?? 0);
    return Math.round((kibibytes * 1024) / MEBIBYTE);
  } catch {
    return 0;
  }
}
