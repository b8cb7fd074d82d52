/** Drafts and layout, kept in the browser's own database. Never credentials. */

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

/** The value kept under a name; nothing where the browser keeps nothing (private windows). */
export async function load<T>(key: string): Promise<T | undefined> {
  try {
    const last = localStorage.getItem(LAST + key);
    if (last !== null) {
      return JSON.parse(last) as T;
    }
    const store = (await database()).transaction(STORE).objectStore(STORE);
    return await settled(store.get(key) as IDBRequest<T | undefined>);
  } catch {
    return undefined;
  }
}

/**
 * Keeps a value of a page that is about to go, for which the database would be too slow. It counts
 * until the next `save`. Where it is too large the value saved before stays.
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
    const store = (await database()).transaction(STORE, 'readwrite').objectStore(STORE);
    await settled(store.put(value, key));
    localStorage.removeItem(LAST + key);
    return true;
  } catch {
    return false;
  }
}

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error('browser database failed'));
  });
}
