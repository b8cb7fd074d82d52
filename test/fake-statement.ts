/** Statements for fake databases that understand a few keywords, parsed as clients send them. */
import { SyntaxError_, type Statement, type Tree } from '../ts/sql/index.js';
import { Parser } from '../ts/sql/parser/parser.js';
import {
  parseSessionStatement,
  type SessionStatement,
} from '../ts/sql/statements/session-statement.js';

const NO_GRAMMAR = { expression: none, operand: none, query: none };

function none(parser: Parser): never {
  return parser.fail('no grammar here');
}

/** Returns a statement whose tree contains only the SQL text. */
export function fakeStatement(text: string, session: SessionStatement | null = null): Statement {
  const tree: Tree & { readonly text: string } = {
    text,
    nodes: [{ kind: 'Empty' }],
    spans: [{ start: 0, end: text.length }],
    root: 0,
  };
  return { tree, session };
}

/** Like [`fakeStatement`], but parses session statements. */
export function fakeOrSession(text: string): Statement {
  const session = sessionOf(text);
  return fakeStatement(text, session);
}

/** Returns the session statement in an SQL string; null for other statements. */
export function sessionOf(text: string): SessionStatement | null {
  const parser = new Parser(text, NO_GRAMMAR);
  const session = parseSessionStatement(parser);
  if (session !== null && !parser.atEnd()) {
    throw new SyntaxError_(`unexpected token [${parser.written()}]`, parser.start());
  }
  return session;
}
