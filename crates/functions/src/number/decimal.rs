//! DECIMAL: arithmetic, rounding and conversions.
//!
//! Values are widened to 256 bits, computed, and narrowed to the width of their precision. A value
//! that does not fit is an error; it is never rounded or wrapped.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Decimal256Array, Int64Array, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal256Type, Int64Type, i256};
use datafusion::common::Result;
use datafusion_expr::Volatility;
use tidemark_ast::BinaryOperator;
use tidemark_types::{SqlType, number_text};

use crate::column::{Call, internal, invalid};
use crate::native::Kernel;
use crate::operator::infix::operator;
use crate::resolve::{
    Argument, ResolveError, ResolvedOperator, ResolvedScalar, inconvertible_value, types_of,
};
use crate::signature::resolved;

type Resolved = std::result::Result<ResolvedScalar, ResolveError>;

/// Maximum number of digits in a DECIMAL.
pub(crate) const MAX_PRECISION: u8 = 76;

const TWO: i256 = i256::from_i128(2);

static POWERS: LazyLock<Vec<i256>> = LazyLock::new(|| {
    let ten = i256::from_i128(10);
    let next = |power: &i256| power.checked_mul(ten);
    std::iter::successors(Some(i256::ONE), next).take(usize::from(MAX_PRECISION) + 1).collect()
});

/// Returns 10 to the power of `places`, up to 76.
fn power(places: u32) -> Option<i256> {
    POWERS.get(places as usize).copied()
}

/// How surplus digits are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// Toward zero.
    Down,
    /// Away from zero.
    Up,
    /// Toward the smaller number.
    Floor,
    /// Toward the larger number.
    Ceiling,
    /// To the nearest number; halves away from zero.
    HalfUp,
    /// To the nearest number; halves to the even digit.
    HalfEven,
}

/// Returns the rounded quotient; `None` for division by zero.
pub(crate) fn divide(value: i256, divisor: i256, rounding: Rounding) -> Option<i256> {
    let (quotient, rest) = (value.checked_div(divisor)?, value.checked_rem(divisor)?);
    if rest == i256::ZERO {
        return Some(quotient);
    }
    let negative = value.is_negative() != divisor.is_negative();
    let half = rest.wrapping_abs().wrapping_mul(TWO).cmp(&divisor.wrapping_abs());
    let away = match rounding {
        Rounding::Down => false,
        Rounding::Up => true,
        Rounding::Floor => negative,
        Rounding::Ceiling => !negative,
        Rounding::HalfUp => half.is_ge(),
        Rounding::HalfEven => half.is_gt() || (half.is_eq() && quotient & i256::ONE != i256::ZERO),
    };
    let step = if negative { i256::MINUS_ONE } else { i256::ONE };
    if away { quotient.checked_add(step) } else { Some(quotient) }
}

/// A DECIMAL argument, widened to 256 bits.
pub(crate) struct Decimals {
    values: Decimal256Array,
    scalar: bool,
}

impl Decimals {
    fn of(call: &Call<'_>, index: usize) -> Result<Self> {
        let (array, scalar) = call.array(index)?;
        Ok(Self { values: wide(&array)?, scalar })
    }

    fn get(&self, row: usize) -> Option<i256> {
        let row = if self.scalar { 0 } else { row };
        self.values.is_valid(row).then(|| self.values.value(row))
    }
}

/// Widens a decimal column to 256 bits, keeping its scale.
pub(crate) fn wide(array: &ArrayRef) -> Result<Decimal256Array> {
    let scale = match array.data_type() {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => *scale,
        other => return Err(internal(format!("expected a decimal, found {other}"))),
    };
    let wide = cast(array, &DataType::Decimal256(MAX_PRECISION, scale))?;
    Ok(wide.as_primitive::<Decimal256Type>().clone())
}

