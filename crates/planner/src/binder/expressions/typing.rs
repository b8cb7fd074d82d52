//! Interface to the function library: resolves operators, functions and casts, inserts the required
//! casts, and folds constants.

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::{Case, Expr, ScalarUDF, Volatility};
use tidemark_ast::{BinaryOperator, Span, UnaryOperator};
use tidemark_functions::{
    Argument, CastMode, ResolveError, ResolvedScalar, cast_value, failing_cast, is_long_chain,
    located_cast, resolve_operator, resolve_scalar, resolve_unary,
};
use tidemark_types::bounded::folding;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::expressions::placeholder::{is_unbound, with_placeholders};
use crate::binder::expressions::{constant, literal, predicate};
use crate::binder::{Binder, Typed, error};

impl Typed {
    /// Evaluates the expression if it is constant. Evaluation errors are reported only at run time,
    /// as in `QuestDB`.
    pub(crate) fn folded(self) -> Self {
        match folding(|| constant::evaluate(&self.expr)) {
            Ok(value) => Self::literal(value, self.sql_type),
            Err(_) => self,
        }
    }
}

/// Adds the position to an error from the function library.
pub(crate) fn located(source: ResolveError, position: Span) -> EngineError {
    let engine: EngineError = source.into();
    engine.at_if_missing(error::span(position))
}

/// Positions an error from the function library at the argument that it refers to or, if there is
/// none, at the call.
pub(crate) fn located_call(source: ResolveError, position: Span, spans: &[Span]) -> EngineError {
    let at = source.argument().and_then(|index| spans.get(index)).copied();
    let mut at = at.unwrap_or(position);
    at.start = (at.start + source.offset() as u32).min(at.end);
    located(source, at)
}

