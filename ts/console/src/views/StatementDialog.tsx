/** A form that builds a SQL statement, shows the statement, and runs it. */
import { createSignal, For, Show, type JSX } from 'solid-js';
import { FormDialog } from '../dialogs/FormDialog.js';
import { FormField } from '../dialogs/FormField.js';
import { SqlText } from '../ui/SqlText.js';
import type { StatementField, StatementForm } from './forms.js';
import { texts } from '../texts.js';

/** Runs a statement. Rejects with the server's error message. */
export type Attempt = (statement: string, done: string) => Promise<string>;

export function StatementDialog(props: {
  form: StatementForm;
  name: string;
  attempt: Attempt;
  onClose: () => void;
}): JSX.Element {
  const [draft, setDraft] = createSignal(props.form.draft);
  const set = (name: string, value: string): void => {
    setDraft({ ...draft(), [name]: value });
  };
  const isShown = ({ only }: StatementField): boolean =>
    only === undefined || draft()[only[0]] === only[1];
  const statement = (): string => props.form.statement(draft());
  return (
    <FormDialog
      title={props.form.title}
      name={props.name}
      cancel={texts.common.cancel}
      act={props.form.act}
      isComplete={props.form.isComplete(draft())}
      submit={() => props.attempt(statement(), props.form.done)}
      onClose={() => props.onClose()}
    >
      <Show when={props.form.text}>{(text) => <p>{text()}</p>}</Show>
      <div class="dialog-fields">
        <For each={props.form.fields}>
          {(field) => (
            <Show when={isShown(field)}>
              <FormField
                field={field}
                value={draft()[field.name] ?? ''}
                set={(value) => set(field.name, value)}
              />
            </Show>
          )}
        </For>
      </div>
      <div class="dialog-statement">
        <SqlText text={statement()} label={texts.common.statement} />
      </div>
    </FormDialog>
  );
}
