/** What a materialized view is asked in detail: a range of time, another way to be refreshed. */
import { createSignal, For, onMount, Show, type JSX } from 'solid-js';
import { Icon } from '../shell/icons.js';
import { SqlText } from '../shell/SqlText.js';
import {
  changeStatement,
  draftOf,
  rangeStatement,
  type PolicyDraft,
  type RefreshPolicy,
} from './refresh.js';

/** Runs a statement; resolves to what the server says against it, or to nothing. */
export type Attempt = (statement: string, done: string) => Promise<string>;

interface DialogProps {
  readonly name: string;
  readonly attempt: Attempt;
  readonly onClose: () => void;
}

export function RangeDialog(props: DialogProps): JSX.Element {
  const [from, setFrom] = createSignal('');
  const [to, setTo] = createSignal('');
  return (
    <StatementDialog
      {...props}
      title="Refresh a range of"
      statement={rangeStatement(props.name, from(), to())}
      isComplete={from().trim() !== '' && to().trim() !== ''}
      done={`A range of ${props.name} is being refreshed`}
      act="Refresh the range"
    >
      <p>
        The buckets between the two times are computed again, whether or not their base changed.
      </p>
      <Field
        label="From"
        hint="UTC, such as 2026-03-02 or 2026-03-02T09:00:00Z"
        value={from()}
        set={setFrom}
      />
      <Field label="To" value={to()} set={setTo} />
    </StatementDialog>
  );
}

const UNITS = [
  ['m', 'minutes'],
  ['h', 'hours'],
  ['d', 'days'],
  ['w', 'weeks'],
  ['M', 'months'],
  ['y', 'years'],
] as const;

const TRIGGERS = [
  ['immediate', 'after each change of the base'],
  ['timer', 'by a timer'],
  ['manual', 'when a statement says so'],
] as const;

const PERIODS = [
  ['none', 'all that the base has'],
  ['bucket', 'buckets that are over'],
  ['length', 'periods that are over'],
] as const;

export function ChangeRefreshDialog(
  props: DialogProps & { policy: RefreshPolicy | undefined },
): JSX.Element {
  const [draft, setDraft] = createSignal<PolicyDraft>(draftOf(props.policy));
  const set = (name: keyof PolicyDraft) => (value: string) =>
    void setDraft({ ...draft(), [name]: value });
  return (
    <StatementDialog
      {...props}
      title="Change when to refresh"
      statement={changeStatement(props.name, draft())}
      isComplete={draft().trigger !== 'timer' || draft().count.trim() !== ''}
      done={`${props.name} is refreshed as chosen`}
      act="Change refresh"
    >
      <Choice label="Refreshed" of={TRIGGERS} value={draft().trigger} set={set('trigger')} />
      <Show when={draft().trigger === 'timer'}>
        <div class="dialog-row">
          <Field label="Every" value={draft().count} set={set('count')} />
          <Choice label="Unit" of={UNITS} value={draft().unit} set={set('unit')} />
        </div>
        <Field
          label="First tick, if not now"
          hint="UTC, such as 2026-03-02T09:00:00Z"
          value={draft().start}
          set={set('start')}
        />
        <Field
          label="Time zone of days and longer steps"
          hint="such as Europe/Berlin; UTC without one"
          value={draft().zone}
          set={set('zone')}
        />
      </Show>
      <Choice label="Shows" of={PERIODS} value={draft().period} set={set('period')} />
      <Show when={draft().period === 'length'}>
        <div class="dialog-row">
          <Field
            label="Length of a period"
            hint="such as 1h or 1d"
            value={draft().length}
            set={set('length')}
          />
          <Field
            label="Shown after its end by"
            hint="such as 10m; at once without"
            value={draft().delay}
            set={set('delay')}
          />
        </div>
        <Field
          label="Time zone of periods"
          hint="such as Europe/Berlin; UTC without one"
          value={draft().periodZone}
          set={set('periodZone')}
        />
      </Show>
    </StatementDialog>
  );
}

interface StatementDialogProps extends DialogProps {
  readonly title: string;
  readonly statement: string;
  readonly isComplete: boolean;
  readonly done: string;
  readonly act: string;
  readonly children: JSX.Element;
}

/** A form that makes a statement, shows it, and runs it. */
function StatementDialog(props: StatementDialogProps): JSX.Element {
  let dialog!: HTMLDialogElement;
  const [failure, setFailure] = createSignal('');
  const [working, setWorking] = createSignal(false);
  onMount(() => dialog.showModal());
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setWorking(true);
    setFailure(await props.attempt(props.statement, props.done));
    setWorking(false);
    if (failure() === '') {
      dialog.close();
    }
  };
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby="view-dialog-title"
      onClose={() => props.onClose()}
    >
      <form onSubmit={(event) => void submit(event)} onInput={() => setFailure('')}>
        <header>
          <h2 id="view-dialog-title">
            {props.title} <bdi>{props.name}</bdi>
          </h2>
        </header>
        {props.children}
        <div class="dialog-statement">
          <SqlText text={props.statement} label="Statement" />
        </div>
        <Show when={failure()}>
          <p class="error" role="alert">
            <Icon name="alert" /> <bdi>{failure()}</bdi>
          </p>
        </Show>
        <div class="confirm-actions">
          <button class="button" type="button" onClick={() => dialog.close()}>
            Leave it
          </button>
          <button class="button primary" disabled={!props.isComplete || working()}>
            <Show when={working()}>
              <Icon name="running" class="spin" />
            </Show>
            {props.act}
          </button>
        </div>
      </form>
    </dialog>
  );
}

interface FieldProps {
  readonly label: string;
  readonly hint?: string;
  readonly value: string;
  readonly set: (value: string) => void;
}

function Field(props: FieldProps): JSX.Element {
  return (
    <label class="confirm-typed">
      <span>{props.label}</span>
      <input
        class="input data"
        value={props.value}
        onInput={(event) => props.set(event.currentTarget.value)}
      />
      <Show when={props.hint}>{(hint) => <span class="hint">{hint()}</span>}</Show>
    </label>
  );
}

function Choice(props: FieldProps & { of: readonly (readonly [string, string])[] }): JSX.Element {
  return (
    <label class="confirm-typed">
      <span>{props.label}</span>
      <select
        class="select"
        value={props.value}
        onChange={(event) => props.set(event.currentTarget.value)}
      >
        <For each={props.of}>
          {([value, name]) => (
            <option value={value} selected={props.value === value}>
              {name}
            </option>
          )}
        </For>
      </select>
    </label>
  );
}
