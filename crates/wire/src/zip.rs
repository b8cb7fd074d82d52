//! A streamed ZIP archive. Entries are written one after another. An entry's size and checksum need
//! not be known before the entry ends.
//!
//! Entries are uncompressed data in stored DEFLATE blocks, so that a reader that does not see the
//! end of the archive can detect the end of an entry. Sizes follow each entry and are 64 bits wide.

/// Maximum size of a stored block in bytes.
const BLOCK_BYTES: usize = 0xffff;
/// Format version that supports 64-bit sizes.
const VERSION: u16 = 45;
/// Sizes follow the data (bit 3); names are UTF-8 (bit 11).
const FLAGS: u16 = 0x0808;
const DEFLATE: u16 = 8;
/// Midnight on 1980-01-01, the earliest time in the format.
const TIME: u32 = 0x0021_0000;
/// Marks a value stored in the extra field.
const WIDE: u32 = u32::MAX;
/// Number of the extra field with 64-bit sizes.
const ZIP64: u16 = 1;

/// Writes an archive into the caller's buffers.
#[derive(Debug, Default)]
pub(crate) struct ZipStream {
    /// Bytes written so far.
    offset: u64,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    name: String,
    /// Offset of the entry's header.
    offset: u64,
    crc: u32,
    bytes: u64,
    stored_bytes: u64,
}

impl ZipStream {
    /// Starts an entry; the previous entry must have ended.
    pub(crate) fn begin(&mut self, name: String, out: &mut Vec<u8>) {
        let before = out.len();
        put32(out, 0x0403_4b50);
        put16(out, VERSION);
        put16(out, FLAGS);
        put16(out, DEFLATE);
        put32(out, TIME);
        put32(out, 0); // The checksum follows.
        put32(out, WIDE);
        put32(out, WIDE);
        put16(out, name.len() as u16);
        put16(out, 20);
        out.extend_from_slice(name.as_bytes());
        put16(out, ZIP64);
        put16(out, 16);
        put64(out, 0);
        put64(out, 0);
        let entry = Entry { name, offset: self.offset, crc: 0, bytes: 0, stored_bytes: 0 };
        self.entries.push(entry);
        self.offset += (out.len() - before) as u64;
    }

    /// Adds bytes to the current entry.
    pub(crate) fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Some(entry) = self.entries.last_mut() else { return };
        let before = out.len();
        for block in bytes.chunks(BLOCK_BYTES) {
            put_block(out, block, false);
        }
        let added = (out.len() - before) as u64;
        entry.crc = crc32(entry.crc, bytes);
        entry.bytes += bytes.len() as u64;
        entry.stored_bytes += added;
        self.offset += added;
    }

    /// Ends the current entry.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) {
        let Some(entry) = self.entries.last_mut() else { return };
        let before = out.len();
        put_block(out, &[], true);
        entry.stored_bytes += (out.len() - before) as u64;
        put32(out, 0x0807_4b50);
        put32(out, entry.crc);
        put64(out, entry.stored_bytes);
        put64(out, entry.bytes);
        self.offset += (out.len() - before) as u64;
    }

    /// Ends the archive with its directory.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        for entry in &self.entries {
            entry.describe(out);
        }
        let bytes = (out.len() - start) as u64;
        let count = self.entries.len() as u64;
        put32(out, 0x0606_4b50);
        put64(out, 44);
        put16(out, VERSION);
        put16(out, VERSION);
        put32(out, 0);
        put32(out, 0);
        put64(out, count);
        put64(out, count);
        put64(out, bytes);
        put64(out, self.offset);
        put32(out, 0x0706_4b50);
        put32(out, 0);
        put64(out, self.offset + bytes);
        put32(out, 1);
        let short_count = u16::try_from(count).unwrap_or(u16::MAX);
        put32(out, 0x0605_4b50);
        put32(out, 0);
        put16(out, short_count);
        put16(out, short_count);
        put32(out, u32::try_from(bytes).unwrap_or(WIDE));
        put32(out, u32::try_from(self.offset).unwrap_or(WIDE));
        put16(out, 0);
        self.offset += (out.len() - start) as u64;
    }
}

