//! SQL types and their Arrow counterparts.

use std::borrow::Cow;

use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use serde::{Deserialize, Serialize};

use crate::CatalogType;

/// A type of the dialect.
///
/// | type | Arrow | stored width, bytes |
/// |---|---|---|
/// | `Boolean` | `Boolean` | bit |
/// | `Byte` `Short` `Int` `Long` | `Int8` `Int16` `Int32` `Int64` | 1 2 4 8 |
/// | `Char` | `UInt16`, one UTF-16 unit | 2 |
/// | `Float` `Double` | `Float32` `Float64` | 4 8 |
/// | `Date` | `Timestamp(ms)` | 8 |
/// | `Timestamp` `TimestampNs` | `Timestamp(µs)` `Timestamp(ns)` | 8 |
/// | `Symbol` | `Dictionary(Int32, Utf8)` | 4 + dictionary |
/// | `Varchar` `String` | `Utf8View` | 16 + text |
/// | `Uuid` `Long256` | `FixedSizeBinary(16)`, `(32)` | 16 32 |
/// | `Ipv4` | `UInt32` | 4 |
/// | `Geohash(bits)` | `Int8/16/32/64` by width | 1 2 4 8 |
/// | `Binary` | `LargeBinary` | 8 + bytes |
/// | `Decimal(p, s)` | `Decimal32/64/128/256` by precision | 4 8 16 32 |
/// | `DoubleArray(n)` | `Struct(shape, values)`, see [`crate::double_array`] | 4 n + 8 + elements |
///
/// `Interval`, `Period` (Arrow: `Interval(MonthDayNano)`) and `Null` are types of expressions only.
/// An untyped NULL is shown as STRING.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SqlType {
    /// Never null: null becomes false.
    Boolean,
    /// 8-bit integer; never null: null becomes 0.
    Byte,
    /// 16-bit integer; never null: null becomes 0.
    Short,
    /// One UTF-16 unit; 0 is null.
    Char,
    /// 32-bit integer; the minimum is null.
    Int,
    /// 64-bit integer; the minimum is null.
    Long,
    /// 32-bit floating point; NaN and infinities are null.
    Float,
    /// 64-bit floating point; NaN and infinities are null.
    Double,
    /// Milliseconds since 1970 UTC.
    Date,
    /// Microseconds since 1970 UTC.
    Timestamp,
    /// Nanoseconds since 1970 UTC.
    TimestampNs,
    /// Dictionary-encoded string.
    Symbol,
    /// String (older name).
    String,
    /// String.
    Varchar,
    /// 128-bit identifier, bytes in text order (big endian).
    Uuid,
    /// 256-bit unsigned integer.
    Long256,
    /// IPv4 address; 0.0.0.0 is null.
    Ipv4,
    /// Geohash of 1 to 60 bits.
    Geohash(u8),
    /// Bytes.
    Binary,
    /// Decimal of precision 1 to 76 and scale 0 to precision.
    Decimal(u8, u8),
    /// DOUBLE array of 1 to 32 dimensions.
    DoubleArray(u8),
    /// Half-open pair of timestamps; never stored.
    Interval,
    /// Months, days and microseconds, see [`crate::period`]; never stored.
    Period,
    /// The untyped NULL; never stored.
    Null,
}

/// A column of a table or a result, with its name and type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Name of the column.
    pub name: String,
    /// Type of the column.
    pub sql_type: SqlType,
    /// The `PostgreSQL` catalog type shown to clients, if it differs from the type.
    #[serde(skip)]
    pub catalog_type: Option<CatalogType>,
    /// The table column from which a result column is selected, if any.
    #[serde(skip)]
    pub source: Option<SourceColumn>,
}

/// A table column, as `PostgreSQL` clients look it up in the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceColumn {
    /// OID of the table, `pg_class.oid`.
    pub table: i32,
    /// Number of the column from 1, `pg_attribute.attnum`.
    pub number: i16,
    /// Type modifier, `pg_attribute.atttypmod`; -1 for none.
    pub modifier: i32,
}

