//! The manifest records the content of the database at one transaction. A base lists everything; an
//! edit lists the changes since its parent. Manifest files are never modified. `CURRENT` names the
//! newest manifest and is replaced only by renaming.

use std::collections::HashMap;
use std::sync::Arc;

use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tidemark_vfs::{OpenMode, Vfs};

use crate::disk::Disk;
use crate::disk::file::{StoredFile, read_known, sync_dir, write_new};
use crate::disk::layout::{
    CURRENT, CURRENT_TMP, DB, MANIFEST_MAGIC, damaged, manifest, manifest_number, symbols_name,
    table_dir,
};
use crate::log::codec::{Decoder, Encoder};
use crate::mutation::delete::read_dead_rows;
use crate::segment::{Segment, SegmentMeta};
use crate::snapshot::{Snapshot, put_table, table_of};
use crate::state::context::head_of;
use crate::table::partition::Partition;
use crate::table::schema::{TableId, TableSchema};
use crate::table::symbols::{SymbolDictionary, SymbolFile};
use crate::table::{PartitionMap, TableSnapshot};

const TABLE: u8 = 1;
const TABLE_DROPPED: u8 = 2;
const PARTITION: u8 = 3;
const PUT_RECORD: u8 = 4;
const DELETE_RECORD: u8 = 5;
const DETACHED: u8 = 6;
const PREVIOUS: u8 = 7;
const DEAD_ROWS: u8 = 8;

/// Number of edits after which the next manifest is a base.
const MAX_EDITS: usize = 16;

/// Dictionary files by table and column.
pub(crate) type SymbolFiles = HashMap<(TableId, u32), Vec<SymbolFile>>;

/// A manifest and its content.
#[derive(Debug, Default)]
pub(crate) struct Manifested {
    /// Manifest numbers: base first, newest last.
    pub(crate) chain: Vec<u64>,
    base_bytes: usize,
    edit_bytes: usize,
    pub(crate) snapshot: Snapshot,
    /// The log file where replay starts.
    pub(crate) first_log: u64,
    /// All segment and dictionary files have smaller numbers.
    pub(crate) next_file: u64,
    /// Files that only the previous generation needs, relative to the tables' directory.
    pub(crate) retained_files: Vec<String>,
}

/// The current manifest and the previous one. If a file of the current manifest is damaged, the
/// previous manifest and its log yield the same state. The two do not share any files, so a single
/// damaged file cannot affect both. For this reason, an edit's parent is the manifest two before
/// it.
#[derive(Debug)]
pub(crate) struct Generations {
    pub(crate) current: Manifested,
    /// Retained until the next manifest becomes current. After startup, only the files of the
    /// previous generation are known, so the next manifest is a base.
    pub(crate) previous: Option<Previous>,
    next_number: u64,
    /// Number of retained generations: 1 or 2.
    retained_count: u32,
}

/// The previous generation.
#[derive(Debug)]
pub(crate) struct Previous {
    pub(crate) chain: Vec<u64>,
    pub(crate) first_log: u64,
    /// The manifest's content, needed to write an edit based on it.
    content: Option<Manifested>,
}

impl Previous {
    /// Whether any of the generation's files exists. A copied root contains only the current
    /// generation.
    pub(crate) fn is_there(&self, manifests: &[u64]) -> bool {
        self.chain.iter().any(|number| manifests.contains(number))
    }
}

impl Generations {
    pub(crate) fn fresh(keep: u32) -> Self {
        let snapshot = Snapshot { next_table: 1, ..Snapshot::default() };
        let current = Manifested { snapshot, first_log: 1, next_file: 1, ..Manifested::default() };
        Self { current, previous: None, next_number: 1, retained_count: keep.clamp(1, 2) }
    }

    /// The log file where replay of the oldest generation starts.
    pub(crate) fn first_log(&self) -> u64 {
        let previous = self.previous.as_ref().map(|previous| previous.first_log);
        previous.unwrap_or(self.current.first_log).min(self.current.first_log)
    }

