//! A table's columns in a message, validated in place: names, types, nulls, values.

use tidemark_types::double_array::is_allowed;

use super::bytes::{Bytes, Read};
use super::dictionary::{Dictionary, MAX_ENTRIES};
use super::gorilla;
use super::options::QwpOptions;
use crate::rows::shown;

/// Maximum number of columns per block, and maximum name length in bytes.
const MAX_COLUMNS: usize = 2_048;
const MAX_NAME_BYTES: usize = 127;
/// Maximum number of array dimensions.
const MAX_DIMENSIONS: u8 = 32;
const MAX_SCALE: u8 = 76;
/// Memory in bytes per entry of a column-local dictionary, in addition to its string.
const ENTRY_BYTES: usize = 16;

/// Flags that apply to an entire message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flags {
    /// Whether committing the rows is deferred to a later message.
    pub(super) defers: bool,
    /// Whether each timestamp column states how it is encoded.
    pub(super) gorilla: bool,
    /// Whether symbols are sent as ids in the connection's dictionary.
    pub(super) delta: bool,
}

/// Rows of one table.
#[derive(Debug)]
pub(super) struct Block<'a> {
    pub(super) table: &'a str,
    pub(super) rows: usize,
    pub(super) columns: Vec<WireColumn<'a>>,
}

/// The protocol's column types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Boolean,
    Byte,
    Short,
    Int,
    Long,
    Float,
    Double,
    Symbol,
    Timestamp,
    Date,
    Uuid,
    Long256,
    Geohash,
    Varchar,
    TimestampNanos,
    DoubleArray,
    LongArray,
    /// A decimal, with its maximum number of digits.
    Decimal(u8),
    Char,
    Binary,
    Ipv4,
}

impl Kind {
    fn of(code: u8) -> Option<Self> {
        Some(match code {
            0x01 => Self::Boolean,
            0x02 => Self::Byte,
            0x03 => Self::Short,
            0x04 => Self::Int,
            0x05 => Self::Long,
            0x06 => Self::Float,
            0x07 => Self::Double,
            0x09 => Self::Symbol,
            0x0a => Self::Timestamp,
            0x0b => Self::Date,
            0x0c => Self::Uuid,
            0x0d => Self::Long256,
            0x0e => Self::Geohash,
            0x0f => Self::Varchar,
            0x10 => Self::TimestampNanos,
            0x11 => Self::DoubleArray,
            0x12 => Self::LongArray,
            0x13 => Self::Decimal(18),
            0x14 => Self::Decimal(38),
            0x15 => Self::Decimal(76),
            0x16 => Self::Char,
            0x17 => Self::Binary,
            0x18 => Self::Ipv4,
            _ => return None,
        })
    }

    /// Returns the memory per row in this column in bytes, excluding strings and array elements.
    fn row_bytes(self) -> usize {
        match self {
            Self::Long256 | Self::Decimal(_) | Self::DoubleArray => 40,
            Self::Uuid | Self::Varchar | Self::Binary | Self::Symbol => 20,
            _ => 12,
        }
    }

    /// Returns the type name for messages to clients.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::Byte => "BYTE",
            Self::Short => "SHORT",
            Self::Int => "INT",
            Self::Long => "LONG",
            Self::Float => "FLOAT",
            Self::Double => "DOUBLE",
            Self::Symbol => "SYMBOL",
            Self::Timestamp => "TIMESTAMP",
            Self::Date => "DATE",
            Self::Uuid => "UUID",
            Self::Long256 => "LONG256",
            Self::Geohash => "GEOHASH",
            Self::Varchar => "VARCHAR",
            Self::TimestampNanos => "TIMESTAMP_NANOS",
            Self::DoubleArray => "DOUBLE_ARRAY",
            Self::LongArray => "LONG_ARRAY",
            Self::Decimal(18) => "DECIMAL64",
            Self::Decimal(38) => "DECIMAL128",
            Self::Decimal(_) => "DECIMAL256",
            Self::Char => "CHAR",
            Self::Binary => "BINARY",
            Self::Ipv4 => "IPv4",
        }
    }
}

/// A column in a block.
#[derive(Debug)]
pub(super) struct WireColumn<'a> {
    /// The name; empty for the designated timestamp.
    pub(super) name: &'a str,
    pub(super) kind: Kind,
    pub(super) rows: usize,
    /// Bitmap with one bit per row, which is set if the row has no value.
    pub(super) nulls: Option<&'a [u8]>,
    /// Values of the non-null rows, without gaps.
    pub(super) values: Values<'a>,
}

