//! Log encoding of a transaction.

use arrow_buffer::Buffer;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::log::codec::{Decoder, Encoder};
use crate::mutation::convert::ConvertOp;
use crate::mutation::delete::DeleteOp;
use crate::mutation::retire::{PartitionAction, PartitionsOp};
use crate::mutation::skip::SkipOp;
use crate::mutation::update::{UpdateOp, UpdatedCells};
use crate::segment::SegmentMeta;
use crate::segment::block::{Body, assemble, bodies_of};
use crate::segment::cell_layout::Layout;
use crate::segment::column::ColumnData;
use crate::state::op::{Adopt, Append, Op};
use crate::table::schema::TableId;
use crate::table::symbols::NewSymbols;

const CREATE_TABLE: u8 = 1;
const DROP_TABLE: u8 = 2;
const REPLACE_SCHEMA: u8 = 3;
const TRUNCATE: u8 = 4;
const APPEND: u8 = 5;
const ADOPT: u8 = 6;
const PUT_RECORD: u8 = 7;
const DELETE_RECORD: u8 = 8;
const PARTITIONS: u8 = 9;
const UPDATE: u8 = 10;
const CONVERT: u8 = 11;
const SKIP: u8 = 12;
const DELETE: u8 = 13;
const WATCH: u8 = 14;
const FOLLOW: u8 = 15;

/// Writes one step. `forget_symbols` injects a fault for the crash tests.
pub(crate) fn encode_op(op: &Op, out: &mut Encoder, forget_symbols: bool) -> EngineResult<()> {
    match op {
        Op::CreateTable(schema) => {
            out.u8(CREATE_TABLE);
            out.json(schema)?;
        }
        Op::DropTable(id) => encode_table(DROP_TABLE, *id, out),
        Op::ReplaceSchema(schema) => {
            out.u8(REPLACE_SCHEMA);
            out.json(schema)?;
        }
        Op::Truncate(id) => encode_table(TRUNCATE, *id, out),
        Op::Append(append) => {
            out.u8(APPEND);
            out.u64(append.table);
            encode_symbols(if forget_symbols { &[] } else { &append.symbols }, out);
            out.u64(append.rows as u64);
            out.u32(append.columns.len() as u32);
            // Reserves up front, because every growth copies the buffer.
            out.bytes.reserve(append.columns.iter().map(|(.., cells)| cells.byte_size()).sum());
            for (id, sql_type, cells) in &append.columns {
                encode_column(*id, *sql_type, cells, out)?;
            }
        }
        Op::Adopt(adopt) => {
            out.u8(ADOPT);
            out.u64(adopt.table);
            encode_symbols(&adopt.symbols, out);
            out.u8(u8::from(adopt.synced));
            out.u32(adopt.segments.len() as u32);
            for (floor, meta) in &adopt.segments {
                out.i64(*floor);
                meta.encode(out);
            }
        }
        Op::PutRecord { kind, key, value } => {
            out.u8(PUT_RECORD);
            out.text(kind);
            out.text(key);
            out.blob(value);
        }
        Op::DeleteRecord { kind, key } => {
            out.u8(DELETE_RECORD);
            out.text(kind);
            out.text(key);
        }
        Op::Partitions(op) => encode_partitions(op, out),
        Op::Update(update) => encode_update(update, out)?,
        Op::Convert(convert) => encode_convert(convert, out),
        Op::Skip(skip) => {
            out.u8(SKIP);
            out.u64(skip.table);
            out.u32(skip.segments.len() as u32);
            skip.segments.iter().for_each(|name| out.text(name));
        }
        Op::Delete(delete) => encode_delete(delete, out),
        Op::Watch { table, through } => {
            out.u8(WATCH);
            out.u64(*table);
            out.u64(*through);
        }
        Op::Follow { table } => encode_table(FOLLOW, *table, out),
    }
    Ok(())
}

/// Encodes a step that consists of a table identifier only.
fn encode_table(kind: u8, table: TableId, out: &mut Encoder) {
    out.u8(kind);
    out.u64(table);
}

fn encode_partitions(op: &PartitionsOp, out: &mut Encoder) {
    out.u8(PARTITIONS);
    out.u64(op.table);
    out.u8(op.action.code());
    out.u32(op.floors.len() as u32);
    op.floors.iter().for_each(|floor| out.i64(*floor));
}

