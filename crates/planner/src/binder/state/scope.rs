//! Relations, their columns, and name resolution.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::logical_expr::{Expr, LogicalPlan};
use tidemark_ast::{Name, Span};
use tidemark_storage::TableSnapshot;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType, identifier};

use crate::binder::error;
use crate::binder::state::accesses::Origin;
use crate::binder::state::typed::Typed;

/// A column that can be referenced by name.
#[derive(Debug, Clone)]
pub(crate) struct ScopeColumn {
    /// The source's alias or name; `None` if it has none.
    pub(crate) qualifier: Option<Arc<str>>,
    /// The column's name.
    pub(crate) name: String,
    /// The column's SQL type.
    pub(crate) sql_type: SqlType,
    /// The column's reference in the plan.
    pub(crate) column: Column,
    /// The table column whose value this column passes on unchanged, if any.
    pub(crate) origin: Origin,
}

impl ScopeColumn {
    /// The column as an expression.
    pub(crate) fn expr(&self) -> Expr {
        Expr::Column(self.column.clone())
    }

    /// Whether an expression is this column.
    pub(crate) fn is(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Column(column) if *column == self.column)
    }
}

/// A table scan with at most a filter above it, so time ranges can still be pushed into it.
#[derive(Debug, Clone)]
pub(crate) struct BaseScan {
    pub(crate) table: Arc<TableSnapshot>,
    /// Qualifier of the scan's columns in the plan.
    pub(crate) reference: String,
    /// Whether the scan also returns row IDs.
    pub(crate) row_ids: bool,
}

/// The row order by designated timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TimeOrder {
    /// Each row is at or after the preceding row.
    Ascending,
    /// ORDER BY … DESC.
    Descending,
    /// Rows were in ascending order before a join. A query sorts them again before it passes them
    /// on, which costs nothing if the join was planned to preserve the order.
    Shuffled,
    /// The order is unknown.
    #[default]
    Unknown,
}

impl TimeOrder {
    /// The order after a join.
    pub(crate) fn shuffled(self) -> Self {
        match self {
            Self::Ascending | Self::Shuffled => Self::Shuffled,
            Self::Descending | Self::Unknown => Self::Unknown,
        }
    }
}

/// Rows with named and typed columns: a source in FROM, or the result of a clause.
#[derive(Debug, Clone)]
pub(crate) struct Relation {
    pub(crate) plan: LogicalPlan,
    pub(crate) columns: Vec<ScopeColumn>,
    /// Index of the designated timestamp.
    pub(crate) timestamp: Option<usize>,
    /// A sub-query's designated timestamp if its select list omits it. It cannot be referenced by
    /// name, but time-based clauses use it.
    pub(crate) unselected_time: Option<ScopeColumn>,
    /// The row order by the designated timestamp or by `unselected_time`.
    pub(crate) order: TimeOrder,
    /// Lists of columns merged by USING. An unqualified name refers to the first column of its
    /// list.
    pub(crate) merged: Vec<Vec<usize>>,
    /// The columns of `*`; `None` for all columns in order.
    pub(crate) listed: Option<Vec<usize>>,
    pub(crate) base: Option<BaseScan>,
    /// Columns that existed when a view was created but have since been dropped. Their names must
    /// not resolve to other columns.
    pub(crate) dropped: Vec<DroppedColumn>,
}

/// A dropped column.
#[derive(Debug, Clone)]
pub(crate) struct DroppedColumn {
    /// The source's alias or name.
    pub(crate) qualifier: Arc<str>,
    /// The column's name when the view was created.
    pub(crate) name: String,
}

impl Relation {
    /// The designated timestamp's column.
    pub(crate) fn timestamp_column(&self) -> Option<&ScopeColumn> {
        match self.timestamp {
            Some(index) => self.columns.get(index),
            None => self.unselected_time.as_ref(),
        }
    }

    /// The designated timestamp's column, if the rows are in ascending timestamp order.
    pub(crate) fn ascending_time(&self) -> Option<&ScopeColumn> {
        self.timestamp_column().filter(|_| self.order == TimeOrder::Ascending)
    }

    /// The relation's SQL column types.
    pub(crate) fn types(&self) -> Vec<SqlType> {
        self.columns.iter().map(|column| column.sql_type).collect()
    }

