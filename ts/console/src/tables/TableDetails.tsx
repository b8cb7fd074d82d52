/** Shows the details of a table: columns, partitions, DDL statement and ingestion. */
import {
  createEffect,
  createMemo,
  createSignal,
  For,
  lazy,
  Match,
  on,
  Show,
  Suspense,
  Switch,
  type JSX,
} from 'solid-js';
import { EXPORT_FORMATS, FORMAT_NAMES, query } from '../api/client.js';
import { grouped, bytesText, timestampText } from '../model/format.js';
import type { TableKind } from '../model/schema.js';
import { literal, quoted } from '../sql/names.js';
import { copy } from '../ui/clipboard.js';
import { download } from '../ui/files.js';
import { Icon } from '../ui/icons.js';
import { openMenuBelow } from '../ui/Menu.js';
import { createStatement } from '../state/schema.js';
import { settle, type Loading, failureOf, readyOf } from '../state/loading.js';
import type { Session } from '../state/session.js';
import {
  columnFacts,
  partitionsOf,
  type ColumnFacts,
  type Partition,
  type TableFacts,
} from './model.js';
import { sparkline } from '../model/rates.js';
import { Listing } from '../ui/Listing.js';
import { fill, fillNodes } from '../fill.js';
import { texts } from '../texts.js';

const PREVIEW_ROWS = 1000;
const TABS = ['columns', 'summary', 'partitions', 'ddl', 'ingestion'] as const;
type TabName = 'view' | (typeof TABS)[number];

const TAB_NAMES: Readonly<Record<TabName, string>> = {
  view: texts.common.view,
  columns: texts.common.columns,
  summary: texts.tableDetails.summary,
  partitions: texts.common.partitions,
  ddl: 'DDL',
  ingestion: texts.tableDetails.ingestion,
};

const TableSummary = lazy(() => import('../profile/TableSummary.js'));
const ViewPane = lazy(() => import('../views/ViewPane.js'));

interface Details {
  readonly columns: readonly ColumnFacts[];
  readonly partitions: readonly Partition[];
  readonly statement: string;
}

interface DetailsProps {
  readonly session: Session;
  readonly facts: TableFacts;
  readonly rate: number | undefined;
  readonly history: readonly number[];
}

export function TableDetails(props: DetailsProps): JSX.Element {
  const [details, setDetails] = createSignal<Loading<Details>>({ state: 'loading' });
  const [chosen, setTab] = createSignal<TabName>('view');
  const view = createMemo(() => props.session.schema.entryOf(props.facts.name)?.view);
  const tabs = (): readonly TabName[] => (view() ? ['view', ...TABS] : TABS);
  const tab = (): TabName => (chosen() === 'view' && !view() ? 'columns' : chosen());
  createEffect(
    on(
      () => [props.facts.name, props.facts.lastTransaction] as const,
      ([name], before) => {
        if (before?.[0] !== name) {
          setDetails({ state: 'loading' });
        }
        void settle(() => readDetails(name, props.facts.kind)).then((read) => {
          if (props.facts.name === name) {
            setDetails(read);
          }
        });
      },
    ),
  );
  const failure = (): string => failureOf(details());
  const ready = (): Details | undefined => readyOf(details());

  return (
    <article class="details" aria-labelledby="details-title" data-region="details">
      <DetailsHead {...props} statement={ready()?.statement} />
      <Facts facts={props.facts} />
      <TabButtons tabs={tabs()} tab={tab()} onPick={setTab} />
      <div class="details-body" role="tabpanel" aria-label={TAB_NAMES[tab()]} tabindex="0">
        <Switch>
          <Match when={tab() === 'view' && view()}>
            {(facts) => (
              <Suspense>
                <ViewPane session={props.session} name={props.facts.name} view={facts()} />
              </Suspense>
            )}
          </Match>
          <Match when={tab() === 'ingestion'}>
            <Ingestion {...props} />
          </Match>
          <Match when={failure()}>
            <p class="error">{failure()}</p>
          </Match>
          <Match when={tab() === 'columns' && ready()}>
            {(shown) => <Columns columns={shown().columns} />}
          </Match>
          <Match when={tab() === 'summary' && ready()}>
            {(shown) => <Summary table={props.facts.name} columns={shown().columns} />}
          </Match>
          <Match when={tab() === 'partitions' && ready()}>
            {(shown) => <Partitions partitions={shown().partitions} />}
          </Match>
          <Match when={tab() === 'ddl' && ready()}>
            {(shown) => <pre class="code-block">{shown().statement}</pre>}
          </Match>
        </Switch>
      </div>
    </article>
  );
}

