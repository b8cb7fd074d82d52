//! Function calls: scalar functions, aggregates, and the few functions that the binder evaluates.

use std::sync::Arc;

use arrow_array::{ArrayRef, StructArray, TimestampMicrosecondArray};
use arrow_schema::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::functions_aggregate::grouping::grouping_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, NullTreatment};
use datafusion::logical_expr::{Expr, SortExpr, lit};
use tidemark_ast::{BinaryOperator, CallNode, Node, NodeId, OrderItem, Span};
use tidemark_functions::{
    Argument, CastMode, ResolveError, ResolvedAggregate, is_aggregate_call, period_components,
    period_of_components, period_order, reads_time, resolve_aggregate, resolve_json,
    without_schema,
};
use tidemark_types::calendar::{MICROS_PER_DAY, floor_to};
use tidemark_types::{CatalogType, EngineError, EngineResult, ErrorCode, SqlType, identifier};

use crate::binder::catalog::pg_catalog;
use crate::binder::catalog::pg_catalog::marked::marked;
use crate::binder::expressions::array::catalog_type;
use crate::binder::expressions::expression::{has_aggregate, has_window};
use crate::binder::expressions::placeholder::with_placeholders;
use crate::binder::expressions::sort_key::SortKey;
use crate::binder::expressions::typing::located_call;
use crate::binder::expressions::window;
use crate::binder::expressions::{literal, predicate};
use crate::binder::state::scope::{Relation, Scope, ScopeColumn};
use crate::binder::{Binder, Typed, error};

