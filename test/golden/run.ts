/** Runs complete suites against servers started for them. */
import { decidedCases, httpCases, sqlCases } from './cases.js';
import { type HttpCase, runHttpCase } from './http-runner.js';
import { startTestServer } from './server.js';
import { type SqlCase, SqlRunner } from './sql-runner.js';

/** Each case's problem, in the order in which the cases ran; `null` if the case passes. */
export type Results = ReadonlyMap<string, string | null>;
export type Choose = (id: string) => boolean;

/** Syncs are off, because these cases do not test durability. */
const QUICK = ['cairo.commit.mode=nosync', 'log.level=error'];
const LOGIN = ['http.user=joe', 'http.password=secret'];

export async function runHttpSuite(choose: Choose = () => true): Promise<Results> {
  return await runHttp(httpCases().filter(({ id }) => choose(id)));
}

export async function runDecidedSuite(choose: Choose = () => true): Promise<Results> {
  return await runHttp(decidedCases().filter(({ id }) => choose(id)));
}

async function runHttp(cases: readonly HttpCase[]): Promise<Results> {
  const open = await startTestServer({ set: QUICK });
  const login = await startTestServer({ set: [...QUICK, ...LOGIN] });
  const results = new Map<string, string | null>();
  try {
    for (const golden of cases) {
      const servers = { open: open.url, login: login.url };
      results.set(golden.id, await caught(() => runHttpCase(servers, golden)));
    }
  } finally {
    await Promise.all([open.stop(), login.stop()]);
  }
  return results;
}

export async function runSqlSuite(choose: Choose = () => true): Promise<Results> {
  const cases: readonly SqlCase[] = sqlCases().filter(({ id }) => choose(id));
  const server = await startTestServer({ set: QUICK });
  const runner = new SqlRunner(server.url);
  const results = new Map<string, string | null>();
  try {
    for (const golden of cases) {
      results.set(golden.id, await caught(() => runner.run(golden)));
    }
  } finally {
    await server.stop();
  }
  return results;
}

/** A crashed server must not stop the run. */
async function caught(run: () => Promise<string | null>): Promise<string | null> {
  try {
    return await run();
  } catch (error) {
    return `the runner failed: ${String(error)}`;
  }
}
