//! UNION, EXCEPT, INTERSECT, and VALUES as a query.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Union};
use tidemark_ast::{Node, NodeId, SetOperator, Span, ValuesBlock};
use tidemark_functions::CastMode;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::expressions::{literal, unify};
use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, Scope, ScopeColumn};
use crate::binder::{Binder, Typed, error};

/// A query after a set operator, and its position in the SQL text.
struct Operand {
    all: bool,
    rows: Relation,
    position: Span,
}

impl Binder<'_> {
    /// Binds a chain of set operations over queries with the same number of columns. The result has
    /// the common column types of all queries and the column names of the first query. A long chain
    /// is bound without recursion and becomes a flat plan.
    pub(crate) fn set_operation(&mut self, id: NodeId) -> EngineResult<Relation> {
        let mut chain = Vec::new();
        let mut first = id;
        while let Node::SetOperation { operator, all, left, right } = self.node(first)? {
            chain.push((*operator, *all, *right));
            first = *left;
        }
        let mut left = self.query(first)?;
        let mut types = left.types();
        let (mut kind, mut run) = (SetOperator::Union, Vec::new());
        for (operator, all, right) in chain.into_iter().rev() {
            let position = self.tree.span(right);
            let operand = Operand { all, rows: self.query(right)?, position };
            if operator != kind || !continues(kind, &types, &run, &operand) {
                left = self.operated(kind, left, std::mem::take(&mut run))?;
                (kind, types) = (operator, left.types());
            }
            types = common_types(&types, &operand.rows, position)?;
            run.push(operand);
        }
        self.operated(kind, left, run)
    }

    /// Binds a set operation over two queries; `position` is the right query's position.
    pub(crate) fn united(
        &mut self,
        (operator, all): (SetOperator, bool),
        left: Relation,
        right: Relation,
        position: Span,
    ) -> EngineResult<Relation> {
        self.operated(operator, left, vec![Operand { all, rows: right, position }])
    }

    /// Binds `left operator right operator right …`.
    fn operated(
        &mut self,
        operator: SetOperator,
        left: Relation,
        rights: Vec<Operand>,
    ) -> EngineResult<Relation> {
        if rights.is_empty() {
            return Ok(left);
        }
        let names: Vec<String> = left.columns.iter().map(|column| column.name.clone()).collect();
        let alls: Vec<bool> = rights.iter().map(|right| right.all).collect();
        // A column that is a symbol in all inputs of EXCEPT or INTERSECT is a symbol in the result.
        let symbols = |rows: &Relation, at: usize| {
            rows.columns.get(at).is_some_and(|column| column.sql_type == SqlType::Symbol)
        };
        let retained: Vec<bool> = (0..names.len())
            .map(|at| {
                operator != SetOperator::Union
                    && symbols(&left, at)
                    && rights.iter().all(|right| symbols(&right.rows, at))
            })
            .collect();
        let (plans, mut types) = self.in_common_types(left, rights, &names)?;
        let plan = match operator {
            SetOperator::Union => united_plan(plans, &alls)?,
            SetOperator::Except | SetOperator::Intersect => {
                let all = alls.iter().all(|all| *all);
                narrowed_plan(operator, all, plans, &names)?
            }
        };
        let plan = self.with_symbols(named(plan, &names)?, &names, &mut types, &retained)?;
        let columns = names
            .iter()
            .zip(&types)
            .map(|(name, sql_type)| relation::output_column(name, *sql_type))
            .collect();
        Ok(Relation::of(plan, columns))
    }

    /// Casts the columns in `retained` to SYMBOL.
    fn with_symbols(
        &mut self,
        plan: LogicalPlan,
        names: &[String],
        types: &mut [SqlType],
        retained: &[bool],
    ) -> EngineResult<LogicalPlan> {
        if !retained.contains(&true) {
            return Ok(plan);
        }
        let mut exprs = Vec::with_capacity(names.len());
        for (at, (column, name)) in plan.schema().columns().into_iter().zip(names).enumerate() {
            let mut value = Typed::computed(Expr::Column(column), types[at]);
            if retained[at] {
                types[at] = SqlType::Symbol;
                value = self.cast(value, SqlType::Symbol, CastMode::Explicit, Span::default())?;
            }
            exprs.push(value.expr.alias(name));
        }
        relation::project(plan, exprs)
    }

    /// Plans all inputs, with each column cast to the common type. If a later input widens that
    /// type, the preceding inputs are cast again step by step.
    fn in_common_types(
        &mut self,
        left: Relation,
        rights: Vec<Operand>,
        names: &[String],
    ) -> EngineResult<(Vec<LogicalPlan>, Vec<SqlType>)> {
        let values = |rows: &Relation| -> Vec<Typed> {
            let columns = rows.columns.iter();
            columns.map(|column| Typed::computed(column.expr(), column.sql_type)).collect()
        };
        let mut types = left.types();
        let mut sides = vec![(values(&left), left.plan)];
        for Operand { rows, position, .. } in rights {
            self.count_step(self.tree.root)?;
            let next = common_types(&types, &rows, position)?;
            let changed: Vec<usize> =
                (0..types.len()).filter(|at| types[*at] != next[*at]).collect();
            for (side, _) in &mut sides {
                for at in &changed {
                    let value = std::mem::replace(&mut side[*at], Typed::null());
                    side[*at] = self.cast(value, next[*at], CastMode::Explicit, Span::default())?;
                }
            }
            let mut side = Vec::with_capacity(next.len());
            for (value, sql_type) in values(&rows).into_iter().zip(&next) {
                side.push(self.cast(value, *sql_type, CastMode::Explicit, Span::default())?);
            }
            sides.push((side, rows.plan));
            types = next;
        }
        let mut plans = Vec::with_capacity(sides.len());
        for (side, plan) in sides {
            let exprs = side.into_iter().zip(names).map(|(value, name)| value.expr.alias(name));
            plans.push(relation::project(plan, exprs.collect())?);
        }
        Ok((plans, types))
    }

    /// Casts an input's columns to these types and gives them these names.
    pub(crate) fn conformed(
        &mut self,
        side: Relation,
        names: &[String],
        types: &[SqlType],
    ) -> EngineResult<LogicalPlan> {
        let mut exprs = Vec::with_capacity(names.len());
        for ((column, name), sql_type) in side.columns.iter().zip(names).zip(types) {
            let typed = Typed::computed(column.expr(), column.sql_type);
            let at = Span::default();
            let typed = self.cast(typed, *sql_type, CastMode::Explicit, at)?;
            exprs.push(typed.expr.alias(name));
        }
        relation::project(side.plan, exprs)
    }

    /// Binds VALUES as a query with the columns `column1`, `column2`, ….
    pub(crate) fn values_rows(&mut self, rows: &ValuesBlock) -> EngineResult<Relation> {
        let cells = self.values_cells(rows)?;
        let width = cells.first().map_or(0, Vec::len);
        let types = (0..width)
            .map(|column| values_type(cells.iter().map(|row| &row[column])))
            .collect::<EngineResult<Vec<SqlType>>>()?;
        let mut exprs = Vec::with_capacity(cells.len());
        for row in cells {
            let mut cast = Vec::with_capacity(width);
            for ((typed, at), sql_type) in row.into_iter().zip(&types) {
                // A literal that does not convert to the column's type is an error, not null.
                let mode =
                    if is_literal_text(&typed) { CastMode::Insert } else { CastMode::Explicit };
                cast.push(self.cast(typed, *sql_type, mode, at)?.expr);
            }
            exprs.push(cast);
        }
        let has_queries = exprs.iter().flatten().any(has_subquery);
        let plan = if has_queries { rows_of_queries(exprs)? } else { literal_rows(exprs)? };
        let columns = types
            .iter()
            .enumerate()
            .map(|(index, sql_type)| {
                relation::output_column(&format!("column{}", index + 1), *sql_type)
            })
            .collect();
        Ok(Relation::of(plan, columns))
    }

    /// The cells of all VALUES rows, each with its position in the SQL text.
    fn values_cells(&mut self, rows: &ValuesBlock) -> EngineResult<Vec<Vec<(Typed, Span)>>> {
        let width = rows.widths.first().copied().unwrap_or_default();
        let mut cells = Vec::with_capacity(rows.rows as usize);
        let mut cell = 0;
        let kinds = rows.kinds.as_bytes();
        for (row, row_width) in rows.widths.iter().enumerate() {
            if *row_width != width {
                let start = rows.row_starts.get(row).copied().unwrap_or_default();
                return Err(error::at(
                    ErrorCode::TypeMismatch,
                    "all rows of VALUES must have the same number of values",
                    Span { start, end: start },
                ));
            }
            let mut bound = Vec::with_capacity(width as usize);
            for _ in 0..width {
                let start = rows.starts.get(cell).copied().unwrap_or_default();
                let at = Span { start, end: start };
                let kind = kinds.get(cell).copied().unwrap_or(b'n');
                let text = rows.texts.get(cell).map_or("", String::as_str);
                bound.push((self.value_cell(kind, text, at)?, at));
                cell += 1;
            }
            cells.push(bound);
        }
        Ok(cells)
    }

    /// Binds a cell in a VALUES block.
    pub(crate) fn value_cell(&mut self, kind: u8, text: &str, at: Span) -> EngineResult<Typed> {
        match kind {
            b't' => Ok(Typed::truth(true)),
            b'f' => Ok(Typed::truth(false)),
            b'i' => literal::integer(text, at),
            b'd' => literal::floating(text, at),
            b's' => Ok(literal::string(text)),
            b'v' => Err(error::at(
                ErrorCode::NotSupported,
                "DEFAULT is only allowed in the VALUES of an INSERT",
                at,
            )),
            b'x' => {
                let id = text.parse().unwrap_or(NodeId::MAX);
                self.expression(id, &Scope::empty())
            }
            _ => Ok(Typed::null()),
        }
    }
}