impl Binder<'_> {
    /// Binds a function call.
    pub(crate) fn call(
        &mut self,
        call: &CallNode,
        position: Span,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        let name = call.name.text.to_ascii_lowercase();
        let is_aggregate = is_aggregate_call(&name, call.arguments.len());
        if let Some(item) = call.order_by.first()
            && (call.over.is_some() || !is_aggregate)
        {
            return Err(self.refused_order(item));
        }
        if let Some(over) = &call.over {
            return self.window_call(call, over, position, scope);
        }
        if is_aggregate && name != "grouping" {
            return self.aggregate_call(call, without_schema(&name), position, scope);
        }
        self.plain_arguments(call)?;
        if name == "grouping" {
            return self.grouping_call(call, scope);
        }
        if let [only] = call.arguments.as_slice()
            && let Node::Star { .. } = self.node(*only)?
        {
            return Err(error::at(
                ErrorCode::Syntax,
                "too few arguments for '*' [found=0,expected=2]",
                self.tree.span(*only),
            ));
        }
        if let Some(own) = self.own_function(&name, call) {
            return Ok(own);
        }
        if let Some(found) = self.list_call(&name, call, scope)? {
            return Ok(found);
        }
        if let Some(found) = self.catalog_call(&name, call, scope)? {
            return Ok(found);
        }
        if let ("touch" | "array", [only]) = (name.as_str(), call.arguments.as_slice())
            && let Some(query) = self.query_of(*only)?
        {
            return if name == "array" {
                self.array_of_query(query, scope)
            } else {
                self.touch(query, scope)
            };
        }
        if let Some(pairs) = self.row_arguments(call, scope)? {
            let object = if name == "to_jsonb" { "jsonb_build_object" } else { "row_to_json" };
            return self.scalar_call(object, pairs, call.name.span, &[]);
        }
        if matches!(name.as_str(), "pause_job" | "resume_job") {
            return self.job_call(call, name == "pause_job", scope);
        }
        let arguments = self.expressions(&call.arguments, scope)?;
        if matches!(name.as_str(), "cancel_query" | "pg_cancel_backend") {
            return self.cancel_call(call, arguments);
        }
        if let Some(found) = self.sequence_call(&name, &arguments, call.name.span)? {
            return Ok(found);
        }
        let spans = self.argument_spans(call);
        self.scalar_call(&call.name.text, arguments, call.name.span, &spans)
    }

    /// A plain call's arguments. Rejects clauses that only aggregates or window functions support.
    pub(crate) fn plain_arguments<'c>(&self, call: &'c CallNode) -> EngineResult<&'c [NodeId]> {
        let CallNode { name, arguments, distinct, order_by, filter, ignore_nulls, over } = call;
        if let Some(item) = order_by.first() {
            return Err(self.refused_order(item));
        }
        let (word, at) = match (distinct, filter, ignore_nulls, over) {
            (true, ..) => ("DISTINCT", name.span),
            (_, Some(filter), ..) => ("FILTER", self.tree.span(*filter)),
            (_, _, true, _) => ("IGNORE NULLS", name.span),
            (.., Some(_)) => ("OVER", name.span),
            (false, None, false, None) => return Ok(arguments),
        };
        let message =
            format!("{word} is not allowed with {}, which is not an aggregate function", name.text);
        Err(error::at(ErrorCode::NotSupported, message, at))
    }

    fn refused_order(&self, item: &OrderItem) -> EngineError {
        let message = "ORDER BY is only allowed inside aggregate functions";
        error::at(ErrorCode::NotSupported, message, self.tree.span(item.expression))
    }

    /// The query that is passed as an argument; `None` if the argument is not a query.
    fn query_of(&self, argument: NodeId) -> EngineResult<Option<NodeId>> {
        Ok(match self.node(argument)? {
            Node::Subquery { query } => Some(*query),
            Node::Query { .. } | Node::Select(_) => Some(argument),
            _ => None,
        })
    }

    /// Binds `json_extract(…)` with the target type of the enclosing cast as its result type.
    pub(crate) fn json_call(
        &mut self,
        call: &CallNode,
        to: SqlType,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        let mut arguments = self.expressions(self.plain_arguments(call)?, scope)?;
        self.settle_constants(&mut arguments, |described| {
            resolve_json(described, to).map(|resolved| resolved.argument_types)
        })?;
        let resolved = with_placeholders(&arguments, |described| resolve_json(described, to))
            .map_err(|failure| located_call(failure, call.name.span, &self.argument_spans(call)))?;
        self.resolved_call(resolved, arguments, call.name.span, &self.argument_spans(call))
    }

    pub(crate) fn argument_spans(&self, call: &CallNode) -> Vec<Span> {
        call.arguments.iter().map(|id| self.tree.span(*id)).collect()
    }

    /// Binds a function without arguments that returns a session value; `None` for other functions.
    fn own_function(&self, name: &str, call: &CallNode) -> Option<Typed> {
        if !call.arguments.is_empty() {
            return None;
        }
        self.session_value(name)
    }

    /// The session value with this name. The name must be in lower case.
    pub(crate) fn session_value(&self, name: &str) -> Option<Typed> {
        let now = || self.context.now();
        Some(match name {
            "now"
            | "systimestamp"
            | "current_timestamp"
            | "localtimestamp"
            | "clock_timestamp"
            | "statement_timestamp"
            | "transaction_timestamp" => Typed::literal(
                ScalarValue::TimestampMicrosecond(Some(now()), None),
                SqlType::Timestamp,
            ),
            "now_ns" | "systimestamp_ns" => Typed::literal(
                ScalarValue::TimestampNanosecond(now().checked_mul(1_000), None),
                SqlType::TimestampNs,
            ),
            "sysdate" => Typed::literal(
                ScalarValue::TimestampMillisecond(Some(now().div_euclid(1_000)), None),
                SqlType::Date,
            ),
            "current_date" => Typed::literal(
                ScalarValue::TimestampMillisecond(
                    Some(floor_to(now(), MICROS_PER_DAY, 0).div_euclid(1_000)),
                    None,
                ),
                SqlType::Date,
            ),
            "today" => day(now(), 0)?,
            "yesterday" => day(now(), -1)?,
            "tomorrow" => day(now(), 1)?,
            "current_user" | "session_user" | "current_role" | "user" => {
                literal::text(&self.context.user)
            }
            "current_database" | "current_schema" | "current_catalog" => {
                literal::text(if name == "current_schema" { "public" } else { "qdb" })
            }
            _ => return None,
        })
    }

    /// Converts the items of a catalog array to strings, because the array is stored as a string.
    fn catalog_items(&mut self, items: Vec<Typed>, position: Span) -> EngineResult<Vec<Typed>> {
        let text = |item: Typed| {
            if !item.sql_type.is_integer() {
                return Ok(item);
            }
            self.cast(item, SqlType::String, CastMode::Explicit, position)
        };
        items.into_iter().map(text).collect()
    }

    fn aggregate_call(
        &mut self,
        call: &CallNode,
        name: &str,
        position: Span,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        if !scope.aggregates {
            return Err(error::at(
                ErrorCode::NotSupported,
                "aggregate functions are not allowed here",
                call.name.span,
            ));
        }
        // Inside an aggregate, names refer to columns first, then to aliases in the select list.
        let inner = Scope { windows: false, aliases_first: false, ..*scope };
        let arguments = self.aggregate_arguments(call, name, &inner)?;
        let filter = self.aggregate_filter(call, &arguments, &inner)?;
        let mut arguments = Self::with_time(name, arguments, &inner);
        let is_json = matches!(name, "json_agg" | "jsonb_agg");
        let name = if is_json { "string_agg" } else { of_lengths(name, &mut arguments) };
        if is_json {
            arguments = self.json_items(arguments, call.name.span)?;
        }
        let list = list_of(name, &arguments, &inner);
        if name == "array_agg" && scope.relation.is_some_and(pg_catalog::is_catalog) {
            arguments = self.catalog_items(arguments, position)?;
        }
        self.refuse_nested(call, &arguments, position)?;
        refuse_outer(call, arguments.iter().map(|one| &one.expr).chain(filter.as_deref()))?;
        if let ("sum" | "avg", [length]) = (name, arguments.as_slice())
            && length.sql_type == SqlType::Period
        {
            return self.total_of_lengths(call, name, &length.expr, filter.as_deref());
        }
        self.settle_constants(&mut arguments, |described| {
            resolve_aggregate(name, call.distinct, described)
                .map(|resolved| resolved.argument_types)
        })?;
        let spans = self.argument_spans(call);
        let (resolved, arguments) = aggregate_over(name, call.distinct, arguments)
            .map_err(|failure| located_call(failure, call.name.span, &spans))?;
        let arguments =
            self.arguments_as(arguments, &resolved.argument_types, (call.name.span, &spans))?;
        let mut exprs: Vec<Expr> = arguments.into_iter().map(|argument| argument.expr).collect();
        // `DataFusion` counts rows by counting a constant.
        exprs.extend(exprs.is_empty().then(|| lit(1_i64)));
        let order = self.order_of_rows(&resolved, call, &inner)?;
        let function = AggregateFunction::new_udf(
            resolved.udaf,
            exprs,
            resolved.distinct,
            filter,
            order,
            resolved.ignore_nulls.then_some(NullTreatment::IgnoreNulls),
        );
        let mut found = Typed::computed(Expr::AggregateFunction(function), resolved.return_type);
        if list.is_some() {
            found.expr = marked(found.expr, list);
        }
        if is_json {
            return self.scalar_call("json_list", vec![found], call.name.span, &[]);
        }
        Ok(found)
    }

    /// An aggregate's filter: its FILTER clause and, with IGNORE NULLS, the condition that its
    /// value is not null.
    fn aggregate_filter(
        &mut self,
        call: &CallNode,
        arguments: &[Typed],
        scope: &Scope<'_>,
    ) -> EngineResult<Option<Box<Expr>>> {
        let rows = Scope { aggregates: false, ..*scope };
        let mut tests = Vec::new();
        if let Some(filter) = call.filter {
            tests.push(self.predicate(filter, &rows, false)?);
        }
        if call.ignore_nulls {
            let Some(value) = arguments.first() else {
                let what = format!("IGNORE NULLS for {} without an argument is", call.name.text);
                return Err(error::not_supported(&what, call.name.span));
            };
            tests.push(predicate::is_null(value.clone(), true));
        }
        Ok((!tests.is_empty()).then(|| Box::new(predicate::all(tests).expr)))
    }

    /// Arguments for `string_agg`, which implements `json_agg`.
    fn json_items(&mut self, items: Vec<Typed>, at: Span) -> EngineResult<Vec<Typed>> {
        Ok(vec![self.scalar_call("json_item", items, at, &[])?, literal::text(", ")])
    }

    /// Rejects an aggregate over another aggregate or over a window function's alias.
    fn refuse_nested(
        &self,
        call: &CallNode,
        arguments: &[Typed],
        position: Span,
    ) -> EngineResult<()> {
        if arguments.iter().any(|argument| has_aggregate(&argument.expr)) {
            return Err(error::at(
                ErrorCode::NotSupported,
                "Aggregate function cannot be passed as an argument",
                call.arguments.first().map_or(position, |id| self.tree.span(*id)),
            ));
        }
        if arguments.iter().any(|argument| has_window(&argument.expr)) {
            return Err(window::refused(call.name.span));
        }
        Ok(())
    }

    /// The sum or average of PERIODs, computed from the sums of their months, days and
    /// microseconds.
    fn total_of_lengths(
        &mut self,
        call: &CallNode,
        name: &str,
        length: &Expr,
        filter: Option<&Expr>,
    ) -> EngineResult<Typed> {
        let at = call.name.span;
        if call.distinct {
            let message = format!("{name}(DISTINCT …) is not supported for PERIOD");
            return Err(error::at(ErrorCode::NotSupported, message, at));
        }
        let aggregate = |name: &str, of: Expr| {
            let resolved = resolve_aggregate(name, false, &[Argument::column(SqlType::Long)]);
            let resolved = resolved.map_err(|failure| located_call(failure, at, &[]))?;
            let filter = filter.cloned().map(Box::new);
            let function =
                AggregateFunction::new_udf(resolved.udaf, vec![of], false, filter, vec![], None);
            EngineResult::Ok(Expr::AggregateFunction(function))
        };
        let [months, days, micros] = period_components(length);
        let count = aggregate("count", months.clone())?;
        let sums = [months, days, micros].map(|component| aggregate("sum", component));
        let sums = sums.into_iter().collect::<EngineResult<Vec<_>>>()?;
        let total = Typed::computed(period_of_components(sums), SqlType::Period);
        if name == "sum" {
            return Ok(total);
        }
        self.operator(BinaryOperator::Divide, total, Typed::computed(count, SqlType::Long), at)
    }

    /// The ORDER BY inside an aggregate call, if the aggregate's result depends on row order.
    fn order_of_rows(
        &mut self,
        resolved: &ResolvedAggregate,
        call: &CallNode,
        scope: &Scope<'_>,
    ) -> EngineResult<Vec<SortExpr>> {
        let rows = Scope { aggregates: false, windows: false, ..*scope };
        let mut keys = Vec::with_capacity(call.order_by.len());
        for item in &call.order_by {
            let value = self.expression(item.expression, &rows)?;
            let key = SortKey::new(item, value.expr.clone(), value.sql_type, None);
            keys.push(key.sort(value.expr));
        }
        if !resolved.order_sensitive {
            return Ok(Vec::new());
        }
        if let (true, "array_agg", Some(item)) =
            (call.distinct, resolved.udaf.name(), call.order_by.iter().find(|item| item.descending))
        {
            let at = self.tree.span(item.expression);
            let message = "array_agg(DISTINCT …) only supports ascending order";
            return Err(error::at(ErrorCode::NotSupported, message, at));
        }
        self.ordered_aggregates.insert(resolved.udaf.name().to_owned());
        Ok(keys)
    }

    /// If a time-based aggregate is called with only a value, adds the rows' designated timestamp
    /// as an argument.
    pub(crate) fn with_time(
        name: &str,
        mut arguments: Vec<Typed>,
        scope: &Scope<'_>,
    ) -> Vec<Typed> {
        if arguments.len() == 1 && reads_time(name) {
            let column = scope.relation.and_then(Relation::timestamp_column);
            arguments.extend(column.map(|column| {
                column.origin.note();
                Typed::computed(column.expr(), column.sql_type)
            }));
        }
        arguments
    }

    fn aggregate_arguments(
        &mut self,
        call: &CallNode,
        name: &str,
        scope: &Scope<'_>,
    ) -> EngineResult<Vec<Typed>> {
        if let [only] = call.arguments.as_slice()
            && let Node::Star { .. } = self.node(*only)?
        {
            if name == "count" {
                return Ok(Vec::new());
            }
            return Err(error::at(
                ErrorCode::Syntax,
                "too few arguments for '*' [found=0,expected=2]",
                self.tree.span(*only),
            ));
        }
        match self.row_arguments(call, scope)? {
            Some(pairs) => {
                self.scalar_call("row_to_json", pairs, call.name.span, &[]).map(|row| vec![row])
            }
            None => self.expressions(&call.arguments, scope),
        }
    }

    /// If a JSON function's only argument is a table alias and not a column, returns the names and
    /// values of the row's columns.
    fn row_arguments(
        &mut self,
        call: &CallNode,
        scope: &Scope<'_>,
    ) -> EngineResult<Option<Vec<Typed>>> {
        const OF_ROWS: [&str; 5] = ["row_to_json", "to_json", "to_jsonb", "json_agg", "jsonb_agg"];
        let called = without_schema(&call.name.text);
        let is_of_rows = OF_ROWS.iter().any(|name| name.eq_ignore_ascii_case(called));
        let ([only], true, Some(rows)) = (call.arguments.as_slice(), is_of_rows, scope.relation)
        else {
            return Ok(None);
        };
        let Node::Column { path } = self.node(*only)? else { return Ok(None) };
        let [name] = path.as_slice() else { return Ok(None) };
        if rows.resolve(path).is_ok() {
            return Ok(None);
        }
        let of_table = |column: &&ScopeColumn| {
            column.qualifier.as_ref().is_some_and(|table| identifier::same(table, &name.text))
        };
        let mut pairs = Vec::new();
        for column in rows.columns.iter().filter(of_table) {
            column.origin.note();
            pairs.push(literal::text(&column.name));
            pairs.push(Typed::computed(column.expr(), column.sql_type));
        }
        Ok((!pairs.is_empty()).then_some(pairs))
    }

    /// Binds `grouping(key, …)`.
    pub(crate) fn grouping_call(
        &mut self,
        call: &CallNode,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        if !scope.aggregates || call.arguments.is_empty() || call.arguments.len() > 31 {
            return Err(error::at(
                ErrorCode::InvalidValue,
                "grouping requires 1 to 31 GROUP BY keys",
                call.name.span,
            ));
        }
        let inner = Scope { aggregates: false, ..*scope };
        let arguments = self.expressions(&call.arguments, &inner)?;
        let arguments = arguments.into_iter().map(|argument| argument.expr).collect();
        let function =
            AggregateFunction::new_udf(grouping_udaf(), arguments, false, None, Vec::new(), None);
        Ok(Typed::computed(Expr::AggregateFunction(function), SqlType::Int))
    }
}

