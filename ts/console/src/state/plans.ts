/** Query plans that the user requested, by tab. */
import { query } from '../api/client.js';
import { parsePlan, type Plan } from '../model/plan.js';
import { settle, type Loading } from './loading.js';
import { signal } from '../model/signal.js';
import type { Workspace } from './workspace.js';

export interface ShownPlan {
  readonly statement: string;
  /** True if the statement was run in order to measure it. */
  readonly isMeasured: boolean;
  readonly plan: Loading<Plan>;
}

export class Plans {
  readonly #plans = signal<ReadonlyMap<string, ShownPlan>>(new Map());
  readonly #workspace: Workspace;

  constructor(workspace: Workspace) {
    this.#workspace = workspace;
  }

  of(tab: string): ShownPlan | undefined {
    return this.#plans().get(tab);
  }

  /** Requests the plan of a statement. To measure the plan, the server runs the statement. */
  async explain(tab: string, statement: string, isMeasured: boolean): Promise<void> {
    const pending: ShownPlan = { statement, isMeasured, plan: { state: 'loading' } };
    this.#put(tab, pending);
    const plan = await settle(async () => {
      const { rows } = await query(`EXPLAIN ${isMeasured ? 'ANALYZE ' : ''}${statement}`);
      const lines = rows.map((row) => String(row[0]));
      this.#workspace.storePlan(statement, lines);
      return parsePlan(lines);
    });
    // If another request was sent in the meantime, this response is ignored.
    if (this.of(tab) === pending) {
      this.#put(tab, { ...pending, plan });
    }
  }

  #put(tab: string, plan: ShownPlan): void {
    this.#plans.set(new Map(this.#plans()).set(tab, plan));
  }
}
