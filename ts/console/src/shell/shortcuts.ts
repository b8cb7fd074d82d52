/** Global shortcuts. They are matched by physical key, independently of the keyboard layout. */
import type { Session } from '../state/session.js';
import type { ResultView } from '../state/tab.js';
import { spot } from '../page/pages.js';
import { editor } from '../state/editor.js';
import { copyLink } from './share.js';

interface Shortcut {
  readonly keys: string;
  readonly does: string;
}

export const SHORTCUTS: readonly Shortcut[] = [
  { keys: 'Ctrl+Enter, F9', does: 'Run the selection or the statement under the cursor' },
  { keys: 'Ctrl+Shift+Enter', does: 'Run all statements in order' },
  { keys: 'Alt+K', does: 'Cancel the running query' },
  { keys: 'F8, Shift+F8', does: 'Next problem, previous problem' },
  { keys: 'Alt+Shift+F', does: 'Format the selection or the tab' },
  { keys: 'Alt+Z', does: 'In the editor: toggle line wrapping' },
  { keys: 'Ctrl+/, Alt+Shift+A', does: 'Toggle line comment, block comment' },
  { keys: 'Ctrl+F, F3, Shift+F3', does: 'In the editor: find and replace, next, previous' },
  { keys: 'Ctrl+K', does: 'Command palette: tables, commands, earlier queries' },
  { keys: 'Alt+L, Alt+Shift+L', does: 'Copy link to the statement, to the tab' },
  { keys: 'Alt+T, Alt+W, Alt+Shift+T', does: 'New tab, close tab, reopen the last closed one' },
  { keys: 'Alt+PgUp, Alt+PgDn', does: 'Previous tab, next tab' },
  { keys: 'Alt+E', does: 'Show query plan' },
  { keys: 'Alt+1 … Alt+4', does: 'Grid, chart, plan, log' },
  { keys: 'F6, Shift+F6', does: 'Next region, previous region' },
  { keys: 'F2', does: 'From the grid to the editor and back' },
  {
    keys: 'Arrows, Home, End, PgUp, PgDn',
    does: 'Move in grid, tree or chart; with Ctrl to the end',
  },
  { keys: 'Shift+Arrows, Ctrl+A', does: 'In the grid: select cells, select all' },
  {
    keys: 'Ctrl+C, Ctrl+Shift+C',
    does: 'Copy cells; copy cells or row with header',
  },
  { keys: 'Enter, Escape', does: 'In the grid: open and close the inspector' },
  { keys: 'Left, Right, Enter', does: 'In the chart: move the crosshair, go to its row' },
  { keys: '/, Ctrl+B', does: 'In the grid: move column to front, reset grid' },
  { keys: 'Shift+F10', does: 'In the grid: column menu' },
  {
    keys: 'Enter, Shift+Enter',
    does: 'In the tree: expand a table or insert a column; preview rows',
  },
  { keys: 'Shift+F10', does: 'In the tree: table menu' },
  { keys: 'Escape, Tab', does: 'Press in sequence to leave the editor' },
  { keys: '+, -, <, >, 0', does: 'In the chart: zoom in and out, move, reset' },
  { keys: 'Ctrl+Z, Ctrl+Shift+Z', does: 'In a notebook, outside text fields: undo, redo' },
  { keys: 'Ctrl+S', does: 'In a notebook: save on the server' },
  { keys: 'Alt+Up, Alt+Down', does: 'In a notebook, outside text fields: move the cell' },
  { keys: 'Backspace, with Shift', does: 'In the chart: previous range, next range' },
  { keys: '?', does: 'Show these shortcuts (when the grid, tree or chart has focus)' },
];

const VIEWS: Readonly<Record<string, ResultView>> = {
  Digit1: 'grid',
  Digit2: 'chart',
  Digit3: 'plan',
  Digit4: 'log',
};

interface Actions {
  readonly help: () => void;
  readonly palette: () => void;
}

export function handleShortcut(event: KeyboardEvent, session: Session, actions: Actions): void {
  if (event.defaultPrevented || document.querySelector('dialog[open]')) {
    return;
  }
  const isPalette = event.code === 'KeyK' && (event.ctrlKey || event.metaKey);
  const isEverywhere = event.code === 'F6' || event.key === '?' || isPalette;
  if (spot().page !== 'sql' && !isEverywhere) {
    return;
  }
  const command = plainKey(event, session, actions) ?? altKey(event, session);
  if (!command) {
    return;
  }
  event.preventDefault();
  command();
}

function plainKey(
  event: KeyboardEvent,
  session: Session,
  actions: Actions,
): (() => void) | undefined {
  if (event.altKey) {
    return undefined;
  }
  const modified = event.ctrlKey || event.metaKey;
  if (modified && event.code === 'Enter') {
    return event.shiftKey
      ? () => void session.statements.runAll()
      : () => void session.statements.run();
  }
  if (modified) {
    return event.code === 'KeyK' && !event.shiftKey ? actions.palette : undefined;
  }
  if (event.code === 'F9') {
    return () => void session.statements.run();
  }
  if (event.code === 'F8') {
    return () => editor()?.goToProblem(event.shiftKey ? -1 : 1);
  }
  if (event.code === 'F6') {
    return () => stepRegion(event.shiftKey ? -1 : 1);
  }
  if (event.code === 'F2') {
    return () => focusRegion('grid');
  }
  if (event.key === '?' && !inText()) {
    return actions.help;
  }
  return undefined;
}

function altKey(event: KeyboardEvent, session: Session): (() => void) | undefined {
  if (!event.altKey || event.ctrlKey || event.metaKey) {
    return undefined;
  }
  const { workspace } = session;
  const view = VIEWS[event.code];
  if (view) {
    return view === 'plan' ? () => session.statements.showPlan() : () => workspace.setView(view);
  }
  switch (event.code) {
    case 'KeyE':
      return () => session.statements.explain();
    case 'KeyK':
      return () => session.statements.cancel();
    case 'KeyF':
      return event.shiftKey ? () => editor()?.format() : undefined;
    case 'KeyL':
      return () => copyLink(workspace, event.shiftKey);
    case 'KeyT':
      if (event.shiftKey) {
        return () => session.tabs.reopen();
      }
      return () => {
        workspace.add();
        editor()?.focus();
      };
    case 'KeyW':
      return () => session.tabs.close(workspace.active());
    case 'PageUp':
      return () => workspace.step(-1);
    case 'PageDown':
      return () => workspace.step(1);
    default:
      return undefined;
  }
}

/** Whether typed characters go into a text field or editor; the editor is inside a shadow root. */
function inText(): boolean {
  const focused = document.activeElement;
  return (
    focused instanceof HTMLInputElement ||
    focused instanceof HTMLTextAreaElement ||
    focused?.shadowRoot != null
  );
}

function regions(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>('[data-region]')].filter(
    (region) => region.getClientRects().length > 0,
  );
}

function stepRegion(step: number): void {
  const all = regions();
  const now = all.findIndex((region) => region.contains(document.activeElement));
  focusIn(all.at((now + step + all.length) % all.length));
}

function focusRegion(name: string): void {
  focusIn(regions().find((region) => region.dataset['region'] === name));
}

function focusIn(region: HTMLElement | undefined): void {
  if (!region) {
    return;
  }
  const editor = region.querySelector<HTMLElement>('.editor-host');
  const inner =
    editor?.shadowRoot?.querySelector<HTMLElement>('.cm-content') ??
    (region.tabIndex >= 0
      ? region
      : region.querySelector<HTMLElement>("[tabindex='0'], button:not(:disabled), input, select"));
  inner?.focus();
}