#[derive(Debug)]
pub(super) enum Values<'a> {
    /// One bit per value, least significant bit first.
    Bits(&'a [u8]),
    /// Fixed-width values.
    Fixed(&'a [u8]),
    Timestamps(Vec<i64>),
    /// Ids in the connection's dictionary.
    Symbols(Vec<u32>),
    /// Ids in the column-local dictionary.
    OwnSymbols(Dictionary, Vec<u32>),
    /// End offsets, and the bytes of all strings.
    Texts(&'a [u8], &'a [u8]),
    Geohashes(u8, &'a [u8]),
    /// The scale of all values, and the unscaled values.
    Decimals(u8, &'a [u8]),
    /// For each array, its dimension lengths and its elements.
    Arrays(Vec<(&'a [u8], &'a [u8])>),
}

impl WireColumn<'_> {
    /// Returns whether the null bitmap marks a row as null.
    #[inline]
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls[row / 8] >> (row % 8) & 1 == 1)
    }
}

/// Context for reading a message's columns.
pub(super) struct Context<'a> {
    pub(super) flags: Flags,
    pub(super) options: &'a QwpOptions,
    /// Number of entries in the connection's dictionary.
    pub(super) entries: usize,
}

impl<'a> Block<'a> {
    pub(super) fn read(bytes: &mut Bytes<'a>, context: &Context<'_>) -> Read<Self> {
        let table = bytes.text("table name")?;
        if table.len() > MAX_NAME_BYTES {
            return Err(bytes.malformed("the table name is longer than 127 bytes"));
        }
        let rows = bytes.count("rows", context.options.max_rows, "qwp.max.rows.per.table")?;
        let count = bytes.count("columns", MAX_COLUMNS, "limit")?;
        if count == 0 && rows > 0 {
            return Err(bytes.malformed(format!("{rows} rows without columns")));
        }
        let mut schema = Vec::with_capacity(count.min(bytes.left()));
        for _ in 0..count {
            let name = bytes.text("column name")?;
            if name.len() > MAX_NAME_BYTES {
                return Err(bytes.malformed("the column name is longer than 127 bytes"));
            }
            let code = bytes.byte("column type")?;
            let Some(kind) = Kind::of(code) else {
                let name = shown(name.as_bytes());
                return Err(bytes.malformed(format!("column {name}: unknown type {code:#04x}")));
            };
            schema.push((name, kind));
        }
        let columns = schema.into_iter().map(|(name, kind)| {
            WireColumn::read(bytes, context, (name, kind), rows).map_err(|mut malformed| {
                let (table, name) = (shown(table.as_bytes()), shown(name.as_bytes()));
                malformed.reason = format!("table {table}, column {name}: {}", malformed.reason);
                malformed
            })
        });
        Ok(Self { table, rows, columns: columns.collect::<Read<_>>()? })
    }
}

impl<'a> WireColumn<'a> {
    fn read(
        bytes: &mut Bytes<'a>,
        context: &Context<'_>,
        (name, kind): (&'a str, Kind),
        rows: usize,
    ) -> Read<Self> {
        bytes.reserve(rows, kind.row_bytes())?;
        let nulls = match bytes.byte("null flag")? {
            0 => None,
            _ => Some(bytes.take(rows.div_ceil(8), "null bitmap")?),
        };
        let count = rows - nulls.map_or(0, |nulls| null_count(nulls, rows));
        let values = Values::read(bytes, context, kind, count)?;
        Ok(Self { name, kind, rows, nulls, values })
    }
}

fn null_count(nulls: &[u8], rows: usize) -> usize {
    let bits = |byte: &u8| byte.count_ones() as usize;
    let whole: usize = nulls[..rows / 8].iter().map(bits).sum();
    let rest = rows % 8;
    let last = nulls.get(rows / 8).filter(|_| rest > 0);
    whole + last.map_or(0, |byte| bits(&(byte & ((1 << rest) - 1))))
}

impl<'a> Values<'a> {
    fn read(bytes: &mut Bytes<'a>, context: &Context<'_>, kind: Kind, count: usize) -> Read<Self> {
        let fixed = |bytes: &mut Bytes<'a>, width| bytes.take_values(count, width).map(Self::Fixed);
        match kind {
            Kind::Boolean => bytes.take(count.div_ceil(8), "values").map(Self::Bits),
            Kind::Byte => fixed(bytes, 1),
            Kind::Short | Kind::Char => fixed(bytes, 2),
            Kind::Int | Kind::Float | Kind::Ipv4 => fixed(bytes, 4),
            Kind::Long | Kind::Double | Kind::Date => fixed(bytes, 8),
            Kind::Uuid => fixed(bytes, 16),
            Kind::Long256 => fixed(bytes, 32),
            Kind::Timestamp | Kind::TimestampNanos if !context.flags.gorilla => fixed(bytes, 8),
            Kind::Timestamp | Kind::TimestampNanos => match bytes.byte("encoding")? {
                0 => fixed(bytes, 8),
                1 => gorilla::decode(bytes, count).map(Self::Timestamps),
                other => Err(bytes.malformed(format!("unknown encoding {other}"))),
            },
            Kind::Symbol => Self::symbols(bytes, context, count),
            Kind::Varchar => Self::texts(bytes, count, true),
            Kind::Binary => Self::texts(bytes, count, false),
            Kind::Geohash => {
                let bits = bytes.varint("precision")?;
                match u8::try_from(bits) {
                    Ok(bits @ 1..=60) => {
                        let width = usize::from(bits.div_ceil(8));
                        Ok(Self::Geohashes(bits, bytes.take_values(count, width)?))
                    }
                    _ => Err(bytes
                        .malformed(format!("invalid geohash of {bits} bits, expected 1 to 60"))),
                }
            }
            Kind::Decimal(digits) => {
                let scale = bytes.byte("scale")?;
                if scale > digits.min(MAX_SCALE) {
                    return Err(
                        bytes.malformed(format!("scale {scale} exceeds the maximum {digits}"))
                    );
                }
                let width = match digits {
                    18 => 8,
                    38 => 16,
                    _ => 32,
                };
                Ok(Self::Decimals(scale, bytes.take_values(count, width)?))
            }
            Kind::DoubleArray | Kind::LongArray => Self::arrays(bytes, count),
        }
    }

