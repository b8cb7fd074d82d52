/** Shows the full value of a cell, and a summary of its column in the loaded rows. */
import {
  createEffect,
  createMemo,
  createSignal,
  lazy,
  on,
  Show,
  Suspense,
  type JSX,
} from 'solid-js';
import type { Column, Value } from '../api/answer.js';
import { copyText, grouped } from '../model/format.js';
import { profileOf, type Profile } from '../model/profile.js';
import { asOf, typeName, type Result } from '../model/result.js';
import { familyOf } from '../model/types.js';
import { ProfileFacts } from '../profile/ProfileFacts.js';
import { rowsOfQuery } from '../profile/questions.js';
import { copy } from '../ui/clipboard.js';
import type { GridContext } from './context.js';
import { IconButton } from '../ui/IconButton.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

const ServerSummary = lazy(() =>
  import('../profile/ServerSummary.js').then(({ ServerSummary: view }) => ({ default: view })),
);

export function Inspector(props: GridContext & { onClose: () => void }): JSX.Element {
  const row = (): number => props.layout.rowAt(props.cell.row);
  const position = (): number => props.layout.columnAt(props.cell.column);
  const column = (): Column | undefined => props.result.columns[position()];
  const isRead = createMemo(() => {
    void props.result.windows?.edition();
    return asOf(props.result, props.revision).row(row()) !== undefined;
  });
  const value = createMemo(() => (isRead() ? props.result.cell(row(), position()) : null));
  const profile = createMemo(() => {
    const { columns, rows } = asOf(props.result, props.revision);
    const known = columns[position()];
    const shown = props.order ? Array.from(props.order, (index) => rows[index] ?? []) : rows;
    return known && profileOf(known, position(), shown);
  });
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') {
      event.preventDefault();
      props.onClose();
    }
  };
  return (
    <aside
      class="inspector"
      aria-label={texts.inspector.cellInspector}
      data-region="inspector"
      onKeyDown={onKeyDown}
    >
      <header>
        <h2>
          <bdi>{column()?.name}</bdi>
        </h2>
        <span class="spring" />
        <IconButton
          icon="copy"
          label={texts.inspector.copyValue}
          title={texts.inspector.copyValue}
          onClick={() => void copy(copyText(value()), texts.common.value)}
        />
        <IconButton
          icon="close"
          label={texts.inspector.closeInspector}
          title={texts.inspector.closeHint}
          onClick={() => props.onClose()}
        />
      </header>
      <p class="hint">{sizeText(value(), column(), props.result.numberOf(row()))}</p>
      <pre class="snippet" tabindex="0" aria-label={texts.common.value}>
        {isRead() ? wholeText(value()) : '…'}
      </pre>
      <Show when={profile()}>
        {(known) => <ColumnFacts profile={known()} column={column()} result={props.result} />}
      </Show>
    </aside>
  );
}

/** Summarizes the column over the loaded rows or, on request, over the whole result. */
function ColumnFacts(props: {
  profile: Profile;
  column: Column | undefined;
  result: Result;
}): JSX.Element {
  const all = createMemo(() => rowsOfQuery(props.result.statement));
  const [ofAll, setOfAll] = createSignal(false);
  // When the column changes, return to the loaded rows. The server summarizes a column only on
  // request.
  createEffect(on([() => props.column, () => props.result], () => setOfAll(false)));
  return (
    <>
      <h3>{texts.common.column}</h3>
      <span class="segmented" role="group" aria-label={texts.inspector.rowsIncluded}>
        <button aria-pressed={!ofAll()} onClick={() => setOfAll(false)}>
          {texts.inspector.loadedRows}
        </button>
        <button
          aria-pressed={ofAll()}
          title={texts.inspector.allRowsHint}
          onClick={() => setOfAll(true)}
        >
          {texts.inspector.allRows}
        </button>
      </span>
      <Show when={ofAll()} fallback={<ProfileFacts profile={props.profile} />}>
        <Suspense>
          <Show when={props.column}>{(one) => <ServerSummary column={one()} rows={all()} />}</Show>
        </Suspense>
      </Show>
    </>
  );
}

function sizeText(value: Value, column: Column | undefined, number: number): string {
  const size = Array.isArray(value)
    ? fill(texts.inspector.elements, { count: grouped(String(value.flat(Infinity).length)) })
    : typeof value === 'string' && ['text', 'symbol'].includes(familyOf(column?.type ?? ''))
      ? fill(texts.inspector.characters, { count: grouped(String(charactersOf(value))) })
      : '';
  return fill(texts.inspector.cellFacts, {
    number: grouped(String(number)),
    type: column ? typeName(column) : '',
    size,
  });
}

/** Counts code points, like the server. */
function charactersOf(text: string): number {
  return text.replace(/[\uD800-\uDBFF](?=[\uDC00-\uDFFF])/g, '').length;
}

/** Formats arrays and JSON on several lines. Other values stay unchanged. */
function wholeText(value: Value): string {
  if (value === null) {
    return 'null';
  }
  if (Array.isArray(value)) {
    return arrayLines(value, '');
  }
  const text = String(value);
  return /^\s*[{[]/.test(text) ? indented(text) : text;
}

/** Formats an array with each innermost array on a line of its own. */
function arrayLines(values: readonly Value[], indent: string): string {
  if (!values.some((value) => Array.isArray(value))) {
    const items = values.map((value) => (value === null ? 'null' : String(value)));
    return `${indent}[${items.join(', ')}]`;
  }
  const inner = values.map((value) =>
    Array.isArray(value) ? arrayLines(value, `${indent}  `) : `${indent}  null`,
  );
  return `${indent}[\n${inner.join(',\n')}\n${indent}]`;
}

/** Adds line breaks to JSON. Only whitespace is added, so numbers keep all their digits. */
function indented(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  let depth = 0;
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  return tokens
    .map((token, index) => {
      const isEmpty = /[{[]/.test(token) && /^[}\]]$/.test(tokens[index + 1] ?? '');
      if (/^[{[]$/.test(token) && !isEmpty) {
        depth += 1;
        return `${token}\n${'  '.repeat(depth)}`;
      }
      if (/^[}\]]$/.test(token) && !/^[{[]$/.test(tokens[index - 1] ?? '')) {
        depth -= 1;
        return `\n${'  '.repeat(depth)}${token}`;
      }
      return { ',': `,\n${'  '.repeat(depth)}`, ':': ': ' }[token] ?? token;
    })
    .join('');
}
