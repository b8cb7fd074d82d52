/**
 * Lays out the console (navigation rail, schema, workspace, status bar) and handles global
 * shortcuts.
 */
import {
  createEffect,
  createMemo,
  createSignal,
  For,
  lazy,
  Match,
  onCleanup,
  onMount,
  Show,
  Suspense,
  Switch,
  type JSX,
} from 'solid-js';
import type { Session } from '../state/session.js';
import { SchemaPanel } from '../schema/SchemaPanel.js';
import {
  dismissToast,
  pinToast,
  spoken,
  toast,
  type Toast as ShownToast,
} from '../page/notices.js';
import { ConfirmDialog } from '../dialogs/ConfirmDialog.js';
import { Icon, Logo, type IconName } from '../ui/icons.js';
import { MenuLayer } from '../ui/Menu.js';
import { Page } from './Page.js';
import { addressOf, openFirst, openPage, route, type PageName } from '../page/pages.js';
import { takeDrops } from './drops.js';
import { handleShortcut } from './shortcuts.js';
import { StatusBar } from './StatusBar.js';
import { nextTheme, setTheme, theme, THEME_NAMES } from '../ui/theme.js';
import { WorkspaceView } from './WorkspaceView.js';
import { editor } from '../state/editor.js';
import { importing } from '../page/imports.js';
import { watchServer } from '../state/watch.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

const HelpDialog = lazy(() => import('./HelpDialog.js'));
const Palette = lazy(() => import('./Palette.js'));

export function App(props: { session: Session }): JSX.Element {
  const [help, setHelp] = createSignal(false);
  const [palette, setPalette] = createSignal(false);
  const [drawer, setDrawer] = createSignal(false);
  const [dropping, setDropping] = createSignal(false);
  const { session } = props;

  onMount(() => {
    onCleanup(watchServer(session));
    const onKeyDown = (event: KeyboardEvent): void =>
      handleShortcut(event, session, {
        help: () => setHelp(true),
        palette: () => setPalette(true),
      });
    document.addEventListener('keydown', onKeyDown);
    onCleanup(() => document.removeEventListener('keydown', onKeyDown));
    onCleanup(takeDrops(setDropping));
  });

  knowUsers(session);
  nameWindow(session);
  welcome(session);

  return (
    <div
      class="app"
      classList={{
        'drawer-open': drawer(),
        dropping: dropping(),
        // On the access page, the list of users replaces the schema panel.
        'without-side': route().page === 'access',
      }}
    >
      <OpenServer session={session} />
      <Rail session={session} drawer={drawer()} setDrawer={setDrawer} help={() => setHelp(true)} />
      <SchemaPanel session={session} onOpened={() => setDrawer(false)} />
      <main class="main">
        {/*
         * The workspace stays mounted while hidden, to keep results, scroll positions and undo
         * history.
         */}
        <div class="workspace-page" hidden={route().page !== 'sql'}>
          <h1 class="visually-hidden">{texts.app.sqlWorkspace}</h1>
          <WorkspaceView session={session} palette={() => setPalette(true)} />
        </div>
        <Page session={session} />
      </main>
      <StatusBar session={session} />
      <MenuLayer />
      <ConfirmDialog />
      <Suspense>
        <Show when={palette()}>
          <Palette session={session} help={() => setHelp(true)} onClose={() => setPalette(false)} />
        </Show>
        <Show when={help()}>
          <HelpDialog onClose={() => setHelp(false)} />
        </Show>
      </Suspense>
      <div class="visually-hidden" role="status" aria-live="polite">
        {spoken()}
      </div>
      <Toast />
    </div>
  );
}

/**
 * Opens the start page if there are neither tables nor drafts, unless a link names another page.
 */
function welcome(session: Session): void {
  createEffect(() => {
    if (isEmpty(session) && session.workspace.isUntouched && !route().isNamed) {
      openFirst('start');
    }
  });
}

/** Shows the server's name in the window's title. */
function nameWindow(session: Session): void {
  createEffect(() => {
    const name = session.server.settings()?.preferences['instance_name'];
    document.title = typeof name === 'string' && name !== '' ? `${name} – Tidemark` : 'Tidemark';
  });
}

/** After each sign-in, checks whether the user may list other users. */
function knowUsers(session: Session): void {
  const isSignedIn = createMemo(
    () => session.server.hasUsers && session.schema.tables().state === 'ready',
  );
  createEffect(() => isSignedIn() && void session.server.requestUsers());
}

/** Warns that anyone on the network can use this server. */
function OpenServer(props: { session: Session }): JSX.Element {
  return (
    <Show when={props.session.server.settings()?.config['security.insecure.public'] === true}>
      <div class="insecure" role="alert">
        <Icon name="alert" />
        {texts.app.openToNetwork}
      </div>
    </Show>
  );
}

