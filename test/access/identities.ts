/**
 * Random sequences of identity changes, for gate S15. Users, service accounts, groups and external
 * users share three names. They are created, dropped and re-created, log in, assume each other and
 * own views. The server's decisions are compared with those of a model that identifies each
 * principal by number.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Access } from '../../ts/access/index.js';
import { FailureLimiter, type Identity } from '../../ts/auth/index.js';
import { createLogger } from '../../ts/observability/index.js';
import { LoginBook } from '../../ts/pgwire/login/login.js';
import { SessionUser } from '../../ts/pgwire/login/provided-login.js';
import {
  type Database,
  DatabaseError,
  type Owner,
  type Principal,
  principalKey,
} from '../../ts/session/index.js';
import { parse } from '../../ts/sql/index.js';

const NAMES = ['ada', 'bob', 'cy'];
const GROUPS = ['g', 'h'];
const TABLES = ['t', 'u'];
const ISSUER = 'https://id.example';
const ADMIN: Principal = {
  name: 'admin',
  readOnly: false,
  identity: { name: 'admin', kind: 'admin' },
};

/**
 * A principal with a unique number. A principal that is re-created under the same name gets a new
 * number.
 */
interface Person {
  readonly number: number;
  readonly kind: 'user' | 'service account' | 'group';
  enabled: boolean;
  password: number;
  admin: boolean;
  pgwire: boolean;
  readonly tables: Set<string>;
  readonly groups: Set<string>;
  readonly accounts: Set<string>;
}

interface Connection {
  readonly name: string;
  readonly number: number;
  readonly password: number;
  readonly sessionUser: SessionUser;
  /** The principal whose permissions apply now. */
  principal: Principal;
  account: { readonly name: string; readonly number: number } | null;
}

interface View {
  readonly owner: Owner;
  /** The owner's number in the model; null for the administrator. */
  readonly number: number | null;
}

interface Reach {
  readonly all: boolean;
  readonly tables: ReadonlySet<string>;
  readonly accounts: ReadonlySet<string>;
  readonly pgwire: boolean;
}

const NOTHING: Reach = { all: false, tables: new Set(), accounts: new Set(), pgwire: false };

/** Runs several sequences and returns the differences, each with the steps that led to it. */
export async function identityDifferences(sequences: number, seed: number): Promise<string[]> {
  const root = await mkdtemp(join(tmpdir(), 'identities-'));
  const found: string[] = [];
  try {
    for (let number = 0; number < sequences && found.length < 3; number += 1) {
      const difference = await new Sequence(seed + number, root).run();
      found.push(...(difference === null ? [] : [`seed ${seed + number}\n  ${difference}`]));
    }
  } finally {
    await rm(root, { recursive: true, force: true });
  }
  return found;
}

