//! Conversions between OIDs and names of catalog objects: `'t'::regclass`, `oid::regclass`,
//! `format_type(oid, n)` and similar.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, case, lit};
use tidemark_ast::{CallNode, NodeId, Span, TypeName};
use tidemark_functions::{CastMode, SETTINGS};
use tidemark_types::text_array::text_array;
use tidemark_types::{EngineResult, ErrorCode, SqlType, identifier};

use crate::binder::catalog::pg_catalog::Object;
use crate::binder::catalog::pg_catalog::keys::{Key, keys};
use crate::binder::catalog::pg_catalog::layout::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::binder::catalog::pg_catalog::numbers::{
    INFORMATION_SCHEMA_OID, OBJECTS_OID, OWNER, OWNER_OID, SCHEMAS, table_oid, view_oid,
};
use crate::binder::catalog::pg_catalog::types;
use crate::binder::catalog::pg_catalog::types::TYPES;
use crate::binder::expressions::array::catalog_type;
use crate::binder::expressions::placeholder::is_unbound;
use crate::binder::expressions::{constant, literal};
use crate::binder::state::scope::Scope;
use crate::binder::{Binder, Typed, error};

/// A type whose values are catalog objects.
#[derive(Clone, Copy)]
pub(crate) enum Registered {
    Class,
    Type,
    Namespace,
    Role,
}

impl Registered {
    /// The object type that a cast names, if any.
    pub(crate) fn of(type_name: &TypeName) -> Option<Self> {
        match type_name.name.to_ascii_lowercase().as_str() {
            "regclass" => Some(Self::Class),
            "regtype" => Some(Self::Type),
            "regnamespace" => Some(Self::Namespace),
            "regrole" => Some(Self::Role),
            _ => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Class => "relation",
            Self::Type => "type",
            Self::Namespace => "schema",
            Self::Role => "role",
        }
    }
}

