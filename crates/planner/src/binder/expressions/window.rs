//! Binds window functions.

use arrow_schema::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions_aggregate as aggregates;
use datafusion::functions_window as windows;
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::{Expr, SortExpr, WindowFunctionDefinition, cast};
use tidemark_ast::{CallNode, Frame, Node, OrderItem, Span, WindowSpec};
use tidemark_functions::{Argument, CastMode, resolve_aggregate};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::expressions::constant;
use crate::binder::expressions::expression::has_window;
use crate::binder::expressions::frame_aggregate::over_frames;
use crate::binder::expressions::neighbour::not_null_neighbour;
use crate::binder::expressions::partition_function::is_partition_function;
use crate::binder::expressions::placeholder::with_placeholders;
use crate::binder::expressions::sort_key::SortKey;
use crate::binder::expressions::typing::located_call;
use crate::binder::expressions::unify;
use crate::binder::expressions::window_frame::OverRows;
use crate::binder::expressions::window_frame::{Frames, around, default_frame, is_never_filled};
use crate::binder::state::named_windows::Window;
use crate::binder::state::scope::Scope;
use crate::binder::{Binder, Typed, error};

/// A resolved window function for `DataFusion`, with its argument and result types.
struct Resolved {
    function: WindowFunctionDefinition,
    arguments: Vec<Typed>,
    return_type: SqlType,
    distinct: bool,
    /// Whether only `DataFusion`, which treats rows with equal timestamps as peers, can execute the
    /// function.
    by_rows: bool,
}

