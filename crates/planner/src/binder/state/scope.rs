//! Relations, their columns, and how names find them.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::logical_expr::{Expr, LogicalPlan};
use tidemark_ast::{Name, Span};
use tidemark_storage::TableSnapshot;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType, identifier};

use crate::binder::error;
use crate::binder::state::accesses::Origin;
use crate::binder::state::typed::Typed;

/// A column that names can find.
#[derive(Debug, Clone)]
pub(crate) struct ScopeColumn {
    /// The source's alias or name; `None` where there is nothing to qualify with.
    pub(crate) qualifier: Option<Arc<str>>,
    /// The column's name.
    pub(crate) name: String,
    /// Its type.
    pub(crate) sql_type: SqlType,
    /// Where the plan has it.
    pub(crate) column: Column,
    /// The column of a table that it is, while it is one.
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

/// A table as scanned, while nothing but a filter is above the scan: time ranges can still be
/// pushed into it.
#[derive(Debug, Clone)]
pub(crate) struct BaseScan {
    pub(crate) table: Arc<TableSnapshot>,
    /// Qualifier of the scan's columns in the plan.
    pub(crate) reference: String,
    /// Whether the scan yields the rows' identifiers as well.
    pub(crate) row_ids: bool,
}

/// How rows lie in the time of their designated timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TimeOrder {
    /// No row is before the one in front of it.
    Ascending,
    /// ORDER BY … DESC.
    Descending,
    /// They ascended before a join: a query that hands them on sorts them, which costs nothing
    /// where the join was planned so that it keeps the order.
    Shuffled,
    /// Nothing tells.
    #[default]
    Unknown,
}

impl TimeOrder {
    /// The order behind a join.
    pub(crate) fn shuffled(self) -> Self {
        match self {
            Self::Ascending | Self::Shuffled => Self::Shuffled,
            Self::Descending | Self::Unknown => Self::Unknown,
        }
    }
}

/// Rows with named, typed columns: a source in FROM, or what a clause made of it.
#[derive(Debug, Clone)]
pub(crate) struct Relation {
    pub(crate) plan: LogicalPlan,
    pub(crate) columns: Vec<ScopeColumn>,
    /// Index of the designated timestamp.
    pub(crate) timestamp: Option<usize>,
    /// The designated timestamp of a sub-query whose list leaves it out: no name finds it, and
    /// clauses that go by time read it.
    pub(crate) unselected_time: Option<ScopeColumn>,
    /// How the rows lie in the time of either.
    pub(crate) order: TimeOrder,
    /// Columns that USING made one of: their name alone means the first of each list.
    pub(crate) merged: Vec<Vec<usize>>,
    /// The columns that `*` means, where they are not all in their order.
    pub(crate) listed: Option<Vec<usize>>,
    pub(crate) base: Option<BaseScan>,
    /// Columns that a view found here when it was made and that are gone: their names must not
    /// come to mean anything else.
    pub(crate) gone: Vec<GoneColumn>,
}

/// A column that is not there any more.
#[derive(Debug, Clone)]
pub(crate) struct GoneColumn {
    /// The source's alias or name.
    pub(crate) qualifier: Arc<str>,
    /// The name it had when the view was made.
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

    /// The designated timestamp's column, of rows that ascend by it.
    pub(crate) fn ascending_time(&self) -> Option<&ScopeColumn> {
        self.timestamp_column().filter(|_| self.order == TimeOrder::Ascending)
    }

    /// The types of its columns.
    pub(crate) fn types(&self) -> Vec<SqlType> {
        self.columns.iter().map(|column| column.sql_type).collect()
    }

