//! HORIZON JOIN: a select block whose input has one row for each combination of left row and
//! offset. The select items without aggregates are the grouping keys.

use std::sync::Arc;

use datafusion::common::{Column, TableReference};
use datafusion::logical_expr::{Extension, LogicalPlan};
use tidemark_ast::{JoinKind, JoinOn, Name, Node, NodeId, OrderItem, SelectNode, Span};
use tidemark_operators::{Horizon, HorizonJoinNode, HorizonSide};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType, identifier};

use crate::binder::clauses::stage::{Item, aliases_of};
use crate::binder::clauses::window_join::refused;
use crate::binder::expressions::expression::has_aggregate;
use crate::binder::sources::join::{Condition, combined, filled_in, refuse_tolerance};
use crate::binder::sources::time_join::{Terms, in_time_order, only, unsupported_condition};
use crate::binder::state::accesses::Origin;
use crate::binder::state::scope::{Relation, ScopeColumn};
use crate::binder::{Binder, error};

/// Maximum number of offsets in RANGE. Each offset repeats all left rows, so without a limit, a
/// short statement could produce any number of rows.
const MAX_OFFSETS: i64 = 10_000;

/// One HORIZON JOIN in a chain.
struct Link<'a> {
    right: NodeId,
    on: Option<&'a JoinOn>,
    keyword: Span,
}

/// A chain of HORIZON JOINs, with the offsets that its last join specifies.
struct Chain<'a> {
    left: NodeId,
    links: Vec<Link<'a>>,
    offsets: &'a JoinKind,
    alias: Option<&'a Name>,
}

impl<'a> Binder<'a> {
    /// Binds a select block over HORIZON JOINs.
    pub(crate) fn horizon_select(
        &mut self,
        from: NodeId,
        select: &SelectNode,
        order_by: &[OrderItem],
    ) -> EngineResult<Relation> {
        let source = self.horizon_source(from, select.filter)?;
        let items = self.items(&select.items, &source)?;
        self.refuse_beside(select, "HORIZON JOIN")?;
        self.refuse_windows(&items, "HORIZON JOIN")?;
        if items.iter().all(|item| item.value.constant.is_some()) {
            let message = "HORIZON JOIN requires a column or an aggregate in the SELECT list";
            return Err(refused(message, self.tree.span(from)));
        }
        self.check_grouping(&items, &select.group_by)?;
        let aliases = aliases_of(&items);
        let extras = self.extras(&source, &aliases, select, order_by)?;
        let stage = self.aggregate(source, items, &select.group_by, &extras)?;
        self.finished(stage, &aliases, select, order_by)
    }

