/**
 * Expandable list of malformed lines, with the line number, the error and the text of each line.
 */
import { createResource, createSignal, For, Show, type JSX } from 'solid-js';
import { grouped } from '../model/format.js';
import type { BadLine, FileLine } from './lines.js';
import { fill, fillNodes } from '../fill.js';
import { texts } from '../texts.js';

interface BadLinesProps {
  readonly lines: readonly BadLine[];
  /** Total number of malformed lines. The server reports details only of the first ones. */
  readonly count: number;
  /** Name of the column or other object to which the lines belong. */
  readonly what: string;
  readonly read: (lines: readonly BadLine[]) => Promise<readonly FileLine[]>;
}

export function BadLines(props: BadLinesProps): JSX.Element {
  const [isOpen, setOpen] = createSignal(false);
  const [found] = createResource(
    () => isOpen() && props.lines,
    async (lines) => ({ lines: await props.read(lines).catch(() => undefined) }),
  );
  return (
    <Show
      when={props.lines.length > 0}
      fallback={<span class="hint">{texts.importReport.linesUnknown}</span>}
    >
      <button
        class="button small"
        aria-expanded={isOpen()}
        aria-label={fill(texts.importReport.showLinesOf, { what: props.what })}
        onClick={() => setOpen(!isOpen())}
      >
        {texts.importReport.showLines}
      </button>
      <Show when={isOpen() && found()}>
        {(read) => (
          <Show
            when={read().lines}
            fallback={<p class="hint warn">{texts.importReport.fileGone}</p>}
          >
            {(lines) => (
              <ol class="bad-lines">
                <For each={lines()}>{(line) => <Line {...line} />}</For>
                <Show when={props.count > lines().length}>
                  <li class="hint">
                    {fill(texts.importReport.firstLines, {
                      shown: lines().length,
                      count: grouped(String(props.count)),
                    })}
                  </li>
                </Show>
              </ol>
            )}
          </Show>
        )}
      </Show>
    </Show>
  );
}

function Line(props: FileLine): JSX.Element {
  return (
    <li>
      {fillNodes(texts.importReport.line, {
        line: grouped(String(props.line)),
        problem: <bdi>{props.problem}</bdi>,
      })}
      <Show when={props.value !== ''}>
        {', '}
        <code>
          <bdi>{props.value}</bdi>
        </code>
      </Show>
      <Show when={props.text !== ''}>
        <pre>
          <bdi>{props.text}</bdi>
        </pre>
      </Show>
    </li>
  );
}
