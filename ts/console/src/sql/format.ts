/**
 * Formats SQL: puts clauses on separate lines, breaks long lists and capitalizes keywords. The
 * formatter works on tokens, so it keeps comments and accepts unfinished statements. It changes
 * only whitespace and the case of keywords, and keeps the case if capitals would change the meaning
 * of the statement.
 */
import { parse, print } from '../../../sql/index.js';
import { scan, type Token } from './scanner.js';

const WIDTH = 80;
/** Maximum length of a statement that is kept on one line. */
const SHORT = 60;
const STEP = '  ';

interface FormatToken {
  readonly text: string;
  readonly upper: string;
  readonly isWord: boolean;
  readonly kind: Token['kind'];
  /** True if no whitespace precedes the token. */
  readonly glued: boolean;
  /** True if the token is a sign rather than a binary operator. */
  readonly isSign: boolean;
  /** Number of line breaks before the token in the source. */
  readonly breaks: number;
}

type Item = FormatToken | Group;

interface Group {
  readonly open: FormatToken;
  readonly items: readonly Item[];
  readonly close: FormatToken | undefined;
}

export function format(text: string): string {
  const statements: string[] = [];
  let tokens: FormatToken[] = [];
  let isOver = false;
  const finish = (): void => {
    if (tokens.length > 0) {
      const gap = (tokens[0]?.breaks ?? 0) > 1 && statements.length > 0 ? '\n' : '';
      statements.push(gap + formatStatement(tokens));
      tokens = [];
      isOver = false;
    }
  };
  for (const token of formatTokensOf(text)) {
    const trails = token.kind === 'comment' && token.breaks === 0;
    if (isOver && !trails) {
      finish();
    }
    isOver ||= token.text === ';';
    tokens.push(token);
  }
  finish();
  return statements.length === 0 ? text : `${statements.join('\n')}\n`;
}

function formatTokensOf(text: string): FormatToken[] {
  let end = 0;
  let before: Token | undefined;
  return scan(text).map((token) => {
    const between = text.slice(end, token.start);
    end = token.end;
    const written = text.slice(token.start, token.end);
    const isBehindValue = before !== undefined && endsValue(before, text);
    if (token.kind !== 'comment') {
      before = token;
    }
    return {
      text: written,
      upper: written.toUpperCase(),
      isWord: /^[\p{L}_]/u.test(written) && token.kind !== 'comment',
      kind: token.kind,
      glued: between === '' && token.start > 0,
      isSign: /^[+\-~]$/.test(written) && !isBehindValue,
      breaks: between.split('\n').length - 1,
    };
  });
}

function endsValue({ kind, start, end }: Token, text: string): boolean {
  const closes = /^[)\]*]$/.test(text.slice(start, end));
  return closes || !['operator', 'keyword', 'separator'].includes(kind);
}

/** Converts keywords to upper case, unless that would change how the statement is parsed. */
function formatStatement(tokens: readonly FormatToken[]): string {
  const written = layOut(grouped(tokens), '');
  const capitals = tokens.map((token) =>
    token.kind === 'keyword' ? { ...token, text: token.upper } : token,
  );
  const raised = layOut(grouped(capitals), '');
  return meaning(raised) === meaning(written) ? raised : written;
}

function meaning(statement: string): string | undefined {
  try {
    return print(parse(statement));
  } catch {
    return undefined;
  }
}

/** Converts parentheses to groups; an unclosed group extends to the end. */
function grouped(tokens: readonly FormatToken[]): Item[] {
  const root: Item[] = [];
  const open: { token: FormatToken; items: Item[] }[] = [];
  for (const token of tokens) {
    const items = open.at(-1)?.items ?? root;
    if (token.text === '(') {
      open.push({ token, items: [] });
    } else if (token.text === ')' && open.length > 0) {
      const group = open.pop();
      const outer = open.at(-1)?.items ?? root;
      if (group) {
        outer.push({ open: group.token, items: group.items, close: token });
      }
    } else {
      items.push(token);
    }
  }
  while (open.length > 0) {
    const group = open.pop();
    if (group) {
      const outer = open.at(-1)?.items ?? root;
      outer.push({ open: group.token, items: group.items, close: undefined });
    }
  }
  return root;
}

