/**
 * Start page of an empty server. It offers three ways to insert the first rows, and opens their
 * table when the rows arrive.
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
import { connectionDataOf } from './connection-data.js';
import { snippets, type ConnectionData, type Snippet } from './snippets.js';
import { dropped } from '../page/imports.js';
import { fill, fillNodes } from '../fill.js';
import { texts } from '../texts.js';

const POLL_MS = 2000;
const PREVIEW_ROWS = 1000;

export default function StartPage(props: { session: Session }): JSX.Element {
  const { session } = props;
  const [busy, setBusy] = createSignal('');
  onMount(() => {
    const timer = setInterval(() => !document.hidden && void session.schema.refresh(), POLL_MS);
    onCleanup(() => clearInterval(timer));
  });
  // Opens the table into which any client inserts the first rows.
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
          <h1 id="start-title">{texts.start.title}</h1>
          <p>
            {fillNodes(texts.start.hint, {
              link: (
                <button class="link" onClick={() => openPage('sql')}>
                  {texts.start.goToEditor}
                </button>
              ),
            })}
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
                <h2>{texts.common.dropFiles}</h2>
                <p>{texts.common.dropFilesHint}</p>
                <ChooseButton
                  label={texts.common.chooseFiles}
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

/** Returns the tables that contain rows; `undefined` until the tables are loaded. */
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
    showToast({ text: texts.start.demoDataRemoved });
  };
  const load = async (): Promise<void> => {
    try {
      await loadDemo((text) => props.setBusy(text));
      await session.schema.refresh();
      session.statements.preview(DEMO_QUERY);
      showToast({
        text: fill(texts.start.demoDataLoaded, { rows }),
        action: { label: texts.start.remove, run: () => void remove() },
      });
    } catch (cause) {
      showFailure(cause);
    } finally {
      props.setBusy('');
    }
  };
  return (
    <section class="start-demo">
      <h2>{texts.start.loadDemoData}</h2>
      <p>{fill(texts.start.demoDataHint, { rows })}</p>
      <button
        class="button"
        data-action="demo"
        disabled={props.busy !== ''}
        onClick={() => void load()}
      >
        <Show when={props.busy !== ''}>
          <Icon name="running" class="spin" />
        </Show>
        {props.busy || texts.start.loadDemoData}
      </button>
    </section>
  );
}

function Connect(props: { session: Session }): JSX.Element {
  const [connection, setConnection] = createSignal<ConnectionData>();
  const known = createMemo(() => props.session.server.settings(), undefined, {
    equals: (before, now) => JSON.stringify(before?.config) === JSON.stringify(now?.config),
  });
  createEffect(() => {
    const settings = known();
    let isCurrent = true;
    onCleanup(() => (isCurrent = false));
    if (settings) {
      void connectionDataOf(settings, signIn()).then((found) => isCurrent && setConnection(found));
    }
  });
  return <Show when={connection()}>{(shown) => <Snippets connection={shown()} />}</Show>;
}

function Snippets(props: { connection: ConnectionData }): JSX.Element {
  const all = createMemo(() => snippets(props.connection));
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
      <h2>{texts.start.connectAClient}</h2>
      <div class="start-clients">
        <div
          class="small-tabs"
          role="tablist"
          aria-label={texts.start.client}
          onKeyDown={onKeyDown}
        >
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
        <button
          class="button small"
          onClick={() => void copy(shown()?.code ?? '', texts.start.example)}
        >
          <Icon name="copy" />
          {texts.common.copy}
        </button>
      </div>
      <pre
        class="code-block"
        tabindex="0"
        aria-label={fill(texts.start.exampleFor, { client: shown()?.client ?? '' })}
      >
        {shown()?.code}
      </pre>
      <Addresses connection={props.connection} />
      <p class="hint">
        <Icon name="clock" /> {texts.start.waiting}
      </p>
    </section>
  );
}

function Addresses(props: { connection: ConnectionData }): JSX.Element {
  return (
    <>
      <dl class="facts">
        <div>
          <dt>{texts.start.httpAndConsole}</dt>
          <dd class="data">{location.host}</dd>
        </div>
        <div>
          <dt>{texts.common.postgresqlClients}</dt>
          <dd class="data">
            <Show when={props.connection.endpoint} fallback={texts.start.disabled}>
              {(endpoint) =>
                `${endpoint().host}:${endpoint().port}${endpoint().isEncrypted ? ', TLS' : ''}`
              }
            </Show>
          </dd>
        </div>
      </dl>
      <Show when={props.connection.endpoint && !props.connection.wire}>
        <p class="hint">{texts.start.noTokens}</p>
      </Show>
    </>
  );
}
