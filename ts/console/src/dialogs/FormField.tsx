/** A form field in a dialog, with its label, input and hint. */
import '../styles/form.css';
import { For, Show, type JSX } from 'solid-js';

export interface FieldSpec {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  /** Allowed values with their display names. If absent, the field accepts any text. */
  readonly choices?: readonly (readonly [value: string, name: string])[];
  /** True if the field shares its row with another field. */
  readonly isHalf?: boolean;
  /** True if the input has several lines. */
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
