//! WITH RECURSIVE: the right side of a UNION is evaluated in steps. Each step reads the rows of the
//! previous step, until a step returns no rows.

use std::sync::Arc;

use arrow_schema::{Field, Schema};
use datafusion::common::Column;
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::logical_expr::{LogicalPlan, RecursiveQuery};
use tidemark_ast::{Node, NodeId, SetOperator, Span};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::catalog::pg_catalog::marked::marked;
use crate::binder::expressions::unify;
use crate::binder::state::common_table::{CommonTable, LastRows};
use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, ScopeColumn};
use crate::binder::{Binder, error};

impl Binder<'_> {
    /// The rows of a CTE that may reference itself.
    pub(crate) fn recursive_table(&mut self, table: &CommonTable) -> EngineResult<Relation> {
        let Some((all, left, right)) = self.recursive_union(table.query)? else {
            return self.query(table.query);
        };
        let first = self.query(left)?.renamed(&table.columns)?;
        let names: Vec<String> = first.columns.iter().map(|column| column.name.clone()).collect();
        let types: Vec<SqlType> =
            first.columns.iter().map(|one| column_type(one.sql_type)).collect();
        let work = self.relation_name();
        let rows = self.last_rows(&work, &names, &types)?;
        self.common_tables.push(CommonTable {
            last_rows: Some(LastRows { rows, read_at: None }),
            columns: Vec::new(),
            recursive: false,
            ..table.clone()
        });
        let next = self.query(right);
        let own = self.common_tables.pop().and_then(|own| own.last_rows);
        let next = next?;
        let at = self.tree.span(right);
        if own.is_none_or(|own| own.read_at.is_none()) {
            return self.united((SetOperator::Union, all), first, next, at);
        }
        check_columns(&first, &next, &types, at)?;
        // All steps must return the same types, without catalog type marks.
        let (first, next) = (unmarked(first)?, unmarked(next)?);
        let first = self.conformed(first, &names, &types)?;
        let next = self.conformed(next, &names, &types)?;
        let plan = RecursiveQuery::try_new(work, Arc::new(first), Arc::new(next), !all);
        let plan = LogicalPlan::RecursiveQuery(plan.map_err(error::plan)?);
        let column = |(name, of): (&String, &SqlType)| relation::output_column(name, *of);
        let columns: Vec<ScopeColumn> = names.iter().zip(&types).map(column).collect();
        Ok(Relation::of(plan, columns))
    }

    /// If a query consists only of a UNION, returns whether the UNION keeps duplicates, and its two
    /// sides.
    fn recursive_union(&self, query: NodeId) -> EngineResult<Option<(bool, NodeId, NodeId)>> {
        let body = match self.node(query)? {
            Node::Query { declarations, with, body, order_by, limit: None }
                if declarations.is_empty() && with.is_empty() && order_by.is_empty() =>
            {
                *body
            }
            _ => return Ok(None),
        };
        Ok(match self.node(body)? {
            Node::SetOperation { operator: SetOperator::Union, all, left, right } => {
                Some((*all, *left, *right))
            }
            _ => None,
        })
    }

    /// The working table, which contains the previous step's rows.
    fn last_rows(
        &mut self,
        work: &str,
        names: &[String],
        types: &[SqlType],
    ) -> EngineResult<Relation> {
        let columns: Vec<(String, SqlType)> =
            names.iter().cloned().zip(types.iter().copied()).collect();
        let fields = columns.iter().map(|(name, of)| Field::new(name, of.arrow_type(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        self.provider_rows(Arc::new(CteWorkTable::new(work, schema)), &columns)
    }

    /// The previous step's rows. They may be referenced only once.
    pub(crate) fn read_last_rows(&mut self, position: usize, at: Span) -> Option<Relation> {
        let own = self.common_tables.get_mut(position)?.last_rows.as_mut()?;
        if own.read_at.is_some() {
            let message = "a recursive query can reference itself only once";
            self.deferred.get_or_insert(error::at(ErrorCode::NotSupported, message, at));
            return Some(own.rows.clone());
        }
        own.read_at = Some(at);
        Some(own.rows.clone())
    }
}

/// Removes the catalog type marks from the rows' columns.
fn unmarked(rows: Relation) -> EngineResult<Relation> {
    if rows.plan.schema().fields().iter().all(|field| field.metadata().is_empty()) {
        return Ok(rows);
    }
    let value = |column: &ScopeColumn| marked(column.expr(), None).alias(&column.column.name);
    let exprs = rows.columns.iter().map(value).collect();
    let plan = relation::project(rows.plan.clone(), exprs)?;
    let mut columns = rows.columns.clone();
    for column in &mut columns {
        column.column = Column::new_unqualified(&column.column.name);
    }
    Ok(Relation::of(plan, columns))
}

fn is_texty(of: SqlType) -> bool {
    of.is_text() || of == SqlType::Char
}

/// The type that a column has in all steps of a recursive CTE. SYMBOL, CHAR and untyped null become
/// STRING: symbol codes are valid only within one table, a single character may become a longer
/// string in the next step, and an untyped null is shown as a string.
fn column_type(of: SqlType) -> SqlType {
    match of {
        SqlType::Symbol | SqlType::Char | SqlType::Null => SqlType::String,
        other => other,
    }
}

/// Rejects a right side whose column types differ from the left side's: a value must have the same
/// meaning in each step.
fn check_columns(
    first: &Relation,
    next: &Relation,
    types: &[SqlType],
    at: Span,
) -> EngineResult<()> {
    let mismatch = |message: String| error::at(ErrorCode::TypeMismatch, message, at);
    if first.columns.len() != next.columns.len() {
        return Err(mismatch("queries have different number of columns".to_owned()));
    }
    for (target, column) in types.iter().zip(&next.columns) {
        // A number in a string column would be formatted differently in each step: `1`, then `1.0`.
        let fits = if target.is_text() {
            is_texty(column.sql_type)
        } else {
            unify::union_columns(*target, column.sql_type) == Some(*target)
        };
        if !fits {
            let (found, target) = (column.sql_type.name(), target.name());
            let name = &column.name;
            let message = format!(
                "recursive query: column '{name}' is {target} in the first term and {found} \
                 in the second"
            );
            let failure: EngineError = mismatch(message);
            return Err(failure.with_hint("cast one of them"));
        }
    }
    Ok(())
}
