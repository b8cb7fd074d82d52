/** One line for screen readers, and the toasts that all users see. */
import { createSignal } from 'solid-js';

const [spoken, setSpoken] = createSignal('');
export { spoken };

/** Says a sentence through the live region. */
export function announce(sentence: string): void {
  setSpoken('');
  queueMicrotask(() => setSpoken(sentence));
}

export interface Toast {
  readonly text: string;
  /** What is under way stays until something takes its place, what failed until it is dismissed. */
  readonly state?: 'running' | 'failed';
  readonly action?: { readonly label: string; readonly run: () => void };
}

const SHOWN_MS = 6000;
const [toast, setToast] = createSignal<Toast>();
export { toast };

let timer: ReturnType<typeof setTimeout> | undefined;

/** Shows one line with at most one action; it goes by itself. */
export function showToast(next: Toast): void {
  setToast(next);
  announce(next.text);
  holdToast(false);
}

/** Says why something did not work. */
export function showFailure(cause: unknown): void {
  showToast({ text: cause instanceof Error ? cause.message : String(cause), state: 'failed' });
}

/** Keeps the toast while it is hovered or focused. */
export function holdToast(held: boolean): void {
  clearTimeout(timer);
  if (!held && toast()?.state === undefined) {
    timer = setTimeout(() => setToast(undefined), SHOWN_MS);
  }
}

export function dismissToast(): void {
  clearTimeout(timer);
  setToast(undefined);
}

/** Copies text and says whether it did. Browsers offer the clipboard on secure origins only. */
export async function copy(text: string, what: string): Promise<boolean> {
  let isCopied = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    isCopied = copyBySelection(text);
  }
  showToast(
    isCopied
      ? { text: `${what} copied` }
      : { text: `${what} could not be copied`, state: 'failed' },
  );
  return isCopied;
}

function copyBySelection(text: string): boolean {
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'visually-hidden';
  // Beside a dialog that is open, nothing can be selected.
  (document.querySelector('dialog:modal') ?? document.body).append(area);
  const before = document.activeElement;
  area.select();
  // Deprecated, and the only way that a page on plain HTTP has.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const isCopied = document.execCommand('copy');
  area.remove();
  if (before instanceof HTMLElement) {
    before.focus();
  }
  return isCopied;
}
