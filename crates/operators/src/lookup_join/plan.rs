//! What a join by look-up is asked.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::joins::utils::JoinFilter;

use crate::operator::{Input, order_of_first};

/// What becomes of a row, by whether its key is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookupKind {
    /// It is joined to each held row of its key.
    Inner,
    /// The same; without one, to nulls.
    Outer,
    /// It stays if there is one.
    Semi,
    /// It stays if there is none.
    Anti,
    /// It stays, and whether there is one is a column.
    Mark,
}

/// Where an output column comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OutputColumn {
    Probe(usize),
    Held(usize),
    Mark,
}

impl OutputColumn {
    /// Whether it is this column of the other side.
    pub(super) fn is_probe(self, column: usize) -> bool {
        matches!(self, Self::Probe(own) if own == column)
    }
}

/// The order of the first input, as far as its columns are passed on.
pub(crate) fn order(
    output: &[OutputColumn],
    schema: &SchemaRef,
    inputs: &[Input],
) -> Option<Vec<PhysicalSortExpr>> {
    let passed_on = |sort: PhysicalSortExpr| {
        let column = sort.expr.downcast_ref::<Column>()?.index();
        let place = output.iter().position(|output| output.is_probe(column))?;
        let column = Column::new(schema.field(place).name(), place);
        Some(PhysicalSortExpr::new(Arc::new(column), sort.options))
    };
    let order: Vec<_> = order_of_first(inputs)?.into_iter().map_while(passed_on).collect();
    (!order.is_empty()).then_some(order)
}

/// A join of which one side is held.
pub struct LookupJoin {
    /// Keys of the other side, and of the held one.
    pub(crate) keys: Vec<(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)>,
    pub(crate) kind: LookupKind,
    /// Whether a null equals another.
    pub(crate) nulls: bool,
    /// What has to hold of a pair beside equal keys; of an inner join alone.
    pub(crate) filter: Option<JoinFilter>,
    pub(crate) output: Vec<OutputColumn>,
    /// Which columns of the output are equal or constant: sorts and windows above rely on it.
    pub(crate) equal: EquivalenceProperties,
}