function isGroup(item: Item): item is Group {
  return 'items' in item;
}

/** Keywords that start a line. If a keyword has a list, one of the listed keywords must follow. */
const CLAUSES: Readonly<Record<string, readonly string[] | true>> = {
  WITH: true,
  DECLARE: true,
  SELECT: true,
  FROM: true,
  WHERE: true,
  GROUP: ['BY'],
  ORDER: ['BY'],
  SAMPLE: ['BY'],
  PARTITION: ['BY'],
  LATEST: ['ON', 'BY'],
  HAVING: true,
  LIMIT: true,
  UNION: true,
  EXCEPT: true,
  INTERSECT: true,
  INSERT: true,
  VALUES: true,
  UPDATE: true,
  SET: true,
  PIVOT: true,
};
const JOIN_KEYWORDS: ReadonlySet<string> = new Set(
  'ASOF CROSS FULL HORIZON INNER JOIN LEFT LT NATURAL OUTER RIGHT SPLICE WINDOW'.split(' '),
);
/** Clauses that are broken before AND and OR instead of after commas. */
const CONDITIONS: ReadonlySet<string> = new Set(['WHERE', 'HAVING', 'ON']);

function wordOf(item: Item | undefined): string {
  return item && !isGroup(item) && item.isWord ? item.upper : '';
}

function startsClause(items: readonly Item[], index: number): boolean {
  const word = wordOf(items[index]);
  const [before, next] = [wordOf(items[index - 1]), wordOf(items[index + 1])];
  if (JOIN_KEYWORDS.has(word) && !JOIN_KEYWORDS.has(before)) {
    return joinsHere(items, index);
  }
  const item = items[index];
  const isKeyword = item !== undefined && !isGroup(item) && item.kind === 'keyword';
  const clause = isKeyword ? CLAUSES[word] : undefined;
  if (clause === undefined || before === 'DISTINCT' || before === 'CREATE') {
    return false;
  }
  return clause === true || clause.includes(next);
}

function joinsHere(items: readonly Item[], index: number): boolean {
  let at = index;
  while (JOIN_KEYWORDS.has(wordOf(items[at]))) {
    if (wordOf(items[at]) === 'JOIN') {
      return true;
    }
    at += 1;
  }
  return false;
}

function layOut(items: readonly Item[], indent: string): string {
  const line = inline(items);
  if (line !== undefined && line.length + indent.length <= SHORT) {
    return indent + line;
  }
  const clauses: Item[][] = [[]];
  items.forEach((item, index) => {
    const isOwnComment = !isGroup(item) && item.kind === 'comment' && item.breaks > 0;
    const last = clauses.at(-1);
    if (last && last.length > 0 && (startsClause(items, index) || isOwnComment)) {
      clauses.push([item]);
    } else {
      last?.push(item);
    }
  });
  return clauses.map((clause) => clauseText(clause, indent)).join('\n');
}

function clauseText(clause: readonly Item[], indent: string): string {
  const line = inline(clause);
  if (line !== undefined && line.length + indent.length <= WIDTH) {
    return indent + line;
  }
  const inner = indent + STEP;
  const head = headLength(clause);
  const members = membersOf(clause.slice(head), CONDITIONS.has(wordOf(clause[0])));
  const lines = members.map((member) => memberText(member, inner));
  if (members.length === 1 || head === 0) {
    const text = [...(head > 0 ? [clause.slice(0, head)] : []), ...members];
    return indent + text.map((member) => memberText(member, indent).trimStart()).join(' ');
  }
  return [indent + (inline(clause.slice(0, head)) ?? ''), ...lines].join('\n');
}

/** Returns the number of items in a clause's head, such as `GROUP BY` or `SELECT DISTINCT`. */
function headLength(clause: readonly Item[]): number {
  let length = 0;
  for (const item of clause) {
    const isHead =
      !isGroup(item) && item.kind === 'keyword' && !/^(?:CASE|CAST|NOT)$/.test(item.upper);
    if (!isHead) {
      break;
    }
    length += 1;
  }
  return length;
}

