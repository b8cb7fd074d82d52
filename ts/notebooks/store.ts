/**
 * Notebooks in the database: one record per notebook, and the texts of its versions. Records are in
 * memory; texts are read on demand. Each change is one commit, and changes run one at a time.
 */
import { createHash, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { deflateRaw, inflateRaw } from 'node:zlib';

import { DatabaseError } from '../session/index.js';
import {
  checkTitle,
  current,
  listed,
  NotebookRefusal,
  reachOf,
  type Listed,
  type Person,
  type Reach,
  type Share,
  type StoredNotebook,
  type Version,
} from './model.js';

const RECORD_KIND = 'notebook';
const TEXT_KIND = 'notebook text ';
/**
 * Number of record kinds across which texts are distributed. Records are loaded by kind, so reading
 * a text loads only its shard.
 */
const SHARDS = 64;
/**
 * Bytes that count towards the quota for each notebook and each version, in addition to their
 * texts.
 */
const NOTEBOOK_BYTES = 512;
const VERSION_BYTES = 256;
/** Maximum total size of a notebook's retained versions, in bytes. */
const HISTORY_BYTES = 4 * 1024 * 1024;
const MAX_SHARES = 100;
const ID_BYTES = 9;
const LINK_BYTES = 24;

const deflate = promisify(deflateRaw);
const inflate = promisify(inflateRaw);

/** The part of the database API that stores records. */
export interface Records {
  loadRecords(kind: string): Promise<Map<string, Buffer>>;
  commitRecords(kind: string, changes: ReadonlyMap<string, Buffer | null>): Promise<bigint>;
}

export interface NotebookLimits {
  /** Maximum size of a text, in bytes. */
  readonly textBytes: () => number;
  /** Maximum number of notebooks per owner. */
  readonly count: () => number;
  readonly ownerBytes: () => number;
  readonly versions: () => number;
  /** Maximum total size for all users, in bytes. */
  readonly totalBytes: () => number;
}

/** A notebook with its text. */
interface OpenedNotebook extends Listed {
  readonly text: string;
}

export class NotebookStore {
  readonly #records: Records;
  readonly #limits: NotebookLimits;
  readonly #now: () => number;
  readonly #notebooks = new Map<string, StoredNotebook>();
  /** Notebook ids, keyed by link. */
  readonly #links = new Map<string, string>();
  #totalBytes = 0;
  #opened: Promise<void> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(records: Records, limits: NotebookLimits, now: () => number = Date.now) {
    this.#records = records;
    this.#limits = limits;
    this.#now = now;
  }

  /** Returns the notebooks that `person` may see, most recently changed first. */
  async list(person: Person): Promise<readonly Listed[]> {
    await this.#open();
    return [...this.#notebooks.values()]
      .flatMap((notebook) => {
        const access = reachOf(notebook, person);
        return access === null ? [] : [listed(notebook, person, access)];
      })
      .sort((a, b) => (a.changed < b.changed ? 1 : -1));
  }

  /** Returns the current version or an older one. An older version requires write access. */
  async read(person: Person, id: string, version?: number): Promise<OpenedNotebook> {
    await this.#open();
    const { notebook, access } = this.#find(person, id, version === undefined ? 'read' : 'write');
    const requested = version ?? current(notebook).number;
    const stored = notebook.versions.find(({ number }) => number === requested);
    if (stored === undefined) {
      throw new NotebookRefusal('absent', `version ${requested} of this notebook does not exist`);
    }
    const text = await this.#textOf(id, stored.number);
    return { ...listed(notebook, person, access), title: stored.title, version: requested, text };
  }

  /** Returns the current version; if its number equals `known`, omits its text. */
  async openIfChanged(person: Person, id: string, known: number): Promise<Listed | OpenedNotebook> {
    await this.#open();
    const { notebook, access } = this.#find(person, id, 'read');
    const isKnown = current(notebook).number === known;
    return isKnown ? listed(notebook, person, access) : await this.read(person, id);
  }

  /** Returns the notebook that a link refers to. */
  async readLinked(person: Person, link: string): Promise<OpenedNotebook> {
    await this.#open();
    const notebook = this.#notebooks.get(this.#links.get(link) ?? '');
    if (notebook === undefined) {
      throw new NotebookRefusal('absent', 'this link is invalid or has been revoked');
    }
    const access = reachOf(notebook, person) ?? 'read';
    const text = await this.#textOf(notebook.id, current(notebook).number);
    return { ...listed(notebook, person, access), text };
  }

  async versions(person: Person, id: string): Promise<readonly Version[]> {
    await this.#open();
    return this.#find(person, id, 'write').notebook.versions;
  }

  async create(person: Person, title: string, text: string): Promise<Listed> {
    const id = randomBytes(ID_BYTES).toString('base64url');
    const version = await this.#prepared(person, title, text);
    return await this.#change(async () => {
      const own = [...this.#notebooks.values()].filter(({ owner }) => owner.key === person.key);
      const limit = this.#limits.count();
      if (own.length >= limit) {
        const facts = `count=${own.length}, limit=${limit}, key=notebooks.max.count`;
        throw new NotebookRefusal('full', `too many notebooks [${facts}]: delete some`);
      }
      const owner = { key: person.key, name: person.name };
      const versions = [{ ...version.facts, number: 1 }];
      const notebook: StoredNotebook = { id, owner, versions, shares: [], link: null };
      await this.#put(notebook, undefined, version.bytes);
      return listed(notebook, person, 'own');
    });
  }

  /** Saves a new version of a notebook. `based` is the version that was edited. */
  async save(
    person: Person,
    { id, based, title, text }: { id: string; based: number; title: string; text: string },
  ): Promise<Listed> {
    const version = await this.#prepared(person, title, text);
    return await this.#change(async () => {
      const { notebook, access } = this.#find(person, id, 'write');
      const now = current(notebook);
      if (now.digest === version.facts.digest && now.title === version.facts.title) {
        // Either the text is unchanged, or the client repeats a save because it lost the response.
        return listed(notebook, person, access);
      }
      if (now.number !== based) {
        const what = `version ${now.number} was saved by '${now.by}' after version ${based}`;
        throw new NotebookRefusal('outdated', what, listed(notebook, person, access));
      }
      const versions = [...notebook.versions, { ...version.facts, number: now.number + 1 }];
      const next = { ...notebook, versions: this.#retained(versions) };
      await this.#put(next, notebook, version.bytes);
      return listed(next, person, access);
    });
  }

  /** Replaces the list of users with access, and creates or removes the link. */
  async share(
    person: Person,
    id: string,
    shares: readonly Share[],
    hasLink: boolean,
  ): Promise<Listed> {
    if (shares.length > MAX_SHARES) {
      throw new NotebookRefusal('invalid', `too many shares [limit=${MAX_SHARES}]`);
    }
    return await this.#change(async () => {
      const { notebook, access } = this.#find(person, id, 'own');
      const fresh = notebook.link ?? randomBytes(LINK_BYTES).toString('base64url');
      const next = { ...notebook, shares, link: hasLink ? fresh : null };
      await this.#put(next, notebook);
      return listed(next, person, access);
    });
  }

  async remove(person: Person, id: string): Promise<Listed> {
    return await this.#change(async () => {
      const { notebook, access } = this.#find(person, id, 'own');
      // The texts are removed last. If this fails, they remain without a record and can no longer
      // be found, which is harmless.
      await this.#records.commitRecords(RECORD_KIND, new Map([[id, null]]));
      this.#forget(notebook);
      const texts = notebook.versions.map(({ number }): [string, null] => [key(id, number), null]);
      await this.#records.commitRecords(shardOf(id), new Map(texts));
      return listed(notebook, person, access);
    });
  }

  #find(person: Person, id: string, required: Reach): { notebook: StoredNotebook; access: Reach } {
    const notebook = this.#notebooks.get(id);
    const access = notebook === undefined ? null : reachOf(notebook, person);
    if (notebook === undefined || access === null) {
      throw new NotebookRefusal('absent', 'the notebook does not exist, or is not shared with you');
    }
    if (RANKS[access] < RANKS[required]) {
      const may = required === 'own' ? 'its owner' : 'users with write access';
      throw new NotebookRefusal('denied', `only ${may} can do this`);
    }
    return { notebook, access };
  }

  async #prepared(
    person: Person,
    title: string,
    text: string,
  ): Promise<{ facts: Omit<Version, 'number'>; bytes: Buffer }> {
    const limit = this.#limits.textBytes();
    if (Buffer.byteLength(text) > limit) {
      const what = `the notebook is too large [limit=${limit} bytes, key=notebooks.max.size]`;
      throw new NotebookRefusal('too large', what);
    }
    const name = checkTitle(title);
    const bytes = await deflate(text);
    const facts = {
      at: this.#now(),
      by: person.name,
      title: name,
      bytes: bytes.length,
      digest: createHash('sha256').update(text).digest('hex'),
    };
    return { facts, bytes };
  }

  /** Selects the newest versions within the limits, but at least the current one. */
  #retained(versions: readonly Version[]): readonly Version[] {
    const retained = versions.slice(-Math.max(1, this.#limits.versions()));
    let bytes = retained.reduce((sum, version) => sum + version.bytes, 0);
    while (retained.length > 1 && bytes > HISTORY_BYTES) {
      bytes -= retained.shift()?.bytes ?? 0;
    }
    return retained;
  }

  async #put(
    next: StoredNotebook,
    before: StoredNotebook | undefined,
    text?: Buffer,
  ): Promise<void> {
    this.#checkQuota(next, before);
    const { id } = next;
    if (text !== undefined) {
      const texts = new Map<string, Buffer | null>([[key(id, current(next).number), text]]);
      const retained = new Set(next.versions.map(({ number }) => number));
      const removed = (before?.versions ?? []).filter(({ number }) => !retained.has(number));
      // If the next commit fails, this text remains without a record. It cannot be found, and the
      // next save overwrites it.
      await this.#records.commitRecords(shardOf(id), texts);
      await this.#commit(next);
      if (removed.length > 0) {
        const old = removed.map(({ number }): [string, null] => [key(id, number), null]);
        await this.#records.commitRecords(shardOf(id), new Map(old));
      }
    } else {
      await this.#commit(next);
    }
  }

  async #commit(next: StoredNotebook): Promise<void> {
    const record = new Map([[next.id, Buffer.from(JSON.stringify(next))]]);
    await this.#records.commitRecords(RECORD_KIND, record);
    const before = this.#notebooks.get(next.id);
    if (before !== undefined) {
      this.#forget(before);
    }
    this.#index(next);
  }

  #checkQuota(next: StoredNotebook, before: StoredNotebook | undefined): void {
    const more = sizeOf(next) - (before === undefined ? 0 : sizeOf(before));
    if (more <= 0) {
      return;
    }
    const { totalBytes, ownerBytes } = this.#limits;
    const own = [...this.#notebooks.values()]
      .filter(({ owner }) => owner.key === next.owner.key)
      .reduce((sum, notebook) => sum + sizeOf(notebook), 0);
    if (own + more > ownerBytes()) {
      const what = `the notebooks of '${next.owner.name}' are too large`;
      throw new NotebookRefusal(
        'full',
        `${what} [limit=${ownerBytes()} bytes, key=notebooks.max.user.size]`,
      );
    }
    if (this.#totalBytes + more > totalBytes()) {
      const what = 'the notebooks of all users are too large';
      throw new NotebookRefusal(
        'full',
        `${what} [limit=${totalBytes()} bytes, key=notebooks.max.total.size]`,
      );
    }
  }

  async #textOf(id: string, version: number): Promise<string> {
    const bytes = (await this.#records.loadRecords(shardOf(id))).get(key(id, version));
    if (bytes === undefined) {
      throw new NotebookRefusal('absent', 'this version no longer exists');
    }
    return (await inflate(bytes)).toString('utf8');
  }

  #change<T>(work: () => Promise<T>): Promise<T> {
    const queued = this.#last.then(async () => {
      await this.#open();
      return await work();
    });
    this.#last = queued.catch(() => undefined);
    return queued;
  }

  #open(): Promise<void> {
    this.#opened ??= this.#load().catch((error: unknown) => {
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }

  async #load(): Promise<void> {
    for (const [id, bytes] of await this.#records.loadRecords(RECORD_KIND)) {
      this.#index(decoded(id, bytes));
    }
  }

  #index(notebook: StoredNotebook): void {
    this.#notebooks.set(notebook.id, notebook);
    this.#totalBytes += sizeOf(notebook);
    if (notebook.link !== null) {
      this.#links.set(notebook.link, notebook.id);
    }
  }

  #forget(notebook: StoredNotebook): void {
    this.#notebooks.delete(notebook.id);
    this.#totalBytes -= sizeOf(notebook);
    if (notebook.link !== null) {
      this.#links.delete(notebook.link);
    }
  }
}

const RANKS: Readonly<Record<Reach, number>> = { read: 0, write: 1, own: 2 };

function key(id: string, version: number): string {
  return `${id}/${version}`;
}

function shardOf(id: string): string {
  const [first = 0] = createHash('sha256').update(id).digest();
  return `${TEXT_KIND}${first % SHARDS}`;
}

function sizeOf({ versions }: StoredNotebook): number {
  return versions.reduce((sum, { bytes }) => sum + bytes + VERSION_BYTES, NOTEBOOK_BYTES);
}

function decoded(id: string, bytes: Buffer): StoredNotebook {
  try {
    return JSON.parse(bytes.toString('utf8')) as StoredNotebook;
  } catch (cause) {
    throw new DatabaseError(
      { code: 'Internal', message: `the record of notebook ${id} is invalid` },
      { cause },
    );
  }
}
