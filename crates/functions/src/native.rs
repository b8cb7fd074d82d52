//! Adapter for using Tidemark's kernels in a `DataFusion` plan.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use arrow::array::{Array, ArrayRef, new_null_array};
use arrow::compute::is_not_null;
use arrow::compute::kernels::zip::zip;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::interval_arithmetic::Interval;
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tidemark_types::bounded::check_stop;
use tidemark_types::{SqlType, account};

use crate::column::{Call, stopped};

/// Maximum length in bytes of an expression name before it is shortened.
const MAX_NAME_BYTES: usize = 512;
/// Length in bytes of the prefix that a shortened name retains.
const MAX_NAME_PREFIX_BYTES: usize = 64;

/// Replaces a long name with its prefix and a digest, which keeps the shortened name unique.
fn bounded_name(name: String) -> String {
    if name.len() <= MAX_NAME_BYTES {
        return name;
    }
    let digest = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, &name).hash(&mut hasher);
        hasher.finish()
    };
    let prefix = &name[..name.floor_char_boundary(MAX_NAME_PREFIX_BYTES)];
    format!("{prefix}…{:016x}{:016x})", digest(0), digest(1))
}

/// Computes a result column that has the call's number of rows.
pub(crate) type Kernel = Arc<dyn Fn(&Call<'_>) -> Result<ArrayRef> + Send + Sync>;

/// A kernel with the types it was resolved for. Kernels are equal if their names, types and options
/// are equal.
pub(crate) struct Native {
    name: &'static str,
    /// Distinguishes kernels with the same name by their bound types and constants.
    variant: String,
    /// Argument types, if known.
    argument_types: Vec<SqlType>,
    returns: SqlType,
    signature: Signature,
    kernel: Kernel,
    /// A random function's generator, if the statement has a seed.
    random: Option<Mutex<ChaCha8Rng>>,
    /// Whether the result never decreases as the argument increases.
    is_monotonic: bool,
    /// Minimum and maximum result, if known.
    range: Option<(i64, i64)>,
}

impl Native {
    pub(crate) fn new(
        name: &'static str,
        variant: String,
        returns: SqlType,
        volatility: Volatility,
        kernel: Kernel,
    ) -> Self {
        let signature = Signature::user_defined(volatility);
        let (takes, random, keeps_order, range) = (Vec::new(), None, false, None);
        Self {
            name,
            variant,
            argument_types: takes,
            returns,
            signature,
            kernel,
            random,
            is_monotonic: keeps_order,
            range,
        }
    }

    /// Sets the types that the arguments are cast to.
    pub(crate) fn taking(self, takes: Vec<SqlType>) -> Self {
        Self { argument_types: takes, ..self }
    }

    /// Returns the types that the arguments are cast to, if known.
    pub(crate) fn argument_types(&self) -> &[SqlType] {
        &self.argument_types
    }

    /// Returns the result type.
    pub(crate) fn returns(&self) -> SqlType {
        self.returns
    }

    /// Marks a one-argument kernel as monotonically non-decreasing.
    pub(crate) fn keeping_order(self) -> Self {
        Self { is_monotonic: true, ..self }
    }

    /// Converts an untyped argument to a column of nulls of the type that the kernel reads. The
    /// optimizer passes such arguments to evaluate a predicate over missing rows.
    fn typed(&self, index: usize, value: ColumnarValue) -> ColumnarValue {
        match (value, self.argument_types.get(index)) {
            (ColumnarValue::Array(array), Some(takes))
                if *array.data_type() == DataType::Null && *takes != SqlType::Null =>
            {
                ColumnarValue::Array(new_null_array(&takes.arrow_type(), array.len()))
            }
            (value, _) => value,
        }
    }

    pub(crate) fn udf(
        name: &'static str,
        variant: String,
        (takes, returns): (Vec<SqlType>, SqlType),
        volatility: Volatility,
        kernel: Kernel,
    ) -> Arc<ScalarUDF> {
        let native = Self::new(name, variant, returns, volatility, kernel).taking(takes);
        Arc::new(ScalarUDF::from(native))
    }

    /// Returns the same kernel with random numbers generated from a seed.
    pub(crate) fn seeded(&self, seed: u64) -> Self {
        let random = Some(Mutex::new(ChaCha8Rng::seed_from_u64(seed)));
        Self { variant: format!("{},{seed}", self.variant), random, ..self.copied() }
    }

    /// Returns the same kernel with this result range.
    pub(crate) fn within(&self, range: Option<(i64, i64)>) -> Self {
        Self { range, ..self.copied() }
    }

    fn copied(&self) -> Self {
        Self {
            name: self.name,
            variant: self.variant.clone(),
            argument_types: self.argument_types.clone(),
            returns: self.returns,
            signature: self.signature.clone(),
            kernel: Arc::clone(&self.kernel),
            random: None,
            is_monotonic: self.is_monotonic,
            range: self.range,
        }
    }

    /// Replaces null results with false or 0 if the type has no nulls.
    fn with_values(&self, array: ArrayRef) -> Result<ArrayRef> {
        if array.null_count() == 0 || self.returns.is_nullable() {
            return Ok(array);
        }
        let nothing = match self.returns {
            SqlType::Byte => ScalarValue::Int8(Some(0)),
            SqlType::Short => ScalarValue::Int16(Some(0)),
            _ => ScalarValue::Boolean(Some(false)),
        };
        Ok(zip(&is_not_null(&array)?, &array, &nothing.to_scalar()?)?)
    }
}

/// Whether the expression is a call whose result length depends on a non-constant number, such as
/// `repeat('x', n)`.
pub fn has_computed_length(expr: &Expr) -> bool {
    let Expr::ScalarFunction(function) = expr else { return false };
    let Some(native) = function.func.inner().downcast_ref::<Native>() else { return false };
    let is_number = |(takes, argument): (&SqlType, &Expr)| {
        takes.is_integer() && !matches!(argument, Expr::Literal(..))
    };
    (native.returns.is_text() || matches!(native.returns, SqlType::DoubleArray(_)))
        && native.argument_types.iter().zip(&function.args).any(is_number)
}

/// Creates a call of `udf`.
pub(crate) fn call(udf: &Arc<ScalarUDF>, arguments: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(udf), arguments))
}