function Summary(props: { table: string; columns: readonly ColumnFacts[] }): JSX.Element {
  return (
    <Suspense>
      <TableSummary {...props} />
    </Suspense>
  );
}

async function readDetails(name: string, kind: TableKind): Promise<Details> {
  const [columns, partitions, statement] = await Promise.all([
    query(`SHOW COLUMNS FROM ${quoted(name)}`),
    query(`SELECT * FROM table_partitions(${literal(name)})`, { maxRows: 100_000 }),
    createStatement(name, kind),
  ]);
  return {
    columns: columnFacts(columns),
    partitions: partitionsOf(partitions),
    statement,
  };
}

function DetailsHead(props: DetailsProps & { statement: string | undefined }): JSX.Element {
  const all = (): string => `SELECT * FROM ${quoted(props.facts.name)}`;
  return (
    <header class="details-head">
      <h2 id="details-title">
        <bdi class="data">{props.facts.name}</bdi>
      </h2>
      <div class="details-actions">
        <button
          class="button small"
          onClick={() => props.session.statements.preview(`${all()} LIMIT ${PREVIEW_ROWS}`)}
        >
          <Icon name="play" />
          {texts.tableDetails.preview}
        </button>
        <button class="button small" onClick={() => props.session.tabs.follow(props.facts.name)}>
          <Icon name="follow" />
          {texts.common.follow}
        </button>
        <button
          class="button small"
          disabled={props.statement === undefined}
          onClick={() => void copy(props.statement ?? '', 'DDL')}
        >
          <Icon name="copy" />
          {texts.common.copyDdl}
        </button>
        <button
          class="button small"
          aria-haspopup="menu"
          onClick={(event) =>
            openMenuBelow(
              texts.common.export,
              event.currentTarget,
              EXPORT_FORMATS.map((format) => ({
                label: fill(texts.common.allRowsAs, { format: FORMAT_NAMES[format] }),
                run: () => void download(props.facts.name, all(), format),
              })),
            )
          }
        >
          <Icon name="export" />
          {texts.common.export}
          <Icon name="down" />
        </button>
      </div>
    </header>
  );
}

function Facts(props: { facts: TableFacts }): JSX.Element {
  const facts = (): readonly (readonly [string, string])[] => {
    const { facts } = props;
    return [
      [texts.common.rows, facts.rows === undefined ? '–' : grouped(String(facts.rows))],
      [texts.common.onDisk, facts.bytes === undefined ? '–' : bytesText(facts.bytes)],
      [texts.common.timeColumn, facts.timestamp ?? texts.common.none],
      [
        texts.common.partitions,
        fill(texts.tableDetails.partitionsBy, {
          count: facts.partitions ?? 0,
          unit: (facts.partitionBy ?? texts.common.none).toLowerCase(),
        }),
      ],
      [texts.tableDetails.oldestRowUtc, timestampText(facts.oldest)],
      [texts.common.newestRowUtc, timestampText(facts.newest)],
      [
        texts.tableDetails.retention,
        facts.ttl === undefined ? texts.common.none : facts.ttl.toLowerCase(),
      ],
      [
        texts.tableDetails.duplicates,
        facts.isDeduplicated ? texts.tableDetails.replacedByKey : texts.tableDetails.kept,
      ],
    ];
  };
  return (
    <dl class="facts">
      <For each={facts()}>
        {([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd class="data">
              <bdi>{value}</bdi>
            </dd>
          </div>
        )}
      </For>
    </dl>
  );
}

function TabButtons(props: {
  tabs: readonly TabName[];
  tab: TabName;
  onPick: (tab: TabName) => void;
}): JSX.Element {
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined) {
      return;
    }
    const { tabs, tab } = props;
    const next = tabs.at((tabs.indexOf(tab) + step) % tabs.length) ?? 'columns';
    props.onPick(next);
    document.getElementById(`details-${next}`)?.focus();
    event.preventDefault();
  };
  return (
    <div
      class="small-tabs"
      role="tablist"
      aria-label={texts.tableDetails.label}
      onKeyDown={onKeyDown}
    >
      <For each={props.tabs}>
        {(name) => (
          <button
            id={`details-${name}`}
            role="tab"
            aria-selected={props.tab === name ? 'true' : 'false'}
            tabindex={props.tab === name ? 0 : -1}
            onClick={() => props.onPick(name)}
          >
            {TAB_NAMES[name]}
          </button>
        )}
      </For>
    </div>
  );
}

