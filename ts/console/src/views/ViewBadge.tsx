/** Badge that shows why a view is not up to date, and for how long. */
import { createMemo, Show, type JSX } from 'solid-js';
import { approximate } from '../model/format.js';
import { Icon } from '../ui/icons.js';
import {
  ageText,
  freshnessOf,
  freshnessText,
  STATE_LABELS,
  type ViewFacts,
} from '../model/views.js';

const APPEARANCES = {
  invalid: ['alert', 'error'],
  suspended: ['pause', 'quiet'],
  seeding: ['running', 'accent'],
  refreshing: ['running', 'accent'],
  empty: ['clock', 'quiet'],
  behind: ['clock', 'quiet'],
} as const;

/** Shows the badge. `fallback` is shown instead if the view is up to date. */
export function ViewBadge(props: { view: ViewFacts; fallback?: string }): JSX.Element {
  const freshness = createMemo(() => freshnessOf(props.view));
  const kind = (): keyof typeof APPEARANCES | undefined => {
    const { kind } = freshness();
    return kind === 'current' ? undefined : kind;
  };
  return (
    <Show when={kind()} fallback={<span class="hint">{props.fallback}</span>}>
      {(known) => (
        <span
          class={`badge ${freshness().isLate ? 'warn' : APPEARANCES[known()][1]}`}
          title={freshnessText(props.view)}
        >
          <Icon
            name={APPEARANCES[known()][0]}
            class={APPEARANCES[known()][0] === 'running' ? 'spin' : ''}
          />
          {STATE_LABELS[known()]}{' '}
          <Show when={known() === 'behind'}>
            <span class="lag">{shortLag(props.view)}</span>
          </Show>
        </span>
      )}
    </Show>
  );
}

function shortLag({ behind, ageMs }: ViewFacts): string {
  return `${approximate(behind)} · ${ageMs === undefined ? '–' : ageText(ageMs)}`;
}