    /// Returns the index of the column that a dotted path refers to. Every lookup by name passes
    /// through here and records the access, so no clause can omit it.
    pub(crate) fn resolve(&self, path: &[Name]) -> EngineResult<usize> {
        let (qualifier, name) = match path {
            [name] => (None, name),
            [.., qualifier, name] => (Some(qualifier), name),
            [] => return Err(EngineError::internal("a column has no name")),
        };
        let is_named = |(_, column): &(usize, &ScopeColumn)| {
            qualifier.is_none_or(|required| has_qualifier(column, &required.text))
                && identifier::same(&column.name, &name.text)
        };
        let mut named = self.columns.iter().enumerate().filter(is_named).map(|(index, _)| index);
        let mut found = named.next();
        if let (Some(first), Some(second)) = (found, named.next()) {
            let several: Vec<usize> = [first, second].into_iter().chain(named).collect();
            let all_in = |group: &&Vec<usize>| several.iter().all(|one| group.contains(one));
            let Some(group) = self.merged.iter().find(all_in) else {
                return Err(error::at(
                    ErrorCode::AmbiguousColumn,
                    format!("Ambiguous column [name={}]", name.text),
                    name.span,
                ));
            };
            found = group.first().copied();
        }
        let is_gone = |dropped: &&DroppedColumn| {
            let qualifies = qualifier.is_none_or(|required| dropped.is_of(&required.text));
            qualifies && identifier::same(&dropped.name, &name.text)
        };
        if let Some(dropped) = self.dropped.iter().find(is_gone) {
            return Err(dropped.error(name.span));
        }
        let found = found.or_else(|| self.series_named(path));
        let index = found.ok_or_else(|| self.not_found(path))?;
        self.columns[index].origin.note();
        Ok(index)
    }

    /// Records that all columns are read, as by `*` or by a source used in place of a query.
    pub(crate) fn read_all(&self, at: Span) -> EngineResult<()> {
        if let Some(dropped) = self.dropped.first() {
            return Err(dropped.error(at));
        }
        self.columns.iter().for_each(|column| column.origin.note());
        Ok(())
    }

    /// Finds the column of a series by the series' alias. In `PostgreSQL`, the alias names both the
    /// table and the column.
    fn series_named(&self, path: &[Name]) -> Option<usize> {
        let [name] = path else { return None };
        let own = |(_, column): &(usize, &ScopeColumn)| has_qualifier(column, &name.text);
        let mut columns = self.columns.iter().enumerate().filter(own);
        match (columns.next(), columns.next()) {
            (Some((index, column)), None) if column.name == SERIES => Some(index),
            _ => None,
        }
    }

    /// Whether a source has this alias.
    pub(crate) fn has_source(&self, qualifier: &str) -> bool {
        self.columns.iter().any(|column| has_qualifier(column, qualifier))
    }

    fn not_found(&self, path: &[Name]) -> EngineError {
        let first = &path[0];
        if let [.., qualifier, _] = path
            && !self.has_source(&qualifier.text)
        {
            return error::at(ErrorCode::TableNotFound, "Invalid table name or alias", first.span);
        }
        let words: Vec<&str> = path.iter().map(|name| name.text.as_str()).collect();
        error::invalid_column(&words.join("."), first.span)
    }
}

impl DroppedColumn {
    /// Whether the dropped column's source has this alias or name.
    pub(crate) fn is_of(&self, qualifier: &str) -> bool {
        same_source(&self.qualifier, qualifier)
    }

    /// The error for a view that reads this dropped column.
    pub(crate) fn error(&self, at: Span) -> EngineError {
        let (name, source) = (&self.name, &self.qualifier);
        let message =
            format!("column '{name}' of '{source}' was dropped after the view was created");
        error::at(ErrorCode::InvalidValue, message, at)
    }
}

/// A select item's name, visible to later items.
#[derive(Debug, Clone)]
pub(crate) struct Alias {
    pub(crate) name: String,
    pub(crate) value: Typed,
}

/// The names that an expression may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'s> {
    /// The columns; `None` if no rows are in scope.
    pub(crate) relation: Option<&'s Relation>,
    /// Names of select items.
    pub(crate) aliases: &'s [Alias],
    /// Whether aliases take precedence over columns.
    pub(crate) aliases_first: bool,
    /// Whether aggregates are allowed.
    pub(crate) aggregates: bool,
    /// Whether window functions are allowed.
    pub(crate) windows: bool,
}

impl<'s> Scope<'s> {
    /// A scope without rows, for constant expressions.
    pub(crate) fn empty() -> Self {
        Scope {
            relation: None,
            aliases: &[],
            aliases_first: false,
            aggregates: false,
            windows: false,
        }
    }

    /// A scope with a relation's columns and without aggregates, for WHERE, ON and PARTITION BY.
    pub(crate) fn rows(relation: &'s Relation) -> Self {
        Scope { relation: Some(relation), ..Scope::empty() }
    }
}

/// Whether the lookup failed because no column has this name. The outer rows may then have a column
/// with this name.
pub(crate) fn is_unknown(failure: &EngineError) -> bool {
    matches!(failure.code, ErrorCode::ColumnNotFound | ErrorCode::TableNotFound)
}

/// Column name of `generate_series(…)`.
pub(crate) const SERIES: &str = "generate_series";

/// Schemas that may qualify a source's name.
const SCHEMAS: &[&str] = &["pg_catalog.", "information_schema.", "public."];

pub(crate) fn has_qualifier(column: &ScopeColumn, qualifier: &str) -> bool {
    column.qualifier.as_deref().is_some_and(|own| same_source(own, qualifier))
}

fn same_source(own: &str, qualifier: &str) -> bool {
    // `pg_catalog.pg_class` can also be referenced as `pg_class`.
    let plain = SCHEMAS.iter().find_map(|schema| own.strip_prefix(schema)).unwrap_or(own);
    identifier::same(own, qualifier) || identifier::same(plain, qualifier)
}