function Columns(props: { columns: readonly ColumnFacts[] }): JSX.Element {
  return (
    <Listing
      heads={[[texts.common.column], [texts.common.type], [texts.tableDetails.notes]]}
      rows={props.columns}
    >
      {(column) => (
        <tr>
          <th scope="row" class="data">
            <bdi>{column.name}</bdi>
          </th>
          <td class="data">{column.type}</td>
          <td>
            <Show when={column.isDesignated}>
              <span class="badge accent">{texts.common.time}</span>{' '}
            </Show>
            <span class="hint">{columnNotes(column)}</span>
          </td>
        </tr>
      )}
    </Listing>
  );
}

function columnNotes(column: ColumnFacts): string {
  const notes: string[] = [];
  if (column.symbols !== undefined) {
    notes.push(
      fill(texts.tableDetails.distinctSymbols, { count: grouped(String(column.symbols)) }),
    );
  }
  if (column.isIndexed) {
    notes.push(texts.tableDetails.indexed);
  }
  if (column.isKey) {
    notes.push(texts.tableDetails.deduplicationKey);
  }
  return notes.join(', ');
}

function Partitions(props: { partitions: readonly Partition[] }): JSX.Element {
  return (
    <Listing
      heads={[
        [texts.tableDetails.partition],
        [texts.common.rows, 'num'],
        [texts.common.onDisk, 'num'],
        [texts.tableDetails.fromUtc],
        [texts.tableDetails.toUtc],
        [texts.tableDetails.format],
      ]}
      rows={props.partitions}
    >
      {(partition) => (
        <tr>
          <th scope="row" class="data">
            {partition.name}
          </th>
          <td class="data num">{grouped(String(partition.rows))}</td>
          <td class="data num">{bytesText(partition.bytes)}</td>
          <td class="data">{timestampText(partition.oldest)}</td>
          <td class="data">{timestampText(partition.newest)}</td>
          <td>
            {partition.isDetached
              ? texts.tableDetails.detached
              : partition.isParquet
                ? 'Parquet'
                : texts.tableDetails.native}
          </td>
        </tr>
      )}
    </Listing>
  );
}

function writesText({ kind, isSuspended }: TableFacts): string {
  if (kind !== 'table') {
    return texts.tableDetails.byQueryOnly;
  }
  return isSuspended ? texts.common.suspended : texts.tableDetails.accepted;
}

const SPARK_WIDTH = 320;
const SPARK_HEIGHT = 48;

function Ingestion(props: DetailsProps): JSX.Element {
  return (
    <div class="ingestion">
      <p>
        {fillNodes(texts.tableDetails.rate, {
          count: (
            <b class="big-number data">
              {props.rate === undefined ? '–' : grouped(String(Math.round(props.rate)))}
            </b>
          ),
        })}
      </p>
      <svg
        class="spark"
        viewBox={`0 -2 ${SPARK_WIDTH} ${SPARK_HEIGHT + 4}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={texts.tableDetails.rateHistory}
      >
        <path d={sparkline(props.history, SPARK_WIDTH, SPARK_HEIGHT)} />
      </svg>
      <dl class="facts">
        <div>
          <dt>{texts.tableDetails.lastTransaction}</dt>
          <dd class="data">{props.facts.lastTransaction ?? '–'}</dd>
        </div>
        <div>
          <dt>{texts.common.newestRowUtc}</dt>
          <dd class="data">{timestampText(props.facts.newest)}</dd>
        </div>
        <div>
          <dt>{texts.tableDetails.writes}</dt>
          <dd>{writesText(props.facts)}</dd>
        </div>
      </dl>
    </div>
  );
}
