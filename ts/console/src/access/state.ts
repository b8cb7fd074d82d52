/** Users, groups and service accounts, the rights of one of them, and what is planned for it. */
import { createSignal, type Accessor } from 'solid-js';
import { query } from '../api/client.js';
import { quoted } from '../schema/model.js';
import { settle, type Loading } from '../state/schema.js';
import {
  grantsOf,
  stepsOf,
  toggled,
  type Change,
  type Grant,
  type Mark,
  type Place,
  type Principal,
  type PrincipalKind,
} from './model.js';

export interface Rights {
  readonly principal: Principal;
  readonly grants: readonly Grant[];
  /** The groups of a user. */
  readonly groups: readonly string[];
}

const LISTS: Readonly<Record<PrincipalKind, string>> = {
  user: 'SHOW USERS',
  group: 'SHOW GROUPS',
  'service account': 'SHOW SERVICE ACCOUNTS',
};

export class AccessState {
  readonly principals: Accessor<Loading<readonly Principal[]>>;
  readonly rights: Accessor<Loading<Rights> | undefined>;
  readonly changes: Accessor<readonly Change[]>;
  /** Why the first of the planned statements that failed did so. */
  readonly failure: Accessor<string>;
  readonly #setPrincipals: (principals: Loading<readonly Principal[]>) => void;
  readonly #setRights: (rights: Loading<Rights> | undefined) => void;
  readonly #setChanges: (changes: readonly Change[]) => void;
  readonly #setFailure: (failure: string) => void;
  /** What is planned for those who are not shown. */
  readonly #plans = new Map<string, readonly Change[]>();
  #shown = '';

  constructor() {
    const [principals, setPrincipals] = createSignal<Loading<readonly Principal[]>>({
      state: 'loading',
    });
    const [rights, setRights] = createSignal<Loading<Rights>>();
    const [changes, setChanges] = createSignal<readonly Change[]>([]);
    const [failure, setFailure] = createSignal('');
    this.principals = principals;
    this.rights = rights;
    this.changes = changes;
    this.failure = failure;
    this.#setPrincipals = setPrincipals;
    this.#setRights = setRights;
    this.#setChanges = setChanges;
    this.#setFailure = setFailure;
  }

  async load(): Promise<void> {
    this.#setPrincipals(
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

  /** Shows another one; what is planned for the one before waits until that is shown again. */
  async show(principal: Principal): Promise<void> {
    this.#plans.set(this.#shown, this.changes());
    this.#shown = `${principal.kind} ${principal.name}`;
    this.#setFailure('');
    this.#setChanges(this.#plans.get(this.#shown) ?? []);
    this.#setRights({ state: 'loading' });
    this.#setRights(await settle(() => rightsOf(principal)));
  }

  plan(permission: string, place: Place, mark: Mark): void {
    this.#setFailure('');
    this.#setChanges(toggled(this.changes(), permission, place, mark));
  }

  discard(): void {
    this.#setFailure('');
    this.#setChanges([]);
  }

  /** Runs what is planned in order, up to the first error; what is left stays planned. */
  async apply(): Promise<boolean> {
    const rights = this.rights();
    if (rights?.state !== 'ready') {
      return false;
    }
    const { principal } = rights.value;
    this.#setFailure('');
    try {
      for (const { statement, changes } of stepsOf(this.changes(), principal)) {
        await query(statement);
        this.#setChanges(this.changes().filter((left) => !changes.includes(left)));
      }
    } catch (cause) {
      this.#setFailure(cause instanceof Error ? cause.message : String(cause));
    }
    this.#setRights(await settle(() => rightsOf(principal)));
    return this.failure() === '';
  }

  /** Runs one statement about people and looks anew; rejects with the server's words. */
  async run(statement: string, shown: Principal | undefined): Promise<void> {
    await query(statement);
    await this.load();
    if (shown) {
      await this.show(shown);
    } else {
      this.#setRights(undefined);
    }
  }
}

async function rightsOf(principal: Principal): Promise<Rights> {
  const name = quoted(principal.name);
  const grants = grantsOf(await query(`SHOW PERMISSIONS ${name}`));
  const groups =
    principal.kind === 'user'
      ? (await query(`SHOW GROUPS ${name}`)).rows.map((row) => String(row[0]))
      : [];
  return { principal, grants, groups };
}