impl Entry {
    fn describe(&self, out: &mut Vec<u8>) {
        put32(out, 0x0201_4b50);
        put16(out, VERSION);
        put16(out, VERSION);
        put16(out, FLAGS);
        put16(out, DEFLATE);
        put32(out, TIME);
        put32(out, self.crc);
        put32(out, WIDE);
        put32(out, WIDE);
        put16(out, self.name.len() as u16);
        put16(out, 28);
        put16(out, 0); // No comment.
        put16(out, 0); // The archive consists of a single file.
        put16(out, 0);
        put32(out, 0);
        put32(out, WIDE);
        out.extend_from_slice(self.name.as_bytes());
        put16(out, ZIP64);
        put16(out, 24);
        put64(out, self.bytes);
        put64(out, self.stored_bytes);
        put64(out, self.offset);
    }
}

/// Writes an uncompressed DEFLATE block.
fn put_block(out: &mut Vec<u8>, block: &[u8], is_last: bool) {
    let length = block.len() as u16;
    out.push(u8::from(is_last));
    put16(out, length);
    put16(out, !length);
    out.extend_from_slice(block);
}

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Contribution of each byte to the checksum, by its distance from the end of a word.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { (value >> 1) ^ 0xedb8_8320 } else { value >> 1 };
            bit += 1;
        }
        tables[0][byte] = value;
        byte += 1;
    }
    let mut distance = 1;
    while distance < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[distance - 1][byte];
            tables[distance][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        distance += 1;
    }
    tables
}

/// Extends the checksum `before` with more bytes; the initial value is 0.
fn crc32(before: u32, bytes: &[u8]) -> u32 {
    let mut crc = !before;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mixed = (u64::from_le_bytes(*word) ^ u64::from(crc)).to_le_bytes();
        crc = 0;
        for (at, byte) in mixed.into_iter().enumerate() {
            crc ^= TABLES[7 - at][usize::from(byte)];
        }
    }
    for byte in rest {
        crc = (crc >> 8) ^ TABLES[0][usize::from(crc as u8 ^ byte)];
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_matches_the_standard_crc32() {
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        let text = b"The quick brown fox jumps over the lazy dog";
        assert_eq!(crc32(0, text), 0x414f_a339);
        for at in 0..text.len() {
            assert_eq!(crc32(crc32(0, &text[..at]), &text[at..]), 0x414f_a339, "{at}");
        }
        assert_eq!(crc32(0, b""), 0);
    }

    #[test]
    fn offsets_and_sizes_match_the_written_bytes() {
        let (mut zip, mut archive) = (ZipStream::default(), Vec::new());
        let large = vec![7; 200_000];
        for (name, content) in [("a/b", &b"x"[..]), ("c", &large), ("empty", b"")] {
            zip.begin(name.to_owned(), &mut archive);
            for chunk in content.chunks(70_000) {
                zip.write(chunk, &mut archive);
            }
            zip.end(&mut archive);
        }
        for entry in &zip.entries {
            let header = &archive[usize::try_from(entry.offset).unwrap()..];
            assert_eq!(&header[..4], b"PK\x03\x04");
            assert_eq!(&header[30..30 + entry.name.len()], entry.name.as_bytes());
        }
        assert_eq!(zip.offset, archive.len() as u64);
        zip.finish(&mut archive);
        assert_eq!(zip.offset, archive.len() as u64);
        let sizes: Vec<u64> = zip.entries.iter().map(|entry| entry.bytes).collect();
        assert_eq!(sizes, [1, 200_000, 0]);
        // Five-byte block headers and their data; the last block is empty.
        let stored: Vec<u64> = zip.entries.iter().map(|entry| entry.stored_bytes).collect();
        assert_eq!(stored, [1 + 10, 200_000 + 5 * 6, 5]);
    }
}
