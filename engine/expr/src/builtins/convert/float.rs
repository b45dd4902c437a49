//! Floats as text. Both directions know the shortest digits that mean one float alone; Go and Rust differ in how they
//! arrange them.

use std::fmt;

use crate::machine::{Failure, Text};

/// Reads a float as Go does: also `inf` and `nan`, and underscores between digits. Nothing for what is too large.
pub(super) fn parse(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = if digits.contains('_') {
        let between_digits = |at: usize| {
            let is_digit = |at: usize| digits.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
            at > 0 && is_digit(at - 1) && is_digit(at + 1)
        };
        if !digits.match_indices('_').all(|(at, _)| between_digits(at)) {
            return None;
        }
        text.replace('_', "").parse::<f64>().ok()?
    } else {
        text.parse::<f64>().ok()?
    };
    let is_word = digits.starts_with(|first: char| first.is_ascii_alphabetic());
    (number.is_finite() || is_word).then_some(number)
}

/// Writes a float as `string` shows it: with an exponent when it is below a ten-thousandth, or a million and more.
pub(super) fn write(text: &mut Text<'_, '_>, number: f64) -> Result<(), Failure> {
    match word(number) {
        Some(word) => text.push(word),
        None => decimal(text, number, 1e-4, 1e6, 2),
    }
}

/// Writes a float as JSON has it. Infinity is not in JSON.
pub(super) fn write_json(text: &mut Text<'_, '_>, number: f64) -> Result<(), Failure> {
    if let Some(word) = word(number) {
        return Err(Failure::new(format!("{word} has no form in JSON")));
    }
    decimal(text, number, 1e-6, 1e21, 1)
}

fn word(number: f64) -> Option<&'static str> {
    match number {
        _ if number.is_nan() => Some("NaN"),
        f64::INFINITY => Some("+Inf"),
        f64::NEG_INFINITY => Some("-Inf"),
        _ => None,
    }
}

/// Writes a number plainly between two bounds, and otherwise with an exponent of at least so many digits.
fn decimal(text: &mut Text<'_, '_>, number: f64, from: f64, to: f64, least: usize) -> Result<(), Failure> {
    let is_plain = number == 0.0 || (from..to).contains(&number.abs());
    // The shortest digits that mean this number. If two are equally near, Go takes the even one, so the number is rounded to as
    // many digits once more. Beside a power of two the result may mean the number below it, and is not used.
    let shortest = Scientific::new(format_args!("{number:e}"));
    let precision = shortest.fraction().len();
    let rounded = Scientific::new(format_args!("{number:.precision$e}"));
    let written = if rounded.means(number) { rounded } else { shortest };
    let (first, fraction, exponent) = (written.first(), written.fraction(), written.exponent());
    if !is_plain {
        let point = if fraction.is_empty() { "" } else { "." };
        let sign = if exponent < 0 { '-' } else { '+' };
        return text.format(format_args!("{first}{point}{fraction}e{sign}{:0least$}", exponent.unsigned_abs()));
    }
    let Ok(shift) = usize::try_from(exponent) else {
        let sign = first.strip_suffix(|digit: char| digit.is_ascii_digit()).unwrap_or_default();
        let zeros = exponent.unsigned_abs() as usize - 1;
        return text.format(format_args!("{sign}0.{:0<zeros$}{}{fraction}", "", &first[sign.len()..]));
    };
    match fraction.split_at_checked(shift) {
        Some((whole, rest)) if !rest.is_empty() => text.format(format_args!("{first}{whole}.{rest}")),
        _ => text.format(format_args!("{first}{fraction:0<shift$}")),
    }
}

/// A number as `-1.5e-7`, in a buffer on the stack.
struct Scientific {
    bytes: [u8; 32],
    length: usize,
}

impl Scientific {
    fn new(arguments: fmt::Arguments<'_>) -> Scientific {
        let mut written = Scientific { bytes: [0; 32], length: 0 };
        // A float has at most 17 digits, a sign, a point and an exponent of four characters.
        let _ = fmt::Write::write_fmt(&mut written, arguments);
        written
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }

    fn means(&self, number: f64) -> bool {
        self.text().parse() == Ok(number)
    }

    fn parts(&self) -> (&str, &str) {
        self.text().split_once('e').unwrap_or((self.text(), "0"))
    }

    /// The sign and the digit before the point.
    fn first(&self) -> &str {
        let digits = self.parts().0;
        digits.split_once('.').map_or(digits, |(first, _)| first)
    }

    /// The digits after the point.
    fn fraction(&self) -> &str {
        self.parts().0.split_once('.').map_or("", |(_, fraction)| fraction)
    }

    fn exponent(&self) -> i32 {
        self.parts().1.parse().unwrap_or_default()
    }
}

impl fmt::Write for Scientific {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let place = self.bytes.get_mut(self.length..self.length + text.len()).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}