    /// Whether a manifest belongs to a retained generation.
    pub(crate) fn needs(&self, number: u64) -> bool {
        let previous = self.previous.iter().flat_map(|previous| &previous.chain);
        self.current.chain.iter().chain(previous).any(|retained| *retained == number)
    }

    /// The newest manifest of each generation.
    pub(crate) fn newest(&self) -> impl Iterator<Item = u64> {
        let previous = self.previous.as_ref().and_then(|previous| previous.chain.last());
        self.current.chain.last().into_iter().chain(previous).copied()
    }

    /// The next manifest's parent, if the next manifest is an edit.
    fn parent(&self) -> Option<&Manifested> {
        let parent = if self.retained_count == 1 {
            Some(&self.current)
        } else {
            self.previous.as_ref().and_then(|previous| previous.content.as_ref())
        };
        parent.filter(|parent| {
            (1..=MAX_EDITS).contains(&parent.chain.len())
                && parent.edit_bytes <= parent.base_bytes / 2 + (64 << 10)
        })
    }

    /// Writes the next manifest and the pointer to it. Both are then durable, but not active yet.
    /// `retained_files` lists files that the current manifest needs but the new manifest does not
    /// list. It is `None` if the current manifest cannot serve as a fallback and is removed.
    pub(crate) fn write_next(
        &self,
        vfs: &dyn Vfs,
        snapshot: Snapshot,
        symbol_files: &SymbolFiles,
        (first_log, next_file): (u64, u64),
        retained: Option<Vec<String>>,
    ) -> EngineResult<NextManifest> {
        let number = self.next_number;
        let parent = self.parent();
        let none = Snapshot::default();
        let old = parent.map_or(&none, |parent| &parent.snapshot);
        let mut body = encode_body(old, &snapshot, symbol_files)?;
        let keeps = self.retained_count > 1 && !self.current.chain.is_empty() && retained.is_some();
        let retained = retained.unwrap_or_default();
        let mut next = Manifested {
            snapshot,
            first_log,
            next_file,
            retained_files: retained,
            ..Manifested::default()
        };
        if keeps {
            encode_previous(&self.current, &next.retained_files, &mut body);
        }
        let mut out = Encoder { bytes: MANIFEST_MAGIC.to_vec() };
        out.u64(number);
        out.u64(parent.and_then(|parent| parent.chain.last().copied()).unwrap_or(0));
        out.u64(next.snapshot.lsn + 1);
        out.u64(first_log);
        out.u64(next.snapshot.next_table);
        out.u64(next_file);
        out.blob(&body.bytes);
        out.u32(crc32c::crc32c(&out.bytes));
        write_new(vfs, &manifest(number), &out.bytes)?;
        // The manifest's name is durable before the pointer is written, and the pointer's content
        // is durable before the pointer is renamed.
        write_pointer(vfs, number)?;
        next.chain = parent.map(|parent| parent.chain.clone()).unwrap_or_default();
        next.chain.push(number);
        (next.base_bytes, next.edit_bytes) = match parent {
            None => (out.bytes.len(), 0),
            Some(parent) => (parent.base_bytes, parent.edit_bytes + out.bytes.len()),
        };
        Ok(NextManifest { manifested: next, keeps_previous: keeps })
    }

    /// Makes the next manifest current. After an error, it is unknown which manifest is current.
    /// Returns the numbers of manifests that are no longer needed by any generation.
    pub(crate) fn switch(&mut self, vfs: &dyn Vfs, next: NextManifest) -> EngineResult<Vec<u64>> {
        use_pointer(vfs)?;
        let NextManifest { manifested: next, keeps_previous: keeps } = next;
        let previous = self.previous.take().map(|previous| previous.chain).unwrap_or_default();
        let old = std::mem::replace(&mut self.current, next);
        let mut known = previous;
        known.extend(&old.chain);
        if keeps {
            let (chain, first_log) = (old.chain.clone(), old.first_log);
            self.previous = Some(Previous { chain, first_log, content: Some(old) });
        }
        self.next_number += 1;
        known.retain(|number| !self.needs(*number));
        Ok(known)
    }
}

