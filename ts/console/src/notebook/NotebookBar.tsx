/** Toolbar of a notebook: run, undo, time range, refresh and layout controls. */
import { createSignal, For, onCleanup, onMount, Show, type JSX } from 'solid-js';
import { savedItems, SavedTools } from '../saved/SavedTools.js';
import { Icon } from '../ui/icons.js';
import { openMenuBelow, type MenuItem } from '../ui/Menu.js';
import { ZoneSwitch } from '../ui/ZoneSwitch.js';
import { exportFile } from './templates.js';
import { LAYOUTS, REFRESH_SECONDS, type Refresh } from '../cells/model.js';
import type { NotebookContext } from './context.js';
import { present } from './presenting.js';
import { RangeChoice } from './RangeChoice.js';
import { openVariables } from './VariableBar.js';
import { IconButton } from '../ui/IconButton.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export function NotebookBar(props: NotebookContext & { host: () => HTMLElement }): JSX.Element {
  const { document: doc } = props;
  return (
    <div
      class="toolbar notebook-bar"
      role="toolbar"
      aria-label={texts.common.notebook}
      data-region="notebook"
    >
      <button
        class="button primary"
        title="Ctrl+Shift+Enter"
        onClick={() => (doc.isRunning() ? doc.stop() : void doc.runFrom())}
      >
        <Icon name={doc.isRunning() ? 'stop' : 'play'} />
        {doc.isRunning() ? texts.notebook.stop : texts.common.runAll}
      </button>
      <IconButton
        icon="undo"
        label={texts.common.undo}
        title={texts.notebook.undoHint}
        disabled={!doc.canUndo()}
        onClick={() => doc.undo()}
      />
      <IconButton
        icon="redo"
        label={texts.notebook.redo}
        title={texts.notebook.redoHint}
        disabled={!doc.canRedo()}
        onClick={() => doc.redo()}
      />
      <RangeChoice {...props} />
      <RefreshChoice {...props} />
      <RefreshStatus {...props} />
      <span class="spring" />
      <SavedTools sync={props.sync} server={props.server} />
      <span class="notebook-modes">
        <LayoutChoice doc={doc} />
        <span class="wide-only">
          <ZoneSwitch />
        </span>
        <FullScreen host={props.host} />
        <button class="button" title={texts.notebook.presentHint} onClick={() => present(true)}>
          <Icon name="chart" />
          {texts.notebook.present}
        </button>
        <IconButton
          icon="more"
          label={texts.notebook.moreNotebookActions}
          aria-haspopup="menu"
          onClick={(event) =>
            openMenuBelow(texts.common.notebook, event.currentTarget, menuOf(props))
          }
        />
      </span>
    </div>
  );
}

function LayoutChoice(props: { doc: NotebookContext['document'] }): JSX.Element {
  return (
    <span class="segmented" role="group" aria-label={texts.common.layout}>
      <For each={LAYOUTS}>
        {(layout) => (
          <button
            aria-pressed={props.doc.notebook().layout === layout ? 'true' : 'false'}
            title={layout === 'list' ? texts.notebook.listHint : texts.notebook.gridHint}
            onClick={() => chooseLayout(props.doc, layout)}
          >
            {layout === 'list' ? texts.notebook.list : texts.common.grid}
          </button>
        )}
      </For>
    </span>
  );
}

/** Changes the layout. Switching to a grid removes an empty first cell. */
function chooseLayout(doc: NotebookContext['document'], layout: (typeof LAYOUTS)[number]): void {
  const [first] = doc.notebook().cells;
  const isEmpty = first?.kind === 'sql' && first.view === 'grid' && first.text.trim() === '';
  const settings = { kind: 'settings', patch: { layout } } as const;
  doc.change(
    isEmpty && layout === 'grid'
      ? { kind: 'all', commands: [settings, { kind: 'remove', ids: [first.id] }] }
      : settings,
  );
}

function menuOf(props: NotebookContext): MenuItem[] {
  return [
    { label: texts.common.variables, run: () => openVariables() },
    { label: texts.notebook.refreshNow, run: () => props.refresher.now() },
    ...savedItems(props.sync),
    { label: texts.notebook.exportToFile, divider: true, run: () => exportFile(props.tab) },
  ];
}

function RefreshChoice(props: NotebookContext): JSX.Element {
  const { document: doc } = props;
  const choose = (value: string): void => {
    const refresh: Refresh = value === 'off' || value === 'changes' ? value : Number(value);
    doc.change({ kind: 'settings', patch: { refresh } });
    // By choosing a refresh option, the user approves running the notebook.
    props.workspace.approveNotebook(props.tab.id);
  };
  const choices: readonly (readonly [Refresh, string])[] = [
    ['off', texts.notebook.noRefresh],
    ['changes', texts.notebook.whenTablesChange],
    ...REFRESH_SECONDS.map(
      (seconds) => [seconds, fill(texts.notebook.everySeconds, { seconds })] as const,
    ),
  ];
  return (
    <select
      class="select"
      aria-label={texts.notebook.refresh}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      <For each={choices}>
        {([value, name]) => (
          <option value={value} selected={doc.notebook().refresh === value}>
            {name}
          </option>
        )}
      </For>
    </select>
  );
}

/** Shows whether the cells are up to date, or when the console will retry. */
export function RefreshStatus(props: NotebookContext): JSX.Element {
  const state = (): ReturnType<NotebookContext['refresher']['state']> => props.refresher.state();
  const clock = (at: Date | undefined): string => at?.toTimeString().slice(0, 8) ?? '–';
  const text = (): string => {
    const now = state();
    switch (now.kind) {
      case 'off':
        return '';
      case 'live':
        return now.at ? fill(texts.notebook.liveAt, { at: clock(now.at) }) : texts.common.live;
      case 'lost':
        return fill(texts.notebook.notResponding, { at: clock(now.retryAt) });
    }
  };
  return (
    <Show when={state().kind !== 'off'}>
      <span class="refresh-state" data-state={state().kind}>
        <Icon
          name={state().kind === 'live' ? 'check' : 'alert'}
          class={state().kind === 'live' ? 'ok' : 'warn'}
        />
        {text()}
      </span>
    </Show>
  );
}

/**
 * Toggles full screen for the whole page, because menus and dialogs are outside the notebook's
 * element.
 */
function FullScreen(props: { host: () => HTMLElement }): JSX.Element {
  const [isFull, setFull] = createSignal(false);
  const listen = (): void => {
    setFull(document.fullscreenElement !== null);
    props.host().classList.toggle('full', isFull());
  };
  onMount(() => document.addEventListener('fullscreenchange', listen));
  onCleanup(() => {
    document.removeEventListener('fullscreenchange', listen);
    if (isFull()) {
      void document.exitFullscreen();
    }
  });
  return (
    <IconButton
      icon="expand"
      label={isFull() ? texts.notebook.exitFullScreen : texts.notebook.fullScreen}
      title={isFull() ? texts.notebook.exitFullScreenHint : texts.notebook.fullScreen}
      aria-pressed={isFull() ? 'true' : 'false'}
      onClick={() =>
        void (isFull() ? document.exitFullscreen() : document.documentElement.requestFullscreen())
      }
    />
  );
}
