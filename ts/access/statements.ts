/** The access control statements. Each runs as a single commit. */
import { type Identity, scramVerifier } from '../auth/index.js';
import {
  type Actor,
  DatabaseError,
  type OwnAction,
  OwnStatement,
  type ServerStatements,
  type Statement,
  type StatementContext,
} from '../session/index.js';
import {
  type AccessStatement,
  type Name,
  parse,
  type Password,
  type PrincipalChange,
  type PrincipalKind as NodeKind,
  type Tree,
} from '../sql/index.js';
import { denied } from './authorise.js';
import { assumedAccounts, granted, grantSteps, requireOption, revoked } from './grants.js';
import { isDatabaseAdmin } from './model.js';
import { newPrincipal, type PrincipalKind, type StoredPrincipal } from './principals.js';
import { NAME_AN_OWNER } from './owners.js';
import { readSchema } from './schema.js';
import { type AccessContext, NO_IDENTITY, require, rightsOf } from './setting.js';
import { type AccessStore, type Draft, refused, type Rights } from './store.js';
import { newKey, newToken, tokenDigest, ttlMs } from './tokens.js';

const KINDS: Readonly<Record<NodeKind, PrincipalKind>> = {
  User: 'user',
  Group: 'group',
  ServiceAccount: 'service account',
};

type Of<Statement extends AccessStatement['statement']> = Extract<
  AccessStatement,
  { statement: Statement }
>;

const TOKEN_COLUMNS = ['name', 'token', 'expires_at', 'refresh'] as const;
const KEY_COLUMNS = ['name', 'public_key_x', 'public_key_y', 'private_key'] as const;
const CONTROL = /\p{Cc}/u;

/** The user who runs a statement, with that user's current rights. */
interface Requester {
  readonly actor: Actor;
  readonly rights: Rights;
}

export class AccessStatements implements ServerStatements {
  /** `null` when access control is off. */
  readonly #context: AccessContext | null;
  readonly #prepare: (sql: string, context: StatementContext) => Promise<Statement>;

  constructor(
    context: AccessContext | null,
    prepare: (tree: Buffer, context: StatementContext) => Promise<Statement>,
  ) {
    this.#context = context;
    this.#prepare = (sql, setting) => prepare(Buffer.from(JSON.stringify(parse(sql))), setting);
  }

