/**
 * Keys, indexes and conditions in CREATE TABLE, ALTER TABLE and CREATE INDEX, as in other
 * databases. The engine stores them only for the catalog.
 */
import type {
  AlterAction,
  ConstraintKind,
  ConstraintNode,
  Name,
  NodeId,
  OptionValue,
  ReferenceAction,
  ReferenceNode,
  TypeName,
} from '../ast.generated.js';
import { addCall } from '../expressions/add-call.js';
import type { Parser } from '../parser/parser.js';
import { TokenKind } from '../lexer/lexer.js';
import { enclosedText, ifNotExists } from './table-clauses.js';

/** A table's constraints, in source order. */
export class Constraints {
  readonly all: ConstraintNode[] = [];

  /** Parses a table constraint; returns false if none starts here. */
  takeTableConstraint(p: Parser): boolean {
    const start = p.start();
    const isNamed = p.at('CONSTRAINT') && CONSTRAINT_WORDS.has(p.value(2));
    let name: Name | null = null;
    if (isNamed) {
      p.advance();
      name = p.name('constraint name expected');
    }
    if (p.take('PRIMARY', 'KEY')) {
      return this.#add(p, start, name, 'PrimaryKey', keyColumns(p));
    }
    if (p.at('UNIQUE') && (isNamed || p.value(1) === '(')) {
      p.advance();
      return this.#add(p, start, name, 'Unique', keyColumns(p));
    }
    if (p.take('FOREIGN', 'KEY')) {
      const columns = keyColumns(p);
      p.expect('REFERENCES');
      return this.#add(p, start, name, 'ForeignKey', columns, references(p));
    }
    return takeCheck(p) && this.#add(p, start, name, 'Check', []);
  }

  /** Parses a column constraint; returns false if none starts here. */
  takeColumnConstraint(p: Parser, column: Name): boolean {
    const start = p.start();
    let name: Name | null = null;
    if (p.take('CONSTRAINT')) {
      name = p.name('constraint name expected');
    }
    if (p.take('PRIMARY', 'KEY')) {
      return this.#add(p, start, name, 'PrimaryKey', [column]);
    }
    if (p.take('UNIQUE')) {
      return this.#add(p, start, name, 'Unique', [column]);
    }
    if (p.take('REFERENCES')) {
      return this.#add(p, start, name, 'ForeignKey', [column], references(p));
    }
    return takeCheck(p) && this.#add(p, start, name, 'Check', []);
  }

  #add(
    p: Parser,
    start: number,
    name: Name | null,
    constraint: ConstraintKind,
    columns: Name[],
    references: ReferenceNode | null = null,
  ): true {
    p.countTerm(this.all.length, start);
    const span = { start, end: p.lastEnd() };
    const if_not_exists = false;
    this.all.push({ name, constraint, columns, references, if_not_exists, span });
    deferral(p);
    return true;
  }

  /** Returns the constraints as ALTER TABLE actions. */
  actions(): AlterAction[] {
    return this.all.map((constraint) => ({ action: 'AddConstraint', constraint }));
  }

  /** The primary key's columns. */
  get primaryColumns(): readonly string[] {
    return this.all.flatMap(({ constraint, columns }) =>
      constraint === 'PrimaryKey' ? columns.map(({ text }) => text.toLowerCase()) : [],
    );
  }
}

function takeCheck(p: Parser): boolean {
  if (!p.at('CHECK', '(')) {
    return false;
  }
  p.advance();
  enclosedText(p);
  return true;
}

/** Parses a table, its columns and the referential actions, after REFERENCES. */
function references(p: Parser): ReferenceNode {
  const table = p.tableName('table name expected');
  const columns = p.at('(') ? keyColumns(p) : [];
  let on_update: ReferenceAction = 'NoAction';
  let on_delete: ReferenceAction = 'NoAction';
  if (p.take('MATCH')) {
    p.name("'simple' or 'full' expected");
  }
  while (p.at('ON') && (p.value(1) === 'DELETE' || p.value(1) === 'UPDATE')) {
    const isDelete = p.value(1) === 'DELETE';
    p.advance(2);
    const action = referenceAction(p);
    if (isDelete) {
      on_delete = action;
    } else {
      on_update = action;
    }
  }
  return { table, columns, on_update, on_delete };
}

function referenceAction(p: Parser): ReferenceAction {
  if (p.take('SET', 'NULL')) {
    return 'SetNull';
  }
  if (p.take('SET', 'DEFAULT')) {
    return 'SetDefault';
  }
  if (p.take('CASCADE')) {
    return 'Cascade';
  }
  if (p.take('RESTRICT')) {
    return 'Restrict';
  }
  if (p.take('NO', 'ACTION')) {
    return 'NoAction';
  }
  return p.fail("'cascade', 'restrict', 'no action', 'set null' or 'set default' expected");
}

const CONSTRAINT_WORDS: ReadonlySet<string> = new Set(['PRIMARY', 'UNIQUE', 'FOREIGN', 'CHECK']);

function keyColumns(p: Parser): Name[] {
  return p.parenthesised(() => p.columnName('column name expected'));
}

/**
 * Skips `NOT DEFERRABLE` or `DEFERRABLE INITIALLY DEFERRED`, which have no effect because the
 * constraint is never checked.
 */
function deferral(p: Parser): void {
  if (!p.take('NOT', 'DEFERRABLE')) {
    p.take('DEFERRABLE');
  }
  if (!p.take('INITIALLY', 'DEFERRED')) {
    p.take('INITIALLY', 'IMMEDIATE');
  }
}

const SERIALS: ReadonlyMap<string, string> = new Map([
  ['SERIAL', 'INT'],
  ['BIGSERIAL', 'LONG'],
  ['SMALLSERIAL', 'SHORT'],
  ['SERIAL4', 'INT'],
  ['SERIAL8', 'LONG'],
  ['SERIAL2', 'SHORT'],
]);

