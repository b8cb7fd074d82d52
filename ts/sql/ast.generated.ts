/**
 * The tree of a statement. Generated from crates/ast by `npm run generate`; do not edit.
 *
 * A node is named by its index in `Tree.nodes`; children come before their parents.
 */

/** Index of a node in `Tree.nodes`. */
export type NodeId = number;

export type Tree = {
  /**
   * All nodes; children precede their parents.
   */
  nodes: Array<Node>;
  /**
   * The span of each node; has the same length as `nodes`.
   */
  spans: Array<Span>;
  /**
   * The statement's root node.
   */
  root: number;
};

export type Node =
  | { kind: 'Null' }
  | { kind: 'Boolean'; value: boolean }
  | { kind: 'Integer'; text: string }
  | { kind: 'Float'; text: string }
  | { kind: 'Decimal'; text: string }
  | { kind: 'String'; value: string }
  | { kind: 'Long256'; text: string }
  | { kind: 'Geohash'; text: string }
  | { kind: 'Duration'; text: string }
  | { kind: 'TypedString'; type_name: TypeName; value: string }
  | { kind: 'Column'; path: Array<Name> }
  | { kind: 'Star'; qualifier: Name | null; exclude: Array<Name>; replace: Array<SelectItem> }
  | { kind: 'Parameter'; index: number }
  | { kind: 'NamedParameter'; name: Name }
  | { kind: 'Variable'; name: Name }
  | { kind: 'Unary'; operator: UnaryOperator; operand: number }
  | { kind: 'Binary'; operator: BinaryOperator; left: number; right: number; operator_span: Span }
  | { kind: 'Logical'; operator: LogicalOperator; operands: Array<number> }
  | { kind: 'Concat'; operands: Array<number>; operator_span: Span }
  | { kind: 'IsNull'; operand: number; negated: boolean }
  | {
      kind: 'Between';
      operand: number;
      low: number;
      high: number;
      negated: boolean;
      operator_span: Span;
    }
  | {
      kind: 'InList';
      operand: number;
      items: Array<number>;
      bare: boolean;
      negated: boolean;
      operator_span: Span;
    }
  | { kind: 'InQuery'; operand: number; query: number; negated: boolean; operator_span: Span }
  | { kind: 'Within'; operand: number; items: Array<number>; operator_span: Span }
  | { kind: 'Cast'; operand: number; type_name: TypeName; double_colon: boolean }
  | { kind: 'Case'; operand: number | null; branches: Array<CaseBranch>; otherwise: number | null }
  | ({ kind: 'Call' } & CallNode)
  | { kind: 'Array'; items: Array<number> }
  | { kind: 'Index'; operand: number; selectors: Array<IndexSelector> }
  | { kind: 'Subquery'; query: number }
  | { kind: 'Exists'; query: number }
  | {
      kind: 'Query';
      declarations: Array<Declaration>;
      with: Array<Cte>;
      /**
       * Select, `SetOperation`, Values, Show or another Query.
       */
      body: number;
      order_by: Array<OrderItem>;
      limit: Limit | null;
    }
  | ({ kind: 'Select' } & SelectNode)
  | { kind: 'SetOperation'; operator: SetOperator; all: boolean; left: number; right: number }
  | { kind: 'Values'; rows: ValuesBlock }
  | { kind: 'Table'; name: Name; alias: Name | null; timestamp: Name | null }
  | {
      kind: 'TableFunction';
      call: number;
      alias: Name | null;
      columns: Array<Name>;
      timestamp: Name | null;
      ordinality: boolean;
    }
  | { kind: 'Derived'; query: number; alias: Name | null; timestamp: Name | null; lateral: boolean }
  | {
      kind: 'Join';
      join: JoinKind;
      left: number;
      right: number;
      on: JoinOn | null;
      tolerance: AsofTolerance | null;
      keyword_span: Span;
    }
  | ({ kind: 'CreateTable' } & CreateTableNode)
  | ({ kind: 'Insert' } & InsertNode)
  | ({ kind: 'Update' } & UpdateNode)
  | ({ kind: 'Delete' } & DeleteNode)
  | { kind: 'Drop'; what: ViewKind; names: Array<Name>; if_exists: boolean }
  | { kind: 'DropAllTables' }
  | { kind: 'DropIndex'; names: Array<Name>; if_exists: boolean }
  | {
      kind: 'Truncate';
      tables: Array<Name>;
      if_exists: boolean;
      keep_symbols: boolean;
      /**
       * Whether RESTART IDENTITY is given: sequences restart.
       */
      restart_identity: boolean;
      /**
       * Whether CASCADE is given: tables with foreign keys to these tables are also truncated.
       */
      cascade: boolean;
    }
  | { kind: 'Rename'; table: Name; to: Name; if_exists: boolean }
  | { kind: 'AlterTable'; table: Name; if_exists: boolean; actions: Array<AlterAction> }
  | {
      kind: 'CreateView';
      what: ViewKind;
      name: Name;
      query: number;
      query_text: string;
      if_not_exists: boolean;
      or_replace: boolean;
      options: Array<OptionValue>;
      /**
       * Materialized view clauses; `None` for other views.
       */
      material: MaterialClauses | null;
      /**
       * Live view clauses; `None` for other views.
       */
      live: LiveClauses | null;
    }
  | { kind: 'AlterView'; view: Name; action: ViewAction }
  | { kind: 'AlterLiveView'; view: Name; suspend: boolean }
  | { kind: 'RefreshView'; view: Name; mode: RefreshMode }
  | { kind: 'CompileView'; view: Name }
  | { kind: 'Access'; access: AccessStatement }
  | { kind: 'Copy'; copy: CopyStatement }
  | { kind: 'Backup'; backup: BackupStatement }
  | { kind: 'Show'; subject: ShowSubject }
  | { kind: 'Explain'; stage: ExplainStage; analyze: boolean; statement: number }
  | { kind: 'Session'; words: Array<string> }
  | { kind: 'Check'; table: Name | null }
  | { kind: 'Recover'; table: Name; skip: boolean }
  | { kind: 'CancelQuery'; id: number }
  | { kind: 'Empty' };

