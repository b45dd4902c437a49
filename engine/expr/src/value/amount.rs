//! Amounts as Kubernetes writes them: `100m`, `1.5`, `2Gi`, `1e3`.
//!
//! Reads every text that Kubernetes' own parser reads, as the same amount: what is finer than a billionth is rounded away from
//! zero, and an amount with a binary suffix is at most 2⁶³-1.

use std::fmt;

/// An exact amount, in billionths. Amounts that are too large for it, beyond 10²⁹, count as the largest.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Amount(i128);

/// An amount, and the text that it was read from. Without one it was computed.
#[derive(Clone, Copy, Debug)]
pub struct Quantity<'a> {
    /// The amount.
    pub amount: Amount,
    /// As it was written.
    pub text: Option<&'a str>,
}

/// Billionths in one.
const ONE: i128 = 1_000_000_000;

/// The digits of a billionth.
const PLACES: i64 = 9;

/// The most that can be written with a binary suffix.
const MAX_BINARY: i128 = i64::MAX as i128 * ONE;

/// An exponent beyond this makes any amount too large, or a billionth.
const MAX_EXPONENT: i64 = 10_000;

/// A number as it is written, apart from its sign.
struct Written<'a> {
    whole: &'a str,
    fraction: &'a str,
    suffix: Suffix,
}

#[derive(Clone, Copy)]
enum Suffix {
    /// Times ten to this.
    Decimal(i64),
    /// Times 1024 to this.
    Binary(u32),
}

impl Amount {
    /// The amount that a text says. Nothing if it says none.
    pub fn parse(text: &str) -> Option<Amount> {
        let (is_negative, unsigned) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let written = Written::parse(unsigned)?;
        let magnitude = written.quick().unwrap_or_else(|| written.exact());
        let magnitude = match written.suffix {
            Suffix::Binary(_) => magnitude.min(MAX_BINARY),
            Suffix::Decimal(_) => magnitude,
        };
        Some(Amount(if is_negative { -magnitude } else { magnitude }))
    }

    /// A whole number.
    pub fn of_int(number: i64) -> Amount {
        Amount(i128::from(number) * ONE)
    }

    /// A float, by the shortest text that means it: `0.1` is a tenth. Nothing if it is no number.
    pub fn of_float(number: f64) -> Option<Amount> {
        if number.is_finite() { Amount::parse(&number.to_string()) } else { None }
    }

    /// How many billionths it has.
    pub fn billionths(self) -> i128 {
        self.0
    }

    /// The sum.
    pub(crate) fn plus(self, other: Amount) -> Amount {
        Amount(self.0.saturating_add(other.0))
    }

    /// The difference.
    pub(crate) fn minus(self, other: Amount) -> Amount {
        Amount(self.0.saturating_sub(other.0))
    }

    /// So many times as much. What is finer than a billionth is rounded up.
    pub(crate) fn times(self, other: Amount) -> Amount {
        match self.0.checked_mul(other.0) {
            Some(product) => Amount(divided(product, ONE)),
            // Too large for exact digits.
            None => Amount((self.0 as f64 * other.0 as f64 / ONE as f64) as i128),
        }
    }

    /// How many times as much as the other one.
    pub(crate) fn ratio(self, other: Amount) -> f64 {
        self.0 as f64 / other.0 as f64
    }

    /// The part of it. What is finer than a billionth is rounded up. Nothing for no parts.
    pub(crate) fn part(self, parts: Amount) -> Option<Amount> {
        if parts.0 == 0 {
            return None;
        }
        Some(match self.0.checked_mul(ONE) {
            Some(scaled) => Amount(divided(scaled, parts.0)),
            None => Amount((self.0 as f64 / parts.0 as f64 * ONE as f64) as i128),
        })
    }
}

/// Divides and rounds away from zero.
fn divided(dividend: i128, divisor: i128) -> i128 {
    let (quotient, rest) = (dividend / divisor, dividend % divisor);
    if rest == 0 { quotient } else { quotient + (rest.signum() * divisor.signum()) }
}

