//! Converts border types to types of the other crates.

use tidemark_border::{ColumnSource, ParquetOptions, ResultColumn, RowFormat};
use tidemark_catalog::Owner;
use tidemark_planner::Access;
use tidemark_types::{
    CatalogType, EngineError, EngineResult, ErrorCode, Field, PartitionBy, SourceColumn, SqlType,
};
use tidemark_wire::{Codec, QwpOptions};

/// Converts a row format to the encoder's type.
pub(crate) fn row_format(of: RowFormat) -> EngineResult<tidemark_wire::RowFormat> {
    use tidemark_wire::RowFormat as Wire;
    Ok(match of {
        RowFormat::Json { quote_large_numbers, columns } => {
            Wire::Json { quote_large_numbers, columns }
        }
        RowFormat::Csv { delimiter, header } => {
            let delimiter = delimiter.unwrap_or(',');
            let delimiter = u8::try_from(delimiter).map_err(|_| {
                EngineError::new(
                    ErrorCode::InvalidValue,
                    format!("invalid delimiter '{delimiter}': expected one ASCII character"),
                )
            })?;
            Wire::Csv { delimiter, header }
        }
        RowFormat::Pg { format_codes, nanoseconds } => Wire::Pg { format_codes, nanoseconds },
        RowFormat::Qwp { max_rows, max_bytes, zstd_level } => {
            let (max_rows, max_bytes) = (max_rows.max(1), max_bytes.max(1));
            Wire::Qwp(QwpOptions { max_rows, max_bytes, zstd_level })
        }
        RowFormat::Parquet { options } => Wire::Parquet(parquet_options(options)?),
        RowFormat::Arrow => Wire::Arrow,
    })
}

fn parquet_options(of: ParquetOptions) -> EngineResult<tidemark_wire::ParquetOptions> {
    let defaults = tidemark_wire::ParquetOptions::default();
    Ok(tidemark_wire::ParquetOptions {
        codec: match of.compression_codec {
            None => defaults.codec,
            Some(name) => parse_codec(&name)?,
        },
        level: of.compression_level.or(defaults.level),
        row_group_rows: of.row_group_size.unwrap_or(defaults.row_group_rows),
        data_page_bytes: of.data_page_size.unwrap_or(defaults.data_page_bytes),
        statistics: of.statistics_enabled.unwrap_or(defaults.statistics),
        version: of.parquet_version.unwrap_or(defaults.version),
        raw_arrays: of.raw_array_encoding.unwrap_or(defaults.raw_arrays),
        partition_by: match of.partition_by {
            None => defaults.partition_by,
            Some(name) => parse_partition(&name)?,
        },
    })
}

fn parse_partition(name: &str) -> EngineResult<PartitionBy> {
    PartitionBy::parse(name).ok_or_else(|| {
        EngineError::new(ErrorCode::InvalidValue, format!("invalid partition_by: {name}"))
    })
}

fn parse_codec(name: &str) -> EngineResult<Codec> {
    Ok(match name.to_ascii_uppercase().as_str() {
        "UNCOMPRESSED" => Codec::Uncompressed,
        "SNAPPY" => Codec::Snappy,
        "GZIP" => Codec::Gzip,
        "LZ4" => Codec::Lz4Hadoop,
        "LZ4_RAW" => Codec::Lz4Raw,
        "ZSTD" => Codec::Zstd,
        "BROTLI" => Codec::Brotli,
        _ => {
            let message = format!("invalid compression codec[{name}]");
            return Err(EngineError::new(ErrorCode::InvalidValue, message));
        }
    })
}

pub(crate) fn result_column(field: &Field) -> ResultColumn {
    let (type_name, dimensions) = match field.sql_type {
        SqlType::DoubleArray(dimensions) => ("ARRAY".to_owned(), dimensions),
        other => (other.name(), 0),
    };
    let oid = field.catalog_type.map(CatalogType::oid);
    let source = |of: SourceColumn| {
        let SourceColumn { table, number, modifier } = of;
        ColumnSource { table, number, modifier }
    };
    let source = field.source.map(source);
    ResultColumn { name: field.name.clone(), type_name, dimensions, oid, source }
}

/// Converts an access. `timestamp` is the table's designated timestamp, for users with restricted
/// visibility.
pub(crate) fn described(access: &Access, timestamp: Option<String>) -> tidemark_border::Access {
    let owner =
        |Owner { name, id }: &Owner| tidemark_border::Owner { name: name.clone(), id: id.clone() };
    tidemark_border::Access {
        table: access.table.clone(),
        columns: access.columns.clone(),
        permission: access.permission,
        view: access.view.clone(),
        owner: access.owner.as_ref().map(owner),
        timestamp,
    }
}
