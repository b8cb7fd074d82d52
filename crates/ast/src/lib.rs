//! A statement's syntax tree, which the parser (TypeScript) passes to the binder (Rust).
//!
//! A tree is a flat table: [`Tree::nodes`] holds every node, and children are indices into it
//! ([`NodeId`]), so deep nesting uses no stack space in either language. A chain of AND, OR or `||`
//! is one n-ary node. [`Tree::spans`] is parallel to the nodes. All positions are UTF-16 offsets
//! computed by the TypeScript lexer. Rust copies them and computes new offsets only in
//! [`PlainRows`], whose cells have no stored positions.
//!
//! This crate contains no semantic rules and no engine types. `npm run generate` writes its
//! TypeScript counterpart, `ts/sql/ast.generated.ts`, from these definitions.

#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

mod access;
mod administration;
mod expression;
mod literals;
mod plain_rows;
mod query;
mod statement;
#[cfg(test)]
mod typescript;

pub use access::{
    AccessStatement, GrantTable, GrantTarget, Password, Permission, PrincipalChange, PrincipalKind,
    TokenType,
};
pub use administration::{
    BackupStatement, CopyStatement, ExpireRows, ExpireRule, LiveClauses, LiveStart,
    MaterialClauses, RefreshMode, RefreshPeriod, RefreshPolicy, RefreshTrigger, ViewAction,
};
pub use expression::{
    Anchor, AnchorPeriod, BinaryOperator, CallNode, CaseBranch, Frame, FrameBound, FrameMode,
    IndexSelector, LogicalOperator, NullsOrder, OrderItem, UnaryOperator, WindowSpec,
};
pub use literals::LiftedQuery;
pub use plain_rows::{PlainKind, PlainPart, PlainParts, PlainRows};
pub use query::{
    AsofTolerance, Cte, Declaration, Fill, JoinKind, JoinOn, LatestOn, Limit, NamedWindow,
    PivotNode, SampleAlign, SampleBy, SelectItem, SelectNode,
};
pub use statement::{
    AccessList, AlterAction, ColumnDefinition, Conflict, ConstraintKind, ConstraintNode,
    CreateTableNode, DeleteNode, ExplainStage, InsertNode, OptionValue, PartitionChange,
    PolicyStages, ReferenceAction, ReferenceNode, ShowSubject, UpdateNode, ValuesBlock, ViewKind,
};

/// Index of a node in [`Tree::nodes`].
pub type NodeId = u32;

/// Half-open range of UTF-16 offsets into the statement text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Span {
    /// Offset of the first UTF-16 unit.
    pub start: u32,
    /// Offset after the last UTF-16 unit.
    pub end: u32,
}

/// An identifier as written, without its quotes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Name {
    /// The identifier without quotes, in its original letter case.
    pub text: String,
    /// Whether the identifier was quoted.
    pub quoted: bool,
    /// The identifier's span in the SQL text, including quotes.
    pub span: Span,
}

/// A type as written after `::`, in `CAST`, or in a column definition: `GEOHASH(5c)`, `DOUBLE[][]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TypeName {
    /// The type name as written: `double`, `VARCHAR`, `geohash`.
    pub name: String,
    /// Arguments in parentheses as written: `["10", "2"]`, `["5c"]`.
    pub arguments: Vec<String>,
    /// Number of `[]` pairs after the name.
    pub dimensions: u32,
    /// The type's span in the SQL text.
    pub span: Span,
}

/// A statement's syntax tree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Tree {
    /// All nodes; children precede their parents.
    pub nodes: Vec<Node>,
    /// The span of each node; has the same length as `nodes`.
    pub spans: Vec<Span>,
    /// The statement's root node.
    pub root: NodeId,
    /// The ID of `nodes[0]`: greater than 0 if the tree is only part of a statement.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[cfg_attr(test, ts(skip))]
    pub first: NodeId,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(first: &NodeId) -> bool {
    *first == 0
}

impl Tree {
    /// Parses a tree from JSON. Every new statement is parsed here; the function is in this crate
    /// so that this crate's optimisation level applies to the deserializer.
    ///
    /// # Errors
    /// If `json` is not a valid tree.
    pub fn from_json(json: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(json)
    }

    /// The node with this ID, or `None` if the tree is malformed.
    #[must_use]
    pub fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(self.place(id))
    }

    /// The node with this ID, mutable, or `None` if the tree is malformed.
    pub fn get_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        let index = self.place(id);
        self.nodes.get_mut(index)
    }

    /// All nodes with their IDs.
    pub fn numbered(&self) -> impl Iterator<Item = (NodeId, &Node)> + Clone {
        (self.first..).zip(&self.nodes)
    }

    /// Appends a node after its children and returns its ID.
    pub fn push(&mut self, node: Node, span: Span) -> NodeId {
        let id = self.first + self.nodes.len() as NodeId;
        self.nodes.push(node);
        self.spans.push(span);
        id
    }

    /// A node's span; 0..0 if the tree is malformed.
    #[must_use]
    pub fn span(&self, id: NodeId) -> Span {
        self.spans.get(self.place(id)).copied().unwrap_or_default()
    }

    /// A node's index in `nodes` and `spans`; out of bounds if the tree does not contain the node.
    fn place(&self, id: NodeId) -> usize {
        id.wrapping_sub(self.first) as usize
    }
}

