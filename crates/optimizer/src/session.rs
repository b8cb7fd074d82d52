//! The `DataFusion` session for Tidemark's plans: short rule lists, each rule with a justification.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use datafusion::catalog::{CatalogProviderList, MemoryCatalogProviderList, Session};
use datafusion::common::alias::AliasGenerator;
use datafusion::common::config::{ConfigOptions, TableOptions};
use datafusion::common::{DFSchema, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::registry::{ExtensionTypeRegistryRef, MemoryExtensionTypeRegistry};
use datafusion::logical_expr::{
    AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, ScalarUDF, WindowUDF,
};
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::optimizer::analyzer::{Analyzer, AnalyzerRule};
use datafusion::optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion::optimizer::eliminate_filter::EliminateFilter;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::push_down_limit::PushDownLimit;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::{Optimizer, OptimizerConfig, OptimizerRule};
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::ensure_coop::EnsureCooperative;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::operator_statistics::StatisticsRegistry;
use datafusion::prelude::SessionConfig;

use crate::conditions::BalanceConditions;
use crate::lower::{self, OtherScans};
use crate::rules::bound::bounded;
use crate::rules::costly::{CoerceFrames, NarrowInputs};
use crate::rules::decorrelate::Decorrelate;
use crate::rules::dependent_keys::DependentKeys;
use crate::rules::distinct::GroupDistinct;
use crate::rules::join_keys::JoinKeys;
use crate::rules::keys::{EqualKeys, equal_keys};
use crate::rules::push_filters::PushFilters;
use crate::rules::stoppable::{Stoppable, StoppableStatistics};
use tidemark_operators::{InternLiterals, PartitionRows, SharedRows};

/// A sort reserves 1/n of the query's memory for merging, up to a maximum.
const MERGE_MEMORY_DIVISOR: usize = 16;
const MAX_MERGE_BYTES: usize = 10 << 20;

/// Batch size of `DataFusion` operators, in rows. A merge keeps several batches of each input in
/// memory and cannot spill them: with batches as large as a scan's, two sorted inputs took 20 MiB.
const MERGED_ROWS: usize = 16 * 1024;

/// Maximum size of a build side shared by all workers: in bytes if that size is known, otherwise in
/// rows.
const MAX_SHARED_BUILD_ROWS: usize = 1 << 20;
const MAX_SHARED_BUILD_BYTES: usize = 64 << 20;

/// Session options.
#[derive(Clone)]
pub struct SessionOptions {
    /// Number of workers per query.
    pub target_partitions: usize,
    /// Memory pool and spill directory, shared by all sessions.
    pub runtime: Arc<RuntimeEnv>,
    /// Memory limit per query, in bytes.
    pub query_memory_bytes: usize,
    /// Minimum number of rows per scan partition and maximum number per batch; `None` selects the
    /// fastest values.
    pub scan_partition_rows: Option<NonZeroUsize>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        let target_partitions = std::thread::available_parallelism().map_or(1, Into::into);
        Self {
            target_partitions,
            runtime: Arc::default(),
            query_memory_bytes: usize::MAX,
            scan_partition_rows: None,
        }
    }
}

impl fmt::Debug for SessionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionOptions({} partitions)", self.target_partitions)
    }
}

/// Rules that make a plan valid.
pub(crate) fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    // Sub-queries have no physical operator: they become joins in which null is an ordinary value.
    vec![Arc::new(Decorrelate), Arc::new(CoerceFrames(TypeCoercion::new()))]
}

