//! Partitions both sides into files by key hash and joins the pairs of files one after another.

use std::sync::Arc;

use arrow_schema::{Field, SchemaRef};
use datafusion::common::{Result, resources_err};
use datafusion::error::DataFusionError;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, cast};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{EmptyRecordBatchStream, SendableRecordBatchStream};
use futures::TryStreamExt;

use super::in_memory::InnerKeys;
use super::plan::SemiJoin;
use crate::equi_join::grace::numbers::{by_number, with_number};
use crate::equi_join::grace::spread::{By, File, Spreader};
use crate::equi_join::grace::texts::symbols;
use crate::equi_join::join::{FIRST, Kind, OutputColumn};
use crate::operator::Run;

/// Maximum number of partitioning passes before the join fails.
const MAX_LEVELS: usize = 6;

/// Files for one side; `None` for a file without rows.
pub(super) type Files = Vec<Option<File>>;

impl SemiJoin {
    /// Joins two files.
    fn joined(
        self: Arc<Self>,
        run: Arc<Run>,
        schema: SchemaRef,
        inner: SendableRecordBatchStream,
        outer: SendableRecordBatchStream,
        level: usize,
    ) -> SendableRecordBatchStream {
        Run::stream(Arc::clone(&schema), async move {
            match InnerKeys::read(&self, &run, inner).await? {
                Ok(keys) => Ok(self.filter_by_keys(&schema, Arc::new(keys), outer)),
                Err(_) if level == MAX_LEVELS => {
                    resources_err!("join keys do not fit in memory")
                }
                Err(inner) => {
                    let inner = self.spread_keys(&run, inner, level).await?;
                    let outer = self.spread_rows(&run, outer, level).await?;
                    Ok(self.pairs(run, schema, inner, outer, level + 1))
                }
            }
        })
    }

    /// Joins the files of a partition. Rows in the files end with a position column. The result is
    /// sorted by that column, which is then removed.
    pub(super) fn in_order(
        self: &Arc<Self>,
        run: &Arc<Run>,
        inner: Files,
        outer: Files,
    ) -> SendableRecordBatchStream {
        let width = run.inputs[FIRST].schema().fields().len();
        let mut join = Self::clone(self);
        join.join.output.push(OutputColumn::First(width));
        let join = Arc::new(join);
        let schema = with_number(&run.schema);
        let rows = join.pairs(Arc::clone(run), schema, inner, outer, 1);
        let (symbols, own) = (symbols(&run.inputs[FIRST]), Arc::clone(&run.schema));
        let is_symbol = |column: &OutputColumn| match *column {
            OutputColumn::First(at) => symbols[at],
            _ => false,
        };
        let symbols: Vec<_> = self.join.output.iter().map(is_symbol).collect();
        by_number(run, rows, own, &symbols, self.partitions(&run.inputs))
    }

    /// Joins pairs of files one after another.
    fn pairs(
        self: Arc<Self>,
        run: Arc<Run>,
        schema: SchemaRef,
        inner: Files,
        outer: Files,
        level: usize,
    ) -> SendableRecordBatchStream {
        let (kind, own) = (self.join.kind, Arc::clone(&schema));
        let pairs = inner.into_iter().zip(outer).filter_map(move |(inner, outer)| {
            let has_rows = inner.is_some() || kind != Kind::Semi;
            outer.filter(|_| has_rows).map(|outer| Ok::<_, DataFusionError>((inner, outer)))
        });
        let joined = move |(inner, outer): (Option<File>, File)| {
            let inner = match inner {
                Some(inner) => inner.read()?,
                None => Box::pin(EmptyRecordBatchStream::new(Arc::clone(&self.key_schema))),
            };
            let (run, schema) = (Arc::clone(&run), Arc::clone(&own));
            Ok(Arc::clone(&self).joined(run, schema, inner, outer.read()?, level))
        };
        let rows =
            futures::stream::iter(pairs).and_then(move |pair| futures::future::ready(joined(pair)));
        Box::pin(RecordBatchStreamAdapter::new(schema, rows.try_flatten()))
    }

    /// Writes keys to files.
    pub(super) async fn spread_keys(
        &self,
        run: &Run,
        rows: SendableRecordBatchStream,
        level: usize,
    ) -> Result<Files> {
        let column = |(at, field): (usize, &Arc<Field>)| {
            Arc::new(Column::new(field.name(), at)) as Arc<dyn PhysicalExpr>
        };
        let keys: Vec<_> = self.key_schema.fields().iter().enumerate().map(column).collect();
        let by = By::Keys(keys.iter().collect(), level);
        Spreader { run, symbols: &[], by }.write(rows).await
    }

    /// Writes outer rows to files.
    pub(super) async fn spread_rows(
        &self,
        run: &Run,
        rows: SendableRecordBatchStream,
        level: usize,
    ) -> Result<Files> {
        let (schema, symbols) = (rows.schema(), symbols(&run.inputs[FIRST]));
        let compared = |(at, (own, _)): (usize, &(Arc<dyn PhysicalExpr>, _))| {
            cast(Arc::clone(own), &schema, self.key_schema.field(at).data_type().clone())
        };
        let keys = self.join.keys.iter().enumerate().map(compared).collect::<Result<Vec<_>>>()?;
        let by = By::Keys(keys.iter().collect(), level);
        Spreader { run, symbols: &symbols, by }.write(rows).await
    }
}
