/** Shows the values of a notebook's variables in a bar and edits their definitions in a dialog. */
import { createSignal, createUniqueId, For, Index, Show, type JSX } from 'solid-js';
import { query } from '../api/client.js';
import { FormDialog } from '../dialogs/FormDialog.js';
import { copyText } from '../model/format.js';
import { Icon } from '../ui/icons.js';
import {
  isName,
  MAX_VARIABLES,
  VARIABLE_KINDS,
  type Variable,
  type VariableKind,
} from '../cells/model.js';
import type { NotebookContext } from './context.js';
import { valueOf, valueTrouble } from '../cells/statement.js';
import { messageOf } from '../model/message.js';
import { IconButton } from '../ui/IconButton.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

const [editing, setEditing] = createSignal(false);

/** Opens the variables dialog of the active notebook. */
export function openVariables(): void {
  setEditing(true);
}

export function VariableBar(props: NotebookContext): JSX.Element {
  const variables = (): readonly Variable[] => props.document.notebook().variables;
  const set = (variable: Variable, value: string): void => {
    const next = variables().map((one) => (one.name === variable.name ? { ...one, value } : one));
    props.document.change({ kind: 'settings', patch: { variables: next } });
  };
  const names = (): readonly string[] => variables().map(({ name }) => name);
  return (
    <>
      <Show when={names().length > 0}>
        <div
          class="parameters"
          role="group"
          aria-label={texts.common.variables}
          data-region="variables"
        >
          <Index each={variables()}>
            {(variable) => <Value variable={variable()} set={(value) => set(variable(), value)} />}
          </Index>
          <button class="button small ghost" onClick={openVariables}>
            {texts.variables.editVariables}
          </button>
        </div>
      </Show>
      <Show when={editing()}>
        <Editor {...props} onClose={() => setEditing(false)} />
      </Show>
    </>
  );
}

/** Maximum number of values that a list offers. The user can type any other value. */
const OFFERED = 1000;

function Value(props: { variable: Variable; set: (value: string) => void }): JSX.Element {
  const list = createUniqueId();
  const [choices, setChoices] = createSignal<Choices>();
  let requested: string | undefined;
  // A signal is used because a loading resource would remove the field while the user types.
  const offer = (text: string): void => {
    if (text !== requested) {
      requested = text;
      void choicesOf(text).then((found) => requested === text && setChoices(found));
    }
  };
  const isList = (): boolean => props.variable.kind === 'list';
  const trouble = (): string =>
    valueOf(props.variable, Date.now()) === undefined ? valueTrouble(props.variable) : '';
  return (
    <label>
      <code>@{props.variable.name}</code>
      <input
        class="input data"
        classList={{ choices: isList() }}
        list={isList() ? list : undefined}
        title={isList() ? texts.variables.valueHint : undefined}
        value={props.variable.value}
        aria-invalid={trouble() === '' ? undefined : 'true'}
        onFocus={() => isList() && offer(props.variable.query ?? '')}
        onChange={(event) => props.set(event.currentTarget.value)}
      />
      <Show when={isList()}>
        <span class="choices-arrow" aria-hidden="true">
          ▾
        </span>
        <datalist id={list}>
          <For each={choices()?.values}>{(value) => <option value={value} />}</For>
        </datalist>
        <Show when={choices()?.note}>
          <span class="hint">{choices()?.note}</span>
        </Show>
      </Show>
      <Show when={trouble()}>
        <span class="cell-warning" role="alert">
          {trouble()}
        </span>
      </Show>
    </label>
  );
}

interface Choices {
  readonly values: readonly string[];
  readonly note: string;
}

/** Returns the first values of a list's query, without reading the whole result. */
async function choicesOf(text: string): Promise<Choices> {
  try {
    const statement = `SELECT * FROM (${text}\n) LIMIT ${OFFERED + 1}`;
    const { rows } = await query(statement, { maxRows: OFFERED + 1 });
    const values = [...new Set(rows.map(([value]) => copyText(value ?? null)))];
    const isCut = rows.length > OFFERED;
    return {
      values: values.slice(0, OFFERED),
      note: isCut ? texts.variables.firstValuesListed : '',
    };
  } catch (cause) {
    const message = messageOf(cause);
    return { values: [], note: fill(texts.variables.noValues, { reason: message }) };
  }
}