/// Whether an expression contains a sub-query.
fn has_subquery(expr: &Expr) -> bool {
    let is_query = |node: &Expr| {
        Ok(matches!(node, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_)))
    };
    expr.exists(is_query).unwrap_or(true)
}

/// Plans rows whose values contain sub-queries. Each such row is a separate plan; consecutive
/// literal rows share one plan.
fn rows_of_queries(rows: Vec<Vec<Expr>>) -> EngineResult<LogicalPlan> {
    let mut plans = Vec::new();
    let mut literals = Vec::new();
    for row in rows {
        if !row.iter().any(has_subquery) {
            literals.push(row);
            continue;
        }
        if !literals.is_empty() {
            plans.push(literal_rows(std::mem::take(&mut literals))?);
        }
        let named = |(index, value): (usize, Expr)| value.alias(format!("column{}", index + 1));
        let values = row.into_iter().enumerate().map(named).collect();
        plans.push(relation::project(relation::one_row().plan, values)?);
    }
    if !literals.is_empty() {
        plans.push(literal_rows(literals)?);
    }
    match plans.len() {
        1 => Ok(plans.swap_remove(0)),
        count => united_plan(plans, &vec![true; count]),
    }
}

fn literal_rows(rows: Vec<Vec<Expr>>) -> EngineResult<LogicalPlan> {
    LogicalPlanBuilder::values(rows).and_then(LogicalPlanBuilder::build).map_err(error::plan)
}

