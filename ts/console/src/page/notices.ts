/** Notifications: a live region for screen readers, and toasts. */
import { createSignal } from 'solid-js';
import { messageOf } from '../model/message.js';

const [spoken, setSpoken] = createSignal('');
export { spoken };

/** Announces a sentence to screen readers. */
export function announce(sentence: string): void {
  setSpoken('');
  queueMicrotask(() => setSpoken(sentence));
}

export interface Toast {
  readonly text: string;
  /** A `running` toast remains until it is replaced, and a `failed` toast until it is dismissed. */
  readonly state?: 'running' | 'failed';
  readonly action?: { readonly label: string; readonly run: () => void };
}

const SHOWN_MS = 6000;
const [toast, setToast] = createSignal<Toast>();
export { toast };

let timer: ReturnType<typeof setTimeout> | undefined;

/** Shows a toast. It disappears after a few seconds unless its state is `running` or `failed`. */
export function showToast(next: Toast): void {
  setToast(next);
  announce(next.text);
  pinToast(false);
}

/** Shows an error in a toast. */
export function showFailure(cause: unknown): void {
  showToast({ text: messageOf(cause), state: 'failed' });
}

/** Keeps the toast visible while it is hovered or focused. */
export function pinToast(isPinned: boolean): void {
  clearTimeout(timer);
  if (!isPinned && toast()?.state === undefined) {
    timer = setTimeout(() => setToast(undefined), SHOWN_MS);
  }
}

export function dismissToast(): void {
  clearTimeout(timer);
  setToast(undefined);
}
