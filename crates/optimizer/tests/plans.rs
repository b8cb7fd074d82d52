//! Compares random plans with `DataFusion`'s plans. The plans contain every kind of node, read
//! small scan partitions, and run on one or several workers.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::{Column, JoinType};
use datafusion::functions_aggregate::expr_fn::{max, sum};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{Expr, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, col, lit};
use datafusion::physical_plan::{ExecutionPlan, displayable, execute_stream};
use futures::TryStreamExt;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use support::*;
use tidemark_optimizer::{PlanSession, SessionOptions};
use tidemark_storage::TableSnapshot;

/// The columns of every relation.
const COLUMNS: [&str; 4] = ["ts", "symbol", "size", "number"];
const KINDS: [JoinType; 8] = [
    JoinType::Inner,
    JoinType::Left,
    JoinType::Right,
    JoinType::Full,
    JoinType::LeftSemi,
    JoinType::LeftAnti,
    JoinType::RightSemi,
    JoinType::RightAnti,
];

/// Random plans whose relations have unique names.
struct Plans<'a> {
    rng: &'a mut ChaCha8Rng,
    tables: &'a [Arc<TableSnapshot>],
    names: usize,
    orders: usize,
    /// Number of generated nodes of each kind.
    generated: BTreeMap<&'static str, usize>,
}

impl Plans<'_> {
    /// Projects these expressions as a relation's columns.
    fn named(&mut self, plan: LogicalPlanBuilder, exprs: [Expr; 4]) -> (LogicalPlan, String) {
        self.names += 1;
        let name = format!("r{}", self.names);
        let exprs = exprs.into_iter().zip(COLUMNS).map(|(expr, column)| expr.alias(column));
        let plan = plan.project(exprs).unwrap().alias(name.as_str()).unwrap();
        (plan.build().unwrap(), name)
    }

    fn relation(&mut self, depth: usize) -> (LogicalPlan, String) {
        if depth == 0 {
            let table = &self.tables[self.rng.random_range(0..self.tables.len())];
            let plan = LogicalPlanBuilder::from(scan("t", table, vec![]));
            return self.named(plan, COLUMNS.map(|column| col(format!("t.{column}"))));
        }
        let kind = self.rng.random_range(0..8);
        if kind == 0 {
            return self.join(depth);
        }
        let (plan, name) = self.relation(depth - 1);
        let own = COLUMNS.map(|column| Expr::Column(Column::new(Some(name.as_str()), column)));
        let [ts, symbol, size, number] = own.clone();
        let plan = LogicalPlanBuilder::from(plan);
        let some = own[self.rng.random_range(0..4)].clone();
        let (generated, plan, own) = match kind {
            1 => ("filter", plan.filter(number.gt(lit(3))).unwrap(), own),
            2 => ("projection", plan, [ts, symbol, size + lit(1_i64), number]),
            3 => ("sort", plan.sort([some.sort(self.rng.random_bool(0.5), true)]).unwrap(), own),
            4 => {
                // Every limit gets a different sort order, because `DataFusion` drops a limit whose
                // input already has the requested order.
                let ascends = (self.orders / 4).is_multiple_of(2);
                let mut keys = own.clone().map(|own| own.sort(ascends, true));
                keys.rotate_left(self.orders % 4);
                self.orders += 1;
                let (skip, fetch) = (self.rng.random_range(0..3), self.rng.random_range(1..30));
                ("limit", plan.sort(keys).unwrap().limit(skip, Some(fetch)).unwrap(), own)
            }
            5 => {
                let values = [max(ts).alias("ts"), sum(size).alias("size")];
                let groups = plan.aggregate([symbol.clone(), number.clone()], values).unwrap();
                ("aggregate", groups, [col("ts"), symbol, col("size"), number])
            }
            6 => {
                let (other, _) = self.relation(depth - 1);
                ("union", plan.union(other).unwrap(), COLUMNS.map(col))
            }
            _ => {
                let total = Expr::from(WindowFunction::new(sum_udaf(), vec![size]));
                let total = total.partition_by(vec![some]).build().unwrap().alias("total");
                ("window", plan.window([total]).unwrap(), [ts, symbol, col("total"), number])
            }
        };
        *self.generated.entry(generated).or_default() += 1;
        self.named(plan, own)
    }

    /// A join on a key, a join on a condition, or a cross join. The last two are generated only
    /// over scans, because scans have few rows.
    fn join(&mut self, depth: usize) -> (LogicalPlan, String) {
        let key = self.rng.random_range(0..6);
        let depth = if key < COLUMNS.len() { depth - 1 } else { 0 };
        let ((left, one), (right, other)) = (self.relation(depth), self.relation(depth));
        let of = |name: &str, column: &str| Expr::Column(Column::new(Some(name), column));
        let kind = KINDS[self.rng.random_range(0..KINDS.len())];
        // EXISTS and IN produce a DISTINCT directly below the join.
        let distinct = self.rng.random_bool(0.5);
        let distinct = |side: LogicalPlan, is_looked_for: bool| {
            let side = LogicalPlanBuilder::from(side);
            let side = if distinct && is_looked_for { side.distinct().unwrap() } else { side };
            side.build().unwrap()
        };
        let left = distinct(left, matches!(kind, JoinType::RightSemi | JoinType::RightAnti));
        let right = distinct(right, matches!(kind, JoinType::LeftSemi | JoinType::LeftAnti));
        let condition = of(&one, "number").lt(of(&other, "number"));
        let plan = LogicalPlanBuilder::from(left);
        let (generated, plan, kind) = match COLUMNS.get(key) {
            None if key == COLUMNS.len() => {
                ("pairs", plan.cross_join(right).unwrap(), JoinType::Inner)
            }
            None => ("condition", plan.join_on(right, kind, [condition]).unwrap(), kind),
            Some(key) => {
                let on = (vec![of(&one, key)], vec![of(&other, key)]);
                let on = on.0.into_iter().zip(on.1).map(|(one, other)| one.eq(other));
                let also = self.rng.random_bool(0.3).then_some(condition);
                ("key", plan.join_on(right, kind, on.chain(also)).unwrap(), kind)
            }
        };
        *self.generated.entry(generated).or_default() += 1;
        let names = match kind {
            JoinType::LeftSemi | JoinType::LeftAnti => [&one, &one],
            JoinType::RightSemi | JoinType::RightAnti => [&other, &other],
            _ => [&one, &other],
        };
        let mut side = 0;
        let own = COLUMNS.map(|column| {
            side = 1 - side;
            of(names[side], column)
        });
        self.named(plan, own)
    }
}

