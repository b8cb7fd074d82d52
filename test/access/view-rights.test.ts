/**
 * Views of every kind read with their owner's current permissions, regardless of where these
 * permissions come from. A materialized or live view keeps its rows but is not refreshed while its
 * owner lacks a permission.
 */
import test from 'ava';

import type { TestServer } from '../golden/server.js';
import { until } from '../until.js';
import { ADMIN, exec, rows, run, startAccessServer } from './harness.js';

type View = 'view' | 'materialized view' | 'live view';
type Source = 'direct' | 'group' | 'service account' | 'owning group' | 'altered by a member';

/** Statements that revoke the permission, and statements that restore it. */
interface Loss {
  readonly name: string;
  readonly revokes: readonly string[];
  readonly grants: readonly string[];
}

const VIEWS: readonly View[] = ['view', 'materialized view', 'live view'];
const SOURCES: readonly Source[] = [
  'direct',
  'group',
  'service account',
  'owning group',
  'altered by a member',
];

/** Setup of each case, with names that are unique to the case. */
class Case {
  readonly view: string;
  readonly base: string;
  readonly user: string;
  readonly group: string;
  readonly account: string;
  readonly kind: View;
  readonly source: Source;
  readonly loss: number;

  constructor(kind: View, source: Source, loss: number) {
    this.kind = kind;
    this.source = source;
    this.loss = loss;
    const id = `${VIEWS.indexOf(kind)}${SOURCES.indexOf(source)}${loss}`;
    this.view = `v${id}`;
    this.base = `t${id}`;
    this.user = `u${id}`;
    this.group = `g${id}`;
    this.account = `s${id}`;
  }

  get name(): string {
    return `${this.kind}, ${this.source}, ${this.losses()[this.loss]?.name ?? ''}`;
  }

  /** The principal that holds the permission on the base. */
  get holder(): string {
    switch (this.source) {
      case 'direct':
        return this.user;
      case 'service account':
        return this.account;
      default:
        return this.group;
    }
  }

  losses(): readonly Loss[] {
    const right = `SELECT ON ${this.base}`;
    const revoked: Loss = {
      name: 'revoked',
      revokes: [`REVOKE ${right} FROM ${this.holder}`],
      grants: [`GRANT ${right} TO ${this.holder}`],
    };
    if (this.source !== 'group' && this.source !== 'altered by a member') {
      return [revoked];
    }
    return [
      revoked,
      {
        name: 'user removed from the group',
        revokes: [`REMOVE USER ${this.user} FROM ${this.group}`],
        grants: [`ADD USER ${this.user} TO ${this.group}`],
      },
      {
        name: 'group dropped',
        revokes: [`DROP GROUP ${this.group}`],
        grants: [
          `CREATE GROUP ${this.group}`,
          `GRANT ${right} TO ${this.group}`,
          `ADD USER ${this.user} TO ${this.group}`,
        ],
      },
    ];
  }

