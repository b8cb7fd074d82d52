/** One cell in full, and below it what its column holds in the loaded rows. */
import { createMemo, For, Show, type JSX } from 'solid-js';
import type { Column, Value } from '../api/answer.js';
import { copyText, grouped } from '../model/format.js';
import { profileOf, type Profile } from '../model/profile.js';
import { asOf, typeName } from '../model/result.js';
import { familyOf } from '../model/types.js';
import { copy } from '../shell/announce.js';
import { Icon } from '../shell/icons.js';
import type { GridParts } from './parts.js';

export function Inspector(props: GridParts & { onClose: () => void }): JSX.Element {
  const row = (): number => props.layout.rowAt(props.cell.row);
  const place = (): number => props.layout.columnAt(props.cell.column);
  const column = (): Column | undefined => props.result.columns[place()];
  const value = createMemo(() => asOf(props.result, props.revision).cell(row(), place()));
  const profile = createMemo(() => {
    const { columns, rows } = asOf(props.result, props.revision);
    const known = columns[place()];
    const shown = props.order ? Array.from(props.order, (index) => rows[index] ?? []) : rows;
    return known && profileOf(known, place(), shown);
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
      aria-label="Cell inspector"
      data-region="inspector"
      onKeyDown={onKeyDown}
    >
      <header>
        <h2>
          <bdi>{column()?.name}</bdi>
        </h2>
        <span class="spring" />
        <button
          class="icon-button"
          aria-label="Copy the value"
          title="Copy the value"
          onClick={() => void copy(copyText(value()), 'Value')}
        >
          <Icon name="copy" />
        </button>
        <button
          class="icon-button"
          aria-label="Close the inspector"
          title="Close (Escape)"
          onClick={() => props.onClose()}
        >
          <Icon name="close" />
        </button>
      </header>
      <p class="hint">{sizeText(value(), column(), props.result.numberOf(row()))}</p>
      <pre class="snippet" tabindex="0" aria-label="Value">
        {wholeText(value())}
      </pre>
      <Show when={profile()}>
        {(known) => <ProfileFacts profile={known()} column={column()} />}
      </Show>
    </aside>
  );
}

function sizeText(value: Value, column: Column | undefined, number: number): string {
  const size = Array.isArray(value)
    ? `, ${grouped(String(value.flat(Infinity).length))} elements`
    : typeof value === 'string' && ['text', 'symbol'].includes(familyOf(column?.type ?? ''))
      ? `, ${grouped(String(charactersOf(value)))} characters`
      : '';
  return `row ${grouped(String(number))}, ${column ? typeName(column) : ''}${size}`;
}

/** Code points, as the server counts. */
function charactersOf(text: string): number {
  return text.replace(/[\uD800-\uDBFF](?=[\uDC00-\uDFFF])/g, '').length;
}

/** Arrays and JSON over several lines, anything else as it is. */
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

/** The innermost arrays on a line each. */
function arrayLines(values: readonly Value[], indent: string): string {
  if (!values.some((value) => Array.isArray(value))) {
    const texts = values.map((value) => (value === null ? 'null' : String(value)));
    return `${indent}[${texts.join(', ')}]`;
  }
  const inner = values.map((value) =>
    Array.isArray(value) ? arrayLines(value, `${indent}  `) : `${indent}  null`,
  );
  return `${indent}[\n${inner.join(',\n')}\n${indent}]`;
}

/** JSON with line breaks; its numbers keep all digits because only blanks are written. */
function indented(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  let depth = 0;
  const pieces = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  return pieces
    .map((piece, index) => {
      const isEmpty = /[{[]/.test(piece) && /^[}\]]$/.test(pieces[index + 1] ?? '');
      if (/^[{[]$/.test(piece) && !isEmpty) {
        depth += 1;
        return `${piece}\n${'  '.repeat(depth)}`;
      }
      if (/^[}\]]$/.test(piece) && !/^[{[]$/.test(pieces[index - 1] ?? '')) {
        depth -= 1;
        return `\n${'  '.repeat(depth)}${piece}`;
      }
      return { ',': `,\n${'  '.repeat(depth)}`, ':': ': ' }[piece] ?? piece;
    })
    .join('');
}

function ProfileFacts(props: { profile: Profile; column: Column | undefined }): JSX.Element {
  const facts = createMemo(() => factsOf(props.profile));
  const most = createMemo(() => Math.max(...props.profile.bins.map(({ count }) => count)));
  return (
    <>
      <h3>Column, of the loaded rows</h3>
      <dl class="profile-facts">
        <For each={facts()}>
          {([name, text]) => (
            <>
              <dt>{name}</dt>
              <dd>{text}</dd>
            </>
          )}
        </For>
      </dl>
      <Show when={props.profile.bins.length > 0}>
        <h3>Distribution</h3>
        <svg
          class="histogram"
          viewBox={`0 0 ${props.profile.bins.length * 4} 32`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`Distribution from ${props.profile.least} to ${props.profile.greatest}`}
        >
          <For each={props.profile.bins}>
            {({ from, to, count }, index) => (
              <rect
                class="bar"
                x={index() * 4 + 0.3}
                width="3.4"
                y={32 - barHeight(count, most())}
                height={barHeight(count, most())}
              >
                <title>{`${short(from)} to ${short(to)}: ${grouped(String(count))}`}</title>
              </rect>
            )}
          </For>
        </svg>
      </Show>
      <Show when={props.profile.frequent.length > 0}>
        <h3>Most frequent</h3>
        <ul class="bars">
          <For each={props.profile.frequent}>
            {({ text, count }) => (
              <li>
                <bdi class="data">{text === '' ? 'empty text' : text}</bdi>
                <span class="data">{grouped(String(count))}</span>
                <svg viewBox="0 0 100 5" preserveAspectRatio="none" aria-hidden="true">
                  <rect
                    class="bar"
                    height="5"
                    width={(100 * count) / (props.profile.frequent[0]?.count ?? count)}
                  />
                </svg>
              </li>
            )}
          </For>
        </ul>
      </Show>
    </>
  );
}

/** A bar that counts anything is seen. */
function barHeight(count: number, most: number): number {
  return count === 0 ? 0 : Math.max(1, (32 * count) / most);
}

function short(value: number): string {
  return grouped(String(Number(value.toPrecision(4))));
}

function factsOf(profile: Profile): [string, string][] {
  const { rows, nulls, empty, distinct, least, greatest, mean, longest } = profile;
  const share = rows === 0 ? '' : ` (${Number(((100 * nulls) / rows).toFixed(1))} %)`;
  const facts: [string, string][] = [
    ['Rows', grouped(String(rows))],
    ['Null', nulls === 0 ? '0' : `${grouped(String(nulls))}${share}`],
    ['Distinct', grouped(String(distinct))],
  ];
  const add = (name: string, text: string | undefined): void => {
    if (text !== undefined) {
      facts.push([name, text]);
    }
  };
  add('Empty text', empty > 0 ? grouped(String(empty)) : undefined);
  add('Least', least?.replace('T', ' ').replace(/Z$/, ''));
  add('Greatest', greatest?.replace('T', ' ').replace(/Z$/, ''));
  add('Mean', mean === undefined ? undefined : grouped(String(Number(mean.toPrecision(8)))));
  add('Longest', longest === undefined ? undefined : `${grouped(String(longest))} characters`);
  return facts;
}
