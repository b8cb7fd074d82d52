/**
 * Stores the records of a signed-in user. Tabs and log are stored in the user's workspace on the
 * server. The browser stores only the first rows of results, for a reload, and data that was
 * unsaved when a session ended. Both are encrypted with a key that the server provides only to this
 * user.
 */
import { SqlError } from '../api/client.js';
import { awaitsLogin } from '../api/credentials.js';
import { openWorkspace, saveFromLeavingPage, saveWorkspace, type Dated } from '../api/workspace.js';
import { browserRecords, clearRecords, UNSAVED, type UserRecords } from './store.js';

const RESULTS = 'result/';
const IV_BYTES = 12;
const RETRY_MS = 5000;
/**
 * HTTP statuses after which a retry is useless: the data is invalid or too large, or the server has
 * no free space.
 */
const REFUSALS = [400, 413, 507];

interface Sealed extends Dated {
  readonly sealed: Uint8Array<ArrayBuffer>;
}

export class UserStore implements UserRecords {
  readonly id: string;
  /**
   * Encryption key. The key is absent without HTTPS, because browsers then offer no encryption. In
   * that case, the browser stores no data.
   */
  readonly #key: CryptoKey | undefined;
  readonly #entries: Map<string, Dated>;
  /** Changes that the server has not received yet; `undefined` removes the entry. */
  readonly #unsaved = new Map<string, Dated | undefined>();
  #last: Promise<unknown> = Promise.resolve();
  #retry: ReturnType<typeof setTimeout> | undefined;

  private constructor(id: string, key: CryptoKey | undefined, entries: Map<string, Dated>) {
    this.id = id;
    this.#key = key;
    this.#entries = entries;
  }

  static async open(): Promise<UserStore> {
    const { id, key, entries } = await openWorkspace();
    // Data that an earlier version of the console stored may belong to another user.
    await clearRecords((name) => name.startsWith(RESULTS));
    const subtle = (crypto as { subtle?: SubtleCrypto }).subtle;
    const secret = await subtle?.importKey('raw', bytesOf(key), 'AES-GCM', false, [
      'encrypt',
      'decrypt',
    ]);
    const store = new UserStore(id, secret, new Map(Object.entries(entries)));
    await store.#takeUnsaved();
    return store;
  }

