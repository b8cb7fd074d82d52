//! Tokenises one line. Quoted and binary values determine their own end, so a line feed inside them
//! does not end the line. No value is copied, and no memory is allocated.

use tidemark_types::double_array::{self, MAX_ARRAY_ELEMENTS};

/// Maximum number of array dimensions.
const MAX_DIMENSIONS: u8 = 32;
/// Maximum length in bytes of a decimal's unscaled value, and the maximum scale.
const MAX_DECIMAL_BYTES: usize = 32;
const MAX_SCALE: u8 = 76;

pub(super) const COMMA: u8 = 1;
const EQUALS: u8 = 2;
pub(super) const SPACE: u8 = 4;
const END: u8 = 8;
const ESCAPE: u8 = 16;
const QUOTE: u8 = 32;

/// The type byte of a binary double.
pub(super) const BINARY_DOUBLE: u8 = 16;

/// The syntactic class of each byte value.
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

/// Returns the syntactic class of a byte, as one of the bits above.
#[inline]
pub(super) fn class_of(byte: u8) -> u8 {
    CLASSES[byte as usize]
}

/// Maximum number of bytes that one call tokenises. Offsets are 32 bits wide, so that a token fits
/// in a register.
pub(super) const MAX_BYTES: usize = 1 << 30;

/// A range of the input. It is packed into one word, because a separate flag byte would be copied
/// separately for every value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Token {
    start: u32,
    /// End offset. The top bit is set if the range contains backslashes.
    end: u32,
}

const ESCAPED: u32 = 1 << 31;

impl Token {
    fn new(start: usize, end: usize, escaped: bool) -> Self {
        let mark = if escaped { ESCAPED } else { 0 };
        Self { start: start as u32, end: end as u32 | mark }
    }

    pub(super) fn start(self) -> usize {
        self.start as usize
    }

    pub(super) fn end(self) -> usize {
        (self.end & !ESCAPED) as usize
    }

    pub(super) fn is_escaped(self) -> bool {
        self.end & ESCAPED != 0
    }

    #[inline]
    pub(super) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..self.end()]
    }

    fn is_empty(self) -> bool {
        self.start as usize == self.end()
    }
}

/// A value's syntactic form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Symbol,
    /// A quoted value, without the quotes.
    Text,
    /// An unquoted number, boolean or timestamp.
    Plain,
    /// The eight bytes of a binary double.
    Double,
    /// An array: one length per dimension, then the elements.
    Array(u8),
    NullArray,
    /// A decimal: its unscaled bytes, with this scale.
    Decimal(u8),
}

/// A value as it appears in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Raw {
    pub(super) form: Form,
    pub(super) token: Token,
}

impl Raw {
    /// Returns the position after the value.
    pub(super) fn end(self) -> usize {
        self.token.end() + usize::from(self.form == Form::Text)
    }

    pub(super) fn is_symbol(self) -> bool {
        self.form == Form::Symbol
    }
}

/// Tokens of one line. The allocated memory is reused for the next line.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) table: Token,
    pub(super) fields: Vec<(Token, Raw)>,
    pub(super) timestamp: Option<Token>,
}

/// Result of tokenising at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lexed {
    /// A line, with the position at which the next line begins.
    Line(usize),
    /// An empty line or a comment, with the position at which the next line begins.
    Nothing(usize),
    /// The line is incomplete.
    Incomplete,
}

/// Why tokenising stopped.
enum Stop {
    Incomplete,
    /// The line is malformed; the cursor contains the reason.
    Bad,
}

type Lex<T> = Result<T, Stop>;

/// Tokenises the line at `from`. `is_all` states that no more bytes follow, so the end of the bytes
/// also ends the line.
pub(super) fn lex(
    bytes: &[u8],
    from: usize,
    is_all: bool,
    line: &mut Line,
) -> Result<Lexed, String> {
    let mut cursor = Cursor { is_all, ..Cursor::new(bytes, from) };
    line.fields.clear();
    line.timestamp = None;
    match cursor.line(line) {
        Ok(found) => Ok(found),
        Err(Stop::Incomplete) => Ok(Lexed::Incomplete),
        Err(Stop::Bad) => Err(cursor.reason),
    }
}

/// Returns the value at `at` and its end; `None` if the value is incomplete or malformed.
#[inline]
pub(super) fn value_at(bytes: &[u8], at: usize, is_symbol: bool) -> Option<(Raw, usize)> {
    let mut cursor = Cursor::new(bytes, at);
    let raw = if is_symbol { cursor.symbol_value() } else { cursor.value() };
    Some((raw.ok()?, cursor.at))
}

