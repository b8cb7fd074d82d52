/**
 * Drafts, history and layout, kept in the browser's own database. Never credentials.
 *
 * Records of one kind share the beginning of their keys, `tab/…`. What several windows write says
 * when it changed: of two values the later one stays, whichever is written last.
 */

const DATABASE = 'tidemark';
const STORE = 'workspace';
/** Begins the names of what `saveAtOnce` keeps. */
const LAST = 'tidemark.last.';

let opened: Promise<IDBDatabase> | undefined;

function database(): Promise<IDBDatabase> {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error('no browser database'));
  });
  return opened;
}

async function storeFor(mode: IDBTransactionMode): Promise<IDBObjectStore> {
  return (await database()).transaction(STORE, mode).objectStore(STORE);
}

/** The value kept under a name; nothing where the browser keeps nothing (private windows). */
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
 * Keeps a value of a page that is about to go, for which the database would be too slow. It counts
 * until the next save under its name. Where it is too large the value saved before stays.
 */
export function saveAtOnce(key: string, value: unknown): void {
  try {
    localStorage.setItem(LAST + key, JSON.stringify(value));
  } catch {
    // Full, or switched off.
  }
}

/** Whether the value is safe now. */
export async function save(key: string, value: unknown): Promise<boolean> {
  try {
    await settled((await storeFor('readwrite')).put(value, key));
    localStorage.removeItem(LAST + key);
    return true;
  } catch {
    return false;
  }
}

export interface Dated {
  /** Milliseconds since 1970; of two values under one key the one with the larger one counts. */
  readonly changed: number;
}

/** All values whose keys begin with `prefix`, by key, those of pages that went at once included. */
export async function loadAll<T extends Dated>(prefix: string): Promise<Map<string, T>> {
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
    // The browser keeps nothing, or no more than was read.
  }
  return found;
}

/** Writes each value unless the one that is there has changed later. Whether all are safe now. */
export async function saveDated(values: ReadonlyMap<string, Dated>): Promise<boolean> {
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

export async function remove(keys: readonly string[]): Promise<void> {
  try {
    const store = await storeFor('readwrite');
    await Promise.all(keys.map((key) => settled(store.delete(key))));
    for (const key of keys) {
      localStorage.removeItem(LAST + key);
    }
  } catch {
    // What cannot be removed is removed the next time.
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
    request.onerror = () => reject(request.error ?? new Error('browser database failed'));
  });
}
