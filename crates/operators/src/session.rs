//! The `DataFusion` session our plans run in: short rule lists, each rule with its reason.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNode;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::OptimizerRule;
use datafusion::optimizer::analyzer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion::optimizer::eliminate_filter::EliminateFilter;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::push_down_limit::PushDownLimit;
use datafusion::optimizer::replace_distinct_aggregate::ReplaceDistinctWithAggregate;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::combine_partial_final_agg::CombinePartialFinalAggregate;
use datafusion::physical_optimizer::ensure_coop::EnsureCooperative;
use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;
use datafusion::physical_optimizer::join_selection::JoinSelection;
use datafusion::physical_optimizer::limit_pushdown::LimitPushdown;
use datafusion::physical_optimizer::output_requirements::OutputRequirements;
use datafusion::physical_optimizer::projection_pushdown::ProjectionPushdown;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion::prelude::SessionConfig;

use crate::decorrelate::Decorrelate;
use crate::fill::node::FillNode;
use crate::filter_scan::FilterScan;
use crate::keep_time_order::KeepTimeOrder;
use crate::planner::TidemarkExtensionPlanner;
use crate::sample_by::node::SampleByNode;
use crate::scan::exec::BATCH_ROWS;

/// A sort's share of its query's memory for merging: one part in so many, and at most so much.
const MERGE_SHARE: usize = 16;
const MOST_MERGE_BYTES: usize = 10 << 20;

/// What a session needs to be told.
#[derive(Clone)]
pub struct SessionOptions {
    /// Workers per query.
    pub target_partitions: usize,
    /// Memory pool and spill folder, shared by all sessions.
    pub runtime: Arc<RuntimeEnv>,
    /// Bytes one query may hold.
    pub query_memory_bytes: usize,
}

impl Default for SessionOptions {
    fn default() -> Self {
        let target_partitions = std::thread::available_parallelism().map_or(1, Into::into);
        Self { target_partitions, runtime: Arc::default(), query_memory_bytes: usize::MAX }
    }
}

impl fmt::Debug for SessionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionOptions({} partitions)", self.target_partitions)
    }
}

/// Rules that a plan needs to be valid at all.
pub fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    // Sub-queries have no physical operator: they become joins, ours with every null a value.
    // The binder casts every operand; window frame bounds are typed by this rule alone.
    vec![Arc::new(Decorrelate), Arc::new(TypeCoercion::new())]
}

/// Logical rules. Not among them: rules that assume that `null = null` is unknown
/// (`FilterNullJoinKeys`, `EliminateOuterJoin`), and rules whose gain on our plans is smaller
/// than the planning time they cost.
pub fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    vec![
        // Folds constants, so that time predicates become literals a scan can use.
        Arc::new(SimplifyExpressions::new()),
        // DISTINCT has no physical operator of its own.
        Arc::new(ReplaceDistinctWithAggregate::new()),
        // Joins with a condition in WHERE or beside equality would be nested loops.
        Arc::new(ExtractEquijoinPredicate::new()),
        // Drops `WHERE true`, empties `WHERE false`.
        Arc::new(EliminateFilter::new()),
        Arc::new(EliminateCrossJoin::new()),
        // LIMIT reaches the scan, which then reads that many rows; before filters move.
        Arc::new(PushDownLimit::new()),
        // Time predicates reach the scan and prune; others run below joins.
        Arc::new(PushDownFilter::new()),
        // Only the columns that are used are mapped and filtered.
        Arc::new(OptimizeProjections::new()),
    ]
}

/// Physical rules, in their order.
pub fn physical_optimizer_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    vec![
        // Keeps the statement's own ORDER BY from being optimised away; undone below.
        Arc::new(OutputRequirements::new_add_mode()),
        // Joins are planned undecided: picks the build side by row counts.
        Arc::new(JoinSelection::new()),
        // Sorts and exchanges where an operator requires them.
        Arc::new(EnsureRequirements::new()),
        // Two aggregation steps in one partition are one too many.
        Arc::new(CombinePartialFinalAggregate::new()),
        // Narrow columns inside filters instead of above them.
        Arc::new(ProjectionPushdown::new()),
        Arc::new(OutputRequirements::new_remove_mode()),
        // Ours: time order survives from scan to result without sorting.
        Arc::new(KeepTimeOrder),
        // Limits stop their inputs early.
        Arc::new(LimitPushdown::new()),
        // Ours: predicates on symbols become tables of keys, columns are read where rows pass.
        Arc::new(FilterScan),
        // Foreign operators yield, so that cancelling works.
        Arc::new(EnsureCooperative::new()),
    ]
}

