/** Shows a query plan as a tree of operators, with row counts and times if they were measured. */
import { createMemo, For, Match, Show, Switch, type JSX } from 'solid-js';
import { duration, grouped } from '../model/format.js';
import { copy } from '../ui/clipboard.js';
import { Icon } from '../ui/icons.js';
import { isQuery } from '../sql/effects.js';
import type { ShownPlan } from '../state/plans.js';
import type { Session } from '../state/session.js';
import type { Plan, PlanNode } from '../model/plan.js';
import { failureOf, readyOf } from '../state/loading.js';
import { fill, fillNodes } from '../fill.js';
import { texts } from '../texts.js';

export default function PlanView(props: { session: Session }): JSX.Element {
  const { workspace, plans } = props.session;
  const shown = createMemo(() => plans.of(workspace.active()));
  const failure = (): string => failureOf(shown()?.plan);
  const ready = (): Plan | undefined => readyOf(shown()?.plan);
  return (
    <div
      class="plan-pane"
      role="region"
      aria-label={texts.common.plan}
      tabindex="0"
      data-region="plan"
    >
      <Switch
        fallback={
          <div class="empty">
            <strong>{shown() ? texts.plan.loadingThePlan : texts.plan.noPlanYet}</strong>
            <Show when={!shown()}>
              <p>{fillNodes(texts.plan.noPlanHint, { keys: <kbd>Alt+E</kbd> })}</p>
            </Show>
          </div>
        }
      >
        <Match when={failure()}>
          <div class="outcome">
            <div class="outcome-head" data-state="failed">
              <Icon name="alert" />
              <strong class="outcome-message">
                <bdi>{failure()}</bdi>
              </strong>
            </div>
          </div>
        </Match>
        <Match when={ready()}>
          {(plan) => (
            <>
              <Head session={props.session} shown={shown()} plan={plan()} />
              <Tree plan={plan()} />
            </>
          )}
        </Match>
      </Switch>
    </div>
  );
}

function Head(props: { session: Session; shown: ShownPlan | undefined; plan: Plan }): JSX.Element {
  const statement = (): string => props.shown?.statement ?? '';
  const measure = (): void => {
    const tab = props.session.workspace.active();
    void props.session.plans.explain(tab, statement(), true);
  };
  return (
    <div class="plan-head">
      <code title={statement()}>{statement().replace(/\s+/g, ' ').slice(0, 200)}</code>
      <For each={props.plan.totals}>
        {(total) => (
          <span class="hint">
            {total.name} <b class="data">{grouped(total.value)}</b>
          </span>
        )}
      </For>
      <span class="spring" />
      <Show when={isQuery(statement())}>
        <button class="button small" title={texts.plan.measureHint} onClick={measure}>
          <Icon name="clock" />
          {props.shown?.isMeasured ? texts.plan.measureAgain : texts.plan.runAndMeasure}
        </button>
      </Show>
      <button
        class="button small ghost"
        onClick={() => void copy(props.plan.lines.join('\n'), texts.common.plan)}
      >
        <Icon name="copy" />
        {texts.common.copy}
      </button>
    </div>
  );
}

function Tree(props: { plan: Plan }): JSX.Element {
  const maxMs = createMemo(() => Math.max(...props.plan.nodes.map(({ ms }) => ms ?? 0), 1e-9));
  return (
    <ul class="plan" role="tree" aria-label={texts.plan.operators}>
      <For each={props.plan.nodes}>
        {(node, index) => (
          <li
            role="treeitem"
            aria-level={node.depth + 1}
            tabindex={index() === 0 ? 0 : -1}
            onKeyDown={moveInTree}
          >
            <For each={Array.from({ length: node.depth })}>{() => <span class="plan-rail" />}</For>
            <span class="plan-name">{node.name}</span>
            <span class="plan-detail" title={detailOf(node)}>
              {node.detail}
            </span>
            <Cost node={node} maxMs={maxMs()} />
          </li>
        )}
      </For>
    </ul>
  );
}

function moveInTree(event: KeyboardEvent): void {
  const item = event.currentTarget as HTMLElement;
  const next = {
    ArrowDown: item.nextElementSibling,
    ArrowUp: item.previousElementSibling,
    Home: item.parentElement?.firstElementChild,
    End: item.parentElement?.lastElementChild,
  }[event.key];
  if (next instanceof HTMLElement) {
    event.preventDefault();
    item.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
}

/** Returns the full description of an operator, including all its metrics. */
function detailOf(node: PlanNode): string {
  const figures = node.metrics.map(({ name, value }) => `${name}: ${value}`);
  return [node.detail, ...figures].filter((line) => line !== '').join('\n');
}

const BAR = 100;

function Cost(props: { node: PlanNode; maxMs: number }): JSX.Element {
  return (
    <>
      <Show when={props.node.rows}>
        {(rows) => (
          <span class="plan-rows data">
            {fill(texts.common.rowCount, { rows: grouped(rows()) })}
          </span>
        )}
      </Show>
      <Show when={props.node.ms !== undefined}>
        <span class="plan-cost data">
          <svg viewBox={`0 0 ${BAR} 6`} preserveAspectRatio="none" aria-hidden="true">
            <rect class="track" width={BAR} height="6" />
            <rect class="bar" width={((props.node.ms ?? 0) / props.maxMs) * BAR} height="6" />
          </svg>
          <span>{duration(props.node.ms ?? 0)}</span>
        </span>
      </Show>
    </>
  );
}
