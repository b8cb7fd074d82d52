/**
 * Runs the scripts of PostgreSQL's regression tests on a Tidemark server and on a PostgreSQL
 * server, and compares the results. On both servers, each script gets its own tables, which
 * test_setup.sql creates.
 */
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { type Dialect, rewritten, whySkipped } from './dialects.js';
import { PsqlScript, type ScriptStatement } from './psql-script.js';
import { classOf, DEPENDS, FAILED_BLOCK, Tally, Unsettled } from './tally.js';
import { answersDiffer } from './values.js';
import { Connections, type FreshServer, type Outcome } from './wire.js';

const SETUP = 'test_setup.sql';
const TEMPLATE = 'tidemark_logic_tests_setup';
const SCRATCH = 'tidemark_logic_tests';
const CHANGES = new RegExp(
  '^\\s*(?:CREATE|DROP|ALTER|INSERT|UPDATE|DELETE|TRUNCATE|COPY|MERGE|PREPARE|DECLARE|BEGIN|' +
    'SAVEPOINT|ROLLBACK)\\b',
  'i',
);

/**
 * Statements that would change how the oracle formats times, or keep its database in use after the
 * script ends.
 */
const NOT_FOR_ORACLE = /^\s*(?:SET|RESET|CREATE\s+SUBSCRIPTION)\b/i;

/** Returns the scripts in schedule order, because scripts depend on tables from earlier scripts. */
export function scheduledScripts(folder: string): readonly string[] {
  const schedule = join(folder, 'parallel_schedule');
  const lines = existsSync(schedule) ? readFileSync(schedule, 'utf8').split('\n') : [];
  return lines
    .filter((line) => line.startsWith('test:'))
    .flatMap((line) => line.slice('test:'.length).trim().split(/\s+/))
    .map((name) => join(folder, 'sql', `${name}.sql`))
    .filter((file) => existsSync(file) && basename(file) !== SETUP);
}

export class OracleRun {
  readonly #server: FreshServer;
  readonly #dialect: Dialect;
  readonly #folder: string;
  readonly #admin: Connections;
  readonly #url: string;

  constructor(server: FreshServer, dialect: Dialect, folder: string, url: string) {
    this.#server = server;
    this.#dialect = dialect;
    this.#folder = folder;
    this.#url = url;
    this.#admin = new Connections(() => url);
  }

  /** Creates the template database for the scripts. */
  async prepare(): Promise<void> {
    await this.#administrate(`DROP DATABASE IF EXISTS ${TEMPLATE}`);
    await this.#administrate(`CREATE DATABASE ${TEMPLATE}`);
    const oracle = this.#database(TEMPLATE);
    for (const { sql, copyData } of this.#script(SETUP).statements()) {
      await oracle.run(sql, '', copyData);
    }
    await oracle.close();
  }

  async run(file: string): Promise<Tally> {
    await this.#administrate(`DROP DATABASE IF EXISTS ${SCRATCH}`);
    await this.#administrate(`CREATE DATABASE ${SCRATCH} TEMPLATE ${TEMPLATE}`);
    await this.#server.empty();
    const oracle = this.#database(SCRATCH);
    const tally = new Tally();
    const unsettled = new Unsettled();
    for (const { sql, copyData } of this.#script(SETUP).statements()) {
      const ours = rewritten(sql, this.#dialect);
      const outcome = await this.#server.connections.run(ours, '', copyData);
      if (outcome.kind === 'error') {
        unsettled.add(sql);
      }
    }
    for (const statement of new PsqlScript(file, this.#folder).statements()) {
      await this.#compare(statement, oracle, tally, unsettled);
    }
    await oracle.close();
    return tally;
  }

  async close(): Promise<void> {
    await this.#administrate(`DROP DATABASE IF EXISTS ${SCRATCH}`);
    await this.#administrate(`DROP DATABASE IF EXISTS ${TEMPLATE}`);
    await this.#admin.close();
  }

  #script(name: string): PsqlScript {
    return new PsqlScript(join(this.#folder, 'sql', name), this.#folder);
  }

  #database(name: string): Connections {
    const url = new URL(this.#url);
    url.pathname = `/${name}`;
    return new Connections(() => url.href);
  }

  async #administrate(sql: string): Promise<void> {
    const outcome = await this.#admin.run(sql);
    if (outcome.kind === 'error') {
      throw new Error(`the oracle refuses ${sql}: ${outcome.message}`);
    }
  }

  async #compare(
    { at, sql, copyData, isReadByPsql }: ScriptStatement,
    oracle: Connections,
    tally: Tally,
    unsettled: Unsettled,
  ): Promise<void> {
    const theirs = NOT_FOR_ORACLE.test(sql) ? undefined : await oracle.run(sql, '', copyData);
    const reason = isReadByPsql ? "psql's own commands" : whySkipped(sql, this.#dialect);
    if (reason !== undefined || theirs === undefined) {
      if (CHANGES.test(sql)) {
        unsettled.add(sql);
      }
      tally.note('skipped', at, sql, reason ?? 'settings of the peer');
      return;
    }
    const adapted = rewritten(sql, this.#dialect);
    const ours = await this.#server.connections.run(adapted, '', copyData);
    if (ours.kind === 'error' && ours.isInternal) {
      tally.note('internal', at, adapted, `${ours.code} ${ours.message}`);
      unsettled.add(sql);
      await this.#server.revive();
      return;
    }
    this.#judge({ at, sql }, [ours, theirs], tally, unsettled);
  }

  #judge(
    { at, sql }: Pick<ScriptStatement, 'at' | 'sql'>,
    [ours, theirs]: readonly [Outcome, Outcome],
    tally: Tally,
    unsettled: Unsettled,
  ): void {
    const depends =
      unsettled.touches(sql) ||
      [ours, theirs].some((one) => one.kind === 'error' && one.code === FAILED_BLOCK);
    const note = (verdict: 'refused' | 'wrong' | 'accepted', why: string): void => {
      if (CHANGES.test(sql)) {
        unsettled.add(sql);
      }
      tally.note(depends ? 'skipped' : verdict, at, sql, depends ? DEPENDS : why);
    };
    if (ours.kind === 'error' && theirs.kind === 'error') {
      tally.note('equal', at, sql);
    } else if (ours.kind === 'error') {
      note('refused', `${classOf(ours)} ⟨${ours.message}⟩`);
    } else if (theirs.kind === 'error') {
      note('accepted', `${theirs.code} ${theirs.message}`);
    } else {
      const isOrdered = /\border\s+by\b/i.test(sql);
      const why = answersDiffer(ours.rows, theirs.rows, isOrdered);
      if (why === undefined) {
        unsettled.settle(sql);
        tally.note('equal', at, sql);
      } else {
        note('wrong', why);
      }
    }
  }
}
