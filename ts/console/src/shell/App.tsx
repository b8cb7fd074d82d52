/** The frame of the page: rail, schema, workspace, status; and the keys that work everywhere. */
import { createEffect, createSignal, onCleanup, onMount, Show, type JSX } from 'solid-js';
import type { Session } from '../state/session.js';
import { SchemaPanel } from '../schema/SchemaPanel.js';
import { dismissToast, holdToast, spoken, toast } from './announce.js';
import { HelpDialog } from './HelpDialog.js';
import { Icon, Logo } from './icons.js';
import { handleShortcut } from './shortcuts.js';
import { StatusBar } from './StatusBar.js';
import { nextTheme, setTheme, theme, THEME_NAMES } from './theme.js';
import { WorkspaceView } from './WorkspaceView.js';

export function App(props: { session: Session }): JSX.Element {
  const [help, setHelp] = createSignal(false);
  const [drawer, setDrawer] = createSignal(false);
  const { session } = props;

  onMount(() => {
    onCleanup(session.watch());
    const onKeyDown = (event: KeyboardEvent): void =>
      handleShortcut(event, session, { help: () => setHelp(true) });
    document.addEventListener('keydown', onKeyDown);
    onCleanup(() => document.removeEventListener('keydown', onKeyDown));
  });

  createEffect(() => {
    const name = session.settings()?.preferences['instance_name'];
    document.title = typeof name === 'string' && name !== '' ? `${name} – Tidemark` : 'Tidemark';
  });

  return (
    <div class="app" classList={{ 'drawer-open': drawer() }}>
      <Show when={session.settings()?.config['security.insecure.public'] === true}>
        <div class="insecure" role="alert">
          <Icon name="alert" />
          This server is open to the network without sign-in. Anyone who reaches it can read and
          change its data.
        </div>
      </Show>
      <Rail session={session} drawer={drawer()} setDrawer={setDrawer} help={() => setHelp(true)} />
      <SchemaPanel session={session} onOpened={() => setDrawer(false)} />
      <main class="main">
        <h1 class="visually-hidden">SQL workspace</h1>
        <WorkspaceView session={session} />
      </main>
      <StatusBar session={session} />
      <HelpDialog open={help()} onClose={() => setHelp(false)} />
      <div class="visually-hidden" role="status" aria-live="polite">
        {spoken()}
      </div>
      <Toast />
    </div>
  );
}

function Rail(props: {
  session: Session;
  drawer: boolean;
  setDrawer: (open: boolean) => void;
  help: () => void;
}): JSX.Element {
  const toWorkspace = (event: MouseEvent): void => {
    event.preventDefault();
    props.setDrawer(false);
    props.session.editor?.focus();
  };
  return (
    <nav class="rail" aria-label="Main">
      <span class="logo">
        <Logo />
      </span>
      <ul>
        <li>
          <a
            href="#sql"
            aria-label="SQL workspace"
            title="SQL workspace"
            aria-current="page"
            onClick={toWorkspace}
          >
            <Icon name="sql" />
          </a>
        </li>
        <li class="rail-drawer">
          <button
            aria-label="Tables"
            title="Tables"
            aria-expanded={props.drawer}
            onClick={() => props.setDrawer(!props.drawer)}
          >
            <Icon name="table" />
          </button>
        </li>
      </ul>
      <span class="spring" />
      <ul>
        <li>
          <button
            data-action="theme"
            aria-label={`Theme: ${THEME_NAMES[theme()]}. Switch to ${THEME_NAMES[nextTheme()]}`}
            title={`Theme: ${THEME_NAMES[theme()]}`}
            onClick={() => setTheme(nextTheme())}
          >
            <Icon name="theme" />
          </button>
        </li>
        <li>
          <button aria-label="Shortcuts" title="Shortcuts (?)" onClick={() => props.help()}>
            <Icon name="help" />
          </button>
        </li>
      </ul>
    </nav>
  );
}

function Toast(): JSX.Element {
  return (
    <Show when={toast()}>
      {(shown) => (
        <div
          class="toast"
          onPointerEnter={() => holdToast(true)}
          onPointerLeave={() => holdToast(false)}
          onFocusIn={() => holdToast(true)}
          onFocusOut={() => holdToast(false)}
        >
          <Icon name="check" class="ok" />
          <span>{shown().text}</span>
          <Show when={shown().action}>
            {(action) => (
              <button
                class="button small"
                onClick={() => {
                  action().run();
                  dismissToast();
                }}
              >
                {action().label}
              </button>
            )}
          </Show>
        </div>
      )}
    </Show>
  );
}
