//! Scans of foreign tables: files, sequences, server tables. They are planned before the walk,
//! since their providers plan asynchronously.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use datafusion::catalog::{ScanArgs, Session};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::expr_rewriter::unnormalize_cols;
use datafusion::logical_expr::{LogicalPlan, TableScan};

use super::plain::is_own;
use super::planned::Plan;

/// Scans, keyed by the address of their logical node, which does not move until the walk is over. A
/// node that occurs twice in a plan has one scan per occurrence.
#[derive(Default)]
pub(crate) struct OtherScans(RefCell<HashMap<usize, Vec<Plan>>>);

impl OtherScans {
    /// Plans the scans of a plan and of its sub-queries.
    pub(crate) async fn of(plan: &LogicalPlan, session: &dyn Session) -> Result<Self> {
        let mut found = vec![];
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && !is_own(scan)
            {
                found.push((address(scan), scan.clone()));
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        let mut planned: HashMap<usize, Vec<Plan>> = HashMap::with_capacity(found.len());
        for (at, scan) in found {
            planned.entry(at).or_default().push(planned_scan(&scan, session).await?);
        }
        Ok(Self(RefCell::new(planned)))
    }

    /// Returns a node's scan.
    pub(super) fn take(&self, scan: &TableScan) -> Option<Plan> {
        self.0.borrow_mut().get_mut(&address(scan))?.pop()
    }
}

fn address(scan: &TableScan) -> usize {
    std::ptr::from_ref(scan).addr()
}

async fn planned_scan(scan: &TableScan, session: &dyn Session) -> Result<Plan> {
    let provider = source_as_provider(&scan.source)?;
    // Removes the table's alias, which the provider does not know.
    let filters: Vec<_> = unnormalize_cols(scan.filters.iter().cloned()).into_iter().collect();
    let args = ScanArgs::default()
        .with_projection(scan.projection.as_deref())
        .with_filters(Some(&filters))
        .with_limit(scan.fetch);
    Ok(Arc::clone(provider.scan_with_args(session, args).await?.plan()))
}
