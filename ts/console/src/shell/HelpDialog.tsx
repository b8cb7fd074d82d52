/**
 * Lists all shortcuts in a modal dialog. The browser traps the focus in the dialog and restores it
 * afterwards.
 */
import { For, type JSX, onMount } from 'solid-js';
import { Icon } from '../ui/icons.js';
import { SHORTCUTS } from './shortcut-list.js';
import { texts } from '../texts.js';

export default function HelpDialog(props: { onClose: () => void }): JSX.Element {
  let dialog!: HTMLDialogElement;
  onMount(() => dialog.showModal());
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby="help-title"
      onClose={() => props.onClose()}
    >
      <header>
        <h2 id="help-title">{texts.common.shortcuts}</h2>
        <button class="icon-button" aria-label={texts.common.close} onClick={() => dialog.close()}>
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