export type Span = {
  /**
   * Offset of the first UTF-16 unit.
   */
  start: number;
  /**
   * Offset after the last UTF-16 unit.
   */
  end: number;
};

export type Name = {
  /**
   * The identifier without quotes, in its original letter case.
   */
  text: string;
  /**
   * Whether the identifier was quoted.
   */
  quoted: boolean;
  /**
   * The identifier's span in the SQL text, including quotes.
   */
  span: Span;
};

export type TypeName = {
  /**
   * The type name as written: `double`, `VARCHAR`, `geohash`.
   */
  name: string;
  /**
   * Arguments in parentheses as written: `["10", "2"]`, `["5c"]`.
   */
  arguments: Array<string>;
  /**
   * Number of `[]` pairs after the name.
   */
  dimensions: number;
  /**
   * The type's span in the SQL text.
   */
  span: Span;
};

export type UnaryOperator = 'Minus' | 'Plus' | 'BitNot' | 'Not';

export type BinaryOperator =
  | 'Add'
  | 'Subtract'
  | 'Multiply'
  | 'Divide'
  | 'Modulo'
  | 'BitAnd'
  | 'BitOr'
  | 'BitXor'
  | 'Equal'
  | 'NotEqual'
  | 'Less'
  | 'LessOrEqual'
  | 'Greater'
  | 'GreaterOrEqual'
  | 'Matches'
  | 'NotMatches'
  | 'Like'
  | 'NotLike'
  | 'ILike'
  | 'NotILike'
  | 'ContainedBy'
  | 'ContainedByOrEqual'
  | 'Contains'
  | 'ContainsOrEqual';

export type LogicalOperator = 'And' | 'Or';

export type CaseBranch = {
  /**
   * The condition, or the value compared with the operand.
   */
  when: number;
  /**
   * The result.
   */
  then: number;
};

