//! Equalities in WHERE such as `a.x = b.y` that join two sources, or a sub-query with its outer
//! rows. As in ON, both operands become join keys, which must be exactly equal. In other
//! conditions, two DOUBLEs are equal within a tolerance, and a string is looked up in a symbol's
//! dictionary. Neither comparison can serve as a join key.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, binary_expr};
use datafusion::logical_expr::{Operator, expr::ScalarFunction};
use tidemark_functions::{CastMode, DOUBLE_COMPARISONS, located_cast};
use tidemark_types::{SYMBOL_EQUAL, SqlType};

use crate::binder::Typed;
use crate::binder::state::scope::Relation;

/// The source of an expression's columns.
#[derive(PartialEq)]
enum Origin<'r> {
    /// The source with this name.
    Source(&'r str),
    /// A sub-query's outer rows.
    Around,
}

/// Returns a WHERE condition for these rows. If the condition is an equality between two sources,
/// it becomes a join key.
pub(crate) fn joining(term: Typed, rows: &Relation) -> Typed {
    let Expr::ScalarFunction(call) = &term.expr else { return term };
    let joined = key_operands(call).filter(|[one, other]| {
        let origins = [one, other].map(|side| origin(side, rows));
        matches!(origins, [Some(one), Some(other)] if one != other)
    });
    match joined {
        Some([one, other]) => {
            Typed::computed(binary_expr(one, Operator::IsNotDistinctFrom, other), term.sql_type)
        }
        None => term,
    }
}

/// The operands of an equality, converted to keys of one type.
fn key_operands(call: &ScalarFunction) -> Option<[Expr; 2]> {
    let [one, other] = &call.args[..] else { return None };
    let is_doubles = |(name, operator)| operator == Operator::Eq && name == call.name();
    let one = match call.name() {
        SYMBOL_EQUAL => {
            let types = (SqlType::Symbol, SqlType::Varchar);
            located_cast(one.clone(), types, CastMode::Implicit, None).ok()?
        }
        _ if DOUBLE_COMPARISONS.into_iter().any(is_doubles) => one.clone(),
        _ => return None,
    };
    Some([one, other.clone()])
}

/// The source that all of an expression's columns belong to; `None` if it has no columns or they
/// belong to several sources.
fn origin<'r>(expr: &Expr, rows: &'r Relation) -> Option<Origin<'r>> {
    let (mut origin, mut is_one) = (None, true);
    let walked = expr.apply(|node| {
        let own = match node {
            Expr::Column(_) => {
                let column = rows.columns.iter().find(|column| column.is(node));
                column.and_then(|column| column.qualifier.as_deref()).map(Origin::Source)
            }
            Expr::OuterReferenceColumn(..) => Some(Origin::Around),
            Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) => None,
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        is_one &= own.is_some() && (origin.is_none() || origin == own);
        origin = own;
        Ok(TreeNodeRecursion::Continue)
    });
    origin.filter(|_| is_one && walked.is_ok())
}
