//! Sub-queries: as values, in EXISTS, IN, ANY and ALL, and LATERAL. A name that is not found in the
//! sub-query's own sources refers to a column of the outer rows.

use std::sync::Arc;

use datafusion::common::Spans;
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::logical_expr::expr::{AggregateFunction, Exists, InSubquery};
use datafusion::logical_expr::{Aggregate, Expr, Extension, LogicalPlan, Subquery, ident};
use tidemark_ast::{BinaryOperator, Name, Node, NodeId, Span};
use tidemark_functions::{Argument, CastMode, is_wide, resolve_aggregate, wide_time};
use tidemark_operators::SampleByNode;
use tidemark_optimizer::uncorrelated_clause;
use tidemark_types::text_array::text_array;
use tidemark_types::{CatalogType, EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::catalog::pg_catalog::marked::marked;
use crate::binder::expressions::registered::Registered;
use crate::binder::expressions::typing::located_call;
use crate::binder::expressions::{constant, literal, predicate};
use crate::binder::state::outer_rows::{OuterRows, outer_reference};
use crate::binder::state::scope::{Relation, Scope, ScopeColumn, is_unknown};
use crate::binder::state::{relation, work};
use crate::binder::{Binder, Typed, error};

/// The quantifier in a comparison with a sub-query.
#[derive(Clone, Copy, PartialEq)]
enum Quantifier {
    Any,
    All,
}

impl Binder<'_> {
    /// Binds an inner query that may read outer rows, and returns the outer columns it reads.
    pub(crate) fn beside_rows(
        &mut self,
        rows: Relation,
        bind: impl FnOnce(&mut Self) -> EngineResult<Relation>,
    ) -> EngineResult<(Relation, Vec<Expr>)> {
        self.outer.push(OuterRows::new(rows));
        let bound = bind(self);
        let captured = self.outer.pop().map(|outer| outer.captured).unwrap_or_default();
        Ok((bound?, captured))
    }

    /// Binds a sub-query in an expression.
    fn sub_query(
        &mut self,
        query: NodeId,
        scope: &Scope<'_>,
    ) -> EngineResult<(Relation, Vec<Expr>)> {
        let rows = scope.relation.cloned().unwrap_or_else(relation::one_row);
        let (relation, captured) = self.beside_rows(rows, |binder| binder.query(query))?;
        check_correlation(&relation, &captured, self.tree.span(query))?;
        Ok((relation, captured))
    }

    /// Binds `touch(SELECT …)`, which reads every column of the rows and returns the number of
    /// pages read.
    pub(crate) fn touch(&mut self, query: NodeId, scope: &Scope<'_>) -> EngineResult<Typed> {
        let (relation, captured) = self.sub_query(query, scope)?;
        let columns = relation.columns.iter().map(ScopeColumn::expr).collect();
        let bytes = tidemark_functions::row_bytes(columns).alias("bytes");
        let rows = Arc::new(relation::project(relation.plan, vec![bytes])?);
        let total = vec![sum(ident("bytes")).alias("bytes")];
        let total = Aggregate::try_new(rows, Vec::new(), total).map_err(error::plan)?;
        let text = tidemark_functions::pages_text(ident("bytes")).alias("touch");
        let plan = relation::project(LogicalPlan::Aggregate(total), vec![text])?;
        let value = Expr::ScalarSubquery(subquery(plan, captured));
        Ok(Typed::computed(value, SqlType::String))
    }

    /// Binds `ARRAY(SELECT …)`: the values of one column in row order, in `PostgreSQL`'s array
    /// format.
    pub(crate) fn array_of_query(
        &mut self,
        query: NodeId,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        let at = self.tree.span(query);
        let rows = scope.relation.cloned().unwrap_or_else(relation::one_row);
        let (list, captured) = self.beside_rows(rows, |binder| {
            let rows = binder.query(query)?;
            binder.gathered(rows, query)
        })?;
        check_correlation(&list, &captured, at)?;
        let list = Expr::ScalarSubquery(subquery(list.plan, captured));
        let list = Typed::computed(list, SqlType::String);
        let mut list = self.scalar_call("coalesce", vec![list, literal::text("{}")], at, &[])?;
        list.expr = marked(list.expr, Some(CatalogType::TextArray));
        Ok(list)
    }

    /// Aggregates the only column of these rows into a single value, as text.
    fn gathered(&mut self, rows: Relation, query: NodeId) -> EngineResult<Relation> {
        let at = self.tree.span(query);
        let rows = rows.restored()?;
        let [column] = rows.columns.as_slice() else { return Err(not_one_column(at)) };
        let value = Typed::computed(column.expr(), column.sql_type);
        let value = match self.registered_item(query) {
            Some(kind) => self.registered_name(value, kind, at)?,
            None => self.cast(value, SqlType::String, CastMode::Explicit, at)?,
        };
        let resolved = resolve_aggregate("array_agg", false, &[Argument::column(SqlType::String)]);
        let resolved = resolved.map_err(|failure| located_call(failure, at, &[]))?;
        let list =
            AggregateFunction::new_udf(resolved.udaf, vec![value.expr], false, None, vec![], None);
        let list = Expr::AggregateFunction(list).alias("array");
        // Sort explicitly, because the join with the outer rows preserves no other order.
        let input = match rows.ascending_time() {
            Some(time) => relation::sort_by_time(rows.plan.clone(), time.expr())?,
            None => rows.plan,
        };
        let node = SampleByNode::try_new(input, None, Vec::new(), vec![list]);
        let node = Arc::new(node.map_err(error::plan)?.in_any_order(false));
        let plan = LogicalPlan::Extension(Extension { node });
        Ok(Relation::of(plan, vec![relation::output_column("array", SqlType::String)]))
    }

    /// If the query's only select item is a cast to a catalog object type, returns that type.
    fn registered_item(&self, query: NodeId) -> Option<Registered> {
        let mut at = query;
        while let Some(Node::Query { body, .. }) = self.tree.get(at) {
            at = *body;
        }
        let Some(Node::Select(select)) = self.tree.get(at) else { return None };
        match self.tree.get(select.items.first()?.expression) {
            Some(Node::Cast { type_name, .. }) => Registered::of(type_name),
            _ => None,
        }
    }

    /// Binds a sub-query that must have one column.
    fn one_column(
        &mut self,
        query: NodeId,
        scope: &Scope<'_>,
    ) -> EngineResult<(Relation, Vec<Expr>)> {
        let (relation, captured) = self.sub_query(query, scope)?;
        if relation.columns.len() == 1 {
            return Ok((relation, captured));
        }
        Err(not_one_column(self.tree.span(query)))
    }

    /// The outer column that a path names; the innermost scope is searched first.
    pub(crate) fn outer_column(&mut self, path: &[Name]) -> EngineResult<Option<Typed>> {
        let mut found = None;
        for (level, outer) in self.outer.iter().enumerate().rev() {
            match outer.rows.resolve(path) {
                Ok(index) => {
                    found = Some((level, index));
                    break;
                }
                Err(failure) if !is_unknown(&failure) => return Err(failure),
                Err(_) => {}
            }
        }
        let Some((level, index)) = found else {
            // If the qualifier is an outer source, report which column it lacks.
            let qualified = |outer: &&OuterRows| match path {
                [qualifier, _] => outer.rows.has_source(&qualifier.text),
                _ => false,
            };
            let around = self.outer.iter().rev().find(qualified);
            return around.map_or(Ok(None), |outer| outer.rows.resolve(path).map(|_| None));
        };
        let rows = &self.outer[level].rows;
        let column = rows.columns[index].clone();
        let reference = outer_reference(&column);
        for (number, outer) in self.outer.iter_mut().enumerate().skip(level) {
            let seen = if number == level { column.expr() } else { reference.clone() };
            outer.capture(seen, &column);
        }
        Ok(Some(Typed::computed(reference, column.sql_type)))
    }

    /// Binds `(SELECT …)` as a value.
    pub(crate) fn scalar_query(&mut self, query: NodeId, scope: &Scope<'_>) -> EngineResult<Typed> {
        let (relation, captured) = self.one_column(query, scope)?;
        let sql_type = relation.columns[0].sql_type;
        let value = Expr::ScalarSubquery(subquery(relation.plan, captured));
        Ok(Typed::computed(value, sql_type).never_null())
    }

    /// Binds `EXISTS (SELECT …)`.
    pub(crate) fn exists(&mut self, query: NodeId, scope: &Scope<'_>) -> EngineResult<Typed> {
        let (relation, captured) = self.sub_query(query, scope)?;
        Ok(existing(relation.plan, captured, false))
    }

    /// Binds `operand IN (SELECT …)`.
    pub(crate) fn in_query(
        &mut self,
        operand: NodeId,
        query: NodeId,
        position: Span,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        let operand = self.expression(operand, scope)?;
        let (relation, captured) = self.one_column(query, scope)?;
        let column = &relation.columns[0];
        let texty = |of: SqlType| of.is_text() || of == SqlType::Char;
        // Joins compare two symbols as symbols. Other string types are compared as VARCHAR.
        let common = if [operand.sql_type, column.sql_type] == [SqlType::Symbol; 2] {
            Some(SqlType::Symbol)
        } else if texty(operand.sql_type) && texty(column.sql_type) {
            Some(SqlType::Varchar)
        } else {
            tidemark_functions::common_type(operand.sql_type, column.sql_type)
                .filter(|common| !common.is_text())
        };
        let Some(common) = common else {
            return Err(error::at(
                ErrorCode::TypeMismatch,
                format!(
                    "there is no matching operator `in` with the argument types: {} in CURSOR",
                    operand.sql_type.name()
                ),
                position,
            ));
        };
        let is_wide = is_wide(operand.sql_type, column.sql_type);
        let mut key = |of: Typed| {
            if is_wide {
                return Ok(wide_time(of.expr, of.sql_type));
            }
            self.cast(of, common, CastMode::Implicit, position).map(|cast| cast.expr)
        };
        let item = key(Typed::computed(column.expr(), column.sql_type))?;
        let operand = key(operand)?;
        let plan = relation::project(relation.plan.clone(), vec![item.alias("in")])?;
        let subquery = subquery(plan, captured);
        let expr = Expr::InSubquery(InSubquery::new(Box::new(operand), subquery, false));
        Ok(Typed::computed(expr, SqlType::Boolean))
    }

    /// Whether the right operand is `ANY (…)`, `SOME (…)` or `ALL (…)`.
    pub(crate) fn is_quantified(&self, right: NodeId) -> bool {
        let words = ["any", "some", "all"];
        match self.tree.get(right) {
            Some(Node::Call(call)) => {
                words.iter().any(|word| call.name.text.eq_ignore_ascii_case(word))
            }
            _ => false,
        }
    }

    /// Binds `left operator ANY (…)` and `left operator ALL (…)` over a sub-query or over the items
    /// of an array. `None` if the right operand is neither ANY nor ALL.
    pub(crate) fn quantified(
        &mut self,
        operator: BinaryOperator,
        left: NodeId,
        right: NodeId,
        position: Span,
        scope: &Scope<'_>,
    ) -> EngineResult<Option<Typed>> {
        let Node::Call(call) = self.node(right)? else { return Ok(None) };
        let quantifier = match call.name.text.to_ascii_lowercase().as_str() {
            "any" | "some" => Quantifier::Any,
            "all" => Quantifier::All,
            _ => return Ok(None),
        };
        let [argument] = self.plain_arguments(call)? else { return Ok(None) };
        if !is_comparison(operator) {
            let message = format!("{} requires a comparison operator", call.name.text);
            return Err(error::at(ErrorCode::TypeMismatch, message, position));
        }
        let tested = match self.node(*argument)? {
            Node::Subquery { query } | Node::Exists { query } => {
                self.quantified_query(quantifier, operator, left, *query, position, scope)?
            }
            Node::Query { .. } | Node::Select(_) => {
                self.quantified_query(quantifier, operator, left, *argument, position, scope)?
            }
            Node::Array { items } => {
                let mut tests = Vec::with_capacity(items.len());
                for item in items {
                    let operand = self.expression(left, scope)?;
                    let item = self.expression(*item, scope)?;
                    tests.push(self.operator(operator, operand, item, position)?);
                }
                match quantifier {
                    Quantifier::Any => predicate::any(tests),
                    Quantifier::All => predicate::all(tests),
                }
            }
            _ => {
                let array = self.expression(*argument, scope)?;
                let item = self.expression(left, scope)?;
                if quantifier == Quantifier::Any && operator == BinaryOperator::Equal {
                    self.in_array(array, item, position)?
                } else {
                    self.quantified_array(quantifier, operator, array, &item, position)?
                }
            }
        };
        Ok(Some(tested))
    }

    /// Binds `item <> ALL($1)` or `item > ANY($1)`: one comparison for each item of a constant
    /// array.
    fn quantified_array(
        &mut self,
        quantifier: Quantifier,
        operator: BinaryOperator,
        array: Typed,
        item: &Typed,
        position: Span,
    ) -> EngineResult<Typed> {
        let array = match array.parameter {
            Some(_) => self.settled_array(array, array_of(item.sql_type))?,
            None => array,
        };
        let Some(text) = array.constant.as_ref().and_then(constant::as_text) else {
            if matches!(array.expr, Expr::Placeholder(_)) {
                // The result is unknown until the statement is bound again with its values.
                return Ok(Typed::computed(array.expr.is_null(), SqlType::Boolean));
            }
            let what = "ANY and ALL with a non-constant array, except '= ANY', are";
            return Err(error::not_supported(what, position));
        };
        let items: Vec<Option<String>> = text_array(text).collect();
        work::must_repeat(item, items.len(), position)?;
        let mut tests = Vec::with_capacity(items.len());
        for text in items {
            // A comparison with null is never true.
            tests.push(match text {
                None => Typed::truth(false),
                Some(text) => {
                    let value = self.item_of(&text, item.sql_type, position)?;
                    self.operator(operator, item.clone(), value, position)?
                }
            });
        }
        Ok(match quantifier {
            Quantifier::Any => predicate::any(tests),
            Quantifier::All => predicate::all(tests),
        })
    }

    /// Converts an element from an array's text form to a value of the given type.
    fn item_of(&mut self, text: &str, of: SqlType, position: Span) -> EngineResult<Typed> {
        let value = literal::text(text);
        if of.is_text() || of == SqlType::Char {
            return Ok(value);
        }
        self.cast(value, of, CastMode::Constant, position)
    }

    /// Binds `item = ANY(array)`.
    fn in_array(&mut self, array: Typed, item: Typed, position: Span) -> EngineResult<Typed> {
        let array = self.array_beside(array, &item)?;
        if let Some(text) = array.constant.as_ref().and_then(constant::as_text) {
            // Null does not equal any element.
            let items = text_array(text).flatten().map(Some).collect();
            return self.any_of(&item, items, position);
        }
        // Catalog arrays are stored as strings.
        let found = if array.sql_type.is_text() {
            let item = self.cast(item, SqlType::String, CastMode::Explicit, position)?;
            self.scalar_call("pg_array_position", vec![array, item], position, &[])?
        } else {
            self.scalar_call("array_position", vec![array, item], position, &[])?
        };
        Ok(predicate::is_null(found, true))
    }

    /// Binds `item IN $1` with an array whose elements have this type; a string without braces is a
    /// single element. Null is an ordinary element here.
    pub(crate) fn in_parameter(
        &mut self,
        array: Typed,
        item: &Typed,
        position: Span,
    ) -> EngineResult<Typed> {
        let array = self.settled_array(array, array_of(item.sql_type))?;
        if array.is_null_constant() {
            return self.any_of(item, vec![None], position);
        }
        let Some(text) = array.constant.as_ref().and_then(constant::as_text) else {
            return self.in_array(array, item.clone(), position);
        };
        let is_list = text.starts_with('{') && text.ends_with('}');
        let items = if is_list { text_array(text).collect() } else { vec![Some(text.to_owned())] };
        self.any_of(item, items, position)
    }

    /// Binds the array in `item = ANY($1)`, with elements of the item's type.
    fn array_beside(&mut self, array: Typed, item: &Typed) -> EngineResult<Typed> {
        match item.sql_type {
            SqlType::Double | SqlType::Float => self.settled(array, SqlType::DoubleArray(1)),
            other if array.parameter.is_some() => self.settled_array(array, array_of(other)),
            _ => Ok(array),
        }
    }

    /// Whether the value equals one of these items.
    fn any_of(
        &mut self,
        item: &Typed,
        items: Vec<Option<String>>,
        position: Span,
    ) -> EngineResult<Typed> {
        work::must_repeat(item, items.len(), position)?;
        let mut tests = Vec::with_capacity(items.len());
        for text in items {
            let value = match text {
                None => Typed::null(),
                Some(text) => self.item_of(&text, item.sql_type, position)?,
            };
            tests.push(self.operator(BinaryOperator::Equal, item.clone(), value, position)?);
        }
        Ok(predicate::any(tests))
    }

    /// Compares a value with a sub-query's rows. With ANY, at least one row must satisfy the
    /// comparison; with ALL, no row may fail it.
    fn quantified_query(
        &mut self,
        quantifier: Quantifier,
        operator: BinaryOperator,
        left: NodeId,
        query: NodeId,
        position: Span,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        let operand = self.expression(left, scope)?;
        let rows = scope.relation.cloned().unwrap_or_else(relation::one_row);
        let mut outer = OuterRows::new(rows);
        let operand = outer.as_outer_reference(operand)?;
        let (relation, mut captured) = self.one_column(query, scope)?;
        for expr in outer.captured {
            if !captured.contains(&expr) {
                captured.push(expr);
            }
        }
        let column = &relation.columns[0];
        let value = Typed::computed(column.expr(), column.sql_type);
        let test = self.operator(operator, operand, value, position)?;
        let all = quantifier == Quantifier::All;
        let test = if all { predicate::not(test) } else { test };
        let plan = relation::filter(relation.plan.clone(), test.expr)?;
        Ok(existing(plan, captured, all))
    }
}

