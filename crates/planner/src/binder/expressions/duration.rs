//! Durations as a count and a unit: `15m`, `h`.

use tidemark_ast::{Node, NodeId, Span};
use tidemark_operators::StepUnit;
use tidemark_types::{EngineResult, ErrorCode};

use crate::binder::{Binder, error};

impl Binder<'_> {
    /// Parses `1h`, `h`, or a variable with such a value.
    pub(crate) fn duration(&mut self, id: NodeId) -> EngineResult<(i64, StepUnit)> {
        let position = self.tree.span(id);
        match self.node(id)? {
            Node::Duration { text } => parse_step(text, position),
            Node::Column { path } if path.len() == 1 => parse_step(&path[0].text, position),
            Node::Integer { text } => parse_step(text, position),
            Node::String { value } => Err(error::at(
                ErrorCode::InvalidValue,
                format!("Invalid unit: '{value}'"),
                position,
            )),
            Node::Variable { name } => match self.variable_value(name) {
                Some(value) => self.duration(value.node),
                None => Err(error::at(
                    ErrorCode::ColumnNotFound,
                    format!("tried to use undeclared variable `@{}`", name.text),
                    position,
                )),
            },
            _ => Err(error::at(ErrorCode::InvalidValue, "time interval unit expected", position)),
        }
    }
}

fn parse_step(text: &str, position: Span) -> EngineResult<(i64, StepUnit)> {
    let invalid = || error::at(ErrorCode::InvalidValue, format!("Invalid unit: {text}"), position);
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (count, unit) = text.split_at(digits);
    let mut letters = unit.chars();
    let (Some(letter), None) = (letters.next(), letters.next()) else { return Err(invalid()) };
    let unit = StepUnit::parse(letter).ok_or_else(invalid)?;
    let count: i64 = match count {
        "" => 1,
        digits => digits.parse().map_err(|_| invalid())?,
    };
    if count == 0 {
        return Err(error::at(
            ErrorCode::InvalidValue,
            format!("positive number expected: {text}"),
            position,
        ));
    }
    Ok((count, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_steps_have_a_count_and_a_unit() {
        let step = |text: &str| parse_step(text, Span::default()).ok();
        assert_eq!(step("15m"), Some((15, StepUnit::Minute)));
        assert_eq!(step("M"), Some((1, StepUnit::Month)));
        assert_eq!(step("0h"), None);
        assert_eq!(step("10u"), None);
    }
}
