/**
 * Confirmation dialog for a destructive action. It names the affected object and gives focus to the
 * safe button.
 */
import { createEffect, createSignal, Show, type JSX } from 'solid-js';
import { withHiddenShown } from '../model/format.js';
import { answer, pendingQuestion, type Question } from '../page/questions.js';
import { fillNodes } from '../fill.js';
import { texts } from '../texts.js';

/** Shows the pending question, if any. The page contains this component once. */
export function ConfirmDialog(): JSX.Element {
  return (
    <Show when={pendingQuestion()} keyed>
      {(question) => <Dialog question={question} />}
    </Show>
  );
}

function Dialog(props: { question: Question }): JSX.Element {
  let dialog!: HTMLDialogElement;
  const [typed, setTyped] = createSignal('');
  const { question } = props;
  createEffect(() => dialog.showModal());
  const close = (isSure: boolean): void => {
    dialog.close();
    answer(isSure);
  };
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby="confirm-title"
      onCancel={(event) => {
        event.preventDefault();
        close(false);
      }}
    >
      <header>
        <h2 id="confirm-title">
          <bdi>{question.title}</bdi>
        </h2>
      </header>
      <p>{question.text}</p>
      <Show when={question.statement}>
        <pre class="code-block">{withHiddenShown(question.statement ?? '')}</pre>
      </Show>
      <Show when={question.typed}>
        <label class="confirm-typed">
          <span>
            {fillNodes(texts.dialogs.typeToConfirm, {
              name: <bdi class="data">{question.typed}</bdi>,
            })}
          </span>
          <input class="input data" onInput={(event) => setTyped(event.currentTarget.value)} />
        </label>
      </Show>
      <div class="confirm-actions">
        <button class="button" autofocus onClick={() => close(false)}>
          {question.cancel}
        </button>
        <button
          class="button danger"
          disabled={question.typed !== undefined && typed() !== question.typed}
          onClick={() => close(true)}
        >
          {question.destroy}
        </button>
      </div>
    </dialog>
  );
}