fn encode_delete(delete: &DeleteOp, out: &mut Encoder) {
    out.u8(DELETE);
    out.u64(delete.table);
    out.u32(delete.partitions.len() as u32);
    for (floor, rows) in &delete.partitions {
        out.i64(*floor);
        encode_row_ranges(rows, out);
    }
}

fn decode_delete(input: &mut Decoder<'_>) -> EngineResult<DeleteOp> {
    let table = input.u64()?;
    let mut partitions = Vec::new();
    for _ in 0..input.u32()? {
        partitions.push((input.i64()?, decode_row_ranges(input)?));
    }
    Ok(DeleteOp { table, partitions })
}

/// Encodes ranges of a partition's rows: first row, number of rows.
fn encode_row_ranges(rows: &[(u64, u64)], out: &mut Encoder) {
    out.u32(rows.len() as u32);
    for (start, len) in rows {
        out.u64(*start);
        out.u64(*len);
    }
}

fn decode_row_ranges(input: &mut Decoder<'_>) -> EngineResult<Vec<(u64, u64)>> {
    let count = input.u32()?;
    (0..count).map(|_| Ok((input.u64()?, input.u64()?))).collect()
}

fn encode_convert(convert: &ConvertOp, out: &mut Encoder) {
    out.u8(CONVERT);
    out.u64(convert.table);
    out.u32(convert.partitions.len() as u32);
    for (floor, segments) in &convert.partitions {
        out.i64(*floor);
        out.u32(segments.len() as u32);
        for meta in segments {
            meta.encode(out);
        }
    }
}

fn decode_convert(input: &mut Decoder<'_>) -> EngineResult<ConvertOp> {
    let table = input.u64()?;
    let mut partitions = Vec::new();
    for _ in 0..input.u32()? {
        let (floor, count) = (input.i64()?, input.u32()?);
        let segments = (0..count).map(|_| SegmentMeta::decode(input)).collect::<Result<_, _>>()?;
        partitions.push((floor, segments));
    }
    Ok(ConvertOp { table, partitions })
}

fn encode_update(update: &UpdateOp, out: &mut Encoder) -> EngineResult<()> {
    out.u8(UPDATE);
    out.u64(update.table);
    encode_symbols(&update.symbols, out);
    out.u32(update.partitions.len() as u32);
    for partition in &update.partitions {
        out.i64(partition.floor);
        encode_row_ranges(&partition.rows, out);
        out.u32(partition.columns.len() as u32);
        for (id, sql_type, cells) in &partition.columns {
            encode_column(*id, *sql_type, cells, out)?;
        }
    }
    Ok(())
}

fn decode_update(input: &mut Decoder<'_>) -> EngineResult<UpdateOp> {
    let table = input.u64()?;
    let symbols = decode_symbols(input)?;
    let mut partitions = Vec::new();
    for _ in 0..input.u32()? {
        let floor = input.i64()?;
        let rows = decode_row_ranges(input)?;
        let mut partition = UpdatedCells { floor, rows, columns: Vec::new() };
        let rows = partition.row_count();
        for _ in 0..input.u32()? {
            partition.columns.push(decode_column(input, rows)?);
        }
        partitions.push(partition);
    }
    Ok(UpdateOp { table, symbols, partitions })
}

/// Reads all steps of a transaction.
pub(crate) fn decode_ops(bytes: &[u8]) -> EngineResult<Vec<Op>> {
    let mut input = Decoder::new(bytes);
    let mut ops = Vec::new();
    while !input.is_empty() {
        ops.push(decode_op(&mut input)?);
    }
    Ok(ops)
}

