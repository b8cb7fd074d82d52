/**
 * Drafts, history and layout. If no login is required, they are stored in the browser's database;
 * otherwise, in the user's workspace on the server (`user-store.ts`). Credentials are never stored.
 *
 * Records of one kind share a key prefix, such as `tab/…`. Records that several windows write
 * contain the time of the change. The later change wins, regardless of which was written last.
 */
import type { Dated } from '../api/workspace.js';
import { texts } from '../texts.js';

const DATABASE = 'tidemark';
const STORE = 'workspace';
/** Prefix of the keys that `saveAtOnce` writes. */
const LAST = 'tidemark.last.';

/**
 * Prefix of the keys of data that was unsaved when a session ended; the data is encrypted for its
 * user.
 */
export const UNSAVED = 'tidemark.unsaved.';

/** Storage for the records of a user who logs in. */
export interface UserRecords {
  /** Identifies a workspace among the workspaces of one browser. */
  readonly id: string;
  loadAll(prefix: string): Promise<Map<string, Dated>>;
  saveDated(values: ReadonlyMap<string, Dated>): Promise<boolean>;
  saveAtOnce(values: ReadonlyMap<string, Dated>): void;
  /** Stores unsaved data in the browser, encrypted, for the next sign-in. */
  sealUnsaved(): Promise<void>;
  remove(keys: readonly string[]): Promise<void>;
}

let ofUser: UserRecords | undefined;

/** From now on, tabs, log and results belong to the signed-in user. */
export function useUserRecords(records: UserRecords): void {
  ofUser = records;
}

/** Stores unsaved data for the user's next sign-in. */
export async function sealUnsaved(): Promise<void> {
  await ofUser?.sealUnsaved().catch(() => undefined);
}

/** Id that separates the data of different users in this browser. */
export function workspaceId(): string {
  return ofUser?.id ?? '';
}

let opened: Promise<IDBDatabase> | undefined;

function database(): Promise<IDBDatabase> {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error(texts.server.noBrowserDatabase));
  });
  return opened;
}

async function storeFor(mode: IDBTransactionMode): Promise<IDBObjectStore> {
  return (await database()).transaction(STORE, mode).objectStore(STORE);
}

/**
 * Returns the value stored under a name; `undefined` if the browser stores nothing (private
 * windows).
 */
export async function load<T>(key: string): Promise<T | undefined> {
  try {
    const last = localStorage.getItem(LAST + key);
    if (last !== null) {
      return JSON.parse(last) as T;
    }
    return await settled((await storeFor('readonly')).get(key) as IDBRequest<T | undefined>);
  } catch {
    return undefined;
  }
}

/**
 * Stores values synchronously while the page is being closed, when the database would be too slow.
 * Each value is valid until the next save under its name. If there is not enough space, the
 * previously saved value is retained.
 */
export function saveAtOnce(values: ReadonlyMap<string, Dated>): void {
  if (ofUser) {
    ofUser.saveAtOnce(values);
    return;
  }
  for (const [key, value] of values) {
    try {
      localStorage.setItem(LAST + key, JSON.stringify(value));
    } catch {
      // Storage is full or disabled.
    }
  }
}

/** Returns whether the value was saved. */
export async function save(key: string, value: unknown): Promise<boolean> {
  try {
    await settled((await storeFor('readwrite')).put(value, key));
    localStorage.removeItem(LAST + key);
    return true;
  } catch {
    return false;
  }
}

/** All values whose keys begin with `prefix`, by key, including those from `saveAtOnce`. */
export async function loadAll<T extends Dated>(prefix: string): Promise<Map<string, T>> {
  const found = ofUser ? await ofUser.loadAll(prefix) : await browserRecords.loadAll(prefix);
  return found as Map<string, T>;
}

/** Writes each value unless the stored value is newer. Returns whether all values were saved. */
export async function saveDated(values: ReadonlyMap<string, Dated>): Promise<boolean> {
  return await (ofUser ?? browserRecords).saveDated(values);
}

export async function remove(keys: readonly string[]): Promise<void> {
  await (ofUser ?? browserRecords).remove(keys);
}

/** The browser's own storage, used with and without a login. */
export const browserRecords = { loadAll: loadFrom, saveDated: saveTo, remove: removeFrom };

/** Removes all records from the browser's database except those that `retained` selects. */
export async function clearRecords(retained: (key: string) => boolean): Promise<void> {
  try {
    const keys = await settled((await storeFor('readonly')).getAllKeys());
    await removeFrom(keys.map(String).filter((key) => !retained(key)));
  } catch {
    // The browser stores nothing.
  }
}

async function loadFrom<T extends Dated>(prefix: string): Promise<Map<string, T>> {
  const found = new Map<string, T>();
  try {
    const store = await storeFor('readonly');
    const range = below(prefix);
    const [keys, values] = await Promise.all([
      settled(store.getAllKeys(range)),
      settled(store.getAll(range) as IDBRequest<T[]>),
    ]);
    keys.forEach((key, index) => {
      const value = values[index];
      if (typeof key === 'string' && value !== undefined) {
        found.set(key, value);
      }
    });
    for (const [key, value] of lastOnes<T>(prefix)) {
      if (value.changed > (found.get(key)?.changed ?? -Infinity)) {
        found.set(key, value);
      }
    }
  } catch {
    // The browser stores nothing, or only what was read.
  }
  return found;
}

async function saveTo(values: ReadonlyMap<string, Dated>): Promise<boolean> {
  try {
    const store = await storeFor('readwrite');
    const written = [...values].map(async ([key, value]) => {
      const before = await settled(store.get(key) as IDBRequest<Dated | undefined>);
      if (!(before && before.changed > value.changed)) {
        await settled(store.put(value, key));
      }
      localStorage.removeItem(LAST + key);
    });
    await Promise.all(written);
    return true;
  } catch {
    return false;
  }
}

async function removeFrom(keys: readonly string[]): Promise<void> {
  try {
    const store = await storeFor('readwrite');
    await Promise.all(keys.map((key) => settled(store.delete(key))));
    for (const key of keys) {
      localStorage.removeItem(LAST + key);
    }
  } catch {
    // Removal failed; it is retried next time.
  }
}

function below(prefix: string): IDBKeyRange {
  return IDBKeyRange.bound(prefix, `${prefix}\uffff`);
}

function lastOnes<T>(prefix: string): [string, T][] {
  return Object.keys(localStorage)
    .filter((name) => name.startsWith(LAST + prefix))
    .map((name) => [
      name.slice(LAST.length),
      JSON.parse(localStorage.getItem(name) ?? 'null') as T,
    ]);
}

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error(texts.server.browserDatabaseFailed));
  });
}
