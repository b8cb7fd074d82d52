/** What a new server shows: three ways to the first rows, and it follows when they come. */
import { createEffect, createSignal, For, onCleanup, onMount, Show, type JSX } from 'solid-js';
import { ChooseButton } from '../import/ImportPage.js';
import { quoted, type TableEntry } from '../schema/model.js';
import { copy, showToast } from '../shell/announce.js';
import { Icon } from '../shell/icons.js';
import { openPage } from '../shell/pages.js';
import type { Session } from '../state/session.js';
import { DEMO_QUERY, DEMO_TABLES, loadDemo, removeDemo } from './demo.js';
import { snippets } from './snippets.js';

const LOOK_MS = 2000;
const PREVIEW_ROWS = 1000;

export default function StartPage(props: { session: Session }): JSX.Element {
  const { session } = props;
  const [busy, setBusy] = createSignal('');
  onMount(() => {
    const timer = setInterval(() => !document.hidden && void session.schema.refresh(), LOOK_MS);
    onCleanup(() => clearInterval(timer));
  });
  // The first rows of anybody bring their table to the front.
  let known: ReadonlySet<string> | undefined;
  createEffect(() => {
    const filled = filledTables(session);
    const fresh = filled.find(({ name }) => known !== undefined && !known.has(name));
    known = new Set(filled.map(({ name }) => name));
    if (fresh && busy() === '') {
      session.preview(`SELECT * FROM ${quoted(fresh.name)} LIMIT ${PREVIEW_ROWS}`);
    }
  });

  return (
    <section class="page start" aria-labelledby="start-title" data-region="start">
      <div class="start-inner">
        <header>
          <h1 id="start-title">Tidemark is running and ready for data.</h1>
          <p>
            Pick one way to begin. The others stay within reach on the left.{' '}
            <button class="link" onClick={() => openPage('sql')}>
              Write SQL at once
            </button>
          </p>
        </header>
        <div class="start-ways">
          <div class="start-left">
            <section class="dropzone">
              <Icon name="import" />
              <h2>Drop CSV or Parquet files here</h2>
              <p>
                You see the proposed columns and types first. Nothing is written until you confirm.
              </p>
              <ChooseButton
                label="Choose files"
                primary
                onFiles={(files) => {
                  openPage('import');
                  session.setDropped([...files]);
                }}
              />
            </section>
            <Demo session={session} busy={busy()} setBusy={setBusy} />
          </div>
          <Connect />
        </div>
      </div>
    </section>
  );
}

function filledTables(session: Session): TableEntry[] {
  const tables = session.schema.tables();
  const all = tables.state === 'ready' ? tables.value : [];
  return all.filter(({ rows }) => (rows ?? 0) > 0);
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
    showToast({ text: 'The demonstration data is gone' });
  };
  const load = async (): Promise<void> => {
    try {
      await loadDemo((text) => props.setBusy(text));
      await session.schema.refresh();
      session.preview(DEMO_QUERY);
      showToast({
        text: `${rows} rows of demonstration data are there`,
        action: { label: 'Remove them', run: () => void remove() },
      });
    } catch (cause) {
      showToast({ text: cause instanceof Error ? cause.message : String(cause) });
    } finally {
      props.setBusy('');
    }
  };
  return (
    <section class="start-demo">
      <h2>Load demonstration data</h2>
      <p>
        A week of made-up trades and of 40 weather stations: {rows} rows, made in a few seconds and
        removed with one click.
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
        {props.busy || 'Load demonstration data'}
      </button>
    </section>
  );
}

function Connect(): JSX.Element {
  const http = new URL('.', location.href).href.replace(/[#?].*$/, '');
  const all = snippets(http, location.hostname);
  const [client, setClient] = createSignal(0);
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step !== undefined) {
      const next = (client() + step + all.length) % all.length;
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
          <For each={all}>
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
          onClick={() => void copy(all[client()]?.code ?? '', 'The example')}
        >
          <Icon name="copy" />
          Copy
        </button>
      </div>
      <pre
        class="code-block"
        tabindex="0"
        aria-label={`Example for ${all[client()]?.client ?? ''}`}
      >
        {all[client()]?.code}
      </pre>
      <dl class="facts">
        <div>
          <dt>HTTP and console</dt>
          <dd class="data">{location.host}</dd>
        </div>
        <div>
          <dt>PostgreSQL clients</dt>
          <dd class="data">{location.hostname}:8812</dd>
        </div>
      </dl>
      <p class="hint">
        <Icon name="clock" /> This page follows by itself when the first rows come.
      </p>
    </section>
  );
}