fn encode_previous(previous: &Manifested, retained: &[String], out: &mut Encoder) {
    out.u8(PREVIOUS);
    out.u64(previous.first_log);
    out.u32(previous.chain.len() as u32);
    for number in &previous.chain {
        out.u64(*number);
    }
    out.u32(retained.len() as u32);
    for file in retained {
        out.text(file);
    }
}

fn write_pointer(vfs: &dyn Vfs, number: u64) -> EngineResult<()> {
    let line = format!("manifest.{number}");
    let line = format!("{line} {:08x}\n", crc32c::crc32c(line.as_bytes()));
    write_new(vfs, CURRENT_TMP, line.as_bytes())?;
    sync_dir(vfs, DB)
}

fn use_pointer(vfs: &dyn Vfs) -> EngineResult<()> {
    vfs.rename(CURRENT_TMP, CURRENT).map_err(|error| EngineError::io(CURRENT, &error))?;
    sync_dir(vfs, DB)
}

/// A manifest that is ready to become current.
#[derive(Debug)]
pub(crate) struct NextManifest {
    manifested: Manifested,
    /// Whether the current manifest is retained as the previous generation.
    keeps_previous: bool,
}

/// The generations found at startup.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) generations: Generations,
    /// Why the manifest that `CURRENT` names was not used; `None` if it was used.
    pub(crate) fallen_back: Option<EngineError>,
}

/// Reads the manifest that `CURRENT` names, with its parents. If one of these files is damaged, the
/// newest intact manifest replaces it. `complete` reports whether all files of a manifest exist; a
/// manifest that was never current may lack some.
pub(crate) fn load(
    vfs: &Arc<Disk>,
    keep: u32,
    complete: impl Fn(&Snapshot) -> bool,
) -> EngineResult<Loaded> {
    let numbers = manifest_numbers(vfs.system())?;
    let next_number = numbers.last().copied().unwrap_or(0) + 1;
    let ready = |(current, previous): (Manifested, Option<Previous>), fallen_back| {
        let previous = previous.filter(|previous| keep > 1 && previous.is_there(&numbers));
        let generations =
            Generations { current, previous, next_number, retained_count: keep.clamp(1, 2) };
        Loaded { generations, fallen_back }
    };
    let error = match read_current(vfs.system()).and_then(|number| load_chain(vfs, number)) {
        Ok(loaded) => return Ok(ready(loaded, None)),
        Err(error) if error.code == ErrorCode::Damaged => error,
        Err(error) => return Err(error),
    };
    let mut incomplete = None;
    for &number in numbers.iter().rev() {
        match load_chain(vfs, number) {
            Ok(loaded) if complete(&loaded.0.snapshot) => {
                repoint(vfs.system(), number)?;
                return Ok(ready((loaded.0, None), Some(error)));
            }
            Ok(loaded) => incomplete = incomplete.or(Some((number, loaded.0))),
            Err(other) if other.code == ErrorCode::Damaged => {}
            Err(other) => return Err(other),
        }
    }
    let Some((number, loaded)) = incomplete else { return Err(error) };
    repoint(vfs.system(), number)?;
    Ok(ready((loaded, None), Some(error)))
}

/// Makes `CURRENT` name an existing manifest, even one that may never have been synced.
fn repoint(vfs: &dyn Vfs, number: u64) -> EngineResult<()> {
    let path = manifest(number);
    let file = vfs.open(&path, OpenMode::Write);
    file.and_then(|file| file.sync()).map_err(|error| EngineError::io(&path, &error))?;
    write_pointer(vfs, number)?;
    use_pointer(vfs)
}