export type CallNode = {
  /**
   * Name as written.
   */
  name: Name;
  /**
   * Arguments; `count(*)` has a single `Star`.
   */
  arguments: Array<number>;
  /**
   * Whether DISTINCT is given: `f(DISTINCT …)`.
   */
  distinct: boolean;
  /**
   * `f(… ORDER BY …)`.
   */
  order_by: Array<OrderItem>;
  /**
   * `FILTER (WHERE …)`.
   */
  filter: number | null;
  /**
   * Whether IGNORE NULLS is given; RESPECT NULLS is the default.
   */
  ignore_nulls: boolean;
  /**
   * `OVER (…)` or `OVER name`.
   */
  over: WindowSpec | null;
};

export type WindowSpec = {
  /**
   * `OVER name`, or the base name inside the parentheses.
   */
  name: Name | null;
  /**
   * PARTITION BY clause.
   */
  partition_by: Array<number>;
  /**
   * ORDER BY clause.
   */
  order_by: Array<OrderItem>;
  /**
   * The frame clause; `None` if absent.
   */
  frame: Frame | null;
  /**
   * ANCHOR clause, which only a named window can have.
   */
  anchor: Anchor | null;
};

export type Anchor = {
  /**
   * The event that starts a period.
   */
  period: AnchorPeriod;
  /**
   * The clause's span in the SQL text.
   */
  span: Span;
};

export type AnchorPeriod =
  { by: 'Daily'; time: Name; zone: Name | null } | { by: 'Expression'; value: number };

export type Frame = {
  /**
   * ROWS, RANGE, GROUPS or CUMULATIVE.
   */
  mode: FrameMode;
  /**
   * Lower bound.
   */
  start: FrameBound;
  /**
   * Upper bound; `None` means CURRENT ROW.
   */
  end: FrameBound | null;
  /**
   * Whether EXCLUDE CURRENT ROW is given.
   */
  exclude_current_row: boolean;
  /**
   * The frame's span in the SQL text.
   */
  span: Span;
};

export type FrameMode = 'Rows' | 'Range' | 'Groups' | 'Cumulative';

export type FrameBound =
  | { bound: 'UnboundedPreceding' }
  | { bound: 'Preceding'; value: number; unit: string | null }
  | { bound: 'CurrentRow' }
  | { bound: 'Following'; value: number; unit: string | null }
  | { bound: 'UnboundedFollowing' };

export type IndexSelector =
  { selector: 'Item'; index: number } | { selector: 'Slice'; low: number; high: number | null };

export type Declaration = {
  /**
   * Name without the `@`.
   */
  name: Name;
  /**
   * The value: an expression, or a Query node.
   */
  value: number;
  /**
   * Whether OVERRIDABLE is given in a view's query.
   */
  overridable: boolean;
};

export type Cte = {
  /**
   * The name.
   */
  name: Name;
  /**
   * Column names in parentheses; empty if none are given.
   */
  columns: Array<Name>;
  /**
   * A Query node.
   */
  query: number;
  /**
   * Whether WITH RECURSIVE allows the query to reference itself.
   */
  recursive: boolean;
};

export type SelectNode = {
  /**
   * Whether DISTINCT is given.
   */
  distinct: boolean;
  /**
   * DISTINCT ON (…) expressions.
   */
  distinct_on: Array<number>;
  /**
   * The select list; for the short form `t WHERE …`, a single `Star`.
   */
  items: Array<SelectItem>;
  /**
   * Table, `TableFunction`, Derived or Join.
   */
  from: number | null;
  /**
   * WHERE condition.
   */
  filter: number | null;
  /**
   * LATEST ON clause.
   */
  latest_on: LatestOn | null;
  /**
   * SAMPLE BY clause.
   */
  sample_by: SampleBy | null;
  /**
   * GROUP BY expressions. `ROLLUP(…)` and `CUBE(…)` are calls with those names. `GROUPING SETS
   * ((a), ())` is a call named `GROUPING SETS` whose arguments are calls named `ROW`.
   */
  group_by: Array<number>;
  /**
   * Whether GROUP BY ALL is given: every item without an aggregate is a key, as in a query that
   * has aggregates but no GROUP BY.
   */
  group_by_all: boolean;
  /**
   * HAVING condition.
   */
  having: number | null;
  /**
   * Windows defined by WINDOW name AS (…).
   */
  windows: Array<NamedWindow>;
  /**
   * QUALIFY condition, which filters rows after window functions.
   */
  qualify: number | null;
  /**
   * PIVOT clause.
   */
  pivot: PivotNode | null;
  /**
   * The hint: the content of a comment that follows SELECT and starts with a plus sign.
   */
  hint: string | null;
};

