/** How the statements of tabs would run: the plan of each tab that was asked for one. */
import { createSignal } from 'solid-js';
import { query } from '../api/client.js';
import { parsePlan, type Plan } from '../plan/model.js';
import { settle, type Loading } from './schema.js';

export interface ShownPlan {
  readonly statement: string;
  /** Whether the statement was run to measure it. */
  readonly isMeasured: boolean;
  readonly plan: Loading<Plan>;
}

export class Plans {
  readonly #plans: () => ReadonlyMap<string, ShownPlan>;
  readonly #setPlans: (plans: ReadonlyMap<string, ShownPlan>) => void;

  /** Called with each plan that came, line by line. */
  onPlan: ((statement: string, lines: readonly string[]) => void) | undefined;

  constructor() {
    const [plans, setPlans] = createSignal<ReadonlyMap<string, ShownPlan>>(new Map());
    this.#plans = plans;
    this.#setPlans = setPlans;
  }

  of(tab: string): ShownPlan | undefined {
    return this.#plans().get(tab);
  }

  /** Asks for a statement's plan; to measure it, the server runs it. */
  async explain(tab: string, statement: string, isMeasured: boolean): Promise<void> {
    const asked: ShownPlan = { statement, isMeasured, plan: { state: 'loading' } };
    this.#put(tab, asked);
    const plan = await settle(async () => {
      const { rows } = await query(`EXPLAIN ${isMeasured ? 'ANALYZE ' : ''}${statement}`);
      const lines = rows.map((row) => String(row[0]));
      this.onPlan?.(statement, lines);
      return parsePlan(lines);
    });
    // A later question has its own answer.
    if (this.of(tab) === asked) {
      this.#put(tab, { ...asked, plan });
    }
  }

  #put(tab: string, plan: ShownPlan): void {
    this.#setPlans(new Map(this.#plans()).set(tab, plan));
  }
}
