/** Shows the pending changes as SQL statements, in execution order. */
import { For, Show, type JSX } from 'solid-js';
import { announce } from '../page/notices.js';
import { copy } from '../ui/clipboard.js';
import { Icon } from '../ui/icons.js';
import type { AccessState } from './state.js';
import { Failure } from '../ui/Failure.js';
import { countText } from '../model/format.js';
import { texts } from '../texts.js';

export function PendingPane(props: { state: AccessState }): JSX.Element {
  const statements = (): string[] => props.state.steps().map(({ statement }) => statement);
  const count = (): number => props.state.changes().length;
  const apply = async (): Promise<void> => {
    if (await props.state.apply()) {
      announce(texts.access.changesApplied);
    }
  };
  return (
    <aside class="access-pending" aria-label={texts.access.pendingChanges}>
      <strong>{countText(count(), texts.access.pending)}</strong>
      <p class="hint">{texts.access.statementOrder}</p>
      <ol>
        <For each={statements()}>{(statement) => <li class="data">{statement}</li>}</For>
      </ol>
      <Failure text={props.state.failure()} />
      <Show when={statements().length > 0}>
        <div class="details-actions">
          <button class="button primary" data-action="apply" onClick={() => void apply()}>
            {texts.common.apply}
          </button>
          <button class="button" onClick={() => props.state.discard()}>
            {texts.access.discard}
          </button>
          <button
            class="button ghost"
            onClick={() => void copy(`${statements().join(';\n')};`, 'SQL')}
          >
            <Icon name="copy" />
            {texts.access.copySql}
          </button>
        </div>
      </Show>
    </aside>
  );
}