async fn rows_of(session: &PlanSession, plan: Arc<dyn ExecutionPlan>) -> Vec<Vec<String>> {
    let batches = execute_stream(plan, session.task_ctx()).unwrap();
    let mut rows = cells(&batches.try_collect::<Vec<_>>().await.unwrap());
    rows.sort();
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_plans_return_the_same_rows_as_datafusion() {
    let mut rng = random();
    let mut generated = BTreeMap::new();
    for _ in 0..40 {
        let store = Store::new();
        let tables: Vec<_> = (0..3)
            .map(|number| {
                let (len, span) = (rng.random_range(0..60), rng.random_range(1..200));
                let rows = rows(&mut rng, len, span, 6);
                let size = rng.random_range(1..30);
                store.table(&format!("t{number}"), rows.chunks(size).map(batch_of).collect())
            })
            .collect();
        for _ in 0..12 {
            let depth = rng.random_range(1..4);
            let counts = std::mem::take(&mut generated);
            let mut plans =
                Plans { rng: &mut rng, tables: &tables, names: 0, orders: 0, generated: counts };
            let (plan, _) = plans.relation(depth);
            generated = plans.generated;
            let options = SessionOptions {
                target_partitions: rng.random_range(1..6),
                scan_partition_rows: NonZeroUsize::new(rng.random_range(1..40)),
                ..SessionOptions::default()
            };
            let session = PlanSession::new(&options);
            let shown = plan.display_indent();
            let expected = rows_of(&session, by_library(&plan, &options).await.unwrap()).await;
            let planned = session.physical_plan(&plan).await;
            let planned = planned.unwrap_or_else(|error| panic!("{error}\n{shown}"));
            let text = displayable(planned.as_ref()).indent(false).to_string();
            assert_eq!(rows_of(&session, planned).await, expected, "{shown}\n{text}");
        }
    }
    assert!(generated.len() == 10 && generated.values().all(|count| *count > 5), "{generated:?}");
}
