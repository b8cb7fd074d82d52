/**
 * Completes SQL. The parser determines which keywords and kinds of names may follow the cursor. The
 * scope determines which tables and aliases are visible, and the schema provides their columns.
 */
import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete';
import { expectedAt, scopeAt } from '../../../sql/index.js';
import { scan } from '../../../sql/lexer/lexer.js';
import { KIND_LABELS, type FunctionEntry } from '../model/schema.js';
import { quoted } from '../sql/names.js';
import { columnsOf, offer, type NameSource, type ScopedPosition } from './names.js';
import type { Token } from '../sql/scanner.js';
import { currentStatement, tokens } from './text.js';
import { textOptions } from './text-completion.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/**
 * Maximum statement length for completion. Parsing a longer statement on each key press would be
 * too slow.
 */
const MAX_STATEMENT_LENGTH = 20_000;
/** Matches the star of a SELECT list. */
const STAR = /(?:\bSELECT|\bDISTINCT|,)\s*\*$/iu;
const WORD = /["@\p{L}_][\p{L}\p{N}_$]*$/u;
const QUALIFIER = /(?:"([^"]+)"|([\p{L}_][\p{L}\p{N}_$]*))\.$/u;

const TYPES = (
  'BOOLEAN BYTE SHORT CHAR INT LONG FLOAT DOUBLE DATE TIMESTAMP TIMESTAMP_NS STRING VARCHAR ' +
  'SYMBOL UUID IPV4 LONG256 BINARY DECIMAL GEOHASH DOUBLE[]'
).split(' ');

