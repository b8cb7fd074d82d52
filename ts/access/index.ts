/**
 * Access control: users, groups, service accounts and their rights. Sessions call the guard before
 * every statement, and logins use the directory. Access control statements change the data behind
 * both.
 */
import { join } from 'node:path';

import { LRUCache } from 'lru-cache';

import { type Identity, identityKey, type LoginEndpoint } from '../auth/index.js';
import {
  type Access as NeededAccess,
  asDatabaseError,
  type CatalogChange,
  type Database,
  DatabaseError,
  type Guard,
  type ImportTarget,
  type Owner,
  type ServerStatements,
  type Principal,
  type Visibility,
} from '../session/index.js';
import type { Logger } from '../observability/index.js';
import type { Tree } from '../sql/index.js';
import { AuditLog, type AuditSetting, type ChainEnd } from './audit.js';
import { authorise } from './authorise.js';
import { Changes } from './changes.js';
import { type Administrator, StoredDirectory } from './directory.js';
import { importAccesses } from './imports.js';
import { readsLists, Lists } from './lists.js';
import { minimumAccesses } from './minimum-accesses.js';
import { described, makesView, viewOwner } from './owners.js';
import { recordRefusals } from './refreshes.js';
import { Refusals } from './refusals.js';
import { type AccessContext, type AccessSetting, rightsOf, rightsOfOwner } from './setting.js';
import { serverAccesses } from './server-calls.js';
import { visibilityOf } from './visibility.js';
import { AccessStatements } from './statements.js';
import { AccessStore, type Rights } from './store.js';

export type { Administrator } from './directory.js';

interface AccessOptions extends Omit<AccessSetting, 'adminName'> {
  readonly database: Database;
  /** The audit log's directory. */
  readonly root: string;
  readonly auditFiles: Pick<AuditSetting, 'fileBytes' | 'files'>;
  readonly administrator: Administrator;
  readonly logger: Logger;
}

/** HTTP requests with the same login within this time count as one sign-in. */
const SIGNED_IN_MS = 15 * 60_000;
const MAX_SIGNED_IN = 10_000;
const AUDIT_FILE = 'audit.jsonl';
/**
 * Refused logins have a separate file: any client can cause an unlimited number of them, and they
 * must not displace other events.
 */
const REFUSED_FILE = 'audit-refused.jsonl';
const REFUSED_FILE_BYTES = 64 * 1024 * 1024;

/** Access control when it is enabled. */
export class Access implements Guard {
  readonly statements: ServerStatements;
  readonly directory: StoredDirectory;
  readonly audit: AuditLog;
  readonly #refused: AuditLog;
  readonly #refusals: Refusals;
  readonly #context: AccessContext;
  readonly #lists: Lists;
  readonly #changes: Changes;
  /** The visibility for each set of rights, computed once. */
  readonly #visibilities = new WeakMap<
    Rights,
    { readonly visibility: Visibility; readonly version: number }
  >();
  #versions = 0;
  readonly #signedIn = new LRUCache<string, true>({ max: MAX_SIGNED_IN, ttl: SIGNED_IN_MS });

  private constructor(context: AccessContext, directory: StoredDirectory, refused: AuditLog) {
    this.#context = context;
    this.audit = context.audit;
    this.#refused = refused;
    this.#refusals = new Refusals(refused);
    this.directory = directory;
    this.#lists = new Lists(context);
    this.#changes = new Changes(context);
    this.statements = new AccessStatements(context, (tree, setting) =>
      context.database.prepare(tree, setting),
    );
  }

