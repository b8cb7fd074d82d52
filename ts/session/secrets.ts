/**
 * Passwords and tokens in statements, hidden from users who see the text of others.
 *
 * The tree says where they are: the parser knows a password whatever quotes, comments and
 * line ends are around it. A text that cannot be read hides all that may be one.
 */
import {
  type AccessStatement,
  type Name,
  parse,
  scan,
  TokenKind,
  type Tokens,
} from '../sql/index.js';

/** Texts without these words hold no secrets. */
const MENTIONED = /password|\btoken\b|tdm_/i;
const TOKEN = /["'`]?tdm_[\w-]{10,}["'`]?/g;
const MASK = "'****'";
/** Without one of these words no statement sets a password. */
const MAKERS: ReadonlySet<string> = new Set(['CREATE', 'ALTER', 'DROP']);

interface Span {
  readonly start: number;
  readonly end: number;
}

/** The text with a mask for each password, and for everything that looks like a token. */
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

/** Null where the text cannot be read. */
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
 * What follows PASSWORD, `PASSWORD =` and TOKEN TYPE REST. `isUnread`: the parser cannot say
 * what it is, so it is hidden whatever it is, and so is all that follows.
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

/** The index of the secret that the word at `index` announces. */
function secretAfter(values: readonly string[], index: number): number | null {
  const word = values[index];
  if (word === 'PASSWORD') {
    return values[index + 1] === '=' ? index + 2 : index + 1;
  }
  const isRest = word === 'REST' && values[index - 1] === 'TYPE' && values[index + 1] !== 'WITH';
  return isRest ? index + 1 : null;
}