impl Binder<'_> {
    /// Binds `f(…) OVER (…)`.
    pub(crate) fn window_call(
        &mut self,
        call: &CallNode,
        over: &WindowSpec,
        position: Span,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        if !scope.windows {
            return Err(refused(call.name.span));
        }
        let over = &self.named_windows.over(over)?;
        let Window { partition_by, order_by: keys, frame, anchor } = over;
        let inner = Scope { windows: false, ..*scope };
        let resolved = self.window_resolved(call, over, position, &inner)?;
        let resolved = self.only_filtered(resolved, call, &inner)?;
        let partition_by = self.expressions(partition_by, &inner)?;
        let mut order_by = self.window_order(keys, &inner)?;
        let at = frame.as_ref().map_or(call.name.span, |frame| frame.span);
        let frames = self.frames_of(call, frame.as_ref(), (&resolved, &order_by), scope)?;
        if let Frames::One(frame) = &frames
            && is_never_filled(frame)
        {
            return self.over_nothing(resolved.function.name(), resolved.return_type);
        }
        if resolved.by_rows && frames.ends_amid_equals() {
            return Err(refused_range(&call.name.text, at));
        }
        if frames.by_rows() {
            // Partition keys are constant within a partition, and DataFusion fails on them in ORDER
            // BY.
            order_by.retain(|key| !partition_by.iter().any(|one| one.expr == key.expr));
        }
        refuse_decimals_around(&resolved, &frames, at)?;
        let period = match anchor {
            None => None,
            Some(anchor) => {
                Some(self.anchored(anchor, over, (&partition_by, &order_by), &inner)?)
            }
        };
        let exprs = resolved.arguments.iter().chain(&partition_by).map(|typed| &typed.expr);
        if exprs.chain(order_by.iter().map(|key| &key.expr)).any(has_window) {
            return Err(refused(call.name.span));
        }
        let ignore_nulls = Self::ignores_nulls(call, resolved.function.name())?;
        if resolved.by_rows && order_by.is_empty() && frames.by_rows() {
            order_by.extend(by_time(scope));
        }
        let unsigned =
            matches!(resolved.function.name(), "row_number" | "rank" | "dense_rank" | "ntile");
        let window = OverRows {
            function: resolved.function,
            arguments: resolved.arguments.into_iter().map(|argument| argument.expr).collect(),
            partition_by: partition_by.into_iter().map(|key| key.expr).chain(period).collect(),
            order_by,
            ignore_nulls,
            distinct: resolved.distinct,
        };
        let expr = match &frames {
            Frames::One(frame) => window.over(frame),
            Frames::Around(before, behind) => around(&window, (before, behind), at)?,
        };
        // DataFusion returns unsigned counts.
        let expr = if unsigned { cast(expr, DataType::Int64) } else { expr };
        let value = Typed::computed(expr, resolved.return_type);
        // Aggregates return null if no row passes FILTER.
        Ok(if call.filter.is_some() { value.never_null() } else { value })
    }

    /// A call's frames. An explicit frame is validated even if the function ignores it.
    fn frames_of(
        &mut self,
        call: &CallNode,
        written: Option<&Frame>,
        (resolved, order_by): (&Resolved, &[SortExpr]),
        scope: &Scope<'_>,
    ) -> EngineResult<Frames> {
        let frames = match written {
            Some(frame) => self.frames(frame, order_by, scope, call.name.span)?,
            None => Frames::One(default_frame(!order_by.is_empty())),
        };
        if ignores_frames(resolved.function.name()) {
            return Ok(Frames::One(default_frame(!order_by.is_empty())));
        }
        Ok(frames)
    }

    /// A window's ORDER BY.
    fn window_order(
        &mut self,
        keys: &[OrderItem],
        scope: &Scope<'_>,
    ) -> EngineResult<Vec<SortExpr>> {
        let mut order_by = Vec::with_capacity(keys.len());
        for item in keys {
            let key = self.expression(item.expression, scope)?;
            let expr = key.expr.clone();
            order_by.push(SortKey::new(item, key.expr, key.sql_type, None).sort(expr));
        }
        Ok(order_by)
    }

    /// The resolved function with its arguments.
    fn window_resolved(
        &mut self,
        call: &CallNode,
        over: &Window,
        position: Span,
        scope: &Scope<'_>,
    ) -> EngineResult<Resolved> {
        let arguments = match call.arguments.as_slice() {
            [only] if matches!(self.node(*only)?, Node::Star { .. }) => Vec::new(),
            ids => self.expressions(ids, scope)?,
        };
        let is_average = call.name.text.eq_ignore_ascii_case("avg") && arguments.len() > 1;
        if call.distinct && (is_average || is_partition_function(&call.name.text)) {
            let what = format!("{}(DISTINCT …) over a window is", call.name.text);
            return Err(error::not_supported(&what, call.name.span));
        }
        let (function, arguments, return_type) = if is_partition_function(&call.name.text) {
            self.partition_function(call, over, scope)?
        } else if is_average {
            let (function, arguments) = self.moving_average(call, over, scope)?;
            (function, arguments, SqlType::Double)
        } else {
            let arguments = Self::with_time(&call.name.text, arguments, scope);
            return self.window_function(call, arguments, position);
        };
        let function = WindowFunctionDefinition::WindowUDF(function);
        Ok(Resolved { function, arguments, return_type, distinct: false, by_rows: false })
    }

    /// Whether IGNORE NULLS applies. It applies to functions that return a value from another row,
    /// and to aggregates, which always skip nulls.
    fn ignores_nulls(call: &CallNode, function: &str) -> EngineResult<bool> {
        let ranks = matches!(
            function,
            "row_number" | "rank" | "dense_rank" | "percent_rank" | "cume_dist" | "ntile"
        );
        let own = is_partition_function(&call.name.text) || function == "moving_average";
        if call.ignore_nulls && (ranks || own || call.arguments.is_empty()) {
            let what = format!("IGNORE NULLS of {} is", call.name.text);
            return Err(error::not_supported(&what, call.name.span));
        }
        Ok(call.ignore_nulls || call.name.text.eq_ignore_ascii_case("locf"))
    }

    /// Implements FILTER: the argument becomes null in rows that fail the filter, and every
    /// aggregate skips nulls. The frame, the operator and the input of live views remain unchanged.
    fn only_filtered(
        &mut self,
        mut resolved: Resolved,
        call: &CallNode,
        scope: &Scope<'_>,
    ) -> EngineResult<Resolved> {
        let Some(filter) = call.filter else { return Ok(resolved) };
        let is_aggregate = matches!(resolved.function, WindowFunctionDefinition::AggregateUDF(_));
        let Some(value) = resolved.arguments.first_mut().filter(|_| is_aggregate) else {
            let what = format!("FILTER with the window function {} is", call.name.text);
            return Err(error::not_supported(&what, self.tree.span(filter)));
        };
        let test = self.predicate(filter, scope, false)?;
        let is_met = (Box::new(test.expr), Box::new(value.expr.clone()));
        value.expr = Expr::Case(Case::new(None, vec![is_met], None));
        value.constant = None;
        Ok(resolved)
    }

    /// A function's result over an empty frame.
    fn over_nothing(&mut self, name: &str, return_type: SqlType) -> EngineResult<Typed> {
        if name == "count" {
            return Ok(Typed::literal(ScalarValue::Int64(Some(0)), SqlType::Long));
        }
        self.cast(Typed::null(), return_type, CastMode::Explicit, Span::default())
    }

    fn window_function(
        &mut self,
        call: &CallNode,
        arguments: Vec<Typed>,
        position: Span,
    ) -> EngineResult<Resolved> {
        use WindowFunctionDefinition::WindowUDF;
        let name = call.name.text.to_ascii_lowercase();
        self.check_neighbour(&name, call, &arguments)?;
        // DISTINCT does not change a minimum or maximum.
        if call.distinct && !matches!(name.as_str(), "min" | "max") {
            return self.window_aggregate(call, &name, arguments);
        }
        Self::check_arity(&name, call, &arguments)?;
        let first_type = value_type(&name, &arguments);
        if first_type == SqlType::Period && matches!(name.as_str(), "min" | "max") {
            // DataFusion would compare the months first.
            let what = format!("{name} of PERIOD values over a window is");
            return Err(error::not_supported(&what, call.name.span));
        }
        let plain = |function, return_type| (function, return_type);
        let whole = |of: SqlType| if of.is_integer() { SqlType::Long } else { of };
        let (function, return_type) = match name.as_str() {
            "row_number" => plain(WindowUDF(windows::row_number::row_number_udwf()), SqlType::Long),
            "rank" => plain(WindowUDF(windows::rank::rank_udwf()), SqlType::Long),
            "dense_rank" => plain(WindowUDF(windows::rank::dense_rank_udwf()), SqlType::Long),
            "percent_rank" => plain(WindowUDF(windows::rank::percent_rank_udwf()), SqlType::Double),
            "cume_dist" => plain(WindowUDF(windows::cume_dist::cume_dist_udwf()), SqlType::Double),
            "ntile" => plain(WindowUDF(windows::ntile::ntile_udwf()), SqlType::Long),
            "lag" | "lead" if call.ignore_nulls => {
                let of = whole(first_type);
                plain(WindowUDF(not_null_neighbour(name == "lead", of.arrow_type())), of)
            }
            "lag" => plain(WindowUDF(windows::lead_lag::lag_udwf()), whole(first_type)),
            "lead" => plain(WindowUDF(windows::lead_lag::lead_udwf()), whole(first_type)),
            "first_value" | "first_not_null_value" => {
                plain(WindowUDF(windows::nth_value::first_value_udwf()), whole(first_type))
            }
            "last_value" | "last_not_null_value" | "locf" => {
                plain(WindowUDF(windows::nth_value::last_value_udwf()), whole(first_type))
            }
            "nth_value" => {
                plain(WindowUDF(windows::nth_value::nth_value_udwf()), whole(first_type))
            }
            "count" => plain(over_frames(aggregates::count::count_udaf()), SqlType::Long),
            "sum" | "avg" if is_decimal(first_type) => {
                return self.window_aggregate(call, &name, arguments);
            }
            "sum" | "ksum" => plain(over_frames(aggregates::sum::sum_udaf()), SqlType::Double),
            "avg" if arguments.len() == 1 => {
                plain(over_frames(aggregates::average::avg_udaf()), SqlType::Double)
            }
            "min" => plain(over_frames(aggregates::min_max::min_udaf()), whole(first_type)),
            "max" => plain(over_frames(aggregates::min_max::max_udaf()), whole(first_type)),
            _ => return self.window_aggregate(call, &name, arguments),
        };
        let mut arguments = self.window_arguments(&name, arguments, return_type, position)?;
        if call.ignore_nulls && matches!(name.as_str(), "lag" | "lead") {
            if arguments.len() < 2 {
                arguments.push(Typed::literal(ScalarValue::Int64(Some(1)), SqlType::Long));
            }
            if arguments.len() < 3 {
                let null = self.cast(Typed::null(), return_type, CastMode::Explicit, position)?;
                arguments.push(null);
            }
        }
        Ok(Resolved { function, arguments, return_type, distinct: false, by_rows: false })
    }

    /// Rejects too few or too many arguments for `DataFusion`.
    fn check_arity(name: &str, call: &CallNode, given: &[Typed]) -> EngineResult<()> {
        let (min, max) = match name {
            "row_number" | "rank" | "dense_rank" | "percent_rank" | "cume_dist" => (0, 0),
            "count" => (0, 1),
            "nth_value" => (2, 2),
            "lag" | "lead" => (1, 3),
            _ => (1, 1),
        };
        if is_foldable(name) || (min..=max).contains(&given.len()) {
            return Ok(());
        }
        let message = if given.is_empty() {
            format!("function `{name}` requires arguments")
        } else {
            let types: Vec<String> = given.iter().map(|one| one.sql_type.name()).collect();
            let types = types.join(", ");
            format!("there is no matching function `{name}` with the argument types: ({types})")
        };
        Err(error::at(ErrorCode::InvalidValue, message, call.name.span))
    }

    /// Resolves an aggregate without a special window implementation. Numeric aggregates keep a
    /// single state for all preceding rows, so growing frames incur no extra cost.
    fn window_aggregate(
        &mut self,
        call: &CallNode,
        name: &str,
        arguments: Vec<Typed>,
    ) -> EngineResult<Resolved> {
        let at = call.name.span;
        if call.distinct && name != "count" {
            let what = format!("{name}(DISTINCT …) over a window is");
            return Err(error::not_supported(&what, at));
        }
        let is_exact = matches!(name, "sum" | "avg")
            && arguments.first().is_some_and(|first| is_decimal(first.sql_type));
        if !call.distinct && !is_foldable(name) && !is_exact {
            let message = format!("unknown window function: {name}");
            return Err(error::at(ErrorCode::FunctionNotFound, message, at));
        }
        let spans = self.argument_spans(call);
        let mut arguments = arguments;
        self.settle_constants(&mut arguments, |described| {
            resolve_aggregate(name, call.distinct, described)
                .map(|resolved| resolved.argument_types)
        })?;
        let resolve = |described: &[Argument]| resolve_aggregate(name, call.distinct, described);
        let resolved = with_placeholders(&arguments, resolve)
            .map_err(|failure| located_call(failure, at, &spans))?;
        let arguments = self.arguments_as(arguments, &resolved.argument_types, (at, &spans))?;
        Ok(Resolved {
            function: over_frames(resolved.udaf),
            arguments,
            return_type: resolved.return_type,
            distinct: resolved.distinct,
            by_rows: true,
        })
    }

    /// Checks the arguments of `lag` and `lead`.
    fn check_neighbour(
        &self,
        name: &str,
        call: &CallNode,
        arguments: &[Typed],
    ) -> EngineResult<()> {
        if !matches!(name, "lag" | "lead") {
            return Ok(());
        }
        if arguments.is_empty() {
            return Err(error::at(
                ErrorCode::InvalidValue,
                format!("function `{name}` requires arguments"),
                call.name.span,
            ));
        }
        let distance = arguments.get(1).and_then(|distance| distance.constant.as_ref());
        if distance.and_then(constant::as_i64).is_some_and(|distance| distance < 0) {
            return Err(error::at(
                ErrorCode::InvalidValue,
                "offset must be a positive integer",
                self.tree.span(call.arguments[1]),
            ));
        }
        Ok(())
    }

    fn window_arguments(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
        return_type: SqlType,
        position: Span,
    ) -> EngineResult<Vec<Typed>> {
        let mut casted = Vec::with_capacity(arguments.len().max(1));
        let value_first = !matches!(name, "count" | "ntile" | "row_number" | "rank" | "dense_rank");
        for (index, argument) in arguments.into_iter().enumerate() {
            let argument = match index {
                0 if value_first => {
                    self.cast(argument, return_type, CastMode::Implicit, position)?
                }
                0 if name == "count" => argument,
                2 if matches!(name, "lag" | "lead") => {
                    self.cast(argument, return_type, CastMode::Implicit, position)?
                }
                _ => self.cast(argument, SqlType::Long, CastMode::Implicit, position)?,
            };
            casted.push(argument);
        }
        if name == "count" && casted.is_empty() {
            casted.push(Typed::literal(ScalarValue::Int64(Some(1)), SqlType::Long));
        }
        Ok(casted)
    }
}