impl Binder<'_> {
    /// Binds `left operator right`.
    pub(crate) fn operator(
        &mut self,
        operator: BinaryOperator,
        left: Typed,
        right: Typed,
        position: Span,
    ) -> EngineResult<Typed> {
        self.operator_between(operator, [left, right], position, &[])
    }

    /// Binds `left operator right` with the operands' spans.
    pub(crate) fn operator_between(
        &mut self,
        operator: BinaryOperator,
        [left, right]: [Typed; 2],
        position: Span,
        spans: &[Span],
    ) -> EngineResult<Typed> {
        let left = self.integer_element(left, operator, position)?;
        let right = self.integer_element(right, operator, position)?;
        let left = self.settled_beside(left, &right, operator)?;
        let right = self.settled_beside(right, &left, operator)?;
        let left = self.letter_of_truth(left, &right, operator, position)?;
        let right = self.letter_of_truth(right, &left, operator, position)?;
        let left = self.array_in_text(left, &right, position)?;
        let right = self.array_in_text(right, &left, position)?;
        let (left, right) = if is_comparison(operator) {
            let (left, right) = (left.unwrapped(), right.unwrapped());
            let right = decimal_beside(right, &left, position);
            (decimal_beside(left, &right, position), right)
        } else {
            (left, right)
        };
        let (ours, theirs) = (operand_of(operator, &left), operand_of(operator, &right));
        let resolved = resolve_operator(operator, &ours, &theirs)
            .map_err(|error| located_call(error, position, spans))?;
        if resolved.return_type == SqlType::Int && exceeds_int(operator, &left, &right) {
            let left = self.cast(left, SqlType::Long, CastMode::Implicit, position)?;
            let right = self.cast(right, SqlType::Long, CastMode::Implicit, position)?;
            return self.operator_between(operator, [left, right], position, spans);
        }
        let place = |index: usize| (position, spans.get(index).copied().unwrap_or(position));
        let left = self.operand(operator, left, resolved.left_type, place(0))?;
        let right = self.operand(operator, right, resolved.right_type, place(1))?;
        let constant = left.constant.is_some() && right.constant.is_some();
        let expr = (resolved.build)(left.expr, right.expr);
        let typed = Typed::computed(expr, resolved.return_type);
        Ok(if constant { typed.folded() } else { typed })
    }

    /// Converts a CHAR compared with a BOOLEAN: `t` and `T` are true, all other characters are
    /// false.
    fn letter_of_truth(
        &mut self,
        typed: Typed,
        other: &Typed,
        operator: BinaryOperator,
        position: Span,
    ) -> EngineResult<Typed> {
        let is_equality = matches!(operator, BinaryOperator::Equal | BinaryOperator::NotEqual);
        if !is_equality || typed.sql_type != SqlType::Char || other.sql_type != SqlType::Boolean {
            return Ok(typed);
        }
        let [small, capital] = ["t", "T"].map(|letter| {
            self.operator(BinaryOperator::Equal, typed.clone(), literal::text(letter), position)
        });
        Ok(predicate::any(vec![small?, capital?]))
    }

    /// Converts a constant string to an array if the other operand is an array: `conkey = '{1,2}'`.
    fn array_in_text(
        &mut self,
        typed: Typed,
        other: &Typed,
        position: Span,
    ) -> EngineResult<Typed> {
        let is_text = typed.constant.as_ref().and_then(constant::as_text).is_some();
        if !is_text || !matches!(other.sql_type, SqlType::DoubleArray(_)) {
            return Ok(typed);
        }
        self.cast(typed, other.sql_type, CastMode::Constant, position)
    }

    /// Casts an array element to LONG for bit operators, because integer arrays are stored as
    /// DOUBLE.
    fn integer_element(
        &mut self,
        typed: Typed,
        operator: BinaryOperator,
        position: Span,
    ) -> EngineResult<Typed> {
        use BinaryOperator::{BitAnd, BitOr, BitXor};
        let is_element =
            matches!(&typed.expr, Expr::ScalarFunction(call) if call.func.name() == "array_at");
        if is_element
            && typed.sql_type == SqlType::Double
            && matches!(operator, BitAnd | BitOr | BitXor)
        {
            return self.cast(typed, SqlType::Long, CastMode::Explicit, position);
        }
        Ok(typed)
    }

    /// Casts an operand to the type that its operator requires. In comparisons with numbers,
    /// non-numeric SYMBOL and CHAR values count as null; other non-numeric strings are an error.
    fn operand(
        &mut self,
        operator: BinaryOperator,
        typed: Typed,
        target: SqlType,
        (position, own): (Span, Span),
    ) -> EngineResult<Typed> {
        let lenient = is_comparison(operator)
            && matches!(typed.sql_type, SqlType::Symbol | SqlType::Char)
            && (target.is_integer() || target.is_floating())
            && typed.constant.is_none();
        if !lenient {
            return self.cast_at(typed, target, CastMode::Implicit, (position, own));
        }
        let text = self.cast(typed, SqlType::Varchar, CastMode::Implicit, position)?;
        self.cast(text, target, CastMode::Explicit, position)
    }

    /// Gives an untyped parameter the other operand's type.
    fn settled_beside(
        &mut self,
        typed: Typed,
        other: &Typed,
        operator: BinaryOperator,
    ) -> EngineResult<Typed> {
        let pattern = matches!(
            operator,
            BinaryOperator::Like
                | BinaryOperator::NotLike
                | BinaryOperator::ILike
                | BinaryOperator::NotILike
                | BinaryOperator::Matches
                | BinaryOperator::NotMatches
        );
        let network = matches!(
            operator,
            BinaryOperator::ContainedBy
                | BinaryOperator::ContainedByOrEqual
                | BinaryOperator::Contains
                | BinaryOperator::ContainsOrEqual
        );
        let target = match (operator, other.sql_type) {
            _ if pattern || network => SqlType::Varchar,
            (BinaryOperator::Add | BinaryOperator::Subtract, SqlType::Ipv4) => SqlType::Long,
            // Timestamps can be subtracted and compared, but not added.
            (BinaryOperator::Add | BinaryOperator::Multiply, time) if time.is_timestamp() => {
                SqlType::Long
            }
            (_, other) => other,
        };
        self.settled(typed, target)
    }

    /// Binds `operator operand`.
    pub(crate) fn prefix_operator(
        &mut self,
        operator: UnaryOperator,
        operand: Typed,
        position: Span,
    ) -> EngineResult<Typed> {
        // `-$1` is a number, of the type that its context requires.
        let is_period = operand.sql_type == SqlType::Period;
        if matches!(operator, UnaryOperator::Minus) && operand.parameter.is_some() && !is_period {
            return Ok(Typed { expr: Expr::Negative(Box::new(operand.expr)), ..operand });
        }
        let open = match operator {
            UnaryOperator::BitNot => SqlType::Long,
            UnaryOperator::Not => SqlType::Boolean,
            UnaryOperator::Minus | UnaryOperator::Plus => SqlType::Double,
        };
        let operand = self.settled(operand, open)?;
        let (build, target, returns) = resolve_unary(operator, &operand.argument())
            .map_err(|error| located(error, position))?;
        let operand = self.cast(operand, target, CastMode::Implicit, position)?;
        let constant = operand.constant.is_some();
        let typed = Typed::computed(build(operand.expr), returns);
        Ok(if constant { typed.folded() } else { typed })
    }

    /// Binds a scalar function call. An error about an argument is positioned at the argument.
    pub(crate) fn scalar_call(
        &mut self,
        name: &str,
        mut arguments: Vec<Typed>,
        position: Span,
        spans: &[Span],
    ) -> EngineResult<Typed> {
        self.settle_constants(&mut arguments, |described| {
            resolve_scalar(name, described).map(|resolved| resolved.argument_types)
        })?;
        let resolve = |arguments: &[Typed]| {
            with_placeholders(arguments, |described| resolve_scalar(name, described))
        };
        let refused = |error| located_call(error, position, spans);
        let mut found = resolve(&arguments);
        if matches!(found, Err(ResolveError::NoOverload { .. })) {
            let narrow = self.narrowed(arguments.clone())?;
            if let Ok(fitting) = resolve(&narrow) {
                (found, arguments) = (Ok(fitting), narrow);
            }
        }
        let mut resolved = found.map_err(refused)?;
        let wants = |index: usize, resolved: &ResolvedScalar| {
            resolved.argument_types.get(index).copied().unwrap_or(SqlType::Null)
        };
        let is_open = |(index, typed): (usize, &Typed)| {
            typed.parameter.is_some() && wants(index, &resolved) == SqlType::Null
        };
        let open: Vec<usize> =
            arguments.iter().enumerate().filter(|of| is_open(*of)).map(|of| of.0).collect();
        if !open.is_empty() {
            // The function accepts any type, so the parameter becomes a string, which is the
            // default.
            for index in open {
                arguments[index] = self.settled(arguments[index].clone(), SqlType::Varchar)?;
            }
            resolved = resolve(&arguments).map_err(refused)?;
        }
        let resolved = match self.seed {
            Some(seed) if resolved.is_volatile() => {
                // Each call generates its own random numbers.
                self.seed = Some(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1));
                resolved.seeded(seed)
            }
            _ => resolved,
        };
        self.resolved_call(resolved, arguments, position, spans)
    }

    /// Casts LONG constants and parameters to INT, because drivers declare every integer as LONG.
    fn narrowed(&mut self, arguments: Vec<Typed>) -> EngineResult<Vec<Typed>> {
        let narrow = |argument: Typed| {
            let is_open = is_unbound(&argument) && !argument.expr.any_column_refs();
            let number = argument.constant.as_ref().and_then(constant::as_i64);
            let fits = number.is_some_and(|number| i32::try_from(number).is_ok());
            if argument.sql_type != SqlType::Long || !(is_open || fits) {
                return Ok(argument);
            }
            self.cast(argument, SqlType::Int, CastMode::Explicit, Span::default())
        };
        arguments.into_iter().map(narrow).collect()
    }

    /// Binds a resolved function call with these arguments and their spans.
    pub(crate) fn resolved_call(
        &mut self,
        resolved: ResolvedScalar,
        arguments: Vec<Typed>,
        position: Span,
        spans: &[Span],
    ) -> EngineResult<Typed> {
        let mut exprs = Vec::with_capacity(arguments.len());
        let mut constant = true;
        for (index, argument) in arguments.into_iter().enumerate() {
            let target = resolved.argument_types.get(index).copied();
            let target = target.unwrap_or(argument.sql_type);
            let argument = self.settled(argument, target)?;
            let place = (position, spans.get(index).copied().unwrap_or(position));
            let argument = self.cast_at(argument, target, CastMode::Implicit, place)?;
            constant &= argument.constant.is_some();
            exprs.push(argument.expr);
        }
        let foldable = constant && is_immutable(&resolved.udf);
        if let Some(expr) = first_not_null(&resolved, &exprs).filter(|_| !foldable) {
            return Ok(Typed::computed(expr, resolved.return_type));
        }
        let expr = Expr::ScalarFunction(datafusion::logical_expr::expr::ScalarFunction {
            func: resolved.udf,
            args: exprs,
        });
        let typed = Typed::computed(expr, resolved.return_type);
        Ok(if foldable { typed.folded() } else { typed })
    }

    /// Casts a call's arguments to the required types. An error is positioned at the argument's
    /// span, if known.
    pub(crate) fn arguments_as(
        &mut self,
        arguments: Vec<Typed>,
        types: &[SqlType],
        (call, spans): (Span, &[Span]),
    ) -> EngineResult<Vec<Typed>> {
        let cast = |(index, (argument, to)): (usize, (Typed, &SqlType))| {
            let position = (call, spans.get(index).copied().unwrap_or(call));
            self.cast_at(argument, *to, CastMode::Implicit, position)
        };
        arguments.into_iter().zip(types).enumerate().map(cast).collect()
    }

    /// Casts a value to a different type.
    pub(crate) fn cast(
        &mut self,
        typed: Typed,
        to: SqlType,
        mode: CastMode,
        position: Span,
    ) -> EngineResult<Typed> {
        self.cast_at(typed, to, mode, (position, position))
    }

    /// Casts a value; an error about the value is positioned at `own`.
    pub(crate) fn cast_at(
        &mut self,
        typed: Typed,
        to: SqlType,
        mode: CastMode,
        (position, own): (Span, Span),
    ) -> EngineResult<Typed> {
        let typed = self.settled(typed, to)?;
        if typed.sql_type == to {
            return Ok(typed);
        }
        if let Some(value) = &typed.constant {
            let known = cast_value(value, typed.sql_type, to, mode);
            if let Some(value) = known.map_err(|error| located(error, position))? {
                return Ok(Typed::literal(value, to));
            }
            // EXPLAIN reports errors that every execution would report.
            if let (true, CastMode::Implicit, Some(value)) = (self.explaining, mode, shown(value)) {
                let from = typed.sql_type;
                return Err(located(ResolveError::InconvertibleValue { value, from, to }, own));
            }
            let types = (typed.sql_type, to);
            let failing = failing_cast(typed.expr, types, mode, error::span(own));
            return Ok(Typed::computed(failing, to));
        }
        // Errors of implicit casts are positioned at the value.
        let at = (mode == CastMode::Implicit).then(|| error::span(own));
        let expr = located_cast(typed.expr, (typed.sql_type, to), mode, at)
            .map_err(|error| located(error, position))?;
        Ok(Typed::computed(expr, to))
    }

    /// Converts the value to a predicate: a BOOLEAN that is never null.
    pub(crate) fn truth_of(&mut self, typed: Typed, position: Span) -> EngineResult<Typed> {
        match typed.sql_type {
            SqlType::Boolean => Ok(typed),
            SqlType::Null => self.cast(typed, SqlType::Boolean, CastMode::Implicit, position),
            _ => Err(error::at(ErrorCode::TypeMismatch, "boolean expression expected", position)),
        }
    }
}

