//! Determines the nesting depth of a Parquet file's columns from the footer. This check runs before
//! the Parquet reader, which recurses once per level and could overflow its stack even on a small
//! file.
//!
//! The footer is a struct in Thrift's compact protocol. Its field 2 lists the columns in
//! depth-first order, each with its number of children.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use tidemark_types::{EngineError, EngineResult, ErrorCode, account};

/// Maximum nesting depth of columns.
const MAX_DEPTH: usize = 1_000;
/// Maximum nesting depth of footer structs and lists that do not describe columns.
const MAX_NESTED: usize = 32;
/// Number of bytes after the footer: its length and the magic number.
const TAIL_BYTES: u64 = 8;
const MAGIC: &[u8; 4] = b"PAR1";

/// The footer field that lists the columns, and the column field that contains the number of
/// children.
const COLUMNS: i64 = 2;
const CHILDREN: i64 = 5;

/// Thrift type codes.
const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const INTEGERS: std::ops::RangeInclusive<u8> = 4..=6;
const DOUBLE: u8 = 7;
const BYTES: u8 = 8;
const LISTS: std::ops::RangeInclusive<u8> = 9..=10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Rejects a file whose columns are nested more than [`MAX_DEPTH`] levels deep, or whose footer is
/// malformed. Accepts a file without a footer, because the Parquet reader reports that error.
pub(super) fn check_depth(file: &mut File, name: &str) -> EngineResult<()> {
    let Some(footer) = footer_of(file)? else { return Ok(()) };
    match (Compact { remaining: &footer }).depth() {
        None => Err(damaged(name)),
        Some(depth) if depth > MAX_DEPTH => {
            let message = format!(
                "cannot read '{name}': columns are nested more than {MAX_DEPTH} levels deep"
            );
            Err(EngineError::new(ErrorCode::NotSupported, message))
        }
        Some(_) => Ok(()),
    }
}

/// Returns the footer's bytes; `None` if the file is not Parquet.
fn footer_of(file: &mut File) -> EngineResult<Option<Vec<u8>>> {
    let read = |file: &mut File, from: u64, bytes: &mut [u8]| {
        file.seek(SeekFrom::Start(from)).and_then(|_| file.read_exact(bytes)).ok()
    };
    let Ok(size) = file.metadata().map(|metadata| metadata.len()) else { return Ok(None) };
    let mut tail = [0; TAIL_BYTES as usize];
    let Some(end) = size.checked_sub(TAIL_BYTES) else { return Ok(None) };
    if read(file, end, &mut tail).is_none() {
        return Ok(None);
    }
    let [a, b, c, d, magic @ ..] = tail;
    if magic != *MAGIC {
        return Ok(None);
    }
    let length = u32::from_le_bytes([a, b, c, d]);
    let Some(start) = end.checked_sub(u64::from(length)) else { return Ok(None) };
    account::check_allocation(length as usize)?;
    let mut footer = vec![0; length as usize];
    Ok(read(file, start, &mut footer).map(|()| footer))
}

/// Returns the error for a file that the reader cannot parse.
pub(super) fn damaged(name: &str) -> EngineError {
    let message = format!("cannot read '{name}': the file is damaged or malformed");
    EngineError::new(ErrorCode::InvalidValue, message)
        .with_hint("write the file again; see the server log for the Parquet reader's error")
}

/// The unread bytes of a footer. Every method returns `None` if the bytes end too early or are
/// malformed.
struct Compact<'a> {
    remaining: &'a [u8],
}

