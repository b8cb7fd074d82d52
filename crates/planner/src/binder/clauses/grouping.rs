//! ROLLUP, CUBE and GROUPING SETS: one aggregation per grouping set, combined into rows with all
//! key columns. A key that is not in a grouping set is null there; `grouping()` distinguishes this
//! null from a null in the data.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, LogicalPlan, Union, ident, lit};
use tidemark_ast::{CallNode, Node, NodeId, Span};
use tidemark_types::{EngineResult, ErrorCode, SqlType};

use crate::binder::clauses::stage::Item;
use crate::binder::clauses::stage::Replaced;
use crate::binder::state::relation;
use crate::binder::state::scope::Relation;
use crate::binder::{Binder, Typed, error};

/// Maximum number of grouping sets in a statement; each is a separate aggregation.
const MAX_LEVELS: usize = 512;

/// A GROUP BY's keys, and the grouping sets over them.
#[derive(Debug, Default)]
pub(crate) struct Levels {
    /// All keys with their types, in order of appearance.
    pub(crate) keys: Vec<(Expr, SqlType)>,
    /// The grouping sets, as ascending indices into `keys`.
    pub(crate) levels: Vec<Vec<usize>>,
}

impl Levels {
    /// Returns a key's index, adding the key if it is new.
    fn key(&mut self, key: Typed) -> usize {
        if let Some(known) = self.keys.iter().position(|(expr, _)| *expr == key.expr) {
            return known;
        }
        self.keys.push((key.expr, key.sql_type));
        self.keys.len() - 1
    }

    /// Whether there is only one grouping set, which contains all keys.
    pub(crate) fn is_plain(&self) -> bool {
        self.levels.len() == 1 && self.levels[0].len() == self.keys.len()
    }

    /// The result of `grouping()`: bit `n` from the right is set if the `n`th argument from the
    /// right is not in the grouping set.
    fn mask(&self, level: &[usize], arguments: &[Expr]) -> i32 {
        arguments.iter().fold(0, |mask, argument| {
            let present = level.iter().any(|&key| self.keys[key].0 == *argument);
            (mask << 1) | i32::from(!present)
        })
    }
}

/// Whether an aggregate is a call of `grouping()`.
pub(crate) fn is_grouping(expr: &Expr) -> bool {
    masked(expr).is_some()
}

/// The arguments of `grouping()`.
fn masked(expr: &Expr) -> Option<&Vec<Expr>> {
    match expr {
        Expr::AggregateFunction(call) if call.func.name() == "grouping" => Some(&call.params.args),
        _ => None,
    }
}

