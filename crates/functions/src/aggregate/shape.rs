//! Helpers shared by aggregates: row order, and the types that are read as numbers.

use std::sync::Arc;

use datafusion_expr::AggregateUDF;
use tidemark_types::SqlType;

use crate::resolve::ResolvedAggregate;

/// Describes an aggregate whose result does not depend on row order.
pub(super) fn unordered(
    udaf: Arc<AggregateUDF>,
    argument_types: Vec<SqlType>,
    return_type: SqlType,
) -> ResolvedAggregate {
    ResolvedAggregate {
        udaf,
        argument_types,
        return_type,
        order_sensitive: false,
        ignore_nulls: false,
        distinct: false,
    }
}

/// Describes an aggregate that reads its rows in order.
pub(super) fn ordered(
    udaf: Arc<AggregateUDF>,
    argument_types: Vec<SqlType>,
    return_type: SqlType,
) -> ResolvedAggregate {
    ResolvedAggregate { order_sensitive: true, ..unordered(udaf, argument_types, return_type) }
}

/// Whether a type is an integer, a floating-point number or a decimal.
pub(super) fn is_number(sql_type: SqlType) -> bool {
    sql_type.is_integer() || sql_type.is_floating() || matches!(sql_type, SqlType::Decimal(..))
}

/// Whether a type is read as DOUBLE: numbers, NULL, and text, which is parsed at run time.
pub(super) fn reads_as_double(sql_type: SqlType) -> bool {
    is_number(sql_type) || sql_type.is_text() || matches!(sql_type, SqlType::Null | SqlType::Char)
}