export type SelectItem = {
  /**
   * An expression or `Star`.
   */
  expression: number;
  /**
   * The alias.
   */
  alias: Name | null;
};

export type LatestOn = {
  /**
   * The timestamp column.
   */
  timestamp: number | null;
  /**
   * The keys.
   */
  keys: Array<number>;
  /**
   * The clause's span in the SQL text.
   */
  span: Span;
};

export type SampleBy = {
  /**
   * A Duration node, a Variable node or another expression.
   */
  interval: number;
  /**
   * FROM bound of the sampled range.
   */
  from: number | null;
  /**
   * TO.
   */
  to: number | null;
  /**
   * FILL list; empty when there is no FILL clause.
   */
  fill: Array<Fill>;
  /**
   * ALIGN TO; `None` if absent.
   */
  align: SampleAlign | null;
  /**
   * The clause's span in the SQL text.
   */
  span: Span;
};

export type Fill =
  | { fill: 'None'; span: Span }
  | { fill: 'Null'; span: Span }
  | { fill: 'Prev'; of: Name | null; span: Span }
  | { fill: 'Linear'; span: Span }
  | { fill: 'Constant'; value: number };

export type SampleAlign =
  | { align: 'FirstObservation' }
  | { align: 'Calendar'; time_zone: number | null; offset: number | null };

export type OrderItem = {
  /**
   * Expression, position or alias.
   */
  expression: number;
  /**
   * Whether DESC is given.
   */
  descending: boolean;
  /**
   * NULLS FIRST or NULLS LAST, if given.
   */
  nulls: NullsOrder | null;
};

export type NullsOrder = 'First' | 'Last';

export type Limit = {
  /**
   * The first number; `None` in `LIMIT ,n`.
   */
  first: number | null;
  /**
   * The number after the comma.
   */
  second: number | null;
  /**
   * OFFSET value.
   */
  offset: number | null;
  /**
   * The clause's span in the SQL text.
   */
  span: Span;
};

export type NamedWindow = {
  /**
   * The name.
   */
  name: Name;
  /**
   * The body.
   */
  spec: WindowSpec;
};

export type JoinKind =
  | { join: 'Inner' }
  | { join: 'Left' }
  | { join: 'Right' }
  | { join: 'Full' }
  | { join: 'Cross' }
  | { join: 'Comma' }
  | { join: 'Asof' }
  | { join: 'Lt' }
  | { join: 'Splice' }
  | { join: 'Window'; low: FrameBound; high: FrameBound; include_prevailing: boolean }
  | {
      join: 'Horizon';
      from: number | null;
      to: number | null;
      step: number | null;
      list: Array<number>;
      alias: Name | null;
    };

export type JoinOn =
  | { on: 'Expression'; condition: number }
  | { on: 'Columns'; columns: Array<Name> }
  | { on: 'Using'; columns: Array<Name> };

export type AsofTolerance = {
  /**
   * A Duration node.
   */
  interval: number;
  /**
   * The clause's span in the SQL text.
   */
  span: Span;
};

export type PivotNode = {
  /**
   * Aggregates with their aliases.
   */
  aggregates: Array<SelectItem>;
  /**
   * FOR columns and their values. If the only value is a Query node, that sub-query supplies the
   * values.
   */
  axes: Array<[number, Array<SelectItem>]>;
  /**
   * GROUP BY inside the pivot.
   */
  group_by: Array<number>;
};

export type SetOperator = 'Union' | 'Except' | 'Intersect';