/// Whether an operator is a comparison.
fn is_comparison(operator: BinaryOperator) -> bool {
    use BinaryOperator::{
        Add, BitAnd, BitOr, BitXor, ContainedBy, ContainedByOrEqual, Contains, ContainsOrEqual,
        Divide, Equal, Greater, GreaterOrEqual, ILike, Less, LessOrEqual, Like, Matches, Modulo,
        Multiply, NotEqual, NotILike, NotLike, NotMatches, Subtract,
    };
    match operator {
        Add | Subtract | Multiply | Divide | Modulo | BitAnd | BitOr | BitXor => false,
        Equal | NotEqual | Less | LessOrEqual | Greater | GreaterOrEqual | Matches | NotMatches
        | Like | NotLike | ILike | NotILike | ContainedBy | ContainedByOrEqual | Contains
        | ContainsOrEqual => true,
    }
}

fn not_one_column(at: Span) -> EngineError {
    error::at(ErrorCode::TypeMismatch, "query must return one column", at)
}

/// The `PostgreSQL` array type for elements of this type.
fn array_of(item: SqlType) -> &'static str {
    match item {
        SqlType::Double | SqlType::Float => "DOUBLE[]",
        SqlType::Boolean => "BOOLEAN[]",
        SqlType::Byte | SqlType::Short => "SHORT[]",
        SqlType::Int => "INT[]",
        SqlType::Long => "LONG[]",
        SqlType::Uuid => "UUID[]",
        SqlType::Timestamp | SqlType::TimestampNs | SqlType::Date => "TIMESTAMP[]",
        _ => "VARCHAR[]",
    }
}

/// Rejects a correlated sub-query if one of its clauses does not support correlation.
pub(crate) fn check_correlation(
    relation: &Relation,
    captured: &[Expr],
    at: Span,
) -> EngineResult<()> {
    match uncorrelated_clause(&relation.plan) {
        Some(clause) if !captured.is_empty() => {
            let what = format!("{clause} in a correlated sub-query is");
            Err(error::not_supported(&what, at))
        }
        _ => Ok(()),
    }
}

/// Wraps a plan as a sub-query that reads the outer columns `captured`.
pub(crate) fn subquery(plan: LogicalPlan, captured: Vec<Expr>) -> Subquery {
    Subquery { subquery: Arc::new(plan), outer_ref_columns: captured, spans: Spans::new() }
}

fn existing(plan: LogicalPlan, captured: Vec<Expr>, negated: bool) -> Typed {
    let expr = Expr::Exists(Exists::new(subquery(plan, captured), negated));
    Typed::computed(expr, SqlType::Boolean)
}
