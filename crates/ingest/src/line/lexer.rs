//! Finds the parts of one line. Values tell their own length: a line feed within a text or a
//! binary value ends no line. Nothing is copied, nothing is allocated for a value.

use tidemark_types::double_array::MAX_ARRAY_ELEMENTS;

/// The most dimensions of an array.
const MOST_DIMENSIONS: u8 = 32;
/// The most bytes of a decimal's unscaled value, and its largest scale.
const MOST_DECIMAL_BYTES: usize = 32;
const MOST_SCALE: u8 = 76;

const COMMA: u8 = 1;
const EQUALS: u8 = 2;
const SPACE: u8 = 4;
const END: u8 = 8;
const ESCAPE: u8 = 16;
const QUOTE: u8 = 32;

/// What each byte may mean.
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    classes[b',' as usize] = COMMA;
    classes[b'=' as usize] = EQUALS;
    classes[b' ' as usize] = SPACE;
    classes[b'\n' as usize] = END;
    classes[b'\r' as usize] = END;
    classes[b'\\' as usize] = ESCAPE;
    classes[b'"' as usize] = QUOTE;
    classes
};

/// A part of the bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether there are backslashes in it.
    pub(super) escaped: bool,
}

impl Token {
    pub(super) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start..self.end]
    }

    fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// A value as it lies in the line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Raw {
    Symbol(Token),
    /// Within quotes, without them.
    Text(Token),
    /// A number, a boolean or an instant.
    Plain(Token),
    Double(f64),
    /// Lengths of dimensions, then elements.
    Array {
        dimensions: u8,
        at: usize,
        end: usize,
    },
    NullArray,
    /// Unscaled bytes.
    Decimal {
        scale: u8,
        at: usize,
        end: usize,
    },
}

/// One line: a place for its parts, used again for the next one.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) table: Token,
    pub(super) fields: Vec<(Token, Raw)>,
    pub(super) timestamp: Option<Token>,
}

/// What was found at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lexed {
    /// A line; the next one begins here.
    Line(usize),
    /// Nothing, or a comment.
    Nothing(usize),
    /// The beginning of a line.
    Incomplete,
}

enum Stop {
    Incomplete,
    Bad(String),
}

type Lex<T> = Result<T, Stop>;

/// Reads the line at `from`; `is_all`: no more bytes come, and the end of them ends the line.
pub(super) fn lex(
    bytes: &[u8],
    from: usize,
    is_all: bool,
    line: &mut Line,
) -> Result<Lexed, String> {
    let mut cursor = Cursor { bytes, at: from, is_all };
    line.fields.clear();
    line.timestamp = None;
    match cursor.line(line) {
        Ok(found) => Ok(found),
        Err(Stop::Incomplete) => Ok(Lexed::Incomplete),
        Err(Stop::Bad(reason)) => Err(reason),
    }
}

struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
    is_all: bool,
}

fn bad<T>(reason: impl Into<String>) -> Lex<T> {
    Err(Stop::Bad(reason.into()))
}

