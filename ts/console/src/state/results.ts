/**
 * Restores results after a reload, only for the user who saw them. The code for stored results is
 * loaded on first use.
 */
import type { Run } from './run.js';
import type { Workspace } from './workspace.js';

export class Results {
  readonly #workspace: Workspace;
  /** Name of the current user; `undefined` until the name is known. */
  #user: string | undefined;

  constructor(workspace: Workspace) {
    this.#workspace = workspace;
  }

  /** Shows the user's results from before a reload. From now on, new results are stored. */
  async restore(user: string): Promise<void> {
    this.#user = user;
    const { storedResults } = await import('./stored-results.js');
    for (const [tab, earlier] of await storedResults(user)) {
      if (this.#user === user && this.#workspace.tabs.some(({ id }) => id === tab)) {
        this.#workspace.runner(tab).restore(earlier);
      }
    }
  }

  async store(tab: string, { hasRows }: Run): Promise<void> {
    const result = this.#workspace.runner(tab).result();
    const user = this.#user;
    if (hasRows && result && user !== undefined) {
      const { storeResult } = await import('./stored-results.js');
      await storeResult(tab, result, user);
    }
  }

  async forget(tab: string): Promise<void> {
    const { forgetResult } = await import('./stored-results.js');
    await forgetResult(tab);
  }
}
