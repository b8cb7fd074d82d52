/**
 * Matrix with a row per object and a column per permission. A table can be expanded to its columns.
 */
import { createMemo, createSignal, For, Show, type JSX } from 'solid-js';
import { SearchField } from '../dialogs/SearchField.js';
import type { ColumnEntry, TableEntry } from '../model/schema.js';
import { Icon } from '../ui/icons.js';
import { applies, rightSets, type RightSet } from './catalogue.js';
import { EVERYWHERE, type GrantTarget } from './model.js';
import { RightButton, type RightsProps } from './RightButton.js';
import type { Schema } from '../state/schema.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export interface MatrixProps extends RightsProps {
  readonly schema: Schema;
}

/**
 * Name of the permission set shown in the matrix. It is kept when the user selects another
 * principal.
 */
const [chosen, setChosen] = createSignal('');

export function RightsMatrix(props: MatrixProps): JSX.Element {
  // Other users can create and drop tables at any time. Each row is reused as long as its table
  // exists, so that an expanded row stays expanded.
  const tables = createMemo<readonly Listed[]>((before) => {
    const now = props.schema.known;
    const known = new Map(before.map((one) => [`${one.kind} ${one.name}`, one]));
    return now.map(({ name, kind }) => known.get(`${kind} ${name}`) ?? { name, kind });
  }, []);
  const [search, setSearch] = createSignal('');
  const sets = createMemo(() => rightSets(props.rights.catalogue));
  const set = (): RightSet => sets().find(({ name }) => name === chosen()) ?? sets()[0] ?? NO_SET;
  const rights = createMemo(() => rightsOf(set()));
  // Hide objects to which no permission of the set applies.
  const shown = createMemo(() =>
    tables().filter(
      ({ name, kind }) =>
        name.toLowerCase().includes(search()) &&
        rights().some((right) => applies(props.rights.catalogue, right, kind)),
    ),
  );
  return (
    <div class="access-matrix">
      <SetChoice sets={sets()} set={set()} />
      <div class="matrix-wrap" role="region" aria-label={texts.permissions.byTable} tabindex="0">
        <table class="listing matrix">
          <Head set={set()} onFilter={setSearch} />
          <tbody>
            <tr>
              <th scope="row">{texts.permissions.allTables}</th>
              <Cells
                {...props}
                columns={rights()}
                target={EVERYWHERE}
                object={texts.permissions.allTables}
                what="all"
              />
            </tr>
            <For each={shown()}>
              {(table) => (
                <Show
                  when={table.kind === 'table'}
                  fallback={
                    <tr>
                      <th scope="row" class="data">
                        <bdi>{table.name}</bdi>
                      </th>
                      <Cells
                        {...props}
                        columns={rights()}
                        target={targetOf(table)}
                        object={table.name}
                        what={table.kind}
                      />
                    </tr>
                  }
                >
                  <TableRows {...props} columns={rights()} table={table} />
                </Show>
              )}
            </For>
          </tbody>
        </table>
      </div>
    </div>
  );
}

function SetChoice(props: { sets: readonly RightSet[]; set: RightSet }): JSX.Element {
  return (
    <label class="access-set">
      <span class="hint">{texts.permissions.onTables}</span>
      <select class="select" onChange={(event) => setChosen(event.currentTarget.value)}>
        <For each={props.sets}>
          {({ name }) => (
            <option value={name} selected={name === props.set.name}>
              {name}
            </option>
          )}
        </For>
      </select>
    </label>
  );
}

function Head(props: { set: RightSet; onFilter: (name: string) => void }): JSX.Element {
  return (
    <thead>
      <tr>
        <td />
        <For each={props.set.groups}>
          {(group) => (
            <th scope="colgroup" colspan={group.rights.length}>
              {group.name}
            </th>
          )}
        </For>
      </tr>
      <tr>
        <th scope="col">
          <SearchField
            placeholder={texts.permissions.object}
            label={texts.permissions.filterLabel}
            search={(text) => props.onFilter(text.trim().toLowerCase())}
          />
        </th>
        <For each={rightsOf(props.set)}>{(right) => <th scope="col">{right}</th>}</For>
      </tr>
    </thead>
  );
}

function rightsOf({ groups }: RightSet): readonly string[] {
  return groups.flatMap(({ rights }) => rights);
}

const NO_SET: RightSet = { name: '', groups: [] };

type Listed = Pick<TableEntry, 'name' | 'kind'>;

function targetOf({ name }: Listed): GrantTarget {
  return { table: name, column: undefined };
}

function TableRows(
  props: MatrixProps & { columns: readonly string[]; table: Listed },
): JSX.Element {
  const [isOpen, setOpen] = createSignal(false);
  const columns = (): readonly ColumnEntry[] => props.schema.columnsOf(props.table.name);
  const toggle = (): void => {
    setOpen(!isOpen());
    void props.schema.open(props.table.name);
  };
  return (
    <>
      <tr>
        <th scope="row" class="data">
          <button
            class="row-link data matrix-table"
            aria-expanded={isOpen()}
            title={fill(texts.permissions.onColumns, { table: props.table.name })}
            onClick={toggle}
          >
            <Icon name={isOpen() ? 'down' : 'chevron'} />
            <bdi>{props.table.name}</bdi>
          </button>
        </th>
        <Cells {...props} target={targetOf(props.table)} object={props.table.name} what="table" />
      </tr>
      <Show when={isOpen()}>
        <For each={columns()}>
          {(column) => (
            <tr class="matrix-column">
              <th scope="row" class="data">
                <bdi>{column.name}</bdi>
              </th>
              <Cells
                {...props}
                target={{ table: props.table.name, column: column.name }}
                object={`${props.table.name}.${column.name}`}
                what="column"
              />
            </tr>
          )}
        </For>
      </Show>
    </>
  );
}

interface CellsProps extends MatrixProps {
  readonly target: GrantTarget;
  /** Permissions shown as columns of the matrix. */
  readonly columns: readonly string[];
  /** Display name of the object. */
  readonly object: string;
  readonly what: Parameters<typeof applies>[2];
}

function Cells(props: CellsProps): JSX.Element {
  return (
    <For each={props.columns}>
      {(permission) => (
        <td>
          <Show
            when={applies(props.rights.catalogue, permission, props.what)}
            fallback={
              <span class="hint" title={texts.permissions.notApplicable}>
                –
              </span>
            }
          >
            <RightButton {...props} permission={permission} />
          </Show>
        </td>
      )}
    </For>
  );
}
