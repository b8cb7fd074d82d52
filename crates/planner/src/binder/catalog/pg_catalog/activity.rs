//! `pg_stat_activity`: the running queries, which clients can cancel.
//!
//! A row is a query, not a session: its `pid` is the query ID, as in `query_activity()`.

use arrow_schema::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, cast, lit};
use tidemark_types::{EngineResult, SqlType};

use crate::binder::catalog::pg_catalog::layout::Layout;
use crate::binder::catalog::pg_catalog::numbers::DATABASE_OID;
use crate::binder::catalog::pg_catalog::{DATABASE, column_of};
use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, ScopeColumn};
use crate::binder::{Binder, error};

impl Binder<'_> {
    /// Builds the rows from the result of `query_activity()`.
    pub(crate) fn stat_activity(&mut self, layout: &Layout) -> EngineResult<Option<Relation>> {
        let of = self.context.only_queries_of();
        let Some(external) = self.context.external() else { return Ok(None) };
        let Some(table) = external.table_function("query_activity", of)? else { return Ok(None) };
        let columns: Vec<(String, SqlType)> =
            table.columns.iter().map(|field| (field.name.clone(), field.sql_type)).collect();
        let rows = self.provider_rows(table.provider, &columns)?;
        let own = |name: &str| rows.columns.iter().find(|column| column.name == name);
        let (mut exprs, mut columns) = (Vec::new(), Vec::new());
        for (name, of) in layout.fields() {
            let (sql_type, _) = column_of(of, std::iter::empty())?;
            let value = match name {
                "datid" => Some(lit(DATABASE_OID)),
                "datname" => Some(text(DATABASE)),
                "application_name" => Some(text("")),
                "backend_type" => Some(text("client backend")),
                "pid" => {
                    let number = own("query_id").map(ScopeColumn::expr);
                    number.map(|number| cast(number, DataType::Int32))
                }
                "usename" => own("username").map(ScopeColumn::expr),
                "backend_start" | "xact_start" => own("query_start").map(ScopeColumn::expr),
                other => own(other).map(ScopeColumn::expr),
            };
            let value = if let Some(value) = value {
                value
            } else {
                let none = ScalarValue::try_new_null(&sql_type.arrow_type());
                lit(none.map_err(error::plan)?)
            };
            exprs.push(value.alias(name));
            columns.push(relation::output_column(name, sql_type));
        }
        let plan = relation::project(rows.plan, exprs)?;
        Ok(Some(Relation::of(plan, columns)))
    }
}

fn text(text: &str) -> Expr {
    lit(ScalarValue::Utf8View(Some(text.to_owned())))
}
