//! How the join runs, and which of `DataFusion`'s it takes the place of.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::physical_expr::expressions::{Column, cast};
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder, PartitionMode};
use datafusion::physical_plan::{
    EmptyRecordBatchStream, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt};

use super::held::Held;
use super::index::is_comparable;
use super::plan::{LookupJoin, LookupKind, OutputColumn, order};
use super::probe::Prober;
use crate::held::with_schema;
use crate::lowering::symbol_of_text;
use crate::operator::{Facts, Input, Keeps, Lineage, Operator, OperatorExec, Run, Work};
use crate::plan_node::{PlanNode, hash_join, scan_of};
use crate::properties::properties_of;

/// The other side's rows are input 0, the held ones input 1.
const PROBE: usize = 0;
const HELD: usize = 1;

impl LookupJoin {
    /// Whether a join would be one of these, if it held its left side.
    fn suits(join: &HashJoinExec) -> bool {
        let kind = kind_of(*join.join_type());
        let filtered = join.filter().is_some() && kind != Some(LookupKind::Inner);
        let (left, right) = (join.left().schema(), join.right().schema());
        let is_comparable = |(one, other): &(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)| {
            let types = one.data_type(&left).and_then(|one| Ok((one, other.data_type(&right)?)));
            types.is_ok_and(|(one, other)| is_comparable(&one, &other))
        };
        kind.is_some() && !filtered && !join.null_aware && join.on().iter().all(is_comparable)
    }

    /// The join that takes the place of one that holds its left side.
    pub fn instead_of(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
        let join = hash_join(plan)?;
        let holds_left = *join.partition_mode() == PartitionMode::CollectLeft;
        if !holds_left || !Self::suits(join) || join.fetch().is_some() {
            return None;
        }
        let kind = kind_of(*join.join_type())?;
        let (held, probe) = (join.left().schema().fields().len(), join.right().schema());
        let probe = probe.fields().len();
        let columns: Vec<OutputColumn> = match kind {
            LookupKind::Inner | LookupKind::Outer => (0..held)
                .map(OutputColumn::Held)
                .chain((0..probe).map(OutputColumn::Probe))
                .collect(),
            LookupKind::Semi | LookupKind::Anti => (0..probe).map(OutputColumn::Probe).collect(),
            LookupKind::Mark => {
                (0..probe).map(OutputColumn::Probe).chain([OutputColumn::Mark]).collect()
            }
        };
        let output = match &join.projection {
            Some(projection) => projection.iter().map(|&column| columns[column]).collect(),
            None => columns,
        };
        let keys = join.on().iter().map(|(held, probe)| (Arc::clone(probe), Arc::clone(held)));
        let mut operator = Self {
            keys: keys.collect(),
            kind,
            nulls: join.null_equality() == NullEquality::NullEqualsNull,
            filter: join.filter().cloned(),
            output,
            equal: join.properties().equivalence_properties().clone(),
        };
        operator.equal.clear_orderings();
        let probe = operator.below_projection(join.right());
        let probe = Arc::clone(probe.as_ref().unwrap_or(join.right()));
        Some(OperatorExec::plan(operator, vec![probe, Arc::clone(join.left())], &join.schema()))
    }

    /// Reads the rows below a projection, if all that it computes are keys: texts of symbols, which
    /// are compared as symbols then.
    fn below_projection(&mut self, probe: &Input) -> Option<Input> {
        let PlanNode::Projection(projection) = PlanNode::of(probe.as_ref()) else { return None };
        if self.filter.is_some() {
            return None;
        }
        let below = |column: usize| {
            let expr = &projection.expr().get(column)?.expr;
            Some(expr.downcast_ref::<Column>()?.index())
        };
        let output = self.output.iter().map(|column| match *column {
            OutputColumn::Probe(column) => below(column).map(OutputColumn::Probe),
            other => Some(other),
        });
        let output = output.collect::<Option<Vec<_>>>()?;
        let input = projection.input();
        let key = |(probe, held): &(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)| {
            let computed = projection.expr().get(probe.downcast_ref::<Column>()?.index())?;
            let symbol = symbol_of_text(&computed.expr, &input.schema());
            Some((symbol.unwrap_or_else(|| Arc::clone(&computed.expr)), Arc::clone(held)))
        };
        self.keys = self.keys.iter().map(key).collect::<Option<Vec<_>>>()?;
        self.output = output;
        Some(Arc::clone(input))
    }

    /// Whether a row stays only if its key is held.
    fn needs_held(&self) -> bool {
        matches!(self.kind, LookupKind::Inner | LookupKind::Semi)
    }

