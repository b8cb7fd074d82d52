//! The `DataFusion` session our plans run in: short rule lists, each rule with its reason.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::OptimizerRule;
use datafusion::optimizer::analyzer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion::optimizer::eliminate_filter::EliminateFilter;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::push_down_limit::PushDownLimit;
use datafusion::optimizer::replace_distinct_aggregate::ReplaceDistinctWithAggregate;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::combine_partial_final_agg::CombinePartialFinalAggregate;
use datafusion::physical_optimizer::ensure_coop::EnsureCooperative;
use datafusion::physical_optimizer::join_selection::JoinSelection;
use datafusion::physical_optimizer::limit_pushdown::LimitPushdown;
use datafusion::physical_optimizer::output_requirements::OutputRequirements;
use datafusion::physical_optimizer::projection_pushdown::ProjectionPushdown;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::operator_statistics::StatisticsRegistry;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion::prelude::SessionConfig;

use crate::bounded::ShareLiterals;
use crate::conditions::BalanceConditions;
use crate::one_table;
use crate::planner::TidemarkExtensionPlanner;
use crate::rules::bound::Bound;
use crate::rules::costly::{CoerceFrames, NarrowColumns, NarrowInputs};
use crate::rules::decorrelate::Decorrelate;
use crate::rules::fence::DropFences;
use crate::rules::filter_scan::FilterScan;
use crate::rules::keep_time_order::KeepTimeOrder;
use crate::rules::push_filters::PushFilters;
use crate::rules::requirements::EnsureRequirements;
use crate::rules::stoppable::{Stoppable, StoppableStatistics};
use crate::scan::exec::PartRows;

/// A sort's share of its query's memory for merging: one part in so many, and at most so much.
const MERGE_SHARE: usize = 16;
const MOST_MERGE_BYTES: usize = 10 << 20;

/// Rows of a batch that an operator of `DataFusion` makes. A merge holds some batches of each of
/// its inputs, and cannot spill them: with batches as large as a scan's, two sorted inputs took
/// 20 MiB.
const MERGED_ROWS: usize = 16 * 1024;

/// The options of a session.
#[derive(Clone)]
pub struct SessionOptions {
    /// Workers per query.
    pub target_partitions: usize,
    /// Memory pool and spill folder, shared by all sessions.
    pub runtime: Arc<RuntimeEnv>,
    /// Bytes one query may hold.
    pub query_memory_bytes: usize,
    /// Fewest rows of a scan's part, and most of its batches; `None`: what is fastest.
    pub scan_part_rows: Option<NonZeroUsize>,
    /// Whether the rules run that only make plans faster.
    pub optional_rules: bool,
}

impl Default for SessionOptions {
    fn default() -> Self {
        let target_partitions = std::thread::available_parallelism().map_or(1, Into::into);
        Self {
            target_partitions,
            runtime: Arc::default(),
            query_memory_bytes: usize::MAX,
            scan_part_rows: None,
            optional_rules: true,
        }
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
    vec![Arc::new(Decorrelate), Arc::new(CoerceFrames(TypeCoercion::new()))]
}

/// Logical rules. Not among them: rules that assume that `null = null` is unknown
/// (`FilterNullJoinKeys`, `EliminateOuterJoin`), and rules whose gain on our plans is smaller
/// than the planning time they cost.
///
/// `optional`: with the rules that only make plans faster.
pub fn optimizer_rules(optional: bool) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    // DISTINCT has no physical operator of its own.
    let distinct = Arc::new(ReplaceDistinctWithAggregate::new());
    if !optional {
        // Ours: long constants are not copied into each row.
        return vec![distinct, Arc::new(ShareLiterals)];
    }
    vec![
        // Folds constants, so that time predicates become literals a scan can use.
        Arc::new(SimplifyExpressions::new()),
        distinct,
        // Joins with a condition in WHERE or beside equality would be nested loops.
        Arc::new(ExtractEquijoinPredicate::new()),
        // Drops `WHERE true`, empties `WHERE false`.
        Arc::new(EliminateFilter::new()),
        Arc::new(EliminateCrossJoin::new()),
        // LIMIT reaches the scan, which then reads that many rows; before filters move.
        Arc::new(PushDownLimit::new()),
        // Time predicates reach the scan and prune; others run below joins.
        Arc::new(PushFilters::default()),
        // Ours: what that has chained becomes a tree, which is no deeper than it has to be.
        Arc::new(BalanceConditions),
        // Only the columns that are used are mapped and filtered.
        Arc::new(NarrowInputs(OptimizeProjections::new())),
        // Ours: long constants are not copied into each row.
        Arc::new(ShareLiterals),
    ]
}