/// The day that is `distance` days after the day of `now`, as an INTERVAL that includes both ends.
fn day(now: i64, distance: i64) -> Option<Typed> {
    let start = floor_to(now, MICROS_PER_DAY, 0) + distance * MICROS_PER_DAY;
    let ends = [start, start + MICROS_PER_DAY - 1];
    let DataType::Struct(fields) = SqlType::Interval.arrow_type() else { return None };
    let arrays = ends
        .iter()
        .map(|end| Arc::new(TimestampMicrosecondArray::from(vec![*end])) as ArrayRef)
        .collect();
    let value = StructArray::try_new(fields, arrays, None).ok()?;
    Some(Typed::literal(ScalarValue::Struct(Arc::new(value)), SqlType::Interval))
}

/// Returns the aggregate to use for PERIODs. `min` and `max` compare periods in their sort order
/// instead of field by field (months, days, microseconds).
fn of_lengths<'n>(name: &'n str, arguments: &mut Vec<Typed>) -> &'n str {
    let [length] = arguments.as_slice() else { return name };
    if length.sql_type != SqlType::Period {
        return name;
    }
    let by = match name {
        "max" => "max_by",
        "min" => "min_by",
        other => return other,
    };
    arguments.push(Typed::computed(period_order(length.expr.clone()), SqlType::Long));
    by
}

