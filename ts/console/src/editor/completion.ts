/**
 * Completion: the parser says which words may follow and what kind of name is wanted, the schema
 * says which names there are.
 */
import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete';
import { expectedAt } from '../../../sql/index.js';
import { type FunctionEntry, quoted } from '../schema/model.js';
import { currentStatement, tokens } from './text.js';

export interface KnownNames {
  readonly tables: readonly string[];
  readonly columns: readonly string[];
  readonly functions: readonly FunctionEntry[];
}

/** Beyond this the parser is not asked at every key. */
const LONGEST_STATEMENT = 20_000;

export function completions(
  names: () => KnownNames,
): (context: CompletionContext) => CompletionResult | null {
  return (context) => {
    const word = context.matchBefore(/["\p{L}_][\p{L}\p{N}_$]*$/u);
    if ((!word && !context.explicit) || insideText(context)) {
      return null;
    }
    const statement = currentStatement(context.state);
    const start = statement && statement.start <= context.pos ? statement.start : context.pos;
    if (context.pos - start > LONGEST_STATEMENT) {
      return null;
    }
    const { keywords, contexts } = expectedAt(
      context.state.sliceDoc(start, context.pos),
      context.pos - start,
    );
    const { tables, columns, functions } = names();
    const options: Completion[] = keywords.map((label) => ({ label, boost: -1 }));
    if (contexts.includes('table')) {
      options.push(...tables.map((name) => offer(name, 'table')));
      options.push(...functions.filter(({ isSource }) => isSource).map(offerCall));
    }
    if (contexts.includes('expression') || contexts.includes('name')) {
      options.push(...columns.map((name) => offer(name, 'column')));
    }
    if (contexts.includes('expression')) {
      options.push(...functions.filter(({ isSource }) => !isSource).map(offerCall));
    }
    return { from: word?.from ?? context.pos, options, validFor: /^["\p{L}_][\p{L}\p{N}_$]*$/u };
  };
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

function offer(name: string, detail: string): Completion {
  return { label: name, apply: quoted(name), detail, boost: 1 };
}
