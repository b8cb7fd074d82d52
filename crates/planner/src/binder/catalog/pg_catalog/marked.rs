//! Marks values with a `PostgreSQL` catalog type. As in catalog columns, the type is stored in the
//! field metadata.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use tidemark_types::CatalogType;

/// Marks a value with a catalog type; `None` removes the mark.
pub(crate) fn marked(value: Expr, of: Option<CatalogType>) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::from(Marked { of: of.map(CatalogType::name), signature }).call(vec![value])
}

/// Marks a field with a catalog type.
pub(super) fn with_catalog_type(field: Field, of: Option<&'static str>) -> Field {
    let of = of.map(|name| (CatalogType::METADATA.to_owned(), name.to_owned()));
    field.with_metadata(of.into_iter().collect())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Marked {
    of: Option<&'static str>,
    signature: Signature,
}

impl ScalarUDFImpl for Marked {
    fn name(&self) -> &'static str {
        "marked"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let value = &arguments.arg_fields[0];
        let field = Field::new(self.name(), value.data_type().clone(), value.is_nullable());
        Ok(Arc::new(with_catalog_type(field, self.of)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(arguments.args[0].clone())
    }
}
