//! Converts nodes to typed `DataFusion` expressions.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::AggregateFunction;
use tidemark_ast::{CallNode, Name, Node, NodeId, Span, TypeName, UnaryOperator};
use tidemark_functions::{CastMode, array_text, rounded_time};
use tidemark_types::bounded::grown;
use tidemark_types::{CatalogType, EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::catalog::pg_catalog::is_catalog;
use crate::binder::catalog::pg_catalog::marked::marked;
use crate::binder::catalog::pg_catalog::numbers::table_oid;
use crate::binder::expressions::array::catalog_type;
use crate::binder::expressions::registered::Registered;
use crate::binder::expressions::{constant, literal, parameter, predicate};
use crate::binder::state::scope::{Relation, Scope, is_unknown};
use crate::binder::{Binder, Typed, error};

impl Binder<'_> {
    /// Binds an expression.
    pub(crate) fn expression(&mut self, id: NodeId, scope: &Scope<'_>) -> EngineResult<Typed> {
        self.within_bounds(id, |binder| grown(|| binder.expression_at(id, scope)))
    }

    fn expression_at(&mut self, id: NodeId, scope: &Scope<'_>) -> EngineResult<Typed> {
        let node = self.node(id)?;
        let position = self.tree.span(id);
        if let Some(literal) = literal::literal(node, position)? {
            return Ok(literal);
        }
        match node {
            Node::Column { path } => self.column(path, scope),
            Node::Variable { name } => self.variable(name, scope),
            Node::Parameter { index } => self.parameter(*index, position),
            Node::NamedParameter { .. } => Err(parameter::not_provided()),
            Node::TypedString { type_name, value } => {
                let to = Self::type_name(type_name)?;
                let typed = self.cast(literal::text(value), to, CastMode::Explicit, position)?;
                Ok(rounded(typed, type_name))
            }
            Node::Unary { operator: UnaryOperator::Not, .. }
            | Node::Logical { .. }
            | Node::IsNull { .. }
            | Node::Between { .. }
            | Node::InList { .. }
            | Node::InQuery { .. }
            | Node::Within { .. } => self.predicate(id, scope, false),
            Node::Unary { operator, operand } => self.unary(*operator, *operand, scope, position),
            Node::Binary { operator, left, right, operator_span } => {
                self.binary(*operator, *left, *right, *operator_span, scope)
            }
            Node::Concat { operands, operator_span } => {
                let operands = operands.iter().map(|id| self.as_named(*id, scope));
                let operands = operands.collect::<EngineResult<Vec<_>>>()?;
                let is_joined = tidemark_functions::joins_arrays(
                    operands.iter().map(|operand| operand.sql_type),
                );
                let function = if is_joined { "array_cat" } else { "concat" };
                self.scalar_call(function, operands, *operator_span, &[])
            }
            Node::Cast { operand, type_name, double_colon } => {
                self.explicit_cast(*operand, type_name, *double_colon, position, scope)
            }
            Node::Case { operand, branches, otherwise } => {
                self.case(*operand, branches, *otherwise, scope)
            }
            Node::Call(call) => self.call(call, position, scope),
            Node::Subquery { query } => self.scalar_query(*query, scope),
            // The variable's value is a query.
            Node::Query { .. } => self.scalar_query(id, scope),
            Node::Exists { query } => self.exists(*query, scope),
            Node::Array { .. } | Node::Index { .. } => self.array(node, position, scope),
            Node::Duration { text } => Err(error::at(
                ErrorCode::InvalidValue,
                format!("invalid constant: {text}"),
                position,
            )),
            _ => Err(error::at(ErrorCode::Syntax, "expression expected", position)),
        }
    }

    /// Binds the operand of a cast to text: `name::regclass::text` returns the name, not the OID.
    fn as_named(&mut self, operand: NodeId, scope: &Scope<'_>) -> EngineResult<Typed> {
        let value = self.expression(operand, scope)?;
        match self.node(operand)? {
            Node::Cast { type_name, .. } if value.sql_type == SqlType::Int => {
                match Registered::of(type_name) {
                    Some(kind) => self.registered_name(value, kind, self.tree.span(operand)),
                    None => Ok(value),
                }
            }
            _ => Ok(value),
        }
    }

    /// Binds `CAST(operand AS type)` and `operand::type`.
    fn explicit_cast(
        &mut self,
        operand: NodeId,
        type_name: &TypeName,
        double_colon: bool,
        position: Span,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        let at = self.tree.span(operand);
        if let Some(kind) = Registered::of(type_name) {
            let operand = self.expression(operand, scope)?;
            return if type_name.dimensions > 0 {
                self.registered_array(operand, kind, at)
            } else {
                self.registered_cast(operand, kind, at)
            };
        }
        if let Some(array) = text_array_type(type_name) {
            let operand = self.expression(operand, scope)?;
            if operand.parameter.is_some() || operand.sql_type.is_text() {
                return self.settled_array(operand, array);
            }
            if let SqlType::DoubleArray(dimensions) = operand.sql_type {
                return array_as_text(operand, dimensions, array, position);
            }
            return self.cast(operand, SqlType::String, CastMode::Explicit, position);
        }
        let to = Self::cast_type(type_name, double_colon);
        // As in PostgreSQL, a cast of the result of AT TIME ZONE to DATE returns the day. QuestDB
        // has no AT TIME ZONE.
        let is_day = matches!(to, Ok(SqlType::Date))
            && matches!(self.node(operand)?, Node::Call(call) if is_zone_call(call));
        let operand = match (self.node(operand)?, &to) {
            (Node::Call(call), Ok(to)) if is_json_call(call) => self.json_call(call, *to, scope)?,
            (Node::Cast { .. }, Ok(to)) if to.is_text() => self.as_named(operand, scope)?,
            _ => self.expression(operand, scope)?,
        };
        let operand =
            if is_day { self.scalar_call("date", vec![operand], at, &[])? } else { operand };
        // Remove the schema, because function names in the catalog have none.
        let operand = match operand.constant.as_ref().and_then(constant::as_text) {
            Some(name) if is_function_type(type_name) => {
                let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
                // Ignore the argument list, which only distinguishes overloads.
                literal::text(name.split('(').next().unwrap_or(name))
            }
            _ => operand,
        };
        let operand = match &to {
            Ok(to) => self.sent_integer(operand, *to),
            Err(_) => operand,
        };
        let mode = match operand.constant {
            Some(_) => CastMode::Constant,
            None => CastMode::Explicit,
        };
        let was_marked = catalog_type(&operand, scope).is_some();
        // If a constant does not convert, the error is positioned at the constant.
        let typed = self.cast_at(operand, to?, mode, (position, at));
        let mut typed = typed.map_err(|failure| match failure.code {
            ErrorCode::InvalidValue => failure.at(error::span(at)),
            _ => failure,
        })?;
        if was_marked {
            let of = CatalogType::of_name(&type_name.name.to_ascii_lowercase());
            typed.expr = marked(typed.expr, of.filter(|_| type_name.dimensions == 0));
        }
        Ok(rounded(typed, type_name))
    }

    /// Binds several expressions in one scope.
    pub(crate) fn expressions(
        &mut self,
        ids: &[NodeId],
        scope: &Scope<'_>,
    ) -> EngineResult<Vec<Typed>> {
        ids.iter().map(|id| self.expression(*id, scope)).collect()
    }

    fn column(&mut self, path: &[Name], scope: &Scope<'_>) -> EngineResult<Typed> {
        let alias = match path {
            [name] => scope
                .aliases
                .iter()
                .find(|alias| tidemark_types::identifier::same(&alias.name, &name.text)),
            _ => None,
        };
        if let (Some(alias), true) = (alias, scope.aliases_first) {
            return Ok(alias.value.clone());
        }
        let found = match scope.relation {
            Some(relation) => relation.resolve(path).map(|index| &relation.columns[index]),
            None => Err(unknown_column(path)),
        };
        match (found, alias) {
            (Ok(column), _) => Ok(Typed::computed(column.expr(), column.sql_type)),
            (Err(failure), Some(alias)) if failure.code == ErrorCode::ColumnNotFound => {
                Ok(alias.value.clone())
            }
            // For an ambiguous name or a dropped column, the error is final: outer scopes are not
            // searched.
            (Err(failure), _) if !is_unknown(&failure) => Err(failure),
            (Err(failure), _) => match (self.outer_column(path)?, path) {
                (Some(outer), _) => Ok(outer),
                // Standard SQL writes these functions without parentheses.
                (None, [name]) if !name.quoted && is_session_word(&name.text) => {
                    self.session_value(&name.text.to_ascii_lowercase()).ok_or(failure)
                }
                (None, [.., name]) if name.text.eq_ignore_ascii_case("tableoid") => {
                    scope.relation.and_then(oid_of_table).ok_or(failure)
                }
                // If no column has this name, NaN is the null of DOUBLE.
                (None, [name]) if !name.quoted && name.text.eq_ignore_ascii_case("nan") => {
                    Ok(Typed::literal(ScalarValue::Float64(None), SqlType::Double))
                }
                // Parentheses are optional in a select list: `SELECT count FROM t`, `SELECT build`.
                (None, [name]) if !name.quoted && scope.aggregates => {
                    self.call(&bare_call(name), name.span, scope).map_err(|_| failure)
                }
                _ => Err(failure),
            },
        }
    }

    fn variable(&mut self, name: &Name, scope: &Scope<'_>) -> EngineResult<Typed> {
        match self.variable_value(name) {
            Some(value) => {
                self.within_declaration(value, |binder, node| binder.expression(node, scope))
            }
            None if self.variables.is_empty() => {
                Err(error::invalid_column(&format!("@{}", name.text), name.span))
            }
            None => Err(error::at(
                ErrorCode::ColumnNotFound,
                format!("tried to use undeclared variable `@{}`", name.text),
                name.span,
            )),
        }
    }

    fn unary(
        &mut self,
        operator: UnaryOperator,
        operand: NodeId,
        scope: &Scope<'_>,
        position: Span,
    ) -> EngineResult<Typed> {
        let operand = self.expression(operand, scope)?;
        match operator {
            UnaryOperator::Plus => Ok(operand),
            UnaryOperator::Minus | UnaryOperator::BitNot => {
                self.prefix_operator(operator, operand, position)
            }
            UnaryOperator::Not => {
                let operand = self.truth_of(operand, position)?;
                Ok(predicate::not(operand))
            }
        }
    }

    fn binary(
        &mut self,
        operator: tidemark_ast::BinaryOperator,
        left: NodeId,
        right: NodeId,
        position: Span,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        if let Some(test) = self.quantified(operator, left, right, position, scope)? {
            return Ok(test);
        }
        let spans = [self.tree.span(left), self.tree.span(right)];
        let operands = [self.expression(left, scope)?, self.expression(right, scope)?];
        let of_times = operands.iter().all(|operand| operand.sql_type.is_timestamp());
        let bound = self.operator_between(operator, operands, position, &spans)?;
        let is_distance = operator == tidemark_ast::BinaryOperator::Subtract
            && of_times
            && (self.reads_clock(left) || self.reads_clock(right));
        if is_distance {
            // The difference between two timestamps is LONG if an operand depends on the current
            // time.
            return self.cast(bound, SqlType::Long, CastMode::Explicit, position);
        }
        Ok(bound)
    }

    /// Whether an expression reads the current time.
    fn reads_clock(&self, id: NodeId) -> bool {
        match self.tree.get(id) {
            Some(Node::Call(call)) => {
                let name = call.name.text.to_ascii_lowercase();
                let clock = call.arguments.is_empty()
                    && (name.starts_with("now") || name.starts_with("systimestamp"));
                clock || call.arguments.iter().any(|argument| self.reads_clock(*argument))
            }
            Some(Node::Binary { left, right, .. }) => {
                self.reads_clock(*left) || self.reads_clock(*right)
            }
            Some(Node::Cast { operand, .. }) => self.reads_clock(*operand),
            _ => false,
        }
    }

    /// A cast's target type. `::float` is DOUBLE, as in `PostgreSQL`.
    fn cast_type(type_name: &TypeName, double_colon: bool) -> EngineResult<SqlType> {
        let plain = type_name.arguments.is_empty() && type_name.dimensions == 0;
        match type_name.name.to_ascii_lowercase().as_str() {
            "float" if double_colon && plain => return Ok(SqlType::Double),
            "numeric" if double_colon && plain => return Ok(SqlType::Decimal(76, 38)),
            // Catalog types: object OIDs and names.
            "oid" if plain => return Ok(SqlType::Int),
            "name" if plain => return Ok(SqlType::String),
            _ if plain && is_function_type(type_name) => return Ok(SqlType::String),
            _ => {}
        }
        Self::type_name(type_name).map_err(|failure| {
            if double_colon {
                failure
            } else {
                EngineError { message: "unsupported cast".into(), ..failure }
            }
        })
    }

    /// The type with this name. INTERVAL means the `PostgreSQL` type, because `QuestDB`'s INTERVAL,
    /// a pair of timestamps, has no literals.
    pub(crate) fn type_name(type_name: &TypeName) -> EngineResult<SqlType> {
        let TypeName { name, arguments, dimensions, span } = type_name;
        match SqlType::parse(name, arguments, *dimensions) {
            Some(SqlType::Interval) => Ok(SqlType::Period),
            Some(known) => Ok(known),
            None => {
                let message = format!("invalid constant: {name}");
                Err(error::at(ErrorCode::TypeMismatch, message, *span))
            }
        }
    }
}