  async prepare(tree: Tree, context: StatementContext, actor: Actor): Promise<Statement> {
    const access = accessOf(tree);
    if (access === null) {
      throw new DatabaseError({ code: 'Internal', message: 'not an access control statement' });
    }
    if (this.#context === null) {
      const message = 'access control is off: set acl.enabled=true and restart';
      throw new DatabaseError({ code: 'NotSupported', message });
    }
    const isSession = access.statement === 'Assume' || access.statement === 'Exit';
    if (context.readOnly === true && !isSession) {
      const message = 'Write permission denied: the session is read-only';
      throw new DatabaseError({ code: 'ReadOnly', message });
    }
    const action = new Action(this.#context, access, actor).own();
    return await OwnStatement.of(commandOf(access), action, (sql) => this.#prepare(sql, context));
  }
}

function accessOf({ nodes, root }: Partial<Tree>): AccessStatement | null {
  const node = root === undefined ? undefined : nodes?.[root];
  return node?.kind === 'Access' ? node.access : null;
}

function commandOf(access: AccessStatement): string {
  switch (access.statement) {
    case 'Create':
    case 'Drop':
    case 'Alter':
      return `${access.statement} ${KINDS[access.principal]}`.toUpperCase();
    case 'AddMember':
      return 'ADD USER';
    case 'RemoveMember':
      return 'REMOVE USER';
    case 'Assume':
    case 'Exit':
      return `${access.statement.toUpperCase()} SERVICE ACCOUNT`;
    case 'Grant':
    case 'Revoke':
      return access.statement.toUpperCase();
  }
}

/** A prepared statement. */
class Action {
  readonly #context: AccessContext;
  readonly #access: AccessStatement;
  readonly #actor: Actor;

  constructor(context: AccessContext, access: AccessStatement, actor: Actor) {
    this.#context = context;
    this.#access = access;
    this.#actor = actor;
  }

  own(): OwnAction {
    const permissions = permissionsOf(this.#access);
    return {
      accesses: permissions.map((permission) => ({ table: '', columns: [], permission })),
      columns: columnsOf(this.#access),
      run: () => this.#run(),
    };
  }

  async #run(): Promise<readonly string[]> {
    const access = this.#access;
    if (access.statement === 'Assume' || access.statement === 'Exit') {
      this.#become(access);
      return [];
    }
    return await this.#context.store.change(async (draft) => {
      // Rights are read again, because they may have changed while the statement was queued.
      const rights = rightsOf(this.#context.store, this.#actor.principal);
      for (const permission of permissionsOf(access)) {
        require(rights, permission);
      }
      return await this.#change(draft, access, { actor: this.#actor, rights });
    });
  }

  async #change(
    draft: Draft,
    access: Exclude<AccessStatement, Of<'Assume'> | Of<'Exit'>>,
    requester: Requester,
  ): Promise<readonly string[]> {
    switch (access.statement) {
      case 'Create':
        await this.#create(draft, access, requester);
        return [];
      case 'Drop':
        this.#drop(draft, access, requester);
        return [];
      case 'Alter':
        return await this.#alter(draft, access, requester);
      case 'AddMember':
      case 'RemoveMember':
        this.#member(draft, access, requester);
        return [];
      case 'Grant':
        await this.#grant(draft, access, requester);
        return [];
      case 'Revoke':
        await this.#revoke(draft, access, requester);
        return [];
    }
  }

  // ---- principals ----

  async #create(draft: Draft, access: Of<'Create'>, requester: Requester): Promise<void> {
    const { name, if_not_exists: isConditional, password, external_alias: alias, owner } = access;
    this.#checkName(name);
    const kind = KINDS[access.principal];
    const existing = draft.find(name.text);
    if (existing?.kind === kind && isConditional) {
      return;
    }
    if (existing !== undefined || name.text === this.#context.setting.adminName) {
      const what = existing?.kind ?? 'administrator';
      throw refused(`the name '${name.text}' is already in use [kind=${what}]`, name.span);
    }
    const verifier = password === null ? null : await this.#verifier(name.text, password);
    let created = { ...newPrincipal(name.text, kind), verifier };
    if (alias !== null) {
      created = { ...created, aliases: [this.#freeAlias(draft, alias)] };
    }
    draft.put(created);
    if (kind === 'service account') {
      this.#own(draft, name.text, owner, requester);
    } else if (owner !== null) {
      throw refused(`a ${kind} cannot have an owner: remove OWNED BY`, owner.span);
    }
  }

  /** Allows the creator of a service account to assume it, unless another owner is named. */
  #own(draft: Draft, account: string, owner: Name | null, { actor }: Requester): void {
    const { name, identity } = actor.principal;
    if (owner === null && identity?.kind === 'admin') {
      return;
    }
    if (owner === null && identity?.kind === 'external') {
      throw refused(NAME_AN_OWNER);
    }
    const principal = this.#existing(draft, owner ?? { text: name, span: { start: 0, end: 0 } });
    draft.put({ ...principal, accounts: new Map([...principal.accounts, [account, true]]) });
  }

  #drop(draft: Draft, access: Of<'Drop'>, requester: Requester): void {
    const { name, if_exists: isConditional } = access;
    const kind = KINDS[access.principal];
    const principal = draft.find(name.text);
    if (principal?.kind !== kind) {
      if (isConditional && principal === undefined) {
        return;
      }
      throw this.#missing(kind, name);
    }
    requireOver(this.#context.store, requester, principal);
    draft.remove(name.text);
    for (const other of draft.list()) {
      const groups = other.groups.filter((group) => group !== name.text);
      const accounts = new Map(other.accounts);
      if (accounts.delete(name.text) || groups.length < other.groups.length) {
        draft.put({ ...other, groups, accounts });
      }
    }
  }

  async #alter(
    draft: Draft,
    access: Of<'Alter'>,
    requester: Requester,
  ): Promise<readonly string[]> {
    const { name, change } = access;
    const principal = this.#ofKind(draft, name, KINDS[access.principal]);
    requireOver(this.#context.store, requester, principal);
    switch (change.change) {
      case 'Enable':
      case 'Disable':
        draft.put({ ...principal, enabled: change.change === 'Enable' });
        return [];
      case 'SetPassword':
        draft.put({ ...principal, verifier: await this.#verifier(principal.name, change.to) });
        return [];
      case 'AddAlias': {
        const alias = this.#freeAlias(draft, change.alias);
        draft.put({ ...principal, aliases: [...principal.aliases, alias] });
        return [];
      }
      case 'DropAlias':
        this.#dropAlias(draft, principal, change.alias);
        return [];
      case 'CreateToken':
        return this.#createToken(draft, principal, change);
      case 'DropToken':
        this.#dropToken(draft, principal, change);
        return [];
    }
  }

  #dropAlias(draft: Draft, group: StoredPrincipal, alias: Name): void {
    if (!group.aliases.includes(alias.text)) {
      throw refused(`group '${group.name}' has no external alias '${alias.text}'`, alias.span);
    }
    draft.put({ ...group, aliases: group.aliases.filter((current) => current !== alias.text) });
  }

  #createToken(
    draft: Draft,
    owner: StoredPrincipal,
    { token: type, ttl, refresh }: Extract<PrincipalChange, { change: 'CreateToken' }>,
  ): readonly string[] {
    if (type === 'Jwk') {
      const { x, y, secret } = newKey();
      draft.put({ ...owner, publicKey: { x, y } });
      return [owner.name, x, y, secret];
    }
    const lives = ttlMs(ttl?.text ?? '');
    if (lives === null) {
      const message = "expected a time to live from '1m' to '3650d', in units of s, m, h or d";
      throw refused(message, ttl?.span);
    }
    const token = newToken();
    const expires = Date.now() + lives;
    const digest = tokenDigest(token) ?? '';
    const alive = owner.tokens.filter((current) => current.expires > Date.now());
    draft.put({ ...owner, tokens: [...alive, { digest, expires, ttlMs: lives, refresh }] });
    return [owner.name, token, new Date(expires).toISOString(), String(refresh)];
  }

  #dropToken(
    draft: Draft,
    owner: StoredPrincipal,
    { token: type, value }: Extract<PrincipalChange, { change: 'DropToken' }>,
  ): void {
    if (type === 'Jwk') {
      draft.put({ ...owner, publicKey: null });
      return;
    }
    const digest = value === null ? null : tokenDigest(value.text);
    const remaining =
      value === null ? [] : owner.tokens.filter((current) => current.digest !== digest);
    if (value !== null && remaining.length === owner.tokens.length) {
      throw refused(`'${owner.name}' has no such token`, value.span);
    }
    draft.put({ ...owner, tokens: remaining });
  }

