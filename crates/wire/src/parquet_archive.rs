//! Rows partitioned by time: one Parquet file per partition, in directories with the usual Hive
//! names (`year=2026/month=01/rows.parquet`), all in one ZIP archive.
//!
//! Rows arrive in timestamp order, so only one file is open at a time. If a partition recurs,
//! another file is written for it.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampMicrosecondType, TimestampNanosecondType};
use arrow_array::{Array, RecordBatch};
use tidemark_types::calendar::{CivilDate, MICROS_PER_DAY, MICROS_PER_HOUR};
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, PartitionBy};

use crate::parquet_file::{ParquetFile, ParquetOptions};
use crate::zip::ZipStream;

/// Directory name for rows without a timestamp.
const NO_PARTITION: &str = "__HIVE_DEFAULT_PARTITION__";

/// Writes the archive of one result.
#[derive(Debug)]
pub(crate) struct ParquetArchive {
    fields: Vec<Field>,
    timestamp: usize,
    options: ParquetOptions,
    archive: ZipStream,
    /// The open file and the partition that the file belongs to. The partition comes first.
    open: Option<(Option<i64>, ParquetFile)>,
    /// Number of files per partition so far.
    files: HashMap<Option<i64>, u32>,
    /// The open file's encoded bytes, which are moved into the archive.
    bytes: Vec<u8>,
}

impl ParquetArchive {
    /// Fails if the result has no designated timestamp.
    pub(crate) fn new(
        fields: &[Field],
        timestamp: Option<usize>,
        options: ParquetOptions,
    ) -> EngineResult<Self> {
        let timestamp = timestamp.ok_or_else(|| {
            let message = "partition_by requires a query ordered by its designated timestamp";
            EngineError::new(ErrorCode::InvalidValue, message)
                .with_hint("use partition_by=NONE, or add ORDER BY and timestamp() to the query")
        })?;
        // Invalid options are reported before the first row.
        ParquetFile::new(fields, Some(timestamp), &options)?;
        Ok(Self {
            fields: fields.to_vec(),
            timestamp,
            options,
            archive: ZipStream::default(),
            open: None,
            files: HashMap::new(),
            bytes: Vec::new(),
        })
    }

    pub(crate) fn encode(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> EngineResult<()> {
        let unit = self.options.partition_by;
        let partitions = partitions_of(unit, batch, self.timestamp)?;
        let mut from = 0;
        while let Some(&partition) = partitions.get(from) {
            let same = partitions[from..].iter().take_while(|one| **one == partition).count();
            self.write(partition, &batch.slice(from, same), out)?;
            from += same;
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> EngineResult<()> {
        self.end_file(out)?;
        self.archive.finish(out);
        Ok(())
    }

    fn write(
        &mut self,
        partition: Option<i64>,
        rows: &RecordBatch,
        out: &mut Vec<u8>,
    ) -> EngineResult<()> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != partition) {
            self.end_file(out)?;
            let number = self.files.entry(partition).or_default();
            *number += 1;
            self.archive.begin(path(self.options.partition_by, partition, *number), out);
            let file = ParquetFile::new(&self.fields, Some(self.timestamp), &self.options)?;
            self.open = Some((partition, file));
        }
        if let Some((_, file)) = &mut self.open {
            self.bytes.clear();
            file.encode(rows, &mut self.bytes)?;
            self.archive.write(&self.bytes, out);
        }
        Ok(())
    }

    fn end_file(&mut self, out: &mut Vec<u8>) -> EngineResult<()> {
        if let Some((_, mut file)) = self.open.take() {
            self.bytes.clear();
            file.finish(&mut self.bytes)?;
            self.archive.write(&self.bytes, out);
            self.archive.end(out);
        }
        Ok(())
    }
}

/// Returns the first microsecond of each row's partition; `None` for a row without a timestamp.
fn partitions_of(
    unit: PartitionBy,
    batch: &RecordBatch,
    timestamp: usize,
) -> EngineResult<Vec<Option<i64>>> {
    let array = batch.column(timestamp);
    let floor = |micros: i64| unit.floor(micros);
    if let Some(micros) = array.as_primitive_opt::<TimestampMicrosecondType>() {
        return Ok(micros.iter().map(|value| value.map(floor)).collect());
    }
    let nanos = array.as_primitive_opt::<TimestampNanosecondType>().ok_or_else(|| {
        EngineError::internal(format!("the designated timestamp has type {}", array.data_type()))
    })?;
    Ok(nanos.iter().map(|value| value.map(|nanos| floor(nanos.div_euclid(1_000)))).collect())
}

/// Returns the path of the file in the archive.
fn path(unit: PartitionBy, partition: Option<i64>, number: u32) -> String {
    let file = if number == 1 { "rows.parquet".into() } else { format!("rows-{number}.parquet") };
    let Some(floor) = partition else { return format!("year={NO_PARTITION}/{file}") };
    let CivilDate { year, month, day } = CivilDate::from_micros(floor);
    let directory = match unit {
        PartitionBy::None => return file,
        PartitionBy::Year => format!("year={year:04}"),
        PartitionBy::Month => format!("year={year:04}/month={month:02}"),
        PartitionBy::Week => format!("week={}", unit.directory_name(floor)),
        PartitionBy::Day => format!("year={year:04}/month={month:02}/day={day:02}"),
        PartitionBy::Hour => {
            let hour = floor.rem_euclid(MICROS_PER_DAY) / MICROS_PER_HOUR;
            format!("year={year:04}/month={month:02}/day={day:02}/hour={hour:02}")
        }
    };
    format!("{directory}/{file}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_named_after_their_partition() {
        // 2026-01-31T10:11:12
        let at = 1_769_854_272_000_000;
        let of = |unit: PartitionBy, number| path(unit, Some(unit.floor(at)), number);
        assert_eq!(of(PartitionBy::Year, 1), "year=2026/rows.parquet");
        assert_eq!(of(PartitionBy::Month, 2), "year=2026/month=01/rows-2.parquet");
        assert_eq!(of(PartitionBy::Week, 1), "week=2026-W05/rows.parquet");
        assert_eq!(of(PartitionBy::Day, 1), "year=2026/month=01/day=31/rows.parquet");
        assert_eq!(of(PartitionBy::Hour, 1), "year=2026/month=01/day=31/hour=10/rows.parquet");
        let none = path(PartitionBy::Day, None, 1);
        assert_eq!(none, "year=__HIVE_DEFAULT_PARTITION__/rows.parquet");
    }
}