export type CreateTableNode = {
  /**
   * The new table's name.
   */
  name: Name;
  /**
   * IF NOT EXISTS.
   */
  if_not_exists: boolean;
  /**
   * Column definitions. Empty with `like`, and with `query` unless casts are given.
   */
  columns: Array<ColumnDefinition>;
  /**
   * The table named in `(LIKE other)`.
   */
  like: Name | null;
  /**
   * AS (query): a Query node.
   */
  query: number | null;
  /**
   * CAST(column AS type) after AS (query).
   */
  casts: Array<[Name, TypeName]>;
  /**
   * TIMESTAMP(column).
   */
  timestamp: Name | null;
  /**
   * PARTITION BY unit, as written.
   */
  partition_by: Name | null;
  /**
   * WAL (true) or BYPASS WAL (false), if given.
   */
  wal: boolean | null;
  /**
   * DEDUP UPSERT KEYS columns.
   */
  dedup_keys: Array<Name>;
  /**
   * PRIMARY KEY, UNIQUE, FOREIGN KEY and CHECK constraints, at table and column level.
   */
  constraints: Array<ConstraintNode>;
  /**
   * TTL as written, `30d` or `4 WEEKS`, with its span.
   */
  ttl: Name | null;
  /**
   * STORAGE POLICY clause.
   */
  policy: PolicyStages | null;
  /**
   * WITH options such as `maxUncommittedRows` and `o3MaxLag`, IN VOLUME, and index clauses.
   */
  options: Array<OptionValue>;
};

export type ColumnDefinition = {
  /**
   * The column's name.
   */
  name: Name;
  /**
   * The column's type.
   */
  type_name: TypeName;
  /**
   * SYMBOL CAPACITY, as written.
   */
  symbol_capacity: Name | null;
  /**
   * `false` if NOCACHE is given.
   */
  symbol_cache: boolean | null;
  /**
   * Whether INDEX is given.
   */
  indexed: boolean;
  /**
   * Whether NOT NULL is given.
   */
  not_null: boolean;
  /**
   * DEFAULT expression.
   */
  default: number | null;
  /**
   * Index or file format options: `INDEX CAPACITY n`, `INDEX TYPE t`, `INCLUDE (…)`, `PARQUET
   * (…)`. The value is the content of the parentheses.
   */
  options: Array<OptionValue>;
};

export type ConstraintNode = {
  /**
   * Name after CONSTRAINT or CREATE INDEX.
   */
  name: Name | null;
  /**
   * Kind of the constraint.
   */
  constraint: ConstraintKind;
  /**
   * The constraint's columns; empty for CHECK and for an index on expressions.
   */
  columns: Array<Name>;
  /**
   * A foreign key's REFERENCES clause.
   */
  references: ReferenceNode | null;
  /**
   * Whether IF NOT EXISTS is given in CREATE INDEX.
   */
  if_not_exists: boolean;
  /**
   * The constraint's span in the SQL text.
   */
  span: Span;
};

export type ConstraintKind =
  'PrimaryKey' | 'Unique' | 'ForeignKey' | 'Check' | 'Index' | 'UniqueIndex';

export type ReferenceNode = {
  /**
   * The referenced table.
   */
  table: Name;
  /**
   * The referenced columns; empty if the primary key is referenced.
   */
  columns: Array<Name>;
  /**
   * ON UPDATE
   */
  on_update: ReferenceAction;
  /**
   * ON DELETE
   */
  on_delete: ReferenceAction;
};

export type ReferenceAction = 'NoAction' | 'Restrict' | 'Cascade' | 'SetNull' | 'SetDefault';

export type OptionValue = {
  /**
   * The option's name as written.
   */
  name: Name;
  /**
   * The option's value as written, without quotes.
   */
  value: Name | null;
};

export type InsertNode = {
  /**
   * The table.
   */
  table: Name;
  /**
   * The table's alias in ON CONFLICT and RETURNING.
   */
  alias: Name | null;
  /**
   * The column list; empty if no list is given.
   */
  columns: Array<Name>;
  /**
   * The leading VALUES rows that consist only of plain literals.
   */
  plain: PlainRows | null;
  /**
   * The remaining VALUES rows.
   */
  values: ValuesBlock | null;
  /**
   * A Query node; `None` if VALUES are given.
   */
  query: number | null;
  /**
   * Whether ATOMIC is given.
   */
  atomic: boolean;
  /**
   * BATCH size.
   */
  batch: number | null;
  /**
   * `o3MaxLag`, as written.
   */
  o3_max_lag: Name | null;
  /**
   * RETURNING list.
   */
  returning: Array<SelectItem>;
  /**
   * ON CONFLICT clause.
   */
  conflict: Conflict | null;
};