/// Logical rules. Two kinds are excluded: rules that assume that `null = null` is unknown
/// (`FilterNullJoinKeys`, `EliminateOuterJoin`), and rules whose planning time exceeds their
/// benefit for Tidemark's plans.
pub(crate) fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    vec![
        // Folds constants, so time predicates become literals that a scan can use.
        Arc::new(SimplifyExpressions::new()),
        // DISTINCT has no physical operator.
        Arc::new(GroupDistinct::default()),
        // Tidemark: reduces the keys that are hashed and compared.
        Arc::new(DependentKeys),
        // Tidemark: turns equalities into keys. Without this rule, a join would be a nested loop if
        // its condition is in WHERE, or if it has another condition besides an equality.
        Arc::new(JoinKeys),
        // Removes `WHERE true`, and replaces `WHERE false` with an empty input.
        Arc::new(EliminateFilter::new()),
        Arc::new(EliminateCrossJoin::new()),
        // Moves LIMIT to the scan, which then reads only that many rows. Must run before filters
        // are moved.
        Arc::new(PushDownLimit::new()),
        // Moves time predicates into the scan, where they limit the rows that are read. Moves all
        // other predicates below joins.
        Arc::new(PushFilters::default()),
        // Tidemark: balances the condition chains that the previous rule builds.
        Arc::new(BalanceConditions),
        // Removes unused columns, so they are neither mapped nor filtered.
        Arc::new(NarrowInputs(OptimizeProjections::new())),
        // Tidemark: maps all values that compare equal to a single key.
        Arc::new(EqualKeys),
        // Tidemark: shares long constants, so they are not copied into each row.
        Arc::new(InternLiterals),
    ]
}

/// A database's planning session: the rules, and the settings and runtime for its plans.
///
/// `DataFusion`'s own session, `SessionState`, falls back to its full lists of rules and functions,
/// which would then become part of the addon. This session has only its own rules. It has no
/// catalog and no functions by name, since the binder resolves names.
#[derive(Debug)]
pub struct PlanSession {
    config: SessionConfig,
    runtime: Arc<RuntimeEnv>,
    analyzer: Analyzer,
    optimizer: Optimizer,
    statistics: StatisticsRegistry,
    execution_props: ExecutionProps,
    names: NoNames,
}

/// The name registries that the session trait requires; all are empty.
#[derive(Debug)]
struct NoNames {
    catalogs: Arc<dyn CatalogProviderList>,
    scalar_functions: HashMap<String, Arc<ScalarUDF>>,
    higher_order_functions: HashMap<String, Arc<HigherOrderUDF>>,
    aggregate_functions: HashMap<String, Arc<AggregateUDF>>,
    window_functions: HashMap<String, Arc<WindowUDF>>,
    extension_types: ExtensionTypeRegistryRef,
    table_options: TableOptions,
}

impl Default for NoNames {
    fn default() -> Self {
        Self {
            catalogs: Arc::new(MemoryCatalogProviderList::new()),
            scalar_functions: HashMap::new(),
            higher_order_functions: HashMap::new(),
            aggregate_functions: HashMap::new(),
            window_functions: HashMap::new(),
            extension_types: Arc::new(MemoryExtensionTypeRegistry::new_empty()),
            table_options: TableOptions::default(),
        }
    }
}

/// Wraps a rule so that it stops when its statement is cancelled.
macro_rules! stoppable {
    ($rule:expr) => {
        Arc::new(Stoppable($rule)) as Arc<_>
    };
}

impl PlanSession {
    pub fn new(options: &SessionOptions) -> Self {
        let analyzer_rules = analyzer_rules().into_iter().map(|rule| stoppable!(rule)).collect();
        let rules = optimizer_rules().into_iter().map(|rule| stoppable!(rule)).collect();
        Self {
            config: session_config(options),
            runtime: Arc::clone(&options.runtime),
            analyzer: Analyzer::with_rules(analyzer_rules),
            optimizer: Optimizer::with_rules(rules),
            statistics: StatisticsRegistry::with_providers(vec![Arc::new(StoppableStatistics)]),
            execution_props: ExecutionProps::new(),
            names: NoNames::default(),
        }
    }

    /// Optimises a plan and lowers it to a physical plan.
    pub async fn physical_plan(&self, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = if lower::is_plain(plan) {
            lower::lowered(&*equal_keys(plan)?, self, &OtherScans::default())?
        } else {
            let plan = self.optimize(plan)?;
            let scans = OtherScans::of(&plan, self).await?;
            SharedRows::in_plan(lower::lowered(&plan, self, &scans)?)?
        };
        lower::check(&plan)?;
        // Makes `DataFusion`'s operators yield so that they can be cancelled, and bounds their
        // memory and time.
        bounded(EnsureCooperative::new().optimize(plan, self.config.options())?)
    }
}

