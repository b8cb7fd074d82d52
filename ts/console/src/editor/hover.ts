/** Shows a tooltip for the word under the pointer if it names a function, a column or a table. */
import type { Extension } from '@codemirror/state';
import { hoverTooltip, type Tooltip } from '@codemirror/view';
import { scopeAt } from '../../../sql/index.js';
import { KIND_LABELS, type KnownNames } from '../model/schema.js';
import { currentStatement, tokens } from './text.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

interface Described {
  readonly title: string;
  readonly lines: readonly string[];
}

export function hover(names: () => KnownNames): Extension {
  return hoverTooltip((view, offset): Tooltip | null => {
    const { state } = view;
    const token = state.field(tokens).find(({ start, end }) => start <= offset && offset < end);
    if (!token || !['function', 'identifier', 'keyword'].includes(token.kind)) {
      return null;
    }
    const word = state.sliceDoc(token.start, token.end).replace(/^"|"$/g, '');
    const statement = currentStatement(state);
    const inside = statement && statement.start <= offset && offset <= statement.end;
    const tables = inside
      ? tablesAt(state.sliceDoc(statement.start, statement.end), offset - statement.start)
      : [];
    const described =
      token.kind === 'identifier'
        ? describeName(names(), word, tables)
        : describeCall(names(), word);
    if (!described) {
      return null;
    }
    return {
      pos: token.start,
      end: token.end,
      above: true,
      create: () => ({ dom: card(described) }),
    };
  });
}

function tablesAt(text: string, offset: number): string[] {
  return scopeAt(text, offset).sources.flatMap(({ table }) => table ?? []);
}

function describeCall({ functions }: KnownNames, word: string): Described | undefined {
  const known = functions.find(({ name }) => name.toLowerCase() === word.toLowerCase());
  return known && { title: known.signatures.join('\n'), lines: [known.description] };
}

function describeName(
  { tables, columnsOf }: KnownNames,
  word: string,
  sources: readonly string[],
): Described | undefined {
  const is = (name: string): boolean => name.toLowerCase() === word.toLowerCase();
  const lines = sources.flatMap((table) =>
    columnsOf(table)
      .filter(({ name }) => is(name))
      .map(({ type, designated }) =>
        fill(texts.editor.columnOf, {
          type,
          table,
          note: designated ? texts.editor.designated : '',
        }),
      ),
  );
  if (lines.length > 0) {
    return { title: word, lines };
  }
  const table = tables.find(({ name }) => is(name));
  return table && { title: table.name, lines: [KIND_LABELS[table.kind]] };
}

function card({ title, lines }: Described): HTMLElement {
  const dom = document.createElement('div');
  dom.className = 'cm-hover-card';
  const head = dom.appendChild(document.createElement('code'));
  head.textContent = title;
  for (const line of lines) {
    dom.appendChild(document.createElement('p')).textContent = line;
  }
  return dom;
}