export type Conflict = {
  /**
   * The conflict target columns; empty if none are given.
   */
  keys: Array<Name>;
  /**
   * SET column = expression. The expressions can read the existing row and the `excluded` row.
   * Empty for DO NOTHING.
   */
  assignments: Array<[Name, number]>;
  /**
   * WHERE condition.
   */
  filter: number | null;
  /**
   * The clause's span in the SQL text.
   */
  span: Span;
};

export type PlainRows = {
  /**
   * The rows as written.
   */
  text: string;
  /**
   * Number of rows.
   */
  rows: number;
  /**
   * The rows' span in the statement.
   */
  span: Span;
};

export type ValuesBlock = {
  /**
   * Number of rows.
   */
  rows: number;
  /**
   * Number of cells in each row. A row with 0 cells is DEFAULT VALUES.
   */
  widths: Array<number>;
  /**
   * One ASCII letter per cell: `n` null, `t` true, `f` false, `i` integer, `d` floating-point,
   * `s` string, `v` DEFAULT, `x` expression.
   */
  kinds: string;
  /**
   * The literals' text (with sign, strings unescaped); for `x`, the node ID in decimal.
   */
  texts: Array<string>;
  /**
   * Offset of each cell's first UTF-16 unit.
   */
  starts: Array<number>;
  /**
   * Offset of each row's opening parenthesis.
   */
  row_starts: Array<number>;
  /**
   * Offset of each row's closing parenthesis.
   */
  row_ends: Array<number>;
};

export type UpdateNode = {
  /**
   * The table.
   */
  table: Name;
  /**
   * The table's alias.
   */
  alias: Name | null;
  /**
   * SET column = expression.
   */
  assignments: Array<[Name, number]>;
  /**
   * FROM sources.
   */
  from: number | null;
  /**
   * WHERE condition.
   */
  filter: number | null;
  /**
   * CTEs that precede UPDATE.
   */
  with: Array<Cte>;
  /**
   * RETURNING list.
   */
  returning: Array<SelectItem>;
};

export type DeleteNode = {
  /**
   * The table.
   */
  table: Name;
  /**
   * The table's alias.
   */
  alias: Name | null;
  /**
   * USING sources.
   */
  using: number | null;
  /**
   * WHERE condition.
   */
  filter: number | null;
  /**
   * CTEs that precede DELETE.
   */
  with: Array<Cte>;
  /**
   * RETURNING list.
   */
  returning: Array<SelectItem>;
};

export type ViewKind = 'Table' | 'View' | 'MaterializedView' | 'LiveView';

export type AlterAction =
  | { action: 'AddColumn'; column: ColumnDefinition; if_not_exists: boolean }
  | { action: 'DropColumn'; column: Name; if_exists: boolean }
  | { action: 'RenameColumn'; column: Name; to: Name }
  | { action: 'ChangeType'; column: Name; type_name: TypeName }
  | { action: 'NotNull'; column: Name; not_null: boolean }
  | { action: 'Default'; column: Name; value: number | null; text: string }
  | { action: 'SymbolCapacity'; column: Name; capacity: Name }
  | { action: 'SymbolCache'; column: Name; cache: boolean }
  | { action: 'Index'; column: Name; indexed: boolean; words: Array<string> }
  | { action: 'Partitions'; change: PartitionChange; names: Array<Name>; filter: number | null }
  | { action: 'SquashPartitions' }
  | { action: 'SetParameter'; parameter: OptionValue }
  | { action: 'SetTtl'; ttl: Name }
  | { action: 'SetPolicy'; policy: PolicyStages }
  | { action: 'SwitchPolicy'; enabled: boolean; span: Span }
  | { action: 'DropPolicy' }
  | { action: 'SetWal'; wal: boolean }
  | { action: 'Dedup'; keys: Array<Name> }
  | { action: 'AddConstraint'; constraint: ConstraintNode }
  | { action: 'DropConstraint'; name: Name; if_exists: boolean }
  | { action: 'Other'; words: Array<string>; span: Span };