#[async_trait]
impl Session for PlanSession {
    fn session_id(&self) -> &'static str {
        ""
    }

    fn config(&self) -> &SessionConfig {
        &self.config
    }

    fn catalog_list(&self) -> Arc<dyn CatalogProviderList> {
        Arc::clone(&self.names.catalogs)
    }

    fn optimize(&self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        let options = OptimizerConfig::options(self);
        let plan = self.analyzer.execute_and_check(plan.clone(), &options, |_, _| {})?;
        self.optimizer.optimize(plan, self, |_, _| {})
    }

    fn physical_optimizers(&self) -> &[Arc<dyn PhysicalOptimizerRule + Send + Sync>] {
        &[]
    }

    fn statistics_registry(&self) -> Option<&StatisticsRegistry> {
        Some(&self.statistics)
    }

    async fn create_physical_plan(&self, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        self.physical_plan(plan).await
    }

    fn create_physical_expr(&self, expr: Expr, schema: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
        let context = PhysicalPlanningContext::default();
        create_physical_expr(&expr, schema, &self.execution_props, &context)
    }

    fn scalar_functions(&self) -> &HashMap<String, Arc<ScalarUDF>> {
        &self.names.scalar_functions
    }

    fn higher_order_functions(&self) -> &HashMap<String, Arc<HigherOrderUDF>> {
        &self.names.higher_order_functions
    }

    fn aggregate_functions(&self) -> &HashMap<String, Arc<AggregateUDF>> {
        &self.names.aggregate_functions
    }

    fn window_functions(&self) -> &HashMap<String, Arc<WindowUDF>> {
        &self.names.window_functions
    }

    fn extension_type_registry(&self) -> &ExtensionTypeRegistryRef {
        &self.names.extension_types
    }

    fn runtime_env(&self) -> &Arc<RuntimeEnv> {
        &self.runtime
    }

    fn execution_props(&self) -> &ExecutionProps {
        &self.execution_props
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn table_options(&self) -> &TableOptions {
        &self.names.table_options
    }

    fn table_options_mut(&mut self) -> &mut TableOptions {
        &mut self.names.table_options
    }

    fn task_ctx(&self) -> Arc<TaskContext> {
        Arc::new(TaskContext::from(self as &dyn Session))
    }
}

impl OptimizerConfig for PlanSession {
    /// `None`: the binder has already replaced `now()` with the statement's time.
    fn query_execution_start_time(&self) -> Option<DateTime<Utc>> {
        None
    }

    fn alias_generator(&self) -> &Arc<AliasGenerator> {
        &self.execution_props.alias_generator
    }

    fn options(&self) -> Arc<ConfigOptions> {
        Arc::clone(self.config.options())
    }
}

/// Builds the session configuration for plans.
fn session_config(options: &SessionOptions) -> SessionConfig {
    let partitions = options.target_partitions.max(1);
    let merging = options.query_memory_bytes / partitions / MERGE_MEMORY_DIVISOR;
    let config = SessionConfig::new()
        .with_target_partitions(partitions)
        // Memory that each sort reserves for merging its spilled runs.
        .with_sort_spill_reservation_bytes(merging.min(MAX_MERGE_BYTES))
        .with_batch_size(MERGED_ROWS)
        // Limits each spill file of an exchange to one batch. If two files are still being written,
        // the exchange's readers can wait forever (apache/datafusion#24883).
        .set_usize("datafusion.execution.max_spill_file_size_bytes", 1)
        // Build sides up to this size are shared by all workers; larger inputs are partitioned by
        // key.
        .set_usize(
            "datafusion.optimizer.hash_join_single_partition_threshold_rows",
            MAX_SHARED_BUILD_ROWS,
        )
        .set_usize(
            "datafusion.optimizer.hash_join_single_partition_threshold",
            MAX_SHARED_BUILD_BYTES,
        )
        .with_create_default_catalog_and_schema(false);
    match options.scan_partition_rows {
        Some(rows) => config.with_extension(Arc::new(PartitionRows(rows))),
        None => config,
    }
}