pub(crate) fn manifest_numbers(vfs: &dyn Vfs) -> EngineResult<Vec<u64>> {
    let entries = vfs.list(DB).map_err(|error| EngineError::io(DB, &error))?;
    let mut numbers: Vec<u64> =
        entries.iter().filter_map(|entry| manifest_number(&entry.name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Reads a manifest with its parents.
pub(crate) fn load_chain(
    vfs: &Arc<Disk>,
    number: u64,
) -> EngineResult<(Manifested, Option<Previous>)> {
    let mut next = number;
    let mut files = Vec::new();
    while next != 0 {
        let path = manifest(next);
        let bytes = read_known(vfs.system(), &path)?;
        let parent = check(&bytes, next).map_err(|error| damaged(&path, error.reason()))?;
        if parent != 0 && parent >= next {
            return Err(damaged(&path, "its parent manifest is newer"));
        }
        files.push((next, bytes));
        next = parent;
    }
    files.reverse();
    let mut loaded = Generations::fresh(1).current;
    let mut previous = None;
    for (number, bytes) in &files {
        let path = manifest(*number);
        previous =
            read_one(vfs, &mut loaded, bytes).map_err(|error| damaged(&path, error.reason()))?;
        let size =
            if loaded.chain.is_empty() { &mut loaded.base_bytes } else { &mut loaded.edit_bytes };
        *size += bytes.len();
        loaded.chain.push(*number);
    }
    Ok((loaded, previous))
}

pub(crate) fn read_current(vfs: &dyn Vfs) -> EngineResult<u64> {
    let bytes = read_known(vfs, CURRENT)?;
    let parsed = || {
        let text = std::str::from_utf8(&bytes).ok()?;
        let (name, crc) = text.strip_suffix('\n')?.split_once(' ')?;
        let number: u64 = name.strip_prefix("manifest.")?.parse().ok()?;
        // Compares the checksum as a string rather than a number, so that a change to any bit of
        // the string is detected.
        let expected = format!("{:08x}", crc32c::crc32c(name.as_bytes()));
        (expected == crc && number > 0).then_some(number)
    };
    parsed().ok_or_else(|| damaged(CURRENT, "it does not name a manifest"))
}

/// Verifies the checksum and returns the parent's number.
fn check(bytes: &[u8], number: u64) -> EngineResult<u64> {
    let (covered, crc) = bytes
        .split_last_chunk::<4>()
        .ok_or_else(|| EngineError::internal("unexpected end of data"))?;
    if crc32c::crc32c(covered) != u32::from_le_bytes(*crc) {
        return Err(EngineError::internal("checksum mismatch"));
    }
    let mut input = Decoder::new(covered);
    if input.take(8)? != MANIFEST_MAGIC || input.u64()? != number {
        return Err(EngineError::internal("its header does not match this manifest"));
    }
    input.u64()
}

/// Reads one manifest file into `loaded`. Returns the previous generation that it names, if any.
fn read_one(
    vfs: &Arc<Disk>,
    loaded: &mut Manifested,
    bytes: &[u8],
) -> EngineResult<Option<Previous>> {
    let mut input = Decoder::new(&bytes[MANIFEST_MAGIC.len() + 16..]);
    loaded.snapshot.lsn = input.u64()?.saturating_sub(1);
    loaded.first_log = input.u64()?;
    loaded.snapshot.next_table = input.u64()?;
    loaded.next_file = input.u64()?;
    loaded.retained_files.clear();
    let mut previous = None;
    let mut body = Decoder::new(input.blob()?);
    while !body.is_empty() {
        match body.u8()? {
            PREVIOUS => {
                let first_log = body.u64()?;
                let chain = (0..body.u32()?).map(|_| body.u64()).collect::<Result<_, _>>()?;
                for _ in 0..body.u32()? {
                    loaded.retained_files.push(body.text()?.to_owned());
                }
                previous = Some(Previous { chain, first_log, content: None });
            }
            kind => read_entry(vfs, &mut loaded.snapshot, kind, &mut body)?,
        }
    }
    Ok(previous)
}

fn encode_body(
    old: &Snapshot,
    new: &Snapshot,
    symbol_files: &SymbolFiles,
) -> EngineResult<Encoder> {
    let mut out = Encoder::default();
    for (id, _) in old.tables.iter().filter(|(id, _)| new.tables.get(id).is_none()) {
        out.u8(TABLE_DROPPED);
        out.u64(*id);
    }
    for (id, table) in new.tables.iter() {
        let before = old.tables.get(id);
        if before.is_none_or(|before| !Arc::ptr_eq(before, table)) {
            encode_table(before.map(Arc::as_ref), table, symbol_files, &mut out)?;
        }
    }
    for (kind, records) in old.records.iter() {
        for key in records.keys().filter(|key| new.record(kind, key).is_none()) {
            out.u8(DELETE_RECORD);
            out.text(kind);
            out.text(key);
        }
    }
    for (kind, records) in new.records.iter() {
        for (key, value) in records.iter().filter(|(k, v)| old.record(kind, k) != Some(&***v)) {
            out.u8(PUT_RECORD);
            out.text(kind);
            out.text(key);
            out.blob(value);
        }
    }
    Ok(out)
}

fn encode_table(
    before: Option<&TableSnapshot>,
    table: &TableSnapshot,
    symbol_files: &SymbolFiles,
    out: &mut Encoder,
) -> EngineResult<()> {
    let id = table.schema().id;
    out.u8(TABLE);
    out.json(&**table.schema())?;
    out.u32(table.head.next_column);
    out.u32(table.head.symbols.len() as u32);
    for (column, dictionary) in &table.head.symbols {
        let known = dictionary.store().symbol_files();
        let files = symbol_files.get(&(id, *column)).unwrap_or(&known);
        out.u32(*column);
        out.u32(files.len() as u32);
        for file in files {
            out.text(file.file.name());
            out.u32(file.first_key);
            out.u32(file.count);
            out.u64(file.file_len);
            out.u32(file.crc);
        }
    }
    let none = PartitionMap::new();
    let (cold, detached) = before.map_or((&none, &none), |old| (&*old.cold, &*old.detached));
    encode_partitions(PARTITION, id, cold, &table.cold, out);
    encode_partitions(DETACHED, id, detached, &table.detached, out);
    Ok(())
}

/// Encodes the differences between two states of a table's partitions.
fn encode_partitions(
    kind: u8,
    id: TableId,
    before: &PartitionMap,
    after: &PartitionMap,
    out: &mut Encoder,
) {
    let unchanged = |floor: &i64, partition: &Arc<Partition>| {
        before.get(floor).is_some_and(|before| Arc::ptr_eq(before, partition))
    };
    for (floor, partition) in after.iter().filter(|(f, p)| !unchanged(f, p)) {
        encode_partition(kind, id, *floor, &partition.segments, out);
    }
    for floor in before.keys().filter(|floor| !after.contains_key(floor)) {
        encode_partition(kind, id, *floor, &[], out);
    }
}

fn encode_partition(
    kind: u8,
    table: TableId,
    floor: i64,
    segments: &[Arc<Segment>],
    out: &mut Encoder,
) {
    debug_assert!(!segments.iter().any(|segment| segment.is_patched()));
    out.u8(kind);
    out.u64(table);
    out.i64(floor);
    out.u32(segments.len() as u32);
    for segment in segments {
        segment.meta.encode(out);
    }
    for (index, segment) in segments.iter().enumerate() {
        if let Some(dead) = segment.dead() {
            out.u8(DEAD_ROWS);
            out.u8(kind);
            out.u64(table);
            out.i64(floor);
            out.u32(index as u32);
            dead.encode(out);
        }
    }
}

fn read_entry(
    vfs: &Arc<Disk>,
    snapshot: &mut Snapshot,
    kind: u8,
    input: &mut Decoder<'_>,
) -> EngineResult<()> {
    match kind {
        TABLE => read_table(vfs, snapshot, input)?,
        TABLE_DROPPED => {
            let id = input.u64()?;
            if let Some(table) = snapshot.tables.remove(&id) {
                remove_name(snapshot, table.schema());
            }
        }
        kind @ (PARTITION | DETACHED) => read_partition(vfs, snapshot, kind, input)?,
        DEAD_ROWS => {
            let detached = input.u8()? == DETACHED;
            read_dead_rows(snapshot, detached, input)?;
        }
        PUT_RECORD => {
            let (kind, key) = (input.text()?, input.text()?);
            snapshot.put_record(kind, key, input.blob()?.into());
        }
        DELETE_RECORD => snapshot.delete_record(input.text()?, input.text()?),
        other => return Err(EngineError::internal(format!("unknown kind of entry: {other}"))),
    }
    Ok(())
}

fn read_partition(
    vfs: &Arc<Disk>,
    snapshot: &mut Snapshot,
    kind: u8,
    input: &mut Decoder<'_>,
) -> EngineResult<()> {
    let (id, floor, count) = (input.u64()?, input.i64()?, input.u32()?);
    let directory = table_dir(id);
    let mut segments = Vec::with_capacity(count as usize);
    for _ in 0..count {
        segments.push(Segment::new(vfs, &directory, SegmentMeta::decode(input)?));
    }
    // While a manifest is read, the map is not shared and can be changed in place.
    let table = snapshot.tables.remove(&id);
    let table =
        table.ok_or_else(|| EngineError::internal("a partition does not belong to any table"))?;
    let mut table = Arc::unwrap_or_clone(table);
    let partition = Partition::new(segments, Vec::new(), 0);
    let new_rows = partition.rows();
    let partitions = if kind == DETACHED { &mut table.detached } else { &mut table.cold };
    let partitions = Arc::make_mut(partitions);
    let old = if partition.segments.is_empty() {
        partitions.remove(&floor)
    } else {
        partitions.insert(floor, Arc::new(partition))
    };
    if kind == PARTITION {
        table.rows += new_rows;
        table.rows -= old.map_or(0, |old| old.rows());
    }
    put_table(snapshot, table);
    Ok(())
}

/// Removes the table's name, unless another table has taken it.
fn remove_name(snapshot: &mut Snapshot, schema: &TableSchema) {
    let name = tidemark_types::identifier::fold(&schema.name);
    if snapshot.names.get(name.as_str()) == Some(&schema.id) {
        snapshot.names.remove(name.as_str());
    }
}

fn read_table(
    vfs: &Arc<Disk>,
    snapshot: &mut Snapshot,
    input: &mut Decoder<'_>,
) -> EngineResult<()> {
    let schema: TableSchema = input.json()?;
    let next_column = input.u32()?;
    let id = schema.id;
    let old = snapshot.tables.get(&id).map(|_| table_of(snapshot, id)).transpose()?;
    if let Some(old) = &old {
        remove_name(snapshot, old.schema());
    }
    snapshot.names.insert(tidemark_types::identifier::fold(&schema.name), id);
    let mut head = head_of(schema, &HashMap::new(), next_column);
    for _ in 0..input.u32()? {
        let (column, count) = (input.u32()?, input.u32()?);
        let mut files = Vec::new();
        for _ in 0..count {
            let path = format!("{}/{}", table_dir(id), input.text()?);
            files.push(SymbolFile {
                file: StoredFile::new(Arc::clone(vfs), path),
                first_key: input.u32()?,
                count: input.u32()?,
                file_len: input.u64()?,
                crc: input.u32()?,
            });
        }
        if let Some(dictionary) = head.symbols.get_mut(&column) {
            let len = files.last().map_or(0, |file| file.first_key + file.count);
            dictionary.store().set_symbol_files(files);
            *dictionary = Arc::new(SymbolDictionary::grown(dictionary, len));
        }
    }
    let mut table = old.unwrap_or_else(|| TableSnapshot::empty(head.clone()));
    table.head = Arc::new(head);
    put_table(snapshot, table);
    Ok(())
}

/// Returns the path of a new dictionary file.
pub(crate) fn symbols_path(table: TableId, column: u32, number: u64) -> String {
    format!("{}/{}", table_dir(table), symbols_name(column, number))
}
