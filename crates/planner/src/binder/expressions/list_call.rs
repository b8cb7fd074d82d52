//! Set-returning functions in the select list: `unnest(array)`, `generate_subscripts(array, 1)`,
//! `generate_series(1, n)`. Each source row is repeated once per element. Several such functions
//! advance in parallel.

use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{Expr, lit};
use tidemark_ast::{CallNode, NodeId, Span};
use tidemark_functions::CastMode;
use tidemark_operators::{JsonField, JsonKind, UnnestItem};
use tidemark_types::{CatalogType, EngineResult, ErrorCode, SqlType};

use crate::binder::catalog::pg_catalog;
use crate::binder::expressions::array::catalog_type;
use crate::binder::expressions::{constant, literal};
use crate::binder::state::list_rows::ListRows;
use crate::binder::state::scope::Scope;
use crate::binder::{Binder, Typed, error};

impl Binder<'_> {
    /// Binds a set-returning function call; `None` for other functions, and outside a select list.
    pub(crate) fn list_call(
        &mut self,
        name: &str,
        call: &CallNode,
        scope: &Scope<'_>,
    ) -> EngineResult<Option<Typed>> {
        let plain = name.strip_prefix("pg_catalog.").unwrap_or(name);
        let plain = plain.strip_prefix("information_schema.").unwrap_or(plain);
        if self.list_rows.is_none() {
            return Ok(None);
        }
        match plain {
            "unnest" | "generate_subscripts" | "_pg_expandarray" => {}
            "generate_series" => return self.list_series(call, scope).map(Some),
            _ => return Ok(None),
        }
        let at = call.name.span;
        let array = match (plain, self.plain_arguments(call)?) {
            ("generate_subscripts", [array, dimension]) => {
                self.must_be_first(*dimension)?;
                array
            }
            ("unnest" | "_pg_expandarray", [array]) => array,
            _ => {
                let message = format!("{plain}: wrong number of arguments");
                return Err(error::at(ErrorCode::InvalidValue, message, at));
            }
        };
        let array = self.expression(*array, scope)?;
        // Numeric arrays in the catalog contain only integers.
        let whole = array.sql_type == SqlType::DoubleArray(1)
            && scope.relation.is_some_and(pg_catalog::is_catalog);
        let first = i64::from(!catalog_type(&array, scope).is_some_and(CatalogType::is_vector));
        let mut element = self.element_of(array, call)?;
        if whole {
            element = self.cast(element, SqlType::Long, CastMode::Explicit, at)?;
        }
        let number = self.list_rows.as_ref().map(ListRows::number).unwrap_or_default();
        let number = Expr::Column(Column::new_unqualified(number));
        // `_pg_expandarray` numbers the elements of any array from 1, but subscripts of vectors
        // start at 0.
        let shifts = first == 0 && plain != "_pg_expandarray";
        let number = if shifts { number - lit(1_i64) } else { number };
        let number = Typed::computed(number, SqlType::Long);
        Ok(Some(match plain {
            "unnest" => element,
            "generate_subscripts" => self.cast(number, SqlType::Int, CastMode::Explicit, at)?,
            _ => {
                let element = self.cast(element, SqlType::Long, CastMode::Explicit, at)?;
                let [open, comma, close] = ["(", ",", ")"].map(literal::text);
                self.scalar_call("concat", vec![open, element, comma, number, close], at, &[])?
            }
        }))
    }

    /// Rejects `generate_subscripts` for any dimension other than the first.
    pub(crate) fn must_be_first(&mut self, dimension: NodeId) -> EngineResult<()> {
        let one = ScalarValue::Int64(Some(1));
        let found = self.demanded(dimension, SqlType::Long, one)?.constant;
        if found.as_ref().and_then(constant::as_i64) == Some(1) {
            return Ok(());
        }
        let what = "generate_subscripts for a dimension other than 1 is";
        Err(error::not_supported(what, self.tree.span(dimension)))
    }

    /// Registers an array for expansion and returns its element column.
    fn element_of(&mut self, array: Typed, call: &CallNode) -> EngineResult<Typed> {
        let at = call.name.span;
        let (array, item, raw) = match array.sql_type {
            SqlType::DoubleArray(1) => (array, UnnestItem::Array(1), SqlType::Double),
            text if text.is_text() => {
                let list = self.scalar_call("array_to_json", vec![array], at, &[])?;
                let field = JsonField { name: "value".to_owned(), kind: JsonKind::Text };
                (list, UnnestItem::Json(vec![field]), SqlType::Varchar)
            }
            other => {
                let message = format!(
                    "{}: expected DOUBLE[] or a catalog array, found {}",
                    call.name.text,
                    other.name()
                );
                return Err(error::at(ErrorCode::TypeMismatch, message, at));
            }
        };
        Ok(Typed::computed(self.list_element(array.expr, item, at)?, raw))
    }

    /// Registers a value for expansion and returns its element column.
    pub(crate) fn list_element(
        &mut self,
        whole: Expr,
        item: UnnestItem,
        at: Span,
    ) -> EngineResult<Expr> {
        if self.list_rows.as_ref().is_some_and(|rows| !rows.is_named()) {
            let prefix = format!("{} element ", self.relation_name());
            self.list_rows = Some(ListRows::named(prefix));
        }
        let Some(rows) = &mut self.list_rows else {
            return Err(error::not_supported("a function that returns several rows here is", at));
        };
        Ok(rows.element(whole, item))
    }
}