/// Physical rules, in their order; `optional`: with those that only make plans faster.
pub fn physical_optimizer_rules(
    optional: bool,
) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let rules: [(bool, Arc<dyn PhysicalOptimizerRule + Send + Sync>); 12] = [
        // Ours: a limit that cuts nothing off would take the partitions together.
        (false, Arc::new(DropFences)),
        // Keeps the statement's own ORDER BY from being optimised away; undone below.
        (false, Arc::new(OutputRequirements::new_add_mode())),
        // Joins are planned undecided: picks the build side by row counts.
        (false, Arc::new(JoinSelection::new())),
        // Sorts and exchanges where an operator requires them.
        (false, Arc::new(EnsureRequirements)),
        // Two aggregation steps in one partition are one too many.
        (true, Arc::new(CombinePartialFinalAggregate::new())),
        // Narrow columns inside filters instead of above them.
        (true, Arc::new(NarrowColumns(ProjectionPushdown::new()))),
        (false, Arc::new(OutputRequirements::new_remove_mode())),
        // Ours: time order survives from scan to result without sorting.
        (false, Arc::new(KeepTimeOrder)),
        // Limits stop their inputs early.
        (true, Arc::new(LimitPushdown::new())),
        // Ours: predicates on symbols become tables of keys, columns are read where rows pass.
        (true, Arc::new(FilterScan)),
        // Foreign operators yield, so that cancelling works.
        (false, Arc::new(EnsureCooperative::new())),
        // Ours: any operator ends in time and takes no more than it may.
        (false, Arc::new(Bound)),
    ];
    rules.into_iter().filter(|(faster, _)| optional || !faster).map(|(_, rule)| rule).collect()
}

/// The session in which a database plans.
#[derive(Debug)]
pub struct PlanSession {
    state: SessionState,
    optional_rules: bool,
}

impl PlanSession {
    /// A session with every rule.
    pub fn new(options: &SessionOptions) -> Self {
        Self { state: session_state(options), optional_rules: options.optional_rules }
    }

    /// The session as `DataFusion` has it.
    pub fn state(&self) -> &SessionState {
        &self.state
    }

    /// Optimises and plans.
    pub async fn physical_plan(&self, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        if self.optional_rules
            && let Some(plan) = one_table::plan(plan, &self.state)?
        {
            return Ok(plan);
        }
        self.state.create_physical_plan(plan).await
    }
}

/// A session that plans and runs our nodes beside `DataFusion`'s.
pub fn session_state(options: &SessionOptions) -> SessionState {
    let partitions = options.target_partitions.max(1);
    let merging = options.query_memory_bytes / partitions / MERGE_SHARE;
    let mut config = SessionConfig::new()
        .with_target_partitions(partitions)
        // Each sort holds so much back for merging what it spilled.
        .with_sort_spill_reservation_bytes(merging.min(MOST_MERGE_BYTES))
        .with_batch_size(MERGED_ROWS)
        // One batch in each file that an exchange spills: two files that are still written to can
        // keep its readers waiting for ever (apache/datafusion#24883).
        .set_usize("datafusion.execution.max_spill_file_size_bytes", 1)
        // A round robin exchange would tear time order apart for no gain: scans are balanced.
        .with_round_robin_repartition(false)
        .set_bool("datafusion.optimizer.use_statistics_registry", true)
        .with_create_default_catalog_and_schema(false);
    if let Some(rows) = options.scan_part_rows {
        config = config.with_extension(Arc::new(PartRows(rows)));
    }
    SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(Arc::clone(&options.runtime))
        .with_analyzer_rules(stoppable_analyzer_rules())
        .with_optimizer_rules(stoppable_optimizer_rules(options.optional_rules))
        .with_physical_optimizer_rules(stoppable_physical_rules(options.optional_rules))
        .with_statistics_registry(StatisticsRegistry::with_providers(vec![Arc::new(
            StoppableStatistics,
        )]))
        .with_query_planner(Arc::new(TidemarkQueryPlanner))
        .build()
}

type Analyzer = dyn AnalyzerRule + Send + Sync;
type Logical = dyn OptimizerRule + Send + Sync;
type Physical = dyn PhysicalOptimizerRule + Send + Sync;

fn stoppable_analyzer_rules() -> Vec<Arc<Analyzer>> {
    let stoppable = |rule: Arc<Analyzer>| Arc::new(Stoppable(rule)) as Arc<Analyzer>;
    analyzer_rules().into_iter().map(stoppable).collect()
}

fn stoppable_optimizer_rules(optional: bool) -> Vec<Arc<Logical>> {
    let stoppable = |rule: Arc<Logical>| Arc::new(Stoppable(rule)) as Arc<Logical>;
    optimizer_rules(optional).into_iter().map(stoppable).collect()
}

fn stoppable_physical_rules(optional: bool) -> Vec<Arc<Physical>> {
    let stoppable = |rule: Arc<Physical>| Arc::new(Stoppable(rule)) as Arc<Physical>;
    physical_optimizer_rules(optional).into_iter().map(stoppable).collect()
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