impl Binder<'_> {
    /// Whether a GROUP BY member is ROLLUP, CUBE or GROUPING SETS.
    pub(crate) fn is_grouping_clause(&self, id: NodeId) -> bool {
        let words = ["rollup", "cube", "grouping sets"];
        match self.tree.get(id) {
            Some(Node::Call(call)) => {
                words.iter().any(|word| call.name.text.eq_ignore_ascii_case(word))
            }
            _ => false,
        }
    }

    /// A GROUP BY's grouping sets: all combinations of its members' sets.
    pub(crate) fn levels(
        &mut self,
        group_by: &[NodeId],
        source: &Relation,
        items: &[Item],
    ) -> EngineResult<Levels> {
        let mut found = Levels { keys: Vec::new(), levels: vec![Vec::new()] };
        for &id in group_by {
            let own = self.member_levels(id, source, items, &mut found)?;
            let position = self.tree.span(id);
            if own.len().saturating_mul(found.levels.len()) > MAX_LEVELS {
                let message = format!("too many grouping sets [max={MAX_LEVELS}]");
                return Err(error::at(ErrorCode::InvalidValue, message, position));
            }
            let before = std::mem::take(&mut found.levels);
            for left in &before {
                for right in &own {
                    let mut both: Vec<usize> = left.iter().chain(right).copied().collect();
                    both.sort_unstable();
                    both.dedup();
                    found.levels.push(both);
                }
            }
        }
        Ok(found)
    }

    /// The grouping sets of one GROUP BY member; a plain key has one set.
    fn member_levels(
        &mut self,
        id: NodeId,
        source: &Relation,
        items: &[Item],
        found: &mut Levels,
    ) -> EngineResult<Vec<Vec<usize>>> {
        let Node::Call(call) = self.node(id)? else {
            let key = self.group_key(id, source, items)?;
            return Ok(vec![vec![found.key(key)]]);
        };
        if !self.is_grouping_clause(id) {
            let key = self.group_key(id, source, items)?;
            return Ok(vec![vec![found.key(key)]]);
        }
        if call.name.text.eq_ignore_ascii_case("grouping sets") {
            let mut levels = Vec::with_capacity(call.arguments.len());
            for &set in &call.arguments {
                levels.extend(self.set_levels(set, source, items, found)?);
            }
            return Ok(levels);
        }
        let mut parts = Vec::with_capacity(call.arguments.len());
        for &argument in &call.arguments {
            parts.push(self.set_levels(argument, source, items, found)?.concat());
        }
        if call.name.text.eq_ignore_ascii_case("rollup") {
            return Ok((0..=parts.len()).rev().map(|length| parts[..length].concat()).collect());
        }
        if parts.len() > MAX_LEVELS.ilog2() as usize {
            let message = format!("too many grouping sets [max={MAX_LEVELS}]");
            return Err(error::at(ErrorCode::InvalidValue, message, self.tree.span(id)));
        }
        let subset = |bits: usize| {
            let used = parts.iter().enumerate();
            let used = used.filter(|(index, _)| bits & (1 << (parts.len() - 1 - index)) != 0);
            used.flat_map(|(_, part)| part.iter().copied()).collect()
        };
        Ok((0..1_usize << parts.len()).rev().map(subset).collect())
    }

    /// An entry in GROUPING SETS, or an argument of ROLLUP or CUBE: `a`, `(a, b)`, `()`, or a
    /// nested clause.
    fn set_levels(
        &mut self,
        id: NodeId,
        source: &Relation,
        items: &[Item],
        found: &mut Levels,
    ) -> EngineResult<Vec<Vec<usize>>> {
        match self.node(id)? {
            Node::Call(CallNode { name, arguments, .. }) if name.text == "ROW" => {
                if let [only] = arguments.as_slice()
                    && self.is_grouping_clause(*only)
                {
                    return self.member_levels(*only, source, items, found);
                }
                let mut set = Vec::with_capacity(arguments.len());
                for &argument in arguments {
                    let key = self.group_key(argument, source, items)?;
                    set.push(found.key(key));
                }
                Ok(vec![set])
            }
            _ => self.member_levels(id, source, items, found),
        }
    }

    /// Combines the grouping sets into one plan. `group` is called for each set with its keys and
    /// aggregates, and returns a plan with their columns. The columns `own` come first in the
    /// result; `group` must return them in addition to the keys.
    pub(crate) fn levels_plan(
        &mut self,
        levels: &Levels,
        aggregates: &[Expr],
        own: &[Expr],
        mut group: impl FnMut(
            &mut Self,
            &[(Expr, SqlType)],
            &[Expr],
        ) -> EngineResult<(LogicalPlan, Replaced)>,
    ) -> EngineResult<(LogicalPlan, Replaced)> {
        let (masks, computed): (Vec<Expr>, Vec<Expr>) =
            aggregates.iter().cloned().partition(is_grouping);
        let is_key = |argument: &Expr| levels.keys.iter().any(|(key, _)| key == argument);
        if !masks.iter().filter_map(masked).flatten().all(is_key) {
            return Err(error::at(
                ErrorCode::InvalidValue,
                "arguments to grouping must be GROUP BY keys",
                Span::default(),
            ));
        }
        let mut plans = Vec::with_capacity(levels.levels.len());
        for level in &levels.levels {
            let keys: Vec<_> = level.iter().map(|&key| levels.keys[key].clone()).collect();
            let (plan, replaced) = group(self, &keys, &computed)?;
            let mut exprs = Vec::with_capacity(own.len() + levels.keys.len() + aggregates.len());
            for (number, expr) in own.iter().enumerate() {
                exprs.push(replaced.apply(expr.clone())?.alias(format!("t{number}")));
            }
            for (number, (key, sql_type)) in levels.keys.iter().enumerate() {
                let expr = if level.contains(&number) {
                    replaced.apply(key.clone())?
                } else {
                    absent(*sql_type)?
                };
                exprs.push(expr.alias(format!("k{number}")));
            }
            for (number, aggregate) in computed.iter().enumerate() {
                exprs.push(replaced.apply(aggregate.clone())?.alias(format!("a{number}")));
            }
            for (number, mask) in masks.iter().enumerate() {
                let arguments = masked(mask).map_or(&[][..], Vec::as_slice);
                exprs.push(lit(levels.mask(level, arguments)).alias(format!("g{number}")));
            }
            plans.push(Arc::new(relation::project(plan, exprs)?));
        }
        let plan = if plans.len() == 1 {
            Arc::unwrap_or_clone(plans.remove(0))
        } else {
            let union = Union::try_new_with_loose_types(plans).map_err(error::plan)?;
            LogicalPlan::Union(union)
        };
        let mut replaced = Replaced::default();
        let keys: Vec<Expr> = levels.keys.iter().map(|(key, _)| key.clone()).collect();
        let groups =
            [(own, "t"), (keys.as_slice(), "k"), (computed.as_slice(), "a"), (&masks, "g")];
        for (exprs, letter) in groups {
            for (number, expr) in exprs.iter().enumerate() {
                replaced.insert(expr.clone(), ident(format!("{letter}{number}")));
            }
        }
        Ok((plan, replaced))
    }
}

/// The key's value in grouping sets that do not contain it.
fn absent(sql_type: SqlType) -> EngineResult<Expr> {
    let value = match sql_type {
        SqlType::Boolean => ScalarValue::Boolean(Some(false)),
        SqlType::Byte => ScalarValue::Int8(Some(0)),
        SqlType::Short => ScalarValue::Int16(Some(0)),
        other => ScalarValue::try_new_null(&other.arrow_type()).map_err(error::plan)?,
    };
    Ok(lit(value))
}