function Editor(props: NotebookContext & { onClose: () => void }): JSX.Element {
  const [rows, setRows] = createSignal<readonly Variable[]>(
    props.document.notebook().variables.length > 0
      ? props.document.notebook().variables
      : [NEW_VARIABLE],
  );
  const set = (at: number, patch: Partial<Variable>): void => {
    setRows(rows().map((row, index) => (index === at ? { ...row, ...patch } : row)));
  };
  const submit = async (): Promise<string> => {
    const trouble = troubleOf(rows());
    if (trouble === '') {
      const variables = await Promise.all(rows().map(withoutQuery).map(withValue));
      props.document.change({ kind: 'settings', patch: { variables } });
    }
    return trouble;
  };
  return (
    <FormDialog
      title={texts.variables.title}
      name={props.tab.title}
      cancel={texts.common.cancel}
      act={texts.common.apply}
      isComplete={true}
      submit={submit}
      onClose={props.onClose}
    >
      <div class="variable-rows">
        <Index each={rows()}>
          {(row, at) => (
            <VariableRow
              variable={row()}
              set={(patch) => set(at, patch)}
              remove={() => setRows(rows().filter((_row, index) => index !== at))}
            />
          )}
        </Index>
        <button
          class="button small"
          type="button"
          disabled={rows().length >= MAX_VARIABLES}
          onClick={() => setRows([...rows(), NEW_VARIABLE])}
        >
          <Icon name="plus" />
          {texts.variables.addVariable}
        </button>
        <p class="hint">{texts.variables.hint}</p>
      </div>
    </FormDialog>
  );
}

const NEW_VARIABLE: Variable = { name: '', kind: 'text', value: '' };

function withoutQuery({ query: text, ...variable }: Variable): Variable {
  return variable.kind === 'list' ? { ...variable, query: text ?? '' } : variable;
}

/**
 * Sets a list variable without a value to its first choice. Otherwise, statements would find no
 * rows.
 */
async function withValue(variable: Variable): Promise<Variable> {
  if (variable.kind !== 'list' || variable.value !== '') {
    return variable;
  }
  const [value = ''] = (await choicesOf(variable.query ?? '')).values;
  return { ...variable, value };
}

function troubleOf(variables: readonly Variable[]): string {
  const seen = new Set(['from', 'to']);
  for (const variable of variables) {
    const name = variable.name.toLowerCase();
    if (!isName(variable.name)) {
      return fill(texts.variables.invalidName, { name: variable.name });
    }
    if (seen.has(name)) {
      return name === 'from' || name === 'to'
        ? fill(texts.variables.nameOfRange, { name })
        : fill(texts.variables.duplicateName, { name });
    }
    seen.add(name);
    if (variable.kind === 'list' && (variable.query ?? '').trim() === '') {
      return fill(texts.variables.needsQuery, { name: variable.name });
    }
    if (valueOf(variable, Date.now()) === undefined) {
      return `@${variable.name}: ${valueTrouble(variable)}`;
    }
  }
  return '';
}

const KIND_NAMES: Readonly<Record<VariableKind, string>> = {
  text: texts.common.text,
  number: texts.variables.number,
  list: texts.variables.listFromQuery,
  time: texts.variables.time,
};

function VariableRow(props: {
  variable: Variable;
  set: (patch: Partial<Variable>) => void;
  remove: () => void;
}): JSX.Element {
  return (
    <fieldset class="variable-row">
      <legend class="visually-hidden">
        {fill(texts.common.variable, { name: props.variable.name })}
      </legend>
      <label>
        {texts.common.name}
        <input
          class="input data"
          value={props.variable.name}
          onInput={(event) => props.set({ name: event.currentTarget.value.trim() })}
        />
      </label>
      <label>
        {texts.common.kind}
        <select
          class="select"
          onChange={(event) => props.set({ kind: event.currentTarget.value as VariableKind })}
        >
          <For each={VARIABLE_KINDS}>
            {(kind) => (
              <option value={kind} selected={kind === props.variable.kind}>
                {KIND_NAMES[kind]}
              </option>
            )}
          </For>
        </select>
      </label>
      <label>
        {texts.common.value}
        <input
          class="input data"
          value={props.variable.value}
          onInput={(event) => props.set({ value: event.currentTarget.value })}
        />
      </label>
      <IconButton
        icon="close"
        type="button"
        label={fill(texts.variables.remove, { name: props.variable.name })}
        onClick={() => props.remove()}
      />
      <Show when={props.variable.kind === 'list'}>
        <label class="wide">
          {texts.variables.query}
          <input
            class="input data"
            value={props.variable.query ?? ''}
            onInput={(event) => props.set({ query: event.currentTarget.value })}
          />
        </label>
      </Show>
    </fieldset>
  );
}