/** Returns whether the type is a serial type. */
export function isSerial({ name }: TypeName): boolean {
  return SERIALS.has(name.toUpperCase());
}

/** Returns the integer type of a serial type. */
export function serialType({ name }: TypeName): string {
  return SERIALS.get(name.toUpperCase()) ?? name;
}

const START = /\bstart\s+(?:with\s+)?(-?\d{1,19})\b/i;
const INCREMENT = /\bincrement\s+(?:by\s+)?([1-9]\d{0,18})\b/i;
/** IDENTITY options that are implemented or that correspond to the existing behaviour. */
const KNOWN_NUMBERING = [
  /sequence\s+name\s+\S+/i,
  START,
  INCREMENT,
  /(?:no\s+(?:minvalue|maxvalue|cycle)\s*)+/i,
  /cache\s+\d+/i,
];

interface Identity {
  readonly options: readonly OptionValue[];
  /** The first value and the increment; empty if both are 1. */
  readonly numbers: readonly string[];
}

/**
 * Parses `GENERATED { ALWAYS | BY DEFAULT } AS IDENTITY [(…)]`. Options that have no effect are
 * stored as a column option.
 */
export function takeIdentity(p: Parser): Identity {
  const start = p.start();
  p.expect('GENERATED');
  if (!p.take('ALWAYS')) {
    p.expect('BY', "'always' or 'by default' expected");
    p.expect('DEFAULT');
  }
  p.expect('AS');
  p.expect('IDENTITY');
  if (!p.at('(')) {
    return { options: [], numbers: [] };
  }
  const value = enclosedText(p);
  const first = START.exec(value.text)?.[1] ?? '1';
  const step = INCREMENT.exec(value.text)?.[1] ?? '1';
  const numbers = first === '1' && step === '1' ? [] : [first, step];
  const unknownOptions = KNOWN_NUMBERING.reduce(
    (text, known) => text.replace(known, ''),
    value.text,
  );
  const name = { text: 'IDENTITY', quoted: false, span: { start, end: p.lastEnd() } };
  return { options: unknownOptions.trim() === '' ? [] : [{ name, value }], numbers };
}

/**
 * Returns the default expression of a serial or identity column, which generates the next number.
 */
export function nextNumber(p: Parser, start: number, numbers: readonly string[]): NodeId {
  const name = { text: 'next_id', quoted: false, span: { start, end: p.lastEnd() } };
  const given = numbers.map((text) => integer(p, text, start));
  return addCall(p, name, start, given);
}

function integer(p: Parser, text: string, start: number): NodeId {
  const digits = p.add({ kind: 'Integer', text: text.replace('-', '') }, start, start);
  return text.startsWith('-')
    ? p.add({ kind: 'Unary', operator: 'Minus', operand: digits }, start, start, digits)
    : digits;
}

/**
 * Parses `ADD [CONSTRAINT c] PRIMARY KEY (…)` and similar actions; returns `null` for anything
 * else.
 */
export function addedConstraint(p: Parser): AlterAction[] | null {
  const constraints = new Constraints();
  return constraints.takeTableConstraint(p) ? constraints.actions() : null;
}

/** Parses `CREATE [UNIQUE] INDEX [CONCURRENTLY] [IF NOT EXISTS] [name] ON t [USING m] (…) …`. */
export function parseIndex(p: Parser, start: number): NodeId {
  const kind: ConstraintKind = p.take('UNIQUE') ? 'UniqueIndex' : 'Index';
  p.expect('INDEX');
  p.take('CONCURRENTLY');
  const if_not_exists = ifNotExists(p);
  const name = p.at('ON') ? null : p.name("index name or 'on' expected");
  p.expect('ON');
  p.take('ONLY');
  const table = p.tableName('table name expected');
  if (p.take('USING')) {
    p.name('index method expected');
  }
  const columns = indexedColumns(p);
  while (p.at('INCLUDE', '(') || p.at('WITH', '(')) {
    p.advance();
    enclosedText(p);
  }
  const filter = p.take('WHERE') ? p.grammar.expression(p) : null;
  const span = { start, end: p.lastEnd() };
  const constraint = { name, constraint: kind, columns, references: null, if_not_exists, span };
  const actions: AlterAction[] = [{ action: 'AddConstraint', constraint }];
  const node = { kind: 'AlterTable', table, if_exists: false, actions } as const;
  return p.add(node, start, p.lastEnd(), filter);
}

/**
 * Parses `(a, b DESC NULLS LAST)` and returns the columns. The result is empty if one of them is an
 * expression.
 */
function indexedColumns(p: Parser): Name[] {
  const start = p.start();
  const columns: Name[] = [];
  let isPlain = true;
  p.expect('(');
  do {
    const isName = p.kind() === TokenKind.Word || p.kind() === TokenKind.Quoted;
    isPlain &&= isName && p.value(1) !== '(';
    if (isPlain) {
      p.countTerm(columns.length, start);
      columns.push(p.columnName('column name expected'));
    }
    isPlain = takeColumnOptions(p) && isPlain;
  } while (p.take(','));
  p.expect(')');
  return isPlain ? columns : [];
}

/** Parses an index column's order and operators. Returns false if the column is an expression. */
function takeColumnOptions(p: Parser): boolean {
  let isPlain = true;
  while (!p.at(',') && !p.at(')')) {
    if (p.at('(')) {
      enclosedText(p);
      isPlain = false;
    } else {
      isPlain &&= p.kind() === TokenKind.Word;
      if (p.atEnd()) {
        p.fail("')' expected");
      }
      p.advance();
    }
  }
  return isPlain;
}
