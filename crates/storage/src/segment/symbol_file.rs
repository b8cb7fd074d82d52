//! Dictionary files: consecutive symbols of one column, written by a checkpoint.

use std::sync::Arc;

use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tidemark_vfs::Vfs;

use crate::disk::Disk;
use crate::disk::file::{StoredFile, read_known, write_new};
use crate::disk::layout::{SYMBOLS_MAGIC, damaged};
use crate::log::codec::{Decoder, Encoder};
use crate::table::symbols::{SymbolFile, SymbolStore};

/// Number of files per dictionary above which they are rewritten as one file.
const MAX_FILES: usize = 8;

/// Writes symbols `0..len` and returns their files: either the existing files and a new file, or a
/// single file for all symbols. `new_path` names the new file.
pub(crate) fn write_symbols(
    vfs: &Arc<Disk>,
    store: &SymbolStore,
    len: u32,
    new_path: impl FnOnce() -> String,
) -> EngineResult<Option<Vec<SymbolFile>>> {
    let mut files = store.symbol_files();
    let mut first_key = files.last().map_or(0, |file| file.first_key + file.count);
    let anew = store.accepts_losses();
    if first_key >= len && !anew {
        return Ok(None);
    }
    // A damaged file is not rewritten, because its lost strings would then look intact.
    if anew || (files.len() >= MAX_FILES && store.damage().is_none()) {
        files.clear();
        first_key = 0;
    }
    let texts = store.texts(first_key, len);
    let mut out = Encoder { bytes: SYMBOLS_MAGIC.to_vec() };
    out.u32(first_key);
    out.u32(texts.len() as u32);
    for text in &texts {
        out.u32(text.len() as u32);
    }
    for text in &texts {
        out.bytes.extend_from_slice(text.as_bytes());
    }
    let path = new_path();
    write_new(vfs.system(), &path, &out.bytes)?;
    files.push(SymbolFile {
        file: StoredFile::new(Arc::clone(vfs), path),
        first_key,
        count: texts.len() as u32,
        file_len: out.bytes.len() as u64,
        crc: crc32c::crc32c(&out.bytes),
    });
    Ok(Some(files))
}

/// Reads all of a dictionary's files. Strings in a damaged file remain unknown.
pub(crate) fn load_symbols(vfs: &dyn Vfs, store: &SymbolStore) -> EngineResult<()> {
    for file in store.symbol_files() {
        let read = read_symbols(vfs, &file);
        match read.and_then(|texts| store.extend(file.first_key, &texts)) {
            Ok(()) => {}
            Err(error) if error.code == ErrorCode::Damaged => store.lose(&file, error)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads the strings of one file, and verifies its length and checksum.
pub(crate) fn read_symbols(vfs: &dyn Vfs, file: &SymbolFile) -> EngineResult<Vec<String>> {
    let path = file.file.path();
    let bytes = read_known(vfs, path)?;
    if bytes.len() as u64 != file.file_len || crc32c::crc32c(&bytes) != file.crc {
        return Err(damaged(path, "wrong file length or checksum"));
    }
    decode(&bytes, file).map_err(|error| damaged(path, error.reason()))
}

fn decode(bytes: &[u8], file: &SymbolFile) -> EngineResult<Vec<String>> {
    let mut input = Decoder::new(bytes);
    let magic = input.take(SYMBOLS_MAGIC.len())?;
    if magic != SYMBOLS_MAGIC || (input.u32()?, input.u32()?) != (file.first_key, file.count) {
        return Err(EngineError::internal("its header does not match this symbol file"));
    }
    let lengths: Vec<u32> = (0..file.count).map(|_| input.u32()).collect::<Result<_, _>>()?;
    let text = |len: &u32| {
        let bytes = input.take(*len as usize)?;
        let text = std::str::from_utf8(bytes);
        text.map(str::to_owned).map_err(|error| EngineError::internal(error.to_string()))
    };
    lengths.iter().map(text).collect()
}
