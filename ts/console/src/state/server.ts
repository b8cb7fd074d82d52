/** State of the server: its connection, its settings, and the features available to the user. */
import type { Accessor } from 'solid-js';
import { query, savePreferences, settings, SqlError, type Settings } from '../api/client.js';
import { signal } from '../model/signal.js';

type Connection = 'connecting' | 'connected' | 'lost';

export class Server {
  readonly connection = signal<Connection>('connecting');
  readonly #settings = signal<Settings | undefined>(undefined);
  readonly settings: Accessor<Settings | undefined> = this.#settings;
  readonly #listsUsers = signal(false);
  /** True if the user may list users and their permissions. */
  readonly listsUsers: Accessor<boolean> = this.#listsUsers;

  /** True if access control is enabled. */
  get hasUsers(): boolean {
    return this.settings()?.config['acl.enabled'] === true;
  }

  /** True if the server stores notebooks for its users. */
  get storesNotebooks(): boolean {
    return this.settings()?.config['notebooks.kept'] === true;
  }

  /** True if the server refuses all writes over HTTP. */
  get isReadOnly(): boolean {
    const writers = this.settings()?.config['accepting.writes'];
    return Array.isArray(writers) && !writers.includes('http');
  }

  /** True if the server's name, role and colour can be edited through HTTP. */
  get savesPreferences(): boolean {
    return this.settings()?.config['http.settings.readonly'] === false;
  }

  /**
   * Loads the server's settings and returns the previous connection state. Throws if the server
   * does not respond.
   */
  async greet(signal?: AbortSignal): Promise<Connection> {
    this.#settings.set(await settings(signal));
    const before = this.connection();
    this.connection.set('connected');
    return before;
  }

  /** Checks whether the user may list users. Must be called after each sign-in. */
  async requestUsers(): Promise<void> {
    try {
      await query('SHOW USERS', { maxRows: 1 });
      this.#listsUsers.set(true);
    } catch (cause) {
      if (cause instanceof SqlError) {
        this.#listsUsers.set(false);
      }
    }
  }

  /** Changes the server's name, role or colour for every user. */
  async savePreferences(changed: Readonly<Record<string, string>>): Promise<void> {
    try {
      await savePreferences(changed, this.settings()?.version ?? 0);
    } finally {
      this.#settings.set(await settings());
    }
  }
}
