/** Prints access control statements. */
import type {
  AccessStatement,
  GrantTable,
  GrantTarget,
  Name,
  Password,
  Permission,
  PrincipalChange,
} from '../ast.generated.js';
import { assertNever, printName, printValue } from './print-expression.js';

const KINDS = { User: 'USER', Group: 'GROUP', ServiceAccount: 'SERVICE ACCOUNT' } as const;

type Grant = Extract<AccessStatement, { statement: 'Grant' | 'Revoke' }>;

export function printAccess(access: AccessStatement): string {
  switch (access.statement) {
    case 'Create': {
      const exists = access.if_not_exists ? 'IF NOT EXISTS ' : '';
      const alias =
        access.external_alias === null
          ? ''
          : ` WITH EXTERNAL ALIAS ${printValue(access.external_alias)}`;
      const password = access.password === null ? '' : ` ${printPassword(access.password)}`;
      const owner = access.owner === null ? '' : ` OWNED BY ${printName(access.owner)}`;
      const name = printName(access.name);
      return `CREATE ${KINDS[access.principal]} ${exists}${name}${password}${alias}${owner}`;
    }
    case 'Drop': {
      const exists = access.if_exists ? 'IF EXISTS ' : '';
      return `DROP ${KINDS[access.principal]} ${exists}${printName(access.name)}`;
    }
    case 'Alter': {
      const head = `ALTER ${KINDS[access.principal]} ${printName(access.name)}`;
      return `${head} ${printChange(access.change)}`;
    }
    case 'AddMember':
      return `ADD USER ${printName(access.user)} TO ${list(access.groups)}`;
    case 'RemoveMember':
      return `REMOVE USER ${printName(access.user)} FROM ${list(access.groups)}`;
    case 'Assume':
      return `ASSUME SERVICE ACCOUNT ${printName(access.account)}`;
    case 'Exit':
      return access.account === null
        ? 'EXIT SERVICE ACCOUNT'
        : `EXIT SERVICE ACCOUNT ${printName(access.account)}`;
    default:
      return printGrant(access);
  }
}

function list(names: readonly Name[]): string {
  return names.map(printName).join(', ');
}

function printPassword(password: Password): string {
  return password.password === 'None'
    ? 'WITH NO PASSWORD'
    : `WITH PASSWORD ${printValue(password.value)}`;
}

function printChange(change: PrincipalChange): string {
  switch (change.change) {
    case 'Enable':
      return 'ENABLE';
    case 'Disable':
      return 'DISABLE';
    case 'SetPassword':
      return printPassword(change.to);
    case 'CreateToken': {
      const ttl = change.ttl === null ? '' : ` WITH TTL ${printValue(change.ttl)}`;
      const refresh = change.refresh ? ' REFRESH' : '';
      return `CREATE TOKEN TYPE ${change.token.toUpperCase()}${ttl}${refresh}`;
    }
    case 'DropToken': {
      const value = change.value === null ? '' : ` ${printValue(change.value)}`;
      return `DROP TOKEN TYPE ${change.token.toUpperCase()}${value}`;
    }
    case 'AddAlias':
      return `WITH EXTERNAL ALIAS ${printValue(change.alias)}`;
    case 'DropAlias':
      return `DROP EXTERNAL ALIAS ${printValue(change.alias)}`;
    default:
      return assertNever(change);
  }
}

function printGrant(grant: Grant): string {
  const permissions = grant.permissions.map(printPermission).join(', ');
  const on = grant.on === null ? '' : ` ON ${printTarget(grant.on)}`;
  if (grant.statement === 'Revoke') {
    return `REVOKE ${permissions}${on} FROM ${printName(grant.from)}`;
  }
  const option = grant.grant_option ? ' WITH GRANT OPTION' : '';
  const verification = grant.verification ? ' WITH VERIFICATION' : '';
  return `GRANT ${permissions}${on} TO ${printName(grant.to)}${option}${verification}`;
}

function printPermission({ name, account }: Permission): string {
  return account === null ? name : `${name} ${printName(account)}`;
}

function printTarget(target: GrantTarget): string {
  return target.target === 'AllTables' ? 'ALL TABLES' : target.tables.map(printTable).join(', ');
}

function printTable({ table, columns, all_columns: all, exclude }: GrantTable): string {
  if (!all && columns.length === 0) {
    return printName(table);
  }
  const except = exclude.length === 0 ? '' : ` EXCLUDE (${list(exclude)})`;
  return `${printName(table)}(${all ? '*' : list(columns)}${except})`;
}