/// Physical rules of a simple plan, in their order.
fn simple_physical_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    vec![
        Arc::new(EnsureRequirements::new()),
        Arc::new(ProjectionPushdown::new()),
        Arc::new(KeepTimeOrder),
        Arc::new(LimitPushdown::new()),
        Arc::new(FilterScan),
        Arc::new(EnsureCooperative::new()),
    ]
}

/// Logical rules of a simple plan.
fn simple_optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    vec![
        Arc::new(SimplifyExpressions::new()),
        Arc::new(EliminateFilter::new()),
        Arc::new(PushDownLimit::new()),
        Arc::new(PushDownFilter::new()),
        Arc::new(OptimizeProjections::new()),
    ]
}

/// How a database plans. A rule that finds nothing still walks through the plan and rebuilds
/// parts of it: most statements of a time-series database are simple, and for those half the
/// time of planning went into rules that cannot apply.
#[derive(Debug)]
pub struct Sessions {
    full: SessionState,
    simple: SessionState,
}

impl Sessions {
    /// Both sessions.
    pub fn new(options: &SessionOptions) -> Self {
        let full = session_state(options);
        let mut config = full.config().clone();
        // One pass in this order leaves nothing for another.
        config.options_mut().optimizer.max_passes = 1;
        let simple = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(Arc::clone(&options.runtime))
            .with_analyzer_rules(Vec::new())
            .with_optimizer_rules(simple_optimizer_rules())
            .with_physical_optimizer_rules(simple_physical_rules())
            .with_query_planner(Arc::new(TidemarkQueryPlanner))
            .build();
        Self { full, simple }
    }

    /// The session with every rule.
    pub fn full(&self) -> &SessionState {
        &self.full
    }

    /// The session whose rules are enough for a plan.
    pub fn for_plan(&self, plan: &LogicalPlan) -> &SessionState {
        if is_simple(plan) { &self.simple } else { &self.full }
    }
}

/// Whether a plan reads one table and filters, buckets, fills, projects and limits its rows:
/// nothing to join, to sort or to deduplicate, no sub-query, no window.
fn is_simple(plan: &LogicalPlan) -> bool {
    let input = match plan {
        LogicalPlan::TableScan(scan) => return !scan.filters.iter().any(has_query),
        LogicalPlan::Projection(node) if !node.expr.iter().any(has_query) => &node.input,
        LogicalPlan::Filter(node) if !has_query(&node.predicate) => &node.input,
        LogicalPlan::SubqueryAlias(node) => &node.input,
        LogicalPlan::Limit(node) => &node.input,
        LogicalPlan::Extension(extension) => {
            let node = extension.node.as_any();
            if let Some(node) = node.downcast_ref::<SampleByNode>() {
                let exprs = node.keys().iter().chain(node.aggregates());
                return !exprs.into_iter().any(has_query) && is_simple(node.input());
            }
            let Some(node) = node.downcast_ref::<FillNode>() else { return false };
            return is_simple(node.input());
        }
        _ => return false,
    };
    is_simple(input)
}

/// Whether an expression holds a query.
fn has_query(expr: &Expr) -> bool {
    let is_query = |expr: &Expr| {
        matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
        )
    };
    // An expression that cannot be walked through is planned with every rule.
    expr.exists(|expr| Ok(is_query(expr))).unwrap_or(true)
}

/// A session that plans and runs our nodes beside `DataFusion`'s.
pub fn session_state(options: &SessionOptions) -> SessionState {
    let partitions = options.target_partitions.max(1);
    let merging = options.query_memory_bytes / partitions / MERGE_SHARE;
    let config = SessionConfig::new()
        .with_target_partitions(partitions)
        // Each sort holds so much back for merging what it spilled.
        .with_sort_spill_reservation_bytes(merging.min(MOST_MERGE_BYTES))
        .with_batch_size(BATCH_ROWS)
        // A round robin exchange would tear time order apart for no gain: scans are balanced.
        .with_round_robin_repartition(false)
        .with_create_default_catalog_and_schema(false);
    SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(Arc::clone(&options.runtime))
        .with_analyzer_rules(analyzer_rules())
        .with_optimizer_rules(optimizer_rules())
        .with_physical_optimizer_rules(physical_optimizer_rules())
        .with_query_planner(Arc::new(TidemarkQueryPlanner))
        .build()
}

/// `DataFusion`'s physical planner with our nodes.
#[derive(Debug)]
struct TidemarkQueryPlanner;

#[async_trait]
impl QueryPlanner for TidemarkQueryPlanner {
    async fn create_physical_plan(
        &self,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = Arc::new(TidemarkExtensionPlanner);
        DefaultPhysicalPlanner::with_extension_planners(vec![planner])
            .create_physical_plan(logical_plan, session)
            .await
    }
}