impl Compact<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.remaining.split_first()?;
        self.remaining = rest;
        Some(*first)
    }

    fn skip_bytes(&mut self, bytes: u64) -> Option<()> {
        self.remaining = self.remaining.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let value = self.unsigned()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads the header of the next struct field and returns its field number and type. The type is
    /// [`STOP`] at the end of the struct. `before` is the preceding field's number.
    fn field(&mut self, before: i64) -> Option<(i64, u8)> {
        let header = self.byte()?;
        if header == STOP {
            return Some((before, STOP));
        }
        let number = match i64::from(header >> 4) {
            0 => self.signed()?,
            step => before.checked_add(step)?,
        };
        Some((number, header & 0x0f))
    }

    /// Reads a list's element type and count.
    fn list(&mut self) -> Option<(u8, u64)> {
        let header = self.byte()?;
        let count = match header >> 4 {
            15 => self.unsigned()?,
            few => u64::from(few),
        };
        Some((header & 0x0f, count))
    }

    /// Skips a value. `in_list` states whether the value is a list element. In lists, unlike in
    /// structs, a boolean occupies one byte.
    fn skip(&mut self, kind: u8, in_list: bool, nested: usize) -> Option<()> {
        let nested = nested.checked_sub(1)?;
        match kind {
            TRUE | FALSE if !in_list => {}
            TRUE | FALSE | BYTE => self.skip_bytes(1)?,
            kind if INTEGERS.contains(&kind) => {
                self.unsigned()?;
            }
            DOUBLE => self.skip_bytes(8)?,
            BYTES => {
                let length = self.unsigned()?;
                self.skip_bytes(length)?;
            }
            kind if LISTS.contains(&kind) => {
                let (kind, count) = self.list()?;
                for _ in 0..count {
                    self.skip(kind, true, nested)?;
                }
            }
            MAP => {
                let count = self.unsigned()?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                for _ in 0..count {
                    self.skip(kinds >> 4, true, nested)?;
                    self.skip(kinds & 0x0f, true, nested)?;
                }
            }
            STRUCT => {
                let mut before = 0;
                while let (number, kind @ 1..) = self.field(before)? {
                    self.skip(kind, false, nested)?;
                    before = number;
                }
            }
            UUID => self.skip_bytes(16)?,
            _ => return None,
        }
        Some(())
    }

    /// Reads a column and returns its number of children.
    fn children(&mut self) -> Option<u64> {
        let (mut before, mut children) = (0, 0);
        while let (number, kind @ 1..) = self.field(before)? {
            if number == CHILDREN && INTEGERS.contains(&kind) {
                children = u64::try_from(self.signed()?).ok()?;
            } else {
                self.skip(kind, false, MAX_NESTED)?;
            }
            before = number;
        }
        Some(children)
    }

    /// Returns the nesting depth of a column list.
    fn levels(&mut self) -> Option<usize> {
        let (kind, count) = self.list()?;
        if kind != STRUCT {
            return None;
        }
        // Number of remaining children of each open group.
        let mut open: Vec<u64> = Vec::new();
        let mut deepest = 0;
        for _ in 0..count {
            let children = self.children()?;
            if let Some(left) = open.last_mut() {
                *left = left.saturating_sub(1);
            }
            open.push(children);
            deepest = deepest.max(open.len());
            if deepest > MAX_DEPTH {
                break;
            }
            while open.last() == Some(&0) {
                open.pop();
            }
        }
        Some(deepest)
    }

    /// Returns the nesting depth of the columns. If the footer contains several column lists, the
    /// Parquet reader uses the last list, whereas this function returns the greatest depth of all
    /// lists.
    fn depth(mut self) -> Option<usize> {
        let (mut before, mut deepest) = (0, 0);
        while let (number, kind @ 1..) = self.field(before)? {
            if number == COLUMNS && LISTS.contains(&kind) {
                deepest = deepest.max(self.levels()?);
                if deepest > MAX_DEPTH {
                    break;
                }
            } else {
                self.skip(kind, false, MAX_NESTED)?;
            }
            before = number;
        }
        Some(deepest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a footer with nested groups around a single LONG column.
    pub(crate) fn nested(levels: usize) -> Vec<u8> {
        let mut footer = b"\x15\x02\x19\xfc".to_vec();
        let mut count = levels + 2;
        while count > 0x7f {
            footer.push((count & 0x7f) as u8 | 0x80);
            count >>= 7;
        }
        footer.push(count as u8);
        footer.extend(b"\x48\x06schema\x15\x02\x00");
        for _ in 0..levels {
            footer.extend(b"\x35\x02\x18\x01a\x15\x02\x00");
        }
        footer.extend(b"\x15\x04\x25\x02\x18\x01a\x00\x16\x00\x19\x0c\x00");
        footer
    }

    #[test]
    fn nesting_depth_is_computed_up_to_the_limit() {
        let depth = |footer: &[u8]| Compact { remaining: footer }.depth();
        assert_eq!(depth(&nested(0)), Some(2));
        assert_eq!(depth(&nested(20)), Some(22));
        assert_eq!(depth(&nested(998)), Some(1_000));
        assert_eq!(depth(&nested(1_000_000)), Some(1_001));
    }

    #[test]
    fn malformed_footers_have_no_nesting_depth() {
        let whole = nested(30);
        for end in 0..whole.len() {
            assert_eq!(Compact { remaining: &whole[..end] }.depth(), None, "{end}");
        }
        for at in 0..whole.len() {
            for byte in 0..=u8::MAX {
                let mut changed = whole.clone();
                changed[at] = byte;
                // Must terminate for every input.
                let _ = Compact { remaining: &changed }.depth();
            }
        }
        // Deeply nested lists, and a list that declares more values than it has bytes.
        assert_eq!(Compact { remaining: &[0x19].repeat(1_000_000) }.depth(), None);
        let endless = b"\x19\xf1\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
        assert_eq!(Compact { remaining: endless }.depth(), None);
    }
}
