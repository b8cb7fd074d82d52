//! Components of expressions.

use serde::{Deserialize, Serialize};

use crate::{Name, NodeId, Span};

/// Prefix operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum UnaryOperator {
    /// `-a`
    Minus,
    /// `+a`
    Plus,
    /// `~a`
    BitNot,
    /// `NOT a`
    Not,
}

/// Infix operators with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum BinaryOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `=`
    Equal,
    /// `!=`, `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `~`
    Matches,
    /// `!~`
    NotMatches,
    /// `LIKE`
    Like,
    /// `NOT LIKE`
    NotLike,
    /// `ILIKE`
    ILike,
    /// `NOT ILIKE`
    NotILike,
    /// `<<`
    ContainedBy,
    /// `<<=`
    ContainedByOrEqual,
    /// `>>`
    Contains,
    /// `>>=`
    ContainsOrEqual,
}

impl BinaryOperator {
    /// The operator as shown in error messages.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
            Self::BitAnd => "&",
            Self::BitOr => "|",
            Self::BitXor => "^",
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Matches => "~",
            Self::NotMatches => "!~",
            Self::Like => "like",
            Self::NotLike => "not like",
            Self::ILike => "ilike",
            Self::NotILike => "not ilike",
            Self::ContainedBy => "<<",
            Self::ContainedByOrEqual => "<<=",
            Self::Contains => ">>",
            Self::ContainsOrEqual => ">>=",
        }
    }
}

/// Operators whose chains are stored as one n-ary node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum LogicalOperator {
    /// `AND`
    And,
    /// `OR`
    Or,
}

/// `WHEN condition THEN result`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CaseBranch {
    /// The condition, or the value compared with the operand.
    pub when: NodeId,
    /// The result.
    pub then: NodeId,
}

/// A function call.
///
/// Special syntax is also stored as a call. The first argument of `EXTRACT(day FROM ts)` is the
/// field name, as a string. The right operand of `a = ANY (…)` and `a = ALL (…)` is a call with
/// that name. `UNNEST(v COLUMNS(a INT))` has a call named `COLUMNS` whose arguments are casts of
/// the field names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CallNode {
    /// Name as written.
    pub name: Name,
    /// Arguments; `count(*)` has a single `Star`.
    pub arguments: Vec<NodeId>,
    /// Whether DISTINCT is given: `f(DISTINCT …)`.
    pub distinct: bool,
    /// `f(… ORDER BY …)`.
    pub order_by: Vec<OrderItem>,
    /// `FILTER (WHERE …)`.
    pub filter: Option<NodeId>,
    /// Whether IGNORE NULLS is given; RESPECT NULLS is the default.
    pub ignore_nulls: bool,
    /// `OVER (…)` or `OVER name`.
    pub over: Option<WindowSpec>,
}

/// The window after OVER, or a named window's definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct WindowSpec {
    /// `OVER name`, or the base name inside the parentheses.
    pub name: Option<Name>,
    /// PARTITION BY clause.
    pub partition_by: Vec<NodeId>,
    /// ORDER BY clause.
    pub order_by: Vec<OrderItem>,
    /// The frame clause; `None` if absent.
    pub frame: Option<Frame>,
    /// ANCHOR clause, which only a named window can have.
    #[serde(default)]
    pub anchor: Option<Anchor>,
}

/// A window's ANCHOR clause: window functions restart when a new period starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Anchor {
    /// The event that starts a period.
    pub period: AnchorPeriod,
    /// The clause's span in the SQL text.
    pub span: Span,
}

/// The event that starts a new period in an anchored window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum AnchorPeriod {
    /// DAILY: a new period starts each day at `time`, in time zone `zone` (UTC by default).
    Daily { time: Name, zone: Option<Name> },
    /// EXPRESSION e: a new period starts when the value of `e` changes
    Expression { value: NodeId },
}

/// A window frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Frame {
    /// ROWS, RANGE, GROUPS or CUMULATIVE.
    pub mode: FrameMode,
    /// Lower bound.
    pub start: FrameBound,
    /// Upper bound; `None` means CURRENT ROW.
    pub end: Option<FrameBound>,
    /// Whether EXCLUDE CURRENT ROW is given.
    pub exclude_current_row: bool,
    /// The frame's span in the SQL text.
    pub span: Span,
}

/// A frame's unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum FrameMode {
    /// ROWS
    Rows,
    /// RANGE
    Range,
    /// GROUPS
    Groups,
    /// CUMULATIVE: all rows from the first to the current one.
    Cumulative,
}

/// A bound of a window frame, or of a WINDOW JOIN's time range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "bound")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum FrameBound {
    /// UNBOUNDED PRECEDING
    UnboundedPreceding,
    /// `n [unit] PRECEDING`
    Preceding { value: NodeId, unit: Option<String> },
    /// CURRENT ROW
    CurrentRow,
    /// `n [unit] FOLLOWING`
    Following { value: NodeId, unit: Option<String> },
    /// UNBOUNDED FOLLOWING
    UnboundedFollowing,
}

/// One selector between `[` and `]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "selector")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum IndexSelector {
    /// `a[i]`
    Item { index: NodeId },
    /// `a[lo:hi]`
    Slice { low: NodeId, high: Option<NodeId> },
}

/// ORDER BY item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct OrderItem {
    /// Expression, position or alias.
    pub expression: NodeId,
    /// Whether DESC is given.
    pub descending: bool,
    /// NULLS FIRST or NULLS LAST, if given.
    pub nulls: Option<NullsOrder>,
}

/// The position of nulls in a sort order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum NullsOrder {
    /// NULLS FIRST
    First,
    /// NULLS LAST
    Last,
}