/// The type of a window function's value. `lag` and `lead` use the common type of their value and
/// default. If the value is a string, or if no common type exists, they use the value's type.
fn value_type(name: &str, arguments: &[Typed]) -> SqlType {
    let first = arguments.first().map_or(SqlType::Null, |first| first.sql_type);
    match (name, arguments.get(2)) {
        ("lag" | "lead", Some(default)) if !first.is_text() => {
            unify::branches(first, default.sql_type).unwrap_or(first)
        }
        _ => first,
    }
}

/// Returns `row_number()` over a window.
pub(crate) fn row_number(partition_by: Vec<Expr>, order_by: Vec<SortExpr>) -> Expr {
    let window = OverRows {
        function: WindowFunctionDefinition::WindowUDF(windows::row_number::row_number_udwf()),
        arguments: Vec::new(),
        partition_by,
        order_by,
        ignore_nulls: false,
        distinct: false,
    };
    window.over(&default_frame(true))
}

/// The row order for a window without ORDER BY. `DataFusion` reads a scan's partitions in any
/// order, but ROWS frames and aggregates such as `delta` depend on the row order.
fn by_time(scope: &Scope<'_>) -> Option<SortExpr> {
    let column = scope.relation?.timestamp_column()?;
    column.origin.note();
    Some(SortExpr::new(column.expr(), true, true))
}

