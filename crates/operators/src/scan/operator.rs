//! Scans, as plan operators.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::{PlanProperties, SendableRecordBatchStream};

use super::exec::{SliceScan, TABLE_SCAN};
use super::filtered::FilteredScan;
use super::kind::Scan;
use crate::operator::{Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, Run, Work};

impl SliceScan {
    /// Returns the scan as a plan.
    pub fn plan(self) -> Input {
        let schema = Arc::clone(self.schema());
        OperatorExec::plan(Scan::Table(self), vec![], &schema)
    }
}

impl FilteredScan {
    /// Returns the scan as a plan.
    pub fn plan(self) -> Input {
        let schema = Arc::clone(self.schema());
        OperatorExec::plan(Scan::Filtered(self), vec![], &schema)
    }
}

impl Operator for Scan {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: match self {
                Self::Table(_) => TABLE_SCAN,
                Self::Filtered(_) => "FilteredScanExec",
            },
            memory: None,
            preserves: PreservedOrder { partitions: true, ..PreservedOrder::NOTHING },
            work: Work::Scanned,
            suits_any_rows: false,
            scan: Some(self),
        }
    }

    fn properties(&self, _: &SchemaRef, _: &[Input]) -> Arc<PlanProperties> {
        Arc::clone(match self {
            Self::Table(scan) => scan.properties(),
            Self::Filtered(filtered) => filtered.properties(),
        })
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        match self {
            Self::Table(_) => vec![],
            Self::Filtered(filtered) => vec![filtered.predicate()],
        }
    }

    fn distribution(&self, _: &[Input]) -> Vec<Distribution> {
        vec![]
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        vec![]
    }

    fn lineage(&self, _: usize, _: &[Input]) -> Option<Lineage> {
        None
    }

    fn rows(&self, _: &[Input], _: &[Option<usize>]) -> Option<usize> {
        Some(match self {
            Self::Table(scan) => scan.row_count(),
            // Without statistics, assumes that one row in five passes.
            Self::Filtered(filtered) => filtered.scan().row_count() / 5,
        })
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        match self.as_ref() {
            Self::Table(scan) => scan.stream(run.partition),
            Self::Filtered(filtered) => filtered.stream(run.partition),
        }
    }
}
