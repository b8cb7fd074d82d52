//! UNNEST in FROM: expands arrays and JSON documents into rows and joins these rows with the
//! sources on the left. `generate_subscripts(array, 1)` returns the elements' subscripts.

use std::sync::Arc;

use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, lit};
use tidemark_ast::{CallNode, Name, Node, NodeId};
use tidemark_functions::CastMode;
use tidemark_operators::{JsonField, JsonKind, UnnestItem, UnnestNode, UnnestValues};
use tidemark_types::{EngineError, EngineResult, ErrorCode, ParameterItems, SqlType, identifier};

use crate::binder::catalog::pg_catalog::is_catalog;
use crate::binder::expressions::literal;
use crate::binder::names::TEXTS_OF_TEXT;
use crate::binder::state::accesses::Origin;
use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, Scope, ScopeColumn};
use crate::binder::{Binder, Typed, error};

/// A column of elements: its name and type.
struct Element {
    name: String,
    sql_type: SqlType,
    /// The type that the operator returns.
    raw: SqlType,
}

/// UNNEST as parsed.
struct Unnested<'t> {
    call: &'t CallNode,
    alias: Option<&'t Name>,
    columns: &'t [Name],
    ordinality: bool,
}

impl<'a> Binder<'a> {
    /// The call, if this source is `UNNEST(…)` or `generate_subscripts(…)`.
    pub(crate) fn unnest_of(&self, id: NodeId) -> Option<&CallNode> {
        let Some(Node::TableFunction { call, .. }) = self.tree.get(id) else { return None };
        match self.tree.get(*call) {
            Some(Node::Call(call)) => {
                let is_unnest = call.name.text.eq_ignore_ascii_case("unnest");
                (is_unnest || is_subscripts_call(call)).then_some(call)
            }
            _ => None,
        }
    }

