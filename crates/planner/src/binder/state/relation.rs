//! Helpers for building plans.

use std::sync::Arc;

use datafusion::common::{Column, DFSchema, ExprSchema};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::logical_plan::TableScanBuilder;
use datafusion::logical_expr::{
    Distinct, EmptyRelation, Expr, Filter, LogicalPlan, Projection, Sort, SortExpr, SubqueryAlias,
    TableScan,
};
use tidemark_operators::SnapshotTable;
use tidemark_optimizer::check_lookups;
use tidemark_storage::{TableSnapshot, TimeRange};
use tidemark_types::bounded::check_stop;
use tidemark_types::{CatalogType, EngineError, EngineResult, SqlType};

use crate::binder::error;
use crate::binder::state::accesses::{Accesses, Origin};
use crate::binder::state::scope::{BaseScan, Relation, ScopeColumn, TimeOrder};

/// Projects expressions over a plan.
pub(crate) fn project(plan: LogicalPlan, exprs: Vec<Expr>) -> EngineResult<LogicalPlan> {
    check_stop()?;
    check_lookups(exprs.len(), plan.schema().fields().len())?;
    Projection::try_new(exprs, Arc::new(plan)).map(LogicalPlan::Projection).map_err(error::plan)
}

/// Filters a plan by a predicate.
pub(crate) fn filter(plan: LogicalPlan, predicate: Expr) -> EngineResult<LogicalPlan> {
    Filter::try_new(predicate, Arc::new(plan)).map(LogicalPlan::Filter).map_err(error::plan)
}

/// Sorts a plan by keys.
pub(crate) fn sort(
    plan: LogicalPlan,
    keys: impl Iterator<Item = SortExpr>,
) -> EngineResult<LogicalPlan> {
    let expr: Vec<SortExpr> = keys.collect();
    if expr.is_empty() {
        return Ok(plan);
    }
    Ok(LogicalPlan::Sort(Sort { expr, input: Arc::new(plan), fetch: None }))
}

/// Sorts a plan by time, ascending.
pub(crate) fn sort_by_time(plan: LogicalPlan, time: Expr) -> EngineResult<LogicalPlan> {
    sort(plan, std::iter::once(SortExpr::new(time, true, true)))
}

/// Removes duplicate rows.
pub(crate) fn distinct(plan: LogicalPlan) -> LogicalPlan {
    LogicalPlan::Distinct(Distinct::All(Arc::new(plan)))
}

/// Returns a name for a computed column. Users can choose any column name, so the returned name is
/// made to differ from all column names in the plan.
pub(crate) fn fresh(name: &str, plan: &LogicalPlan) -> String {
    let mut name = name.to_owned();
    while plan.schema().iter().any(|(_, field)| *field.name() == name) {
        name.push('_');
    }
    name
}

/// One row without columns.
pub(crate) fn one_row() -> Relation {
    let plan = LogicalPlan::EmptyRelation(EmptyRelation {
        produce_one_row: true,
        schema: Arc::new(DFSchema::empty()),
    });
    Relation::of(plan, Vec::new())
}

/// A scan of a table.
fn scan(base: &BaseScan) -> EngineResult<LogicalPlan> {
    let provider = SnapshotTable::new(Arc::clone(&base.table));
    let provider = if base.row_ids { provider.with_row_ids() } else { provider };
    let source = provider_as_source(Arc::new(provider));
    let scan = TableScanBuilder::new(base.reference.as_str(), source).build();
    scan.map(LogicalPlan::TableScan).map_err(error::plan)
}

/// Restricts a table scan to time ranges; without ranges, the scan reads nothing.
pub(crate) fn within(plan: &LogicalPlan, ranges: Vec<TimeRange>) -> EngineResult<LogicalPlan> {
    let LogicalPlan::TableScan(scan) = plan else {
        return Err(EngineError::internal("time ranges require a scan"));
    };
    if ranges.is_empty() {
        let schema = Arc::clone(&scan.projected_schema);
        return Ok(LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema }));
    }
    let provider = source_as_provider(&scan.source).map_err(error::plan)?;
    let Some(table) = provider.downcast_ref::<SnapshotTable>() else {
        return Err(EngineError::internal("a scan reads an unexpected kind of table"));
    };
    let source = provider_as_source(Arc::new(table.within(ranges)));
    Ok(LogicalPlan::TableScan(TableScan { source, ..scan.clone() }))
}

/// A table as a relation.
pub(crate) fn of_table(
    table: Arc<TableSnapshot>,
    qualifier: &str,
    reference: String,
    accesses: &Accesses,
) -> EngineResult<Relation> {
    of_base(BaseScan { table, reference, row_ids: false }, qualifier, accesses)
}

/// A table whose rows will be changed: its plan also returns row IDs.
pub(crate) fn of_rows(
    table: Arc<TableSnapshot>,
    qualifier: &str,
    reference: String,
    accesses: &Accesses,
) -> EngineResult<Relation> {
    of_base(BaseScan { table, reference, row_ids: true }, qualifier, accesses)
}

