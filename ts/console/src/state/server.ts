/** The server: whether it answers, its settings, and what it offers to the user of the page. */
import type { Accessor } from 'solid-js';
import { query, savePreferences, settings, SqlError, type Settings } from '../api/client.js';
import { signal } from '../model/signal.js';

type Connection = 'connecting' | 'connected' | 'lost';

export class Server {
  readonly connection = signal<Connection>('connecting');
  readonly #settings = signal<Settings | undefined>(undefined);
  readonly settings: Accessor<Settings | undefined> = this.#settings;
  readonly #listsUsers = signal(false);
  /** Whether the user of the page may see users and their rights. */
  readonly listsUsers: Accessor<boolean> = this.#listsUsers;

  /** Whether the server tells people apart, so that there are rights to look at. */
  get hasUsers(): boolean {
    return this.settings()?.config['acl.enabled'] === true;
  }

  /** Whether the server keeps notebooks for its users. */
  get keepsNotebooks(): boolean {
    return this.settings()?.config['notebooks.kept'] === true;
  }

  /** Whether the server refuses everything that writes and comes over HTTP. */
  get isReadOnly(): boolean {
    const writers = this.settings()?.config['accepting.writes'];
    return Array.isArray(writers) && !writers.includes('http');
  }

  /** Whether the server lets the page change what it is called. */
  get savesPreferences(): boolean {
    return this.settings()?.config['http.settings.readonly'] === false;
  }

  /** Asks the server for its settings, and throws when it does not answer; what it was before. */
  async greet(signal?: AbortSignal): Promise<Connection> {
    this.#settings.set(await settings(signal));
    const before = this.connection();
    this.connection.set('connected');
    return before;
  }

  /** Asks whether there are users that this one may see; once for each who signs in. */
  async askForUsers(): Promise<void> {
    try {
      await query('SHOW USERS', { maxRows: 1 });
      this.#listsUsers.set(true);
    } catch (cause) {
      if (cause instanceof SqlError) {
        this.#listsUsers.set(false);
      }
    }
  }

  /** Changes what the server is called, for every user. */
  async savePreferences(changed: Readonly<Record<string, string>>): Promise<void> {
    try {
      await savePreferences(changed, this.settings()?.version ?? 0);
    } finally {
      this.#settings.set(await settings());
    }
  }
}