    fn unnested_call(&self, id: NodeId) -> EngineResult<Unnested<'a>> {
        let Node::TableFunction { call, alias, columns, timestamp, ordinality } = self.node(id)?
        else {
            return Err(EngineError::internal("expected an UNNEST node"));
        };
        let Node::Call(call) = self.node(*call)? else {
            return Err(EngineError::internal("expected an UNNEST call"));
        };
        if let Some(timestamp) = timestamp {
            return Err(error::not_supported("TIMESTAMP with UNNEST is", timestamp.span));
        }
        self.plain_arguments(call)?;
        Ok(Unnested { call, alias: alias.as_ref(), columns, ordinality: *ordinality })
    }

    /// Joins each row of `left` with its elements. If `keeps_empty` is true, rows without elements
    /// are retained.
    pub(crate) fn unnested(
        &mut self,
        left: &Relation,
        id: NodeId,
        keeps_empty: bool,
    ) -> EngineResult<Relation> {
        let Unnested { call, alias, columns, ordinality } = self.unnested_call(id)?;
        let (arguments, items, mut elements) = match call.arguments.as_slice() {
            [document, fields] if self.json_fields(*fields).is_some() => {
                self.json_elements(left, *document, *fields)?
            }
            [array, dimension] if is_subscripts_call(call) => {
                self.must_be_first(*dimension)?;
                self.array_elements(left, std::slice::from_ref(array), call)?
            }
            arrays => self.array_elements(left, arrays, call)?,
        };
        let prefix = format!("{} element ", self.relation_name());
        // The operator returns the element columns, then the element number.
        let number = elements.len();
        let position = |name: &str| Element {
            name: name.to_owned(),
            sql_type: SqlType::Long,
            raw: SqlType::Long,
        };
        let mut first = 0;
        if is_subscripts_call(call) {
            // If a function has a single column, the column is named after the alias or the
            // function.
            let name = alias.unwrap_or(&call.name);
            elements = vec![position(&name.text)];
            first = number;
        } else if ordinality {
            elements.push(position("ordinality"));
        }
        renamed(&mut elements, columns)?;
        let node =
            UnnestNode::try_new(left.plan.clone(), arguments, items, prefix.clone(), keeps_empty)
                .map_err(error::plan)?;
        let plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
        let qualifier = alias.map_or("unnest", |alias| alias.text.as_str());
        let at = call.name.span;
        let mut joined = Relation { order: left.order.shuffled(), base: None, ..left.clone() };
        let mut exprs: Vec<Expr> = left.columns.iter().map(ScopeColumn::expr).collect();
        for (index, element) in elements.into_iter().enumerate() {
            let column = Column::new_unqualified(format!("{prefix}{}", first + index));
            let mut raw = Typed::computed(Expr::Column(column.clone()), element.raw);
            if element.raw == SqlType::Varchar && element.sql_type == SqlType::Boolean {
                // Drivers send `t` and `f` in arrays.
                let words = ["t", "true", "T", "TRUE", "1"].map(literal::text);
                let words = words.into_iter().map(|word| word.expr).collect();
                raw = Typed::computed(raw.expr.in_list(words, false), SqlType::Boolean);
            }
            let value = self.cast(raw, element.sql_type, CastMode::Explicit, at)?;
            exprs.push(value.never_null().expr.alias(&column.name));
            joined.columns.push(ScopeColumn {
                qualifier: Some(Arc::from(qualifier)),
                name: element.name,
                sql_type: element.sql_type,
                column,
                origin: Origin::NONE,
            });
        }
        exprs.extend(left.unselected());
        joined.plan = relation::project(plan, exprs)?;
        Ok(joined)
    }

    fn array_elements(
        &mut self,
        left: &Relation,
        arrays: &[NodeId],
        call: &CallNode,
    ) -> EngineResult<(Vec<Expr>, Vec<UnnestItem>, Vec<Element>)> {
        let (mut arguments, mut items, mut elements) = (vec![], vec![], vec![]);
        for (index, &array) in arrays.iter().enumerate() {
            let name = match arrays.len() {
                1 => "value".to_owned(),
                _ => format!("value{}", index + 1),
            };
            if let Some((sent, sql_type)) = self.sent_items(array)? {
                let raw = sent.sql_type();
                // Store the values in the plan node, because optimizer rules would copy and compare
                // a literal.
                arguments.push(lit(ScalarValue::Int64(None)));
                items.push(UnnestItem::Values(UnnestValues::new(sent.values())));
                elements.push(Element { name, sql_type, raw });
                continue;
            }
            let value = self.expression(array, &Scope::rows(left))?;
            let value = match value.parameter {
                Some(_) => self.settled_array(value, "TEXT[]")?,
                None => value,
            };
            if let Some(sql_type) = self.text_items(array, &value)? {
                let at = call.name.span;
                arguments.push(self.scalar_call("array_to_json", vec![value], at, &[])?.expr);
                let field = JsonField { name: name.clone(), kind: JsonKind::Text };
                items.push(UnnestItem::Json(vec![field]));
                elements.push(Element { name, sql_type, raw: SqlType::Varchar });
                continue;
            }
            let SqlType::DoubleArray(dimensions) = value.sql_type else {
                let found = value.sql_type.name();
                return Err(error::at(
                    ErrorCode::TypeMismatch,
                    format!("UNNEST requires arrays, or JSON strings with COLUMNS; found {found}"),
                    self.tree.span(array),
                ));
            };
            let is_column = matches!(self.node(array)?, Node::Column { .. });
            let sql_type = match dimensions {
                1 if is_column && self.reads_catalog(left) => SqlType::Long,
                1 => SqlType::Double,
                more => SqlType::DoubleArray(more - 1),
            };
            arguments.push(value.expr);
            items.push(UnnestItem::Array(dimensions));
            let raw = if dimensions == 1 { SqlType::Double } else { sql_type };
            elements.push(Element { name, sql_type, raw });
        }
        if arguments.is_empty() {
            let at = call.name.span;
            return Err(error::at(ErrorCode::InvalidValue, "UNNEST requires an argument", at));
        }
        Ok((arguments, items, elements))
    }

    /// The elements of an array that a client sent in binary, and the requested element type.
    /// `None` if converting directly to this type may give a different result from converting
    /// through text.
    fn sent_items(&mut self, array: NodeId) -> EngineResult<Option<(ParameterItems, SqlType)>> {
        let (index, required) = match self.node(array)? {
            Node::Cast { operand, type_name, .. } if type_name.dimensions == 1 => {
                let (operand, name) = (*operand, &type_name.name);
                let required = SqlType::parse(name, &type_name.arguments, 0);
                (self.parameter_at(operand)?, required)
            }
            _ => {
                let index = self.parameter_at(array)?;
                let required = index.and_then(|index| {
                    let is_doubles = *self.parameters.slot(index) == Some(SqlType::DoubleArray(1));
                    let items = self.parameters.items_of(index);
                    items.or_else(|| is_doubles.then_some(SqlType::Double))
                });
                (index, required)
            }
        };
        let (Some(index), Some(required)) = (index, required) else { return Ok(None) };
        let required = if required == SqlType::String { SqlType::Varchar } else { required };
        let Some(items) = self.items_sent(index) else { return Ok(None) };
        Ok(is_as_its_text(items.sql_type(), required).then_some((items, required)))
    }

    /// The element type of an array in text form. It is specified by a cast (`'{a,b}'::text[]`) or
    /// by the parameter's declaration. In an array created by a function, the elements are strings.
    fn text_items(&self, array: NodeId, value: &Typed) -> EngineResult<Option<SqlType>> {
        if !value.sql_type.is_text() {
            return Ok(None);
        }
        if let Some(index) = self.parameter_at(array)? {
            return Ok(self.parameters.items_of(index));
        }
        let type_name = match self.node(array)? {
            Node::Cast { type_name, .. } if type_name.dimensions == 1 => type_name,
            Node::Call(call) => {
                let name = identifier::fold(&call.name.text);
                let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
                return Ok((name == TEXTS_OF_TEXT).then_some(SqlType::Varchar));
            }
            _ => return Ok(None),
        };
        let of = SqlType::parse(&type_name.name, &type_name.arguments, 0);
        Ok(Some(of.filter(|of| *of != SqlType::String).unwrap_or(SqlType::Varchar)))
    }

    /// Whether the columns are catalog columns, whose numeric arrays contain integers. Checks the
    /// columns of the sources on the left or, without such sources, those of the outer rows.
    fn reads_catalog(&self, left: &Relation) -> bool {
        is_catalog(left)
            || left.columns.is_empty()
                && self.outer.last().is_some_and(|outer| is_catalog(&outer.rows))
    }

    /// The fields of `COLUMNS (name type, …)`.
    fn json_fields(&self, id: NodeId) -> Option<&[NodeId]> {
        match self.tree.get(id)? {
            Node::Call(call) if call.name.text.eq_ignore_ascii_case("columns") => {
                Some(&call.arguments)
            }
            _ => None,
        }
    }

    fn json_elements(
        &mut self,
        left: &Relation,
        document: NodeId,
        fields: NodeId,
    ) -> EngineResult<(Vec<Expr>, Vec<UnnestItem>, Vec<Element>)> {
        let at = self.tree.span(document);
        let value = self.expression(document, &Scope::rows(left))?;
        let value = self.cast(value, SqlType::Varchar, CastMode::Implicit, at)?;
        let (mut items, mut elements) = (vec![], vec![]);
        let fields = self.json_fields(fields).unwrap_or_default().to_vec();
        for field in fields {
            let position = self.tree.span(field);
            let Node::Cast { operand, type_name, .. } = self.node(field)? else { continue };
            let Node::Column { path } = self.node(*operand)? else { continue };
            let name = path.last().map(|name| name.text.clone()).unwrap_or_default();
            let sql_type = Self::type_name(type_name)?;
            let kind = match sql_type {
                SqlType::Boolean => JsonKind::Boolean,
                SqlType::Short | SqlType::Int | SqlType::Long | SqlType::Double => JsonKind::Number,
                SqlType::Varchar => JsonKind::Text,
                SqlType::Timestamp => JsonKind::Time,
                other => {
                    let found = other.name();
                    return Err(error::at(
                        ErrorCode::TypeMismatch,
                        format!(
                            "a JSON field must be BOOLEAN, SHORT, INT, LONG, DOUBLE, VARCHAR or \
                             TIMESTAMP; found {found}"
                        ),
                        position,
                    ));
                }
            };
            items.push(JsonField { name: name.clone(), kind });
            elements.push(Element { name, sql_type, raw: SqlType::Varchar });
        }
        Ok((vec![value.expr], vec![UnnestItem::Json(items)], elements))
    }
}

