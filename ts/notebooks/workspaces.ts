/**
 * The workspace of each user who logs in: the console's tabs, drafts and query log. It consists of
 * entries whose content only the console interprets. Each entry has the time of its last change. Of
 * two conflicting changes, the later is stored, so several windows can write. Only the user can
 * read the workspace.
 */
import { createHash, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { deflateRaw, inflateRaw } from 'node:zlib';

import { DatabaseError } from '../session/index.js';
import { NotebookRefusal } from './model.js';
import type { Records } from './store.js';

const RECORD_KIND = 'workspace';
/** The entry with the workspace's ID and encryption key; clients never write it. */
const IDENTITY = 'identity';
const ID_BYTES = 12;
const KEY_BYTES = 32;
const MAX_ENTRIES = 2000;
const LOG = 'log/';
const ENTRY_NAME = /^(?:tab|log)\/[\w.-]{1,80}$/;
/** Bytes that count towards the quota for each entry, in addition to its content. */
const ENTRY_BYTES = 128;

const deflate = promisify(deflateRaw);
const inflate = promisify(inflateRaw);

interface WorkspaceLimits {
  /** Maximum compressed size per user, in bytes. */
  readonly userBytes: () => number;
  /** Maximum total compressed size for all users, in bytes. */
  readonly totalBytes: () => number;
}

/**
 * Data that a client needs to write to the workspace and to encrypt the data that it stores in the
 * browser.
 */
interface Identity {
  readonly id: string;
  /** Encryption key: 256 bits in base64. */
  readonly key: string;
}

interface OpenedWorkspace extends Identity {
  /** Entry content, keyed by name, as the client wrote it. */
  readonly entries: Readonly<Record<string, unknown>>;
}

export interface WorkspaceChanges {
  readonly put: ReadonlyMap<string, { readonly changed: number }>;
  readonly remove: readonly string[];
}

interface Entry {
  /** Time of the last change, in milliseconds since 1970. */
  readonly changed: number;
  /** Content as compressed JSON. */
  readonly bytes: Buffer;
}

type Entries = Map<string, Entry>;

export class WorkspaceStore {
  readonly #records: Records;
  readonly #limits: WorkspaceLimits;
  readonly #users = new Map<string, Entries>();
  #totalBytes = 0;
  #loaded: Promise<void> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(records: Records, limits: WorkspaceLimits) {
    this.#records = records;
    this.#limits = limits;
  }

  /** Reads a workspace. `user` is an identity key. */
  async read(user: string): Promise<OpenedWorkspace> {
    const owner = hashOf(user);
    const identity = await this.#exclusively(() => this.#identityOf(owner));
    const entries: Record<string, unknown> = {};
    for (const [name, { bytes }] of this.#users.get(owner) ?? []) {
      if (name !== IDENTITY) {
        entries[name] = await contentOf(bytes);
      }
    }
    return { ...identity, entries };
  }

  /**
   * Writes changes. `id` must be the ID of the workspace that was read, so that another user's page
   * cannot write.
   */
  async write(user: string, id: string, { put, remove }: WorkspaceChanges): Promise<void> {
    const invalid = [...put.keys(), ...remove].find((name) => !ENTRY_NAME.test(name));
    if (invalid !== undefined) {
      const shown = invalid.slice(0, 80);
      throw new NotebookRefusal('invalid', `invalid entry '${shown}': expected tab/… or log/…`);
    }
    const changes = new Map<string, Entry | null>(remove.map((name) => [name, null]));
    for (const [name, content] of put) {
      const bytes = await deflate(JSON.stringify(content));
      changes.set(name, { changed: content.changed, bytes });
    }
    await this.#exclusively(async () => {
      const owner = hashOf(user);
      if ((await this.#identityOf(owner)).id !== id) {
        throw new NotebookRefusal('denied', 'the workspace of a different user: sign in again');
      }
      await this.#commit(owner, changes);
    });
  }

  async #identityOf(owner: string): Promise<Identity> {
    const known = this.#users.get(owner)?.get(IDENTITY);
    if (known) {
      return (await contentOf(known.bytes)) as Identity;
    }
    const identity = {
      id: randomBytes(ID_BYTES).toString('base64url'),
      key: randomBytes(KEY_BYTES).toString('base64'),
    };
    const bytes = await deflate(JSON.stringify(identity));
    await this.#commit(owner, new Map([[IDENTITY, { changed: 0, bytes }]]));
    return identity;
  }

  async #commit(owner: string, changes: ReadonlyMap<string, Entry | null>): Promise<void> {
    const before = this.#users.get(owner);
    const next = new Map(before);
    const records = new Map<string, Buffer | null>();
    for (const [name, entry] of changes) {
      const known = next.get(name);
      if (entry === null) {
        next.delete(name);
      } else if (!(known && known.changed > entry.changed)) {
        next.set(name, entry);
      }
      if (next.get(name) !== known) {
        records.set(`${owner}/${name}`, entry && encoded(entry));
      }
    }
    if (records.size === 0) {
      return;
    }
    for (const name of this.#oldLog(next)) {
      next.delete(name);
      records.set(`${owner}/${name}`, null);
    }
    const growth = sizeOf(next) - sizeOf(before);
    this.#checkSize(next, growth);
    await this.#records.commitRecords(RECORD_KIND, records);
    this.#users.set(owner, next);
    this.#totalBytes += growth;
  }

  /** Returns the oldest log entries, which are removed so that drafts can always be saved. */
  #oldLog(entries: Entries): readonly string[] {
    let bytes = sizeOf(entries) - this.#limits.userBytes();
    let count = entries.size - MAX_ENTRIES;
    const oldest = [...entries]
      .filter(([name]) => name.startsWith(LOG))
      .sort(([, a], [, b]) => a.changed - b.changed);
    const surplus: string[] = [];
    for (const [name, entry] of oldest) {
      if (bytes <= 0 && count <= 0) {
        break;
      }
      surplus.push(name);
      bytes -= entry.bytes.length + ENTRY_BYTES;
      count -= 1;
    }
    return surplus;
  }

  #checkSize(next: Entries, growth: number): void {
    if (growth <= 0) {
      return;
    }
    const { userBytes, totalBytes } = this.#limits;
    const limits = [
      ['workspace entries', next.size, MAX_ENTRIES],
      ['workspace bytes (workspace.max.user.size)', sizeOf(next), userBytes()],
      ['total workspace bytes (workspace.max.total.size)', this.#totalBytes + growth, totalBytes()],
    ] as const;
    for (const [what, size, limit] of limits) {
      if (size > limit) {
        throw new NotebookRefusal('full', `${size} ${what} exceed the limit of ${limit}`);
      }
    }
  }

  /** Runs changes one at a time, after the stored state has been loaded. */
  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(async () => {
      this.#loaded ??= this.#load().catch((error: unknown) => {
        this.#loaded = undefined;
        throw error;
      });
      await this.#loaded;
      return await work();
    });
    this.#last = done.catch(() => undefined);
    return done;
  }

  async #load(): Promise<void> {
    for (const [key, bytes] of await this.#records.loadRecords(RECORD_KIND)) {
      const [owner = '', ...name] = key.split('/');
      const entries: Entries = this.#users.get(owner) ?? new Map<string, Entry>();
      entries.set(name.join('/'), decoded(key, bytes));
      this.#users.set(owner, entries);
    }
    this.#totalBytes = [...this.#users.values()].reduce((sum, all) => sum + sizeOf(all), 0);
  }
}

function hashOf(user: string): string {
  return createHash('sha256').update(user).digest('base64url');
}

async function contentOf(bytes: Buffer): Promise<unknown> {
  return JSON.parse((await inflate(bytes)).toString('utf8')) as unknown;
}

function sizeOf(entries: Entries | undefined): number {
  return [...(entries?.values() ?? [])].reduce(
    (sum, { bytes }) => sum + bytes.length + ENTRY_BYTES,
    0,
  );
}

/** Encodes an entry: the time of the change as digits, a line feed, then the content. */
function encoded({ changed, bytes }: Entry): Buffer {
  return Buffer.concat([Buffer.from(`${changed}\n`), bytes]);
}

function decoded(key: string, record: Buffer): Entry {
  const end = record.indexOf('\n');
  const changed = Number(record.subarray(0, end).toString());
  if (end < 1 || !Number.isSafeInteger(changed)) {
    throw new DatabaseError({
      code: 'Internal',
      message: `the record of workspace ${key} is invalid`,
    });
  }
  return { changed, bytes: record.subarray(end + 1) };
}
