/** Read-only SQL with the editor's colours. */
import { createMemo, For, type JSX } from 'solid-js';
import { scan } from '../sql/scanner.js';

interface Part {
  readonly text: string;
  readonly class: string | undefined;
}

export function SqlText(props: { text: string; label: string }): JSX.Element {
  const parts = createMemo(() => partsOf(props.text));
  return (
    <pre class="code-block sql-text" role="region" aria-label={props.label} tabindex="0">
      <For each={parts()}>{(part) => <span class={part.class}>{part.text}</span>}</For>
    </pre>
  );
}

/** Splits the whole text into coloured and uncoloured parts. */
function partsOf(text: string): Part[] {
  const parts: Part[] = [];
  let before = 0;
  for (const { kind, start, end } of scan(text)) {
    parts.push({ text: text.slice(before, start), class: undefined });
    parts.push({ text: text.slice(start, end), class: `sql-${kind}` });
    before = end;
  }
  parts.push({ text: text.slice(before), class: undefined });
  return parts.filter((part) => part.text !== '');
}