  #member(draft: Draft, access: Of<'AddMember'> | Of<'RemoveMember'>, requester: Requester): void {
    const user = this.#ofKind(draft, access.user, 'user');
    const groups = access.groups.map((name) => this.#ofKind(draft, name, 'group'));
    groups.forEach((group) => {
      requireOver(this.#context.store, requester, group);
    });
    const names = new Set(groups.map(({ name }) => name));
    const remainingGroups = user.groups.filter((group) => !names.has(group));
    const outside = access.groups.find(({ text }) => !user.groups.includes(text));
    if (access.statement === 'AddMember') {
      draft.put({ ...user, groups: [...remainingGroups, ...names] });
    } else if (outside === undefined) {
      draft.put({ ...user, groups: remainingGroups });
    } else {
      throw refused(`user '${user.name}' is not in group '${outside.text}'`, outside.span);
    }
  }

  // ---- rights ----

  async #grant(draft: Draft, access: Of<'Grant'>, { rights }: Requester): Promise<void> {
    const { permissions, on, to, grant_option: option, verification } = access;
    const accounts = this.#assumed(draft, access.permissions, rights);
    const schema = await readSchema(this.#context.database);
    const steps = grantSteps({ permissions, on, schema, verification, rights });
    requireOption(rights, steps);
    // A user who may grant nothing must not learn whether the name exists.
    const principal = this.#existing(draft, to);
    if (accounts.length > 0 && principal.kind === 'service account') {
      throw refused('a service account cannot assume another service account', to.span);
    }
    draft.put({
      ...principal,
      grants: granted(principal.grants, steps, option),
      accounts: new Map([
        ...principal.accounts,
        ...accounts.map((name) => [name, option] as const),
      ]),
    });
  }

  async #revoke(draft: Draft, access: Of<'Revoke'>, { rights }: Requester): Promise<void> {
    const { permissions, on, from } = access;
    const accounts = this.#assumed(draft, permissions, rights);
    const schema = await readSchema(this.#context.database);
    const steps = [...grantSteps({ permissions, on, schema, verification: false, rights })];
    requireOption(rights, steps);
    const principal = this.#existing(draft, from);
    if (on === null && permissions.some(({ name }) => name === 'ALL')) {
      requireOver(this.#context.store, { actor: this.#actor, rights }, principal);
      steps.push({ permission: 'DATABASE ADMIN', target: 'database' });
    }
    const groups = principal.groups.flatMap((name) => draft.find(name) ?? []);
    const remaining = new Map(principal.accounts);
    for (const account of accounts) {
      remaining.delete(account);
    }
    draft.put({
      ...principal,
      grants: revoked(principal, groups, steps, schema),
      accounts: remaining,
    });
  }

  /**
   * Returns the accounts in GRANT and REVOKE ASSUME. Throws unless the user has the grant option on
   * each.
   */
  #assumed(draft: Draft, permissions: Of<'Grant'>['permissions'], rights: Rights): string[] {
    return assumedAccounts(permissions).map((account) => {
      if (!rights.all && rights.accounts.get(account.text) !== true) {
        throw denied(`ASSUME SERVICE ACCOUNT ${account.text} WITH GRANT OPTION`);
      }
      return this.#ofKind(draft, account, 'service account').name;
    });
  }

  #become(access: Of<'Assume'> | Of<'Exit'>): void {
    const { store, audit } = this.#context;
    if (!this.#actor.isLasting) {
      const message = 'an HTTP session ends with its statement: use the PostgreSQL wire protocol';
      throw new DatabaseError({ code: 'NotSupported', message });
    }
    const { principal } = this.#actor;
    if (access.statement === 'Exit') {
      const isOther = access.account !== null && access.account.text !== principal.name;
      if (principal.identity?.kind !== 'service account' || isOther) {
        throw refused('the session has not assumed the service account', access.account?.span);
      }
      this.#actor.become(null);
      return;
    }
    const { text: name } = access.account;
    const rights = rightsOf(store, principal);
    const account = store.find(name);
    const isAllowed = rights.all || rights.accounts.has(name);
    if (!isAllowed || account?.kind !== 'service account' || !account.enabled) {
      throw denied(`ASSUME SERVICE ACCOUNT ${name}`);
    }
    audit.write('assume', principal.name, { account: name });
    const { readOnly } = principal;
    const { id } = account;
    const identity: Identity = {
      name,
      kind: 'service account',
      id,
      // Evaluated for each statement, because an external user's groups can change.
      get assumedBy() {
        return principal.identity ?? NO_IDENTITY;
      },
    };
    this.#actor.become({ name, readOnly, identity });
  }

