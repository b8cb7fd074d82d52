/** A text cell, which is displayed as rendered Markdown and edited as source. */
import { createEffect, createSignal, Show, type JSX } from 'solid-js';
import type { CellProps } from '../context.js';
import { MAX_TEXT_LENGTH, type MarkdownCell } from '../../cells/model.js';
import { texts } from '../../texts.js';

export function MarkdownBody(
  props: CellProps<MarkdownCell> & { children: JSX.Element },
): JSX.Element {
  const [writing, setWriting] = createSignal(props.cell.text === '');
  const done = (text: string): void => {
    setWriting(false);
    props.document.type(props.cell.id, text);
  };
  return (
    <div class="cell-markdown">
      <span class="markdown-tools">
        {props.children}
        <button
          class="button small ghost"
          aria-label={writing() ? texts.cells.done : texts.cells.editText}
          onClick={() => setWriting(!writing())}
        >
          {writing() ? texts.cells.done : texts.cells.edit}
        </button>
      </span>
      <Show
        when={writing()}
        fallback={<Rendered text={props.cell.text} edit={() => setWriting(true)} />}
      >
        <textarea
          ref={(area) => queueMicrotask(() => props.cell.text !== '' && area.focus())}
          class="input markdown-source"
          aria-label={texts.cells.markdownText}
          placeholder={texts.cells.markdownText}
          maxLength={MAX_TEXT_LENGTH}
          rows={Math.max(3, props.cell.text.split('\n').length + 1)}
          value={props.cell.text}
          onInput={(event) => props.document.type(props.cell.id, event.currentTarget.value)}
          onKeyDown={(event) => {
            const isDone = event.key === 'Enter' && (event.ctrlKey || event.metaKey);
            if (isDone || event.key === 'Escape') {
              event.preventDefault();
              event.stopPropagation();
              done(event.currentTarget.value);
            }
          }}
        />
      </Show>
    </div>
  );
}

function Rendered(props: { text: string; edit: () => void }): JSX.Element {
  let host!: HTMLDivElement;
  createEffect(() => {
    const { text } = props;
    void import('./render.js').then(({ render }) => {
      if (text === props.text) {
        host.replaceChildren(...render(text));
      }
    });
  });
  return (
    <>
      <div ref={host} class="markdown" onDblClick={() => props.edit()} />
      <Show when={props.text.trim() === ''}>
        <p class="hint">{texts.cells.noTextYet}</p>
      </Show>
    </>
  );
}