    fn symbols(bytes: &mut Bytes<'a>, context: &Context<'_>, count: usize) -> Read<Self> {
        if context.flags.delta {
            return entries(bytes, count, context.entries).map(Self::Symbols);
        }
        let known = bytes.count("entries", MAX_ENTRIES, "limit")?;
        let mut own = Dictionary::default();
        for _ in 0..known {
            let text = bytes.text("entry")?;
            bytes.reserve(1, text.len() + ENTRY_BYTES)?;
            own.push(text);
        }
        let keys = entries(bytes, count, known)?;
        Ok(Self::OwnSymbols(own, keys))
    }

    fn texts(bytes: &mut Bytes<'a>, count: usize, is_text: bool) -> Read<Self> {
        let first = u32::from_le_bytes(bytes.array("offsets")?);
        let ends = bytes.take_values(count, size_of::<u32>())?;
        let mut before = 0;
        let mut falls = first != 0;
        for end in ends.as_chunks().0 {
            let end = u32::from_le_bytes(*end);
            falls |= end < before;
            before = end;
        }
        if falls {
            return Err(bytes.malformed("offsets must start at 0 and must not decrease"));
        }
        let content = bytes.take(before as usize, "strings")?;
        if is_text {
            let Ok(text) = std::str::from_utf8(content) else {
                return Err(bytes.malformed("a string is not valid UTF-8"));
            };
            let mut ends = ends.as_chunks().0.iter().map(|end| u32::from_le_bytes(*end));
            if !ends.all(|end| text.is_char_boundary(end as usize)) {
                return Err(bytes.malformed("a string is not valid UTF-8"));
            }
        }
        bytes.reserve(content.len(), 1)?;
        Ok(Self::Texts(ends, content))
    }

    fn arrays(bytes: &mut Bytes<'a>, count: usize) -> Read<Self> {
        // Each array takes at least one byte for its number of dimensions and four bytes for a
        // length.
        if count > bytes.left() / 5 {
            return Err(
                bytes.malformed(format!("{count} arrays do not fit in {} bytes", bytes.left()))
            );
        }
        bytes.reserve(count, size_of::<(&[u8], &[u8])>())?;
        let mut arrays = Vec::with_capacity(count);
        for _ in 0..count {
            let dimensions = bytes.byte("dimensions")?;
            if dimensions == 0 || dimensions > MAX_DIMENSIONS {
                return Err(bytes.malformed(format!(
                    "invalid array with {dimensions} dimensions, expected 1 to 32"
                )));
            }
            let shape = bytes.take(usize::from(dimensions) * size_of::<i32>(), "lengths")?;
            let mut product = Some(1_usize);
            for length in shape.as_chunks().0 {
                let length = usize::try_from(i32::from_le_bytes(*length));
                product = length.ok().and_then(|length| product?.checked_mul(length));
            }
            let Some(elements) = product else {
                return Err(bytes.malformed("array lengths are negative or too large"));
            };
            let lengths = shape.as_chunks().0.iter();
            if !is_allowed(lengths.map(|length| u64::from(u32::from_le_bytes(*length)))) {
                return Err(bytes
                    .malformed("an array has too many elements, or too many empty nested arrays"));
            }
            let content = bytes.take_values(elements, size_of::<f64>())?;
            bytes.reserve(content.len(), 2)?;
            arrays.push((shape, content));
        }
        Ok(Self::Arrays(arrays))
    }
}

/// Reads dictionary ids. Fails if an id does not exist.
fn entries(bytes: &mut Bytes<'_>, count: usize, known: usize) -> Read<Vec<u32>> {
    if count > bytes.left() {
        return Err(
            bytes.malformed(format!("{count} symbols do not fit in {} bytes", bytes.left()))
        );
    }
    let mut found = Vec::with_capacity(count);
    for _ in 0..count {
        let entry = bytes.varint("symbol")?;
        if entry >= known as u64 {
            return Err(bytes.malformed(format!(
                "symbol {entry} does not exist: the dictionary has {known} entries"
            )));
        }
        found.push(entry as u32);
    }
    Ok(found)
}
