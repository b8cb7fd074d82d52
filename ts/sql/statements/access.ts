/** Parses statements about users, groups, service accounts and their rights. */
import type {
  AccessStatement,
  GrantTable,
  GrantTarget,
  Name,
  NodeId,
  Password,
  Permission,
  PrincipalChange,
  PrincipalKind,
  TokenType,
} from '../ast.generated.js';
import { TokenKind } from '../lexer/lexer.js';
import type { Parser } from '../parser/parser.js';

/** Consumes `USER`, `GROUP` or `SERVICE ACCOUNT`; returns `null` if none follows. */
function takePrincipal(p: Parser): PrincipalKind | null {
  if (p.take('USER')) {
    return 'User';
  }
  // GROUP is a reserved word, but the second word of this statement is never a name.
  if (p.take('GROUP')) {
    return 'Group';
  }
  return p.take('SERVICE', 'ACCOUNT') ? 'ServiceAccount' : null;
}

/** Returns whether CREATE, ALTER or DROP at the cursor concerns a principal. */
export function atPrincipal(p: Parser): boolean {
  const word = p.value(1);
  const service = word === 'SERVICE' && p.value(2) === 'ACCOUNT';
  const isName = p.kind(1) === TokenKind.Word;
  return isName && (word === 'USER' || word === 'GROUP' || service);
}

/** Parses the name of a user, group or account, optionally in single quotes. */
function principalName(p: Parser, missing: string): Name {
  if (p.kind() === TokenKind.String) {
    return p.takeName(true);
  }
  return p.qualified(p.name(missing));
}

/** Parses a password, token, duration or alias, which is a string or a word. */
function text(p: Parser, missing: string): Name {
  return p.kind() === TokenKind.String ? p.takeName(true) : p.name(missing);
}

function add(p: Parser, access: AccessStatement, start: number): NodeId {
  return p.add({ kind: 'Access', access }, start, p.lastEnd());
}

const MISSING: Readonly<Record<PrincipalKind, string>> = {
  User: 'user name expected',
  Group: 'group name expected',
  ServiceAccount: 'service account name expected',
};

/** Parses `CREATE | ALTER | DROP` for a principal, with the cursor at the first keyword. */
export function parsePrincipal(p: Parser): NodeId {
  const start = p.start();
  const verb = p.value();
  p.advance();
  const principal = takePrincipal(p) ?? p.fail("'user', 'group' or 'service account' expected");
  const missing = MISSING[principal];
  if (verb === 'ALTER') {
    const name = principalName(p, missing);
    return add(p, { statement: 'Alter', principal, name, change: change(p, principal) }, start);
  }
  if (verb === 'DROP') {
    const if_exists = p.take('IF', 'EXISTS');
    const name = principalName(p, missing);
    return add(p, { statement: 'Drop', principal, name, if_exists }, start);
  }
  const if_not_exists = p.take('IF', 'NOT', 'EXISTS');
  const name = principalName(p, missing);
  let password: Password | null = null;
  let external_alias: Name | null = null;
  if (p.at('WITH')) {
    if (principal === 'Group') {
      external_alias = externalAlias(p);
    } else {
      password = parsePassword(p);
    }
  }
  const owner = p.take('OWNED', 'BY') ? principalName(p, 'owner expected') : null;
  const properties = { if_not_exists, password, external_alias, owner };
  return add(p, { statement: 'Create', principal, name, ...properties }, start);
}

/** Parses `WITH PASSWORD p` or `WITH NO PASSWORD`. */
function parsePassword(p: Parser): Password {
  p.expect('WITH');
  if (p.take('NO', 'PASSWORD')) {
    return { password: 'None' };
  }
  p.expect('PASSWORD', "'password' or 'no password' expected");
  if (p.kind() === TokenKind.String && p.unquoted() === '') {
    p.fail('password cannot be empty');
  }
  return { password: 'Given', value: text(p, 'password expected') };
}

/** Parses `WITH EXTERNAL ALIAS 'name'`. */
function externalAlias(p: Parser): Name {
  p.expect('WITH');
  p.expect('EXTERNAL', "'external alias' expected");
  p.expect('ALIAS');
  return text(p, 'external alias expected');
}

function change(p: Parser, principal: PrincipalKind): PrincipalChange {
  if (principal === 'Group') {
    if (p.at('WITH')) {
      return { change: 'AddAlias', alias: externalAlias(p) };
    }
    if (!p.take('DROP', 'EXTERNAL', 'ALIAS')) {
      p.fail("'with external alias' or 'drop external alias' expected");
    }
    return { change: 'DropAlias', alias: text(p, 'external alias expected') };
  }
  if (p.take('ENABLE')) {
    return { change: 'Enable' };
  }
  if (p.take('DISABLE')) {
    return { change: 'Disable' };
  }
  if (p.at('WITH')) {
    return { change: 'SetPassword', to: parsePassword(p) };
  }
  if (p.take('CREATE', 'TOKEN', 'TYPE')) {
    return createToken(p);
  }
  if (p.take('DROP', 'TOKEN', 'TYPE')) {
    const token = tokenType(p);
    const hasValue = token === 'Rest' && p.kind() === TokenKind.String;
    return { change: 'DropToken', token, value: hasValue ? p.takeName(true) : null };
  }
  return p.fail(
    "'enable', 'disable', 'with password', 'with no password', 'create token' or 'drop token' " +
      'expected',
  );
}

