//! Elements of compiled date patterns.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatternElement {
    Literal(String),
    /// A quote: written literally, as in `QuestDB`, and skipped during parsing.
    Quote,
    /// Any number of blanks and punctuation characters, for parsing only.
    Separators,
    Field(Field),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Era,
    Year(Width),
    /// Two digits of the year between 1970 and 2069, for parsing only.
    ShortYear,
    IsoYear,
    Month(Width),
    MonthShort,
    MonthLong,
    Week(Width),
    DayOfYear,
    Day(Width),
    WeekOfMonth,
    DayShort,
    DayLong,
    DayNumber,
    AmPm,
    Hour24(Width),
    Hour24From1(Width),
    Hour12(Width),
    Hour12From1(Width),
    Minute(Width),
    Second(Width),
    /// Three decimal digits of the second: a number of milliseconds, microseconds or nanoseconds.
    /// `scale` is this unit in nanoseconds. If `fixed`, there are exactly three digits, otherwise
    /// one to three.
    Thousandth {
        scale: i64,
        fixed: bool,
    },
    /// A fraction of a second with 1 to `digits` digits.
    Fraction {
        digits: usize,
    },
    ZoneName,
    Offset,
}

/// Number of digits in a numeric field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Greedy,
    Exactly(usize),
}

impl Field {
    /// Returns the width of a numeric field whose width may differ.
    pub(crate) fn width_mut(&mut self) -> Option<&mut Width> {
        match self {
            Self::Year(width)
            | Self::Month(width)
            | Self::Week(width)
            | Self::Day(width)
            | Self::Hour24(width)
            | Self::Hour12From1(width)
            | Self::Minute(width)
            | Self::Second(width) => Some(width),
            _ => None,
        }
    }

    /// Returns true if the field is a number.
    pub(crate) fn is_number(mut self) -> bool {
        let has_width = self.width_mut().is_some();
        has_width
            || matches!(
                self,
                Self::ShortYear
                    | Self::IsoYear
                    | Self::DayOfYear
                    | Self::DayNumber
                    | Self::Fraction { .. }
            )
    }
}
