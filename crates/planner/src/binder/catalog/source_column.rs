//! Finds the table column behind each result column, for clients that look it up in the catalog.

use std::collections::HashMap;

use datafusion::common::Column;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};
use tidemark_operators::SnapshotTable;
use tidemark_types::{Field, SourceColumn};

use super::pg_catalog::numbers::table_oid;
use super::pg_catalog::types::column_modifier;
use crate::binder::state::scope::{Relation, ScopeColumn};

/// A result column, and its index in the current plan node.
struct ResultColumn {
    output: usize,
    index: usize,
}

/// Records the table columns from which a result's columns originate, following plan nodes that
/// pass values on unchanged. The search stops at sub-queries and views, because clients must see a
/// view's columns as columns of the view itself.
pub(crate) fn note_sources(rows: &Relation, found: &mut [Field]) {
    let outputs: Vec<Expr> = rows.columns.iter().map(ScopeColumn::expr).collect();
    let all = (0..outputs.len())
        .map(|position| ResultColumn { output: position, index: position })
        .collect();
    let mut open = vec![(&rows.plan, through(&outputs, &rows.plan, all))];
    while let Some((plan, columns)) = open.pop() {
        match plan {
            LogicalPlan::TableScan(scan) => note(scan, &columns, found),
            LogicalPlan::Projection(projection) => {
                let input = projection.input.as_ref();
                open.push((input, through(&projection.expr, input, columns)));
            }
            LogicalPlan::Filter(filter) => open.push((&filter.input, columns)),
            LogicalPlan::Sort(sort) => open.push((&sort.input, columns)),
            LogicalPlan::Limit(limit) => open.push((&limit.input, columns)),
            LogicalPlan::Join(join) => {
                let width = join.left.schema().fields().len();
                let (left, right): (Vec<_>, Vec<_>) =
                    columns.into_iter().partition(|one| one.index < width);
                let right = right.into_iter();
                let right =
                    right.map(|one| ResultColumn { index: one.index - width, ..one }).collect();
                open.extend([(join.left.as_ref(), left), (join.right.as_ref(), right)]);
            }
            _ => {}
        }
    }
}

/// Returns the columns that a projection passes on unchanged.
fn through(exprs: &[Expr], input: &LogicalPlan, columns: Vec<ResultColumn>) -> Vec<ResultColumn> {
    let indices = input.schema().columns().into_iter().enumerate();
    let indices: HashMap<Column, usize> =
        indices.map(|(position, column)| (column, position)).collect();
    let position = |expr: &Expr| match expr {
        Expr::Column(column) => indices.get(column).copied(),
        _ => None,
    };
    let handed_on = |ResultColumn { output, index: of }: ResultColumn| {
        let expr = match exprs.get(of)? {
            Expr::Alias(alias) => alias.expr.as_ref(),
            expr => expr,
        };
        Some(ResultColumn { output, index: position(expr)? })
    };
    columns.into_iter().filter_map(handed_on).collect()
}

fn note(scan: &TableScan, columns: &[ResultColumn], found: &mut [Field]) {
    let Ok(provider) = source_as_provider(&scan.source) else { return };
    let Some(table) = provider.downcast_ref::<SnapshotTable>() else { return };
    let schema = table.table().schema();
    for ResultColumn { output, index: position } in columns {
        let index = match &scan.projection {
            Some(columns) => columns[*position],
            None => *position,
        };
        let Some(column) = schema.columns.get(index) else { continue };
        found[*output].source = Some(SourceColumn {
            table: table_oid(schema),
            number: index as i16 + 1,
            modifier: column_modifier(column),
        });
    }
}