/// Builds a column of type `to`; `value` returns each row's digits in the scale of `to`. A value
/// that exceeds the precision is an error with the message `excess`.
pub(crate) fn build_decimals(
    rows: usize,
    to: SqlType,
    excess: &str,
    value: &mut dyn FnMut(usize) -> Result<Option<i256>>,
) -> Result<ArrayRef> {
    let SqlType::Decimal(precision, scale) = to else {
        return Err(internal(format!("{} is not a decimal type", to.name())));
    };
    let bound = power(u32::from(precision)).unwrap_or(i256::MAX);
    let mut digits = Vec::with_capacity(rows);
    for row in 0..rows {
        let found = value(row)?;
        if found.is_some_and(|found| found.wrapping_abs() >= bound) {
            return Err(invalid(excess));
        }
        digits.push(found);
    }
    let wide = Decimal256Array::from(digits);
    let wide = wide.with_precision_and_scale(MAX_PRECISION, scale as i8)?;
    Ok(cast(&wide, &to.arrow_type())?)
}

/// Returns the number of digits before and after the decimal point in an exact type.
fn exact(sql_type: SqlType) -> Option<(u8, u8)> {
    Some(match sql_type {
        SqlType::Decimal(precision, scale) => (precision - scale, scale),
        SqlType::Byte => (3, 0),
        SqlType::Short => (5, 0),
        SqlType::Int => (10, 0),
        SqlType::Long => (19, 0),
        _ => return None,
    })
}

fn of_digits((integer, scale): (u8, u8)) -> SqlType {
    SqlType::Decimal((integer + scale).clamp(1, MAX_PRECISION), scale)
}

/// Returns the type that can hold both operands, if at least one is a decimal.
pub(crate) fn common(left: SqlType, right: SqlType) -> Option<SqlType> {
    if !is_decimal(left) && !is_decimal(right) {
        return None;
    }
    let ((a, s), (b, t)) = (exact(left)?, exact(right)?);
    Some(of_digits((a.max(b), s.max(t))))
}

pub(crate) fn is_decimal(sql_type: SqlType) -> bool {
    matches!(sql_type, SqlType::Decimal(..))
}

// ---- operators ---------------------------------------------------------------------------------

/// Returns an operand's number of digits. A constant integer has its actual digits. A null has the
/// digits of the other operand.
fn operand(argument: &Argument, other: SqlType) -> Option<(u8, u8)> {
    match (argument.sql_type, argument.integer()) {
        (SqlType::Null, _) => exact(other),
        (integer, Some(value)) if integer.is_integer() => {
            Some((value.unsigned_abs().checked_ilog10().unwrap_or(0) as u8 + 1, 0))
        }
        (sql_type, _) => exact(sql_type),
    }
}

fn is_zero(argument: &Argument) -> bool {
    let digits = argument.constant.as_ref().and_then(|value| value.to_array().ok());
    let zero = |array: ArrayRef| match array.as_primitive_opt::<Int64Type>() {
        Some(values) => values.is_valid(0) && values.value(0) == 0,
        None => wide(&array).is_ok_and(|all| all.is_valid(0) && all.value(0) == i256::ZERO),
    };
    argument.integer() == Some(0) || digits.is_some_and(zero)
}