/// A string or character constant, quoted as in error messages.
fn shown(value: &ScalarValue) -> Option<String> {
    match value {
        ScalarValue::UInt16(Some(unit)) => char::from_u32(u32::from(*unit)).map(String::from),
        text => constant::as_text(text).map(str::to_owned),
    }
}

/// Describes the operand for operator resolution. A parameter counts as a constant, because the
/// difference between two timestamps has a different type if one of them is constant.
fn operand_of(op: BinaryOperator, typed: &Typed) -> Argument {
    let mut argument = typed.argument();
    let is_difference = op == BinaryOperator::Subtract && typed.sql_type.is_timestamp();
    if is_difference && is_unbound(typed) && !typed.expr.any_column_refs() {
        argument.constant = Some(ScalarValue::Null);
    }
    argument
}

/// Whether an operation on INTs yields a LONG: if both operands are constants and the result
/// exceeds INT, or if the operation is part of a chain with constants.
fn exceeds_int(op: BinaryOperator, left: &Typed, right: &Typed) -> bool {
    let number = |typed: &Typed| typed.constant.as_ref().and_then(constant::as_i64);
    match (number(left), number(right)) {
        (Some(left), Some(right)) => {
            let exact = match op {
                BinaryOperator::Add => left + right,
                BinaryOperator::Subtract => left - right,
                BinaryOperator::Multiply => left * right,
                _ => return false,
            };
            // A result of 2^31 remains an INT: it wraps to the value that represents null.
            exact.unsigned_abs() > 1 << 31
        }
        _ => is_long_chain(op, &left.expr, &right.expr),
    }
}