function random(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

/** A database with in-memory records and the two tables. */
function memoryDatabase(): Database {
  const rows = TABLES.map((name) => JSON.stringify([name, 'a', false])).join(',');
  const reply = { chunk: { bytes: Buffer.from(rows) }, stream: null, summary: null };
  const part: Partial<Record<keyof Database, unknown>> = {
    loadRecords: () => Promise.resolve(new Map()),
    commitRecords: () => Promise.resolve(1n),
    prepare: () =>
      Promise.resolve({ execute: () => Promise.resolve(reply), close: () => undefined }),
  };
  return part as unknown as Database;
}

const STEPS = 25;

class Sequence {
  readonly #pick: (below: number) => number;
  readonly #root: string;
  readonly #steps: string[] = [];
  readonly #there = new Map<string, Person>();
  readonly #connections: Connection[] = [];
  readonly #views: View[] = [];
  #last = 0;
  #access: Access | null = null;

  constructor(seed: number, root: string) {
    this.#pick = random(seed);
    this.#root = root;
  }

  async run(): Promise<string | null> {
    const access = await Access.open({
      database: memoryDatabase(),
      root: this.#root,
      auditFiles: { fileBytes: 0, files: 1 },
      administrator: { name: 'admin', password: 'quest', enabled: true },
      logger: createLogger({ level: 'error', write: () => undefined }),
      nameLengthMax: 255,
      hashIterations: 1,
      tokenRefreshMs: 1000,
    });
    this.#access = access;
    try {
      const isPrepared = this.#pick(2) === 0;
      for (let step = 0; step < STEPS; step += 1) {
        const prepared = isPrepared && step === 0 ? await this.#prepare() : null;
        // Several changes may happen between two statements in a session.
        const isAsked = this.#pick(3) === 0;
        const difference =
          prepared ?? (await this.#step()) ?? (isAsked ? await this.#compare() : null);
        if (difference !== null) {
          return [...this.#steps, difference].join('\n  ');
        }
      }
      return null;
    } finally {
      await access.close();
    }
  }

  get #server(): Access {
    if (this.#access === null) {
      throw new Error('no server yet');
    }
    return this.#access;
  }

  #choose<T>(list: readonly T[]): T {
    const chosen = list[this.#pick(list.length)];
    if (chosen === undefined) {
      throw new Error('nothing to choose from');
    }
    return chosen;
  }

  // ---- steps that the server and the model both perform ----

  /**
   * Prepares a session that has assumed a service account through its own permission or its
   * group's.
   */
  async #prepare(): Promise<string | null> {
    const [user = '', account = ''] = this.#pick(2) === 0 ? NAMES : [...NAMES].reverse();
    const heir = this.#pick(2) === 0 ? user : 'g';
    return (
      (await this.#create(user, 'user')) ??
      (await this.#create(account, 'service account')) ??
      (await this.#create('g', 'group')) ??
      (await this.#rights(user, 4, true)) ??
      (await this.#rights(account, 0, true)) ??
      (await this.#membership(user, 'g')) ??
      (await this.#assumption(account, heir, true)) ??
      (await this.#login(user)) ??
      (await this.#become(account))
    );
  }

  async #step(): Promise<string | null> {
    switch (this.#pick(13)) {
      case 0:
      case 1:
        return await this.#create();
      case 2:
        return await this.#drop();
      case 3:
        return await this.#alter(ADMIN, true);
      case 4:
        return await this.#helpdesk();
      case 5:
      case 6:
        return await this.#rights();
      case 7:
        return await this.#membership();
      case 8:
        return await this.#assumption();
      case 9:
        return await this.#login();
      case 10:
        return await this.#become();
      case 11:
        return await this.#replace();
      default:
        return this.#view();
    }
  }

  /** Returns null if the statement behaved as expected. `expected`: whether it should succeed. */
  async #say(by: Principal, text: string, expected: boolean): Promise<string | null> {
    this.#steps.push(`${principalKey(by)}: ${text}`);
    const refusal = await this.#statement(by, text, () => undefined);
    const ran = refusal === null;
    return ran === expected ? null : `expected ${String(expected)}, was: ${refusal ?? 'it ran'}`;
  }

  async #statement(
    by: Principal,
    text: string,
    become: (principal: Principal | null) => void,
  ): Promise<string | null> {
    const { statements } = this.#server;
    try {
      const actor = { principal: by, isLasting: true, become };
      const statement = await statements.prepare(parse(text), { user: by.name }, actor);
      await statement.execute([], { rows: { format: 'json' } });
      return null;
    } catch (error) {
      if (error instanceof DatabaseError) {
        return error.message;
      }
      throw error;
    }
  }

  async #create(given?: string, of?: Person['kind']): Promise<string | null> {
    const isGroup = of === undefined ? this.#pick(4) === 0 : of === 'group';
    const name = given ?? this.#choose(isGroup ? GROUPS : NAMES);
    const other = this.#pick(3) === 0 ? 'service account' : 'user';
    const kind = isGroup ? 'group' : (of ?? other);
    const isFree = !this.#there.has(name);
    this.#last += 1;
    const password = this.#last;
    const words = isGroup ? ` WITH EXTERNAL ALIAS 'x-${name}'` : ` WITH PASSWORD 'p${password}'`;
    const text = `CREATE ${kind.toUpperCase()} ${name}${words}`;
    if (isFree) {
      this.#there.set(name, {
        number: this.#last,
        kind,
        enabled: true,
        password,
        admin: false,
        pgwire: false,
        tables: new Set(),
        groups: new Set(),
        accounts: new Set(),
      });
    }
    return await this.#say(ADMIN, text, isFree);
  }

  /** Re-creates a principal with the same name and more permissions. */
  async #replace(): Promise<string | null> {
    const name = this.#choose(NAMES);
    const kind = this.#pick(2) === 0 ? 'user' : 'service account';
    return (
      (await this.#drop(name)) ??
      (await this.#create(name, kind)) ??
      (await this.#rights(name, 0, true)) ??
      (await this.#rights(name, 4, true))
    );
  }

  async #drop(name = this.#choose([...NAMES, ...GROUPS])): Promise<string | null> {
    const found = this.#there.get(name);
    if (found === undefined) {
      return null;
    }
    this.#there.delete(name);
    for (const { groups, accounts } of this.#there.values()) {
      groups.delete(name);
      accounts.delete(name);
    }
    return await this.#say(ADMIN, `DROP ${found.kind.toUpperCase()} ${name}`, true);
  }

  async #alter(
    by: Principal,
    expected: boolean,
    name = this.#choose(NAMES),
  ): Promise<string | null> {
    const found = this.#there.get(name);
    if (found === undefined || found.kind === 'group') {
      return null;
    }
    const what = this.#choose(['ENABLE', 'DISABLE', 'PASSWORD']);
    this.#last += 1;
    const words = what === 'PASSWORD' ? `WITH PASSWORD 'p${this.#last}'` : what;
    if (expected && what === 'PASSWORD') {
      found.password = this.#last;
    } else if (expected) {
      found.enabled = what === 'ENABLE';
    }
    return await this.#say(by, `ALTER ${found.kind.toUpperCase()} ${name} ${words}`, expected);
  }

  /** A principal that may change passwords, except those of users with all permissions. */
  async #helpdesk(): Promise<string | null> {
    const given = ['ADD PASSWORD', 'ENABLE USER', 'DISABLE USER'].join(', ');
    const created = [
      "CREATE GROUP IF NOT EXISTS helpers WITH EXTERNAL ALIAS 'x-helpers'",
      `GRANT ${given} TO helpers`,
    ];
    for (const text of created) {
      await this.#statement(ADMIN, text, () => undefined);
    }
    const name = this.#choose(NAMES);
    const target = this.#there.get(name);
    // The helper has the same name as the user, but must not count as the same identity.
    const by = external(name, 'helper', ['x-helpers']);
    return await this.#alter(by, target === undefined || !this.#isAlmighty(target), name);
  }

  #isAlmighty(one: Person): boolean {
    const inherited = this.#inherited(one);
    const accounts = inherited.flatMap(({ accounts: names }) => [...names]);
    return [...inherited, ...accounts.flatMap((name) => this.#there.get(name) ?? [])].some(
      ({ admin }) => admin,
    );
  }

  async #rights(
    name = this.#choose([...NAMES, ...GROUPS]),
    choice = this.#pick(7),
    isGrant = this.#pick(3) > 0,
  ): Promise<string | null> {
    const found = this.#there.get(name);
    if (found === undefined) {
      return null;
    }
    const verb = isGrant ? `GRANT` : 'REVOKE';
    const to = isGrant ? 'TO' : 'FROM';
    const table = this.#choose(TABLES);
    // It is an error, not tested here, to revoke a group's permission from one of its members.
    const comesAlong = this.#inherited(found)
      .slice(1)
      .some((group) =>
        choice < 4 ? group.tables.has(table) : choice < 6 ? group.pgwire : group.admin,
      );
    if (!isGrant && comesAlong) {
      return null;
    }
    if (choice < 4) {
      found.tables[isGrant ? 'add' : 'delete'](table);
      return await this.#say(ADMIN, `${verb} SELECT ON ${table} ${to} ${name}`, true);
    }
    if (choice < 6) {
      found.pgwire = isGrant;
      return await this.#say(ADMIN, `${verb} PGWIRE ${to} ${name}`, true);
    }
    found.admin = isGrant;
    return await this.#say(ADMIN, `${verb} DATABASE ADMIN ${to} ${name}`, true);
  }

  async #membership(
    user = this.#choose(NAMES),
    group = this.#choose(GROUPS),
  ): Promise<string | null> {
    const found = this.#there.get(user);
    if (found?.kind !== 'user' || !this.#there.has(group)) {
      return null;
    }
    const isIn = found.groups.has(group);
    found.groups[isIn ? 'delete' : 'add'](group);
    const words = isIn ? `REMOVE USER ${user} FROM ${group}` : `ADD USER ${user} TO ${group}`;
    return await this.#say(ADMIN, words, true);
  }

  async #assumption(
    account = this.#choose(NAMES),
    holder = this.#choose([...NAMES, ...GROUPS]),
    isGrant = this.#pick(3) > 0,
  ): Promise<string | null> {
    const found = this.#there.get(holder);
    if (this.#there.get(account)?.kind !== 'service account' || found === undefined) {
      return null;
    }
    const isPossible = !isGrant || found.kind !== 'service account';
    if (isPossible) {
      found.accounts[isGrant ? 'add' : 'delete'](account);
    }
    const words = isGrant ? `GRANT` : 'REVOKE';
    const to = isGrant ? 'TO' : 'FROM';
    return await this.#say(
      ADMIN,
      `${words} ASSUME SERVICE ACCOUNT ${account} ${to} ${holder}`,
      isPossible,
    );
  }

  async #login(name = this.#choose(NAMES)): Promise<string | null> {
    const found = this.#there.get(name);
    const password = this.#pick(5) === 0 ? 0 : (found?.password ?? 0);
    this.#steps.push(`${name} logs in with p${password}`);
    const { directory } = this.#server;
    const book = await LoginBook.of([], 'cleartext', { directory, failures: new FailureLimiter() });
    const exchange = book.begin(name, { address: 'here' });
    const entered = await exchange.answer(Buffer.from(`p${password}\0`)).then(
      (step) => step.entered,
      () => null,
    );
    const may =
      found !== undefined &&
      found.kind !== 'group' &&
      found.enabled &&
      found.password === password &&
      this.#reach(found).pgwire;
    if ((entered !== null) !== may) {
      return `expected ${may ? 'a login' : 'a refused login'}`;
    }
    if (entered !== null && found !== undefined) {
      const sessionUser = new SessionUser(entered, false);
      const { number } = found;
      this.#connections.push({
        name,
        number,
        password,
        sessionUser,
        principal: sessionUser,
        account: null,
      });
    }
    return null;
  }

  async #become(account = this.#choose(NAMES)): Promise<string | null> {
    const connection = this.#connections[this.#pick(Math.max(1, this.#connections.length))];
    if (connection === undefined || !this.#lives(connection)) {
      return null;
    }
    const found = this.#there.get(account);
    const own = this.#reachOf(connection);
    const may =
      found?.kind === 'service account' && found.enabled && (own.all || own.accounts.has(account));
    this.#steps.push(`${principalKey(connection.principal)} becomes ${account}`);
    const text = `ASSUME SERVICE ACCOUNT ${account}`;
    const refusal = await this.#statement(connection.principal, text, (principal) => {
      connection.principal = principal ?? connection.sessionUser;
    });
    if ((refusal === null) !== may) {
      return `expected ${String(may)}, was: ${refusal ?? 'it ran'}`;
    }
    // A session that has assumed an account may use the same permission to assume the next account.
    if (may && connection.account === null) {
      connection.account = { name: account, number: found.number };
    } else if (may) {
      this.#connections.splice(this.#connections.indexOf(connection), 1);
    }
    return null;
  }

  #view(): string | null {
    const outside = external(
      this.#choose(NAMES),
      'someone',
      GROUPS.filter(() => this.#pick(2) === 0).map((group) => `x-${group}`),
    );
    const connection = this.#connections[this.#pick(this.#connections.length + 1)];
    const by = connection?.principal ?? outside;
    const reach =
      connection === undefined ? this.#reachOfGroups(outside) : this.#reachOf(connection);
    const owner = this.#pick(3) === 0 ? null : this.#choose([...NAMES, ...GROUPS, 'admin']);
    const words = owner === null ? '' : ` OWNED BY ${owner}`;
    this.#steps.push(`${principalKey(by)}: CREATE VIEW v AS (SELECT 1)${words}`);
    let created: Owner | null = null;
    try {
      created = this.#server.viewOwner(by, parse(`CREATE VIEW v AS (SELECT 1)${words}`));
    } catch (error) {
      if (!(error instanceof DatabaseError)) {
        throw error;
      }
    }
    const self = connection?.account ?? connection ?? null;
    const target = owner === null ? undefined : this.#there.get(owner);
    const may =
      owner === null
        ? self !== null
        : owner === 'admin'
          ? reach.all
          : target !== undefined &&
            (reach.all || this.#mayActAs(target, owner, self, reach, outside));
    if ((created !== null) !== may) {
      return `expected ${may ? 'an owner' : 'no owner'}, was ${JSON.stringify(created)}`;
    }
    if (created !== null) {
      const number = owner === 'admin' ? null : (target?.number ?? self?.number ?? -1);
      this.#views.push({ owner: created, number });
    }
    return null;
  }

  #mayActAs(
    target: Person,
    name: string,
    self: { readonly name: string; readonly number: number } | null,
    reach: Reach,
    outside: Principal,
  ): boolean {
    const own = self === null ? undefined : this.#alive(self.name, self.number);
    const groups =
      self === null
        ? (outside.identity?.externalGroups ?? []).map((alias) => alias.slice(2))
        : [...(own?.groups ?? [])];
    return (
      target.number === self?.number ||
      (target.kind === 'group' && groups.includes(name)) ||
      (target.kind === 'service account' && reach.accounts.has(name))
    );
  }

  // ---- queries on the model ----

  #alive(name: string, number: number): Person | undefined {
    const found = this.#there.get(name);
    return found?.number === number ? found : undefined;
  }

  #inherited(one: Person): readonly Person[] {
    return [one, ...[...one.groups].flatMap((name) => this.#there.get(name) ?? [])];
  }

  #reach(one: Person): Reach {
    return reachOf(this.#inherited(one));
  }

  #reachOfGroups({ identity }: Principal): Reach {
    const names = (identity?.externalGroups ?? []).map((alias) => alias.slice(2));
    return reachOf(names.flatMap((name) => this.#there.get(name) ?? []));
  }

  #lives({ name, number, password }: Connection): boolean {
    const found = this.#alive(name, number);
    return found?.enabled === true && found.password === password && this.#reach(found).pgwire;
  }

  #reachOf({ name, number, account }: Connection): Reach {
    const login = this.#alive(name, number);
    if (login?.enabled !== true) {
      return NOTHING;
    }
    const own = this.#reach(login);
    if (account === null) {
      return own;
    }
    const found = this.#alive(account.name, account.number);
    const may = own.all || own.accounts.has(account.name);
    return may && found?.enabled === true ? reachOf([found]) : NOTHING;
  }

  // ---- comparison ----

  async #compare(): Promise<string | null> {
    for (const connection of [...this.#connections]) {
      const refusal = await connection.sessionUser.refusal();
      if ((refusal === null) !== this.#lives(connection)) {
        return `session of ${connection.name}: ${refusal?.message ?? 'continues'}`;
      }
      // Ended sessions are also checked, because statements still running in them use the current
      // permissions.
      const reach = this.#reachOf(connection);
      for (const table of TABLES) {
        const reads = this.#reads(connection.principal, { table });
        if (reads !== (reach.all || reach.tables.has(table))) {
          return `${principalKey(connection.principal)} on ${table}: ${String(reads)}`;
        }
      }
      if (refusal !== null) {
        this.#connections.splice(this.#connections.indexOf(connection), 1);
      }
    }
    return this.#compareViews() ?? this.#compareKeys();
  }

  #compareViews(): string | null {
    for (const { owner, number } of this.#views) {
      const alive = [...this.#there.values()].find((one) => one.number === number);
      const reach = alive === undefined ? NOTHING : this.#reach(alive);
      for (const table of TABLES) {
        const reads = this.#reads(ADMIN, { table, view: 'v', owner });
        if (reads !== (number === null || reach.all || reach.tables.has(table))) {
          return `view of ${JSON.stringify(owner)} on ${table}: ${reads ? 'reads' : 'refused'}`;
        }
      }
    }
    return null;
  }

  /** Different principals must have different keys, whatever their names. */
  #compareKeys(): string | null {
    const numbers = new Map<string, number>();
    for (const { principal, number, account } of this.#connections) {
      const key = principalKey(principal);
      const who = account?.number ?? number;
      if ((numbers.get(key) ?? who) !== who) {
        return `${key} is two`;
      }
      numbers.set(key, who);
    }
    const outside = NAMES.map((name) => principalKey(external(name, name, [])));
    return outside.find((key) => numbers.has(key)) ?? null;
  }

  #reads(by: Principal, access: { table: string; view?: string; owner?: Owner }): boolean {
    try {
      this.#server.authorise(by, [{ columns: ['a'], permission: 'SELECT', ...access }]);
      return true;
    } catch {
      return false;
    }
  }
}

function external(name: string, subject: string, externalGroups: readonly string[]): Principal {
  const identity: Identity = { kind: 'external', name, issuer: ISSUER, subject, externalGroups };
  return { name, readOnly: false, identity };
}

function reachOf(all: readonly Person[]): Reach {
  const isAll = all.some(({ admin }) => admin);
  return {
    all: isAll,
    tables: new Set(all.flatMap(({ tables }) => [...tables])),
    accounts: new Set(all.flatMap(({ accounts }) => [...accounts])),
    pgwire: isAll || all.some(({ pgwire }) => pgwire),
  };
}