    /// The index of the column that a dotted path names. Whatever finds a column by its name reads
    /// it, so this is where the access is noted: no clause can forget to.
    pub(crate) fn resolve(&self, path: &[Name]) -> EngineResult<usize> {
        let (qualifier, name) = match path {
            [name] => (None, name),
            [.., qualifier, name] => (Some(qualifier), name),
            [] => return Err(EngineError::internal("a column without a name")),
        };
        let is_named = |(_, column): &(usize, &ScopeColumn)| {
            qualifier.is_none_or(|wanted| has_qualifier(column, &wanted.text))
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
        let is_gone = |gone: &&GoneColumn| {
            let qualifies = qualifier.is_none_or(|wanted| gone.is_of(&wanted.text));
            qualifies && identifier::same(&gone.name, &name.text)
        };
        if let Some(gone) = self.gone.iter().find(is_gone) {
            return Err(gone.error(name.span));
        }
        let found = found.or_else(|| self.series_named(path));
        let index = found.ok_or_else(|| self.not_found(path))?;
        self.columns[index].origin.note();
        Ok(index)
    }

    /// Notes that every column is read, as a query with `*` or with the source alone says.
    pub(crate) fn read_all(&self, at: Span) -> EngineResult<()> {
        if let Some(gone) = self.gone.first() {
            return Err(gone.error(at));
        }
        self.columns.iter().for_each(|column| column.origin.note());
        Ok(())
    }

    /// The column of a series by the series' own alias, which names both in `PostgreSQL`.
    fn series_named(&self, path: &[Name]) -> Option<usize> {
        let [name] = path else { return None };
        let own = |(_, column): &(usize, &ScopeColumn)| has_qualifier(column, &name.text);
        let mut columns = self.columns.iter().enumerate().filter(own);
        match (columns.next(), columns.next()) {
            (Some((index, column)), None) if column.name == SERIES => Some(index),
            _ => None,
        }
    }

    /// Whether some source has this alias.
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

impl GoneColumn {
    /// Whether its source has this alias or name.
    pub(crate) fn is_of(&self, qualifier: &str) -> bool {
        same_source(&self.qualifier, qualifier)
    }

    /// Why the view that reads it is invalid.
    pub(crate) fn error(&self, at: Span) -> EngineError {
        let (name, source) = (&self.name, &self.qualifier);
        let message = format!("column '{name}' of '{source}' was dropped after the view was made");
        error::at(ErrorCode::InvalidValue, message, at)
    }
}

/// A name given to a select item, visible to later ones.
#[derive(Debug, Clone)]
pub(crate) struct Alias {
    pub(crate) name: String,
    pub(crate) value: Typed,
}

/// What an expression may refer to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'s> {
    /// Columns; `None` where no row is in scope.
    pub(crate) relation: Option<&'s Relation>,
    /// Names of select items.
    pub(crate) aliases: &'s [Alias],
    /// Whether aliases win over columns.
    pub(crate) aliases_first: bool,
    /// Whether aggregates are allowed.
    pub(crate) aggregates: bool,
    /// Whether window functions are allowed.
    pub(crate) windows: bool,
}

impl<'s> Scope<'s> {
    /// Constants only.
    pub(crate) fn empty() -> Self {
        Scope {
            relation: None,
            aliases: &[],
            aliases_first: false,
            aggregates: false,
            windows: false,
        }
    }

    /// The rows of a relation, without aggregates: WHERE, ON, PARTITION BY.
    pub(crate) fn rows(relation: &'s Relation) -> Self {
        Scope { relation: Some(relation), ..Scope::empty() }
    }
}

/// Whether a column was not found because nothing here has its name, so that it may be found in
/// the rows around.
pub(crate) fn is_unknown(failure: &EngineError) -> bool {
    matches!(failure.code, ErrorCode::ColumnNotFound | ErrorCode::TableNotFound)
}

/// The column of `generate_series(…)`.
pub(crate) const SERIES: &str = "generate_series";

/// What may stand before a source's name.
const SCHEMAS: &[&str] = &["pg_catalog.", "information_schema.", "public."];

pub(crate) fn has_qualifier(column: &ScopeColumn, qualifier: &str) -> bool {
    column.qualifier.as_deref().is_some_and(|own| same_source(own, qualifier))
}

fn same_source(own: &str, qualifier: &str) -> bool {
    // `pg_catalog.pg_class` is known as `pg_class` as well.
    let plain = SCHEMAS.iter().find_map(|schema| own.strip_prefix(schema)).unwrap_or(own);
    identifier::same(own, qualifier) || identifier::same(plain, qualifier)
}
