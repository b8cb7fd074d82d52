/** Statements of the databases that answer a few words: read as clients send them. */
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

/** A tree that is the text itself. */
export function fakeStatement(text: string, session: SessionStatement | null = null): Statement {
  const tree: Tree & { readonly text: string } = {
    text,
    nodes: [{ kind: 'Empty' }],
    spans: [{ start: 0, end: text.length }],
    root: 0,
  };
  return { tree, session };
}

/** The same, but for the statements of a connection, which are read as they are. */
export function fakeOrSession(text: string): Statement {
  const session = sessionOf(text);
  return fakeStatement(text, session);
}

/** The statement of a connection that a text is; null for all others. */
export function sessionOf(text: string): SessionStatement | null {
  const parser = new Parser(text, NO_GRAMMAR);
  const session = parseSessionStatement(parser);
  if (session !== null && !parser.atEnd()) {
    throw new SyntaxError_(`unexpected token [${parser.written()}]`, parser.start());
  }
  return session;
}