  // ---- names ----

  #checkName({ text, span }: Name): void {
    const { nameLengthMax } = this.#context.setting;
    if (text.trim() === '' || CONTROL.test(text)) {
      throw refused('a name must not be empty or contain control characters', span);
    }
    if (text.length > nameLengthMax) {
      throw refused(`the name is too long [length=${text.length}, limit=${nameLengthMax}]`, span);
    }
  }

  #freeAlias(draft: Draft, { text, span }: Name): string {
    const owner = draft.list().find(({ aliases }) => aliases.includes(text));
    if (owner !== undefined) {
      throw refused(`external alias '${text}' belongs to group '${owner.name}'`, span);
    }
    return text;
  }

  #existing(draft: Draft, { text, span }: Pick<Name, 'text' | 'span'>): StoredPrincipal {
    const principal = draft.find(text);
    if (principal !== undefined) {
      return principal;
    }
    const message =
      text === this.#context.setting.adminName
        ? `'${text}' is the configured administrator, who always has all permissions`
        : `user, group or service account '${text}' does not exist`;
    throw refused(message, span);
  }

  #ofKind(draft: Draft, name: Name, kind: PrincipalKind): StoredPrincipal {
    const principal = draft.find(name.text);
    if (principal?.kind !== kind) {
      throw this.#missing(kind, name);
    }
    return principal;
  }

  #missing(kind: PrincipalKind, { text, span }: Name): DatabaseError {
    return refused(`no ${kind} '${text}'`, span);
  }

  async #verifier(name: string, password: Password): Promise<StoredPrincipal['verifier']> {
    const { setting, store } = this.#context;
    return password.password === 'None'
      ? null
      : await scramVerifier(password.value.text, store.salts.of(name), setting.hashIterations);
  }
}

