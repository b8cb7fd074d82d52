/** One form field of a dialog: label, input or choice, hint. */
import '../styles/form.css';
import { For, Show, type JSX } from 'solid-js';

export interface FieldSpec {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  /** Allowed values with their names; if absent, any text is allowed. */
  readonly choices?: readonly (readonly [value: string, name: string])[];
  /** Whether the field shares its row with another field. */
  readonly isHalf?: boolean;
  /** Whether the input has several lines. */
  readonly isLong?: boolean;
}

export function FormField(props: {
  field: FieldSpec;
  value: string;
  set: (value: string) => void;
}): JSX.Element {
  return (
    <label class="confirm-typed" classList={{ half: props.field.isHalf === true }}>
      <span>{props.field.label}</span>
      <Show
        when={props.field.choices}
        fallback={
          <Show
            when={props.field.isLong}
            fallback={
              <input
                class="input data"
                value={props.value}
                onInput={(event) => props.set(event.currentTarget.value)}
              />
            }
          >
            <textarea
              class="input data long"
              rows={4}
              spellcheck={false}
              value={props.value}
              onInput={(event) => props.set(event.currentTarget.value)}
            />
          </Show>
        }
      >
        {(choices) => (
          <select
            class="select"
            value={props.value}
            onChange={(event) => props.set(event.currentTarget.value)}
          >
            <For each={choices()}>
              {([value, name]) => (
                <option value={value} selected={props.value === value}>
                  {name}
                </option>
              )}
            </For>
          </select>
        )}
      </Show>
      <Show when={props.field.hint}>{(hint) => <span class="hint">{hint()}</span>}</Show>
    </label>
  );
}
