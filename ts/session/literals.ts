/**
 * Queries that differ in the values of their WHERE alone are one query with parameters: its tree,
 * its binding and its plan are made once. Only literals that a parameter surely replaces are taken
 * out: those that are compared with something, the ends of BETWEEN and the list of IN.
 */
import { scan, TokenKind, type Tokens, unquote } from '../sql/index.js';

/** A query's text with parameters, and what they are in the text it was made of. */
export interface LiftedQuery {
  readonly text: string;
  /** The types of literals; null for texts, whose type is that of what they are compared with. */
  readonly types: readonly (string | null)[];
  readonly values: readonly string[];
  /** The text around the literals, one part more than there are of these. */
  readonly parts: readonly string[];
}

/** Longer texts and lists hardly come again with other values of the same number. */
const LONGEST_TEXT = 4_096;
const MOST_VALUES = 16;

const COMPARISONS = new Set(['=', '<', '>', '<=', '>=', '<>', '!=']);
/** What ends a WHERE. */
const ENDS = new Set(
  'SAMPLE LATEST GROUP ORDER LIMIT HAVING QUALIFY WINDOW FETCH OFFSET FOR FILL ALIGN PIVOT'.split(
    ' ',
  ),
);
/** What may follow a literal, the end of the text (an empty value) included. */
const AFTER_MARKS = new Set([')', ',', ';', '']);
const AFTER_WORDS = new Set([...ENDS, 'AND', 'OR']);
/** Words in front of a bracket that is not a function's. */
const BEFORE_BRACKETS = new Set(['WHERE', 'AND', 'OR', 'NOT']);
/** Tokens of texts that have parameters of their own, or cannot be read. */
const OTHERS = new Set<TokenKind>([
  TokenKind.Parameter,
  TokenKind.NamedParameter,
  TokenKind.Variable,
  TokenKind.Bad,
]);

const LARGEST_INT = 2_147_483_647;

/** Null where nothing is taken out. */
export function liftLiterals(text: string): LiftedQuery | null {
  if (text.length > LONGEST_TEXT) {
    return null;
  }
  const tokens = scan(text);
  const from = whereOf(tokens);
  return from === null ? null : new Lift(tokens).run(from);
}

/** The token behind the WHERE of a query that has only one, and only one SELECT. */
function whereOf({ kinds, values }: Tokens): number | null {
  if (values[0] !== 'SELECT') {
    return null;
  }
  let where: number | null = null;
  for (let at = 1; at < kinds.length; at += 1) {
    const kind = kinds[at];
    if (kind === undefined || OTHERS.has(kind)) {
      return null;
    }
    const value = values[at];
    if (kind === TokenKind.Word && (value === 'SELECT' || (value === 'WHERE' && where !== null))) {
      return null;
    }
    if (kind === TokenKind.Word && value === 'WHERE') {
      where = at + 1;
    }
  }
  return where;
}

/** One walk over the tokens behind WHERE. */
class Lift {
  private readonly tokens: Tokens;
  private readonly types: (string | null)[] = [];
  private readonly values: string[] = [];
  private readonly parts: string[] = [];
  private text = '';
  /** How far the text is copied. */
  private copied = 0;
  /** For each open bracket: whether it is the list of an IN, or only brackets. */
  private readonly open: ('list' | 'group' | 'other')[] = [];
  constructor(tokens: Tokens) {
    this.tokens = tokens;
  }

  run(from: number): LiftedQuery | null {
    const { text, kinds, values } = this.tokens;
    for (let at = from; at < kinds.length; at += 1) {
      const value = values[at] ?? '';
      if (kinds[at] === TokenKind.Mark) {
        if (!this.mark(at, value)) {
          return null;
        }
      } else if (kinds[at] === TokenKind.Word && ENDS.has(value) && this.open.length === 0) {
        break;
      } else if (this.isCompared(at)) {
        this.literal(at);
      }
    }
    if (this.values.length === 0 || this.values.length > MOST_VALUES) {
      return null;
    }
    const rest = text.slice(this.copied);
    this.parts.push(rest);
    return {
      text: this.text + rest,
      types: this.types,
      values: this.values,
      parts: this.parts,
    };
  }

  /** False where a bracket closes that is not open: the WHERE is within others. */
  private mark(at: number, mark: string): boolean {
    if (mark === '(' || mark === '[' || mark === '{') {
      this.open.push(mark === '(' ? this.bracket(at) : 'other');
    } else if (mark === ')' || mark === ']' || mark === '}') {
      return this.open.pop() !== undefined;
    }
    return true;
  }

  private bracket(at: number): 'list' | 'group' | 'other' {
    const { kinds, values } = this.tokens;
    const before = values[at - 1] ?? '';
    if (kinds[at - 1] === TokenKind.Word) {
      return before === 'IN' ? 'list' : BEFORE_BRACKETS.has(before) ? 'group' : 'other';
    }
    return kinds[at - 1] === TokenKind.Mark && before === '(' ? 'group' : 'other';
  }

  /** Whether what is in front of a literal compares it, within brackets that only group. */
  private isCompared(at: number): boolean {
    const { kinds, values } = this.tokens;
    const inner = this.open.at(-1);
    if (inner === 'other' || this.open.slice(0, -1).some((bracket) => bracket !== 'group')) {
      return false;
    }
    const next = values[at + 1] ?? '';
    if (kinds[at + 1] === TokenKind.Word ? !AFTER_WORDS.has(next) : !AFTER_MARKS.has(next)) {
      return false;
    }
    const before = values[at - 1] ?? '';
    if (inner === 'list') {
      return before === ',' || before === '(';
    }
    if (kinds[at - 1] === TokenKind.Mark) {
      return COMPARISONS.has(before);
    }
    // BETWEEN, a literal, AND: the second literal is three tokens behind the word.
    const isSecondEnd = before === 'AND' && values[at - 3] === 'BETWEEN';
    return isSecondEnd || before === 'IN' || before === 'BETWEEN';
  }

  private literal(at: number): void {
    const { text, kinds, starts, ends } = this.tokens;
    const [start = 0, end = 0] = [starts[at], ends[at]];
    const written = text.slice(start, end);
    const lifted = literalOf(kinds[at], written);
    if (lifted === null) {
      return;
    }
    this.types.push(lifted.type);
    this.values.push(lifted.value);
    const part = text.slice(this.copied, start);
    this.parts.push(part);
    this.text += `${part}$${this.values.length}`;
    this.copied = end;
  }
}

function literalOf(
  kind: TokenKind | undefined,
  written: string,
): { readonly type: string | null; readonly value: string } | null {
  if (kind === TokenKind.String && written.startsWith("'")) {
    // A parameter takes a number for an instant, a text in quotes does not.
    return /^'[-+]?\d+'$/.test(written) ? null : { type: null, value: unquote(written) };
  }
  if (kind === TokenKind.Integer && /^\d{1,18}$/.test(written)) {
    return { type: Number(written) > LARGEST_INT ? 'LONG' : 'INT', value: written };
  }
  if (kind === TokenKind.Float && /^\d+\.\d+$/.test(written)) {
    return { type: 'DOUBLE', value: written };
  }
  return null;
}