/// Resolves `+ - * / %` if one operand is a DECIMAL; `None` for other operators and types.
pub(crate) fn arithmetic(
    op: BinaryOperator,
    left: &Argument,
    right: &Argument,
) -> Option<std::result::Result<ResolvedOperator, ResolveError>> {
    if !is_decimal(left.sql_type) && !is_decimal(right.sql_type) {
        return None;
    }
    let (a, s) = operand(left, right.sql_type)?;
    let (b, t) = operand(right, left.sql_type)?;
    let scale = s.max(t);
    let (precision, scale) = match op {
        BinaryOperator::Add | BinaryOperator::Subtract => (a.max(b) + scale + 1, scale),
        BinaryOperator::Multiply | BinaryOperator::Divide => (MAX_PRECISION, s + t),
        BinaryOperator::Modulo => (a.max(b) + scale, scale),
        _ => return None,
    };
    let divides = matches!(op, BinaryOperator::Divide | BinaryOperator::Modulo);
    if divides && is_zero(right) {
        return Some(Err(ResolveError::Invalid { message: by_zero(op) }));
    }
    if scale > MAX_PRECISION {
        let message = format!("'{}' operation failed: the scale exceeds 76", op.sign());
        return Some(Err(ResolveError::Invalid { message }));
    }
    let returns = SqlType::Decimal(precision.min(MAX_PRECISION), scale);
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
        let (left, right) = (Decimals::of(call, 0)?, Decimals::of(call, 1)?);
        let excess =
            format!("'{}' operation failed: the result exceeds {}", op.sign(), returns.name());
        build_decimals(call.rows, returns, &excess, &mut |row| {
            let (Some(a), Some(b)) = (left.get(row), right.get(row)) else { return Ok(None) };
            if divides && b == i256::ZERO {
                return Err(invalid(by_zero(op)));
            }
            compute(op, (a, s), (b, t)).map(Some).ok_or_else(|| invalid(excess.as_str()))
        })
    });
    let types = (of_digits((a, s)), of_digits((b, t)), returns);
    Some(Ok(operator("decimal_operator", types, op.sign(), kernel)))
}

fn by_zero(op: BinaryOperator) -> String {
    format!("'{}' operation failed: Division by zero", op.sign())
}

/// Returns a result's digits; `None` if they do not fit in 256 bits.
fn compute(op: BinaryOperator, (a, s): (i256, u8), (b, t): (i256, u8)) -> Option<i256> {
    let scale = s.max(t);
    let aligned = |value: i256, from: u8| value.checked_mul(power(u32::from(scale - from))?);
    match op {
        BinaryOperator::Add => aligned(a, s)?.checked_add(aligned(b, t)?),
        BinaryOperator::Subtract => aligned(a, s)?.checked_sub(aligned(b, t)?),
        BinaryOperator::Multiply => a.checked_mul(b),
        BinaryOperator::Modulo => aligned(a, s)?.checked_rem(aligned(b, t)?),
        // The quotient has as many decimal places as both operands together, so the dividend is
        // scaled by twice the divisor's places.
        _ => divide(a.checked_mul(power(2 * u32::from(t))?)?, b, Rounding::HalfEven),
    }
}

// ---- functions ---------------------------------------------------------------------------------

/// Functions that have a separate form for decimals.
pub(crate) const NAMES: &[&str] = &[
    "abs",
    "sign",
    "floor",
    "ceil",
    "ceiling",
    "round",
    "round_up",
    "round_down",
    "round_half_even",
    "trunc",
    "greatest",
    "least",
];

/// Returns a function's decimal signature for the function list, if it has one.
pub(crate) fn signature(name: &str) -> Option<String> {
    let arguments = match name {
        "greatest" | "least" => "DECIMAL, …",
        "round" | "trunc" => "DECIMAL [, INT]",
        "round_up" | "round_down" | "round_half_even" => "DECIMAL, INT",
        _ => "DECIMAL",
    };
    NAMES.contains(&name).then(|| format!("{name}({arguments}) -> DECIMAL"))
}

/// Binds the decimal form of a function; `None` if no such form exists for these arguments.
pub(crate) fn function(name: &str, arguments: &[Argument]) -> Option<Resolved> {
    let name = NAMES.iter().find(|known| known.eq_ignore_ascii_case(name))?;
    let first = arguments.first()?.sql_type;
    match (*name, arguments) {
        ("greatest" | "least", _) => extreme(name, arguments),
        (_, [_]) if is_decimal(first) => unary(name, first, arguments),
        (_, [_, places]) if is_decimal(first) => Some(rounded(name, first, places, arguments)),
        _ => None,
    }
}

