//! A table of one snapshot as `DataFusion`'s planner sees it.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use tidemark_storage::{TableSnapshot, TimeRange};

use super::exec::{ScanParts, SliceScan};
use super::time_filter;
use crate::error::check_stop;

/// Name of the column of row identifiers; no column of a table can be called so.
pub const ROW_ID: &str = "\u{1}row";

/// No time: a scan without ranges would read all rows.
const NEVER: TimeRange = TimeRange { lo: i64::MIN, hi: i64::MIN };

/// A table as one snapshot holds it, optionally only within some ranges of time.
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
    /// A provider of all rows of `table`.
    pub fn new(table: Arc<TableSnapshot>) -> Self {
        let definition = table.schema();
        let fields = definition.columns.iter().enumerate().map(|(index, column)| {
            // The designated timestamp has no nulls: its order then needs no rule for them.
            let nullable = column.sql_type.is_nullable() && definition.timestamp != Some(index);
            Field::new(&column.name, column.sql_type.arrow_type(), nullable)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Self { table, ranges: Vec::new(), schema }
    }

    /// The rows within `ranges` alone: sorted, disjoint, in the designated timestamp's unit. No
    /// range means all rows.
    #[must_use]
    pub fn within(&self, ranges: Vec<TimeRange>) -> Self {
        Self { table: Arc::clone(&self.table), ranges, schema: Arc::clone(&self.schema) }
    }

    /// Those of its rows that lie within one of `ranges`: sorted, disjoint.
    #[must_use]
    pub fn narrowed(&self, ranges: &[TimeRange]) -> Self {
        let known: &[TimeRange] =
            if self.ranges.is_empty() { &[TimeRange::EVER] } else { &self.ranges };
        let both = TimeRange::intersection(known, ranges);
        self.within(if both.is_empty() { vec![NEVER] } else { both })
    }

    /// Other rows of the same table under the same definition.
    #[must_use]
    pub fn over(&self, table: Arc<TableSnapshot>) -> Self {
        Self { table, ranges: self.ranges.clone(), schema: Arc::clone(&self.schema) }
    }

    /// The same rows with their identifiers in one more column, [`ROW_ID`].
    #[must_use]
    pub fn with_row_ids(mut self) -> Self {
        let mut fields: Vec<_> = self.schema.fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new(ROW_ID, DataType::Int64, false)));
        self.schema = Arc::new(Schema::new(fields));
        self
    }

    /// The table's snapshot.
    pub fn table(&self) -> &Arc<TableSnapshot> {
        &self.table
    }

    /// The ranges of time it is read within: sorted, disjoint; none means all of it.
    pub fn ranges(&self) -> &[TimeRange] {
        &self.ranges
    }

    /// The range of time that a filter keeps, if it does nothing else.
    pub fn time_range(&self, filter: &Expr) -> Option<TimeRange> {
        time_filter::range_in(&self.table, filter)
    }

    /// A scan of these columns, and of the rows within all of `times`.
    pub fn plan(
        &self,
        projection: Vec<usize>,
        times: &[TimeRange],
        limit: Option<usize>,
        parts: ScanParts,
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
        let scan = SliceScan::try_new(table, &ranges, projection, &schema, parts, limit)?;
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
        let scan = self.plan(projection, &times, limit, ScanParts::of(state.config()))?;
        Ok(scan.plan())
    }
}
