//! UNNEST as a logical node.

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

/// What the elements of an argument are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub enum UnnestItem {
    /// Elements of an array with so many dimensions: numbers, or arrays with one less.
    Array(u8),
    /// Fields of the objects in a JSON array, each as text; elements that are no objects have a
    /// single field.
    Json(Vec<JsonField>),
    /// These values, the same for each row; the argument says nothing.
    Values(UnnestValues),
    /// The numbers from 0 of as many elements as the argument says: a series that the plan above
    /// computes, and that is never held as a whole.
    Count,
}

/// Values of a plan that no rule looks at: those of one plan are not those of another.
#[derive(Debug, Clone)]
pub struct UnnestValues(pub(crate) ArrayRef);

impl UnnestValues {
    /// Those of a column.
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
    /// Its name.
    pub name: String,
    /// Which values it may have; others are null.
    pub kind: JsonKind,
}

/// Kinds of JSON values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd)]
pub enum JsonKind {
    /// true and false.
    Boolean,
    /// Numbers.
    Number,
    /// ISO text, or a number of microseconds.
    Time,
    /// Any value; what is no text is shown as JSON.
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

/// The input's columns, then those of the elements, then the element's number from 1. What is
/// taken apart is a column of its own below: a source's column is repeated for each element only
/// where it is read above.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnnestNode {
    input: LogicalPlan,
    arguments: Vec<Expr>,
    items: Vec<UnnestItem>,
    prefix: String,
    keeps_empty: bool,
    kept: Vec<usize>,
    schema: DFSchemaRef,
}

impl UnnestNode {
    /// A node over `input`. Its own columns are called `prefix0`, `prefix1`, …, the last one has
    /// the number. `keeps_empty`: a row without elements stays, with nulls beside it.
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

    /// A node over an input that has the arguments as columns.
    fn over(
        input: LogicalPlan,
        arguments: Vec<Expr>,
        items: Vec<UnnestItem>,
        prefix: String,
        keeps_empty: bool,
    ) -> Result<Self> {
        if arguments.len() != items.len() {
            return plan_err!("UNNEST got a wrong number of arguments");
        }
        let place = |argument: &Expr| match argument {
            Expr::Column(column) => input.schema().index_of_column(column),
            other => plan_err!("UNNEST takes columns apart, not {other}"),
        };
        let places = arguments.iter().map(place).collect::<Result<Vec<usize>>>()?;
        let fields: Vec<_> = input.schema().iter().collect();
        let kept: Vec<usize> = (0..fields.len()).filter(|index| !places.contains(index)).collect();
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
        Ok(Self { input, arguments, items, prefix, keeps_empty, kept, schema: schema.into() })
    }

    /// What is taken apart.
    pub fn arguments(&self) -> &[Expr] {
        &self.arguments
    }

    /// What it consists of.
    pub fn items(&self) -> &[UnnestItem] {
        &self.items
    }

    /// The input's columns that are repeated.
    pub fn kept(&self) -> &[usize] {
        &self.kept
    }

    /// Whether a row without elements stays.
    pub fn keeps_empty(&self) -> bool {
        self.keeps_empty
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
        Self::over(input, exprs, items, prefix, self.keeps_empty)
    }

    // Conditions on what is repeated are about the rows of the input.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        let own = self.schema.fields().iter().skip(self.kept.len());
        own.map(|field| field.name().clone()).collect()
    }

    // The elements' columns do not come from the input.
    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let kept = output_columns.iter().filter_map(|&column| self.kept.get(column).copied());
        Some(vec![kept.collect()])
    }
}
