/**
 * State of the access page: all principals, and the permissions and pending changes of the selected
 * one.
 */
import type { Accessor } from 'solid-js';
import { recordsOf } from '../api/cells.js';
import { query } from '../api/client.js';
import { quoted } from '../sql/names.js';
import { settle, type Loading, readyOf } from '../state/loading.js';
import { catalogueOf, type Catalogue } from './catalogue.js';
import {
  grantsOf,
  stepsOf,
  toggled,
  type Change,
  type Grant,
  type Mark,
  type GrantTarget,
  type Principal,
  type PrincipalKind,
  type Step,
} from './model.js';
import { messageOf } from '../model/message.js';
import { signal } from '../model/signal.js';

export interface Rights {
  readonly principal: Principal;
  readonly grants: readonly Grant[];
  /** Groups of the user, or empty if the principal is not a user. */
  readonly groups: readonly string[];
  /** Members of the group, or empty if the principal is not a group. */
  readonly members: readonly string[];
  /** Enabled login methods, or empty if the principal is a group. */
  readonly logins: readonly string[];
  /** All permissions that the server knows, with their levels. */
  readonly catalogue: Catalogue;
}

const LISTS: Readonly<Record<PrincipalKind, string>> = {
  user: 'SHOW USERS',
  group: 'SHOW GROUPS',
  'service account': 'SHOW SERVICE ACCOUNTS',
};

export class AccessState {
  readonly #principals = signal<Loading<readonly Principal[]>>({
    state: 'loading',
  });
  readonly principals: Accessor<Loading<readonly Principal[]>> = this.#principals;
  readonly #rights = signal<Loading<Rights> | undefined>(undefined);
  readonly rights: Accessor<Loading<Rights> | undefined> = this.#rights;
  readonly #changes = signal<readonly Change[]>([]);
  readonly changes: Accessor<readonly Change[]> = this.#changes;
  readonly #failure = signal('');
  /** Error message of the pending statement that failed, or empty. */
  readonly failure: Accessor<string> = this.#failure;
  /** Pending changes of the principals that are not selected, by principal. */
  readonly #plans = new Map<string, readonly Change[]>();
  #shown = '';

  async load(): Promise<void> {
    this.#principals.set(
      await settle(async () => {
        const lists = (Object.entries(LISTS) as [PrincipalKind, string][]).map(
          async ([kind, statement]) => {
            const { rows } = await query(statement);
            return rows.map((row) => ({ kind, name: String(row[0]) }));
          },
        );
        return (await Promise.all(lists)).flat();
      }),
    );
  }

  /**
   * Selects a principal. The pending changes of the previous principal are kept until it is
   * selected again.
   */
  async show(principal: Principal): Promise<void> {
    this.#select(`${principal.kind} ${principal.name}`);
    this.#rights.set({ state: 'loading' });
    this.#rights.set(await settle(() => this.#rightsOf(principal)));
  }

  /** Deselects the principal but keeps its pending changes. */
  hide(): void {
    this.#select('');
    this.#rights.set(undefined);
  }

  #select(shown: string): void {
    this.#plans.set(this.#shown, this.changes());
    this.#shown = shown;
    this.#failure.set('');
    this.#changes.set(this.#plans.get(shown) ?? []);
  }

  plan(permission: string, target: GrantTarget, mark: Mark): void {
    this.#failure.set('');
    this.#changes.set(toggled(this.changes(), permission, target, mark));
  }

  /** Returns the pending changes as statements, in execution order. */
  steps(): readonly Step[] {
    const rights = readyOf(this.rights());
    return rights ? stepsOf(this.changes(), rights.principal, rights.catalogue) : [];
  }

  discard(): void {
    this.#failure.set('');
    this.#changes.set([]);
  }

  /**
   * Executes the pending changes in order and stops at the first error. Changes that were not
   * executed stay pending.
   */
  async apply(): Promise<boolean> {
    const principal = readyOf(this.rights())?.principal;
    if (!principal) {
      return false;
    }
    this.#failure.set('');
    try {
      for (const { statement, changes } of this.steps()) {
        await query(statement);
        this.#changes.set(this.changes().filter((left) => !changes.includes(left)));
      }
    } catch (cause) {
      this.#failure.set(messageOf(cause));
    }
    await this.refresh(principal);
    return this.failure() === '';
  }

  /**
   * Reloads the permissions of the selected principal. The old ones stay visible until the reload
   * completes.
   */
  async refresh(principal: Principal): Promise<void> {
    this.#rights.set(await settle(() => this.#rightsOf(principal)));
  }

  async #rightsOf(principal: Principal): Promise<Rights> {
    const users = (readyOf(this.principals()) ?? []).filter(({ kind }) => kind === 'user');
    return await rightsOf(
      principal,
      users.map(({ name }) => name),
    );
  }

  /**
   * Runs a statement that changes a principal, then reloads. Rejects with the server's error
   * message.
   */
  async run(statement: string, shown: Principal | undefined): Promise<void> {
    await query(statement);
    await this.load();
    if (shown) {
      await this.show(shown);
    } else {
      this.#rights.set(undefined);
    }
  }
}

async function rightsOf(principal: Principal, users: readonly string[]): Promise<Rights> {
  const name = quoted(principal.name);
  const grants = grantsOf(await query(`SHOW PERMISSIONS ${name}`));
  const groups = principal.kind === 'user' ? await groupsOfUser(principal.name) : [];
  const members = principal.kind === 'group' ? await membersOf(principal.name, users) : [];
  const logins = principal.kind === 'group' ? [] : await loginsOf(principal);
  const catalogue = catalogueOf(await query('SELECT permission, levels FROM all_permissions()'));
  return { principal, grants, groups, members, logins, catalogue };
}

async function groupsOfUser(name: string): Promise<readonly string[]> {
  return (await query(`SHOW GROUPS ${quoted(name)}`)).rows.map((row) => String(row[0]));
}

/**
 * Maximum number of users to check for membership in a group. The server lists groups per user but
 * not users per group, so each check is a request.
 */
export const MAX_MEMBER_QUESTIONS = 500;
const QUESTIONS_AT_ONCE = 5;

async function membersOf(group: string, users: readonly string[]): Promise<readonly string[]> {
  const candidates = users.slice(0, MAX_MEMBER_QUESTIONS);
  const isMember = new Set<string>();
  const left = candidates.values();
  const checkMembers = async (): Promise<void> => {
    for (const user of left) {
      if ((await groupsOfUser(user)).includes(group)) {
        isMember.add(user);
      }
    }
  };
  await Promise.all(Array.from({ length: QUESTIONS_AT_ONCE }, checkMembers));
  return candidates.filter((user) => isMember.has(user));
}

async function loginsOf({ kind, name }: Principal): Promise<readonly string[]> {
  const answer = await query(`SHOW ${kind.toUpperCase()} ${quoted(name)}`);
  return recordsOf(answer)
    .filter((cell) => cell('enabled') === true)
    .map((cell) => String(cell('auth_type')));
}
