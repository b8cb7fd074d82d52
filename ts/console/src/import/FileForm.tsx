/** Choices before a file is imported: table, time column, partitions, columns. */
import { createMemo, For, Show, type JSX } from 'solid-js';
import { grouped, bytesText } from '../model/format.js';
import { Icon } from '../ui/icons.js';
import { signIn } from '../signin/state.js';
import { ColumnTable } from './ColumnTable.js';
import {
  isAppended,
  PARTITION_UNITS,
  problemOf,
  timeColumns,
  type Atomicity,
  type Choices,
  type Existing,
  orderedBy,
} from './model.js';
import { percent, remaining, type Progress } from './progress.js';
import type { ImportFile, ImportQueue } from './queue.js';

interface FormProps {
  readonly file: ImportFile;
  readonly queue: ImportQueue;
}

export function FileForm(props: FormProps): JSX.Element {
  const choices = (): Choices | undefined => props.file.choices;
  const isOpen = (): boolean => props.file.state === 'ready' || props.file.state === 'failed';
  return (
    <Show when={choices()}>
      {(chosen) => (
        <>
          <fieldset class="import-form" disabled={!isOpen()}>
            <legend class="visually-hidden">Import of {props.file.name}</legend>
            <div class="form-grid">
              <TableField {...props} choices={chosen()} />
              <ModeField {...props} choices={chosen()} />
              <OwnerField {...props} choices={chosen()} />
              <TimeField {...props} choices={chosen()} />
              <PartitionField {...props} choices={chosen()} />
              <Show when={!props.file.proposal?.isTyped}>
                <AtomicityField {...props} choices={chosen()} />
                <DelimiterField {...props} />
              </Show>
            </div>
            <ColumnTable {...props} choices={chosen()} />
          </fieldset>
          <Foot {...props} choices={chosen()} />
        </>
      )}
    </Show>
  );
}

type FieldProps = FormProps & { readonly choices: Choices };

function existingOf(props: FieldProps): Existing | undefined {
  return props.file.existing;
}

function TableField(props: FieldProps): JSX.Element {
  const hint = (): string => {
    const rows = existingOf(props)?.rows;
    return rows === undefined ? 'exists' : `exists, ${grouped(String(rows))} rows`;
  };
  const otherwise = (): string => {
    const { taken } = props.file;
    return taken === undefined ? 'will be created' : `is a ${taken}`;
  };
  return (
    <div class="stack">
      <label for="import-table">Table</label>
      <input
        id="import-table"
        class="input data"
        aria-describedby="import-table-hint"
        value={props.choices.table}
        onInput={(event) => void props.queue.rename(props.file.id, event.currentTarget.value)}
      />
      <span id="import-table-hint" class="hint" classList={{ ok: existingOf(props) !== undefined }}>
        <Show when={existingOf(props)} fallback={otherwise()}>
          <Icon name="check" />
          {hint()}
        </Show>
      </span>
    </div>
  );
}

function ModeField(props: FieldProps): JSX.Element {
  const overwrite = (isOn: boolean): void => props.queue.decide(props.file.id, { overwrite: isOn });
  return (
    <div class="stack" role="group" aria-label="If the table exists">
      <span>If the table exists</span>
      <span class="segmented">
        <button aria-pressed={!props.choices.overwrite} onClick={() => overwrite(false)}>
          Append
        </button>
        <button aria-pressed={props.choices.overwrite} onClick={() => overwrite(true)}>
          Overwrite
        </button>
      </span>
      <span class={props.choices.overwrite && existingOf(props) ? 'hint warn' : 'hint'}>
        {props.choices.overwrite ? 'All rows and columns are replaced' : 'Existing rows are kept'}
      </span>
    </div>
  );
}

/** External users cannot own tables, so they choose an owner for a new table. */
function OwnerField(props: FieldProps): JSX.Element {
  const isAsked = (): boolean => {
    const now = signIn();
    return now.state === 'in' && now.byProvider && !isAppended(props.choices, existingOf(props));
  };
  return (
    <Show when={isAsked()}>
      <div class="stack">
        <label for="import-owner">Owner</label>
        <input
          id="import-owner"
          class="input data"
          aria-describedby="import-owner-hint"
          value={props.choices.owner}
          onInput={(event) =>
            props.queue.decide(props.file.id, { owner: event.currentTarget.value })
          }
        />
        <span id="import-owner-hint" class="hint">
          Group or user that owns the table
        </span>
      </div>
    </Show>
  );
}

