//! Components of queries.

use serde::{Deserialize, Serialize};

use crate::{FrameBound, Name, NodeId, Span, WindowSpec};

/// `@name := expression`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Declaration {
    /// Name without the `@`.
    pub name: Name,
    /// The value: an expression, or a Query node.
    pub value: NodeId,
    /// Whether OVERRIDABLE is given in a view's query.
    pub overridable: bool,
}

/// `name [(columns)] AS (query)`, after WITH.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Cte {
    /// The name.
    pub name: Name,
    /// Column names in parentheses; empty if none are given.
    pub columns: Vec<Name>,
    /// A Query node.
    pub query: NodeId,
    /// Whether WITH RECURSIVE allows the query to reference itself.
    #[serde(default)]
    pub recursive: bool,
}

/// One SELECT block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SelectNode {
    /// Whether DISTINCT is given.
    pub distinct: bool,
    /// DISTINCT ON (…) expressions.
    pub distinct_on: Vec<NodeId>,
    /// The select list; for the short form `t WHERE …`, a single `Star`.
    pub items: Vec<SelectItem>,
    /// Table, `TableFunction`, Derived or Join.
    pub from: Option<NodeId>,
    /// WHERE condition.
    pub filter: Option<NodeId>,
    /// LATEST ON clause.
    pub latest_on: Option<LatestOn>,
    /// SAMPLE BY clause.
    pub sample_by: Option<SampleBy>,
    /// GROUP BY expressions. `ROLLUP(…)` and `CUBE(…)` are calls with those names. `GROUPING SETS
    /// ((a), ())` is a call named `GROUPING SETS` whose arguments are calls named `ROW`.
    pub group_by: Vec<NodeId>,
    /// Whether GROUP BY ALL is given: every item without an aggregate is a key, as in a query that
    /// has aggregates but no GROUP BY.
    #[serde(default)]
    pub group_by_all: bool,
    /// HAVING condition.
    pub having: Option<NodeId>,
    /// Windows defined by WINDOW name AS (…).
    pub windows: Vec<NamedWindow>,
    /// QUALIFY condition, which filters rows after window functions.
    #[serde(default)]
    pub qualify: Option<NodeId>,
    /// PIVOT clause.
    pub pivot: Option<Box<PivotNode>>,
    /// The hint: the content of a comment that follows SELECT and starts with a plus sign.
    pub hint: Option<String>,
}

/// `expression [AS alias]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SelectItem {
    /// An expression or `Star`.
    pub expression: NodeId,
    /// The alias.
    pub alias: Option<Name>,
}

/// `LATEST ON ts PARTITION BY a, b`, or `LATEST BY a, b` (no `timestamp`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LatestOn {
    /// The timestamp column.
    pub timestamp: Option<NodeId>,
    /// The keys.
    pub keys: Vec<NodeId>,
    /// The clause's span in the SQL text.
    pub span: Span,
}

/// `SAMPLE BY 1h FROM … TO … FILL(…) ALIGN TO …`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SampleBy {
    /// A Duration node, a Variable node or another expression.
    pub interval: NodeId,
    /// FROM bound of the sampled range.
    pub from: Option<NodeId>,
    /// TO.
    pub to: Option<NodeId>,
    /// FILL list; empty when there is no FILL clause.
    pub fill: Vec<Fill>,
    /// ALIGN TO; `None` if absent.
    pub align: Option<SampleAlign>,
    /// The clause's span in the SQL text.
    pub span: Span,
}

/// One entry of FILL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fill")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Fill {
    /// NONE
    None { span: Span },
    /// NULL
    Null { span: Span },
    /// PREV, PREV(alias)
    Prev { of: Option<Name>, span: Span },
    /// LINEAR
    Linear { span: Span },
    /// The value of a constant expression.
    Constant { value: NodeId },
}

/// The origin that buckets are aligned to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "align")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum SampleAlign {
    /// ALIGN TO FIRST OBSERVATION
    FirstObservation,
    /// ALIGN TO CALENDAR [TIME ZONE z] [WITH OFFSET o]
    Calendar { time_zone: Option<NodeId>, offset: Option<NodeId> },
}

/// `LIMIT n`, `LIMIT a, b`, `LIMIT n OFFSET m`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Limit {
    /// The first number; `None` in `LIMIT ,n`.
    pub first: Option<NodeId>,
    /// The number after the comma.
    pub second: Option<NodeId>,
    /// OFFSET value.
    pub offset: Option<NodeId>,
    /// The clause's span in the SQL text.
    pub span: Span,
}

/// `WINDOW name AS (…)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct NamedWindow {
    /// The name.
    pub name: Name,
    /// The body.
    pub spec: WindowSpec,
}

/// Kinds of join.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "join")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum JoinKind {
    /// [INNER] JOIN
    Inner,
    /// LEFT [OUTER] JOIN
    Left,
    /// RIGHT [OUTER] JOIN
    Right,
    /// FULL [OUTER] JOIN
    Full,
    /// CROSS JOIN
    Cross,
    /// `a, b`
    Comma,
    /// ASOF JOIN
    Asof,
    /// LT JOIN
    Lt,
    /// SPLICE JOIN
    Splice,
    /// WINDOW JOIN … RANGE BETWEEN … [INCLUDE | EXCLUDE PREVAILING]
    Window { low: FrameBound, high: FrameBound, include_prevailing: bool },
    /// HORIZON JOIN … RANGE FROM a TO b STEP c | LIST (…) AS alias
    Horizon {
        from: Option<NodeId>,
        to: Option<NodeId>,
        step: Option<NodeId>,
        list: Vec<NodeId>,
        alias: Option<Name>,
    },
}

impl JoinKind {
    /// Whether the join matches rows by its inputs' designated timestamps.
    #[must_use]
    pub fn is_by_time(&self) -> bool {
        match self {
            Self::Inner | Self::Left | Self::Right | Self::Full | Self::Cross | Self::Comma => {
                false
            }
            Self::Asof | Self::Lt | Self::Splice | Self::Window { .. } | Self::Horizon { .. } => {
                true
            }
        }
    }
}

/// The join condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "on")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum JoinOn {
    /// ON expression
    Expression { condition: NodeId },
    /// ON (a, b)
    Columns { columns: Vec<Name> },
    /// USING (a, b); empty for NATURAL JOIN, which joins on all common column names.
    Using { columns: Vec<Name> },
}

/// `TOLERANCE 2s`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AsofTolerance {
    /// A Duration node.
    pub interval: NodeId,
    /// The clause's span in the SQL text.
    pub span: Span,
}

/// `PIVOT (aggregates FOR column IN (…) … GROUP BY …)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PivotNode {
    /// Aggregates with their aliases.
    pub aggregates: Vec<SelectItem>,
    /// FOR columns and their values. If the only value is a Query node, that sub-query supplies the
    /// values.
    pub axes: Vec<(NodeId, Vec<SelectItem>)>,
    /// GROUP BY inside the pivot.
    pub group_by: Vec<NodeId>,
}
