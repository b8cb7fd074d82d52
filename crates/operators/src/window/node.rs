//! The logical node of window functions.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use datafusion::common::{DFSchemaRef, Result, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore, Window};

use super::cache::Slot;
use super::spec::Spec;

/// Computes window functions in one pass, in timestamp order or input order. The output consists of
/// the input's columns, then one column per function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WindowNode {
    input: LogicalPlan,
    timestamp: Option<Expr>,
    functions: Vec<Expr>,
    schema: DFSchemaRef,
    /// Slot that caches the state between executions, if any.
    cache_slot: Option<Slot>,
}

impl WindowNode {
    /// Whether [`WindowNode::try_new`] supports this window function for rows sorted by
    /// `timestamp`.
    pub fn supports(expr: &Expr, timestamp: Option<&Expr>, input: &LogicalPlan) -> bool {
        Spec::of(expr, timestamp, input.schema()).is_some()
    }

    /// Creates a node over `input`, whose rows are processed in the order of `timestamp`, or in
    /// input order.
    pub fn try_new(
        input: LogicalPlan,
        timestamp: Option<Expr>,
        functions: Vec<Expr>,
    ) -> Result<Self> {
        for function in &functions {
            if !Self::supports(function, timestamp.as_ref(), &input) {
                return plan_err!("'{function}' requires a different row order");
            }
        }
        let as_window = Window::try_new(functions.clone(), Arc::new(input.clone()))?;
        Ok(Self { input, timestamp, functions, schema: as_window.schema, cache_slot: None })
    }

    /// Adds a slot for the node's state.
    pub(crate) fn keeping(self, slot: Slot) -> Self {
        Self { cache_slot: Some(slot), ..self }
    }

    /// The slot for the node's state, if any.
    pub(crate) fn cache_slot(&self) -> Option<&Slot> {
        self.cache_slot.as_ref()
    }

    /// Whether each row's results depend only on that row and the rows before it. The state after
    /// any row is then sufficient for all later rows.
    pub fn is_one_pass(&self) -> bool {
        let spec = |function| Spec::of(function, self.timestamp(), self.input.schema());
        let mut specs = self.functions.iter().map(spec);
        self.timestamp.is_some()
            && specs.all(|spec| spec.is_some_and(|(spec, _)| !spec.is_deferred()))
    }

    /// The timestamp that determines row order, if any.
    pub fn timestamp(&self) -> Option<&Expr> {
        self.timestamp.as_ref()
    }

    /// The functions and their names.
    pub fn functions(&self) -> &[Expr] {
        &self.functions
    }
}

impl PartialOrd for WindowNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let key = |node: &Self| (node.timestamp.clone(), node.functions.clone());
        match key(self).partial_cmp(&key(other)) {
            Some(Ordering::Equal) => self.input.partial_cmp(&other.input),
            unequal => unequal,
        }
    }
}

impl UserDefinedLogicalNodeCore for WindowNode {
    fn name(&self) -> &'static str {
        "Windows"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.timestamp.iter().chain(&self.functions).cloned().collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let functions: Vec<String> = self.functions.iter().map(ToString::to_string).collect();
        write!(f, "Windows: [{}]", functions.join(", "))
    }

    fn with_exprs_and_inputs(
        &self,
        mut exprs: Vec<Expr>,
        mut inputs: Vec<LogicalPlan>,
    ) -> Result<Self> {
        let Some(input) = inputs.pop() else { return plan_err!("Windows needs one input") };
        let functions = exprs.split_off(usize::from(self.timestamp.is_some()));
        let node = Self::try_new(input, exprs.pop(), functions)?;
        Ok(Self { cache_slot: self.cache_slot.clone(), ..node })
    }

    // The optimizer itself adds the columns that the functions read.
    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let width = self.input.schema().fields().len();
        Some(vec![output_columns.iter().copied().filter(|&column| column < width).collect()])
    }
}