export type PartitionChange = 'Drop' | 'Detach' | 'Attach' | 'ToParquet' | 'ToNative';

export type PolicyStages = {
  /**
   * TO PARQUET, as written.
   */
  to_parquet: Name | null;
  /**
   * TO REMOTE, as written.
   */
  to_remote: Name | null;
  /**
   * DROP LOCAL, as written.
   */
  drop_local: Name | null;
};

export type ShowSubject =
  | { subject: 'Tables' }
  | { subject: 'Columns'; table: Name }
  | { subject: 'Partitions'; table: Name }
  | { subject: 'CreateTable'; table: Name }
  | { subject: 'CreateView'; what: ViewKind; view: Name }
  | {
      subject: 'CreateDatabase';
      /**
       * Whether EXCLUDE is given.
       */
      exclude: boolean;
      /**
       * Category names as written, including ALL; empty if none are given.
       */
      categories: Array<Name>;
    }
  | { subject: 'Parameters' }
  | {
      subject: 'Access';
      list: AccessList;
      /**
       * The user or entity, if given.
       */
      of: Name | null;
    }
  | { subject: 'Setting'; words: Array<string> };

export type AccessList =
  'Users' | 'User' | 'Groups' | 'ServiceAccounts' | 'ServiceAccount' | 'Permissions';

export type ExplainStage = 'Default' | 'Ast' | 'Bound' | 'Logical' | 'Physical';

export type MaterialClauses = {
  /**
   * WITH BASE clause.
   */
  base: Name | null;
  /**
   * REFRESH clause; `None` if absent.
   */
  refresh: RefreshPolicy | null;
  /**
   * TIMESTAMP(column) clause.
   */
  timestamp: Name | null;
  /**
   * PARTITION BY unit, as written.
   */
  partition_by: Name | null;
  /**
   * TTL clause, as written.
   */
  ttl: Name | null;
  /**
   * EXPIRE ROWS clause.
   */
  expire: ExpireRows | null;
  /**
   * IN VOLUME clause.
   */
  volume: Name | null;
  /**
   * OWNED BY clause.
   */
  owner: Name | null;
};

export type LiveClauses = {
  /**
   * FLUSH EVERY interval, as written.
   */
  flush_every: Name;
  /**
   * IN MEMORY duration, as written.
   */
  in_memory: Name | null;
  /**
   * PARTITION BY unit, as written.
   */
  partition_by: Name | null;
  /**
   * START FROM clause.
   */
  start: LiveStart;
  /**
   * OWNED BY clause.
   */
  owner: Name | null;
};

export type LiveStart = { start: 'Now' } | { start: 'Beginning' } | { start: 'At'; instant: Name };

export type RefreshPolicy = {
  /**
   * The refresh trigger, if given.
   */
  trigger: RefreshTrigger | null;
  /**
   * Whether DEFERRED is given.
   */
  deferred: boolean;
  /**
   * START clause.
   */
  start: Name | null;
  /**
   * TIME ZONE clause.
   */
  time_zone: Name | null;
  /**
   * PERIOD clause.
   */
  period: RefreshPeriod | null;
  /**
   * The clause's span in the SQL text.
   */
  span: Span;
};

export type RefreshTrigger =
  { trigger: 'Immediate' } | { trigger: 'Manual' } | { trigger: 'Every'; interval: Name };

export type RefreshPeriod =
  | { period: 'Length'; length: Name; time_zone: Name | null; delay: Name | null }
  | { period: 'SampleByInterval' };

export type ExpireRows = {
  /**
   * The rule that determines which rows expire.
   */
  rule: ExpireRule;
  /**
   * The rule as written.
   */
  text: string;
  /**
   * CLEANUP EVERY interval, as written.
   */
  cleanup: Name | null;
  /**
   * The clause's span in the SQL text.
   */
  span: Span;
};

