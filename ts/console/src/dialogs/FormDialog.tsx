/** A dialog with a form. If submitting fails, the dialog shows the error and stays open. */
import { createSignal, createUniqueId, onMount, Show, type JSX } from 'solid-js';
import { Icon } from '../ui/icons.js';
import { Failure } from '../ui/Failure.js';
import { messageOf } from '../model/message.js';

interface FormDialogProps {
  readonly title: string;
  /** Name of the affected object, shown after the title. */
  readonly name: string;
  /** Label of the cancel button. */
  readonly cancel: string;
  readonly act: string;
  readonly isComplete: boolean;
  /**
   * Submits the form. Resolves to an error message, or to an empty string on success. A rejection
   * is shown as an error too.
   */
  readonly submit: () => Promise<string>;
  readonly onClose: () => void;
  readonly children: JSX.Element;
}

export function FormDialog(props: FormDialogProps): JSX.Element {
  let dialog!: HTMLDialogElement;
  const title = createUniqueId();
  const [failure, setFailure] = createSignal('');
  const [working, setWorking] = createSignal(false);
  onMount(() => dialog.showModal());
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setWorking(true);
    setFailure(await props.submit().catch(messageOf));
    setWorking(false);
    if (failure() === '') {
      dialog.close();
    }
  };
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby={title} onClose={() => props.onClose()}>
      <form onSubmit={(event) => void submit(event)} onInput={() => setFailure('')}>
        <header>
          <h2 id={title}>
            {props.title} <bdi>{props.name}</bdi>
          </h2>
        </header>
        {props.children}
        <Failure text={failure()} />
        <div class="confirm-actions">
          <button class="button" type="button" onClick={() => dialog.close()}>
            {props.cancel}
          </button>
          <button class="button primary" disabled={!props.isComplete || working()}>
            <Show when={working()}>
              <Icon name="running" class="spin" />
            </Show>
            {props.act}
          </button>
        </div>
      </form>
    </dialog>
  );
}