export function completions(
  source: NameSource,
): (context: CompletionContext) => Promise<CompletionResult | null> {
  return async (context) => {
    const around = tokenAround(context);
    if (around?.kind === 'string') {
      return await insideString(source, context, around);
    }
    if (around?.kind === 'comment' || around?.kind === 'number') {
      return null;
    }
    if (context.explicit && context.matchBefore(STAR)) {
      return await allColumns(source, context);
    }
    const word = context.matchBefore(WORD);
    const from = word?.from ?? context.pos;
    const before = context.state.sliceDoc(Math.max(0, from - 200), from);
    const [, quotedName, plainName] = QUALIFIER.exec(before) ?? [];
    const qualifier = quotedName ?? plainName;
    const isApplicable = word !== null || qualifier !== undefined || context.explicit;
    if (!isApplicable) {
      return null;
    }
    const statement = statementAround(context);
    if (statement === null) {
      return null;
    }
    // If the user types before the schema has loaded, offer its names once they arrive.
    await source.requested;
    const [text, start] = statement;
    const written = text.slice(from - start, context.pos - start);
    // Remove the unclosed quote. The scanner would read all text after it as part of the name.
    const isQuoted = written.startsWith('"');
    const at = from - start;
    const whole = isQuoted ? text.slice(0, at) + text.slice(at + written.length) : text;
    const offset = isQuoted ? at : context.pos - start;
    const position: ScopedPosition = { text: whole, offset, scope: scopeAt(whole, at) };
    const found =
      qualifier === undefined
        ? await anyName(source, position, written.startsWith('@'))
        : await columnsOfSource(source, position, qualifier);
    const options = isQuoted ? found.flatMap(inQuotes) : found;
    return context.aborted ? null : { from, options, validFor: /^["@\p{L}_][\p{L}\p{N}_$]*$/u };
  };
}

async function anyName(
  source: NameSource,
  position: ScopedPosition,
  isVariable: boolean,
): Promise<Completion[]> {
  const { scope, text, offset } = position;
  if (isVariable) {
    return scope.variables.map((name) => ({ label: `@${name}`, detail: texts.editor.variable }));
  }
  const before = text.slice(0, offset);
  const words = keywordsAt(before);
  if (words) {
    return words.map((label) => ({ label }));
  }
  const { keywords, contexts } = expectedAt(before, offset);
  const { tables, functions } = source.names();
  const options: Completion[] = keywords.map((word) => ({
    label: word === 'SAMPLE' ? 'SAMPLE BY' : word,
    boost: -1,
  }));
  if (contexts.includes('table')) {
    options.push(...scope.commonTables.map((name) => offer(name, 'WITH', 2)));
    options.push(...tables.map(({ name, kind }) => offer(name, KIND_LABELS[kind], 1)));
    options.push(...functions.filter(({ isSource }) => isSource).map(offerCall));
  }
  if (contexts.includes('expression') || contexts.includes('name')) {
    options.push(...(await columnsInReach(source, position)));
  }
  if (/\bLATEST\s+(?:ON|BY)\s+\w*$/i.test(before)) {
    options.push(...(await columnsInReach(source, position)));
  }
  if (/\b(?:ORDER|GROUP)\s+BY\b[^()]*$/i.test(before)) {
    options.push(...aliasesBefore(before).map((name) => offer(name, texts.editor.alias, 3)));
  }
  if (contexts.includes('expression')) {
    options.push(...functions.filter(({ isSource }) => !isSource).map(offerCall));
    options.push(
      ...scope.variables.map((name) => ({ label: `@${name}`, detail: texts.editor.variable })),
    );
  }
  if (contexts.includes('type')) {
    options.push(...TYPES.map((label) => ({ label, detail: texts.editor.type })));
  }
  return options;
}

const FILLS = ['LINEAR', 'NONE', 'NULL', 'PREV'];
const SHOWN = (
  'COLUMNS FROM,CREATE TABLE,CREATE VIEW,GROUPS,PARAMETERS,PARTITIONS FROM,PERMISSIONS,' +
  'SERVER_VERSION,SERVICE ACCOUNTS,TABLES,TIME ZONE,USER,USERS'
).split(',');

/** Returns the keywords for positions where no names are allowed: after SHOW, and in FILL. */
function keywordsAt(before: string): readonly string[] | undefined {
  if (/\bFILL\s*\((?:[^()]*,)?\s*\w*$/i.test(before)) {
    return FILLS;
  }
  const [first, ...others] = scan(before).values;
  // `others` also contains the word being typed and the end token.
  return first === 'SHOW' && others.length <= 2 ? SHOWN : undefined;
}

/** Returns the column aliases of the last SELECT before the position. */
function aliasesBefore(before: string): string[] {
  const list = /\bSELECT\b((?:(?!\bSELECT\b)[^])*?)\bFROM\b(?:(?!\bSELECT\b)[^])*$/i.exec(before);
  const names = [...(list?.[1] ?? '').matchAll(/\bAS\s+("[^"]+"|[\p{L}_][\p{L}\p{N}_$]*)/giu)];
  return [...new Set(names.map(([, name = '']) => name.replaceAll('"', '')))];
}

/**
 * Adapts a completion to follow an opening quote. Calls and keywords are dropped, because they are
 * not names.
 */
function inQuotes(option: Completion): Completion[] {
  const isName = typeof option.apply === 'string' && !option.apply.endsWith('(');
  const label = `"${option.label.replaceAll('"', '""')}"`;
  return isName ? [{ ...option, label, apply: label }] : [];
}

/**
 * Offers the columns of all sources in scope, innermost first. If there is no source, offers the
 * columns of every table.
 */
async function columnsInReach(source: NameSource, position: ScopedPosition): Promise<Completion[]> {
  const { sources } = position.scope;
  const lists = await Promise.all(sources.map((one) => columnsOf(source, position, one)));
  const found = new Map<string, Completion>();
  lists.forEach((columns, index) => {
    for (const { name, type } of columns) {
      if (!found.has(name)) {
        found.set(name, { ...offer(name, type, 2), info: sources[index]?.table ?? '' });
      }
    }
  });
  const aliases = sources
    .filter(({ alias }, index) => sources.length > 1 && (alias ?? lists[index]?.length))
    .flatMap(({ alias, table }) => alias ?? table ?? [])
    .map((name) => offer(name, 'source', 1));
  if (found.size > 0) {
    return [...found.values(), ...aliases];
  }
  return [...source.names().columns.map((name) => offer(name, 'column', 1)), ...aliases];
}

/** Offers the columns of a source, after `alias.` or `table.`. */
async function columnsOfSource(
  source: NameSource,
  position: ScopedPosition,
  qualifier: string,
): Promise<Completion[]> {
  const is = (name: string | null): boolean => name?.toLowerCase() === qualifier.toLowerCase();
  const found = position.scope.sources.find(
    ({ alias, table }) => is(alias) || (alias === null && is(table)),
  );
  const columns = found ? await columnsOf(source, position, found) : [];
  return columns.map(({ name, type }) => offer(name, type, 1));
}

/** Returns the token that contains the cursor or ends at it. */
function tokenAround(context: CompletionContext): Token | undefined {
  return context.state
    .field(tokens)
    .find((token) => token.start < context.pos && context.pos <= token.end);
}

/**
 * Returns the statement around the cursor and its start, or `null` if the statement is too long.
 */
function statementAround({ state, pos }: CompletionContext): [text: string, start: number] | null {
  const statement = currentStatement(state);
  const start = statement && statement.start <= pos ? statement.start : pos;
  const end = Math.max(pos, statement?.end ?? 0);
  return end - start > MAX_STATEMENT_LENGTH ? null : [state.sliceDoc(start, end), start];
}

async function insideString(
  source: NameSource,
  context: CompletionContext,
  { start: from, end: to }: Token,
): Promise<CompletionResult | null> {
  const isClosed = to > from + 1 && context.state.sliceDoc(to - 1, to) === "'";
  const statement = statementAround(context);
  if (statement === null || (isClosed && context.pos === to)) {
    return null;
  }
  await source.requested;
  const [text, start] = statement;
  const before = text.slice(0, from - start);
  // Close the string. The parser would read all text after an unclosed string as part of it.
  const whole = `${before}''${isClosed ? text.slice(to - start) : ''}`;
  const position = { text: whole, offset: before.length, scope: scopeAt(whole, before.length) };
  const options = await textOptions(source, position, before);
  return context.aborted || options.length === 0
    ? null
    : { from: from + 1, to: isClosed ? to - 1 : context.pos, options, validFor: /^[^']*$/ };
}

/** Expands `*` into the names of all columns. */
async function allColumns(
  source: NameSource,
  context: CompletionContext,
): Promise<CompletionResult | null> {
  const statement = statementAround(context);
  if (statement === null) {
    return null;
  }
  await source.requested;
  const [text, start] = statement;
  const offset = context.pos - start;
  const position = { text, offset, scope: scopeAt(text, offset) };
  const { sources } = position.scope;
  const lists = await Promise.all(sources.map((one) => columnsOf(source, position, one)));
  const names = lists.flatMap((columns) => columns.map(({ name }) => quoted(name)));
  const option = {
    label: fill(texts.editor.allColumns, { count: names.length }),
    apply: names.join(', '),
  };
  return context.aborted || names.length === 0
    ? null
    : { from: context.pos - 1, options: [option], filter: false };
}

/**
 * Offers a function. It is inserted with its opening parenthesis, and its signatures are shown
 * beside the list.
 */
function offerCall({ name, signatures, description }: FunctionEntry): Completion {
  const info = [...signatures, description].join('\n');
  return { label: name, apply: `${name}(`, detail: texts.editor.function, info };
}