/// Rounds a timestamp to the number of fractional digits given in `timestamp(n)`.
fn rounded(typed: Typed, type_name: &TypeName) -> Typed {
    let digits = type_name.arguments.first().and_then(|digits| digits.parse().ok());
    let (Some(digits), true) = (digits, typed.sql_type.is_timestamp()) else { return typed };
    let is_known = typed.constant.is_some();
    let rounded = Typed::computed(rounded_time(typed.expr, typed.sql_type, digits), typed.sql_type);
    if is_known { rounded.folded() } else { rounded }
}

/// Whether values of this type identify catalog functions.
fn is_function_type(type_name: &TypeName) -> bool {
    let name = type_name.name.to_ascii_lowercase();
    let plain = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    matches!(plain, "regproc" | "regprocedure" | "regoper" | "regoperator")
}

/// Converts a DOUBLE array to a `PostgreSQL` array in text form.
fn array_as_text(
    operand: Typed,
    dimensions: u8,
    array: &'static str,
    position: Span,
) -> EngineResult<Typed> {
    let bounds = match array {
        "SHORT[]" => Some((i16::MIN.into(), i16::MAX.into())),
        "INT[]" => Some((i32::MIN.into(), i32::MAX.into())),
        "LONG[]" => Some((i64::MIN, i64::MAX)),
        "OID[]" => Some((0, u32::MAX.into())),
        "TEXT[]" | "VARCHAR[]" | "NAME[]" => None,
        other => {
            let message = format!("{} cannot be cast to {other}", operand.sql_type.name());
            return Err(error::at(ErrorCode::TypeMismatch, message, position));
        }
    };
    let is_constant = operand.constant.is_some();
    let text = Typed::computed(array_text(operand.expr, dimensions, bounds), SqlType::String);
    Ok(if is_constant { text.folded() } else { text })
}

