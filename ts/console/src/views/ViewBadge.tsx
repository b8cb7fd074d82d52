/** What keeps a materialized view from showing all of its base, and since when. */
import { createMemo, Show, type JSX } from 'solid-js';
import { approximate } from '../model/format.js';
import { Icon } from '../shell/icons.js';
import {
  ageText,
  freshnessOf,
  freshnessText,
  STATE_WORDS,
  type Freshness,
  type MaterializedFacts,
} from './model.js';

const LOOKS = {
  invalid: ['alert', 'error'],
  refreshing: ['running', 'accent'],
  empty: ['clock', 'quiet'],
  behind: ['clock', 'quiet'],
} as const;

/** `fallback` is shown for a view that shows all there is. */
export function ViewBadge(props: { view: MaterializedFacts; fallback?: string }): JSX.Element {
  const freshness = createMemo(() => freshnessOf(props.view));
  const kind = (): keyof typeof LOOKS | undefined => {
    const { kind } = freshness();
    return kind === 'current' ? undefined : kind;
  };
  return (
    <Show when={kind()} fallback={<span class="hint">{props.fallback}</span>}>
      {(known) => (
        <span
          class={`badge ${freshness().isLate ? 'warn' : LOOKS[known()][1]}`}
          title={freshnessText(props.view)}
        >
          <Icon name={LOOKS[known()][0]} class={known() === 'refreshing' ? 'spin' : ''} />
          {STATE_WORDS[known()]}{' '}
          <Show when={known() === 'behind'}>
            <span class="lag">{lagText(freshness())}</span>
          </Show>
        </span>
      )}
    </Show>
  );
}

function lagText({ behind, ageMs }: Freshness): string {
  return `${approximate(behind)} · ${ageMs === undefined ? '–' : ageText(ageMs)}`;
}