/// Whether converting directly to a different type returns the same value as converting through
/// text.
fn is_as_its_text(sent: SqlType, required: SqlType) -> bool {
    match sent {
        SqlType::Boolean | SqlType::Double | SqlType::Timestamp | SqlType::Varchar => {
            sent == required
        }
        SqlType::Short => {
            matches!(required, SqlType::Short | SqlType::Int | SqlType::Long | SqlType::Double)
        }
        SqlType::Int => matches!(required, SqlType::Int | SqlType::Long | SqlType::Double),
        SqlType::Long => matches!(required, SqlType::Long | SqlType::Double),
        _ => false,
    }
}

/// Whether a call is `generate_subscripts(array, dimension)`.
fn is_subscripts_call(call: &CallNode) -> bool {
    let name = identifier::fold(&call.name.text);
    name.strip_prefix("pg_catalog.").unwrap_or(&name) == "generate_subscripts"
}

/// Applies `alias (name, …)`.
fn renamed(elements: &mut [Element], names: &[Name]) -> EngineResult<()> {
    if let Some(extra) = names.get(elements.len()) {
        let message = format!("too many column names: UNNEST has {} columns", elements.len());
        return Err(error::at(ErrorCode::InvalidName, message, extra.span));
    }
    for (element, name) in elements.iter_mut().zip(names) {
        element.name.clone_from(&name.text);
    }
    Ok(())
}
