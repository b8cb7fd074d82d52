/**
 * Table of a file's columns. Names, types and patterns can be edited, and the first values serve as
 * a guide.
 */
import { For, Index, Show, type JSX } from 'solid-js';
import type { ProposedColumn, Trial } from '../api/upload.js';
import { Icon } from '../ui/icons.js';
import {
  isAppended,
  patternText,
  retyped,
  acceptsPattern,
  targetType,
  trialText,
  TYPES,
  type Choices,
  type ColumnChoice,
} from './model.js';
import type { ColumnTrial, ImportFile, ImportQueue } from './queue.js';
import { fill, fillNodes } from '../fill.js';
import { texts } from '../texts.js';

interface TableProps {
  readonly file: ImportFile;
  readonly queue: ImportQueue;
  readonly choices: Choices;
}

export function ColumnTable(props: TableProps): JSX.Element {
  const change = (index: number, column: ColumnChoice): void => {
    const before = props.choices.columns[index];
    const columns = props.choices.columns.map((one, at) => (at === index ? column : one));
    const isTime = before?.name === props.choices.timestamp;
    const isTried = !props.file.proposal?.isTyped && column.type !== 'VARCHAR';
    if (isTried && (before?.type !== column.type || before.pattern !== column.pattern)) {
      props.queue.try(props.file.id, index, column);
    }
    // A time column that is renamed remains the time column.
    props.queue.decide(props.file.id, {
      columns,
      ...(isTime ? { timestamp: column.name } : {}),
    });
  };
  return (
    <div class="import-columns" role="region" aria-label={texts.common.columns} tabindex="0">
      <table class="listing">
        <thead>
          <tr>
            <th scope="col">{texts.importColumns.columnInFile}</th>
            <th scope="col">{texts.importColumns.nameInTable}</th>
            <th scope="col">{texts.common.type}</th>
            <th scope="col">{texts.importColumns.pattern}</th>
            <th scope="col">{texts.importColumns.firstValues}</th>
          </tr>
        </thead>
        <tbody>
          <Index each={props.choices.columns}>
            {(column, index) => (
              <ColumnRow
                {...props}
                column={column()}
                trial={props.file.trials?.[index]}
                proposed={props.file.proposal?.columns[index]}
                onChange={(changed) => change(index, changed)}
              />
            )}
          </Index>
        </tbody>
      </table>
    </div>
  );
}

interface RowProps extends TableProps {
  readonly column: ColumnChoice;
  readonly proposed: ProposedColumn | undefined;
  readonly trial: ColumnTrial | undefined;
  readonly onChange: (column: ColumnChoice) => void;
}

function ColumnRow(props: RowProps): JSX.Element {
  const type = (): string | undefined =>
    targetType(props.column, props.choices, props.file.existing);
  return (
    <>
      <tr>
        <th scope="row" class="data">
          <bdi>{props.column.source}</bdi>
        </th>
        <td>
          <input
            class="input data"
            aria-label={fill(texts.importColumns.nameOf, { column: props.column.source })}
            value={props.column.name}
            disabled={props.file.proposal?.asIs}
            onInput={(event) =>
              props.onChange({ ...props.column, name: event.currentTarget.value })
            }
          />
        </td>
        <td>
          <TypeCell {...props} type={type()} />
        </td>
        <td>
          <Show
            when={acceptsPattern(type() ?? '') && !props.file.proposal?.isTyped}
            fallback={<span class="hint">{texts.importColumns.notNeeded}</span>}
          >
            <input
              class="input data"
              aria-label={fill(texts.importColumns.patternOf, { column: props.column.source })}
              placeholder="ISO"
              value={props.column.pattern}
              onInput={(event) =>
                props.onChange({ ...props.column, pattern: event.currentTarget.value })
              }
            />
          </Show>
          <TrialNote {...props} />
        </td>
        <td class="data first-values">
          <bdi>{props.proposed?.values.join(', ')}</bdi>
        </td>
      </tr>
      <NoteRows {...props} />
      <NearRow {...props} />
      <TimesRow {...props} />
    </>
  );
}

/** Shows how many sampled values the import can read with the chosen type and pattern. */
function TrialNote(props: RowProps): JSX.Element {
  const isAsProposed = (): boolean =>
    props.column.type === props.proposed?.type &&
    props.column.pattern === (props.proposed.pattern ?? '');
  const found = (): ColumnTrial => (isAsProposed() ? props.proposed?.trial : props.trial) ?? {};
  const counts = (): Trial | undefined => {
    const { read, of } = found();
    return read === undefined || of === undefined ? undefined : { read, of };
  };
  const text = (): string => {
    const { pattern } = props.column;
    const unit = patternText(pattern) === pattern ? '' : `${patternText(pattern)}: `;
    const known = counts();
    return found().problem ?? (known ? unit + trialText(known) : '');
  };
  const isShort = (): boolean => (counts()?.read ?? 0) < (counts()?.of ?? 0);
  return (
    <Show when={props.column.type !== 'VARCHAR' && text() !== ''}>
      <span
        class="hint trial"
        classList={{ warn: isShort(), error: found().problem !== undefined }}
        role="status"
      >
        <bdi>{text()}</bdi>
      </span>
    </Show>
  );
}

