/**
 * Lists all shortcuts in a modal dialog. The browser traps the focus in the dialog and restores it
 * afterwards.
 */
import { createEffect, For, type JSX } from 'solid-js';
import { Icon } from '../ui/icons.js';
import { SHORTCUTS } from './shortcuts.js';
import { texts } from '../texts.js';

export function HelpDialog(props: { open: boolean; onClose: () => void }): JSX.Element {
  let dialog!: HTMLDialogElement;
  createEffect(() => {
    if (props.open && !dialog.open) {
      dialog.showModal();
    }
    if (!props.open && dialog.open) {
      dialog.close();
    }
  });
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby="help-title"
      onClose={() => props.onClose()}
    >
      <header>
        <h2 id="help-title">{texts.common.shortcuts}</h2>
        <button class="icon-button" aria-label={texts.common.close} onClick={() => props.onClose()}>
          <Icon name="close" />
        </button>
      </header>
      <dl class="shortcuts">
        <For each={SHORTCUTS}>
          {({ keys, does }) => (
            <>
              <dt>
                <For each={keys.split(', ')}>{(key) => <kbd>{key}</kbd>}</For>
              </dt>
              <dd>{does}</dd>
            </>
          )}
        </For>
      </dl>
      <p class="hint">{texts.shortcuts.onMac}</p>
    </dialog>
  );
}