  #definition(create: string): string {
    const owner =
      this.source === 'service account'
        ? ` OWNED BY ${this.account}`
        : this.source === 'owning group'
          ? ` OWNED BY ${this.group}`
          : '';
    switch (this.kind) {
      case 'view':
        return `${create} VIEW ${this.view} AS (SELECT ts, x FROM ${this.base})${owner}`;
      case 'materialized view':
        return `${create} MATERIALIZED VIEW ${this.view} AS
          (SELECT ts, last(x) x FROM ${this.base} SAMPLE BY 1s) PARTITION BY DAY${owner}`;
      case 'live view':
        return `${create} LIVE VIEW ${this.view} FLUSH EVERY 100ms START FROM BEGINNING AS (SELECT
          ts, x, count() OVER (PARTITION BY x ORDER BY ts) n FROM ${this.base})${owner}`;
    }
  }

  async prepare(server: TestServer): Promise<void> {
    const { base, user, group, account } = this;
    await run(
      server,
      `CREATE TABLE ${base} (ts TIMESTAMP, x LONG) TIMESTAMP(ts) PARTITION BY DAY WAL`,
      `CREATE USER ${user} WITH PASSWORD 'pw'`,
      `CREATE GROUP ${group}`,
      `CREATE SERVICE ACCOUNT ${account}`,
      `ADD USER ${user} TO ${group}`,
      `GRANT ASSUME SERVICE ACCOUNT ${account} TO ${user}`,
      `GRANT HTTP, CREATE VIEW, CREATE MATERIALIZED VIEW, CREATE LIVE VIEW TO ${user}`,
      `GRANT SELECT ON ${base} TO ${this.holder}`,
      ...(this.source === 'service account' ? [`GRANT SELECT ON ${base} TO ${user}`] : []),
    );
    if (this.source === 'altered by a member') {
      await run(
        server,
        `CREATE VIEW ${this.view} AS (SELECT ts FROM ${base})`,
        `GRANT SELECT, ALTER VIEW ON ${this.view} TO ${user}`,
      );
      await this.as(server, this.#definition('ALTER'));
    } else {
      await this.as(server, this.#definition('CREATE'));
      await run(server, `GRANT SELECT ON ${this.view} TO ${user}`);
    }
  }

  async as(server: TestServer, text: string): Promise<void> {
    const { error } = await exec(server, `${this.user}:pw`, text);
    if (error !== undefined) {
      throw new Error(`${this.name}: ${text}: ${error}`);
    }
  }

  async insert(server: TestServer, x: number): Promise<void> {
    await run(server, `INSERT INTO ${this.base} VALUES ('2024-01-01T00:00:0${x}', ${x})`);
  }

  async count(server: TestServer): Promise<number> {
    return Number((await rows(server, ADMIN, `SELECT count() FROM ${this.view}`))[0]?.[0]);
  }

  async status(server: TestServer): Promise<readonly unknown[]> {
    const list = this.kind === 'live view' ? 'live_views()' : 'materialized_views()';
    const text = `SELECT view_status, invalidation_reason FROM ${list}
      WHERE view_name = '${this.view}'`;
    return (await rows(server, ADMIN, text))[0] ?? [];
  }
}

const CASES: readonly Case[] = VIEWS.flatMap((kind) =>
  SOURCES.filter((source) => kind === 'view' || source !== 'altered by a member').flatMap(
    (source) => new Case(kind, source, 0).losses().map((_, loss) => new Case(kind, source, loss)),
  ),
);

const REFUSED = /^Access denied \[SELECT on \w+, whose owner lacks a required permission\]/;

test.serial("a view reads with its owner's current rights", async (t) => {
  const server = await startAccessServer();
  t.teardown(() => server.stop());
  for (const one of CASES.filter(({ kind }) => kind === 'view')) {
    const { revokes = [], grants = [] } = one.losses()[one.loss] ?? {};
    await one.prepare(server);
    await one.insert(server, 1);
    const read = `SELECT count() FROM ${one.view}`;
    t.deepEqual((await exec(server, `${one.user}:pw`, read)).dataset, [[1]], one.name);
    await run(server, ...revokes);
    for (const who of [`${one.user}:pw`, ADMIN]) {
      t.regex((await exec(server, who, read)).error ?? '', REFUSED, one.name);
    }
    await run(server, ...grants);
    t.deepEqual((await exec(server, `${one.user}:pw`, read)).dataset, [[1]], one.name);
  }
});

for (const kind of VIEWS.slice(1)) {
  test.serial(`a ${kind} is refreshed only while its owner may read the base table`, async (t) => {
    const server = await startAccessServer();
    t.teardown(() => server.stop());
    const mine = CASES.filter((one) => one.kind === kind);
    for (const one of mine) {
      await one.prepare(server);
      await one.insert(server, 1);
      await until(async () => (await one.count(server)) === 1, one.name);
      await run(server, ...(one.losses()[one.loss]?.revokes ?? []));
      await one.insert(server, 2);
      const [status, reason] = await one.status(server);
      t.is(status, 'invalid', one.name);
      t.regex(String(reason), REFUSED, one.name);
      const start =
        kind === 'live view'
          ? `ALTER LIVE VIEW ${one.view} RESUME WAL`
          : `REFRESH MATERIALIZED VIEW ${one.view} FULL`;
      t.regex((await exec(server, ADMIN, start)).error ?? '', REFUSED, one.name);
    }
    // A permitted view already shows the new row, so the other views have also had enough time to
    // be refreshed.
    await run(
      server,
      'CREATE TABLE free (ts TIMESTAMP, x LONG) TIMESTAMP(ts) PARTITION BY DAY WAL',
    );
    await run(
      server,
      kind === 'live view'
        ? `CREATE LIVE VIEW follows FLUSH EVERY 100ms START FROM BEGINNING AS
            SELECT ts, x, count() OVER (PARTITION BY x ORDER BY ts) n FROM free`
        : `CREATE MATERIALIZED VIEW follows AS (SELECT ts, last(x) x FROM free SAMPLE BY 1s)`,
      `INSERT INTO free VALUES ('2024-01-01', 1)`,
    );
    const shown = async (): Promise<boolean> =>
      Number((await rows(server, ADMIN, 'SELECT count() FROM follows'))[0]?.[0]) === 1;
    await until(shown, 'the administrator sees the view');
    for (const one of mine) {
      t.is(await one.count(server), 1, one.name);
      // The view's rows are stored, so only the permission on the view is needed.
      const read = await exec(server, `${one.user}:pw`, `SELECT count() FROM ${one.view}`);
      t.deepEqual(read.dataset, [[1]], `${one.name}: ${read.error ?? ''}`);
      await run(server, ...(one.losses()[one.loss]?.grants ?? []));
      await until(async () => (await one.count(server)) === 2, one.name);
      t.not((await one.status(server))[0], 'invalid', one.name);
    }
  });
}

test.serial('cycles of service accounts are resolved quickly', async (t) => {
  const server = await startAccessServer();
  t.teardown(() => server.stop());
  await run(server, `CREATE USER reader WITH PASSWORD 'pw'`, 'GRANT HTTP TO reader');
  for (const length of [1, 2, 3, 100]) {
    const names = Array.from({ length }, (_, at) => `ring${length}_${at}`);
    await run(server, ...names.map((name) => `CREATE SERVICE ACCOUNT ${name}`));
    for (const [at, name] of names.entries()) {
      const next = names[(at + 1) % length] ?? name;
      const text = `GRANT ASSUME SERVICE ACCOUNT ${next} TO ${name}`;
      const { status, error = '' } = await exec(server, ADMIN, text);
      t.true(status === 200 || error.includes('service account'), `${text}: ${error}`);
    }
    await run(server, `GRANT ASSUME SERVICE ACCOUNT ${names[0] ?? ''} TO reader`);
    t.is((await exec(server, 'reader:pw', 'SELECT 1')).status, 200);
    await run(server, `DROP SERVICE ACCOUNT ${names[0] ?? ''}`);
  }
  await run(server, 'CREATE GROUP one', 'CREATE GROUP two');
  for (const [member, group] of [
    ['one', 'one'],
    ['one', 'two'],
    ['two', 'one'],
  ]) {
    const { status } = await exec(server, ADMIN, `ADD USER ${member} TO ${group}`);
    t.is(status, 400, `a group must not be a member: ${member} of ${group}`);
  }
});
