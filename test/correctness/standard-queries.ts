/**
 * Random standard SQL queries that have the same meaning in both dialects. Intentional differences
 * are avoided: comparisons with null (two-valued in Tidemark), `/` and `%` of negative integers,
 * sums of strings, one-character strings (a CHAR in Tidemark), rounding of halves, casts of doubles
 * to integers.
 */
import type { Random } from '../torture/harness.js';
import { type Kind, type Relation, relationOf, type Term, WORDS } from './standard-tables.js';

interface Query {
  readonly sql: string;
  /** Whether the row order is significant. */
  readonly ordered: boolean;
}

const COMPARISONS = ['=', '<>', '<', '<=', '>', '>='];

/**
 * Generates queries over a set of tables. Each query has its own generator, so aliases stay short.
 */
export class StandardQueries {
  readonly #random: Random;
  readonly #tables: readonly string[];
  #aliases = 0;

  constructor(random: Random, tables: readonly string[]) {
    this.#random = random;
    this.#tables = tables;
  }

  next(): Query {
    this.#aliases = 0;
    return this.#random.pick([
      () => this.#rows(),
      () => this.#rows(),
      () => this.#groups(),
      () => this.#groups(),
      () => this.#groupingSets(),
      () => this.#orderedWindows(),
      () => this.#windows(),
      () => this.#windows(),
      () => this.#setOperation(),
      () => this.#nested(),
      () => this.#distinct(),
      () => this.#distinctOn(),
      () => this.#using(),
      () => this.#lateral(),
    ])();
  }

  #pick(...texts: readonly string[]): string {
    return this.#random.pick(texts);
  }

  #chance(fraction: number): boolean {
    return this.#random.next() < fraction;
  }

  #alias(): string {
    this.#aliases += 1;
    return `q${this.#aliases}`;
  }

  #table(): Relation {
    return relationOf(this.#random.pick(this.#tables), this.#alias());
  }

  // ---- relations ----

  #relation(): Relation {
    const first = this.#table();
    if (this.#chance(0.5)) {
      return first;
    }
    const second = this.#table();
    const identity = [...first.identity, ...second.identity];
    if (this.#chance(0.1)) {
      return {
        sql: `${first.sql} CROSS JOIN ${second.sql}`,
        terms: [...first.terms, ...second.terms],
        identity,
      };
    }
    const kind = this.#pick('JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN');
    const on = this.#joinCondition(first, second);
    const left = kind === 'RIGHT JOIN' || kind === 'FULL JOIN' ? nulled(first) : first;
    const right = kind === 'LEFT JOIN' || kind === 'FULL JOIN' ? nulled(second) : second;
    return {
      sql: `${first.sql} ${kind} ${second.sql} ON ${on}`,
      terms: [...left.terms, ...right.terms],
      identity,
    };
  }

  #joinCondition(first: Relation, second: Relation): string {
    const column = this.#pick('id', 'i', 'g', 'v', 's', 'd');
    const [left, right] = [first, second].map(({ terms }) =>
      terms.find(({ sql }) => sql.endsWith(`.${column}`)),
    );
    return `${left?.sql ?? ''} = ${right?.sql ?? ''}`;
  }

  // ---- expressions ----

  #column(terms: readonly Term[], kind: Kind, nullable: boolean): Term | undefined {
    const fitting = terms.filter((term) => term.kind === kind && (nullable || !term.nullable));
    return fitting.length === 0 ? undefined : this.#random.pick(fitting);
  }

  #literal(kind: Kind): string {
    switch (kind) {
      case 'int':
        return String(this.#random.between(0, 12));
      case 'double':
        return (this.#random.between(0, 40) / 4).toFixed(2);
      case 'text':
        return `'${this.#random.pick(WORDS)}'`;
    }
  }

  #leaf(terms: readonly Term[], kind: Kind, nullable: boolean): Term {
    const column = this.#chance(0.75) ? this.#column(terms, kind, nullable) : undefined;
    return column ?? { sql: this.#literal(kind), kind, nullable: false };
  }

  #expression(terms: readonly Term[], kind: Kind, nullable: boolean, depth = 2): Term {
    if (depth === 0 || this.#chance(0.35)) {
      return this.#leaf(terms, kind, nullable);
    }
    const inner = (of: Kind, mayBeNull = nullable): Term =>
      this.#expression(terms, of, mayBeNull, depth - 1);
    const make = (sql: string, ...parts: readonly Term[]): Term => ({
      sql,
      kind,
      nullable: parts.some((part) => part.nullable),
    });
    const choice = (): Term => {
      const [yes, no] = [inner(kind), inner(kind)];
      const when = this.#predicate(terms, 1);
      return make(`CASE WHEN ${when} THEN ${yes.sql} ELSE ${no.sql} END`, yes, no);
    };
    const fallback = (): Term => {
      const [a, b] = [this.#leaf(terms, kind, true), inner(kind, false)];
      return make(`coalesce(${a.sql}, ${b.sql})`, b);
    };
    const forms: Readonly<Record<Kind, readonly (() => Term)[]>> = {
      int: [
        choice,
        fallback,
        () => this.#binary(inner('int'), this.#pick('+', '-', '*'), inner('int')),
        () => map(inner('int'), (a) => `abs(${a})`),
        () => map(inner('int'), (a) => `abs(${a}) % 7`),
        () => ({ ...map(inner('text', false), (a) => `length(${a})`), kind: 'int' }),
      ],
      double: [
        choice,
        fallback,
        () => this.#binary(inner('double'), this.#pick('+', '-', '*'), inner('double')),
        () => map(inner('double'), (a) => `${this.#pick('abs', 'floor', 'ceil')}(${a})`),
        () => ({ ...map(inner('int'), (a) => `CAST(${a} AS DOUBLE)`), kind: 'double' }),
        () => map(inner('double'), (a) => `(${a}) / 4.0`),
      ],
      text: [
        choice,
        fallback,
        () => map(inner('text'), (a) => `${this.#pick('upper', 'lower')}(${a})`),
        () => this.#binary(inner('text', false), '||', inner('text', false)),
        () => map(inner('text'), (a) => `substring(${a}, 1, 3)`),
        () => ({ ...map(inner('int', false), (a) => `CAST(${a} AS VARCHAR)`), kind: 'text' }),
      ],
    };
    return this.#random.pick(forms[kind])();
  }

  #binary(a: Term, operator: string, b: Term): Term {
    return {
      sql: `(${a.sql} ${operator} ${b.sql})`,
      kind: a.kind,
      nullable: a.nullable || b.nullable,
    };
  }

  #kind(): Kind {
    return this.#random.pick<Kind>(['int', 'double', 'text']);
  }

  #predicate(terms: readonly Term[], depth = 2): string {
    if (depth > 0 && this.#chance(0.4)) {
      const inner = (): string => this.#predicate(terms, depth - 1);
      return this.#random.pick([
        () => `(${inner()} AND ${inner()})`,
        () => `(${inner()} OR ${inner()})`,
        () => `NOT (${inner()})`,
      ])();
    }
    const kind = this.#kind();
    const term = (): string => this.#expression(terms, kind, false, 1).sql;
    const any = this.#random.pick(terms);
    return this.#random.pick([
      () => `${term()} ${this.#random.pick(COMPARISONS)} ${term()}`,
      () => `${term()} ${this.#random.pick(COMPARISONS)} ${term()}`,
      () => `${any.sql} IS ${this.#pick('NULL', 'NOT NULL')}`,
      () =>
        `${term()} ${this.#pick('IN', 'NOT IN')} ` +
        `(${this.#literal(kind)}, ${this.#literal(kind)})`,
      () => this.#between(terms),
      () =>
        `${this.#leaf(terms, 'text', false).sql} LIKE ` +
        `'${this.#pick('%a%', 'a%', '%a', 'be_a', '%')}'`,
    ])();
  }

  #between(terms: readonly Term[]): string {
    const low = this.#random.between(-5, 5);
    const high = low + this.#random.between(0, 9);
    return `${this.#expression(terms, 'int', false, 1).sql} BETWEEN ${low} AND ${high}`;
  }

  #subQueryPredicate(terms: readonly Term[]): string {
    const inner = this.#table();
    const kind = this.#random.pick<Kind>(['int', 'text']);
    const [outer, own] = [this.#column(terms, kind, false), this.#column(inner.terms, kind, false)];
    if (outer === undefined || own === undefined) {
      return '1 = 1';
    }
    const where = this.#predicate(inner.terms, 0);
    return this.#random.pick([
      () =>
        `${outer.sql} ${this.#pick('IN', 'NOT IN')} ` +
        `(SELECT ${own.sql} FROM ${inner.sql} WHERE ${where})`,
      () =>
        `${this.#pick('EXISTS', 'NOT EXISTS')} ` +
        `(SELECT 1 FROM ${inner.sql} WHERE ${own.sql} = ${outer.sql} AND ${where})`,
    ])();
  }

  /** Sub-queries occur only in WHERE, next to and below AND, OR and NOT. */
  #where(terms: readonly Term[]): string {
    const plain = this.#chance(0.7) ? this.#predicate(terms) : undefined;
    if (!this.#chance(0.15)) {
      return plain === undefined ? '' : ` WHERE ${plain}`;
    }
    const nested = this.#subQueryPredicate(terms);
    if (plain === undefined) {
      return ` WHERE ${nested}`;
    }
    const both = `${plain} AND ${nested}`;
    return ` WHERE ${this.#pick(both, `${nested} OR ${plain}`, `NOT (${both})`)}`;
  }

  // ---- queries ----

  #selected(terms: readonly Term[], kinds: readonly Kind[]): readonly Term[] {
    return kinds.map((kind) => this.#expression(terms, kind, true));
  }

  #kinds(): readonly Kind[] {
    return Array.from({ length: this.#random.between(1, 4) }, () => this.#kind());
  }

  #rows(): Query {
    const { sql, terms, identity } = this.#relation();
    const items = named(this.#selected(terms, this.#kinds()));
    const where = this.#where(terms);
    const total = identity.every((column) =>
      terms.some((term) => term.sql === column && !term.nullable),
    );
    if (!total || this.#chance(0.5)) {
      return { sql: `SELECT ${items} FROM ${sql}${where}`, ordered: false };
    }
    const direction = this.#pick('', ' DESC');
    const order = identity.map((column) => `${column}${direction}`).join(', ');
    const limit = this.#chance(0.5) ? ` LIMIT ${this.#random.between(0, 9)}` : '';
    return { sql: `SELECT ${items} FROM ${sql}${where} ORDER BY ${order}${limit}`, ordered: true };
  }

  #distinct(): Query {
    const { sql, terms } = this.#relation();
    const items = named(this.#selected(terms, this.#kinds()));
    return { sql: `SELECT DISTINCT ${items} FROM ${sql}${this.#where(terms)}`, ordered: false };
  }

  /** The first row of each key, in an ordering without ties. */
  #distinctOn(): Query {
    const { sql, terms, identity } = this.#table();
    const key = this.#column(terms, this.#kind(), false)?.sql ?? '';
    const items = named([
      { sql: key, kind: 'int', nullable: false },
      ...this.#selected(terms, ['int', 'text']),
    ]);
    const order = `${key}, ${identity[0] ?? ''}${this.#pick('', ' DESC')}`;
    const where = this.#where(terms);
    return {
      sql: `SELECT DISTINCT ON (${key}) ${items} FROM ${sql}${where} ORDER BY ${order}`,
      ordered: false,
    };
  }

  #using(): Query {
    const [first, second] = [this.#table(), this.#table()];
    const items = named(this.#selected([...first.terms, ...second.terms], this.#kinds()));
    const where = this.#where([...first.terms, ...second.terms]);
    const column = this.#pick('id', 'g', 'v');
    return {
      sql: `SELECT ${items} FROM ${first.sql} JOIN ${second.sql} USING (${column})${where}`,
      ordered: false,
    };
  }

  /** A sub-query over another table that is evaluated for each row. */
  #lateral(): Query {
    const [outer, inner] = [this.#table(), this.#table()];
    const column = this.#pick('g', 'id', 'i');
    const [a, b] = [outer, inner].map(({ sql }) => `${sql.split(' ')[1] ?? ''}.${column}`);
    const number = this.#leaf(inner.terms, 'int', true).sql;
    const aggregate = this.#pick(
      'count(*)',
      `max(${number})`,
      `sum(${number})`,
      `count(${number})`,
    );
    const alias = this.#alias();
    const join = this.#pick('CROSS JOIN LATERAL', 'LEFT JOIN LATERAL');
    const on = join === 'LEFT JOIN LATERAL' ? ' ON true' : '';
    return {
      sql:
        `SELECT ${outer.identity[0] ?? ''} c0, ${alias}.x c1 FROM ${outer.sql} ${join} ` +
        `(SELECT ${aggregate} x FROM ${inner.sql} WHERE ${a ?? ''} = ${b ?? ''}) ${alias}${on}` +
        this.#where(outer.terms),
      ordered: false,
    };
  }

  #aggregate(terms: readonly Term[]): Term {
    const number = this.#expression(terms, this.#random.pick<Kind>(['int', 'double']), true, 1);
    const any = this.#expression(terms, this.#kind(), true, 1);
    const sql = this.#random.pick([
      () => 'count(*)',
      () => `count(${any.sql})`,
      () => `count(DISTINCT ${this.#leaf(terms, this.#kind(), true).sql})`,
      () => `${this.#pick('sum', 'avg')}(${number.sql})`,
      () => `${this.#pick('min', 'max')}(${any.sql})`,
      () =>
        this.#pick('stddev_samp', 'var_pop', 'var_samp', 'stddev_pop') +
        `(${this.#leaf(terms, 'double', true).sql})`,
    ])();
    const filter = this.#chance(0.15) ? ` FILTER (WHERE ${this.#predicate(terms, 1)})` : '';
    return { sql: `${sql}${filter}`, kind: 'double', nullable: true };
  }

  #aggregates(terms: readonly Term[]): readonly Term[] {
    return Array.from({ length: this.#random.between(1, 3) }, () => this.#aggregate(terms));
  }

  /**
   * Keys are columns or expressions over columns. They are never constants, because a number would
   * be a position.
   */
  #keys(terms: readonly Term[]): readonly Term[] {
    return Array.from({ length: this.#random.between(0, 2) }, () => {
      const column = this.#column(terms, this.#kind(), true) ?? this.#random.pick(terms);
      return this.#chance(0.3) && column.kind === 'int'
        ? map(column, (sql) => `abs(${sql})`)
        : column;
    });
  }

  #groups(): Query {
    const { sql, terms } = this.#relation();
    const keys = this.#keys(terms);
    const items = named([...keys, ...this.#aggregates(terms)]);
    const group = keys.length === 0 ? '' : ` GROUP BY ${keys.map((key) => key.sql).join(', ')}`;
    const having =
      keys.length > 0 && this.#chance(0.3)
        ? ` HAVING count(*) > ${this.#random.between(0, 3)}`
        : '';
    return {
      sql: `SELECT ${items} FROM ${sql}${this.#where(terms)}${group}${having}`,
      ordered: false,
    };
  }

  #groupingSets(): Query {
    const { sql, terms } = this.#table();
    const [a, b] = ['g', 'v'].map(
      (name) => terms.find((term) => term.sql.endsWith(`.${name}`))?.sql ?? '',
    );
    const sets = this.#random.pick([
      `ROLLUP(${a}, ${b})`,
      `CUBE(${a}, ${b})`,
      `GROUPING SETS ((${a}), (${b}), ())`,
      `GROUPING SETS ((${a}, ${b}), (${b}))`,
    ]);
    const aggregates = this.#aggregates(terms).map((term, index) => `${term.sql} a${index}`);
    const grouped =
      `SELECT ${a} k0, ${b} k1, count(*) n, ${aggregates.join(', ')} FROM ${sql}` +
      `${this.#where(terms)} GROUP BY ${sets}`;
    if (this.#chance(0.3)) {
      const having = this.#pick(
        `${a} = ${this.#literal('int')}`,
        `${b} IS NOT NULL`,
        'count(*) > 1',
      );
      return { sql: `${grouped} HAVING ${having}`, ordered: false };
    }
    const above = this.#chance(0.6) ? ` WHERE ${this.#aboveGroups()}` : '';
    return { sql: `SELECT * FROM (${grouped}) ${this.#alias()}${above}`, ordered: false };
  }

  /** A condition on the result of grouping sets, in which `k0` and `k1` may be null. */
  #aboveGroups(): string {
    const one = (): string =>
      this.#random.pick([
        `k0 = ${this.#literal('int')}`,
        `k1 = ${this.#literal('text')}`,
        `k0 IS ${this.#pick('NULL', 'NOT NULL')}`,
        `k1 IS ${this.#pick('NULL', 'NOT NULL')}`,
        `n > ${this.#random.between(0, 4)}`,
        '1 = 0',
      ]);
    return this.#chance(0.4) ? `${one()} ${this.#pick('AND', 'OR')} ${one()}` : one();
  }

  /** Windows over non-null values. The result of one window orders the rows of the outer query. */
  #orderedWindows(): Query {
    const { sql, terms, identity } = this.#table();
    const id = identity[0] ?? '';
    const frame = (): string => {
      const low = this.#random.between(0, 4);
      return this.#pick(
        `ROWS BETWEEN ${low} PRECEDING AND CURRENT ROW`,
        `ROWS BETWEEN ${low} PRECEDING AND ${this.#random.between(0, 3)} FOLLOWING`,
        'ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING',
        'ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW',
      );
    };
    const key = this.#column(terms, this.#random.pick<Kind>(['int', 'text']), true)?.sql ?? id;
    const windows = Array.from({ length: this.#random.between(1, 4) }, () => {
      const partition = this.#chance(0.6) ? `PARTITION BY ${key} ` : '';
      const call = this.#pick(
        'count(*)',
        `count(${key})`,
        `min(${id})`,
        `max(${id})`,
        `sum(${id})`,
      );
      return `${call} OVER (${partition}ORDER BY ${id}${this.#pick('', ' DESC')} ${frame()})`;
    });
    const items = windows.map((window, index) => `${window} c${index + 1}`).join(', ');
    const by = `c${this.#random.between(1, windows.length)}${this.#pick('', ' DESC')}`;
    const limit = this.#chance(0.5) ? ` LIMIT ${this.#random.between(0, 9)}` : '';
    return {
      sql:
        `SELECT * FROM (SELECT ${id} c0, ${items} FROM ${sql}${this.#where(terms)}) ` +
        `${this.#alias()} ORDER BY ${by}, c0${limit}`,
      ordered: true,
    };
  }

  #window(terms: readonly Term[], id: string): Term {
    const key = this.#column(terms, this.#random.pick<Kind>(['int', 'text']), true)?.sql ?? id;
    const partition = this.#chance(0.6) ? `PARTITION BY ${key} ` : '';
    const order = `ORDER BY ${id}${this.#pick('', ' DESC')}`;
    const over = `${partition}${order}`;
    const number = this.#column(terms, this.#random.pick<Kind>(['int', 'double']), true)?.sql ?? id;
    const rows = this.#random.pick([
      '',
      ' ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW',
      ` ROWS BETWEEN ${this.#random.between(1, 4)} PRECEDING AND CURRENT ROW`,
      ' ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING',
      ' ROWS BETWEEN 4 PRECEDING AND 2 PRECEDING',
      ' ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING',
    ]);
    const sql = this.#random.pick([
      () => `${this.#pick('row_number', 'rank', 'dense_rank')}() OVER (${over})`,
      () => `${this.#pick('lag', 'lead')}(${number}, ${this.#pick('1', '3')}) OVER (${over})`,
      () => `${this.#pick('sum', 'avg', 'min', 'max', 'count')}(${number}) OVER (${over}${rows})`,
      () => `${this.#pick('first_value', 'last_value')}(${number}) OVER (${over}${rows})`,
      () => `sum(${number}) OVER (${partition.trim()})`,
      () => `${this.#pick('ntile(3)', 'cume_dist()', 'percent_rank()')} OVER (${over})`,
    ])();
    return { sql, kind: 'double', nullable: true };
  }

  #windows(): Query {
    const { sql, terms, identity } = this.#table();
    const id = identity[0] ?? '';
    const count = this.#random.between(1, 3);
    const windows = Array.from({ length: count }, () => this.#window(terms, id));
    const key: Term = { sql: id, kind: 'int', nullable: false };
    return {
      sql: `SELECT ${named([key, ...windows])} FROM ${sql}${this.#where(terms)}`,
      ordered: false,
    };
  }

  #setOperation(): Query {
    const kinds = this.#kinds();
    const branch = (): string => {
      const { sql, terms } = this.#relation();
      return `SELECT ${named(this.#selected(terms, kinds))} FROM ${sql}${this.#where(terms)}`;
    };
    const operator = this.#pick('UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT');
    return { sql: `${branch()} ${operator} ${branch()}`, ordered: false };
  }

  /** A nested query: as a CTE, in FROM, or as a scalar in the select list. */
  #nested(): Query {
    const { sql, terms } = this.#relation();
    const kinds = this.#kinds();
    const selected = this.#selected(terms, kinds);
    const inner = `SELECT ${named(selected)} FROM ${sql}${this.#where(terms)}`;
    const alias = this.#alias();
    const columns = selected.map(({ kind, nullable }, index) => ({
      sql: `${alias}.c${index}`,
      kind,
      nullable,
    }));
    const outer = `SELECT ${named(this.#selected(columns, this.#kinds()))} FROM`;
    const where = this.#where(columns);
    return this.#random.pick([
      () => ({ sql: `WITH ${alias} AS (${inner}) ${outer} ${alias}${where}`, ordered: false }),
      () => ({ sql: `${outer} (${inner}) ${alias}${where}`, ordered: false }),
      () => this.#scalarSubQuery(),
    ])();
  }

  #scalarSubQuery(): Query {
    const [outer, inner] = [this.#table(), this.#table()];
    const [a, b] = [outer, inner].map(
      ({ terms }) => this.#random.pick(terms.filter(({ sql }) => /\.(id|g)$/.test(sql))).sql,
    );
    const aggregate = this.#random.pick([
      'count(*)',
      `max(${inner.terms[1]?.sql ?? ''})`,
      `sum(${inner.terms[3]?.sql ?? ''})`,
    ]);
    const correlated = this.#chance(0.6) ? ` WHERE ${a ?? ''} = ${b ?? ''}` : '';
    return {
      sql:
        `SELECT ${outer.identity[0] ?? ''} c0, ` +
        `(SELECT ${aggregate} FROM ${inner.sql}${correlated}) c1 ` +
        `FROM ${outer.sql}${this.#where(outer.terms)}`,
      ordered: false,
    };
  }
}

function nulled(relation: Relation): Relation {
  return { ...relation, terms: relation.terms.map((term) => ({ ...term, nullable: true })) };
}

function map(term: Term, write: (sql: string) => string): Term {
  return { ...term, sql: write(term.sql) };
}

/** Returns the terms as a select list with a unique alias for each: `c0`, `c1`, … */
function named(terms: readonly Term[]): string {
  return terms.map(({ sql }, index) => `${sql} c${index}`).join(', ');
}
