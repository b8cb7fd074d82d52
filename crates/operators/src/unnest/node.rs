//! The UNNEST logical node.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field};
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, UserDefinedLogicalNodeCore};
use tidemark_types::SqlType;

/// Type of an argument's elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub enum UnnestItem {
    /// Elements of an array with this many dimensions: numbers, or arrays with one fewer dimension.
    Array(u8),
    /// Fields of the objects in a JSON array, each as a string. Elements that are not objects have
    /// a single field.
    Json(Vec<JsonField>),
    /// The same values for each row; the argument is ignored.
    Values(UnnestValues),
    /// As many numbers as the argument specifies, starting at 0. The plan above uses them to
    /// compute a series, which is never fully materialized.
    Count,
}

/// Values that optimizer rules do not inspect. Values in two different plans are never equal.
#[derive(Debug, Clone)]
pub struct UnnestValues(pub(crate) ArrayRef);

impl UnnestValues {
    /// Creates the values from a column.
    #[must_use]
    pub fn new(values: &ArrayRef) -> Self {
        Self(Arc::clone(values))
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>().addr()
    }
}

impl PartialEq for UnnestValues {
    fn eq(&self, other: &Self) -> bool {
        self.address() == other.address()
    }
}

impl Eq for UnnestValues {}

impl Hash for UnnestValues {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address().hash(state);
    }
}

impl PartialOrd for UnnestValues {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.address().cmp(&other.address()))
    }
}

/// A field of a JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub struct JsonField {
    /// Name of the field.
    pub name: String,
    /// Kind of values to read; values of other kinds become null.
    pub kind: JsonKind,
}

/// Kind of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd)]
pub enum JsonKind {
    /// `true` and `false`.
    Boolean,
    /// Numbers.
    Number,
    /// An ISO string, or a number of microseconds.
    Time,
    /// Any value; values other than strings are returned as JSON.
    Text,
}

impl UnnestItem {
    fn types(&self) -> Vec<DataType> {
        match self {
            Self::Array(1) => vec![DataType::Float64],
            Self::Array(dimensions) => {
                vec![SqlType::DoubleArray(dimensions.saturating_sub(1)).arrow_type()]
            }
            Self::Json(fields) => vec![DataType::Utf8View; fields.len()],
            Self::Values(values) => vec![values.0.data_type().clone()],
            Self::Count => vec![DataType::Int64],
        }
    }
}

/// Returns the input's columns, then the element columns, then the number of the element, counted
/// from one. The argument is a separate column of the input, so a source column is repeated per
/// element only if the plan above reads it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnnestNode {
    input: LogicalPlan,
    arguments: Vec<Expr>,
    items: Vec<UnnestItem>,
    prefix: String,
    retains_empty: bool,
    repeated: Vec<usize>,
    schema: DFSchemaRef,
}

impl UnnestNode {
    /// Creates a node over `input`. Its new columns are named `prefix0`, `prefix1`, …; the last
    /// column is the element number. With `keeps_empty`, rows without elements are retained, with
    /// nulls in the new columns.
    pub fn try_new(
        input: LogicalPlan,
        arguments: Vec<Expr>,
        items: Vec<UnnestItem>,
        prefix: String,
        keeps_empty: bool,
    ) -> Result<Self> {
        let mut exprs: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
        let mut columns = Vec::with_capacity(arguments.len());
        for (number, argument) in arguments.into_iter().enumerate() {
            let name = format!("{prefix}argument {number}");
            exprs.push(argument.alias(&name));
            columns.push(Expr::Column(Column::new_unqualified(name)));
        }
        let input = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?);
        Self::over(input, columns, items, prefix, keeps_empty)
    }

    /// Creates a node over an input whose columns include the arguments.
    fn over(
        input: LogicalPlan,
        arguments: Vec<Expr>,
        items: Vec<UnnestItem>,
        prefix: String,
        keeps_empty: bool,
    ) -> Result<Self> {
        if arguments.len() != items.len() {
            return plan_err!("UNNEST got the wrong number of arguments");
        }
        let position = |argument: &Expr| match argument {
            Expr::Column(column) => input.schema().index_of_column(column),
            other => plan_err!("UNNEST requires columns, found {other}"),
        };
        let positions = arguments.iter().map(position).collect::<Result<Vec<usize>>>()?;
        let fields: Vec<_> = input.schema().iter().collect();
        let kept: Vec<usize> =
            (0..fields.len()).filter(|index| !positions.contains(index)).collect();
        let mut types: Vec<DataType> = items.iter().flat_map(UnnestItem::types).collect();
        types.push(DataType::Int64);
        let own = types.into_iter().enumerate();
        let own = own.map(|(number, data_type)| {
            (None, Arc::new(Field::new(format!("{prefix}{number}"), data_type, true)))
        });
        let repeated = kept.iter().map(|&index| fields[index]);
        let repeated = repeated.map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field)));
        let columns = repeated.chain(own).collect();
        let schema = DFSchema::new_with_metadata(columns, input.schema().metadata().clone())?;
        Ok(Self {
            input,
            arguments,
            items,
            prefix,
            retains_empty: keeps_empty,
            repeated: kept,
            schema: schema.into(),
        })
    }

    /// The arguments to expand.
    pub fn arguments(&self) -> &[Expr] {
        &self.arguments
    }

    /// The element type of each argument.
    pub fn items(&self) -> &[UnnestItem] {
        &self.items
    }

    /// Indexes of the repeated input columns.
    pub fn repeated(&self) -> &[usize] {
        &self.repeated
    }

    /// Whether rows without elements are retained.
    pub fn retains_empty(&self) -> bool {
        self.retains_empty
    }
}

impl PartialOrd for UnnestNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let key = |node: &Self| (node.arguments.clone(), node.items.clone(), node.prefix.clone());
        match key(self).partial_cmp(&key(other)) {
            Some(Ordering::Equal) => self.input.partial_cmp(&other.input),
            unequal => unequal,
        }
    }
}

impl UserDefinedLogicalNodeCore for UnnestNode {
    fn name(&self) -> &'static str {
        "UnnestElements"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.arguments.clone()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let arguments: Vec<String> = self.arguments.iter().map(ToString::to_string).collect();
        write!(f, "UnnestElements: {}", arguments.join(", "))
    }

    fn with_exprs_and_inputs(
        &self,
        exprs: Vec<Expr>,
        mut inputs: Vec<LogicalPlan>,
    ) -> Result<Self> {
        let Some(input) = inputs.pop() else { return plan_err!("UNNEST needs one input") };
        let (items, prefix) = (self.items.clone(), self.prefix.clone());
        Self::over(input, exprs, items, prefix, self.retains_empty)
    }

    // Conditions on repeated columns may move below this node, but conditions on the new columns
    // may not.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        let own = self.schema.fields().iter().skip(self.repeated.len());
        own.map(|field| field.name().clone()).collect()
    }

    // The element columns do not come from the input.
    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let repeated =
            output_columns.iter().filter_map(|&column| self.repeated.get(column).copied());
        Some(vec![repeated.collect()])
    }
}
