/**
 * Constraints of CREATE TABLE and ALTER TABLE, and CREATE INDEX, as other databases have them. Keys
 * cross as options of the table, what has no effect crosses as a word with a notice.
 */
import type { AlterAction, Name, NodeId, OptionValue, TypeName } from '../ast.generated.js';
import { addCall } from '../expressions/add-call.js';
import type { Parser } from '../parser/parser.js';
import { enclosedText, ifNotExists } from './table-clauses.js';

/** A key that a table is to have: its columns. */
interface Key {
  readonly isPrimary: boolean;
  readonly columns: readonly Name[];
}

/** What a table's constraints say together. */
export class Constraints {
  readonly #keys: Key[] = [];
  #isUnenforced = false;
  #span = { start: 0, end: 0 };

  /** A constraint among the columns; false where none begins. */
  takeOfTable(p: Parser): boolean {
    const start = p.start();
    const isNamed = p.at('CONSTRAINT') && CONSTRAINT_WORDS.has(p.value(2));
    if (isNamed) {
      p.advance(2);
    }
    if (p.take('PRIMARY', 'KEY')) {
      this.#keys.push({ isPrimary: true, columns: keyColumns(p) });
    } else if (p.at('UNIQUE') && (isNamed || p.value(1) === '(')) {
      p.advance();
      this.#keys.push({ isPrimary: false, columns: keyColumns(p) });
    } else if (p.take('FOREIGN', 'KEY')) {
      keyColumns(p);
      p.expect('REFERENCES');
      this.#references(p);
    } else if (!this.#takeCheck(p)) {
      return false;
    }
    return this.#noted(p, start);
  }

  /** A constraint of one column; false where none begins. */
  takeOfColumn(p: Parser, column: Name): boolean {
    const start = p.start();
    if (p.at('CONSTRAINT')) {
      p.advance();
      p.name('constraint name expected');
    }
    if (p.take('PRIMARY', 'KEY')) {
      this.#keys.push({ isPrimary: true, columns: [column] });
    } else if (p.take('UNIQUE')) {
      this.#keys.push({ isPrimary: false, columns: [column] });
    } else if (p.take('REFERENCES')) {
      this.#references(p);
    } else if (!this.#takeCheck(p)) {
      return false;
    }
    return this.#noted(p, start);
  }

  #takeCheck(p: Parser): boolean {
    if (!p.at('CHECK', '(')) {
      return false;
    }
    p.advance();
    enclosedText(p);
    this.#isUnenforced = true;
    return true;
  }

  #noted(p: Parser, start: number): true {
    this.#span = { start, end: p.lastEnd() };
    deferral(p);
    return true;
  }

  /** The options of the table: the columns of its key, and that other constraints are idle. */
  options(): OptionValue[] {
    const primary = this.#keys.find(({ isPrimary }) => isPrimary);
    const key = primary ?? (this.#keys.length === 1 ? this.#keys[0] : undefined);
    const option = (text: string, value: Name | null): OptionValue => {
      return { name: { text, quoted: false, span: this.#span }, value };
    };
    const columns = key?.columns.map((column) => option('PRIMARY KEY', column)) ?? [];
    const isIdle = this.#isUnenforced || this.#keys.some((one) => one !== key);
    return isIdle ? [...columns, option('CONSTRAINT', null)] : columns;
  }

  /** For ALTER TABLE: that they have no effect; nothing where there are none. */
  actions(): AlterAction[] {
    if (this.#keys.length === 0 && !this.#isUnenforced) {
      return [];
    }
    const words = ['ADD', this.primaryColumns.length > 0 ? 'PRIMARY' : 'CONSTRAINT'];
    return [{ action: 'Other', words, span: this.#span }];
  }

  /** The columns of the primary key. */
  get primaryColumns(): readonly string[] {
    return this.#keys.flatMap(({ isPrimary, columns }) =>
      isPrimary ? columns.map(({ text }) => text.toLowerCase()) : [],
    );
  }

  /** After REFERENCES: a table, its columns, and what follows a change of them. */
  #references(p: Parser): void {
    p.tableName('table name expected');
    if (p.at('(')) {
      keyColumns(p);
    }
    while (p.at('ON') && (p.value(1) === 'DELETE' || p.value(1) === 'UPDATE')) {
      p.advance(2);
      if (!p.take('NO', 'ACTION') && !p.take('SET', 'NULL') && !p.take('SET', 'DEFAULT')) {
        p.name("'cascade', 'restrict', 'no action' or 'set null' expected");
      }
    }
    this.#isUnenforced = true;
  }
}

const CONSTRAINT_WORDS: ReadonlySet<string> = new Set(['PRIMARY', 'UNIQUE', 'FOREIGN', 'CHECK']);

function keyColumns(p: Parser): Name[] {
  return p.parenthesised(() => p.columnName('column name expected'));
}

/** `NOT DEFERRABLE`, `DEFERRABLE INITIALLY DEFERRED`: nothing is checked, now or later. */
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

/** Whether a column of this type numbers its rows. */
export function isSerial({ name }: TypeName): boolean {
  return SERIALS.has(name.toUpperCase());
}

/** The type of its numbers. */
export function serialType({ name }: TypeName): string {
  return SERIALS.get(name.toUpperCase()) ?? name;
}

/** `GENERATED { ALWAYS | BY DEFAULT } AS IDENTITY [(…)]`; false where it does not begin. */
export function takeIdentity(p: Parser): boolean {
  if (!p.take('GENERATED')) {
    return false;
  }
  if (!p.take('ALWAYS')) {
    p.expect('BY', "'always' or 'by default' expected");
    p.expect('DEFAULT');
  }
  p.expect('AS');
  p.expect('IDENTITY');
  if (p.at('(')) {
    enclosedText(p);
  }
  return true;
}

/** The default of a column that numbers its rows. */
export function nextNumber(p: Parser, start: number): NodeId {
  const name = { text: 'next_id', quoted: false, span: { start, end: p.lastEnd() } };
  return addCall(p, name, start, []);
}

/** `ADD [CONSTRAINT c] PRIMARY KEY (…)` and the like: an action without effect, or null. */
export function addedConstraint(p: Parser): AlterAction[] | null {
  const constraints = new Constraints();
  return constraints.takeOfTable(p) ? constraints.actions() : null;
}

/** `CREATE [UNIQUE] INDEX [CONCURRENTLY] [IF NOT EXISTS] [name] ON t [USING m] (…) …`. */
export function parseIndex(p: Parser, start: number): NodeId {
  p.take('UNIQUE');
  p.expect('INDEX');
  p.take('CONCURRENTLY');
  ifNotExists(p);
  if (!p.at('ON')) {
    p.name("index name or 'on' expected");
  }
  p.expect('ON');
  p.take('ONLY');
  const table = p.tableName('table name expected');
  if (p.take('USING')) {
    p.name('index method expected');
  }
  enclosedText(p);
  while (p.at('INCLUDE', '(') || p.at('WITH', '(')) {
    p.advance();
    enclosedText(p);
  }
  const filter = p.take('WHERE') ? p.grammar.expression(p) : null;
  const span = { start, end: p.lastEnd() };
  const actions: AlterAction[] = [{ action: 'Other', words: ['CREATE', 'INDEX'], span }];
  return p.add({ kind: 'AlterTable', table, actions }, start, p.lastEnd(), filter);
}
