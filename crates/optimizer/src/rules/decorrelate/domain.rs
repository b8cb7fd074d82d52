//! The distinct values that a sub-query reads from the outer rows (its domain), and how a plan
//! carries them along. Each result row contains the domain values that it was computed for.

use std::sync::Arc;

use arrow_schema::{Field, FieldRef, Schema};
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, Result, ScalarValue, internal_err};
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::logical_plan::TableScanBuilder;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    BinaryExpr, Distinct, Expr, FetchType, Filter, Limit, LogicalPlan, Operator, Projection,
    RecursiveQuery, SkipType, Sort, SortExpr, SubqueryAlias, TableScan, Window, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, lit,
};

use super::rewrite::rewritten;
use super::subquery::{captured, captured_mut, join, narrowed};
use crate::conditions::all_of;
use tidemark_operators::not_supported;

/// See the module documentation.
pub(super) struct Domain {
    /// The distinct combinations, named as in `columns`.
    pub(super) plan: LogicalPlan,
    /// Outer reference in the sub-query's plan, and the domain column with its value.
    columns: Vec<(Column, String)>,
    /// Name prefix of the domain's columns, which no other column has.
    prefix: String,
    /// Recursive queries whose working table carries the domain.
    recursions: Vec<String>,
}

/// Returns the name prefix of a domain's columns.
pub(super) fn prefix(number: usize) -> String {
    format!("d{number}c")
}

