/** Results that come back after a reload: which user sees them. Their code is loaded when used. */
import type { Run } from './run.js';
import type { Workspace } from './workspace.js';

export class Results {
  readonly #workspace: Workspace;
  /** Nothing while it is not known. */
  #user: string | undefined;

  constructor(workspace: Workspace) {
    this.#workspace = workspace;
  }

  /** Shows what the user's tabs showed before the page was loaded, and keeps what they show now. */
  async restore(user: string): Promise<void> {
    this.#user = user;
    const { keptResults } = await import('./kept-results.js');
    for (const [tab, earlier] of await keptResults(user)) {
      if (this.#user === user && this.#workspace.tabs.some(({ id }) => id === tab)) {
        this.#workspace.runner(tab).restore(earlier);
      }
    }
  }

  async keep(tab: string, { hasRows }: Run): Promise<void> {
    const result = this.#workspace.runner(tab).result();
    const user = this.#user;
    if (hasRows && result && user !== undefined) {
      const { keepResult } = await import('./kept-results.js');
      await keepResult(tab, result, user);
    }
  }

  async forget(tab: string): Promise<void> {
    const { forgetResult } = await import('./kept-results.js');
    await forgetResult(tab);
  }
}