/// All node kinds: expressions, then queries and sources, then statements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Node {
    // ---- expressions ----
    /// `NULL`.
    Null,
    /// `true`, `false`.
    Boolean { value: bool },
    /// `17`, `17_000`, `17L`; text as written.
    Integer { text: String },
    /// `1.5`, `1e3`, `1.5f`, `3d`; text as written.
    Float { text: String },
    /// `12.50m`; text as written.
    Decimal { text: String },
    /// `'text'`: the string without its quotes and with doubled quotes unescaped.
    String { value: String },
    /// `0x01ff`; text as written.
    Long256 { text: String },
    /// `#u33d`, `#u33d/18`, `##0110`; text as written.
    Geohash { text: String },
    /// `90s`, `-2m`, `1h30m`; text as written.
    Duration { text: String },
    /// `DATE '…'`, `TIMESTAMP '…'`, `ipv4 '…'`, `interval '…'`.
    TypedString { type_name: TypeName, value: String },
    /// `a`, `t.a`, `s.t.a`.
    Column { path: Vec<Name> },
    /// `*` or `t.*` in a select list, or the argument of `count(*)`. `EXCLUDE (a, b)` removes
    /// columns, and `REPLACE (a + 1 AS a)` replaces their values.
    Star {
        qualifier: Option<Name>,
        #[serde(default)]
        exclude: Vec<Name>,
        #[serde(default)]
        replace: Vec<SelectItem>,
    },
    /// `$1` (numbered from 1) or `?` (numbered in order of appearance).
    Parameter { index: u32 },
    /// `:name`.
    NamedParameter { name: Name },
    /// `@name`.
    Variable { name: Name },
    /// `-a`, `~a`, `NOT a`.
    Unary { operator: UnaryOperator, operand: NodeId },
    /// Arithmetic, comparison, bit and pattern operators.
    Binary { operator: BinaryOperator, left: NodeId, right: NodeId, operator_span: Span },
    /// `a AND b AND c`: two or more operands.
    Logical { operator: LogicalOperator, operands: Vec<NodeId> },
    /// `a || b || c`: two or more operands.
    Concat { operands: Vec<NodeId>, operator_span: Span },
    /// `a IS [NOT] NULL`.
    IsNull { operand: NodeId, negated: bool },
    /// `a [NOT] BETWEEN low AND high`.
    Between { operand: NodeId, low: NodeId, high: NodeId, negated: bool, operator_span: Span },
    /// `a [NOT] IN (…)`; `bare` is true for `a IN 'text'` and other forms without parentheses.
    InList { operand: NodeId, items: Vec<NodeId>, bare: bool, negated: bool, operator_span: Span },
    /// `a [NOT] IN (SELECT …)`.
    InQuery { operand: NodeId, query: NodeId, negated: bool, operator_span: Span },
    /// `a WITHIN (#g1, …)`.
    Within { operand: NodeId, items: Vec<NodeId>, operator_span: Span },
    /// `a::type` if `double_colon` is true, otherwise `CAST(a AS type)`.
    Cast { operand: NodeId, type_name: TypeName, double_colon: bool },
    /// `CASE [operand] WHEN … THEN … [ELSE …] END`.
    Case { operand: Option<NodeId>, branches: Vec<CaseBranch>, otherwise: Option<NodeId> },
    /// `f(a, b)`, including any clauses after the arguments.
    Call(CallNode),
    /// `ARRAY[…]`.
    Array { items: Vec<NodeId> },
    /// `a[1, 2:4]`.
    Index { operand: NodeId, selectors: Vec<IndexSelector> },
    /// `(SELECT …)` used as a value.
    Subquery { query: NodeId },
    /// `EXISTS (SELECT …)`.
    Exists { query: NodeId },

    // ---- queries and sources ----
    /// A whole query: WITH, DECLARE, body, ORDER BY, LIMIT.
    Query {
        declarations: Vec<Declaration>,
        with: Vec<Cte>,
        /// Select, `SetOperation`, Values, Show or another Query.
        body: NodeId,
        order_by: Vec<OrderItem>,
        limit: Option<Limit>,
    },
    /// One SELECT block, or the short form `t WHERE …`.
    Select(SelectNode),
    /// UNION, EXCEPT, INTERSECT.
    SetOperation { operator: SetOperator, all: bool, left: NodeId, right: NodeId },
    /// `VALUES (…), (…)` as a query.
    Values { rows: ValuesBlock },
    /// A table, view or CTE, referenced by name.
    Table { name: Name, alias: Option<Name>, timestamp: Option<Name> },
    /// `long_sequence(5) x`.
    TableFunction {
        call: NodeId,
        alias: Option<Name>,
        columns: Vec<Name>,
        timestamp: Option<Name>,
        ordinality: bool,
    },
    /// `(query) alias`.
    Derived { query: NodeId, alias: Option<Name>, timestamp: Option<Name>, lateral: bool },
    /// `left <kind> JOIN right …`.
    Join {
        join: JoinKind,
        left: NodeId,
        right: NodeId,
        on: Option<JoinOn>,
        tolerance: Option<AsofTolerance>,
        keyword_span: Span,
    },

    // ---- statements ----
    /// CREATE TABLE.
    CreateTable(CreateTableNode),
    /// INSERT.
    Insert(InsertNode),
    /// UPDATE.
    Update(UpdateNode),
    /// DELETE.
    Delete(DeleteNode),
    /// DROP TABLE | VIEW | MATERIALIZED VIEW | LIVE VIEW a, b.
    Drop { what: ViewKind, names: Vec<Name>, if_exists: bool },
    /// DROP ALL TABLES.
    DropAllTables,
    /// DROP INDEX a, b
    DropIndex { names: Vec<Name>, if_exists: bool },
    /// TRUNCATE TABLE a, b [KEEP SYMBOL MAPS] [RESTART IDENTITY] [CASCADE].
    Truncate {
        tables: Vec<Name>,
        if_exists: bool,
        keep_symbols: bool,
        /// Whether RESTART IDENTITY is given: sequences restart.
        restart_identity: bool,
        /// Whether CASCADE is given: tables with foreign keys to these tables are also truncated.
        cascade: bool,
    },
    /// RENAME TABLE a TO b, ALTER TABLE [IF EXISTS] a RENAME TO b.
    Rename { table: Name, to: Name, if_exists: bool },
    /// ALTER TABLE [IF EXISTS] t ….
    AlterTable { table: Name, if_exists: bool, actions: Vec<AlterAction> },
    /// CREATE VIEW | MATERIALIZED VIEW | LIVE VIEW.
    CreateView {
        what: ViewKind,
        name: Name,
        query: NodeId,
        query_text: String,
        if_not_exists: bool,
        or_replace: bool,
        options: Vec<OptionValue>,
        /// Materialized view clauses; `None` for other views.
        #[serde(default)]
        material: Option<Box<MaterialClauses>>,
        /// Live view clauses; `None` for other views.
        #[serde(default)]
        live: Option<Box<LiveClauses>>,
    },
    /// ALTER MATERIALIZED VIEW v ….
    AlterView { view: Name, action: ViewAction },
    /// ALTER LIVE VIEW v SUSPEND WAL; RESUME WAL if `suspend` is false.
    AlterLiveView { view: Name, suspend: bool },
    /// REFRESH MATERIALIZED VIEW v ….
    RefreshView { view: Name, mode: RefreshMode },
    /// COMPILE VIEW v.
    CompileView { view: Name },
    /// Access control: users, groups, service accounts and their permissions.
    Access { access: AccessStatement },
    /// COPY.
    Copy { copy: CopyStatement },
    /// CHECKPOINT, SNAPSHOT, BACKUP.
    Backup { backup: BackupStatement },
    /// SHOW ….
    Show { subject: ShowSubject },
    /// EXPLAIN [stage] statement.
    Explain { stage: ExplainStage, analyze: bool, statement: NodeId },
    /// Session and maintenance statements, stored as words: BEGIN, COMMIT, ROLLBACK, SET …, DISCARD
    /// ALL, VACUUM, ….
    Session { words: Vec<String> },
    /// CHECK DATABASE, or CHECK TABLE t if `table` is given.
    Check { table: Option<Name> },
    /// RECOVER TABLE t, with SKIP if `skip` is true.
    Recover { table: Name, skip: bool },
    /// CANCEL QUERY id.
    CancelQuery { id: NodeId },
    /// An empty statement, or one that consists only of comments.
    Empty,
}