/// The error for a window function in a clause that does not allow it.
pub(crate) fn refused(at: Span) -> EngineError {
    let message = "window functions are not allowed here";
    error::at(ErrorCode::NotSupported, message, at).with_hint("compute it in a sub-query")
}

fn refused_range(name: &str, at: Span) -> EngineError {
    let what = format!("RANGE up to the current row for {name} is");
    error::not_supported(&what, at).with_hint("end the frame before the current row, or use ROWS")
}

/// Rejects exact DECIMAL sums and averages over a frame that excludes the current row. Such a frame
/// is split in two, and an exact result cannot be computed from the two partial results.
fn refuse_decimals_around(resolved: &Resolved, frames: &Frames, at: Span) -> EngineResult<()> {
    let name = resolved.function.name();
    let is_exact = is_decimal(resolved.return_type) && matches!(name, "sum" | "avg");
    if !is_exact || !matches!(frames, Frames::Around(..)) {
        return Ok(());
    }
    let what = format!(
        "EXCLUDE CURRENT ROW for {name} of DECIMAL values in a frame with following rows is"
    );
    Err(error::not_supported(&what, at))
}

fn is_decimal(of: SqlType) -> bool {
    matches!(of, SqlType::Decimal(..))
}

/// Whether a function depends only on row order and ignores the frame.
fn ignores_frames(name: &str) -> bool {
    matches!(
        name,
        "row_number"
            | "rank"
            | "dense_rank"
            | "percent_rank"
            | "cume_dist"
            | "ntile"
            | "lag"
            | "lead"
    )
}

/// Whether an aggregate's state consists of a few numbers.
fn is_foldable(name: &str) -> bool {
    matches!(
        name,
        "corr"
            | "covar_pop"
            | "covar_samp"
            | "delta"
            | "derivative"
            | "increase"
            | "integral"
            | "rate"
            | "stddev"
            | "stddev_pop"
            | "stddev_samp"
            | "time_weight"
            | "twap"
            | "var_pop"
            | "var_samp"
            | "variance"
    )
}