function tokenType(p: Parser): TokenType {
  if (p.take('JWK')) {
    return 'Jwk';
  }
  p.expect('REST', "'jwk' or 'rest' expected");
  return 'Rest';
}

function createToken(p: Parser): PrincipalChange {
  const token = tokenType(p);
  if (token === 'Jwk') {
    return { change: 'CreateToken', token, ttl: null, refresh: false };
  }
  p.expect('WITH', "'with ttl' expected");
  p.expect('TTL');
  if (p.kind() !== TokenKind.String && p.kind() !== TokenKind.Duration) {
    p.fail("time to live expected, such as '30d'");
  }
  const ttl = p.takeName(p.kind() === TokenKind.String);
  return { change: 'CreateToken', token, ttl, refresh: p.take('REFRESH') };
}

/** Parses `ADD USER u TO g, …` or `REMOVE USER u FROM g, …`. */
export function parseMembership(p: Parser): NodeId {
  const start = p.start();
  const adds = p.at('ADD');
  p.advance(2);
  const user = principalName(p, MISSING.User);
  p.expect(adds ? 'TO' : 'FROM');
  const groups = p.list(() => principalName(p, MISSING.Group));
  return add(p, { statement: adds ? 'AddMember' : 'RemoveMember', user, groups }, start);
}

/** Parses `ASSUME SERVICE ACCOUNT s` or `EXIT SERVICE ACCOUNT [s]`. */
export function parseAssume(p: Parser): NodeId {
  const start = p.start();
  const assumes = p.at('ASSUME');
  p.advance();
  p.expect('SERVICE', "'service account' expected");
  p.expect('ACCOUNT');
  if (assumes) {
    const account = principalName(p, MISSING.ServiceAccount);
    return add(p, { statement: 'Assume', account }, start);
  }
  const none = p.atEnd() || p.at(';');
  const account = none ? null : principalName(p, MISSING.ServiceAccount);
  return add(p, { statement: 'Exit', account }, start);
}

/** Parses `GRANT permissions [ON target] TO e …` or `REVOKE permissions [ON target] FROM e`. */
export function parseGrant(p: Parser): NodeId {
  const start = p.start();
  const grants = p.at('GRANT');
  p.advance();
  const permissions = p.list(() => permission(p));
  const on = p.take('ON') ? target(p) : null;
  p.expect(grants ? 'TO' : 'FROM');
  const entity = principalName(p, 'user, group or service account name expected');
  if (!grants) {
    return add(p, { statement: 'Revoke', permissions, on, from: entity }, start);
  }
  const grant_option = p.take('WITH', 'GRANT', 'OPTION');
  const verification = p.take('WITH', 'VERIFICATION');
  const node = { permissions, on, to: entity, grant_option, verification };
  return add(p, { statement: 'Grant', ...node }, start);
}

const AFTER_PERMISSION: ReadonlySet<string> = new Set(['ON', 'TO', 'FROM']);

function permission(p: Parser): Permission {
  const start = p.start();
  if (p.take('ASSUME', 'SERVICE', 'ACCOUNT')) {
    const account = principalName(p, MISSING.ServiceAccount);
    return { name: 'ASSUME SERVICE ACCOUNT', account, span: { start, end: p.lastEnd() } };
  }
  const words: string[] = [];
  while (p.kind() === TokenKind.Word && !p.atAnyOf(AFTER_PERMISSION)) {
    p.countTerm(words.length, start);
    words.push(p.value());
    p.advance();
  }
  if (words.length === 0) {
    p.fail('permission expected');
  }
  return { name: words.join(' '), account: null, span: { start, end: p.lastEnd() } };
}

function target(p: Parser): GrantTarget {
  if (p.take('ALL', 'TABLES')) {
    return { target: 'AllTables' };
  }
  return { target: 'Tables', tables: p.list(() => grantTable(p)) };
}

/** Parses `t`, `t(a, b)`, `t(*)` or `t(* EXCLUDE (c))`. */
function grantTable(p: Parser): GrantTable {
  const table = p.tableName('table name expected');
  const columnName = (): Name => p.columnName('column name expected');
  if (!p.at('(')) {
    return { table, columns: [], all_columns: false, exclude: [] };
  }
  if (p.value(1) !== '*') {
    return { table, columns: p.parenthesised(columnName), all_columns: false, exclude: [] };
  }
  const open = p.start();
  p.advance(2);
  const exclude = p.take('EXCLUDE') ? p.parenthesised(columnName) : [];
  p.close(open);
  return { table, columns: [], all_columns: true, exclude };
}
