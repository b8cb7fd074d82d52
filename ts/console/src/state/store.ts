/**
 * Stores drafts, history and layout. Without a login, they are stored in the browser's database;
 * with a login, in the user's workspace on the server (`user-store.ts`). Credentials are never
 * stored.
 *
 * Records of one kind share a key prefix, such as `tab/…`. Records that several windows write
 * contain the time of the change. The later change wins, regardless of which change was written
 * last.
 */
import type { Dated } from '../api/workspace.js';
import { texts } from '../texts.js';

const DATABASE = 'tidemark';
const STORE = 'workspace';
/** Prefix of the keys that `saveAtOnce` writes. */
const LAST = 'tidemark.last.';

/** Key prefix of data that was unsaved when a session ended. The data is encrypted for its user. */
export const UNSAVED = 'tidemark.unsaved.';

/** Storage for the records of a signed-in user. */
export interface UserRecords {
  /** Identifies the workspace among all workspaces in this browser. */
  readonly id: string;
  loadAll(prefix: string): Promise<Map<string, Dated>>;
  saveDated(values: ReadonlyMap<string, Dated>): Promise<boolean>;
  saveAtOnce(values: ReadonlyMap<string, Dated>): void;
  /** Encrypts unsaved data and stores it in the browser until the next sign-in. */
  sealUnsaved(): Promise<void>;
  remove(keys: readonly string[]): Promise<void>;
}

let ofUser: UserRecords | undefined;

/** Stores tabs, log and results in the records of the signed-in user from now on. */
export function useUserRecords(records: UserRecords): void {
  ofUser = records;
}

/** Stores unsaved data until the user's next sign-in. */
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
 * Returns the value stored under a key; `undefined` if the browser stores no data (private
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
 * Each value is valid until its key is saved again. If there is not enough space, the previously
 * saved value is retained.
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

/** Saves a value in the browser's database. Returns true if the value was saved. */
export async function save(key: string, value: unknown): Promise<boolean> {
  try {
    await settled((await storeFor('readwrite')).put(value, key));
    localStorage.removeItem(LAST + key);
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns all values whose keys begin with `prefix`, by key, including values from `saveAtOnce`.
 */
export async function loadAll<T extends Dated>(prefix: string): Promise<Map<string, T>> {
  const found = ofUser ? await ofUser.loadAll(prefix) : await browserRecords.loadAll(prefix);
  return found as Map<string, T>;
}

/** Writes each value unless the stored value is newer. Returns true if all values were saved. */
export async function saveDated(values: ReadonlyMap<string, Dated>): Promise<boolean> {
  return await (ofUser ?? browserRecords).saveDated(values);
}

export async function remove(keys: readonly string[]): Promise<void> {
  await (ofUser ?? browserRecords).remove(keys);
}

/** The browser's own storage, which is used both with and without a login. */
export const browserRecords = { loadAll: loadFrom, saveDated: saveTo, remove: removeFrom };

/**
 * Removes all records from the browser's database except those for which `retained` returns true.
 */
export async function clearRecords(retained: (key: string) => boolean): Promise<void> {
  try {
    const keys = await settled((await storeFor('readonly')).getAllKeys());
    await removeFrom(keys.map(String).filter((key) => !retained(key)));
  } catch {
    // The browser's database is not available.
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
    // The browser's database is not available. Records that were already read are returned.
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
    // The removal failed and is retried next time.
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