impl Binder<'_> {
    /// Binds `value::regclass`: converts a name to its OID, and an OID to its name.
    pub(crate) fn registered_cast(
        &mut self,
        operand: Typed,
        kind: Registered,
        position: Span,
    ) -> EngineResult<Typed> {
        if operand.is_null_constant() {
            return self.cast(operand, SqlType::Int, CastMode::Explicit, position);
        }
        let operand = self.settled(operand, SqlType::Varchar)?;
        if let Some(text) = operand.constant.as_ref().and_then(text_of) {
            return self.number_of(kind, &text).map(|oid| number(Some(oid))).ok_or_else(|| {
                let message = format!("{} \"{text}\" does not exist", kind.word());
                error::at(ErrorCode::TableNotFound, message, position)
            });
        }
        let mut names = self.names_of(kind);
        if operand.sql_type.is_integer() {
            return self.lookup(operand, names, true, position);
        }
        let name = self.cast(operand, SqlType::String, CastMode::Explicit, position)?;
        // Remove the quotes, because tools build names from quoted identifiers.
        let [quote, nothing] = ["\"", ""].map(literal::text);
        let name = self.scalar_call("replace", vec![name, quote, nothing], position, &[])?;
        let none = lit(ScalarValue::Int32(None));
        if matches!(kind, Registered::Type) {
            names.extend(TYPES.iter().map(|one| (one.oid, one.name.to_owned())));
        }
        let cases = names.into_iter().flat_map(|(oid, own)| {
            let schema = if oid < OBJECTS_OID { "pg_catalog" } else { "public" };
            let whole = format!("{schema}.{own}");
            [own, whole].map(|text| (lit(ScalarValue::Utf8View(Some(text))), lit(oid)))
        });
        Ok(Typed::computed(cases_of(name.expr, cases, none)?, SqlType::Int))
    }

    /// Binds `'{int,int8}'::regtype[]`: the OIDs of the names, as a catalog array.
    pub(crate) fn registered_array(
        &mut self,
        operand: Typed,
        kind: Registered,
        position: Span,
    ) -> EngineResult<Typed> {
        let operand = self.settled(operand, SqlType::Varchar)?;
        let Some(array) = operand.constant.as_ref().and_then(text_of) else {
            if operand.is_null_constant() || is_unbound(&operand) {
                return self.settled_array(operand, "INT[]");
            }
            let message = format!("an array of {} names must be a constant", kind.word());
            return Err(error::at(ErrorCode::NotSupported, message, position));
        };
        let mut numbers = Vec::new();
        for name in text_array(&array) {
            let Some(name) = name else {
                numbers.push("NULL".to_owned());
                continue;
            };
            let oid = self.number_of(kind, &name).ok_or_else(|| {
                let message = format!("{} \"{name}\" does not exist", kind.word());
                error::at(ErrorCode::TableNotFound, message, position)
            })?;
            numbers.push(oid.to_string());
        }
        Ok(literal::text(&format!("{{{}}}", numbers.join(","))))
    }

    /// Binds `name::regclass::text`: converts the OID from the first cast back to the name.
    pub(crate) fn registered_name(
        &mut self,
        number: Typed,
        kind: Registered,
        position: Span,
    ) -> EngineResult<Typed> {
        self.lookup(number, self.names_of(kind), true, position)
    }

    /// Binds functions that look up catalog objects; `None` for other names.
    pub(crate) fn catalog_call(
        &mut self,
        name: &str,
        call: &CallNode,
        scope: &Scope<'_>,
    ) -> EngineResult<Option<Typed>> {
        let plain = name.strip_prefix("pg_catalog.").unwrap_or(name);
        let Some(first) = call.arguments.first() else { return Ok(None) };
        let at = call.name.span;
        let texts = match plain {
            "to_regclass" => return self.oid_by_name(Registered::Class, *first, scope).map(Some),
            "to_regtype" => return self.oid_by_name(Registered::Type, *first, scope).map(Some),
            "current_setting" => return self.setting_value(*first, at, scope).map(Some),
            "pg_typeof" => {
                let argument = self.expression(*first, scope)?;
                let of = catalog_type(&argument, scope).and_then(|of| types::by_name(of.name()));
                let of = of.unwrap_or_else(|| types::of(argument.sql_type));
                return Ok(Some(literal::text(of.title)));
            }
            "pg_table_is_visible" => {
                let argument = self.expression(*first, scope)?;
                let oid = self.cast(argument, SqlType::Int, CastMode::Explicit, at)?.expr;
                let (first, last) = (INFORMATION_SCHEMA_OID, INFORMATION_SCHEMA_OID + 999);
                let elsewhere = oid.clone().between(lit(first), lit(last));
                let visible = Typed::computed(oid.is_not_null().and(!elsewhere), SqlType::Boolean);
                return Ok(Some(visible));
            }
            "format_type" => TYPES.iter().map(|one| (one.oid, one.title.to_owned())).collect(),
            "pg_get_viewdef" => {
                let objects = self.objects()?;
                let views = objects.iter().filter(|object| object.kind != "r");
                views.map(|view| (view.oid, view.query.clone().unwrap_or_default())).collect()
            }
            "pg_get_serial_sequence" => {
                let Some(column) = self.column_argument(call, scope)? else {
                    return self.sequence_of_row(call, scope);
                };
                serial_sequences(&self.objects()?, &column)
            }
            "pg_get_constraintdef" => definitions(&self.objects()?),
            "pg_get_indexdef" | "pg_index_has_property" | "pg_index_column_has_property" => {
                return self.index_call(plain, call, scope).map(Some);
            }
            "pg_database_size" => {
                let name = self.expression(*first, scope)?;
                self.settled(name, SqlType::Varchar)?;
                return self.size_of_all().map(Some);
            }
            "pg_table_size" | "pg_relation_size" | "pg_total_relation_size" => {
                let size = |object: &Object| (object.oid, object.bytes.to_string());
                self.objects()?.iter().map(size).collect()
            }
            _ => return Ok(None),
        };
        let mut argument = self.expression(*first, scope)?;
        if let Some(text) = argument.constant.as_ref().and_then(text_of) {
            argument = number(self.number_of(Registered::Class, &text));
        }
        let found = self.lookup(argument, texts, false, at)?;
        if let ("format_type", Some(modifier)) = (plain, call.arguments.get(1)) {
            let modifier = self.expression(*modifier, scope)?;
            let modifier = self.cast(modifier, SqlType::Long, CastMode::Explicit, at)?;
            return self.scalar_call(plain, vec![found, modifier], at, &[at, at]).map(Some);
        }
        if plain.ends_with("_size") {
            return self.cast(found, SqlType::Long, CastMode::Explicit, at).map(Some);
        }
        Ok(Some(found))
    }

    /// The OID for a name; null if the name is unknown.
    fn oid_by_name(
        &mut self,
        kind: Registered,
        name: NodeId,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        let name = self.expression(name, scope)?;
        let name = self.settled(name, SqlType::Varchar)?;
        let text = name.constant.as_ref().and_then(text_of).unwrap_or_default();
        Ok(number(self.number_of(kind, &text)))
    }

    /// Total size of all tables, in bytes.
    fn size_of_all(&mut self) -> EngineResult<Typed> {
        let bytes: u64 = self.objects()?.iter().map(|object| object.bytes).sum();
        let value = ScalarValue::Int64(Some(i64::try_from(bytes).unwrap_or(i64::MAX)));
        Ok(Typed::literal(value, SqlType::Long))
    }

    /// The column name in the call's second argument; `None` if it is not a constant.
    fn column_argument(
        &mut self,
        call: &CallNode,
        scope: &Scope<'_>,
    ) -> EngineResult<Option<String>> {
        let Some(&column) = call.arguments.get(1) else { return Ok(None) };
        let column = self.expression(column, scope)?;
        Ok(column.constant.as_ref().and_then(text_of))
    }

    /// Binds `current_setting(name)`, where the name is a constant or a column.
    fn setting_value(&mut self, name: NodeId, at: Span, scope: &Scope<'_>) -> EngineResult<Typed> {
        let name = self.expression(name, scope)?;
        if !matches!(name.expr, Expr::Column(_)) {
            return Ok(setting(&name.constant.as_ref().and_then(text_of).unwrap_or_default()));
        }
        let name = self.cast(name, SqlType::String, CastMode::Explicit, at)?;
        let text = |text: &str| lit(ScalarValue::Utf8View(Some(text.to_owned())));
        let cases = SETTINGS.iter().map(|(known, value)| (text(known), text(value)));
        let found = cases_of(name.expr, cases, lit(ScalarValue::Utf8View(None)))?;
        Ok(Typed::computed(found, SqlType::String))
    }

    /// Binds `pg_get_serial_sequence(table, column)` if the column name is not a constant.
    fn sequence_of_row(
        &mut self,
        call: &CallNode,
        scope: &Scope<'_>,
    ) -> EngineResult<Option<Typed>> {
        let [table, column] = call.arguments[..] else { return Ok(None) };
        let at = call.name.span;
        let table = self.expression(table, scope)?;
        let table = match table.constant.as_ref().and_then(text_of) {
            Some(name) => {
                let oid = number(self.number_of(Registered::Class, &name));
                self.registered_name(oid, Registered::Class, at)?
            }
            None => self.cast(table, SqlType::String, CastMode::Explicit, at)?,
        };
        let column = self.expression(column, scope)?;
        let column = self.cast(column, SqlType::String, CastMode::Explicit, at)?;
        let requested = vec![table, literal::text("\n"), column];
        let requested = self.scalar_call("concat", requested, at, &[])?.expr;
        let text = |text: String| lit(ScalarValue::Utf8View(Some(text)));
        let mut cases = Vec::new();
        for object in self.objects()? {
            for (_, sequence, index) in object.sequences() {
                let Some(column) = object.columns.get(index as usize - 1) else { continue };
                for schema in ["", "public."] {
                    let key = format!("{schema}{}\n{}", object.name, column.name);
                    cases.push((text(key), text(format!("public.{sequence}"))));
                }
            }
        }
        let none = lit(ScalarValue::Utf8View(None));
        let found = cases_of(requested, cases.into_iter(), none)?;
        Ok(Some(Typed::computed(found, SqlType::String)))
    }

    /// Binds `pg_get_indexdef(oid)`. With a column number, it returns that column's name.
    fn index_text(
        &mut self,
        index: NodeId,
        column: Option<&NodeId>,
        at: Span,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        let objects = self.objects()?;
        let indexes: Vec<Key<'_>> = keys(&objects).into_iter().filter(Key::has_index).collect();
        let mut argument = self.expression(index, scope)?;
        if let Some(text) = argument.constant.as_ref().and_then(text_of) {
            argument = number(self.number_of(Registered::Class, &text));
        }
        let whole = indexes.iter().map(|key| (key.index_oid(), key.index_definition())).collect();
        let whole = self.lookup(argument.clone(), whole, false, at)?;
        let Some(column) = column else { return Ok(whole) };
        let column = self.expression(*column, scope)?;
        let column = self.cast(column, SqlType::Int, CastMode::Explicit, at)?;
        let widest = (1..).take_while(|&at| indexes.iter().any(|key| key.column(at).is_some()));
        let mut cases = vec![(lit(0), whole.expr)];
        for position in widest {
            let name = |key: &Key<'_>| Some((key.index_oid(), key.column(position)?.to_owned()));
            let names = indexes.iter().filter_map(name).collect();
            let name = self.lookup(argument.clone(), names, false, at)?;
            cases.push((lit(position as i32), name.expr));
        }
        let none = lit(ScalarValue::Utf8View(None));
        Ok(Typed::computed(cases_of(column.expr, cases.into_iter(), none)?, SqlType::String))
    }

    /// Binds functions that describe an index.
    fn index_call(
        &mut self,
        plain: &str,
        call: &CallNode,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        match call.arguments.as_slice() {
            [index, rest @ ..] if plain == "pg_get_indexdef" => {
                self.index_text(*index, rest.first(), call.name.span, scope)
            }
            _ => self.index_property(call, scope),
        }
    }

    /// Binds `pg_index_has_property(oid, name)` and `pg_index_column_has_property(oid, column,
    /// name)`. All indexes are reported as btree indexes.
    fn index_property(&mut self, call: &CallNode, scope: &Scope<'_>) -> EngineResult<Typed> {
        let at = call.name.span;
        let (index, column, name, known) = match call.arguments.as_slice() {
            [index, name] => (*index, None, *name, INDEX_PROPERTIES),
            [index, column, name] => (*index, Some(column), *name, COLUMN_PROPERTIES),
            _ => {
                let message = format!("{}: wrong number of arguments", call.name.text);
                return Err(error::at(ErrorCode::InvalidValue, message, at));
            }
        };
        let listed = self.index_text(index, column, at, scope)?.expr.is_not_null();
        let name = self.expression(name, scope)?;
        let name = self.cast(name, SqlType::String, CastMode::Explicit, at)?;
        let name = self.scalar_call("lower", vec![name], at, &[])?;
        let known = known.iter().map(|known| literal::text(known).expr).collect();
        let has = listed.and(name.expr.in_list(known, false));
        Ok(Typed::computed(has, SqlType::Boolean).never_null())
    }

    /// Looks up the name for an OID. For an unknown OID, returns the OID as text if `keep` is true,
    /// and null otherwise.
    fn lookup(
        &mut self,
        operand: Typed,
        texts: Vec<(i32, String)>,
        keep: bool,
        position: Span,
    ) -> EngineResult<Typed> {
        let operand = self.cast(operand, SqlType::Int, CastMode::Explicit, position)?;
        let as_text = self.cast(operand.clone(), SqlType::String, CastMode::Explicit, position)?;
        let none = lit(ScalarValue::Utf8View(None));
        let otherwise = if keep { as_text.expr } else { none };
        let texts =
            texts.into_iter().map(|(oid, text)| (lit(oid), lit(ScalarValue::Utf8View(Some(text)))));
        let typed = Typed::computed(cases_of(operand.expr, texts, otherwise)?, SqlType::String);
        Ok(if operand.constant.is_some() { typed.folded() } else { typed })
    }

    fn names_of(&self, kind: Registered) -> Vec<(i32, String)> {
        match kind {
            Registered::Class => {
                let tables = self.sorted_tables();
                let tables = tables
                    .iter()
                    .map(|table| (table_oid(table.schema()), table.schema().name.clone()));
                let indexes = self.index_names();
                let views = self.sorted_views();
                let views = views.iter().map(|view| (view_oid(view), view.name.clone()));
                let system = PG_CATALOG.iter().map(|one| (one.oid, one.name.to_owned()));
                let standard = INFORMATION_SCHEMA
                    .iter()
                    .map(|one| (one.oid, format!("information_schema.{}", one.name)));
                // `PostgreSQL` displays OID 0 as `-`.
                let nothing = std::iter::once((0, "-".to_owned()));
                tables
                    .chain(views)
                    .chain(indexes)
                    .chain(nothing)
                    .chain(system)
                    .chain(standard)
                    .collect()
            }
            Registered::Type => TYPES.iter().map(|one| (one.oid, one.title.to_owned())).collect(),
            Registered::Namespace => {
                SCHEMAS.iter().map(|&(oid, name)| (oid, name.to_owned())).collect()
            }
            Registered::Role => vec![(OWNER_OID, OWNER.to_owned())],
        }
    }

    /// Converts a string to an OID. The string contains an OID, a name, or a name with its schema.
    fn number_of(&self, kind: Registered, text: &str) -> Option<i32> {
        if let Ok(oid) = text.parse() {
            return Some(oid);
        }
        let bare: Vec<&str> =
            text.split('.').map(|component| component.trim().trim_matches('"')).collect();
        let bare = bare.join(".");
        let schemas = ["pg_catalog.", "public.", "qdb.public."];
        let plain = schemas.iter().find_map(|schema| bare.strip_prefix(schema)).unwrap_or(&bare);
        if matches!(kind, Registered::Type) {
            let named = types::by_name(plain).map(|one| one.oid);
            // Type names are written as in a cast: `int`, `decimal(10,2)`.
            return named.or_else(|| SqlType::parse_text(plain).map(|of| types::of(of).oid));
        }
        let names = self.names_of(kind);
        names.into_iter().find(|(_, name)| identifier::same(name, plain)).map(|(oid, _)| oid)
    }
}