impl Field {
    /// Creates a column that clients see with its own type rather than a catalog type.
    pub fn new(name: impl Into<String>, sql_type: SqlType) -> Self {
        Self { name: name.into(), sql_type, catalog_type: None, source: None }
    }

    /// Returns the name as written in the text formats of HTTP, which quote a name that contains a
    /// dot.
    #[must_use]
    pub fn reported_name(&self) -> Cow<'_, str> {
        if self.name.contains('.') {
            Cow::Owned(format!("\"{}\"", self.name))
        } else {
            Cow::Borrowed(&self.name)
        }
    }

    /// Whether rows of both fields are read in the same way. The source column is ignored, because
    /// for some parameter values no table is read.
    #[must_use]
    pub fn reads_as(&self, other: &Self) -> bool {
        (&self.name, self.sql_type, self.catalog_type)
            == (&other.name, other.sql_type, other.catalog_type)
    }
}

impl SqlType {
    /// Returns the Arrow type of a column of this type, in memory and in record batches.
    #[must_use]
    pub fn arrow_type(self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Byte => DataType::Int8,
            Self::Short => DataType::Int16,
            Self::Char => DataType::UInt16,
            Self::Int => DataType::Int32,
            Self::Long => DataType::Int64,
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::Date => DataType::Timestamp(TimeUnit::Millisecond, None),
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::TimestampNs => DataType::Timestamp(TimeUnit::Nanosecond, None),
            Self::Symbol => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
            }
            Self::String | Self::Varchar | Self::Null => DataType::Utf8View,
            Self::Uuid => DataType::FixedSizeBinary(16),
            Self::Long256 => DataType::FixedSizeBinary(32),
            Self::Ipv4 => DataType::UInt32,
            Self::Geohash(bits) => match bits {
                0..=7 => DataType::Int8,
                8..=15 => DataType::Int16,
                16..=31 => DataType::Int32,
                _ => DataType::Int64,
            },
            Self::Binary => DataType::LargeBinary,
            Self::Decimal(precision, scale) => {
                let scale = scale as i8;
                match precision {
                    0..=9 => DataType::Decimal32(precision, scale),
                    10..=18 => DataType::Decimal64(precision, scale),
                    19..=38 => DataType::Decimal128(precision, scale),
                    _ => DataType::Decimal256(precision, scale),
                }
            }
            Self::DoubleArray(dimensions) => DataType::Struct(array_children(dimensions)),
            Self::Period => DataType::Interval(IntervalUnit::MonthDayNano),
            Self::Interval => DataType::Struct(
                vec![
                    arrow_schema::Field::new("lo", Self::Timestamp.arrow_type(), true),
                    arrow_schema::Field::new("hi", Self::Timestamp.arrow_type(), true),
                ]
                .into(),
            ),
        }
    }

    /// Returns the name that `/exec` and SHOW COLUMNS print: `DOUBLE`, `GEOHASH(5c)`, `DOUBLE[]`.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Boolean => "BOOLEAN".into(),
            Self::Byte => "BYTE".into(),
            Self::Short => "SHORT".into(),
            Self::Char => "CHAR".into(),
            Self::Int => "INT".into(),
            Self::Long => "LONG".into(),
            Self::Float => "FLOAT".into(),
            Self::Double => "DOUBLE".into(),
            Self::Date => "DATE".into(),
            Self::Timestamp => "TIMESTAMP".into(),
            Self::TimestampNs => "TIMESTAMP_NS".into(),
            Self::Symbol => "SYMBOL".into(),
            Self::String | Self::Null => "STRING".into(),
            Self::Varchar => "VARCHAR".into(),
            Self::Uuid => "UUID".into(),
            Self::Long256 => "LONG256".into(),
            Self::Ipv4 => "IPv4".into(),
            Self::Geohash(bits) if bits % 5 == 0 => format!("GEOHASH({}c)", bits / 5),
            Self::Geohash(bits) => format!("GEOHASH({bits}b)"),
            Self::Binary => "BINARY".into(),
            Self::Decimal(precision, scale) => format!("DECIMAL({precision},{scale})"),
            Self::DoubleArray(dimensions) => {
                format!("DOUBLE{}", "[]".repeat(usize::from(dimensions)))
            }
            Self::Interval => "INTERVAL".into(),
            Self::Period => "PERIOD".into(),
        }
    }

    /// Parses a type from its name and arguments (`("geohash", ["5c"], 0)`), ignoring case; `None`
    /// for an unknown type.
    #[must_use]
    pub fn parse(name: &str, arguments: &[String], dimensions: u32) -> Option<Self> {
        let plain = |sql_type| (arguments.is_empty() && dimensions == 0).then_some(sql_type);
        // Casts round to this number of fractional digits, but columns do not round.
        let seconds = |sql_type| match arguments {
            [digits] => {
                matches!(digits.as_bytes(), [b'0'..=b'9'] if dimensions == 0).then_some(sql_type)
            }
            _ => plain(sql_type),
        };
        match name.to_ascii_uppercase().as_str() {
            "DOUBLE" | "FLOAT8" | "DOUBLE PRECISION" if dimensions > 0 => (arguments.is_empty()
                && dimensions <= 32)
                .then_some(Self::DoubleArray(dimensions as u8)),
            "BOOLEAN" | "BOOL" => plain(Self::Boolean),
            "BYTE" => plain(Self::Byte),
            "SHORT" | "SMALLINT" | "INT2" => plain(Self::Short),
            // `CHAR` and `CHAR(1)` are a CHAR. `CHAR(n)` with a greater length is a string without
            // blank padding.
            "CHAR" | "CHARACTER" | "BPCHAR" if dimensions == 0 => match arguments {
                [] => Some(Self::Char),
                [length] => match length.parse().ok()? {
                    0_u32 => None,
                    1 => Some(Self::Char),
                    _ => Some(Self::Varchar),
                },
                _ => None,
            },
            "INT" | "INTEGER" | "INT4" => plain(Self::Int),
            "LONG" | "BIGINT" | "INT8" => plain(Self::Long),
            // `FLOAT(n)` requests at least n bits of precision.
            "FLOAT" if dimensions == 0 && arguments.len() == 1 => {
                match arguments[0].parse().ok()? {
                    1..=24_u32 => Some(Self::Float),
                    25..=53 => Some(Self::Double),
                    _ => None,
                }
            }
            "FLOAT" | "REAL" | "FLOAT4" => plain(Self::Float),
            "DOUBLE" | "FLOAT8" | "DOUBLE PRECISION" => plain(Self::Double),
            "DATE" => plain(Self::Date),
            "TIMESTAMP"
            | "TIMESTAMPTZ"
            | "TIMESTAMP WITH TIME ZONE"
            | "TIMESTAMP WITHOUT TIME ZONE" => seconds(Self::Timestamp),
            "TIMESTAMP_NS" => seconds(Self::TimestampNs),
            "SYMBOL" => plain(Self::Symbol),
            "STRING" | "TEXT" => plain(Self::String),
            "VARCHAR" | "CHARACTER VARYING" => (dimensions == 0).then_some(Self::Varchar),
            "UUID" => plain(Self::Uuid),
            "LONG256" => plain(Self::Long256),
            "IPV4" => plain(Self::Ipv4),
            "BINARY" | "BYTEA" => plain(Self::Binary),
            "INTERVAL" => plain(Self::Interval),
            "PERIOD" => plain(Self::Period),
            "GEOHASH" => parse_geohash(arguments).filter(|_| dimensions == 0),
            "DECIMAL" | "NUMERIC" => parse_decimal(arguments).filter(|_| dimensions == 0),
            _ => None,
        }
    }

    /// Parses a type written as one string: `DOUBLE`, `GEOHASH(5c)`, `DECIMAL(10,2)`, `DOUBLE[][]`.
    /// Returns `None` for an unknown type. This is the inverse of [`SqlType::name`].
    #[must_use]
    pub fn parse_text(text: &str) -> Option<Self> {
        let mut text = text.trim();
        let mut dimensions = 0;
        while let Some(element) = text.strip_suffix("[]") {
            (text, dimensions) = (element.trim_end(), dimensions + 1);
        }
        let (name, rest) = text.split_once('(').unwrap_or((text, ""));
        let arguments: Vec<String> = rest
            .trim_end_matches(')')
            .split(',')
            .map(|argument| argument.trim().to_owned())
            .filter(|argument| !argument.is_empty())
            .collect();
        Self::parse(name.trim(), &arguments, dimensions)
    }

    /// Whether the type is a string type: SYMBOL, STRING, VARCHAR.
    #[must_use]
    pub fn is_text(self) -> bool {
        matches!(self, Self::Symbol | Self::String | Self::Varchar)
    }

    /// Whether the type is an integer: BYTE, SHORT, INT, LONG.
    #[must_use]
    pub fn is_integer(self) -> bool {
        matches!(self, Self::Byte | Self::Short | Self::Int | Self::Long)
    }

    /// Whether the type is floating point: FLOAT or DOUBLE.
    #[must_use]
    pub fn is_floating(self) -> bool {
        matches!(self, Self::Float | Self::Double)
    }

    /// Whether the type is TIMESTAMP or `TIMESTAMP_NS`, the only types of a designated timestamp.
    #[must_use]
    pub fn is_timestamp(self) -> bool {
        matches!(self, Self::Timestamp | Self::TimestampNs)
    }

    /// Whether a column of this type may contain nulls. BOOLEAN, BYTE and SHORT columns may not.
    #[must_use]
    pub fn is_nullable(self) -> bool {
        !matches!(self, Self::Boolean | Self::Byte | Self::Short)
    }

    /// Whether a table may have a column of this type.
    #[must_use]
    pub fn is_storable(self) -> bool {
        !matches!(self, Self::Interval | Self::Period | Self::Null)
    }
}