function TimeField(props: FieldProps): JSX.Element {
  const appended = (): boolean => isAppended(props.choices, existingOf(props));
  const names = createMemo(() =>
    props.file.proposal ? timeColumns(props.file.proposal, props.choices) : [],
  );
  const pick = (timestamp: string): void =>
    props.queue.decide(props.file.id, orderedBy(props.choices, timestamp));
  return (
    <div class="stack">
      <label for="import-time">Time column</label>
      <Show
        when={!appended()}
        fallback={
          <select id="import-time" class="select" disabled>
            <option>{existingOf(props)?.timestamp ?? 'none'}</option>
          </select>
        }
      >
        <select
          id="import-time"
          class="select"
          aria-describedby="import-time-hint"
          onChange={(event) => pick(event.currentTarget.value)}
        >
          <option value="" selected={props.choices.timestamp === ''}>
            none
          </option>
          <For each={names()}>
            {(name) => (
              <option value={name} selected={props.choices.timestamp === name}>
                {name}
              </option>
            )}
          </For>
        </select>
      </Show>
      <span id="import-time-hint" class="hint">
        {appended() ? 'Set by the existing table' : 'Orders and partitions the table'}
      </span>
    </div>
  );
}

function PartitionField(props: FieldProps): JSX.Element {
  const appended = (): boolean => isAppended(props.choices, existingOf(props));
  return (
    <div class="stack">
      <label for="import-partition">Partition by</label>
      <Show
        when={!appended()}
        fallback={
          <select id="import-partition" class="select" disabled>
            <option>{existingOf(props)?.partitionBy ?? 'NONE'}</option>
          </select>
        }
      >
        <select
          id="import-partition"
          class="select"
          aria-describedby="import-partition-hint"
          disabled={props.choices.timestamp === ''}
          onChange={(event) =>
            props.queue.decide(props.file.id, { partitionBy: event.currentTarget.value })
          }
        >
          <For each={PARTITION_UNITS}>
            {(unit) => (
              <option value={unit} selected={props.choices.partitionBy === unit}>
                {unit === 'NONE' ? 'none' : unit.toLowerCase()}
              </option>
            )}
          </For>
        </select>
      </Show>
      <span id="import-partition-hint" class="hint">
        {appended()
          ? 'Set by the existing table'
          : props.choices.timestamp === ''
            ? 'Needs a time column'
            : 'Files are stored per partition'}
      </span>
    </div>
  );
}

const ATOMICITY: readonly (readonly [Atomicity, string, string])[] = [
  ['widen', 'Widen the type', 'Set to null in an existing table'],
  ['skipCol', 'Set to null', 'The row is kept'],
  ['skipRow', 'Skip the row', 'Other rows are imported'],
  ['abort', 'Stop the import', 'Nothing is written'],
];

function AtomicityField(props: FieldProps): JSX.Element {
  const hint = (): string =>
    ATOMICITY.find(([value]) => value === props.choices.atomicity)?.[2] ?? '';
  return (
    <div class="stack">
      <label for="import-atomicity">Unreadable values</label>
      <select
        id="import-atomicity"
        class="select"
        aria-describedby="import-atomicity-hint"
        onChange={(event) =>
          props.queue.decide(props.file.id, {
            atomicity: event.currentTarget.value as Atomicity,
          })
        }
      >
        <For each={ATOMICITY}>
          {([value, name]) => (
            <option value={value} selected={props.choices.atomicity === value}>
              {name}
            </option>
          )}
        </For>
      </select>
      <span id="import-atomicity-hint" class="hint">
        {hint()}
      </span>
    </div>
  );
}

const DELIMITERS: readonly (readonly [string, string])[] = [
  [',', 'comma'],
  [';', 'semicolon'],
  ['\t', 'tab'],
  ['|', 'pipe'],
  [':', 'colon'],
  [' ', 'space'],
];

