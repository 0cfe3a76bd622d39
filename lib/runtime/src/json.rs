//! JSON as the log needs it: written into a line, with nothing in between.

use std::fmt::Write as _;

/// Appends a JSON string.
pub(crate) fn push_text(line: &mut String, text: &str) {
    line.push('"');
    let mut rest = text;
    // All that is escaped is one byte.
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0x7f) || byte < 0x20) {
        let (plain, special) = rest.split_at(at);
        line.push_str(plain);
        let (special, after) = special.split_at(1);
        match special {
            "\"" | "\\" => line.extend(["\\", special]),
            control => write!(line, "\\u{:04x}", control.as_bytes()[0]).expect("a string takes text"),
        }
        rest = after;
    }
    line.push_str(rest);
    line.push('"');
}

/// Appends a number. Most are whole, and those are quicker to write as such.
pub(crate) fn push_number(line: &mut String, number: f64) {
    #[expect(clippy::cast_possible_truncation, reason = "a number that does not fit is not equal to what it becomes")]
    let whole = number as i64;
    #[expect(clippy::cast_precision_loss, reason = "a number that loses something is not equal to what it was")]
    let is_whole = whole as f64 == number;
    match is_whole {
        true => write!(line, "{whole}"),
        false => write!(line, "{number}"),
    }
    .expect("a string takes text");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_keeps_to_its_line_and_its_quotes() {
        let mut line = String::new();
        push_text(&mut line, "a \"b\"\\\n\u{7f}ü🙂");
        assert_eq!(line, "\"a \\\"b\\\"\\\\\\u000a\\u007fü🙂\"");
    }

    #[test]
    fn a_number_is_written_as_short_as_it_can_be() {
        let mut line = String::new();
        for number in [0.0, 2.0, 0.5, 12.345, 1e15] {
            push_number(&mut line, number);
            line.push(' ');
        }
        assert_eq!(line, "0 2 0.5 12.345 1000000000000000 ");
    }
}
