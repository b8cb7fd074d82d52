/** Form with the settings for an import: table, time column, partitions, columns. */
import { createMemo, For, Show, type JSX } from 'solid-js';
import { bytesText, grouped, rowsText } from '../model/format.js';
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
import { fill } from '../fill.js';
import { texts } from '../texts.js';

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
            <legend class="visually-hidden">
              {fill(texts.common.importOf, { name: props.file.name })}
            </legend>
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
    return rows === undefined
      ? texts.importForm.exists
      : fill(texts.importForm.existsWithRows, { rows: rowsText(rows) });
  };
  const otherwise = (): string => {
    const { occupiedBy } = props.file;
    return occupiedBy === undefined
      ? texts.importForm.willBeCreated
      : fill(texts.importForm.isA, { kind: occupiedBy });
  };
  return (
    <div class="stack">
      <label for="import-table">{texts.common.table}</label>
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
    <div class="stack" role="group" aria-label={texts.importForm.ifTableExists}>
      <span>{texts.importForm.ifTableExists}</span>
      <span class="segmented">
        <button aria-pressed={!props.choices.overwrite} onClick={() => overwrite(false)}>
          {texts.importForm.append}
        </button>
        <button aria-pressed={props.choices.overwrite} onClick={() => overwrite(true)}>
          {texts.importForm.overwrite}
        </button>
      </span>
      <span class={props.choices.overwrite && existingOf(props) ? 'hint warn' : 'hint'}>
        {props.choices.overwrite ? texts.importForm.overwriteHint : texts.importForm.appendHint}
      </span>
    </div>
  );
}

/** Owner of a new table. External users cannot own tables, so they must name another owner. */
function OwnerField(props: FieldProps): JSX.Element {
  const isNeeded = (): boolean => {
    const now = signIn();
    return now.state === 'in' && now.byProvider && !isAppended(props.choices, existingOf(props));
  };
  return (
    <Show when={isNeeded()}>
      <div class="stack">
        <label for="import-owner">{texts.common.owner}</label>
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
          {texts.importForm.ownerHint}
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
      <label for="import-time">{texts.common.timeColumn}</label>
      <Show
        when={!appended()}
        fallback={
          <select id="import-time" class="select" disabled>
            <option>{existingOf(props)?.timestamp ?? texts.common.none}</option>
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
            {texts.common.none}
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
        {appended() ? texts.importForm.setByTable : texts.importForm.timeColumnHint}
      </span>
    </div>
  );
}

function PartitionField(props: FieldProps): JSX.Element {
  const appended = (): boolean => isAppended(props.choices, existingOf(props));
  return (
    <div class="stack">
      <label for="import-partition">{texts.importForm.partitionBy}</label>
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
                {unit === 'NONE' ? texts.common.none : unit.toLowerCase()}
              </option>
            )}
          </For>
        </select>
      </Show>
      <span id="import-partition-hint" class="hint">
        {appended()
          ? texts.importForm.setByTable
          : props.choices.timestamp === ''
            ? texts.importForm.needsTimeColumn
            : texts.importForm.partitionByHint}
      </span>
    </div>
  );
}

const ATOMICITY: readonly (readonly [Atomicity, string, string])[] = [
  ['widen', texts.importForm.widenTheType, texts.importForm.setToNullInTable],
  ['skipCol', texts.importForm.setToNull, texts.importForm.setToNullHint],
  ['skipRow', texts.importForm.skipTheRow, texts.importForm.skipTheRowHint],
  ['abort', texts.importForm.stopTheImport, texts.importForm.stopTheImportHint],
];

function AtomicityField(props: FieldProps): JSX.Element {
  const hint = (): string =>
    ATOMICITY.find(([value]) => value === props.choices.atomicity)?.[2] ?? '';
  return (
    <div class="stack">
      <label for="import-atomicity">{texts.common.unreadableValues}</label>
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
  const preview = (changes: Record<string, string>): void =>
    void props.queue.preview(props.file.id, {
      delimiter: delimiter(),
      header: String(header()),
      name: props.file.choices?.table ?? '',
      ...changes,
    });
  return (
    <div class="stack" role="group" aria-label={texts.importForm.fileFormat}>
      <span>{texts.importForm.delimiter}</span>
      <select
        class="select"
        aria-label={texts.importForm.delimiter}
        onChange={(event) => preview({ delimiter: event.currentTarget.value })}
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
          onChange={(event) => preview({ header: String(event.currentTarget.checked) })}
        />
        {texts.importForm.hasHeader}
      </label>
      <Show when={props.file.proposal?.headerIsGuess}>
        <span class="hint warn">
          <Icon name="alert" /> {texts.importForm.headerUncertain}
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
    const { proposal, occupiedBy, existing } = props.file;
    if (occupiedBy !== undefined) {
      return fill(texts.importForm.notATable, { table: props.choices.table, kind: occupiedBy });
    }
    return proposal && problemOf(proposal, props.choices, existing);
  });
  const isRunning = (): boolean => props.file.state === 'sending' || props.file.state === 'waiting';
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
        {isRunning() ? texts.importForm.stop : texts.common.removeFromList}
      </button>
      <Show when={!isRunning()}>
        <button
          class="button large primary"
          data-action="import"
          disabled={problem() !== undefined}
          onClick={() => props.queue.start(props.file.id)}
        >
          {fill(texts.importForm.importFile, { file: props.file.name })}
        </button>
      </Show>
    </footer>
  );
}

const MEGA = 1e6;

function ProgressBlock(props: { file: ImportFile; progress: Progress }): JSX.Element {
  /**
   * Estimated number of rows per byte, from the sample. The server reports the number of rows only
   * at the end.
   */
  const rowsPerByte = createMemo(() => {
    const { proposal, size } = props.file;
    const sampledBytes = Math.min(size, 1024 * 1024) - (proposal?.headerBytes ?? 0);
    return sampledBytes > 0 ? (proposal?.rows ?? 0) / sampledBytes : 0;
  });
  const rate = (): string => {
    const { rate } = props.progress;
    return rate === undefined
      ? ''
      : fill(texts.importForm.bytesPerSecond, { rate: (rate / MEGA).toFixed(1) });
  };
  const rowRate = (): string => {
    const rows = Math.round((props.progress.rate ?? 0) * rowsPerByte());
    return rows === 0 ? '' : fill(texts.importForm.rowsPerSecond, { rows: grouped(String(rows)) });
  };
  return (
    <div class="import-progress">
      <div class="progress-line">
        <b>
          <bdi>{props.file.name}</bdi>
        </b>
        <span>{percent(props.progress)} %</span>
        <span>
          {fill(texts.common.countOfAll, {
            count: bytesText(props.progress.sent),
            all: bytesText(props.progress.all),
          })}
        </span>
        <span>{rowRate()}</span>
        <span>{rate()}</span>
        <span class="spring" />
        <span>
          {props.progress.sent === props.progress.all && props.progress.all > 0
            ? texts.importForm.writingRows
            : remaining(props.progress)}
        </span>
      </div>
      <progress
        value={percent(props.progress)}
        max="100"
        aria-label={fill(texts.common.importOf, { name: props.file.name })}
      />
    </div>
  );
}
