/**
 * Hides passwords and tokens in statements from users who can see other users' statements.
 *
 * The syntax tree locates them, because the parser recognises a password regardless of quotes,
 * comments and line ends. In SQL text that cannot be parsed, everything that may be a password is
 * hidden.
 */
import {
  type AccessStatement,
  type Name,
  parse,
  scan,
  TokenKind,
  type Tokens,
} from '../sql/index.js';

/** SQL text without these words contains no secrets. */
const MENTIONED = /password|\btoken\b|tdm_/i;
const TOKEN = /["'`]?tdm_[\w-]{10,}["'`]?/g;
const MASK = "'****'";
/** Only statements with one of these words can set a password. */
const MAKERS: ReadonlySet<string> = new Set(['CREATE', 'ALTER', 'DROP']);

interface Span {
  readonly start: number;
  readonly end: number;
}

/** Masks each password, and every string that looks like a token. */
export function withoutSecrets(text: string): string {
  if (!MENTIONED.test(text)) {
    return text;
  }
  const tokens = scan(text);
  const ofTree = tokens.values.some((word) => MAKERS.has(word)) ? spansOfTree(text) : [];
  const isUnread = ofTree === null || tokens.kinds.includes(TokenKind.Bad);
  const spans = [...(ofTree ?? []), ...spansOfWords(tokens, isUnread)];
  spans.sort((a, b) => a.start - b.start);
  let shown = '';
  let from = 0;
  for (const { start, end } of spans) {
    if (start >= from) {
      shown += text.slice(from, start) + MASK;
      from = end;
    }
  }
  return (shown + text.slice(from)).replace(TOKEN, MASK);
}

/** Secrets found through the syntax tree; `null` if the SQL text cannot be parsed. */
function spansOfTree(text: string): readonly Span[] | null {
  try {
    const { nodes } = parse(text);
    return nodes.flatMap((node) => (node.kind === 'Access' ? secretsOf(node.access) : []));
  } catch {
    return null;
  }
}

function secretsOf(access: AccessStatement): readonly Span[] {
  const names: (Name | null)[] = [];
  if (access.statement === 'Create' && access.password?.password === 'Given') {
    names.push(access.password.value);
  }
  if (access.statement === 'Alter') {
    const { change } = access;
    if (change.change === 'SetPassword' && change.to.password === 'Given') {
      names.push(change.to.value);
    } else if (change.change === 'DropToken') {
      names.push(change.value);
    }
  }
  return names.flatMap((name) => (name === null ? [] : [name.span]));
}

/**
 * Returns the positions of the values after PASSWORD, `PASSWORD =` and TOKEN TYPE REST. With
 * `isUnread`, the text cannot be parsed, so everything from the first such value to the end is
 * hidden.
 */
function spansOfWords({ kinds, values, starts, ends, text }: Tokens, isUnread: boolean): Span[] {
  const spans: Span[] = [];
  for (let index = 0; index < kinds.length - 1; index += 1) {
    const at = secretAfter(values, index);
    const start = at === null ? undefined : starts[at];
    if (at === null || start === undefined || kinds[at] === TokenKind.End) {
      continue;
    }
    if (isUnread) {
      return [...spans, { start, end: text.length }];
    }
    const end = ends[at];
    if (end !== undefined && (kinds[at] === TokenKind.String || kinds[at] === TokenKind.Quoted)) {
      spans.push({ start, end });
    }
  }
  return spans;
}

/** Index of the secret that follows the word at `index`. */
function secretAfter(values: readonly string[], index: number): number | null {
  const word = values[index];
  if (word === 'PASSWORD') {
    return values[index + 1] === '=' ? index + 2 : index + 1;
  }
  const isRestToken =
    word === 'REST' && values[index - 1] === 'TYPE' && values[index + 1] !== 'WITH';
  return isRestToken ? index + 1 : null;
}
