//! `DataFusion` table provider for a table as of a particular snapshot.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use tidemark_storage::{TableSnapshot, TimeRange};

use super::exec::{ScanPartitioning, SliceScan};
use super::time_filter;
use crate::error::check_stop;

/// Name of the row identifier column. No table column can have this name.
pub const ROW_ID: &str = "\u{1}row";

/// An empty range. It stands for an empty list of ranges, for which a scan would read all rows.
const NEVER: TimeRange = TimeRange { lo: i64::MIN, hi: i64::MIN };

/// A table as of one snapshot, optionally restricted to time ranges.
pub struct SnapshotTable {
    table: Arc<TableSnapshot>,
    ranges: Vec<TimeRange>,
    schema: SchemaRef,
}

impl fmt::Debug for SnapshotTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SnapshotTable({}, {:?})", self.table.schema().name, self.ranges)
    }
}

impl SnapshotTable {
    /// Creates a provider for all rows of `table`.
    pub fn new(table: Arc<TableSnapshot>) -> Self {
        let definition = table.schema();
        let fields = definition.columns.iter().enumerate().map(|(index, column)| {
            // The designated timestamp is never null, so its order does not depend on where nulls
            // are placed.
            let nullable = column.sql_type.is_nullable() && definition.timestamp != Some(index);
            Field::new(&column.name, column.sql_type.arrow_type(), nullable)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Self { table, ranges: Vec::new(), schema }
    }

    /// Restricts the table to `ranges`, which are sorted, disjoint, and in the designated
    /// timestamp's unit. If `ranges` is empty, all rows are read.
    #[must_use]
    pub fn within(&self, ranges: Vec<TimeRange>) -> Self {
        Self { table: Arc::clone(&self.table), ranges, schema: Arc::clone(&self.schema) }
    }

    /// Restricts the table further to `ranges`, which are sorted and disjoint.
    #[must_use]
    pub fn narrowed(&self, ranges: &[TimeRange]) -> Self {
        let known: &[TimeRange] =
            if self.ranges.is_empty() { &[TimeRange::EVER] } else { &self.ranges };
        let both = TimeRange::intersection(known, ranges);
        self.within(if both.is_empty() { vec![NEVER] } else { both })
    }

    /// Returns a provider for a different snapshot of this table. The table's definition is the
    /// same in both snapshots.
    #[must_use]
    pub fn over(&self, table: Arc<TableSnapshot>) -> Self {
        Self { table, ranges: self.ranges.clone(), schema: Arc::clone(&self.schema) }
    }

    /// Adds the row identifier column, [`ROW_ID`].
    #[must_use]
    pub fn with_row_ids(mut self) -> Self {
        let mut fields: Vec<_> = self.schema.fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new(ROW_ID, DataType::Int64, false)));
        self.schema = Arc::new(Schema::new(fields));
        self
    }

    /// The snapshot of the table.
    pub fn table(&self) -> &Arc<TableSnapshot> {
        &self.table
    }

    /// The time ranges that the table is restricted to: sorted and disjoint; empty for all rows.
    pub fn ranges(&self) -> &[TimeRange] {
        &self.ranges
    }

    /// Returns a filter's time range, if the filter does not test anything else.
    pub fn time_range(&self, filter: &Expr) -> Option<TimeRange> {
        time_filter::range_in(&self.table, filter)
    }

    /// Creates a scan of these columns that is restricted to rows within all of `times`.
    pub fn plan(
        &self,
        projection: Vec<usize>,
        times: &[TimeRange],
        limit: Option<usize>,
        partitioning: ScanPartitioning,
    ) -> Result<SliceScan> {
        let mut ranges = self.ranges.clone();
        for range in times {
            let known = if ranges.is_empty() { vec![TimeRange::EVER] } else { ranges };
            ranges = TimeRange::intersection(&known, &[*range]);
            if ranges.is_empty() {
                ranges.push(NEVER);
            }
        }
        let schema = Arc::new(self.schema.project(&projection)?);
        let table = Arc::clone(&self.table);
        let scan = SliceScan::try_new(table, &ranges, projection, &schema, partitioning, limit)?;
        Ok(if times.is_empty() { scan } else { scan.filtered() })
    }
}

#[async_trait]
impl TableProvider for SnapshotTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match self.time_range(filter) {
            Some(_) => TableProviderFilterPushDown::Exact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        check_stop()?;
        let times: Vec<TimeRange> =
            filters.iter().filter_map(|filter| self.time_range(filter)).collect();
        let projection = projection.cloned();
        let projection = projection.unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        let scan = self.plan(projection, &times, limit, ScanPartitioning::of(state.config()))?;
        Ok(scan.plan())
    }
}