/// Binds functions of a single decimal.
fn unary(name: &'static str, from: SqlType, arguments: &[Argument]) -> Option<Resolved> {
    let (digits, scale) = exact(from)?;
    let rounding = match name {
        "floor" => Some(Rounding::Floor),
        "ceil" | "ceiling" => Some(Rounding::Ceiling),
        "round" => Some(Rounding::HalfUp),
        "trunc" => Some(Rounding::Down),
        _ => None,
    };
    let returns = match (name, rounding) {
        (_, Some(_)) => of_digits((digits + 1, 0)),
        ("abs", _) => from,
        ("sign", _) => SqlType::Decimal(1, 0),
        _ => return None,
    };
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
        let values = Decimals::of(call, 0)?;
        let unit = power(u32::from(scale)).unwrap_or(i256::ONE);
        build_decimals(call.rows, returns, "decimal overflow", &mut |row| {
            Ok(values.get(row).and_then(|value| match rounding {
                Some(rounding) => divide(value, unit, rounding),
                None if returns == from => Some(value.wrapping_abs()),
                None => Some(match value.cmp(&i256::ZERO) {
                    std::cmp::Ordering::Less => i256::MINUS_ONE,
                    std::cmp::Ordering::Equal => i256::ZERO,
                    std::cmp::Ordering::Greater => i256::ONE,
                }),
            }))
        })
    });
    Some(Ok(resolved(name, Volatility::Immutable, vec![from], returns, arguments, kernel)))
}

/// Binds `round…(decimal, places)`. The number of places determines the result type, so it must be
/// constant.
fn rounded(
    name: &'static str,
    from: SqlType,
    places: &Argument,
    arguments: &[Argument],
) -> Resolved {
    let rounding = match name {
        "round" => Rounding::HalfUp,
        "round_up" => Rounding::Up,
        "round_down" | "trunc" => Rounding::Down,
        "round_half_even" => Rounding::HalfEven,
        _ => {
            return Err(ResolveError::NoOverload { name: name.into(), types: types_of(arguments) });
        }
    };
    let (digits, scale) = exact(from).unwrap_or((MAX_PRECISION, 0));
    let limits = -i64::from(MAX_PRECISION)..=i64::from(MAX_PRECISION);
    let Some(places) = places.integer().filter(|places| limits.contains(places)) else {
        let message = "constant number of places from -76 to 76 expected".to_owned();
        return Err(ResolveError::InvalidArgument { index: 1, message });
    };
    let places = (places as i32).min(i32::from(scale));
    let retained = places.max(0) as u8;
    // Rounding away from zero may add a digit.
    let carry = u8::from(rounding != Rounding::Down);
    let returns = of_digits((digits + carry, retained));
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
        let values = Decimals::of(call, 0)?;
        let cut = power((i32::from(scale) - places) as u32);
        let grown = power(places.min(0).unsigned_abs()).unwrap_or(i256::ZERO);
        build_decimals(call.rows, returns, "decimal overflow", &mut |row| {
            let Some(value) = values.get(row) else { return Ok(None) };
            // If more places are removed than a decimal has digits, the result is zero.
            let quotient = cut.map_or(Some(i256::ZERO), |cut| divide(value, cut, rounding));
            Ok(quotient.and_then(|quotient| quotient.checked_mul(grown)))
        })
    });
    let types = vec![from, SqlType::Int];
    Ok(resolved(name, Volatility::Immutable, types, returns, arguments, kernel))
}