    /// The hash join of the same rows.
    fn hash_join(&self, inputs: &[Input]) -> Result<HashJoinExec> {
        let (held, probe) = (inputs[HELD].schema(), inputs[PROBE].schema());
        let on = self.keys.iter().map(|(other, own)| {
            let types = (own.data_type(&held)?, other.data_type(&probe)?);
            let (own, other) = (Arc::clone(own), Arc::clone(other));
            if types.0 == types.1 {
                return Ok((own, other));
            }
            // Texts, and symbols.
            let text = DataType::Utf8View;
            Ok((cast(own, &held, text.clone())?, cast(other, &probe, text)?))
        });
        let on = on.collect::<Result<_>>()?;
        let (width, before) = match self.kind {
            LookupKind::Inner | LookupKind::Outer => (0, held.fields().len()),
            _ => (probe.fields().len(), 0),
        };
        let output = self.output.iter().map(|column| match *column {
            OutputColumn::Held(column) => column,
            OutputColumn::Probe(column) => before + column,
            OutputColumn::Mark => width,
        });
        let nulls =
            if self.nulls { NullEquality::NullEqualsNull } else { NullEquality::NullEqualsNothing };
        let empty = |schema| Arc::new(EmptyExec::new(schema)) as Input;
        HashJoinExecBuilder::new(empty(held), empty(probe), on, join_type(self.kind))
            .with_partition_mode(PartitionMode::CollectLeft)
            .with_null_equality(nulls)
            .with_filter(self.filter.clone())
            .with_projection(Some(output.collect()))
            .build()
    }
}

/// Whether the scan that a plan's rows come from runs backward.
fn is_backward(plan: &Input) -> bool {
    match scan_of(plan) {
        Some(scan) => scan.table().is_backward(),
        None => plan.children().first().is_some_and(|input| is_backward(input)),
    }
}

fn kind_of(join: JoinType) -> Option<LookupKind> {
    Some(match join {
        JoinType::Inner => LookupKind::Inner,
        JoinType::Right => LookupKind::Outer,
        JoinType::RightSemi => LookupKind::Semi,
        JoinType::RightAnti => LookupKind::Anti,
        JoinType::RightMark => LookupKind::Mark,
        _ => return None,
    })
}

fn join_type(kind: LookupKind) -> JoinType {
    match kind {
        LookupKind::Inner => JoinType::Inner,
        LookupKind::Outer => JoinType::Right,
        LookupKind::Semi => JoinType::RightSemi,
        LookupKind::Anti => JoinType::RightAnti,
        LookupKind::Mark => JoinType::RightMark,
    }
}

impl fmt::Display for LookupJoin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.kind)?;
        for (probe, held) in &self.keys {
            write!(f, ", {probe} = {held}")?;
        }
        match &self.filter {
            Some(filter) => write!(f, ", {}", filter.expression()),
            None => Ok(()),
        }
    }
}

impl Operator for LookupJoin {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "LookupJoinExec",
            memory: Some("LookupJoin"),
            keeps: Keeps {
                rows: true,
                partitions: true,
                direction: true,
                every_row: matches!(self.kind, LookupKind::Outer | LookupKind::Mark),
            },
            work: Work::Inputs,
            suits_any_rows: false,
            scan: None,
        }
    }

    fn properties(&self, schema: &SchemaRef, inputs: &[Input]) -> Arc<PlanProperties> {
        let partitions = inputs[PROBE].output_partitioning().partition_count();
        let mut equal = self.equal.clone();
        if let Some(order) = order(&self.output, schema, inputs) {
            equal.add_ordering(order);
        }
        properties_of(equal, partitions, EmissionType::Incremental)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        let keys = self.keys.iter().flat_map(|(probe, held)| [probe, held]);
        keys.chain(self.filter.iter().map(JoinFilter::expression)).collect()
    }

    fn distribution(&self, _: &[Input]) -> Vec<Distribution> {
        vec![Distribution::UnspecifiedDistribution, Distribution::SinglePartition]
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        vec![None, None]
    }

    fn lineage(&self, column: usize, _: &[Input]) -> Option<Lineage> {
        Some(match *self.output.get(column)? {
            OutputColumn::Probe(column) => Lineage { input: PROBE, column, unmatched: false },
            OutputColumn::Held(column) => {
                Lineage { input: HELD, column, unmatched: self.kind == LookupKind::Outer }
            }
            OutputColumn::Mark => return None,
        })
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        rows[PROBE]
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let schema = Arc::clone(&run.schema);
        Ok(Run::stream(Arc::clone(&schema), async move {
            let keys: Vec<_> = self.keys.iter().map(|(_, held)| Arc::clone(held)).collect();
            let held = run.shared(Held::read(&run, HELD, &keys, self.nulls)).await?;
            let backward = is_backward(&run.inputs[PROBE]);
            let rows = match held.as_ref() {
                Held::Rows(held) if held.is_empty() && self.needs_held() => {
                    EmptyRecordBatchStream::new(schema).boxed()
                }
                Held::Rows(held) => {
                    let probe = run.rows(PROBE, run.partition)?;
                    let mut prober = Prober::new(self, Arc::clone(held), schema, backward);
                    let joined = move |batch| prober.join(batch?).map(futures::stream::iter);
                    probe.map(joined).try_flatten().boxed()
                }
                Held::Spilled(held) => {
                    let join = self.hash_join(&run.inputs)?;
                    let rows = held.joined(&join, run, [HELD, PROBE], backward)?;
                    let own = move |batch: RecordBatch| {
                        with_schema(&schema, batch.columns().to_vec(), batch.num_rows())
                    };
                    rows.map(move |batch| own(batch?)).boxed()
                }
            };
            Ok(rows)
        }))
    }
}