/// Whether a value is a quoted string, whose type depends on the context.
fn is_literal_text(typed: &Typed) -> bool {
    matches!(typed.sql_type, SqlType::String | SqlType::Char) && typed.constant.is_some()
}

/// Determines the type of a VALUES column from its typed cells. Untyped parameters and quoted
/// strings adopt this type. A column without typed cells is a string column.
fn values_type<'c>(cells: impl Iterator<Item = &'c (Typed, Span)>) -> EngineResult<SqlType> {
    let (mut known, mut texts) = (SqlType::Null, SqlType::Null);
    for (typed, at) in cells {
        let column = match typed {
            Typed { parameter: Some(_), .. } => {
                texts = SqlType::Varchar;
                continue;
            }
            literal if is_literal_text(literal) => &mut texts,
            _ => &mut known,
        };
        *column = unify::union_columns(*column, typed.sql_type).ok_or_else(|| {
            error::at(
                ErrorCode::TypeMismatch,
                "the values of a column have incompatible types",
                *at,
            )
        })?;
    }
    let is_text = matches!(known, SqlType::Null | SqlType::Char) || known.is_text();
    // Numbers and strings form a string column, as in a UNION.
    let is_number = known.is_integer() || known.is_floating() || known == SqlType::Boolean;
    let has_literal = !matches!(texts, SqlType::Null | SqlType::Varchar);
    Ok(if is_text || is_number && has_literal {
        unify::union_columns(known, texts).unwrap_or(SqlType::Varchar)
    } else {
        known
    })
}