fn decode_op(input: &mut Decoder<'_>) -> EngineResult<Op> {
    Ok(match input.u8()? {
        CREATE_TABLE => Op::CreateTable(input.json()?),
        DROP_TABLE => Op::DropTable(input.u64()?),
        REPLACE_SCHEMA => Op::ReplaceSchema(input.json()?),
        TRUNCATE => Op::Truncate(input.u64()?),
        APPEND => {
            let table = input.u64()?;
            let symbols = decode_symbols(input)?;
            let rows = input.u64()? as usize;
            let count = input.u32()?;
            let columns = (0..count).map(|_| decode_column(input, rows)).collect::<Result<_, _>>();
            Op::Append(Append { table, symbols, rows, columns: columns? })
        }
        ADOPT => {
            let table = input.u64()?;
            let symbols = decode_symbols(input)?;
            let synced = input.u8()? != 0;
            let count = input.u32()?;
            let mut segments = Vec::new();
            for _ in 0..count {
                segments.push((input.i64()?, SegmentMeta::decode(input)?));
            }
            Op::Adopt(Adopt { table, symbols, synced, segments })
        }
        PUT_RECORD => Op::PutRecord {
            kind: input.text()?.to_owned(),
            key: input.text()?.to_owned(),
            value: input.blob()?.to_vec(),
        },
        DELETE_RECORD => {
            Op::DeleteRecord { kind: input.text()?.to_owned(), key: input.text()?.to_owned() }
        }
        PARTITIONS => {
            let (table, action) = (input.u64()?, PartitionAction::from_code(input.u8()?)?);
            let count = input.u32()?;
            let floors = (0..count).map(|_| input.i64()).collect::<Result<_, _>>();
            Op::Partitions(PartitionsOp { table, action, floors: floors? })
        }
        UPDATE => Op::Update(decode_update(input)?),
        CONVERT => Op::Convert(decode_convert(input)?),
        SKIP => {
            let (table, count) = (input.u64()?, input.u32()?);
            let names = (0..count).map(|_| input.text().map(str::to_owned));
            Op::Skip(SkipOp { table, segments: names.collect::<Result<_, _>>()? })
        }
        DELETE => Op::Delete(decode_delete(input)?),
        WATCH => Op::Watch { table: input.u64()?, through: input.u64()? },
        FOLLOW => Op::Follow { table: input.u64()? },
        other => {
            let message = format!("unknown kind of log record: {other}");
            return Err(EngineError::new(ErrorCode::Damaged, message));
        }
    })
}

fn encode_symbols(symbols: &[NewSymbols], out: &mut Encoder) {
    out.u32(symbols.len() as u32);
    for new in symbols {
        out.u32(new.column);
        out.u32(new.first_key);
        out.u32(new.texts.len() as u32);
        for text in &new.texts {
            out.text(text);
        }
    }
}

fn decode_symbols(input: &mut Decoder<'_>) -> EngineResult<Vec<NewSymbols>> {
    let mut symbols = Vec::new();
    for _ in 0..input.u32()? {
        let (column, first_key, count) = (input.u32()?, input.u32()?, input.u32()?);
        let texts = (0..count).map(|_| input.text().map(str::to_owned)).collect::<Result<_, _>>();
        symbols.push(NewSymbols { column, first_key, texts: texts? });
    }
    Ok(symbols)
}

fn encode_column(
    id: u32,
    sql_type: SqlType,
    cells: &ColumnData,
    out: &mut Encoder,
) -> EngineResult<()> {
    out.u32(id);
    out.json(&sql_type)?;
    let partitions = bodies_of(sql_type, cells)?;
    match partitions.validity {
        Some(bits) => {
            out.u8(1);
            out.blob(&bits.sliced());
        }
        None => out.u8(0),
    }
    match partitions.body {
        Body::Bits(bits) => out.blob(&bits.sliced()),
        Body::Fixed(values) => out.blob(&values),
        Body::Text { views, bytes } => {
            out.blob(&Buffer::from_vec(views));
            out.blob(&bytes);
        }
        Body::Bytes { offsets, bytes } => {
            out.blob(&Buffer::from_vec(offsets));
            out.blob(&bytes);
        }
        Body::Arrays(partitions) => {
            out.blob(&Buffer::from_vec(partitions.shapes));
            out.blob(&Buffer::from_vec(partitions.offsets));
            out.blob(&Buffer::from_vec(partitions.values));
        }
    }
    Ok(())
}

fn decode_column(input: &mut Decoder<'_>, rows: usize) -> EngineResult<(u32, SqlType, ColumnData)> {
    let (id, sql_type) = (input.u32()?, input.json()?);
    // `Buffer::from` copies into memory that is aligned for any Arrow type.
    let validity = match input.u8()? {
        0 => None,
        _ => Some(Buffer::from(input.blob()?)),
    };
    let bodies = 0..Layout::of(sql_type)?.bodies();
    let bodies: Vec<Buffer> =
        bodies.map(|_| input.blob().map(Buffer::from)).collect::<Result<_, _>>()?;
    Ok((id, sql_type, assemble(sql_type, rows, validity, bodies)?))
}
