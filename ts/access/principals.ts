/** Users, groups and service accounts as stored, with one record each. */
import { randomBytes } from 'node:crypto';

import type { PublicKey, ScramVerifier } from '../auth/index.js';
import { type Grants, type GrantRow, grantRows, grantsOf, NO_GRANTS } from './model.js';

export type PrincipalKind = 'user' | 'group' | 'service account';

export interface RestToken {
  /** SHA-256 in hexadecimal; the token itself is shown once and not stored. */
  readonly digest: string;
  /** Milliseconds since 1970. */
  readonly expires: number;
  readonly ttlMs: number;
  /** Whether every login extends the expiry. */
  readonly refresh: boolean;
}

export interface StoredPrincipal {
  /** IDs are never reused: a later principal of the same name gets a different ID. */
  readonly id: string;
  readonly name: string;
  readonly kind: PrincipalKind;
  readonly enabled: boolean;
  readonly verifier: ScramVerifier | null;
  readonly publicKey: PublicKey | null;
  readonly tokens: readonly RestToken[];
  /** For groups: the names of the same group at identity providers. */
  readonly aliases: readonly string[];
  /** The user's groups; empty for other principals. */
  readonly groups: readonly string[];
  /** Service accounts that the principal may assume, and whether it may grant that right. */
  readonly accounts: ReadonlyMap<string, boolean>;
  readonly grants: Grants;
}

const ID_BYTES = 12;

/** Returns the ID for a record from an older version, which stored only the name. */
export function idOfName(name: string): string {
  return `named ${name}`;
}

export function newPrincipal(name: string, kind: PrincipalKind): StoredPrincipal {
  return {
    id: randomBytes(ID_BYTES).toString('hex'),
    name,
    kind,
    enabled: true,
    verifier: null,
    publicKey: null,
    tokens: [],
    aliases: [],
    groups: [],
    accounts: new Map(),
    grants: NO_GRANTS,
  };
}

interface StoredVerifier {
  readonly salt: string;
  readonly iterations: number;
  readonly storedKey: string;
  readonly serverKey: string;
}

/** The record as JSON. Fields that later versions added are optional. */
interface PrincipalRecord extends Omit<StoredPrincipal, 'id' | 'verifier' | 'accounts' | 'grants'> {
  readonly id?: string;
  readonly verifier: StoredVerifier | null;
  readonly accounts: readonly (readonly [string, boolean])[];
  readonly grants: readonly GrantRow[];
}

export function encodePrincipal(principal: StoredPrincipal): Buffer {
  const { verifier, accounts, grants } = principal;
  const record: PrincipalRecord = {
    ...principal,
    verifier: verifier === null ? null : encodeVerifier(verifier),
    accounts: [...accounts],
    grants: grantRows(grants),
  };
  return Buffer.from(JSON.stringify(record));
}

export function decodePrincipal(bytes: Buffer): StoredPrincipal {
  const record = JSON.parse(bytes.toString('utf8')) as PrincipalRecord;
  const { verifier, accounts, grants } = record;
  return {
    ...record,
    id: record.id ?? idOfName(record.name),
    verifier: verifier === null ? null : decodeVerifier(verifier),
    accounts: new Map(accounts),
    grants: grantsOf(grants),
  };
}

function encodeVerifier({ salt, iterations, storedKey, serverKey }: ScramVerifier): StoredVerifier {
  return {
    salt: salt.toString('base64'),
    iterations,
    storedKey: storedKey.toString('base64'),
    serverKey: serverKey.toString('base64'),
  };
}

function decodeVerifier({ salt, iterations, storedKey, serverKey }: StoredVerifier): ScramVerifier {
  return {
    salt: Buffer.from(salt, 'base64'),
    iterations,
    storedKey: Buffer.from(storedKey, 'base64'),
    serverKey: Buffer.from(serverKey, 'base64'),
  };
}