/** Splits a list after its commas, or a condition before AND and OR. */
function membersOf(items: readonly Item[], isCondition: boolean): Item[][] {
  const members: Item[][] = [[]];
  let between = false;
  for (const item of items) {
    const word = wordOf(item);
    const isComment = !isGroup(item) && item.kind === 'comment';
    const before = members.at(-1)?.at(-1);
    const afterComma = before !== undefined && !isGroup(before) && before.text === ',';
    const starts = isCondition ? /^(?:AND|OR)$/.test(word) && !between : afterComma;
    const behindLine = before !== undefined && !isGroup(before) && isLineComment(before);
    if ((starts && !(isComment && item.breaks === 0)) || behindLine) {
      members.push([item]);
    } else {
      members.at(-1)?.push(item);
    }
    between = word === 'BETWEEN' || (between && word !== 'AND');
  }
  return members.filter((member) => member.length > 0);
}

function memberText(member: readonly Item[], indent: string): string {
  const line = inline(member);
  if (line !== undefined && line.length + indent.length <= WIDTH) {
    return indent + line;
  }
  let text = indent;
  member.forEach((item, index) => {
    text += blankBetween(member[index - 1], item, text.endsWith('\n')) ? ' ' : '';
    text += isGroup(item) ? groupText(item, indent) : item.text;
    if (!isGroup(item) && isLineComment(item) && index < member.length - 1) {
      text += `\n${indent}`;
    }
  });
  return text;
}

function groupText(group: Group, indent: string): string {
  const line = inline([group]);
  if (line !== undefined && line.length + indent.length <= WIDTH) {
    return line;
  }
  const inner = indent + STEP;
  const isQuery = group.items.some((_item, index) => startsClause(group.items, index));
  const body = isQuery
    ? layOut(group.items, inner)
    : membersOf(group.items, false)
        .map((member) => memberText(member, inner))
        .join('\n');
  return `(\n${body}\n${indent}${group.close?.text ?? ''}`;
}

/**
 * Formats all items on one line. Returns `undefined` if a comment or a subquery needs more lines.
 */
function inline(items: readonly Item[]): string | undefined {
  let text = '';
  for (const [index, item] of items.entries()) {
    const gap = text !== '' && blankBetween(items[index - 1], item, false) ? ' ' : '';
    if (isGroup(item)) {
      const inner = inline(item.items);
      const isQuery = item.items.some((_item, at) => startsClause(item.items, at));
      if (inner === undefined || (isQuery && inner.length > SHORT / 2)) {
        return undefined;
      }
      text += `${gap}(${inner}${item.close?.text ?? ''}`;
    } else if (isLineComment(item) && index < items.length - 1) {
      return undefined;
    } else if (item.text.includes('\n')) {
      return undefined;
    } else {
      text += gap + item.text;
    }
  }
  return text;
}

function isLineComment({ kind, text }: FormatToken): boolean {
  return kind === 'comment' && text.startsWith('--');
}

const NO_BLANK_BEFORE = /^(?:[,;.:\])]|::)$/;
const NO_BLANK_BEHIND = /^(?:[.:([]|::)$/;

function blankBetween(before: Item | undefined, item: Item, isLineStart: boolean): boolean {
  if (before === undefined || isLineStart) {
    return false;
  }
  const first = isGroup(item) ? item.open : item;
  const last = isGroup(before) ? before.close : before;
  if (!last || (last.text === '' && first.text === '')) {
    return false;
  }
  if (first.kind === 'comment' || last.kind === 'comment') {
    return true;
  }
  if (/^[,;]$/.test(first.text)) {
    return false;
  }
  if (last.text === ',') {
    return true;
  }
  // No space is inserted where it may change the meaning (`a.b`, `x::int`, `f(1)`, `a[1]`, `-1`).
  const isTight = NO_BLANK_BEFORE.test(first.text) || NO_BLANK_BEHIND.test(last.text);
  const isOpening = first.text === '(' || first.text === '[';
  const isOperator = last.kind === 'operator' || first.kind === 'operator';
  return !(first.glued && (isTight || isOpening || last.isSign || !isOperator));
}