fn parse_geohash(arguments: &[String]) -> Option<SqlType> {
    let [size] = arguments else { return None };
    let (digits, unit) = size.split_at_checked(size.len().checked_sub(1)?)?;
    let count: u8 = digits.parse().ok()?;
    let bits = match unit {
        "c" | "C" => count.checked_mul(5)?,
        "b" | "B" => count,
        _ => return None,
    };
    (1..=60).contains(&bits).then_some(SqlType::Geohash(bits))
}

fn parse_decimal(arguments: &[String]) -> Option<SqlType> {
    let (precision, scale): (u8, u8) = match arguments {
        [] => (18, 3),
        [precision] => (precision.parse().ok()?, 0),
        [precision, scale] => (precision.parse().ok()?, scale.parse().ok()?),
        _ => return None,
    };
    ((1..=76).contains(&precision) && scale <= precision)
        .then_some(SqlType::Decimal(precision, scale))
}

/// Returns the Arrow fields of an array column: dimension lengths and elements.
pub(crate) fn array_children(dimensions: u8) -> arrow_schema::Fields {
    let lengths = std::sync::Arc::new(arrow_schema::Field::new_list_field(DataType::Int32, true));
    let elements =
        std::sync::Arc::new(arrow_schema::Field::new_list_field(DataType::Float64, true));
    arrow_schema::Fields::from(vec![
        arrow_schema::Field::new(
            "shape",
            DataType::FixedSizeList(lengths, i32::from(dimensions)),
            true,
        ),
        arrow_schema::Field::new("values", DataType::LargeList(elements), true),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_are_parsed() {
        for sql_type in [
            SqlType::Boolean,
            SqlType::TimestampNs,
            SqlType::Ipv4,
            SqlType::Geohash(25),
            SqlType::Geohash(7),
            SqlType::Decimal(10, 2),
            SqlType::DoubleArray(1),
            SqlType::DoubleArray(3),
            SqlType::Period,
        ] {
            assert_eq!(SqlType::parse_text(&sql_type.name()), Some(sql_type));
        }
        assert_eq!(SqlType::parse_text("decimal( 10 , 2)"), Some(SqlType::Decimal(10, 2)));
        assert_eq!(SqlType::parse_text("INT[]"), None);
        assert_eq!(SqlType::parse_text("GEOHASH(61b)"), None);
    }
}