function TypeCell(props: RowProps & { type: string | undefined }): JSX.Element {
  const types = (): readonly string[] => {
    const { type } = props.column;
    return TYPES.some((known) => known === type) ? TYPES : [type, ...TYPES];
  };
  return (
    <Show
      when={!isAppended(props.choices, props.file.existing)}
      fallback={
        <span class={props.type === undefined ? 'hint warn' : 'data'}>
          {props.type ?? texts.importColumns.skipped}
        </span>
      }
    >
      <select
        class="select data"
        aria-label={fill(texts.importColumns.typeOf, { column: props.column.source })}
        onChange={(event) =>
          props.onChange(retyped(props.column, event.currentTarget.value, props.proposed))
        }
      >
        <For each={types()}>
          {(type) => (
            <option value={type} selected={props.column.type === type}>
              {type}
            </option>
          )}
        </For>
      </select>
    </Show>
  );
}

/** Shows warnings about the guessed type of a column, as long as the user keeps this type. */
function NoteRows(props: RowProps): JSX.Element {
  const notes = (): readonly string[] => {
    const isGuess =
      props.column.type === props.proposed?.type && !isAppended(props.choices, props.file.existing);
    return isGuess ? (props.proposed.notes ?? []) : [];
  };
  return (
    <For each={notes()}>
      {(note) => (
        <tr class="near">
          <td colspan="5">
            <Icon name="alert" class="warn" />
            {fillNodes(texts.importColumns.columnNote, {
              column: (
                <b>
                  <bdi>{props.column.name}</bdi>
                </b>
              ),
              note,
            })}
          </td>
        </tr>
      )}
    </For>
  );
}

/**
 * Note on a text column in which nearly all values are numbers or times. A button converts the
 * column.
 */
function NearRow(props: RowProps): JSX.Element {
  const near = (): ProposedColumn['near'] =>
    props.column.type === 'VARCHAR' && !isAppended(props.choices, props.file.existing)
      ? props.proposed?.near
      : undefined;
  return (
    <Show when={near()}>
      {(found) => (
        <tr class="near">
          <td colspan="5">
            <Icon name="alert" class="warn" />
            {fillNodes(texts.importColumns.firstMisfit, {
              misfits: (
                <b>
                  {fillNodes(texts.importColumns.misfits, {
                    count: found().misfits,
                    rows: props.file.proposal?.rows,
                    column: <bdi>{props.column.name}</bdi>,
                    type: found().type,
                  })}
                </b>
              ),
              value: (
                <code>
                  <bdi>{found().first}</bdi>
                </code>
              ),
              row: found().row,
            })}
            <button
              class="button small"
              onClick={() =>
                props.onChange({
                  ...props.column,
                  type: found().type,
                  pattern: found().pattern ?? '',
                  nullTexts: found().nullTexts,
                })
              }
            >
              {fill(texts.importColumns.readAs, {
                type: found().type,
                comma: found().pattern === ',' ? texts.importColumns.decimalComma : '',
                nulls: found().nullTexts
                  ? fill(texts.importColumns.asNull, { texts: found().nullTexts?.join(', ') ?? '' })
                  : '',
              })}
            </button>
          </td>
        </tr>
      )}
    </Show>
  );
}

/** Note on a column that may contain times, with a button for each time format that was tried. */
function TimesRow(props: RowProps): JSX.Element {
  const forms = (): NonNullable<ProposedColumn['forms']> => {
    const isAsProposed =
      props.column.type === props.proposed?.type &&
      !props.proposed.type.startsWith('TIMESTAMP') &&
      !isAppended(props.choices, props.file.existing);
    return isAsProposed ? (props.proposed.forms ?? []) : [];
  };
  return (
    <Show when={forms().length > 0}>
      <tr class="near">
        <td colspan="5">
          <Icon name="alert" class="warn" />
          {fillNodes(texts.importColumns.readAsOther, {
            column: (
              <b>
                {fillNodes(texts.importColumns.mayContainTimes, {
                  column: <bdi>{props.column.name}</bdi>,
                })}
              </b>
            ),
            type: props.column.type,
          })}
          <For each={forms()}>
            {(form) => (
              <button
                class="button small"
                onClick={() =>
                  props.onChange({
                    ...props.column,
                    type: form.type,
                    pattern: form.pattern ?? '',
                  })
                }
              >
                {fill(texts.importColumns.readWithPattern, {
                  pattern: patternText(form.pattern ?? form.type),
                  result: trialText(form),
                })}
              </button>
            )}
          </For>
        </td>
      </tr>
    </Show>
  );
}
