/** Clipboard access, with a fallback for browsers without the clipboard API. */
import { showToast } from '../page/notices.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/**
 * Copies text and reports the outcome. A fallback is needed because browsers offer the clipboard
 * API only on secure origins.
 */
export async function copy(text: string, what: string): Promise<boolean> {
  let isCopied = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    isCopied = copyBySelection(text);
  }
  showToast(
    isCopied
      ? { text: fill(texts.clipboard.copied, { what }) }
      : { text: fill(texts.clipboard.notCopied, { what }), state: 'failed' },
  );
  return isCopied;
}

function copyBySelection(text: string): boolean {
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'visually-hidden';
  // While a modal dialog is open, text outside it cannot be selected.
  (document.querySelector('dialog:modal') ?? document.body).append(area);
  const before = document.activeElement;
  area.select();
  // This deprecated method is the only one available on plain HTTP.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const isCopied = document.execCommand('copy');
  area.remove();
  if (before instanceof HTMLElement) {
    before.focus();
  }
  return isCopied;
}
