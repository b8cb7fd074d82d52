//! Joins pairs of spill files.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::common::{JoinType, Result};
use datafusion::error::DataFusionError;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{EmptyRecordBatchStream, SendableRecordBatchStream};
use futures::TryStreamExt;

use super::blocks::Blocks;
use super::build_rows::MaterializedRows;
use super::joiner::{Joiner, LEFT, RIGHT};
use super::spread::{By, File};
use crate::operator::Run;

/// Maximum number of partitioning passes before falling back to joining rows in blocks.
const MAX_LEVELS: usize = 4;

/// The rows on one side of a join.
pub(super) enum Side {
    Rows(SendableRecordBatchStream),
    File(File),
    /// No rows.
    None(SchemaRef),
}

impl Side {
    fn read(self) -> Result<SendableRecordBatchStream> {
        Ok(match self {
            Self::Rows(rows) => rows,
            Self::File(file) => file.read()?,
            Self::None(schema) => Box::pin(EmptyRecordBatchStream::new(schema)),
        })
    }
}

/// How the left rows have been partitioned so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Spread {
    /// Number of partitioning passes so far.
    pub(super) level: usize,
    /// Whether the last pass put most rows into this file, which means they probably have the same
    /// key.
    pub(super) is_one_key: bool,
}

impl Joiner {
    /// Returns the rows of a join.
    pub(super) fn joined(
        self: Arc<Self>,
        left: Side,
        right: Side,
        spread: Spread,
    ) -> SendableRecordBatchStream {
        Run::stream(self.schema(), async move {
            let is_last = spread.is_one_key || spread.level == MAX_LEVELS;
            let max = self.memory_limits(spread.level);
            let (materialized, rest) =
                MaterializedRows::read(&self.run, left.read()?.into(), max).await?;
            let Some(rest) = rest else {
                return self.execute_materialized(materialized, right.read()?);
            };
            let left = materialized.and(rest);
            let right = match right {
                Side::File(right) if is_last => Some(right),
                Side::None(_) if is_last => None,
                right => return self.by_files(left, right.read()?, spread.level).await,
            };
            Ok(Blocks::new(self, left, right)?.rows())
        })
    }

    /// Joins pairs of files one after another.
    async fn by_files(
        self: Arc<Self>,
        left_rows: SendableRecordBatchStream,
        right_rows: SendableRecordBatchStream,
        level: usize,
    ) -> Result<SendableRecordBatchStream> {
        let kind = *self.join.join_type();
        let schemas = [left_rows.schema(), right_rows.schema()];
        let (one, other) = self.join.on().iter().map(|(one, other)| (one, other)).unzip();
        let left = self.spreader(LEFT, By::Keys(one, level));
        let left = left.write(left_rows).await?;
        let right = self.spreader(RIGHT, By::Keys(other, level));
        let right = right.write(right_rows).await?;
        let all: usize = left.iter().flatten().map(|file| file.rows).sum();
        let level = level + 1;
        let joins = left.into_iter().zip(right).filter_map(move |(left, right)| {
            if !has_rows(kind, left.is_some(), right.is_some()) {
                return None;
            }
            let is_one_key = left.as_ref().is_some_and(|left| left.rows > all / 2);
            let side = |file: Option<File>, schema: &SchemaRef| {
                file.map_or_else(|| Side::None(Arc::clone(schema)), Side::File)
            };
            let (left, right) = (side(left, &schemas[LEFT]), side(right, &schemas[RIGHT]));
            let spread = Spread { level, is_one_key };
            Some(Ok::<_, DataFusionError>((left, right, spread)))
        });
        let schema = self.schema();
        let rows = futures::stream::iter(joins)
            .map_ok(move |(left, right, spread)| Arc::clone(&self).joined(left, right, spread))
            .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// Whether a join can return rows. `left` and `right` specify whether each side has rows.
fn has_rows(kind: JoinType, left: bool, right: bool) -> bool {
    match kind {
        JoinType::Inner | JoinType::LeftSemi | JoinType::RightSemi => left && right,
        JoinType::Left | JoinType::LeftAnti | JoinType::LeftMark => left,
        JoinType::Right | JoinType::RightAnti | JoinType::RightMark => right,
        JoinType::Full => left || right,
    }
}