impl Domain {
    /// Builds the domain of a sub-query that reads `captured` from the rows of `outer`.
    pub(super) fn try_new(captured: &[Expr], outer: LogicalPlan, number: usize) -> Result<Self> {
        let prefix = prefix(number);
        let mut columns = Vec::with_capacity(captured.len());
        let mut exprs = Vec::with_capacity(captured.len());
        for (index, expr) in captured.iter().enumerate() {
            let name = format!("{prefix}{index}");
            let Expr::Alias(alias) = expr else {
                return internal_err!("'{expr}' in a sub-query has no alias");
            };
            columns.push((Column::new(alias.relation.clone(), &alias.name), name.clone()));
            exprs.push(alias.expr.as_ref().clone().alias(name));
        }
        let plan = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(outer))?);
        let plan = LogicalPlan::Distinct(Distinct::All(Arc::new(plan)));
        Ok(Self { plan, columns, prefix, recursions: Vec::new() })
    }

    /// Returns the names of the domain's columns.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.columns.iter().map(|(_, name)| name)
    }

    /// Returns a unique name for a column that equals a domain value.
    pub(super) fn name_of_key(&self, number: usize) -> String {
        format!("{}k{number}", self.prefix)
    }

    /// Whether a name has the domain's unique prefix.
    pub(super) fn is_name(&self, name: &str) -> bool {
        name.starts_with(&self.prefix)
    }

    /// Returns a unique name for a statistic about a key's values, such as their minimum.
    pub(super) fn name_of_end(&self, end: &str) -> String {
        format!("{}{end}", self.prefix)
    }

    /// Returns the domain's columns in a plan that carries them.
    pub(super) fn columns(&self, plan: &LogicalPlan) -> Result<Vec<Expr>> {
        self.names().map(|name| column_named(plan.schema(), name)).collect()
    }

    /// Returns the plan's columns without the domain's.
    pub(super) fn own_columns(&self, plan: &LogicalPlan) -> Vec<Column> {
        let mut columns = plan.schema().columns();
        columns.retain(|column| !self.names().any(|name| *name == column.name));
        columns
    }

    /// Whether an expression reads the domain.
    pub(super) fn in_expr(&self, expr: &Expr) -> bool {
        let reads = |node: &Expr| match node {
            Expr::OuterReferenceColumn(_, column) => self.columns.iter().any(|(c, _)| c == column),
            _ => captured(node).is_some_and(|read| read.iter().any(|expr| self.in_expr(expr))),
        };
        expr.exists(|node| Ok(reads(node))).unwrap_or(false)
    }

    /// Whether a plan reads the domain.
    pub(super) fn in_plan(&self, plan: &LogicalPlan) -> Result<bool> {
        plan.exists(|node| {
            let mut found = match node {
                LogicalPlan::TableScan(scan) => self.last_rows(scan).is_some(),
                LogicalPlan::Subquery(subquery) => {
                    subquery.outer_ref_columns.iter().any(|expr| self.in_expr(expr))
                }
                _ => false,
            };
            node.apply_expressions(|expr| {
                found |= self.in_expr(expr);
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })?;
            Ok(found)
        })
    }

    /// Replaces an expression's references to the domain with columns of `schema`.
    pub(super) fn resolved(&self, expr: Expr, schema: &DFSchema) -> Result<Expr> {
        expr.transform_down(|mut node| {
            if let Expr::OuterReferenceColumn(_, column) = &node {
                let found = self.columns.iter().find(|(known, _)| known == column);
                return match found {
                    Some((_, name)) => Ok(Transformed::yes(column_named(schema, name)?)),
                    None => Ok(Transformed::no(node)),
                };
            }
            let Some(read) = captured_mut(&mut node) else { return Ok(Transformed::no(node)) };
            for expr in read {
                *expr = self.resolved(std::mem::take(expr), schema)?;
            }
            Ok(Transformed::yes(node))
        })
        .data()
    }

    pub(super) fn all_resolved(&self, exprs: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
        exprs.into_iter().map(|expr| self.resolved(expr, schema)).collect()
    }

    /// Computes the plan for each domain value; the result includes the domain's columns.
    pub(super) fn spread(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        if !self.in_plan(&plan)? {
            return join(self.plan.clone(), plan, Vec::new(), None, JoinType::Inner);
        }
        match plan {
            LogicalPlan::Projection(node) => {
                let input = self.spread(Arc::unwrap_or_clone(node.input))?;
                self.projection(node.expr, input)
            }
            LogicalPlan::Filter(node) => self.filter(node),
            LogicalPlan::SubqueryAlias(node) => {
                let input = self.spread(Arc::unwrap_or_clone(node.input))?;
                let alias = SubqueryAlias::try_new(Arc::new(input), node.alias)?;
                Ok(LogicalPlan::SubqueryAlias(alias))
            }
            LogicalPlan::Sort(node) => {
                let input = self.spread(Arc::unwrap_or_clone(node.input))?;
                let expr = self.sort_keys(node.expr, &input)?;
                Ok(LogicalPlan::Sort(Sort { expr, input: Arc::new(input), fetch: node.fetch }))
            }
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let input = self.spread(Arc::unwrap_or_clone(input))?;
                Ok(LogicalPlan::Distinct(Distinct::All(Arc::new(input))))
            }
            LogicalPlan::Limit(node) => self.limit(&node),
            LogicalPlan::Window(node) => self.window(node),
            LogicalPlan::Aggregate(node) => self.aggregate(node),
            LogicalPlan::Union(node) => self.union(node),
            LogicalPlan::Join(node) => self.join(node),
            LogicalPlan::Extension(node) => self.extension(&node),
            LogicalPlan::RecursiveQuery(node) => self.recursive(node),
            LogicalPlan::TableScan(node) => self.scan_of_last_rows(&node),
            _ => not_supported("this clause in a correlated sub-query"),
        }
    }

    fn projection(&self, exprs: Vec<Expr>, input: LogicalPlan) -> Result<LogicalPlan> {
        let mut exprs = self.all_resolved(exprs, input.schema())?;
        exprs.extend(self.columns(&input)?);
        Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?))
    }

    fn sort_keys(&self, keys: Vec<SortExpr>, input: &LogicalPlan) -> Result<Vec<SortExpr>> {
        let resolve =
            |key: SortExpr| Ok(SortExpr { expr: self.resolved(key.expr, input.schema())?, ..key });
        keys.into_iter().map(resolve).collect()
    }

    /// WHERE. If the input reads nothing from the domain, equality with an outer value becomes a
    /// key of the join with the domain.
    fn filter(&self, node: Filter) -> Result<LogicalPlan> {
        let mut tests = split_conjunction_owned(node.predicate);
        let mut input = Arc::unwrap_or_clone(node.input);
        if self.in_plan(&input)? {
            input = self.spread(input)?;
        } else {
            let (own, shared): (Vec<Expr>, Vec<Expr>) =
                tests.into_iter().partition(|test| !self.in_expr(test));
            if let Some(test) = all_of(own) {
                input = LogicalPlan::Filter(Filter::try_new(test, Arc::new(input))?);
            }
            let mut on = Vec::new();
            tests = Vec::new();
            for test in shared {
                match self.key(&test)? {
                    Some(pair) => on.push(pair),
                    None => tests.push(test),
                }
            }
            input = join(self.plan.clone(), input, on, None, JoinType::Inner)?;
        }
        let tests = self.all_resolved(tests, input.schema())?;
        match all_of(tests) {
            Some(test) => Ok(LogicalPlan::Filter(Filter::try_new(test, Arc::new(input))?)),
            None => Ok(input),
        }
    }

    /// Returns the domain value in an equality test, and the expression over the rows that must
    /// equal it.
    pub(super) fn key(&self, test: &Expr) -> Result<Option<(Expr, Expr)>> {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = test else { return Ok(None) };
        if !matches!(op, Operator::Eq | Operator::IsNotDistinctFrom) {
            return Ok(None);
        }
        let (value, own) = match (self.is_outer(left), self.is_outer(right)) {
            (true, false) => (left, right),
            (false, true) => (right, left),
            _ => return Ok(None),
        };
        if self.in_expr(own) || own.column_refs().is_empty() || super::has_subquery(own) {
            return Ok(None);
        }
        let value = self.resolved(value.as_ref().clone(), self.plan.schema())?;
        Ok(Some((value, own.as_ref().clone())))
    }

    /// Whether an expression reads only the domain.
    pub(super) fn is_outer(&self, expr: &Expr) -> bool {
        let reads_rows =
            |node: &Expr| Ok(matches!(node, Expr::Column(_)) || captured(node).is_some());
        self.in_expr(expr) && !expr.exists(reads_rows).unwrap_or(true)
    }

    /// Runs the recursion for all domain values together. Each row, including those in the working
    /// table, carries the value that it was found for.
    fn recursive(&self, node: RecursiveQuery) -> Result<LogicalPlan> {
        let first = self.spread(Arc::unwrap_or_clone(node.static_term))?;
        let mut recursions = self.recursions.clone();
        recursions.push(node.name.clone());
        let (plan, columns) = (self.plan.clone(), self.columns.clone());
        let within = Self { plan, columns, prefix: self.prefix.clone(), recursions };
        let next = within.spread(Arc::unwrap_or_clone(node.recursive_term))?;
        let (first, next) = (self.lined_up(first)?, self.lined_up(next)?);
        let plan =
            RecursiveQuery::try_new(node.name, Arc::new(first), Arc::new(next), node.is_distinct)?;
        Ok(LogicalPlan::RecursiveQuery(plan))
    }

    /// Returns the scanned table if it is the working table of a recursion.
    fn last_rows(&self, scan: &TableScan) -> Option<Arc<dyn TableProvider>> {
        if self.recursions.is_empty() {
            return None;
        }
        let provider = source_as_provider(&scan.source).ok()?;
        let table = provider.downcast_ref::<CteWorkTable>()?;
        let own = self.recursions.iter().any(|name| name == table.name());
        own.then(|| Arc::clone(&provider))
    }

    fn scan_of_last_rows(&self, scan: &TableScan) -> Result<LogicalPlan> {
        let Some(provider) = self.last_rows(scan) else {
            return internal_err!("a table scan is correlated");
        };
        let Some(table) = provider.downcast_ref::<CteWorkTable>() else {
            return internal_err!("recursive query has no rows from the previous iteration");
        };
        let mut fields: Vec<FieldRef> = table.schema().fields().iter().cloned().collect();
        for (field, name) in self.plan.schema().fields().iter().zip(self.names()) {
            let field = Field::new(name, field.data_type().clone(), true)
                .with_metadata(field.metadata().clone());
            fields.push(Arc::new(field));
        }
        let wider = CteWorkTable::new(table.name(), Arc::new(Schema::new(fields)));
        let source = provider_as_source(Arc::new(wider));
        let scan = TableScanBuilder::new(scan.table_name.clone(), source).build()?;
        Ok(LogicalPlan::TableScan(scan))
    }

    /// LIMIT: counts rows separately for each domain value.
    fn limit(&self, node: &Limit) -> Result<LogicalPlan> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
            (node.get_skip_type()?, node.get_fetch_type()?)
        else {
            return not_supported("a computed LIMIT in a correlated sub-query");
        };
        self.limited(skip, fetch, node.input.as_ref().clone())
    }

    fn limited(
        &self,
        skip: usize,
        fetch: Option<usize>,
        input: LogicalPlan,
    ) -> Result<LogicalPlan> {
        // Looks below a projection for the order that determines which rows are the first.
        let (input, order) = match input {
            LogicalPlan::Projection(node) => {
                let input = self.limited(skip, fetch, Arc::unwrap_or_clone(node.input))?;
                return self.projection(node.expr, input);
            }
            LogicalPlan::SubqueryAlias(node) => {
                let input = self.limited(skip, fetch, Arc::unwrap_or_clone(node.input))?;
                let alias = SubqueryAlias::try_new(Arc::new(input), node.alias)?;
                return Ok(LogicalPlan::SubqueryAlias(alias));
            }
            LogicalPlan::Sort(node) => {
                let input = self.spread(Arc::unwrap_or_clone(node.input))?;
                let order = self.sort_keys(node.expr, &input)?;
                (input, order)
            }
            other => (self.spread(other)?, Vec::new()),
        };
        let columns = input.schema().columns();
        let partition = self.columns(&input)?;
        let (numbered, row) = numbered(input, partition, order)?;
        let mut test = row.clone().gt(lit(skip as u64));
        if let Some(fetch) = fetch {
            test = test.and(row.lt_eq(lit((skip + fetch) as u64)));
        }
        narrowed(LogicalPlan::Filter(Filter::try_new(test, Arc::new(numbered))?), columns)
    }

    fn window(&self, node: Window) -> Result<LogicalPlan> {
        let input = self.spread(Arc::unwrap_or_clone(node.input))?;
        let exprs = self.partitioned(node.window_expr, &input)?;
        Ok(LogicalPlan::Window(Window::try_new(exprs, Arc::new(input))?))
    }

    /// Partitions window functions by the domain values.
    pub(super) fn partitioned(
        &self,
        functions: Vec<Expr>,
        input: &LogicalPlan,
    ) -> Result<Vec<Expr>> {
        let partition = self.columns(input)?;
        let within = |expr: Expr| {
            let expr = self.resolved(expr, input.schema())?;
            rewritten(expr, &mut |node| {
                let Expr::WindowFunction(function) = node else { return Ok(None) };
                let mut function = function.clone();
                function.params.partition_by.extend(partition.iter().cloned());
                Ok(Some(Expr::WindowFunction(function)))
            })
        };
        functions.into_iter().map(within).collect()
    }
}