/// For a `PostgreSQL` array type that is stored as a string, maps the type name in a cast to the
/// name shown to clients.
fn text_array_type(type_name: &TypeName) -> Option<&'static str> {
    if type_name.dimensions != 1 {
        return None;
    }
    Some(match type_name.name.to_ascii_lowercase().as_str() {
        "oid" => "OID[]",
        "name" => "NAME[]",
        "text" => "TEXT[]",
        "varchar" | "character varying" | "string" | "symbol" => "VARCHAR[]",
        "int" | "integer" | "int4" => "INT[]",
        "bigint" | "int8" | "long" => "LONG[]",
        "smallint" | "int2" | "short" => "SHORT[]",
        "bool" | "boolean" => "BOOLEAN[]",
        "uuid" => "UUID[]",
        "timestamp"
        | "timestamptz"
        | "timestamp with time zone"
        | "timestamp without time zone"
        | "date" => "TIMESTAMP[]",
        "numeric" | "decimal" | "json" | "jsonb" | "inet" | "interval" | "time" => "TEXT[]",
        _ => return None,
    })
}

/// Whether a call is `time AT TIME ZONE zone`.
fn is_zone_call(call: &CallNode) -> bool {
    call.name.text.eq_ignore_ascii_case("timezone")
}

/// Whether an enclosing cast determines this call's return type.
fn is_json_call(call: &CallNode) -> bool {
    call.over.is_none() && call.name.text.eq_ignore_ascii_case("json_extract")
}