fn extreme(name: &'static str, arguments: &[Argument]) -> Option<Resolved> {
    let mut types = arguments.iter().map(|argument| argument.sql_type);
    let known = types.clone().find(|sql_type| is_decimal(*sql_type))?;
    let returns = types.try_fold(known, |all, next| match next {
        SqlType::Null => Some(all),
        next => common(all, next),
    });
    let Some(returns) = returns else {
        let types = types_of(arguments);
        return Some(Err(ResolveError::NoOverload { name: name.into(), types }));
    };
    let greatest = name == "greatest";
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
        let columns: Vec<_> =
            (0..call.arguments.len()).map(|i| Decimals::of(call, i)).collect::<Result<_>>()?;
        build_decimals(call.rows, returns, "decimal overflow", &mut |row| {
            let values = columns.iter().filter_map(|column| column.get(row));
            Ok(if greatest { values.max() } else { values.min() })
        })
    });
    let types = vec![returns; arguments.len()];
    Some(Ok(resolved(name, Volatility::Immutable, types, returns, arguments, kernel)))
}

// ---- conversions -------------------------------------------------------------------------------

/// A parsed decimal literal with its scale: `-1.50`, `1e3`.
struct Written {
    /// Digits without the decimal point or trailing zeros after it.
    digits: i256,
    /// Number of digits before the decimal point.
    integer_digits: usize,
    /// Number of digits after the decimal point.
    fraction_digits: usize,
}

impl Written {
    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix(['m', 'M']).unwrap_or(text);
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = || integer.bytes().chain(fraction.bytes());
        if all().next().is_none() || !all().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let mut digits: String = format!("{integer}{fraction}");
        let mut places = fraction.len() as i32 - exponent;
        while places > 0 && digits.len() > 1 && digits.ends_with('0') {
            digits.pop();
            places -= 1;
        }
        if places < 0 {
            let zeros = usize::try_from(-places).ok().filter(|zeros| *zeros <= 76)?;
            digits.extend(std::iter::repeat_n('0', zeros));
            places = 0;
        }
        let significant = digits.trim_start_matches('0');
        if significant.len() > usize::from(MAX_PRECISION) {
            return None;
        }
        let value = i256::from_string(if significant.is_empty() { "0" } else { significant })?;
        let places = places as usize;
        let digits = if negative { value.wrapping_neg() } else { value };
        Some(Self {
            digits,
            integer_digits: significant.len().saturating_sub(places),
            fraction_digits: places,
        })
    }

    /// Returns the digits in `scale`, which must be large enough to hold all decimal places.
    fn in_scale(&self, scale: u8) -> Option<i256> {
        let more = usize::from(scale).checked_sub(self.fraction_digits)?;
        self.digits.checked_mul(power(more as u32)?)
    }
}

/// Converts a column to DECIMAL. With `strict`, a floating-point number that has too many decimal
/// places is an error.
pub(crate) fn from_column(
    array: &ArrayRef,
    from: SqlType,
    to: SqlType,
    strict: bool,
) -> Result<ArrayRef> {
    let SqlType::Decimal(precision, scale) = to else {
        return Err(internal(format!("{} is not a decimal type", to.name())));
    };
    match from {
        SqlType::Decimal(_, own) => rescaled(&wide(array)?, (from, own), (to, scale)),
        integer if integer.is_integer() => {
            let values = cast(array, &DataType::Int64)?;
            from_integers(values.as_primitive::<Int64Type>(), from, to, scale)
        }
        floating if floating.is_floating() => {
            let mut numbers = Vec::with_capacity(array.len());
            let values = cast(array, &DataType::Float64)?;
            let values = values.as_primitive::<arrow::datatypes::Float64Type>();
            for value in values {
                numbers.push(value.map(|value| match floating {
                    SqlType::Float => number_text::f32_text(value as f32),
                    _ => number_text::f64_text(value),
                }));
            }
            from_numbers(&numbers, to, (precision, scale), strict)
        }
        _ => match array.as_string_view_opt() {
            Some(texts) => from_texts(texts, to, scale),
            None => Err(internal(format!("cannot convert {} to a decimal", from.name()))),
        },
    }
}