fn of_base(base: BaseScan, qualifier: &str, accesses: &Accesses) -> EngineResult<Relation> {
    let schema = Arc::clone(base.table.schema());
    let table: Arc<str> = Arc::from(schema.name.as_str());
    let qualifier: Arc<str> = Arc::from(qualifier);
    let columns = schema
        .columns
        .iter()
        .map(|column| ScopeColumn {
            qualifier: Some(Arc::clone(&qualifier)),
            name: column.name.clone(),
            sql_type: column.sql_type,
            column: Column::new(Some(base.reference.as_str()), &column.name),
            origin: Origin::column(&table, &column.name, accesses),
        })
        .collect();
    let ordered = schema.timestamp.map(|_| TimeOrder::Ascending);
    let rows = Relation::of(scan(&base)?, columns);
    Ok(Relation {
        timestamp: schema.timestamp,
        order: ordered.unwrap_or_default(),
        base: Some(base),
        ..rows
    })
}

impl Relation {
    /// A relation without a designated timestamp.
    pub(crate) fn of(plan: LogicalPlan, columns: Vec<ScopeColumn>) -> Self {
        Self {
            plan,
            columns,
            timestamp: None,
            unselected_time: None,
            order: TimeOrder::Unknown,
            merged: Vec::new(),
            listed: None,
            base: None,
            dropped: Vec::new(),
        }
    }

    /// A column's `PostgreSQL` catalog type. Plan nodes pass it on unchanged.
    pub(crate) fn catalog_type(&self, column: &Column) -> Option<CatalogType> {
        let field = self.plan.schema().field_from_column(column).ok()?;
        CatalogType::of_name(field.metadata().get(CatalogType::METADATA)?)
    }

    /// Copies the designated timestamp from `left`, whose columns come first in this relation.
    pub(crate) fn copy_timestamp(&mut self, left: &Self, order: TimeOrder) {
        self.timestamp = left.timestamp;
        self.unselected_time.clone_from(&left.unselected_time);
        self.order = order;
    }

    /// The designated timestamp if it is not selected, as an expression for a projection that must
    /// retain it.
    pub(crate) fn unselected(&self) -> Option<Expr> {
        self.unselected_time.as_ref().map(ScopeColumn::expr)
    }

    /// Removes the designated timestamp from the relation if it is not selected.
    pub(crate) fn without_unselected(self) -> EngineResult<Self> {
        if self.unselected_time.is_none() {
            return Ok(self);
        }
        let exprs = self.columns.iter().map(ScopeColumn::expr).collect();
        let plan = project(self.plan.clone(), exprs)?;
        Ok(Self { unselected_time: None, ..self.with_plan(plan) })
    }

    /// The rows for a client or a LIMIT, sorted by time again if a join may have changed the order.
    pub(crate) fn restored(self) -> EngineResult<Self> {
        match self.timestamp_column().map(ScopeColumn::expr) {
            Some(time) if self.order == TimeOrder::Shuffled => {
                let plan = sort_by_time(self.plan.clone(), time)?;
                Ok(Self { order: TimeOrder::Ascending, ..self.with_plan(plan) })
            }
            _ => Ok(self),
        }
    }

    /// The relation as a source, with its columns qualified by the source's alias.
    pub(crate) fn aliased(self, qualifier: Option<&str>, reference: &str) -> EngineResult<Self> {
        let plan = SubqueryAlias::try_new(Arc::new(self.plan), reference).map_err(error::plan)?;
        let qualifier: Option<Arc<str>> = qualifier.map(Arc::from);
        let aliased = |column: ScopeColumn| ScopeColumn {
            qualifier: qualifier.clone(),
            column: Column::new(Some(reference), column.column.name),
            name: column.name,
            sql_type: column.sql_type,
            origin: Origin::NONE,
        };
        Ok(Self {
            plan: LogicalPlan::SubqueryAlias(plan),
            columns: self.columns.into_iter().map(aliased).collect(),
            unselected_time: self.unselected_time.map(aliased),
            base: None,
            dropped: Vec::new(),
            ..self
        })
    }

    /// The relation with a new top plan node and the same columns.
    pub(crate) fn with_plan(self, plan: LogicalPlan) -> Self {
        Self { plan, base: None, ..self }
    }

    /// Renames columns, as in `WITH name(a, b)`.
    pub(crate) fn renamed(mut self, names: &[tidemark_ast::Name]) -> EngineResult<Self> {
        if names.is_empty() {
            return Ok(self);
        }
        let mut exprs = Vec::with_capacity(self.columns.len());
        for (index, column) in self.columns.iter_mut().enumerate() {
            if let Some(name) = names.get(index) {
                column.name.clone_from(&name.text);
            }
            exprs.push(column.expr().alias(&column.name));
        }
        exprs.extend(self.unselected());
        self.plan = project(self.plan, exprs)?;
        for column in &mut self.columns {
            column.column = Column::new_unqualified(&column.name);
        }
        self.base = None;
        Ok(self)
    }
}

/// A projection's output column.
pub(crate) fn output_column(name: &str, sql_type: SqlType) -> ScopeColumn {
    ScopeColumn {
        qualifier: None,
        name: name.to_owned(),
        sql_type,
        column: Column::new_unqualified(name),
        origin: Origin::NONE,
    }
}