impl fmt::Display for Amount {
    /// As a plain number.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, fraction) = (self.0.unsigned_abs() / ONE as u128, self.0.unsigned_abs() % ONE as u128);
        write!(formatter, "{sign}{whole}")?;
        if fraction == 0 {
            return Ok(());
        }
        let digits = format!("{fraction:09}");
        write!(formatter, ".{}", digits.trim_end_matches('0'))
    }
}

impl fmt::Display for Quantity<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text {
            Some(text) => formatter.write_str(text),
            None => self.amount.fmt(formatter),
        }
    }
}

impl<'a> Written<'a> {
    /// A number without its sign. No digits at all are zero, as Kubernetes takes them where it needs no large numbers.
    fn parse(text: &'a str) -> Option<Written<'a>> {
        let (whole, rest) = split_digits(text);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => split_digits(rest),
            None => ("", rest),
        };
        let suffix = Suffix::parse(suffix)?;
        let is_small = matches!(suffix, Suffix::Binary(..=4) | Suffix::Decimal(-9..));
        let has_digits = !whole.is_empty() || !fraction.is_empty();
        (has_digits || is_small).then_some(Written { whole, fraction, suffix })
    }

    /// The amount of a number of few digits: nearly every one. Nothing if it takes more than that.
    fn quick(&self) -> Option<i128> {
        const FEW: usize = 15;
        if self.whole.len() + self.fraction.len() > FEW {
            return None;
        }
        let digits = |text: &str, before: i128| {
            text.bytes().fold(before, |number, digit| number * 10 + i128::from(digit - b'0'))
        };
        let number = digits(self.fraction, digits(self.whole, 0));
        let (factor, exponent) = match self.suffix {
            Suffix::Decimal(exponent) => (1, exponent),
            Suffix::Binary(power) => (1 << (10 * power), 0),
        };
        let shift = u32::try_from(exponent - self.fraction.len() as i64 + PLACES).ok()?;
        number.checked_mul(factor)?.checked_mul(10_i128.checked_pow(shift)?)
    }

    /// The amount of a number of any length, digit by digit.
    fn exact(&self) -> i128 {
        let digits = self.whole.bytes().chain(self.fraction.bytes()).map(|digit| u32::from(digit - b'0'));
        let mut digits: Vec<u32> = digits.skip_while(|digit| *digit == 0).collect();
        let mut shift = PLACES - self.fraction.len() as i64;
        match self.suffix {
            Suffix::Decimal(exponent) => shift += exponent,
            Suffix::Binary(power) => (0..power).for_each(|_| multiply(&mut digits, 1024)),
        }
        let dropped = usize::try_from(-shift).unwrap_or(0);
        let rest = digits.split_off(digits.len().saturating_sub(dropped));
        let digits = digits.into_iter().chain((0..shift).map(|_| 0));
        let number = digits.fold(0_i128, |number, digit| number.saturating_mul(10).saturating_add(i128::from(digit)));
        if rest.iter().any(|digit| *digit != 0) { number.saturating_add(1) } else { number }
    }
}

impl Suffix {
    fn parse(text: &str) -> Option<Suffix> {
        Some(match text {
            "n" => Suffix::Decimal(-9),
            "u" => Suffix::Decimal(-6),
            "m" => Suffix::Decimal(-3),
            "" => Suffix::Decimal(0),
            "k" => Suffix::Decimal(3),
            "M" => Suffix::Decimal(6),
            "G" => Suffix::Decimal(9),
            "T" => Suffix::Decimal(12),
            "P" => Suffix::Decimal(15),
            "E" => Suffix::Decimal(18),
            "Ki" => Suffix::Binary(1),
            "Mi" => Suffix::Binary(2),
            "Gi" => Suffix::Binary(3),
            "Ti" => Suffix::Binary(4),
            "Pi" => Suffix::Binary(5),
            "Ei" => Suffix::Binary(6),
            _ => Suffix::Decimal(exponent(text.strip_prefix(['e', 'E'])?)?),
        })
    }
}