fn rescaled(
    values: &Decimal256Array,
    (from, own): (SqlType, u8),
    (to, scale): (SqlType, u8),
) -> Result<ArrayRef> {
    let refused = |value: i256| {
        let shown = shown(value, own);
        invalid(inconvertible_value(&shown, from, to))
    };
    let bound = match to {
        SqlType::Decimal(precision, _) => power(u32::from(precision)).unwrap_or(i256::MAX),
        _ => i256::MAX,
    };
    build_decimals(values.len(), to, "", &mut |row| {
        if values.is_null(row) {
            return Ok(None);
        }
        let value = values.value(row);
        let moved = if scale >= own {
            value.checked_mul(power(u32::from(scale - own)).unwrap_or(i256::ONE))
        } else {
            let cut = power(u32::from(own - scale)).unwrap_or(i256::ONE);
            // Nonzero decimal places are never dropped silently.
            value
                .checked_rem(cut)
                .filter(|rest| *rest == i256::ZERO)
                .and_then(|_| value.checked_div(cut))
        };
        let moved = moved.filter(|moved| moved.wrapping_abs() < bound);
        moved.map(Some).ok_or_else(|| refused(value))
    })
}

/// Formats digits with the given scale.
fn shown(value: i256, scale: u8) -> String {
    let places = usize::from(scale);
    let digits = format!("{:0>width$}", value.wrapping_abs().to_string(), width = places + 1);
    let (integer, fraction) = digits.split_at(digits.len() - places);
    let sign = if value.is_negative() { "-" } else { "" };
    let point = if places > 0 { "." } else { "" };
    format!("{sign}{integer}{point}{fraction}")
}

fn from_integers(values: &Int64Array, from: SqlType, to: SqlType, scale: u8) -> Result<ArrayRef> {
    let unit = power(u32::from(scale)).unwrap_or(i256::ONE);
    let bound = match to {
        SqlType::Decimal(precision, _) => power(u32::from(precision)).unwrap_or(i256::MAX),
        _ => i256::MAX,
    };
    build_decimals(values.len(), to, "", &mut |row| {
        if values.is_null(row) {
            return Ok(None);
        }
        let value = values.value(row);
        let digits = i256::from_i128(i128::from(value)).checked_mul(unit);
        let digits = digits.filter(|digits| digits.wrapping_abs() < bound);
        let refused = || invalid(inconvertible_value(&value.to_string(), from, to));
        digits.map(Some).ok_or_else(refused)
    })
}

fn from_numbers(
    numbers: &[Option<String>],
    to: SqlType,
    (precision, scale): (u8, u8),
    strict: bool,
) -> Result<ArrayRef> {
    build_decimals(numbers.len(), to, "", &mut |row| {
        let Some(text) = &numbers[row] else { return Ok(None) };
        let needs = |digits: usize| {
            invalid(format!(
                "decimal '{text}' requires precision of {digits} but is limited to {precision}"
            ))
        };
        let written = Written::parse(text).ok_or_else(|| needs(usize::from(MAX_PRECISION) + 1))?;
        if strict && written.fraction_digits > usize::from(scale) {
            let places = written.fraction_digits;
            return Err(invalid(format!(
                "decimal '{text}' has {places} decimal places but scale is limited to {scale}"
            )));
        }
        let digits = written.integer_digits + usize::from(scale);
        if digits > usize::from(precision) {
            return Err(needs(digits));
        }
        Ok(match written.fraction_digits.checked_sub(usize::from(scale)) {
            Some(more) if more > 0 => {
                let cut = power(more as u32);
                cut.map_or(Some(i256::ZERO), |cut| divide(written.digits, cut, Rounding::Down))
            }
            _ => written.in_scale(scale),
        })
    })
}