function DelimiterField(props: FormProps): JSX.Element {
  const delimiter = (): string => props.file.proposal?.delimiter ?? ',';
  const header = (): boolean => props.file.proposal?.header ?? true;
  const look = (changes: Record<string, string>): void =>
    void props.queue.look(props.file.id, {
      delimiter: delimiter(),
      header: String(header()),
      name: props.file.choices?.table ?? '',
      ...changes,
    });
  return (
    <div class="stack" role="group" aria-label="File format">
      <span>Delimiter</span>
      <select
        class="select"
        aria-label="Delimiter"
        onChange={(event) => look({ delimiter: event.currentTarget.value })}
      >
        <For each={DELIMITERS}>
          {([value, name]) => (
            <option value={value} selected={delimiter() === value}>
              {name}
            </option>
          )}
        </For>
      </select>
      <label class="check hint">
        <input
          type="checkbox"
          checked={header()}
          onChange={(event) => look({ header: String(event.currentTarget.checked) })}
        />
        The first line contains column names
      </label>
      <Show when={props.file.proposal?.headerIsGuess}>
        <span class="hint warn">
          <Icon name="alert" /> Uncertain: all values are text
        </span>
      </Show>
      <For each={props.file.proposal?.warnings}>
        {(warning) => (
          <span class="hint warn">
            <Icon name="alert" /> {warning}
          </span>
        )}
      </For>
    </div>
  );
}

function Foot(props: FieldProps): JSX.Element {
  const problem = createMemo(() => {
    const { proposal, taken, existing } = props.file;
    if (taken !== undefined) {
      return `${props.choices.table} is a ${taken} and cannot receive rows. Choose another name.`;
    }
    return proposal && problemOf(proposal, props.choices, existing);
  });
  const isUnderWay = (): boolean =>
    props.file.state === 'sending' || props.file.state === 'waiting';
  return (
    <footer class="import-foot">
      <Show
        when={props.file.state === 'sending' && props.file.progress}
        fallback={
          <p
            class="import-note"
            classList={{ error: problem() !== undefined || props.file.state === 'failed' }}
            role="status"
          >
            <bdi>{problem() ?? props.file.message ?? bytesText(props.file.size)}</bdi>
          </p>
        }
      >
        {(progress) => <ProgressBlock file={props.file} progress={progress()} />}
      </Show>
      <button class="button large" onClick={() => props.queue.remove(props.file.id)}>
        {isUnderWay() ? 'Stop import' : 'Remove from list'}
      </button>
      <Show when={!isUnderWay()}>
        <button
          class="button large primary"
          data-action="import"
          disabled={problem() !== undefined}
          onClick={() => props.queue.start(props.file.id)}
        >
          Import {props.file.name}
        </button>
      </Show>
    </footer>
  );
}

const MEGA = 1e6;

function ProgressBlock(props: { file: ImportFile; progress: Progress }): JSX.Element {
  /**
   * The server counts the rows at the end; until then they are estimated from the bytes of the
   * sample.
   */
  const rowsPerByte = createMemo(() => {
    const { proposal, size } = props.file;
    const looked = Math.min(size, 1024 * 1024) - (proposal?.headerBytes ?? 0);
    return looked > 0 ? (proposal?.rows ?? 0) / looked : 0;
  });
  const rate = (): string => {
    const { rate } = props.progress;
    return rate === undefined ? '' : `${(rate / MEGA).toFixed(1)} MB/s`;
  };
  const rowRate = (): string => {
    const rows = Math.round((props.progress.rate ?? 0) * rowsPerByte());
    return rows === 0 ? '' : `about ${grouped(String(rows))} rows/s`;
  };
  return (
    <div class="import-progress">
      <div class="progress-line">
        <b>
          <bdi>{props.file.name}</bdi>
        </b>
        <span>{percent(props.progress)} %</span>
        <span>
          {bytesText(props.progress.sent)} of {bytesText(props.progress.all)}
        </span>
        <span>{rowRate()}</span>
        <span>{rate()}</span>
        <span class="spring" />
        <span>
          {props.progress.sent === props.progress.all && props.progress.all > 0
            ? 'writing rows'
            : remaining(props.progress)}
        </span>
      </div>
      <progress
        value={percent(props.progress)}
        max="100"
        aria-label={`Import of ${props.file.name}`}
      />
    </div>
  );
}