  static async open(options: AccessOptions): Promise<Access> {
    const { database, root, administrator, logger, auditFiles, ...rest } = options;
    const store = await AccessStore.open(database);
    const failed = (error: unknown): void => {
      logger.error('audit_failed', { message: asDatabaseError(error).message });
    };
    const anchored = (file: string) => (end: ChainEnd) => {
      logger.info('audit_chain', { file, ...end });
    };
    const open = (file: string, fileBytes: number): Promise<AuditLog> =>
      AuditLog.open(join(root, file), { ...auditFiles, fileBytes, failed, anchor: anchored(file) });
    const audit = await open(AUDIT_FILE, auditFiles.fileBytes);
    const refused = await open(REFUSED_FILE, auditFiles.fileBytes || REFUSED_FILE_BYTES);
    const setting = { ...rest, adminName: administrator.name };
    const directory = new StoredDirectory(store, setting, audit);
    await directory.setAdministrator(administrator);
    const access = new Access({ setting, database, store, audit }, directory, refused);
    await access.#changes.settle();
    const follow = async (): Promise<void> => {
      try {
        await recordRefusals(database, (owner) => rightsOfOwner(access.#context, owner));
      } catch (error) {
        // The change itself is already committed; the next change retries updating the refresh
        // records.
        logger.error('refresh_rights_failed', { message: asDatabaseError(error).message });
      }
    };
    store.followChanges(follow);
    await follow();
    return access;
  }

  watch(changed: () => void): void {
    this.#context.store.watch(changed);
  }

  authorise(principal: Principal, accesses: Parameters<Guard['authorise']>[1]): void {
    const { store } = this.#context;
    authorise(store.effective(rightsOf(store, principal)), accesses, (owner) =>
      store.effective(rightsOfOwner(this.#context, owner)),
    );
  }

  visibility(principal: Principal): Visibility | undefined {
    return this.#visibilityOf(principal)?.visibility;
  }

  visibilityVersion(principal: Principal): number {
    return this.#visibilityOf(principal)?.version ?? 0;
  }

  #visibilityOf(
    principal: Principal,
  ): { readonly visibility: Visibility; readonly version: number } | undefined {
    const rights = rightsOf(this.#context.store, principal);
    if (rights.all) {
      return undefined;
    }
    let known = this.#visibilities.get(rights);
    if (known === undefined) {
      this.#versions += 1;
      known = { visibility: visibilityOf(rights), version: this.#versions };
      this.#visibilities.set(rights, known);
    }
    return known;
  }

  serverAccesses(tree: object): readonly NeededAccess[] {
    return serverAccesses(tree);
  }

  readsLists(tree: object): boolean {
    return readsLists(tree);
  }

  lists(principal: Principal, tree: object, text: string): ReturnType<Guard['lists']> {
    return this.#lists.of(principal, tree as Tree, text);
  }

  makesView(tree: object): boolean {
    return makesView(tree);
  }

  viewOwner(principal: Principal, tree: object): Owner {
    return viewOwner(this.#context, principal, tree as Tree);
  }

  async follow<T>(change: CatalogChange, run: () => Promise<T>): Promise<T> {
    await this.#requireAudit();
    return await this.#changes.follow(change, run);
  }

  authoriseUnbound(principal: Principal, tree: object): void {
    this.authorise(principal, minimumAccesses(tree));
  }

  importAccesses(principal: Principal, target: ImportTarget): readonly NeededAccess[] {
    this.#changes.requireOwner(principal, target);
    return importAccesses(rightsOf(this.#context.store, principal), target);
  }

  async creating<T>(
    principal: Principal,
    targets: readonly ImportTarget[],
    run: () => Promise<T>,
  ): Promise<T> {
    await this.#requireAudit();
    return await this.#changes.create(principal, targets, run);
  }

  /** Throws if the audit log cannot be written: a change that cannot be recorded must not run. */
  async #requireAudit(): Promise<void> {
    if (!(await this.audit.isWritable())) {
      const message =
        'nothing was changed because the audit log cannot be written; see the server log';
      throw new DatabaseError({ code: 'Io', message, retryable: true });
    }
  }

  ran(principal: Principal, text: string, { command }: { readonly command: string }): void {
    const who = described(principal.identity);
    this.audit.write('statement', principal.name, { command, text, ...who });
  }

  /** Records a login in the audit log. */
  signedIn(identity: Identity, endpoint: LoginEndpoint, address: string): void {
    const { name, kind } = identity;
    // Every HTTP request is a login, so one log entry also covers the requests that follow.
    const key = JSON.stringify([identityKey(identity), address]);
    if (endpoint === 'HTTP') {
      if (this.#signedIn.has(key)) {
        return;
      }
      this.#signedIn.set(key, true);
    }
    this.audit.write('sign_in', name, { kind, endpoint, address, ...described(identity) });
  }

  refusedLogin(name: string, endpoint: LoginEndpoint, address: string): void {
    this.#refusals.add(name, endpoint, address);
  }

  signedOut(identity: Identity, endpoint: LoginEndpoint, address: string): void {
    const { name, kind } = identity;
    this.#signedIn.delete(JSON.stringify([identityKey(identity), address]));
    this.audit.write('sign_out', name, { kind, endpoint, address, ...described(identity) });
  }

  async close(): Promise<void> {
    this.#refusals.flush();
    await this.#refused.close();
    await this.audit.close();
  }
}

/** Re-enables the view refreshes that access control refused; called when access control is off. */
export async function allowRefreshes(database: Database): Promise<void> {
  await recordRefusals(database, null);
}

/**
 * Returns the access statements for a server without access control. Each fails with a message that
 * explains how to enable it.
 */
export function refusedStatements(database: Database): ServerStatements {
  return new AccessStatements(null, (tree, setting) => database.prepare(tree, setting));
}