/// Combines the column types found so far with those of the next input.
fn common_types(types: &[SqlType], rows: &Relation, position: Span) -> EngineResult<Vec<SqlType>> {
    if types.len() != rows.columns.len() {
        let message = "queries have different number of columns";
        return Err(error::at(ErrorCode::TypeMismatch, message, position));
    }
    let common = |(known, column): (&SqlType, &ScopeColumn)| {
        unify::union_columns(*known, column.sql_type).ok_or_else(|| {
            let (from, to) = (column.sql_type.name(), known.name());
            error::at(
                ErrorCode::TypeMismatch,
                format!("unsupported cast [column={}, from={from}, to={to}]", column.name),
                position,
            )
        })
    };
    types.iter().zip(&rows.columns).map(common).collect()
}

/// Whether an operand can be added to the current n-ary operation. If not, the current result
/// becomes the first input of a new operation. Rows are compared in the common types of the
/// operands added so far.
fn continues(kind: SetOperator, types: &[SqlType], run: &[Operand], next: &Operand) -> bool {
    let keeps_types =
        || common_types(types, &next.rows, next.position).is_ok_and(|common| common == types);
    match kind {
        // A change of types does not matter if this UNION removes all duplicates anyway, or if no
        // earlier operation removed any.
        SetOperator::Union => !next.all || run.iter().all(|operand| operand.all) || keeps_types(),
        SetOperator::Except | SetOperator::Intersect => run.is_empty() || keeps_types(),
    }
}

/// Plans a mix of UNION and UNION ALL: the last UNION removes duplicates from everything before it.
fn united_plan(mut plans: Vec<LogicalPlan>, alls: &[bool]) -> EngineResult<LogicalPlan> {
    let union = |plans: Vec<LogicalPlan>| {
        let plans = plans.into_iter().map(Arc::new).collect();
        Union::try_new_with_loose_types(plans).map(LogicalPlan::Union).map_err(error::plan)
    };
    let Some(last) = alls.iter().rposition(|all| !all) else { return union(plans) };
    let others = plans.split_off(last + 2);
    let distinct = relation::distinct(union(plans)?);
    if others.is_empty() {
        return Ok(distinct);
    }
    union(std::iter::once(distinct).chain(others).collect())
}

/// Plans EXCEPT or INTERSECT of the left input and all right inputs. Duplicates in a right input do
/// not matter.
fn narrowed_plan(
    operator: SetOperator,
    all: bool,
    plans: Vec<LogicalPlan>,
    names: &[String],
) -> EngineResult<LogicalPlan> {
    let mut plans = plans.into_iter();
    let left =
        plans.next().ok_or_else(|| EngineError::internal("a set operation has no queries"))?;
    let mut rights: Vec<LogicalPlan> = plans.collect();
    if operator == SetOperator::Except {
        // Duplicates on the right cannot change the result, so they are removed first.
        let right = match rights.len() {
            1 => relation::distinct(rights.remove(0)),
            others => united_plan(rights, &vec![false; others - 1])?,
        };
        return LogicalPlanBuilder::except(left, right, all).map_err(error::plan);
    }
    rights = rights.into_iter().map(relation::distinct).collect();
    while rights.len() > 1 {
        let mut next = Vec::with_capacity(rights.len().div_ceil(2));
        let mut pending = rights.into_iter();
        while let Some(one) = pending.next() {
            next.push(match pending.next() {
                Some(other) => {
                    let both = LogicalPlanBuilder::intersect(one, other, true);
                    named(both.map_err(error::plan)?, names)?
                }
                None => one,
            });
        }
        rights = next;
    }
    let right =
        rights.pop().ok_or_else(|| EngineError::internal("an INTERSECT has only one query"))?;
    LogicalPlanBuilder::intersect(left, right, all).map_err(error::plan)
}

/// Renames the columns so that outer queries do not see qualifiers added by an operator.
fn named(plan: LogicalPlan, names: &[String]) -> EngineResult<LogicalPlan> {
    let columns = plan.schema().columns().into_iter().zip(names);
    let exprs = columns.map(|(column, name)| Expr::Column(column).alias(name)).collect();
    relation::project(plan, exprs)
}
