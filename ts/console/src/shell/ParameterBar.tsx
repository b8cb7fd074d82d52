/** Input fields for the parameters of the statement under the cursor. */
import { For, Show, type JSX } from 'solid-js';
import type { Session } from '../state/session.js';
import { texts } from '../texts.js';

export function ParameterBar(props: { session: Session }): JSX.Element {
  const { workspace, statements } = props.session;
  const { parameters } = statements;
  const valueOf = (name: string): string => workspace.parametersOf(workspace.active())[name] ?? '';
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      void statements.run();
    }
  };
  return (
    <Show when={parameters().length > 0}>
      <div
        class="parameters"
        role="group"
        aria-label={texts.query.parameters}
        data-region="parameters"
        onKeyDown={onKeyDown}
      >
        <For each={parameters()}>
          {(name) => (
            <label>
              <code>{name}</code>
              <input
                class="input data"
                value={valueOf(name)}
                placeholder={texts.query.parameterValue}
                title={texts.query.parameterHint}
                onInput={(event) =>
                  workspace.setParameter(workspace.active(), name, event.currentTarget.value)
                }
              />
            </label>
          )}
        </For>
      </div>
    </Show>
  );
}