/** Requires all rights for changes to a principal that has, or can obtain, all rights. */
function requireOver(store: AccessStore, { rights }: Requester, target: StoredPrincipal): void {
  const reach = store.reachOf(target).map(({ grants }) => grants);
  if (!rights.all && isDatabaseAdmin(reach)) {
    throw denied('DATABASE ADMIN');
  }
}

function columnsOf(access: AccessStatement): readonly string[] {
  if (access.statement !== 'Alter' || access.change.change !== 'CreateToken') {
    return [];
  }
  return access.change.token === 'Jwk' ? KEY_COLUMNS : TOKEN_COLUMNS;
}

/** Returns the permissions that the statement requires in addition to those that it grants. */
function permissionsOf(access: AccessStatement): readonly string[] {
  switch (access.statement) {
    case 'Create': {
      const withPassword = access.password?.password === 'Given' ? ['ADD PASSWORD'] : [];
      const withAlias = access.external_alias === null ? [] : ['ADD EXTERNAL ALIAS'];
      return [`CREATE ${KINDS[access.principal].toUpperCase()}`, ...withPassword, ...withAlias];
    }
    case 'Drop':
      return [`DROP ${KINDS[access.principal].toUpperCase()}`];
    case 'Alter':
      return [permissionOfChange(access.change)];
    case 'AddMember':
      return ['ADD USER'];
    case 'RemoveMember':
      return ['REMOVE USER'];
    case 'Assume':
    case 'Exit':
    case 'Grant':
    case 'Revoke':
      return [];
  }
}

function permissionOfChange(change: PrincipalChange): string {
  switch (change.change) {
    case 'Enable':
      return 'ENABLE USER';
    case 'Disable':
      return 'DISABLE USER';
    case 'SetPassword':
      return change.to.password === 'None' ? 'REMOVE PASSWORD' : 'ADD PASSWORD';
    case 'CreateToken':
      return change.token === 'Jwk' ? 'CREATE JWK' : 'CREATE REST TOKEN';
    case 'DropToken':
      return change.token === 'Jwk' ? 'DROP JWK' : 'DROP REST TOKEN';
    case 'AddAlias':
      return 'ADD EXTERNAL ALIAS';
    case 'DropAlias':
      return 'REMOVE EXTERNAL ALIAS';
  }
}