/// Returns the column with this name, ignoring qualifiers.
pub(super) fn column_named(schema: &DFSchema, name: &str) -> Result<Expr> {
    let found = schema.iter().find(|(_, field)| field.name() == name);
    if let Some((qualifier, _)) = found {
        Ok(Expr::Column(Column::new(qualifier.cloned(), name)))
    } else {
        internal_err!("a correlated sub-query lost column '{name}'")
    }
}

/// Numbers the rows from 1 within each partition in the given order; also returns the number
/// column.
pub(super) fn numbered(
    input: LogicalPlan,
    partition_by: Vec<Expr>,
    order_by: Vec<SortExpr>,
) -> Result<(LogicalPlan, Expr)> {
    let mut name = "row".to_owned();
    while input.schema().iter().any(|(_, field)| *field.name() == name) {
        name.push('_');
    }
    let start = WindowFrameBound::Preceding(ScalarValue::UInt64(None));
    let function = Expr::from(WindowFunction {
        fun: WindowFunctionDefinition::WindowUDF(row_number_udwf()),
        params: WindowFunctionParams {
            args: Vec::new(),
            partition_by,
            order_by,
            window_frame: WindowFrame::new_bounds(
                WindowFrameUnits::Rows,
                start,
                WindowFrameBound::CurrentRow,
            ),
            filter: None,
            null_treatment: None,
            distinct: false,
        },
    });
    let window = Window::try_new(vec![function.alias(&name)], Arc::new(input))?;
    Ok((LogicalPlan::Window(window), Expr::Column(Column::new_unqualified(name))))
}
