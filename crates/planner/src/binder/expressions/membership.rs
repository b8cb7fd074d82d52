//! BETWEEN and IN.

use tidemark_ast::{BinaryOperator, Node, NodeId, Span};
use tidemark_functions::CastMode;
use tidemark_types::{EngineResult, ErrorCode, SqlType};

use crate::binder::expressions::{constant, predicate, time_range};
use crate::binder::state::scope::Scope;
use crate::binder::state::work;
use crate::binder::{Binder, Typed, error};

impl Binder<'_> {
    /// Binds `operand BETWEEN low AND high`: the bounds can be in either order, and the result is
    /// false if any value is null.
    pub(crate) fn between(
        &mut self,
        operand: NodeId,
        low: NodeId,
        high: NodeId,
        position: Span,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        let operand = self.expression(operand, scope)?;
        let low = self.expression(low, scope)?;
        let high = self.expression(high, scope)?;
        for (value, times) in [(&operand, 6), (&low, 2), (&high, 2)] {
            work::must_repeat(value, times, position)?;
        }
        if operand.is_null_constant() || low.is_null_constant() || high.is_null_constant() {
            for bound in [low, high] {
                self.settled(bound, operand.sql_type)?;
            }
            return Ok(Typed::truth(false));
        }
        let forward = self.inside(&operand, &low, &high, position)?;
        let backward = self.inside(&operand, &high, &low, position)?;
        Ok(predicate::any(vec![forward, backward]))
    }

    fn inside(
        &mut self,
        operand: &Typed,
        low: &Typed,
        high: &Typed,
        position: Span,
    ) -> EngineResult<Typed> {
        let from = BinaryOperator::GreaterOrEqual;
        let to = BinaryOperator::LessOrEqual;
        let mut conditions = vec![
            self.operator(from, operand.clone(), low.clone(), position)?,
            self.operator(to, operand.clone(), high.clone(), position)?,
        ];
        // `>=` and `<=` are true if both operands are null, but BETWEEN is false.
        if low.constant.is_none() && high.constant.is_none() {
            // At this point, a parameter has a type and a value.
            let operand = self.settled(operand.clone(), operand.sql_type)?;
            conditions.push(predicate::is_null(operand, true));
        }
        Ok(predicate::all(conditions))
    }

    /// Binds `operand IN (…)`, and `ts IN 'interval'` with or without parentheses.
    pub(crate) fn in_list(
        &mut self,
        operand: NodeId,
        items: &[NodeId],
        position: Span,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        let operand_typed = self.expression(operand, scope)?;
        let is_time = operand_typed.sql_type.is_timestamp();
        if is_time
            && let [item] = items
            && self.is_interval_parameter(*item)?
            && self.context.parameter_values.is_none()
        {
            // The statement is only being described. The ranges are known once the parameter has a
            // value.
            return Ok(Typed::computed(operand_typed.expr.is_not_null(), SqlType::Boolean));
        }
        if is_time && let Some(ranges) = self.interval_item(items, operand_typed.sql_type)? {
            work::must_repeat(&operand_typed, time_range::NODES_OF_RANGE * ranges.len(), position)?;
            return Ok(time_range::predicate(&operand_typed, &ranges));
        }
        if let [item] = items
            && let Some(index) = self.parameter_at(*item)?
            && self.accepts_array(index)
        {
            let array = self.expression(*item, scope)?;
            return self.in_parameter(array, &operand_typed, position);
        }
        let mut bound = Vec::with_capacity(items.len());
        for item in items {
            let typed = self.expression(*item, scope)?;
            bound.push((typed, *item));
        }
        self.membership(&operand_typed, bound, position)
    }

    fn membership(
        &mut self,
        operand: &Typed,
        items: Vec<(Typed, NodeId)>,
        position: Span,
    ) -> EngineResult<Typed> {
        work::must_repeat(operand, items.len(), position)?;
        let mut tests = Vec::with_capacity(items.len());
        for (item, id) in items {
            let item_type = item.sql_type;
            if operand.sql_type.is_timestamp() && item_type == SqlType::Interval {
                tests.push(self.in_interval(operand, item, self.tree.span(id))?);
                continue;
            }
            let at = match (operand.sql_type, item_type) {
                (left, right) if left.is_timestamp() && right.is_text() => self.tree.span(id),
                _ => position,
            };
            let is_number = operand.sql_type.is_integer() || operand.sql_type.is_floating();
            if is_number && item_type.is_text() && item.constant.is_some() {
                // Without this check, a non-numeric string would raise an error only if a row is
                // compared with it.
                let at = self.tree.span(id);
                let number = self.cast(item.clone(), SqlType::Double, CastMode::Constant, at)?;
                if !item.is_null_constant() && number.is_null_constant() {
                    let text = item.constant.as_ref().and_then(constant::as_text);
                    let (text, to) = (text.unwrap_or_default(), operand.sql_type.name());
                    let message = format!("inconvertible value: `{text}` [STRING -> {to}]");
                    return Err(error::at(ErrorCode::InvalidValue, message, at));
                }
            }
            let test = self.operator(BinaryOperator::Equal, operand.clone(), item, at)?;
            tests.push(test);
        }
        Ok(predicate::any(tests))
    }

    /// Whether a timestamp is in an interval that is known only at run time; both ends are
    /// included.
    fn in_interval(
        &mut self,
        operand: &Typed,
        interval: Typed,
        position: Span,
    ) -> EngineResult<Typed> {
        let start = self.scalar_call("interval_start", vec![interval.clone()], position, &[])?;
        let end = self.scalar_call("interval_end", vec![interval], position, &[])?;
        self.inside(operand, &start, &end, position)
    }

    /// The ranges of `ts IN 'interval'` and `ts IN interval`; `None` for a list of timestamps. A
    /// single string in parentheses is an interval too.
    pub(crate) fn interval_item(
        &mut self,
        items: &[NodeId],
        unit: SqlType,
    ) -> EngineResult<Option<Vec<tidemark_storage::TimeRange>>> {
        let [item] = items else { return Ok(None) };
        let position = self.tree.span(*item);
        if let Node::String { value } = self.node(*item)? {
            return self.interval_text(value, unit, position).map(Some);
        }
        if !matches!(
            self.node(*item)?,
            Node::Call(_) | Node::Variable { .. } | Node::Parameter { .. }
        ) {
            return Ok(None);
        }
        if self.is_array_parameter(*item)? {
            return Ok(None);
        }
        let is_parameter = self.is_interval_parameter(*item)?;
        let value = match self.expression(*item, &Scope::empty()) {
            Ok(value) if is_parameter => self.settled(value, SqlType::Varchar)?,
            Ok(value) => value,
            Err(failure) if failure.code == ErrorCode::ColumnNotFound => return Ok(None),
            Err(failure) => return Err(failure),
        };
        if value.sql_type == SqlType::Interval
            && let Some(value) = &value.constant
        {
            return Ok(Some(time_range::of_interval(value, unit)));
        }
        if let Some(text) = value.constant.as_ref().and_then(constant::as_text) {
            let text = text.to_owned();
            return self.interval_text(&text, unit, position).map(Some);
        }
        Ok(None)
    }

    /// Whether the item is an array parameter, which is a list of timestamps.
    pub(crate) fn is_array_parameter(&self, item: NodeId) -> EngineResult<bool> {
        let index = self.parameter_at(item)?;
        Ok(index.is_some_and(|index| self.parameters.is_array(index)))
    }

    /// Whether the parameter in `ts IN $1` is a string that specifies time ranges.
    fn is_interval_parameter(&mut self, item: NodeId) -> EngineResult<bool> {
        let index = self.parameter_at(item)?;
        Ok(index.is_some_and(|index| self.parameters.is_text(index)))
    }
}
