/**
 * Start page of a new server, with three ways to insert the first rows. It opens their table when
 * they arrive.
 */
import {
  createEffect,
  createMemo,
  createSignal,
  For,
  onCleanup,
  onMount,
  Show,
  type JSX,
} from 'solid-js';
import { ChooseButton, ReadOnlyNote } from '../import/ImportPage.js';
import type { TableEntry } from '../model/schema.js';
import { quoted } from '../sql/names.js';
import { showFailure, showToast } from '../page/notices.js';
import { copy } from '../ui/clipboard.js';
import { Icon } from '../ui/icons.js';
import { openPage } from '../page/pages.js';
import { signIn } from '../signin/state.js';
import type { Session } from '../state/session.js';
import { DEMO_QUERY, DEMO_TABLES, loadDemo, removeDemo } from './demo.js';
import { doorsOf } from './doors.js';
import { snippets, type Doors, type Snippet } from './snippets.js';
import { dropped } from '../page/imports.js';

const LOOK_MS = 2000;
const PREVIEW_ROWS = 1000;

export default function StartPage(props: { session: Session }): JSX.Element {
  const { session } = props;
  const [busy, setBusy] = createSignal('');
  onMount(() => {
    const timer = setInterval(() => !document.hidden && void session.schema.refresh(), LOOK_MS);
    onCleanup(() => clearInterval(timer));
  });
  // When any client inserts the first rows, opens their table.
  let known: ReadonlySet<string> | undefined;
  createEffect(() => {
    const filled = filledTables(session);
    if (filled === undefined) {
      return;
    }
    const fresh = filled.find(({ name }) => known !== undefined && !known.has(name));
    known = new Set(filled.map(({ name }) => name));
    if (fresh && busy() === '') {
      session.statements.preview(`SELECT * FROM ${quoted(fresh.name)} LIMIT ${PREVIEW_ROWS}`);
    }
  });

  return (
    <section class="page start" aria-labelledby="start-title" data-region="start">
      <div class="start-inner">
        <header>
          <h1 id="start-title">Tidemark is running and ready for data.</h1>
          <p>
            Choose how to begin. You can return to this page from the bar on the left.{' '}
            <button class="link" onClick={() => openPage('sql')}>
              Go to the SQL editor
            </button>
          </p>
        </header>
        <div class="start-ways">
          <Show
            when={!session.server.isReadOnly}
            fallback={
              <div class="start-left">
                <ReadOnlyNote />
              </div>
            }
          >
            <div class="start-left">
              <section class="dropzone">
                <Icon name="import" />
                <h2>Drop CSV or Parquet files here</h2>
                <p>
                  You see the proposed columns and types first. Nothing is written until you
                  confirm.
                </p>
                <ChooseButton
                  label="Choose files"
                  primary
                  onFiles={(files) => {
                    openPage('import');
                    dropped.set([...files]);
                  }}
                />
              </section>
              <Demo session={session} busy={busy()} setBusy={setBusy} />
            </div>
          </Show>
          <Connect session={session} />
        </div>
      </div>
    </section>
  );
}

/** `undefined` until the tables are known. */
function filledTables(session: Session): TableEntry[] | undefined {
  const tables = session.schema.tables();
  return tables.state === 'ready' ? tables.value.filter(({ rows = 0 }) => rows > 0) : undefined;
}

function Demo(props: {
  session: Session;
  busy: string;
  setBusy: (text: string) => void;
}): JSX.Element {
  const { session } = props;
  const rows = DEMO_TABLES.reduce((sum, table) => sum + table.rows, 0).toLocaleString('en');
  const remove = async (): Promise<void> => {
    await removeDemo();
    await session.schema.refresh();
    showToast({ text: 'Demo data removed' });
  };
  const load = async (): Promise<void> => {
    try {
      await loadDemo((text) => props.setBusy(text));
      await session.schema.refresh();
      session.statements.preview(DEMO_QUERY);
      showToast({
        text: `Loaded ${rows} rows of demo data`,
        action: { label: 'Remove', run: () => void remove() },
      });
    } catch (cause) {
      showFailure(cause);
    } finally {
      props.setBusy('');
    }
  };
  return (
    <section class="start-demo">
      <h2>Load demo data</h2>
      <p>
        A week of generated trades and readings of 40 weather stations: {rows} rows, generated in a
        few seconds and removed with one click.
      </p>
      <button
        class="button"
        data-action="demo"
        disabled={props.busy !== ''}
        onClick={() => void load()}
      >
        <Show when={props.busy !== ''}>
          <Icon name="running" class="spin" />
        </Show>
        {props.busy || 'Load demo data'}
      </button>
    </section>
  );
}

function Connect(props: { session: Session }): JSX.Element {
  const [doors, setDoors] = createSignal<Doors>();
  const known = createMemo(() => props.session.server.settings(), undefined, {
    equals: (before, now) => JSON.stringify(before?.config) === JSON.stringify(now?.config),
  });
  createEffect(() => {
    const settings = known();
    let isCurrent = true;
    onCleanup(() => (isCurrent = false));
    if (settings) {
      void doorsOf(settings, signIn()).then((found) => isCurrent && setDoors(found));
    }
  });
  return <Show when={doors()}>{(shown) => <Snippets doors={shown()} />}</Show>;
}

function Snippets(props: { doors: Doors }): JSX.Element {
  const all = createMemo(() => snippets(props.doors));
  const [chosen, setClient] = createSignal(0);
  const client = (): number => Math.min(chosen(), all().length - 1);
  const shown = (): Snippet | undefined => all()[client()];
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step !== undefined) {
      const next = (client() + step + all().length) % all().length;
      setClient(next);
      document.getElementById(`client-${next}`)?.focus();
      event.preventDefault();
    }
  };
  return (
    <section class="start-connect">
      <h2>Connect a client</h2>
      <div class="start-clients">
        <div class="small-tabs" role="tablist" aria-label="Client" onKeyDown={onKeyDown}>
          <For each={all()}>
            {(snippet, index) => (
              <button
                id={`client-${index()}`}
                role="tab"
                aria-selected={client() === index() ? 'true' : 'false'}
                tabindex={client() === index() ? 0 : -1}
                onClick={() => setClient(index())}
              >
                {snippet.client}
              </button>
            )}
          </For>
        </div>
        <button class="button small" onClick={() => void copy(shown()?.code ?? '', 'Example')}>
          <Icon name="copy" />
          Copy
        </button>
      </div>
      <pre class="code-block" tabindex="0" aria-label={`Example for ${shown()?.client ?? ''}`}>
        {shown()?.code}
      </pre>
      <dl class="facts">
        <div>
          <dt>HTTP and console</dt>
          <dd class="data">{location.host}</dd>
        </div>
        <div>
          <dt>PostgreSQL clients</dt>
          <dd class="data">
            <Show when={props.doors.place} fallback="disabled">
              {(place) => `${place().host}:${place().port}${place().isEncrypted ? ', TLS' : ''}`}
            </Show>
          </dd>
        </div>
      </dl>
      <Show when={props.doors.place && !props.doors.wire}>
        <p class="hint">
          PostgreSQL clients connect as database users: the server accepts no tokens on this
          interface.
        </p>
      </Show>
      <p class="hint">
        <Icon name="clock" /> This page opens the table when the first rows arrive.
      </p>
    </section>
  );
}