impl std::fmt::Debug for Native {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}<{}>", self.name, self.variant)
    }
}

impl PartialEq for Native {
    fn eq(&self, other: &Self) -> bool {
        (self.name, &self.variant, self.returns) == (other.name, &other.variant, other.returns)
    }
}

impl Eq for Native {}

impl Hash for Native {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.variant.hash(state);
    }
}

impl ScalarUDFImpl for Native {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.arrow_type())
    }

    /// A name recursively includes the names of its arguments. Without this limit, naming a
    /// thousand nested calls takes seconds, and names are requested repeatedly.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let names: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(bounded_name(format!("{}({})", self.name, names.join(","))))
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        check_stop().map_err(stopped)?;
        let nullable = self.returns.is_nullable();
        Ok(Arc::new(Field::new(self.name, self.returns.arrow_type(), nullable)))
    }

    /// The binder has already cast every argument to the type the kernel reads.
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn evaluate_bounds(&self, _: &[&Interval]) -> Result<Interval> {
        let data_type = self.returns.arrow_type();
        let Some((min, greatest)) = self.range else {
            return Interval::make_unbounded(&data_type);
        };
        let number = |number| ScalarValue::Int64(Some(number)).cast_to(&data_type);
        Interval::try_new(number(min)?, number(greatest)?)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        Ok(match inputs {
            [only] if self.is_monotonic => only.sort_properties,
            _ => SortProperties::Unordered,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = !args.args.is_empty()
            && self.signature.volatility != Volatility::Volatile
            && args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let arguments: Vec<ColumnarValue> =
            args.args.into_iter().enumerate().map(|(index, one)| self.typed(index, one)).collect();
        account::check().map_err(stopped)?;
        let made =
            (self.kernel)(&Call { arguments: &arguments, rows, random: self.random.as_ref() });
        // If the query must stop, the kernel's result or error is meaningless.
        account::check().map_err(stopped)?;
        let array = self.with_values(made?)?;
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}