/// Rejects an aggregate that reads only outer columns, because standard SQL assigns it to the outer
/// query.
fn refuse_outer<'e>(call: &CallNode, read: impl Iterator<Item = &'e Expr>) -> EngineResult<()> {
    let (mut reads_outer, mut reads_own) = (false, false);
    for expr in read {
        let _ = expr.apply(|node| {
            reads_outer |= matches!(node, Expr::OuterReferenceColumn(..));
            reads_own |= matches!(node, Expr::Column(_));
            Ok(TreeNodeRecursion::Continue)
        });
    }
    if !reads_outer || reads_own {
        return Ok(());
    }
    let name = &call.name.text;
    let message = format!("{name} reads only columns of the outer query");
    let hint = "compute the aggregate in the outer query, or use a column of this query";
    Err(error::at(ErrorCode::NotSupported, message, call.name.span).with_hint(hint))
}

/// Resolves the aggregate and its arguments. INT arithmetic in the arguments is done in 64 bits to
/// prevent wrapping, unless this would change the result type.
fn aggregate_over(
    name: &str,
    distinct: bool,
    arguments: Vec<Typed>,
) -> Result<(ResolvedAggregate, Vec<Typed>), ResolveError> {
    let resolve = |arguments: &[Typed]| {
        with_placeholders(arguments, |described| resolve_aggregate(name, distinct, described))
    };
    let resolved = resolve(&arguments)?;
    let unwrapped: Vec<Typed> = arguments.iter().cloned().map(Typed::unwrapped).collect();
    match resolve(&unwrapped) {
        Ok(wide) if wide.return_type == resolved.return_type => Ok((wide, unwrapped)),
        _ => Ok((resolved, arguments)),
    }
}

/// The `PostgreSQL` array type of the result of `array_agg`; `None` for a native array, which
/// contains numbers that do not come from the catalog.
fn list_of(name: &str, items: &[Typed], scope: &Scope<'_>) -> Option<CatalogType> {
    let item = items.first().filter(|_| name == "array_agg")?;
    let is_catalog = scope.relation.is_some_and(pg_catalog::is_catalog);
    if !is_catalog && !item.sql_type.is_text() && item.sql_type != SqlType::Boolean {
        return None;
    }
    Some(match (catalog_type(item, scope), item.sql_type) {
        (Some(CatalogType::Oid), _) => CatalogType::OidArray,
        (Some(CatalogType::Name), _) => CatalogType::NameArray,
        (_, SqlType::Boolean) => CatalogType::BoolArray,
        (_, SqlType::Byte | SqlType::Short) => CatalogType::Int2Array,
        (_, SqlType::Int) => CatalogType::Int4Array,
        (_, SqlType::Long) => CatalogType::Int8Array,
        _ => CatalogType::TextArray,
    })
}