/// Set operators that combine two queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum SetOperator {
    /// UNION.
    Union,
    /// EXCEPT.
    Except,
    /// INTERSECT.
    Intersect,
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::Value;

    use crate::Node;

    /// Rust reads the golden trees written by the TypeScript parser and serializes them unchanged.
    #[test]
    fn parser_trees_round_trip_unchanged() {
        let mut nodes_read = 0;
        // The path is relative to the crate's folder, where cargo runs tests, so that clones can
        // share build output.
        for entry in fs::read_dir("../../test/golden/ast").expect("the golden trees exist") {
            let path = entry.expect("the folder can be listed").path();
            let text = fs::read_to_string(&path).expect("the file can be read");
            let cases: Vec<Value> = serde_json::from_str(&text).expect("cases are a list");
            for case in &cases {
                for value in case["nodes"].as_array().expect("`nodes` is a list") {
                    let node: Node = serde_json::from_value(value.clone())
                        .unwrap_or_else(|error| panic!("{}: {error}: {value}", case["sql"]));
                    let written = serde_json::to_value(&node).expect("the node can be serialized");
                    assert_eq!(&written, value, "{}", case["sql"]);
                    nodes_read += 1;
                }
            }
        }
        assert!(nodes_read > 300, "read only {nodes_read} nodes");
    }
}