export type ExpireRule =
  | { rule: 'When'; condition: number }
  | { rule: 'KeepLatest'; timestamp: number | null; keys: Array<number> }
  | {
      rule: 'KeepExtreme';
      count: number | null;
      highest: boolean;
      column: number;
      keys: Array<number>;
    };

export type ViewAction =
  | { action: 'SetRefresh'; refresh: RefreshPolicy }
  | { action: 'SetRefreshLimit'; limit: Name }
  | { action: 'SetTtl'; ttl: Name }
  | { action: 'SetExpire'; expire: ExpireRows }
  | { action: 'DropExpire' }
  | { action: 'AddIndex'; column: Name; options: Array<OptionValue> }
  | { action: 'DropIndex'; column: Name }
  | { action: 'ResumeWal'; from: Name | null };

export type RefreshMode =
  | { mode: 'Default' }
  | { mode: 'Full' }
  | { mode: 'Incremental' }
  | { mode: 'Range'; from: number; to: number };

export type CopyStatement =
  | { copy: 'Import'; table: Name; file: Name; options: Array<OptionValue> }
  | {
      copy: 'Export';
      table: Name | null;
      query: number | null;
      path: Name;
      options: Array<OptionValue>;
    }
  | { copy: 'Cancel'; id: Name };

export type BackupStatement =
  | { action: 'CheckpointCreate' }
  | { action: 'CheckpointRelease' }
  | { action: 'SnapshotPrepare' }
  | { action: 'SnapshotComplete' }
  | { action: 'Database' }
  | { action: 'Tables'; tables: Array<Name> }
  | { action: 'Abort' };

export type AccessStatement =
  | {
      statement: 'Create';
      principal: PrincipalKind;
      name: Name;
      if_not_exists: boolean;
      password: Password | null;
      external_alias: Name | null;
      owner: Name | null;
    }
  | { statement: 'Drop'; principal: PrincipalKind; name: Name; if_exists: boolean }
  | { statement: 'Alter'; principal: PrincipalKind; name: Name; change: PrincipalChange }
  | { statement: 'AddMember'; user: Name; groups: Array<Name> }
  | { statement: 'RemoveMember'; user: Name; groups: Array<Name> }
  | { statement: 'Assume'; account: Name }
  | { statement: 'Exit'; account: Name | null }
  | {
      statement: 'Grant';
      permissions: Array<Permission>;
      on: GrantTarget | null;
      to: Name;
      grant_option: boolean;
      verification: boolean;
    }
  | { statement: 'Revoke'; permissions: Array<Permission>; on: GrantTarget | null; from: Name };

export type PrincipalKind = 'User' | 'Group' | 'ServiceAccount';

export type Password = { password: 'None' } | { password: 'Given'; value: Name };

export type PrincipalChange =
  | { change: 'Enable' }
  | { change: 'Disable' }
  | { change: 'SetPassword'; to: Password }
  | { change: 'CreateToken'; token: TokenType; ttl: Name | null; refresh: boolean }
  | { change: 'DropToken'; token: TokenType; value: Name | null }
  | { change: 'AddAlias'; alias: Name }
  | { change: 'DropAlias'; alias: Name };

export type TokenType = 'Jwk' | 'Rest';

export type Permission = {
  /**
   * The permission's name in upper case, with its words separated by single spaces.
   */
  name: string;
  /**
   * Account name in ASSUME SERVICE ACCOUNT.
   */
  account: Name | null;
  /**
   * The permission's span in the SQL text.
   */
  span: Span;
};

export type GrantTarget = { target: 'AllTables' } | { target: 'Tables'; tables: Array<GrantTable> };

export type GrantTable = {
  /**
   * The table.
   */
  table: Name;
  /**
   * Columns listed after the table name.
   */
  columns: Array<Name>;
  /**
   * Whether `*` is given.
   */
  all_columns: boolean;
  /**
   * Columns listed after EXCLUDE.
   */
  exclude: Array<Name>;
};