fn is_immutable(function: &ScalarUDF) -> bool {
    function.signature().volatility == Volatility::Immutable
}

pub(crate) fn is_comparison(operator: BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::Equal
            | BinaryOperator::NotEqual
            | BinaryOperator::Less
            | BinaryOperator::LessOrEqual
            | BinaryOperator::Greater
            | BinaryOperator::GreaterOrEqual
    )
}

/// Converts a DOUBLE literal compared with a DECIMAL to a DECIMAL with the same digits: `price =
/// 1.5`.
fn decimal_beside(number: Typed, other: &Typed, position: Span) -> Typed {
    let is_decimal = matches!(other.sql_type, SqlType::Decimal(..));
    match number.constant {
        Some(ScalarValue::Float64(Some(value)))
            if is_decimal && number.sql_type == SqlType::Double && value.is_finite() =>
        {
            // A literal with more digits than a DECIMAL can have remains a DOUBLE.
            literal::decimal(&value.to_string(), position).unwrap_or(number)
        }
        _ => number,
    }
}

/// Implements `coalesce` of DECIMALs as a CASE: values after the first non-null value are not
/// computed, so a failed conversion or division by zero in them is not an error.
fn first_not_null(resolved: &ResolvedScalar, exprs: &[Expr]) -> Option<Expr> {
    let (last, others) = exprs.split_last()?;
    let is_of_decimals = matches!(resolved.return_type, SqlType::Decimal(..));
    if resolved.udf.name() != "coalesce" || !is_of_decimals || others.is_empty() {
        return None;
    }
    let is_case = |expr: &Expr| expr.exists(|node| Ok(matches!(node, Expr::Case(_))));
    // The CASE repeats each value, so nested calls would grow exponentially.
    let is_nested = exprs.iter().any(|expr| is_case(expr).unwrap_or(true));
    if is_nested {
        return None;
    }
    let pair = |expr: &Expr| {
        let test = Expr::IsNotNull(Box::new(expr.clone()));
        (Box::new(test), Box::new(expr.clone()))
    };
    let pairs = others.iter().map(pair).collect();
    Some(Expr::Case(Case::new(None, pairs, Some(Box::new(last.clone())))))
}