/// Returns the table name in the line at `at`; `None` if the name is incomplete.
#[inline]
pub(super) fn table_at(bytes: &[u8], at: usize) -> Option<Token> {
    Cursor::new(bytes, at).word(COMMA | SPACE | EQUALS).ok()
}

/// Returns the word at `at` if it is the last one in its line, together with the start of the next
/// line. Returns `None` if the line has further words.
#[inline]
pub(super) fn last_word_at(bytes: &[u8], at: usize) -> Option<(Token, usize)> {
    let mut cursor = Cursor::new(bytes, at);
    let word = cursor.word(SPACE).ok()?;
    cursor.ends().ok()?.then_some((word, cursor.at))
}

struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
    is_all: bool,
    /// The error message.
    reason: String,
}

/// Returns the position of the first syntactic byte at or after `at`, testing eight bytes at a
/// time. May also stop at a few kinds of ordinary bytes.
#[inline]
pub(super) fn special(bytes: &[u8], at: usize) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const TOPS: u64 = ONES << 7;
    // The top bit is set in the first byte below the limit and in no earlier byte.
    let below = |bytes: u64, limit: u64| bytes.wrapping_sub(ONES * limit) & !bytes & TOPS;
    let same = |bytes: u64, byte: u8| below(bytes ^ (ONES * u64::from(byte)), 1);
    let mut at = at;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let chunk = u64::from_le_bytes(*chunk);
        // The minus sign serves as the limit, because line ends, space, comma and a few other
        // characters are below it.
        let found = below(chunk, u64::from(b'-')) | same(chunk, b'=') | same(chunk, b'\\');
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let found = rest.iter().position(|byte| CLASSES[*byte as usize] & !QUOTE != 0);
    found.map_or(bytes.len(), |found| at + found)
}

impl<'b> Cursor<'b> {
    /// Creates a cursor over bytes that may be followed by further bytes.
    fn new(bytes: &'b [u8], at: usize) -> Self {
        Self { bytes, at, is_all: false, reason: String::new() }
    }

    #[cold]
    fn bad<T>(&mut self, reason: impl Into<String>) -> Lex<T> {
        self.reason = reason.into();
        Err(Stop::Bad)
    }

    /// Returns the current byte. The end of the input counts as a line end.
    fn peek(&self) -> Lex<u8> {
        match self.bytes.get(self.at) {
            Some(byte) => Ok(*byte),
            None if self.is_all => Ok(b'\n'),
            None => Err(Stop::Incomplete),
        }
    }

    /// Whether the line ends at the cursor. If so, moves the cursor past the line end.
    fn ends(&mut self) -> Lex<bool> {
        match self.peek()? {
            b'\n' => {
                self.at = self.bytes.len().min(self.at + 1);
                Ok(true)
            }
            b'\r' => {
                self.at += 1;
                if self.peek()? != b'\n' {
                    return self.bad("a carriage return must be escaped");
                }
                self.ends()
            }
            _ => Ok(false),
        }
    }