/// The properties that are reported as true for every index and for every index column.
const INDEX_PROPERTIES: &[&str] = &["clusterable", "index_scan", "bitmap_scan", "backward_scan"];
const COLUMN_PROPERTIES: &[&str] =
    &["asc", "nulls_last", "orderable", "returnable", "search_array", "search_nulls"];

/// The sequences of all columns with this name, by table OID.
fn serial_sequences(objects: &[Object], column: &str) -> Vec<(i32, String)> {
    let of_table = |object: &Object| {
        let index = i32::try_from(object.position(column)? + 1).ok()?;
        let (_, name, _) = object.sequences().find(|(.., of)| *of == index)?;
        Some((object.oid, format!("public.{name}")))
    };
    objects.iter().filter_map(of_table).collect()
}

/// Constraint definitions in CREATE TABLE syntax, by OID.
fn definitions(objects: &[Object]) -> Vec<(i32, String)> {
    let all = keys(objects).into_iter();
    all.filter_map(|key| Some((key.oid(), key.definition()?))).collect()
}

/// Builds an expression that returns the value of the first key equal to `of`. The expression
/// contains `of` only once, so nested lookups do not multiply its size.
fn cases_of(
    of: Expr,
    mut cases: impl Iterator<Item = (Expr, Expr)>,
    otherwise: Expr,
) -> EngineResult<Expr> {
    let Some((key, value)) = cases.next() else { return Ok(otherwise) };
    let mut found = case(of).when(key, value);
    for (key, value) in cases {
        found = found.when(key, value);
    }
    found.otherwise(otherwise).map_err(error::plan)
}

fn number(oid: Option<i32>) -> Typed {
    Typed::literal(ScalarValue::Int32(oid), SqlType::Int)
}

fn setting(name: &str) -> Typed {
    // QuestDB reports its version only in `version()` and when a connection starts.
    let named = |known: &str| known.eq_ignore_ascii_case(name) && known != "server_version";
    let found = SETTINGS.iter().find(|(known, _)| named(known));
    literal::text(found.map_or("", |(_, value)| value))
}

/// Converts a constant to a string; a single character is a CHAR.
fn text_of(value: &ScalarValue) -> Option<String> {
    match value {
        ScalarValue::UInt16(Some(unit)) => char::from_u32((*unit).into()).map(String::from),
        other => constant::as_text(other).map(str::to_owned),
    }
}
