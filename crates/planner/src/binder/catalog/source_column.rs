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

/// A column of the result, and its index in the current plan node.
struct Wanted {
    output: usize,
    place: usize,
}

/// Records the source table columns of a result, through plan nodes that pass values on unchanged.
/// The search stops at sub-queries and views, because clients must see a view's columns as columns
/// of the view.
pub(crate) fn note_sources(rows: &Relation, found: &mut [Field]) {
    let outputs: Vec<Expr> = rows.columns.iter().map(ScopeColumn::expr).collect();
    let all = (0..outputs.len()).map(|place| Wanted { output: place, place }).collect();
    let mut open = vec![(&rows.plan, through(&outputs, &rows.plan, all))];
    while let Some((plan, wanted)) = open.pop() {
        match plan {
            LogicalPlan::TableScan(scan) => note(scan, &wanted, found),
            LogicalPlan::Projection(projection) => {
                let input = projection.input.as_ref();
                open.push((input, through(&projection.expr, input, wanted)));
            }
            LogicalPlan::Filter(filter) => open.push((&filter.input, wanted)),
            LogicalPlan::Sort(sort) => open.push((&sort.input, wanted)),
            LogicalPlan::Limit(limit) => open.push((&limit.input, wanted)),
            LogicalPlan::Join(join) => {
                let width = join.left.schema().fields().len();
                let (left, right): (Vec<_>, Vec<_>) =
                    wanted.into_iter().partition(|one| one.place < width);
                let right = right.into_iter();
                let right = right.map(|one| Wanted { place: one.place - width, ..one }).collect();
                open.extend([(join.left.as_ref(), left), (join.right.as_ref(), right)]);
            }
            _ => {}
        }
    }
}

/// Returns the columns that a projection passes on unchanged.
fn through(exprs: &[Expr], input: &LogicalPlan, wanted: Vec<Wanted>) -> Vec<Wanted> {
    let places = input.schema().columns().into_iter().enumerate();
    let places: HashMap<Column, usize> = places.map(|(place, column)| (column, place)).collect();
    let place = |expr: &Expr| match expr {
        Expr::Column(column) => places.get(column).copied(),
        _ => None,
    };
    let handed_on = |Wanted { output, place: of }: Wanted| {
        let expr = match exprs.get(of)? {
            Expr::Alias(alias) => alias.expr.as_ref(),
            expr => expr,
        };
        Some(Wanted { output, place: place(expr)? })
    };
    wanted.into_iter().filter_map(handed_on).collect()
}

fn note(scan: &TableScan, wanted: &[Wanted], found: &mut [Field]) {
    let Ok(provider) = source_as_provider(&scan.source) else { return };
    let Some(table) = provider.downcast_ref::<SnapshotTable>() else { return };
    let schema = table.table().schema();
    for Wanted { output, place } in wanted {
        let index = match &scan.projection {
            Some(columns) => columns[*place],
            None => *place,
        };
        let Some(column) = schema.columns.get(index) else { continue };
        found[*output].source = Some(SourceColumn {
            table: table_oid(schema),
            number: index as i16 + 1,
            modifier: column_modifier(column),
        });
    }
}
