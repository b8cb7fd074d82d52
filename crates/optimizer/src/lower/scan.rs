//! Scans and filters.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::{DFSchemaRef, Result, plan_err};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, TableScan};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::filter::FilterExecBuilder;
use tidemark_operators::{
    FilteredScan, Lowering, ScanPartitioning, SliceScan, SnapshotTable, filtered_scan,
};

use super::other_scans::OtherScans;
use super::planned::{Plan, Planned, Requirements, is_over, mark_columns, narrowed};
use super::walk::Walk;
use crate::conditions::all_of;

impl Walk<'_> {
    /// Lowers a scan with the filters directly above it; the lowest filter is last in the list.
    pub(super) fn scan(
        &self,
        scan: &TableScan,
        filters: &[&Filter],
        requirements: &Requirements,
    ) -> Result<Planned> {
        let provider = source_as_provider(&scan.source)?;
        let Some(table) = provider.downcast_ref::<SnapshotTable>() else {
            return self.other_scan(scan, filters, requirements);
        };
        let schema = &scan.projected_schema;
        let is_one = filters.len() + scan.filters.len() == 1;
        let (mut in_time, mut others) = (Vec::new(), Vec::new());
        let predicates = filters.iter().rev().map(|filter| &filter.predicate);
        for predicate in scan.filters.iter().chain(predicates) {
            let predicate = self.folded(predicate, schema)?;
            for conjunct in split_conjunction(&predicate) {
                match table.time_range(conjunct) {
                    Some(range) => in_time.push(range),
                    None => others.push(conjunct.clone()),
                }
            }
        }
        let mut read = requirements.columns.clone();
        others.iter().try_for_each(|predicate| mark_columns(predicate, schema, &mut read))?;
        let positions: Vec<usize> = (0..read.len()).filter(|&at| read[at]).collect();
        let source = scan.projection.as_deref();
        let columns = positions.iter().map(|&at| source.map_or(at, |of| of[at])).collect();
        let rows = [requirements.rows, scan.fetch].into_iter().flatten().min();
        let rows_read = rows.filter(|_| others.is_empty());
        let partitioning = ScanPartitioning::of(self.session.config());
        let plan = table.plan(columns, &in_time, rows_read, partitioning)?;
        let schema_read = narrowed(schema, &read)?;
        let Some(predicate) = all_of(others) else {
            return Ok(Planned { plan: plan.plan(), schema: schema_read });
        };
        let predicate = self.lowering.expr(&predicate, &schema_read)?;
        let output = positions.iter().enumerate().filter(|(_, at)| requirements.columns[**at]);
        let output = output.map(|(at, _)| at).collect();
        let plan = FilteredScan::new(plan, predicate, output, rows)?;
        let plan = if is_one { plan.named(schema_read) } else { plan };
        Ok(Planned { plan: plan.plan(), schema: narrowed(schema, &requirements.columns)? })
    }

    /// Lowers a scan of a foreign table below filters.
    fn other_scan(
        &self,
        scan: &TableScan,
        filters: &[&Filter],
        requirements: &Requirements,
    ) -> Result<Planned> {
        let Some(plan) = self.scans.take(scan) else {
            return plan_err!("the scan was not planned");
        };
        let schema = Arc::clone(&scan.projected_schema);
        let all = vec![true; schema.fields().len()];
        let input = Planned { plan, schema };
        self.filtered(input, &all, filters, requirements)
    }

    pub(super) fn filter(&self, filter: &Filter, requirements: &Requirements) -> Result<Planned> {
        let mut filters = vec![filter];
        let mut input = filter.input.as_ref();
        loop {
            match input {
                LogicalPlan::Filter(filter) => {
                    filters.push(filter);
                    input = &filter.input;
                }
                // The scan's limit applies before the filters.
                LogicalPlan::TableScan(scan) if scan.fetch.is_none() => {
                    return self.scan(scan, &filters, requirements);
                }
                _ => break,
            }
        }
        let mut columns = requirements.columns.clone();
        for filter in &filters {
            mark_columns(&filter.predicate, input.schema(), &mut columns)?;
        }
        let below = Requirements { rows: None, ..requirements.of(columns.clone()) };
        let input = self.node(input, &below)?;
        self.filtered(input, &columns, &filters, requirements)
    }

    /// Filters the rows of an operator with these columns; the lowest filter is last.
    fn filtered(
        &self,
        input: Planned,
        columns: &[bool],
        filters: &[&Filter],
        requirements: &Requirements,
    ) -> Result<Planned> {
        let mut conjuncts = vec![];
        for filter in filters.iter().rev() {
            let predicate = self.folded(&filter.predicate, &input.schema)?;
            conjuncts.extend(split_conjunction(&predicate).into_iter().cloned());
        }
        let Some(predicate) = all_of(conjuncts) else {
            return input.narrowed_to(requirements, columns);
        };
        let predicate = self.lowering.expr(&predicate, &input.schema)?;
        let retained = requirements.among(columns);
        let schema = narrowed(&input.schema, &retained)?;
        let options = self.session.config().options();
        let mut filter = FilterExecBuilder::new(predicate, input.plan)
            .with_batch_size(self.session.config().batch_size())
            .with_default_selectivity(options.optimizer.default_filter_selectivity)
            .with_fetch(requirements.rows);
        if retained.contains(&false) {
            let output = (0..retained.len()).filter(|&at| retained[at]).collect();
            filter = filter.apply_projection(Some(output))?;
        }
        let plan: Plan = Arc::new(filter.build()?);
        Ok(Planned { plan: filtered_scan(&plan).unwrap_or(plan), schema })
    }
}

/// Lowers a condition over columns with these names, for a filter of `scan`. `None` if the scan
/// would use part of the condition for pruning, or if the condition reads other columns.
pub(crate) fn condition(
    predicate: &Expr,
    names: &DFSchemaRef,
    scan: &SliceScan,
    session: &dyn Session,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let context = PhysicalPlanningContext::default();
    let scans = OtherScans::default();
    let walk = Walk { session, lowering: Lowering { session, context: &context }, scans: &scans };
    if !is_over(predicate, names) {
        return Ok(None);
    }
    let predicate = walk.folded(predicate, names)?;
    let conjuncts = split_conjunction(&predicate);
    if conjuncts.iter().any(|conjunct| scan.time_range(conjunct).is_some()) {
        return Ok(None);
    }
    let Some(predicate) = all_of(conjuncts.into_iter().cloned()) else { return Ok(None) };
    walk.lowering.expr(&predicate, names).map(Some)
}
