//! Rows of parameter values as Bind messages of the wire protocol have them: for each row the
//! count of its values (16 bits), for each value its length in bytes (32 bits, -1 for null) and
//! its text. Numbers are big-endian.

use tidemark_types::{EngineError, EngineResult, ErrorCode};

/// The rows, where they came.
#[derive(Debug)]
pub(crate) struct ParameterRows<'b> {
    values: Vec<Option<&'b str>>,
    /// Values of each row.
    width: usize,
}

impl<'b> ParameterRows<'b> {
    pub(crate) fn read(mut bytes: &'b [u8]) -> EngineResult<Self> {
        let width = bytes.first_chunk().map_or(0, |count| usize::from(u16::from_be_bytes(*count)));
        let mut values = Vec::new();
        while !bytes.is_empty() {
            if usize::from(u16::from_be_bytes(take(&mut bytes)?)) != width {
                let message = "rows of parameters must have the same number of values";
                return Err(EngineError::new(ErrorCode::InvalidValue, message));
            }
            for _ in 0..width {
                let length = i32::from_be_bytes(take(&mut bytes)?);
                let Ok(length) = usize::try_from(length) else {
                    values.push(None);
                    continue;
                };
                let (text, rest) = bytes.split_at_checked(length).ok_or_else(cut_short)?;
                bytes = rest;
                values.push(Some(text_of(text)?));
            }
        }
        Ok(Self { values, width })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[Option<&'b str>]> {
        self.values.chunks(self.width.max(1))
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> EngineResult<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk().ok_or_else(cut_short)?;
    *bytes = rest;
    Ok(*taken)
}

fn cut_short() -> EngineError {
    EngineError::internal("rows of parameters are cut short")
}

/// Text as the wire protocol takes it: UTF-8 without zero bytes.
fn text_of(bytes: &[u8]) -> EngineResult<&str> {
    let text = std::str::from_utf8(bytes).ok().filter(|_| !bytes.contains(&0));
    text.ok_or_else(|| {
        EngineError::new(ErrorCode::InvalidValue, "invalid byte sequence for encoding \"UTF8\"")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<Vec<Option<String>>>, String> {
        let rows = ParameterRows::read(bytes).map_err(|error| error.reason().to_owned())?;
        let owned = |row: &[Option<&str>]| row.iter().map(|v| v.map(str::to_owned)).collect();
        Ok(rows.iter().map(owned).collect())
    }

    #[test]
    fn rows_are_read_where_they_are() {
        let row = b"\0\x02\0\0\0\x02\xc3\xa9\xff\xff\xff\xff";
        let one = vec![Some("é".to_owned()), None];
        assert_eq!(read(row), Ok(vec![one.clone()]));
        assert_eq!(read(&row.repeat(2)), Ok(vec![one.clone(), one]));
        assert_eq!(read(b""), Ok(Vec::new()));
        assert_eq!(read(b"\0\x01\0\0\0\0"), Ok(vec![vec![Some(String::new())]]));
    }

    #[test]
    fn what_is_no_text_or_cut_short_is_refused() {
        let refused = |bytes: &[u8], why: &str| {
            let reason = read(bytes).expect_err("it is refused");
            assert!(reason.contains(why), "{reason}");
        };
        refused(b"\0\x01\0\0\0\x01\xff", "UTF8");
        refused(b"\0\x01\0\0\0\x01\0", "UTF8");
        refused(b"\0\x01\0\0\0\x02a", "cut short");
        refused(b"\0\x01\0\0", "cut short");
        refused(b"\0\x01\0\0\0\x01a\0\x02", "same number");
    }
}
