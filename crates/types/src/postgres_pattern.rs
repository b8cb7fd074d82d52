//! `PostgreSQL`'s date patterns such as `YYYY-MM-DD HH24:MI:SS.US`, for parsing.

use crate::error::{EngineError, EngineResult, ErrorCode};
use crate::pattern_element::{Field, PatternElement, Width};

use Width::{Exactly, Greedy};

/// Pattern elements with the width of a number, longer ones before their prefixes. `None` marks an
/// element that cannot be parsed.
const TOKENS: &[(&str, Option<Field>)] = &[
    ("HH24", Some(Field::Hour24(Exactly(2)))),
    ("HH12", Some(Field::Hour12From1(Exactly(2)))),
    ("HH", Some(Field::Hour12From1(Exactly(2)))),
    ("MI", Some(Field::Minute(Exactly(2)))),
    ("MS", Some(Field::Fraction { digits: 3 })),
    ("SSSS", None),
    ("SS", Some(Field::Second(Exactly(2)))),
    ("US", Some(Field::Fraction { digits: 6 })),
    ("FF1", Some(Field::Fraction { digits: 1 })),
    ("FF2", Some(Field::Fraction { digits: 2 })),
    ("FF3", Some(Field::Fraction { digits: 3 })),
    ("FF4", Some(Field::Fraction { digits: 4 })),
    ("FF5", Some(Field::Fraction { digits: 5 })),
    ("FF6", Some(Field::Fraction { digits: 6 })),
    ("Y,YYY", None),
    ("YYYY", Some(Field::Year(Exactly(4)))),
    ("YYY", None),
    ("YY", Some(Field::ShortYear)),
    ("Y", None),
    ("IYYY", Some(Field::IsoYear)),
    ("IDDD", None),
    ("ID", Some(Field::DayNumber)),
    ("IW", Some(Field::Week(Exactly(2)))),
    ("I", None),
    ("MONTH", Some(Field::MonthLong)),
    ("MON", Some(Field::MonthShort)),
    ("MM", Some(Field::Month(Exactly(2)))),
    ("DAY", Some(Field::DayLong)),
    ("DY", Some(Field::DayShort)),
    ("DDD", Some(Field::DayOfYear)),
    ("DD", Some(Field::Day(Exactly(2)))),
    ("D", None),
    ("AM", Some(Field::AmPm)),
    ("PM", Some(Field::AmPm)),
    ("AD", Some(Field::Era)),
    ("BC", Some(Field::Era)),
    ("TZH:TZM", Some(Field::Offset)),
    ("TZH", Some(Field::Offset)),
    ("TZ", Some(Field::Offset)),
    ("OF", Some(Field::Offset)),
    ("WW", None),
    ("W", None),
    ("Q", None),
    ("CC", None),
    ("RM", None),
    ("J", None),
];

/// Prefixes that change how a field is formatted. They have no effect on parsing.
const PREFIXES: [&str; 3] = ["FM", "FX", "TM"];

/// Elements that occur only in `PostgreSQL`'s patterns, whether in upper or lower case.
const DECISIVE: [&str; 4] = ["HH24", "HH12", "MI", "MON"];

/// Elements that occur only in `PostgreSQL`'s patterns if they are in upper case.
const DECISIVE_UPPER: [&str; 8] = ["DD", "US", "MS", "AM", "PM", "DAY", "DY", "TZ"];

fn starts_with(text: &str, prefix: &str) -> bool {
    text.as_bytes()
        .get(..prefix.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(prefix.as_bytes()))
}

/// Returns true if the pattern has an element that exists only in `PostgreSQL`'s patterns. Text in
/// quotes does not count.
pub(crate) fn is_postgres(pattern: &str) -> bool {
    let outside = pattern.split(['"', '\'']).step_by(2);
    outside.flat_map(|part| part.char_indices().map(|(at, _)| &part[at..])).any(|rest| {
        DECISIVE.iter().any(|token| starts_with(rest, token))
            || DECISIVE_UPPER.iter().any(|token| rest.starts_with(token))
    })
}

/// Compiles a pattern. An element that cannot be parsed is an [`ErrorCode::InvalidValue`].
pub(crate) fn compile(pattern: &str) -> EngineResult<Vec<PatternElement>> {
    let mut elements = Vec::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        if let Some(prefix) = PREFIXES.iter().find(|prefix| rest.starts_with(**prefix)) {
            rest = &rest[prefix.len()..];
        } else if let Some((text, field)) = TOKENS.iter().find(|(text, _)| starts_with(rest, text))
        {
            let Some(field) = field else { return Err(refused(text)) };
            elements.push(PatternElement::Field(*field));
            rest = &rest[text.len()..];
        } else if first == '"' {
            let (quoted, after) = rest[1..].split_once('"').unwrap_or((&rest[1..], ""));
            elements.push(PatternElement::Literal(quoted.to_owned()));
            rest = after;
        } else if first == 'T' {
            // The separator of ISO timestamps is often written without quotes.
            elements.push(PatternElement::Literal("T".to_owned()));
            rest = &rest[1..];
        } else if first.is_alphanumeric() {
            return Err(refused(first.encode_utf8(&mut [0; 4])));
        } else {
            if !matches!(elements.last(), Some(PatternElement::Separators)) {
                elements.push(PatternElement::Separators);
            }
            rest = &rest[first.len_utf8()..];
        }
    }
    widen(&mut elements);
    Ok(elements)
}

/// A number may have fewer or more digits than its element, unless digits follow it.
fn widen(elements: &mut [PatternElement]) {
    for index in 0..elements.len() {
        let is_followed = matches!(
            elements.get(index + 1),
            Some(PatternElement::Field(field)) if field.is_number()
        );
        if let (false, PatternElement::Field(field)) = (is_followed, &mut elements[index])
            && let Some(width) = field.width_mut()
        {
            *width = Greedy;
        }
    }
}

fn refused(element: &str) -> EngineError {
    let message = format!("pattern element '{element}' cannot be used to parse a date");
    EngineError::new(ErrorCode::InvalidValue, message)
}