  async loadAll(prefix: string): Promise<Map<string, Dated>> {
    if (prefix !== RESULTS) {
      return new Map([...this.#entries].filter(([name]) => name.startsWith(prefix)));
    }
    const found = new Map<string, Dated>();
    const unread: string[] = [];
    for (const [name, value] of await browserRecords.loadAll<Sealed>(prefix)) {
      const record = await this.#unsealed(value.sealed);
      if (record === undefined) {
        unread.push(name);
      } else {
        found.set(name, record as Dated);
      }
    }
    await browserRecords.remove(unread);
    return found;
  }

  async saveDated(values: ReadonlyMap<string, Dated>): Promise<boolean> {
    for (const [name, value] of values) {
      if (name.startsWith(RESULTS)) {
        const sealed = await this.#sealed(value);
        const { changed } = value;
        const record = sealed && { changed, sealed };
        return record ? await browserRecords.saveDated(new Map([[name, record]])) : false;
      }
      this.#entries.set(name, value);
      this.#unsaved.set(name, value);
    }
    return await this.#save();
  }

  saveAtOnce(values: ReadonlyMap<string, Dated>): void {
    for (const [name, value] of values) {
      this.#unsaved.set(name, value);
    }
    if (this.#unsaved.size > 0 && !awaitsLogin()) {
      saveFromLeavingPage(this.id, changesOf(this.#unsaved)).catch(() => undefined);
    }
  }

  async remove(keys: readonly string[]): Promise<void> {
    await browserRecords.remove(keys.filter((key) => key.startsWith(RESULTS)));
    const own = keys.filter((key) => this.#entries.delete(key));
    own.forEach((key) => this.#unsaved.set(key, undefined));
    await this.#save();
  }

  /** Encrypts unsaved data and stores it in the browser until the next sign-in. */
  async sealUnsaved(): Promise<void> {
    const entries = [...this.#unsaved].filter(([, value]) => value !== undefined);
    const sealed = entries.length === 0 ? undefined : await this.#sealed(entries);
    if (sealed) {
      localStorage.setItem(UNSAVED + this.id, textOf(sealed));
    }
  }

  async #takeUnsaved(): Promise<void> {
    const text = localStorage.getItem(UNSAVED + this.id);
    localStorage.removeItem(UNSAVED + this.id);
    const left = text === null ? undefined : await this.#unsealed(bytesOf(text));
    for (const [name, value] of (left as [string, Dated][] | undefined) ?? []) {
      if (value.changed > (this.#entries.get(name)?.changed ?? -Infinity)) {
        this.#entries.set(name, value);
        this.#unsaved.set(name, value);
      }
    }
    void this.#save();
  }

  /** Sends pending changes to the server. Returns true if the server has received all of them. */
  #save(): Promise<boolean> {
    const done = this.#last.then(async () => {
      if (this.#unsaved.size === 0) {
        return true;
      }
      if (awaitsLogin()) {
        return false;
      }
      const sent = new Map(this.#unsaved);
      try {
        return await this.#send(sent);
      } catch {
        clearTimeout(this.#retry);
        this.#retry = setTimeout(() => void this.#save(), RETRY_MS);
        return false;
      }
    });
    this.#last = done;
    return done;
  }

  async #send(sent: ReadonlyMap<string, Dated | undefined>): Promise<boolean> {
    try {
      await saveWorkspace(this.id, changesOf(sent));
    } catch (cause) {
      if (!(cause instanceof SqlError && REFUSALS.includes(cause.status))) {
        throw cause;
      }
      // Sends the entries one by one, because an oversized entry must not prevent other entries
      // from being saved.
      let areSaved = sent.size > 1;
      for (const one of areSaved ? sent : []) {
        areSaved = (await this.#send(new Map([one]))) && areSaved;
      }
      sent.forEach((value, name) => this.#forget(name, value));
      return areSaved;
    }
    sent.forEach((value, name) => this.#forget(name, value));
    return true;
  }

  #forget(name: string, value: Dated | undefined): void {
    if (this.#unsaved.get(name) === value) {
      this.#unsaved.delete(name);
    }
  }

  async #sealed(value: unknown): Promise<Uint8Array<ArrayBuffer> | undefined> {
    if (!this.#key) {
      return undefined;
    }
    const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
    const plain = new TextEncoder().encode(JSON.stringify(value));
    const cipher = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, this.#key, plain);
    const sealed = new Uint8Array(IV_BYTES + cipher.byteLength);
    sealed.set(iv);
    sealed.set(new Uint8Array(cipher), IV_BYTES);
    return sealed;
  }

  /** Decrypts data; returns `undefined` if the data belongs to another user or is damaged. */
  async #unsealed(sealed: Uint8Array<ArrayBuffer> | undefined): Promise<unknown> {
    try {
      if (!this.#key || !sealed) {
        return undefined;
      }
      const algorithm = { name: 'AES-GCM', iv: sealed.subarray(0, IV_BYTES) };
      const plain = await crypto.subtle.decrypt(algorithm, this.#key, sealed.subarray(IV_BYTES));
      return JSON.parse(new TextDecoder().decode(plain)) as unknown;
    } catch {
      return undefined;
    }
  }
}

function changesOf(entries: ReadonlyMap<string, Dated | undefined>): {
  put: Record<string, Dated>;
  remove: string[];
} {
  const put: Record<string, Dated> = {};
  const remove: string[] = [];
  for (const [name, value] of entries) {
    if (value) {
      put[name] = value;
    } else {
      remove.push(name);
    }
  }
  return { put, remove };
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}

function textOf(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) {
    text += String.fromCharCode(byte);
  }
  return btoa(text);
}