fn bare_call(name: &Name) -> CallNode {
    CallNode {
        name: name.clone(),
        arguments: Vec::new(),
        distinct: false,
        order_by: Vec::new(),
        filter: None,
        ignore_nulls: false,
        over: None,
    }
}

/// The OID of the table from which the rows are read. For catalog tables, the OID is null, because
/// clients would look up comments for it. `None` if the rows do not come from a single table.
fn oid_of_table(relation: &Relation) -> Option<Typed> {
    let oid = relation.base.as_ref().map(|base| table_oid(base.table.schema()));
    let is_known = oid.is_some() || is_catalog(relation);
    is_known.then(|| Typed::literal(ScalarValue::Int32(oid), SqlType::Int))
}

fn is_session_word(name: &str) -> bool {
    let words = [
        "current_user",
        "session_user",
        "current_role",
        "user",
        "current_schema",
        "current_catalog",
        "current_timestamp",
        "current_date",
        "localtimestamp",
    ];
    words.iter().any(|word| word.eq_ignore_ascii_case(name))
}

fn unknown_column(path: &[Name]) -> EngineError {
    let words: Vec<&str> = path.iter().map(|name| name.text.as_str()).collect();
    let position = path.first().map(|name| name.span).unwrap_or_default();
    error::invalid_column(&words.join("."), position)
}

/// Whether the expression contains an aggregate.
pub(crate) fn has_aggregate(expr: &datafusion::logical_expr::Expr) -> bool {
    use datafusion::common::tree_node::TreeNode;
    use datafusion::logical_expr::Expr;
    expr.exists(|node| Ok(matches!(node, Expr::AggregateFunction(AggregateFunction { .. }))))
        .unwrap_or(false)
}

/// Whether the expression contains a window function.
pub(crate) fn has_window(expr: &datafusion::logical_expr::Expr) -> bool {
    use datafusion::common::tree_node::TreeNode;
    use datafusion::logical_expr::Expr;
    expr.exists(|node| Ok(matches!(node, Expr::WindowFunction(_)))).unwrap_or(false)
}
