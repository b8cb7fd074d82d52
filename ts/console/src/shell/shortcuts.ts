/** Global shortcuts. Most are matched by physical key, independently of the keyboard layout. */
import type { Session } from '../state/session.js';
import type { ResultView } from '../state/tab.js';
import { route } from '../page/pages.js';
import { editor } from '../state/editor.js';
import { copyLink } from './share.js';

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
  if (route().page !== 'sql' && !isEverywhere) {
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

/** True if typed characters go to a text field or to an editor, which is inside a shadow root. */
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