/// A whole number with a sign, cut to what makes a difference.
fn exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = digits.bytes().fold(0_i64, |number, digit| (number * 10 + i64::from(digit - b'0')).min(MAX_EXPONENT));
    Some(if text.starts_with('-') { -number } else { number })
}

/// The digits that a text begins with, and the rest.
fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len()))
}

/// Multiplies a number of decimal digits, the highest first, by a small one.
fn multiply(digits: &mut Vec<u32>, factor: u32) {
    let mut carry = 0;
    for digit in digits.iter_mut().rev() {
        let product = *digit * factor + carry;
        (*digit, carry) = (product % 10, product / 10);
    }
    while carry > 0 {
        digits.insert(0, carry % 10);
        carry /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line is a text and the amount as a plain number.
    #[track_caller]
    fn check(lines: &str) {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (text, expected) = line.split_once(" is ").expect("a line has two sides");
            let found = Amount::parse(text).map_or("none".to_owned(), |amount| amount.to_string());
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn every_suffix_is_read() {
        check(
            "
            1n is 0.000000001
            1u is 0.000001
            100m is 0.1
            1 is 1
            1k is 1000
            1M is 1000000
            1G is 1000000000
            1T is 1000000000000
            1P is 1000000000000000
            1E is 1000000000000000000
            1Ki is 1024
            1.5Mi is 1572864
            1Gi is 1073741824
            1Ti is 1099511627776
            1Pi is 1125899906842624
            1Ei is 1152921504606846976
            1e3 is 1000
            1E-3 is 0.001
            12e+2 is 1200
            -1.5 is -1.5
            +.5 is 0.5
            1. is 1
            007 is 7
            Gi is 0
            - is 0
            ",
        );
    }

    #[test]
    fn what_is_no_amount_is_none() {
        check(
            "
            1GB is none
            1 Gi is none
            1gi is none
            1e is none
            1ee3 is none
            1.2.3 is none
            0x10 is none
            one is none
            1Ki3 is none
            --1 is none
            Pi is none
            e-10 is none
            ",
        );
        assert_eq!(Amount::parse(""), None);
    }

    #[test]
    fn amounts_are_exact_and_rounded_away_from_zero_below_a_billionth() {
        check(
            "
            0.1 is 0.1
            0.3 is 0.3
            0.0000000001 is 0.000000001
            -0.0000000001 is -0.000000001
            1.0000000001 is 1.000000001
            123456789012345678901234567 is 123456789012345678901234567
            0.00000000000000000000000000000000000001Ki is 0.000000001
            1e-400 is 0.000000001
            0e400 is 0
            ",
        );
    }

    #[test]
    fn a_binary_amount_has_a_largest() {
        check(
            "
            8Ei is 9223372036854775807
            99999999999999999999Ki is 9223372036854775807
            -99Ei is -9223372036854775807
            ",
        );
    }

    #[test]
    fn amounts_are_computed_with() {
        let amount = |text| Amount::parse(text).unwrap();
        assert_eq!(amount("1Gi").plus(amount("512Mi")), amount("1.5Gi"));
        assert_eq!(amount("1").minus(amount("100m")), amount("900m"));
        assert_eq!(amount("100m").times(Amount::of_int(3)), amount("300m"));
        assert_eq!(amount("1").part(Amount::of_int(3)), Some(amount("333333334n")));
        assert_eq!(amount("1").part(amount("0")), None);
        assert_eq!(amount("3Gi").ratio(amount("2Gi")), 1.5);
        assert_eq!(Amount::of_float(0.1), Some(amount("100m")));
        assert_eq!(Amount::of_float(f64::NAN), None);
    }
}
