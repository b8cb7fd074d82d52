/**
 * Completion: the parser says which words may follow and what kind of name is wanted, the scope
 * says of which tables and aliases, the schema which columns those have.
 */
import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete';
import { expectedAt, scopeAt, type Scope } from '../../../sql/index.js';
import {
  KIND_WORDS,
  quoted,
  type ColumnEntry,
  type FunctionEntry,
  type TableEntry,
} from '../schema/model.js';
import { commonTableQuery } from '../sql/common-tables.js';
import { currentStatement, tokens } from './text.js';

export interface KnownNames {
  readonly tables: readonly Pick<TableEntry, 'name' | 'kind'>[];
  /** Every column seen so far, for places whose tables are not known. */
  readonly columns: readonly string[];
  readonly functions: readonly FunctionEntry[];
  /** Columns of a table that has been opened; none of another one. */
  readonly columnsOf: (table: string) => readonly ColumnEntry[];
}

export interface NameSource {
  readonly names: () => KnownNames;
  /** Resolves once the names have been asked for, whatever came of it. */
  readonly asked: Promise<void>;
  /** Reads the columns of a table, if they are not known yet. */
  readonly open: (table: string) => Promise<void>;
  /** The columns that a query would have. */
  readonly describe: (query: string) => Promise<readonly ColumnEntry[]>;
}

/** Beyond this the parser is not asked at every key. */
const LONGEST_STATEMENT = 20_000;
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
    const word = context.matchBefore(WORD);
    const from = word?.from ?? context.pos;
    const before = context.state.sliceDoc(Math.max(0, from - 200), from);
    const [, quotedName, plainName] = QUALIFIER.exec(before) ?? [];
    const qualifier = quotedName ?? plainName;
    const wanted = word !== null || qualifier !== undefined || context.explicit;
    if (!wanted || insideText(context)) {
      return null;
    }
    const statement = currentStatement(context.state);
    const start = statement && statement.start <= context.pos ? statement.start : context.pos;
    const end = Math.max(context.pos, statement?.end ?? 0);
    if (end - start > LONGEST_STATEMENT) {
      return null;
    }
    // A user who types while the page still reads the names is offered them on arrival.
    await source.asked;
    const text = context.state.sliceDoc(start, end);
    const place: Place = { text, offset: context.pos - start, scope: scopeAt(text, from - start) };
    const options =
      qualifier === undefined
        ? await anyName(source, place, text.slice(from - start).startsWith('@'))
        : await columnsOfSource(source, place, qualifier);
    return context.aborted ? null : { from, options, validFor: /^["@\p{L}_][\p{L}\p{N}_$]*$/u };
  };
}

interface Place {
  readonly text: string;
  readonly offset: number;
  readonly scope: Scope;
}

async function anyName(
  source: NameSource,
  place: Place,
  isVariable: boolean,
): Promise<Completion[]> {
  const { scope, text, offset } = place;
  if (isVariable) {
    return scope.variables.map((name) => ({ label: `@${name}`, detail: 'variable' }));
  }
  const { keywords, contexts } = expectedAt(text.slice(0, offset), offset);
  const { tables, functions } = source.names();
  const options: Completion[] = keywords.map((label) => ({ label, boost: -1 }));
  if (contexts.includes('table')) {
    options.push(...scope.commonTables.map((name) => offer(name, 'WITH', 2)));
    options.push(...tables.map(({ name, kind }) => offer(name, KIND_WORDS[kind], 1)));
    options.push(...functions.filter(({ isSource }) => isSource).map(offerCall));
  }
  if (contexts.includes('expression') || contexts.includes('name')) {
    options.push(...(await columnsInReach(source, place)));
  }
  if (contexts.includes('expression')) {
    options.push(...functions.filter(({ isSource }) => !isSource).map(offerCall));
    options.push(...scope.variables.map((name) => ({ label: `@${name}`, detail: 'variable' })));
  }
  if (contexts.includes('type')) {
    options.push(...TYPES.map((label) => ({ label, detail: 'type' })));
  }
  return options;
}

/** Columns of every source of the place, the innermost first; of any table where none is named. */
async function columnsInReach(source: NameSource, place: Place): Promise<Completion[]> {
  const { sources } = place.scope;
  const lists = await Promise.all(sources.map(({ table }) => columnsOf(source, place, table)));
  const found = new Map<string, Completion>();
  lists.forEach((columns, index) => {
    for (const { name, type } of columns) {
      if (!found.has(name)) {
        found.set(name, { ...offer(name, type, 2), info: sources[index]?.table ?? '' });
      }
    }
  });
  const aliases = sources
    .filter(() => sources.length > 1)
    .flatMap(({ alias, table }) => alias ?? table ?? [])
    .map((name) => offer(name, 'source', 1));
  if (found.size > 0) {
    return [...found.values(), ...aliases];
  }
  return [...source.names().columns.map((name) => offer(name, 'column', 1)), ...aliases];
}

/** What may stand behind `alias.` or `table.`. */
async function columnsOfSource(
  source: NameSource,
  place: Place,
  qualifier: string,
): Promise<Completion[]> {
  const is = (name: string | null): boolean => name?.toLowerCase() === qualifier.toLowerCase();
  const meant = place.scope.sources.find(
    ({ alias, table }) => is(alias) || (alias === null && is(table)),
  );
  const columns = await columnsOf(source, place, meant?.table ?? null);
  return columns.map(({ name, type }) => offer(name, type, 1));
}

async function columnsOf(
  source: NameSource,
  { scope, text }: Place,
  table: string | null,
): Promise<readonly ColumnEntry[]> {
  if (table === null) {
    return [];
  }
  const common = scope.commonTables.find((name) => name.toLowerCase() === table.toLowerCase());
  if (common !== undefined) {
    const query = commonTableQuery(text, common);
    return query === undefined ? [] : await source.describe(query);
  }
  const { tables } = source.names();
  const known = tables.find(({ name }) => name.toLowerCase() === table.toLowerCase());
  if (known === undefined) {
    return [];
  }
  await source.open(known.name);
  return source.names().columnsOf(known.name);
}

function insideText(context: CompletionContext): boolean {
  const inside = context.state
    .field(tokens)
    .find((token) => token.start < context.pos && context.pos <= token.end);
  return inside !== undefined && ['string', 'comment', 'number'].includes(inside.kind);
}

/** A function is written with its parenthesis; its signatures are shown beside the list. */
function offerCall({ name, signatures, description }: FunctionEntry): Completion {
  const info = [...signatures, description].join('\n');
  return { label: name, apply: `${name}(`, detail: 'function', info };
}

function offer(name: string, detail: string, boost: number): Completion {
  return { label: name, apply: quoted(name), detail, boost };
}