    fn horizon_chain(&self, from: NodeId) -> EngineResult<Chain<'a>> {
        let mut links = Vec::new();
        let mut last: Option<&'a JoinKind> = None;
        let mut at = from;
        while let Node::Join {
            join: join @ JoinKind::Horizon { .. },
            left,
            right,
            on,
            tolerance,
            keyword_span,
        } = self.node(at)?
        {
            refuse_tolerance(join, tolerance.as_ref())?;
            let carries = matches!(join, JoinKind::Horizon { alias: Some(_), .. });
            if last.is_some() && carries {
                let message = "only the last HORIZON JOIN can have RANGE or LIST";
                return Err(refused(message, *keyword_span));
            }
            last = last.or(Some(join));
            links.push(Link { right: *right, on: on.as_ref(), keyword: *keyword_span });
            at = *left;
        }
        if let (Node::Join { .. }, Some(first)) = (self.node(at)?, links.last()) {
            let message = "horizon join cannot be combined with other joins";
            return Err(refused(message, first.keyword));
        }
        links.reverse();
        match last {
            Some(offsets @ JoinKind::Horizon { alias, .. }) => {
                Ok(Chain { left: at, links, offsets, alias: alias.as_ref() })
            }
            _ => Err(EngineError::internal("expected a horizon join node")),
        }
    }

    /// The left rows that satisfy WHERE, combined with each offset and joined with the right
    /// inputs.
    fn horizon_source(&mut self, from: NodeId, filter: Option<NodeId>) -> EngineResult<Relation> {
        let chain = self.horizon_chain(from)?;
        let left = self.source(chain.left)?;
        let mut rights = Vec::with_capacity(chain.links.len());
        for link in &chain.links {
            let right = self.source(link.right)?;
            self.times(&left, &right, link.keyword);
            rights.push(right);
        }
        self.report_deferred()?;
        let time = left
            .timestamp_column()
            .cloned()
            .ok_or_else(|| EngineError::internal("a time join has no timestamp"))?;
        let offsets = self.offsets(chain.offsets, time.sql_type)?;
        let retained = self.filtered_if(left, filter).map_err(|failure| match failure.code {
            ErrorCode::ColumnNotFound | ErrorCode::TableNotFound => EngineError {
                message: "HORIZON JOIN WHERE clause can only reference master table columns".into(),
                ..failure
            },
            _ => failure,
        })?;
        let mut sides = Vec::with_capacity(rights.len());
        for (link, right) in chain.links.iter().zip(&rights) {
            sides.push(self.horizon_side(&retained, link, right.clone(), time.sql_type)?);
        }
        let (left_plan, left_timestamp) = in_time_order(&retained, &time, time.sql_type)?;
        let reference = self.relation_name();
        let horizon = Horizon { qualifier: TableReference::bare(reference.as_str()), offsets };
        let node = HorizonJoinNode::try_new(left_plan, left_timestamp, sides, horizon)
            .map_err(error::plan)?;
        let plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
        let width = retained.columns.len() + 2;
        let mut joined = retained;
        let qualifier = chain.alias.map(|alias| Arc::from(alias.text.as_str()));
        for (name, sql_type) in [("offset", SqlType::Long), ("timestamp", time.sql_type)] {
            joined.columns.push(ScopeColumn {
                qualifier: qualifier.clone(),
                name: name.to_owned(),
                sql_type,
                column: Column::new(Some(reference.as_str()), name),
                origin: Origin::NONE,
            });
        }
        for right in &rights {
            joined = combined(&joined, right);
        }
        joined.plan = filled_in(plan, &joined, |index| index >= width)?;
        Ok(joined)
    }

    fn horizon_side(
        &mut self,
        left: &Relation,
        link: &Link<'_>,
        right: Relation,
        unit: SqlType,
    ) -> EngineResult<HorizonSide> {
        let condition = match link.on {
            Some(on) => self.condition(on, left, &right)?,
            None => Condition::default(),
        };
        let terms = Terms::of(condition.residual, left, &right);
        if !terms.left.is_empty() || !terms.both.is_empty() {
            return Err(unsupported_condition(link.keyword));
        }
        let right = only(right, terms.right)?;
        let time = right
            .timestamp_column()
            .cloned()
            .ok_or_else(|| EngineError::internal("a time join has no timestamp"))?;
        let finer = unit != SqlType::TimestampNs && time.sql_type == SqlType::TimestampNs;
        let unit = if finer { time.sql_type } else { unit };
        let (plan, timestamp) = in_time_order(&right, &time, unit)?;
        let per_left = if finer { 1_000 } else { 1 };
        Ok(HorizonSide { plan, timestamp, per_left, keys: condition.keys })
    }

    /// The offsets in the left timestamp's unit.
    fn offsets(&mut self, join: &JoinKind, unit: SqlType) -> EngineResult<Vec<i64>> {
        let JoinKind::Horizon { from, to, step, list, alias: _ } = join else { return Ok(vec![0]) };
        if let (Some(from), Some(to), Some(step)) = (from, to, step) {
            let (low, high) = (self.horizon_offset(*from, unit)?, self.horizon_offset(*to, unit)?);
            let distance = self.horizon_offset(*step, unit)?;
            if low > high {
                let at = self.tree.span(*from);
                return Err(invalid("FROM must be less than or equal to TO", at));
            }
            if distance <= 0 {
                return Err(invalid("STEP must be positive", self.tree.span(*step)));
            }
            if (high - low) / distance >= MAX_OFFSETS {
                let message = format!("too many HORIZON offsets [limit={MAX_OFFSETS}]");
                return Err(invalid(&message, self.tree.span(*step)));
            }
            return Ok((0..=(high - low) / distance).map(|index| low + index * distance).collect());
        }
        let mut offsets: Vec<i64> = Vec::with_capacity(list.len());
        for id in list {
            let offset = self.horizon_offset(*id, unit)?;
            if offsets.last().is_some_and(|&last| offset <= last) {
                let message = "LIST offsets must be monotonically increasing";
                return Err(invalid(message, self.tree.span(*id)));
            }
            offsets.push(offset);
        }
        Ok(offsets)
    }

    /// Parses an offset: `-5s`, `0`, or a variable with such a value.
    fn horizon_offset(&mut self, id: NodeId, unit: SqlType) -> EngineResult<i64> {
        let at = self.tree.span(id);
        let text = match self.node(id)? {
            Node::Duration { text } | Node::Integer { text } => text,
            Node::Variable { name } => match self.variable_value(name) {
                Some(value) => return self.horizon_offset(value.node, unit),
                None => return Err(invalid("expected interval qualifier", at)),
            },
            _ => return Err(invalid("expected interval qualifier", at)),
        };
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.as_str()),
        };
        let letters = digits.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_');
        let number = digits[..digits.len() - letters.len()].replace('_', "");
        let number: i64 = number.parse().map_err(|_| invalid("offset is out of range", at))?;
        let nanos: i64 = match letters {
            "" if number == 0 => 1,
            "" => return Err(invalid("expected interval qualifier", at)),
            "n" => 1,
            "u" | "U" => 1_000,
            "T" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            other => {
                return Err(invalid(&format!("unsupported HORIZON time unit [unit={other}]"), at));
            }
        };
        let per_unit = if unit == SqlType::TimestampNs { 1 } else { 1_000 };
        let offset = i128::from(sign * number) * i128::from(nanos) / per_unit;
        // In nanoseconds, the limit is about 73 years. The sum of two offsets never overflows.
        let limit = 1_i128 << 61;
        if offset.abs() > limit {
            return Err(invalid("offset is out of range", at));
        }
        Ok(offset as i64)
    }

    /// Checks that GROUP BY names exactly the items without aggregates.
    fn check_grouping(&self, items: &[Item], group_by: &[NodeId]) -> EngineResult<()> {
        if group_by.is_empty() {
            return Ok(());
        }
        let keys = || items.iter().filter(|item| !has_aggregate(&item.value.expr));
        let mut named = Vec::new();
        for id in group_by {
            let required = crate::binder::names::canonical(self.tree, *id);
            let by_text = |item: &&Item| {
                let same = item.node.is_some_and(|node| {
                    identifier::same(&crate::binder::names::canonical(self.tree, node), &required)
                });
                same || identifier::same(&item.name, &required)
            };
            let found = match self.node(*id)? {
                Node::Integer { text } => text.parse::<usize>().ok().and_then(|position| {
                    items.get(position.checked_sub(1)?).filter(|i| !has_aggregate(&i.value.expr))
                }),
                _ => keys().find(by_text),
            };
            let Some(found) = found else {
                let message = "HORIZON JOIN GROUP BY column must match a non-aggregate SELECT \
                               column";
                return Err(refused(message, self.tree.span(*id)));
            };
            named.push(&found.name);
        }
        match keys().find(|item| item.value.constant.is_none() && !named.contains(&&item.name)) {
            Some(missing) => {
                let at = missing.node.map(|id| self.tree.span(id)).unwrap_or_default();
                let message =
                    "non-aggregate column must be included in HORIZON JOIN GROUP BY clause";
                Err(refused(message, at))
            }
            None => Ok(()),
        }
    }
}

fn invalid(message: &str, at: Span) -> EngineError {
    error::at(ErrorCode::InvalidValue, message, at)
}
