//! The common type of several values, such as the branches of CASE or the columns of UNION.

use tidemark_types::SqlType;

/// The type of a CASE whose branches have these two types; `None` if they are incompatible.
pub(crate) fn branches(left: SqlType, right: SqlType) -> Option<SqlType> {
    match (left, right) {
        (SqlType::Symbol, SqlType::Symbol | SqlType::Null) | (SqlType::Null, SqlType::Symbol) => {
            Some(SqlType::String)
        }
        _ => same_family(left, right),
    }
}

/// The type of a UNION column whose inputs have these two types. Strings combine with any type.
pub(crate) fn union_columns(left: SqlType, right: SqlType) -> Option<SqlType> {
    if left == SqlType::Symbol && right == SqlType::Symbol {
        return Some(SqlType::String);
    }
    if let Some(common) = same_family(left, right) {
        return Some(common);
    }
    let text = |one: SqlType, other: SqlType| match one {
        SqlType::Varchar => Some(SqlType::Varchar),
        SqlType::String | SqlType::Symbol | SqlType::Char => match other {
            SqlType::Varchar => Some(SqlType::Varchar),
            _ => Some(SqlType::String),
        },
        _ => None,
    };
    if let Some(common) = text(left, right).or_else(|| text(right, left)) {
        return Some(common);
    }
    let boolean_and_number = |one: SqlType, other: SqlType| {
        one == SqlType::Boolean && (other.is_integer() || other.is_floating())
    };
    if boolean_and_number(left, right) || boolean_and_number(right, left) {
        return Some(SqlType::String);
    }
    None
}

fn same_family(left: SqlType, right: SqlType) -> Option<SqlType> {
    if left == right || right == SqlType::Null {
        return Some(left);
    }
    if left == SqlType::Null {
        return Some(right);
    }
    numbers(left, right).or_else(|| texts(left, right)).or_else(|| times(left, right))
}

fn numbers(left: SqlType, right: SqlType) -> Option<SqlType> {
    if let (SqlType::Decimal(..), _) | (_, SqlType::Decimal(..)) = (left, right) {
        return decimals(left, right);
    }
    let rank = |of: SqlType| {
        Some(match of {
            SqlType::Byte => 0,
            SqlType::Short => 1,
            SqlType::Int => 2,
            SqlType::Long => 3,
            SqlType::Float => 4,
            SqlType::Double => 5,
            _ => return None,
        })
    };
    let (low, high) = (rank(left)?.min(rank(right)?), rank(left)?.max(rank(right)?));
    Some(match (low, high) {
        (_, 5) => SqlType::Double,
        // FLOAT cannot represent all LONG and INT values.
        (2 | 3, 4) => SqlType::Double,
        (_, 4) => SqlType::Float,
        (_, 3) => SqlType::Long,
        (_, 2) => SqlType::Int,
        (_, 1) => SqlType::Short,
        _ => SqlType::Byte,
    })
}

fn decimals(left: SqlType, right: SqlType) -> Option<SqlType> {
    let parts = |of: SqlType| {
        Some(match of {
            SqlType::Decimal(precision, scale) => (precision - scale, scale),
            SqlType::Byte => (3, 0),
            SqlType::Short => (5, 0),
            SqlType::Int => (10, 0),
            SqlType::Long => (19, 0),
            _ => return None,
        })
    };
    let (left, right) = (parts(left)?, parts(right)?);
    let scale = left.1.max(right.1);
    let precision = (left.0.max(right.0) + scale).min(76);
    Some(SqlType::Decimal(precision, scale))
}

fn texts(left: SqlType, right: SqlType) -> Option<SqlType> {
    let is_texty = |of: SqlType| of.is_text() || of == SqlType::Char;
    if !is_texty(left) || !is_texty(right) {
        return None;
    }
    if left == SqlType::Varchar || right == SqlType::Varchar {
        return Some(SqlType::Varchar);
    }
    Some(SqlType::String)
}

fn times(left: SqlType, right: SqlType) -> Option<SqlType> {
    let rank = |of: SqlType| {
        Some(match of {
            SqlType::Date => 0,
            SqlType::Timestamp => 1,
            SqlType::TimestampNs => 2,
            _ => return None,
        })
    };
    Some(if rank(left)? > rank(right)? { left } else { right })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn union_types_widen_numbers_and_fall_back_to_strings() {
        let cases = [
            (SqlType::Int, SqlType::Long, Some(SqlType::Long)),
            (SqlType::Symbol, SqlType::Varchar, Some(SqlType::Varchar)),
            (SqlType::Symbol, SqlType::Symbol, Some(SqlType::String)),
            (SqlType::Boolean, SqlType::Int, Some(SqlType::String)),
            (SqlType::Timestamp, SqlType::Long, None),
            (SqlType::Date, SqlType::Timestamp, Some(SqlType::Timestamp)),
            (SqlType::Null, SqlType::Int, Some(SqlType::Int)),
            (SqlType::Int, SqlType::Double, Some(SqlType::Double)),
        ];
        for (left, right, expected) in cases {
            assert_eq!(union_columns(left, right), expected, "{left:?} {right:?}");
        }
    }

    #[test]
    fn case_branches_cannot_mix_strings_and_numbers() {
        assert_eq!(branches(SqlType::Int, SqlType::Char), None);
        assert_eq!(branches(SqlType::Symbol, SqlType::Char), Some(SqlType::String));
    }
}
