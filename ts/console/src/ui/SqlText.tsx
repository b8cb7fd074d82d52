/** Shows read-only SQL text in the editor's colours. */
import { createMemo, For, type JSX } from 'solid-js';
import { scan } from '../sql/scanner.js';

interface Segment {
  readonly text: string;
  readonly class: string | undefined;
}

export function SqlText(props: { text: string; label: string }): JSX.Element {
  const segments = createMemo(() => segmentsOf(props.text));
  return (
    <pre class="code-block sql-text" role="region" aria-label={props.label} tabindex="0">
      <For each={segments()}>{(segment) => <span class={segment.class}>{segment.text}</span>}</For>
    </pre>
  );
}

/** Splits the text into coloured and uncoloured segments. */
function segmentsOf(text: string): Segment[] {
  const segments: Segment[] = [];
  let before = 0;
  for (const { kind, start, end } of scan(text)) {
    segments.push({ text: text.slice(before, start), class: undefined });
    segments.push({ text: text.slice(start, end), class: `sql-${kind}` });
    before = end;
  }
  segments.push({ text: text.slice(before), class: undefined });
  return segments.filter((segment) => segment.text !== '');
}