function isEmpty(session: Session): boolean {
  const tables = session.schema.tables();
  return tables.state === 'ready' && tables.value.length === 0;
}

interface Entry {
  readonly page: PageName;
  readonly name: string;
  readonly icon: IconName;
}

const ENTRIES: readonly Entry[] = [
  { page: 'start', name: texts.app.getStarted, icon: 'start' },
  { page: 'sql', name: texts.app.sqlWorkspace, icon: 'sql' },
  { page: 'tables', name: texts.common.tablesAndIngestion, icon: 'tables' },
  { page: 'import', name: texts.app.import, icon: 'import' },
  { page: 'queries', name: texts.common.runningQueries, icon: 'queries' },
  { page: 'notebooks', name: texts.common.notebooks, icon: 'notebook' },
  { page: 'access', name: texts.common.usersAndPermissions, icon: 'access' },
];

function Rail(props: {
  session: Session;
  drawer: boolean;
  setDrawer: (open: boolean) => void;
  help: () => void;
}): JSX.Element {
  const open = (event: MouseEvent, page: PageName): void => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) {
      return;
    }
    event.preventDefault();
    props.setDrawer(false);
    openPage(page);
    if (page === 'sql') {
      editor()?.focus();
    }
  };
  return (
    <nav class="rail" aria-label={texts.app.main}>
      <span class="logo">
        <Logo />
      </span>
      <ul>
        <For each={ENTRIES.filter((entry) => isOffered(entry, props.session))}>
          {(entry) => (
            <li>
              <a
                href={addressOf(entry.page)}
                aria-label={entryName(entry, props.session)}
                title={entryName(entry, props.session)}
                aria-current={route().page === entry.page ? 'page' : undefined}
                onClick={(event) => open(event, entry.page)}
              >
                <Icon name={entry.icon} />
                <Show when={entry.page === 'import' && importing()}>
                  <Icon name="running" class="spin rail-mark" />
                </Show>
                <Show when={entry.page === 'queries' && props.session.activity.count > 0}>
                  <span class="count-badge">{props.session.activity.count}</span>
                </Show>
              </a>
            </li>
          )}
        </For>
        <li class="rail-drawer">
          <button
            aria-label={texts.common.schema}
            title={texts.common.schema}
            aria-expanded={props.drawer}
            onClick={() => props.setDrawer(!props.drawer)}
          >
            <Icon name="table" />
          </button>
        </li>
      </ul>
      <span class="spring" />
      <PageButtons help={props.help} />
    </nav>
  );
}

/** Buttons that are available on every page. */
function PageButtons(props: { help: () => void }): JSX.Element {
  return (
    <ul>
      <li>
        <button
          data-action="theme"
          aria-label={fill(texts.app.switchTheme, {
            theme: THEME_NAMES[theme()],
            next: THEME_NAMES[nextTheme()],
          })}
          title={fill(texts.app.theme, { theme: THEME_NAMES[theme()] })}
          onClick={() => setTheme(nextTheme())}
        >
          <Icon name="theme" />
        </button>
      </li>
      <li>
        <button
          aria-label={texts.common.shortcuts}
          title={texts.app.shortcutsHint}
          onClick={() => props.help()}
        >
          <Icon name="help" />
        </button>
      </li>
    </ul>
  );
}

/**
 * True if the navigation rail shows a page. The start page is listed only while it is active or no
 * tables exist.
 */
function isOffered({ page }: Entry, session: Session): boolean {
  if (page === 'access') {
    return session.server.listsUsers();
  }
  if (page === 'notebooks') {
    return session.server.storesNotebooks;
  }
  return page !== 'start' || route().page === 'start' || isEmpty(session);
}

function entryName(entry: Entry, session: Session): string {
  const { count } = session.activity;
  return entry.page === 'queries' && count > 0 ? `${entry.name}, ${count}` : entry.name;
}

function Toast(): JSX.Element {
  return (
    <Show when={toast()}>
      {(shown) => (
        <div
          class="toast"
          onPointerEnter={() => pinToast(true)}
          onPointerLeave={() => pinToast(false)}
          onFocusIn={() => pinToast(true)}
          onFocusOut={() => pinToast(false)}
        >
          <ToastIcon state={shown().state} />
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
          <Show when={shown().state === 'failed'}>
            <button class="icon-button" aria-label={texts.app.dismiss} onClick={dismissToast}>
              <Icon name="close" />
            </button>
          </Show>
        </div>
      )}
    </Show>
  );
}

function ToastIcon(props: { state: ShownToast['state'] }): JSX.Element {
  return (
    <Switch fallback={<Icon name="check" class="ok" />}>
      <Match when={props.state === 'failed'}>
        <Icon name="alert" class="error" />
      </Match>
      <Match when={props.state === 'running'}>
        <Icon name="running" class="spin accent" />
      </Match>
    </Switch>
  );
}
