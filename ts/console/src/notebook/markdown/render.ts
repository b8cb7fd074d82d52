/**
 * Renders Markdown as DOM elements. The marked library parses the text into tokens, and each kind
 * of token becomes one kind of element. Text becomes text nodes: HTML is displayed literally, and
 * no external content is loaded.
 */
import { Lexer, type Token, type Tokens } from 'marked';
import { fill } from '../../fill.js';
import { texts } from '../../texts.js';

/** Maximum nesting depth. More deeply nested Markdown is shown as source. */
const DEEPEST = 16;
/**
 * Maximum length of rendered text. Longer text is shown as source, because parsing it would block
 * the page.
 */
const MAX_TEXT_LENGTH = 64 * 1024;

export function render(text: string): Node[] {
  if (text.length > MAX_TEXT_LENGTH) {
    return [element('pre', text)];
  }
  try {
    return nodesOf(Lexer.lex(text, { gfm: true }), 0);
  } catch {
    return [element('pre', text)];
  }
}

function nodesOf(tokens: readonly Token[] | undefined, depth: number): Node[] {
  return (tokens ?? []).flatMap((token) =>
    depth > DEEPEST ? [document.createTextNode(token.raw)] : nodeOf(token, depth + 1),
  );
}

const INLINE: Readonly<Record<string, keyof HTMLElementTagNameMap>> = {
  strong: 'strong',
  em: 'em',
  del: 'del',
  blockquote: 'blockquote',
  paragraph: 'p',
};

function nodeOf(token: Token, depth: number): Node[] {
  const { type } = token;
  const inner = (): Node[] => nodesOf((token as { tokens?: Token[] }).tokens, depth);
  const simple = INLINE[type];
  if (simple !== undefined) {
    return [element(simple, ...inner())];
  }
  switch (type) {
    case 'space':
    case 'def':
    case 'checkbox':
      return [];
    case 'heading':
      return [heading(token as Tokens.Heading, inner())];
    case 'list':
      return [list(token as Tokens.List, depth)];
    case 'table':
      return [table(token as Tokens.Table, depth)];
    case 'code':
      return [element('pre', element('code', (token as Tokens.Code).text))];
    case 'codespan':
      return [element('code', (token as Tokens.Codespan).text)];
    case 'hr':
      return [element('hr')];
    case 'br':
      return [element('br')];
    case 'link':
      return [link(token as Tokens.Link, inner())];
    case 'image':
      return [element('em', fill(texts.cells.image, { text: (token as Tokens.Image).text }))];
    case 'text':
    case 'escape': {
      const nodes = inner();
      return nodes.length > 0 ? nodes : [document.createTextNode(plain(token))];
    }
    default:
      return [document.createTextNode(token.raw)];
  }
}

function plain(token: Token): string {
  const { text } = token as { text?: string };
  return entities(text ?? token.raw);
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00A0',
};

function entities(text: string): string {
  const entity = /&(?:(amp|lt|gt|quot|apos|nbsp)|#(\d{1,7}|x[\da-f]{1,6}));/gi;
  return text.replace(entity, (whole: string, name?: string, code?: string) => {
    const point = Number(code?.replace(/^x/i, '0x'));
    const isPoint = point > 0 && point <= 0x10_ff_ff;
    return ENTITIES[name ?? ''] ?? (isPoint ? String.fromCodePoint(point) : whole);
  });
}

/** Creates a heading. Notebook headings start one level below the page's own heading. */
function heading({ depth }: Tokens.Heading, inner: readonly Node[]): HTMLElement {
  const level = Math.min(6, depth + 1) as 2 | 3 | 4 | 5 | 6;
  const created = element(`h${level}`, ...inner);
  created.className = `level-${depth}`;
  return created;
}

function list(token: Tokens.List, depth: number): HTMLElement {
  const items = token.items.map((item) => {
    const mark = item.task ? [item.checked === true ? '☑ ' : '☐ '] : [];
    return element('li', ...mark, ...nodesOf(item.tokens, depth));
  });
  const created = element(token.ordered ? 'ol' : 'ul', ...items);
  if (created instanceof HTMLOListElement && typeof token.start === 'number') {
    created.start = token.start;
  }
  return created;
}

function table({ header, rows }: Tokens.Table, depth: number): HTMLElement {
  const row = (kind: 'th' | 'td', cells: readonly Tokens.TableCell[]): HTMLElement =>
    element('tr', ...cells.map(({ tokens }) => element(kind, ...nodesOf(tokens, depth))));
  const body = element('tbody', ...rows.map((cells) => row('td', cells)));
  return element('table', element('thead', row('th', header)), body);
}

const SCHEMES: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:']);

/** Creates a link to a web page or mail address. Any other URL is shown as text. */
function link({ href }: Tokens.Link, inner: readonly Node[]): HTMLElement {
  const address = URL.canParse(href) ? new URL(href) : undefined;
  if (!address || !SCHEMES.has(address.protocol)) {
    return element('span', ...inner);
  }
  const created = element('a', ...inner);
  created.href = address.href;
  created.target = '_blank';
  created.rel = 'noopener noreferrer nofollow';
  return created;
}

function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  ...inner: readonly (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const created = document.createElement(name);
  created.append(...inner);
  return created;
}