fn from_texts(texts: &StringViewArray, to: SqlType, scale: u8) -> Result<ArrayRef> {
    let bound = match to {
        SqlType::Decimal(precision, _) => power(u32::from(precision)).unwrap_or(i256::MAX),
        _ => i256::MAX,
    };
    build_decimals(texts.len(), to, "", &mut |row| {
        if texts.is_null(row) {
            return Ok(None);
        }
        let text = texts.value(row);
        let digits = Written::parse(text).and_then(|written| written.in_scale(scale));
        let digits = digits.filter(|digits| digits.wrapping_abs() < bound);
        let refused = || invalid(inconvertible_value(text, SqlType::String, to));
        digits.map(Some).ok_or_else(refused)
    })
}

/// Converts a decimal column to LONG. Decimal places are truncated; out-of-range values become
/// null.
pub(crate) fn to_longs(array: &ArrayRef, scale: u8) -> Result<Int64Array> {
    let unit = power(u32::from(scale)).unwrap_or(i256::ONE);
    let long = |value: i256| divide(value, unit, Rounding::Down)?.to_i128()?.try_into().ok();
    Ok(wide(array)?.iter().map(|value| value.and_then(long)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str, scale: u8) -> i256 {
        Written::parse(text).unwrap().in_scale(scale).unwrap()
    }

    #[test]
    fn quotients_are_rounded_according_to_the_rounding_mode() {
        let quotient = |a: i128, b: i128, rounding| {
            divide(i256::from_i128(a), i256::from_i128(b), rounding).unwrap().to_i128().unwrap()
        };
        for (rounding, expected) in [
            (Rounding::Down, [2, -2, 3, -3, 2]),
            (Rounding::Up, [3, -3, 4, -4, 3]),
            (Rounding::Floor, [2, -3, 3, -4, 2]),
            (Rounding::Ceiling, [3, -2, 4, -3, 3]),
            (Rounding::HalfUp, [3, -3, 4, -4, 2]),
            (Rounding::HalfEven, [2, -2, 4, -4, 2]),
        ] {
            let found =
                [(5, 2), (-5, 2), (7, 2), (7, -2), (9, 4)].map(|(a, b)| quotient(a, b, rounding));
            assert_eq!(found, expected, "{rounding:?}");
        }
        assert_eq!(divide(i256::ONE, i256::ZERO, Rounding::Down), None);
    }

    #[test]
    fn decimal_literals_are_parsed_and_formatted() {
        assert_eq!(number("-1.50", 2), i256::from_i128(-150));
        assert_eq!(number("1.0E10", 0), i256::from_i128(10_000_000_000));
        assert_eq!(number("25e-3", 3), i256::from_i128(25));
        for text in ["", ".", "1,5", "1.5.5", "abc", "1e", "--1"] {
            assert!(Written::parse(text).is_none(), "{text}");
        }
        assert_eq!(shown(i256::from_i128(-5), 2), "-0.05");
        assert_eq!(shown(i256::from_i128(120), 0), "120");
    }

    #[test]
    fn operators_return_the_expected_decimal_types() {
        let column = |p, s| Argument::column(SqlType::Decimal(p, s));
        let returns = |op, left: &Argument, right: &Argument| {
            arithmetic(op, left, right).unwrap().unwrap().return_type
        };
        let (a, b) = (column(10, 2), column(4, 1));
        assert_eq!(returns(BinaryOperator::Add, &a, &b), SqlType::Decimal(11, 2));
        assert_eq!(returns(BinaryOperator::Multiply, &a, &b), SqlType::Decimal(76, 3));
        assert_eq!(returns(BinaryOperator::Divide, &a, &b), SqlType::Decimal(76, 3));
        assert_eq!(returns(BinaryOperator::Modulo, &a, &b), SqlType::Decimal(10, 2));
        let int = Argument::column(SqlType::Int);
        assert_eq!(returns(BinaryOperator::Add, &int, &a), SqlType::Decimal(13, 2));
        assert!(arithmetic(BinaryOperator::Add, &a, &Argument::column(SqlType::Double)).is_none());
    }
}