impl Cursor<'_> {
    /// The byte here; the end of all bytes is the end of the line.
    fn peek(&self) -> Lex<u8> {
        match self.bytes.get(self.at) {
            Some(byte) => Ok(*byte),
            None if self.is_all => Ok(b'\n'),
            None => Err(Stop::Incomplete),
        }
    }

    /// Whether the line ends here, and then goes behind its end.
    fn ends(&mut self) -> Lex<bool> {
        match self.peek()? {
            b'\n' => {
                self.at = self.bytes.len().min(self.at + 1);
                Ok(true)
            }
            b'\r' => {
                self.at += 1;
                if self.peek()? != b'\n' {
                    return bad("a carriage return must be escaped");
                }
                self.ends()
            }
            _ => Ok(false),
        }
    }

    /// Bytes up to one of `stops`, or to the end of the line.
    #[inline]
    fn word(&mut self, stops: u8) -> Lex<Token> {
        let start = self.at;
        let stops = stops | END;
        let mut escaped = false;
        loop {
            let rest = &self.bytes[self.at.min(self.bytes.len())..];
            let found =
                rest.iter().position(|byte| CLASSES[*byte as usize] & (stops | ESCAPE) != 0);
            let Some(found) = found else {
                if !self.is_all {
                    return Err(Stop::Incomplete);
                }
                self.at = self.bytes.len();
                return Ok(Token { start, end: self.at, escaped });
            };
            self.at += found;
            if CLASSES[self.bytes[self.at] as usize] & stops != 0 {
                return Ok(Token { start, end: self.at, escaped });
            }
            escaped = true;
            // What follows a backslash is part of the word, whatever it is.
            if self.at + 1 >= self.bytes.len() && !self.is_all {
                return Err(Stop::Incomplete);
            }
            self.at = (self.at + 2).min(self.bytes.len());
        }
    }

    fn spaces(&mut self) -> Lex<()> {
        while self.peek()? == b' ' {
            self.at += 1;
        }
        Ok(())
    }

    fn line(&mut self, line: &mut Line) -> Lex<Lexed> {
        if self.bytes.get(self.at) == Some(&b'#') {
            return self.comment();
        }
        if self.ends()? {
            return Ok(Lexed::Nothing(self.at));
        }
        line.table = self.word(COMMA | SPACE | EQUALS)?;
        if self.peek()? == b'=' {
            return bad("an equals sign in a table's name must be escaped");
        }
        if line.table.is_empty() {
            return bad("the line has no table name");
        }
        while self.peek()? == b',' {
            self.at += 1;
            self.symbol(line)?;
        }
        if self.peek()? == b' ' {
            self.spaces()?;
            self.fields(line)?;
        }
        if !self.ends()? {
            return bad("expected a line feed behind the timestamp");
        }
        if line.fields.is_empty() {
            return bad("the line has neither symbols nor fields");
        }
        Ok(Lexed::Line(self.at))
    }

    fn comment(&mut self) -> Lex<Lexed> {
        match memchr::memchr(b'\n', &self.bytes[self.at..]) {
            Some(end) => Ok(Lexed::Nothing(self.at + end + 1)),
            None if self.is_all => Ok(Lexed::Nothing(self.bytes.len())),
            None => Err(Stop::Incomplete),
        }
    }

    fn symbol(&mut self, line: &mut Line) -> Lex<()> {
        let name = self.name()?;
        let value = self.word(COMMA | SPACE | EQUALS)?;
        if self.peek()? == b'=' {
            return bad("an equals sign in a symbol must be escaped");
        }
        line.fields.push((name, Raw::Symbol(value)));
        Ok(())
    }

    /// The name of a column, and the equals sign behind it.
    fn name(&mut self) -> Lex<Token> {
        let name = self.word(COMMA | SPACE | EQUALS)?;
        if self.peek()? != b'=' {
            let shown = super::shown(name.of(self.bytes));
            return bad(format!("expected an equals sign and a value behind {shown}"));
        }
        if name.is_empty() {
            return bad("a column has no name");
        }
        self.at += 1;
        Ok(name)
    }

    /// Fields, and what follows them. A line of symbols alone may have its timestamp here.
    fn fields(&mut self, line: &mut Line) -> Lex<()> {
        let begin = self.at;
        if matches!(self.peek()?, b'\n' | b'\r') {
            return Ok(());
        }
        let first = self.word(COMMA | SPACE | EQUALS)?;
        if !matches!(self.peek()?, b'=' | b',') && !line.fields.is_empty() {
            line.timestamp = Some(first);
            return self.spaces();
        }
        self.at = begin;
        loop {
            let name = self.name()?;
            let value = self.value()?;
            line.fields.push((name, value));
            match self.peek()? {
                b',' => self.at += 1,
                b' ' => break,
                b'\n' | b'\r' => return Ok(()),
                _ => {
                    let shown = super::shown(name.of(self.bytes));
                    return bad(format!("expected a comma or a space behind the value of {shown}"));
                }
            }
            // A comma behind the last field does no harm.
            if matches!(self.peek()?, b'\n' | b'\r') {
                return Ok(());
            }
        }
        self.spaces()?;
        if matches!(self.peek()?, b'\n' | b'\r') {
            return Ok(());
        }
        line.timestamp = Some(self.word(SPACE)?);
        self.spaces()
    }

    #[inline]
    fn value(&mut self) -> Lex<Raw> {
        match self.peek()? {
            b'"' => self.text(),
            b'=' => {
                self.at += 1;
                self.binary()
            }
            _ => self.word(COMMA | SPACE).map(Raw::Plain),
        }
    }

    fn text(&mut self) -> Lex<Raw> {
        self.at += 1;
        let start = self.at;
        let mut escaped = false;
        loop {
            let rest = &self.bytes[self.at.min(self.bytes.len())..];
            let Some(found) = memchr::memchr2(b'"', b'\\', rest) else {
                return if self.is_all {
                    bad("a text has no closing quote")
                } else {
                    Err(Stop::Incomplete)
                };
            };
            self.at += found;
            if self.bytes[self.at] == b'"' {
                let end = self.at;
                self.at += 1;
                return Ok(Raw::Text(Token { start, end, escaped }));
            }
            escaped = true;
            self.at += 2;
        }
    }

    fn take<const N: usize>(&mut self) -> Lex<[u8; N]> {
        let at = self.skip(N)?;
        let taken = self.bytes[at..].first_chunk().copied();
        taken.ok_or(Stop::Incomplete)
    }

    /// Goes over bytes; answers where they begin.
    fn skip(&mut self, length: usize) -> Lex<usize> {
        let at = self.at;
        if self.bytes.len() - at.min(self.bytes.len()) < length {
            return if self.is_all {
                bad("a binary value is cut short")
            } else {
                Err(Stop::Incomplete)
            };
        }
        self.at += length;
        Ok(at)
    }

    #[inline]
    fn binary(&mut self) -> Lex<Raw> {
        match self.take()? {
            [16] => self.take().map(|bytes| Raw::Double(f64::from_le_bytes(bytes))),
            [14] => self.array(),
            [23] => self.decimal(),
            [other] => bad(format!("a binary value has the unknown type {other}")),
        }
    }

    fn array(&mut self) -> Lex<Raw> {
        match self.take()? {
            [0x21] => return Ok(Raw::NullArray),
            [0x0a] => {}
            [other] => return bad(format!("an array has elements of the unknown type {other}")),
        }
        let [dimensions] = self.take()?;
        if dimensions == 0 || dimensions > MOST_DIMENSIONS {
            let most = MOST_DIMENSIONS;
            return bad(format!("an array has {dimensions} dimensions, expected 1 to {most}"));
        }
        let at = self.at;
        let mut elements = 1_u64;
        for _ in 0..dimensions {
            let length = u32::from_le_bytes(self.take()?);
            elements = elements.saturating_mul(u64::from(length));
            if length > i32::MAX as u32 {
                return bad(format!("an array has a dimension of {length} elements"));
            }
        }
        if elements > MAX_ARRAY_ELEMENTS as u64 {
            let most = MAX_ARRAY_ELEMENTS;
            return bad(format!("an array has {elements} elements, expected at most {most}"));
        }
        self.skip(elements as usize * size_of::<f64>())?;
        Ok(Raw::Array { dimensions, at, end: self.at })
    }

    fn decimal(&mut self) -> Lex<Raw> {
        let [scale, length] = self.take()?;
        let length = usize::from(length);
        if scale > MOST_SCALE || length > MOST_DECIMAL_BYTES {
            return bad(format!("a decimal has scale {scale} and {length} bytes"));
        }
        let at = self.skip(length)?;
        Ok(Raw::Decimal { scale, at, end: self.at })
    }
}
