//! MD5, SHA-1 and SHA-256 of strings and bytes, in lower-case hexadecimal.

use arrow::array::{Array, ArrayRef, AsArray};
use datafusion::common::Result;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use tidemark_types::SqlType::{Binary, Varchar};

use crate::column::{Call, build_text, internal};
use crate::signature::Param::{Is, Text};
use crate::signature::{Function, direct, pure};

/// Appends two lower-case digits per byte.
pub(crate) fn hexadecimal(bytes: &[u8], out: &mut impl Extend<char>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.extend([byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)])));
    }
}

fn of_texts<D: Digest>(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    build_text(call.rows, |row, out| {
        let Some(text) = texts.get(row) else { return false };
        hexadecimal(&D::digest(text.as_bytes()), out);
        true
    })
}

fn of_bytes<D: Digest>(call: &Call<'_>) -> Result<ArrayRef> {
    let (array, scalar) = call.array(0)?;
    let values = array.as_binary_opt::<i64>().ok_or_else(|| internal("not binary"))?;
    build_text(call.rows, |row, out| {
        let row = if scalar { 0 } else { row };
        if values.is_null(row) {
            return false;
        }
        hexadecimal(&D::digest(values.value(row)), out);
        true
    })
}

macro_rules! digest {
    ($name:literal, $digest:ty, $summary:literal) => {
        pure(
            $name,
            &[
                direct(&[Text], Varchar, of_texts::<$digest>),
                direct(&[Is(Binary)], Varchar, of_bytes::<$digest>),
            ],
            $summary,
        )
    };
}

pub(crate) const FUNCTIONS: &[Function] = &[
    digest!("md5", Md5, "MD5 hash in hexadecimal"),
    digest!("sha1", Sha1, "SHA-1 hash in hexadecimal"),
    digest!("sha256", Sha256, "SHA-256 hash in hexadecimal"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn hex<D: Digest>(bytes: &[u8]) -> String {
        let mut out = String::new();
        hexadecimal(&D::digest(bytes), &mut out);
        out
    }

    #[test]
    fn digests_match_published_vectors() {
        assert_eq!(hex::<Md5>(b"abc"), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(hex::<Sha1>(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(
            hex::<Sha256>(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