    /// Reads the bytes up to the first byte in `stops` or the end of the line.
    #[inline]
    fn word(&mut self, stops: u8) -> Lex<Token> {
        let start = self.at;
        let stops = stops | END;
        let mut escaped = false;
        loop {
            self.at = special(self.bytes, self.at);
            let Some(byte) = self.bytes.get(self.at) else {
                if !self.is_all {
                    return Err(Stop::Incomplete);
                }
                self.at = self.bytes.len();
                return Ok(Token::new(start, self.at, escaped));
            };
            let class = CLASSES[*byte as usize];
            if class & stops != 0 {
                return Ok(Token::new(start, self.at, escaped));
            }
            if class != ESCAPE {
                self.at += 1;
                continue;
            }
            escaped = true;
            // The character after a backslash always belongs to the word, so it must have arrived.
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
            return self.bad("an equals sign in a table name must be escaped");
        }
        if line.table.is_empty() {
            return self.bad("the line has no table name");
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
            return self.bad("expected a line feed after the timestamp");
        }
        if line.fields.is_empty() {
            return self.bad("the line has neither symbols nor fields");
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
        let value = self.symbol_value()?;
        if self.peek()? == b'=' {
            return self.bad("an equals sign in a symbol must be escaped");
        }
        line.fields.push((name, value));
        Ok(())
    }

    #[inline]
    fn symbol_value(&mut self) -> Lex<Raw> {
        Ok(Raw { form: Form::Symbol, token: self.word(COMMA | SPACE | EQUALS)? })
    }

    /// Reads a column name and the equals sign that follows it.
    fn name(&mut self) -> Lex<Token> {
        let name = self.word(COMMA | SPACE | EQUALS)?;
        if self.peek()? != b'=' {
            let shown = crate::rows::shown(name.of(self.bytes));
            return self.bad(format!("expected an equals sign and a value after {shown}"));
        }
        if name.is_empty() {
            return self.bad("a column has no name");
        }
        self.at += 1;
        Ok(name)
    }

    /// Reads the fields and the rest of the line. A line that has only symbols may have a timestamp
    /// instead of fields.
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
                    let shown = crate::rows::shown(name.of(self.bytes));
                    return self
                        .bad(format!("expected a comma or a space after the value of {shown}"));
                }
            }
            // Accepts a trailing comma after the last field.
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
            _ => Ok(Raw { form: Form::Plain, token: self.word(COMMA | SPACE)? }),
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
                    self.bad("a string has no closing quote")
                } else {
                    Err(Stop::Incomplete)
                };
            };
            self.at += found;
            if self.bytes[self.at] == b'"' {
                let end = self.at;
                self.at += 1;
                return Ok(Raw { form: Form::Text, token: Token::new(start, end, escaped) });
            }
            escaped = true;
            self.at += 2;
        }
    }

    fn take<const N: usize>(&mut self) -> Lex<[u8; N]> {
        let at = self.skip(N)?;
        let head = self.bytes[at..].first_chunk().copied();
        head.ok_or(Stop::Incomplete)
    }

    /// Skips bytes and returns the position of the first skipped byte.
    fn skip(&mut self, length: usize) -> Lex<usize> {
        let at = self.at;
        if self.bytes.len() - at.min(self.bytes.len()) < length {
            return if self.is_all {
                self.bad("a binary value is truncated")
            } else {
                Err(Stop::Incomplete)
            };
        }
        self.at += length;
        Ok(at)
    }

    /// Builds a binary value that ends at the cursor.
    fn raw(&self, form: Form, at: usize) -> Raw {
        Raw { form, token: Token::new(at, self.at, false) }
    }

    #[inline]
    fn binary(&mut self) -> Lex<Raw> {
        match self.take()? {
            [BINARY_DOUBLE] => {
                let at = self.skip(size_of::<f64>())?;
                Ok(self.raw(Form::Double, at))
            }
            [14] => self.array(),
            [23] => self.decimal(),
            [other] => self.bad(format!("unknown binary value type {other}")),
        }
    }

    fn array(&mut self) -> Lex<Raw> {
        match self.take()? {
            [0x21] => return Ok(self.raw(Form::NullArray, self.at)),
            [0x0a] => {}
            [other] => {
                return self.bad(format!("unknown array element type {other}"));
            }
        }
        let [dimensions] = self.take()?;
        if dimensions == 0 || dimensions > MAX_DIMENSIONS {
            let max = MAX_DIMENSIONS;
            return self.bad(format!("an array has {dimensions} dimensions, expected 1 to {max}"));
        }
        let at = self.at;
        let mut elements = 1_u64;
        let mut lengths = Vec::with_capacity(usize::from(dimensions));
        for _ in 0..dimensions {
            let length = u32::from_le_bytes(self.take()?);
            lengths.push(u64::from(length));
            elements = elements.saturating_mul(u64::from(length));
            if length > i32::MAX as u32 {
                return self.bad(format!("an array dimension is too long: {length} elements"));
            }
        }
        if elements > MAX_ARRAY_ELEMENTS as u64 {
            let max = MAX_ARRAY_ELEMENTS;
            return self.bad(format!("an array has {elements} elements, expected at most {max}"));
        }
        if !double_array::is_allowed(lengths) {
            return self.bad("an empty array has too many nested arrays".to_owned());
        }
        self.skip(elements as usize * size_of::<f64>())?;
        Ok(self.raw(Form::Array(dimensions), at))
    }

    fn decimal(&mut self) -> Lex<Raw> {
        let [scale, length] = self.take()?;
        let length = usize::from(length);
        if scale > MAX_SCALE || length > MAX_DECIMAL_BYTES {
            return self.bad(format!("a decimal is too large: scale {scale}, {length} bytes"));
        }
        let at = self.skip(length)?;
        Ok(self.raw(Form::Decimal(scale), at))
    }
}
