//! Layouts of dates as in Go: a layout shows how a certain moment would be written,
//! `Mon Jan 2 15:04:05 MST 2006`.

use crate::{
    machine::{Failure, Text},
    value::Time,
};

/// A part of a layout that stands for something.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Element {
    Year,
    YearOfCentury,
    MonthName,
    MonthShort,
    Month {
        zero: bool,
    },
    WeekdayName,
    WeekdayShort,
    Day(Padding),
    YearDay(Padding),
    Hour,
    Hour12 {
        zero: bool,
    },
    Minute {
        zero: bool,
    },
    Second {
        zero: bool,
    },
    /// `PM` or `pm`.
    Half {
        upper: bool,
    },
    Abbreviation,
    Offset {
        form: Form,
        z: bool,
    },
    /// Digits of a second. Nines leave out zeros at the end.
    Fraction {
        digits: usize,
        nines: bool,
        comma: bool,
    },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Padding {
    None,
    Space,
    Zero,
}

/// How an offset from UTC is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    Hours,
    Minutes { colon: bool },
    Seconds { colon: bool },
}

pub(super) const RFC3339: &str = "2006-01-02T15:04:05Z07:00";
pub(super) const RFC3339_NANOS: &str = "2006-01-02T15:04:05.999999999Z07:00";
/// How a time turns into text by itself.
pub(super) const PLAIN: &str = "2006-01-02 15:04:05.999999999 -0700 MST";

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// What stands for what. Of two that fit, the first is meant.
const ELEMENTS: &[(&str, Element)] = &[
    ("January", Element::MonthName),
    ("Jan", Element::MonthShort),
    ("Monday", Element::WeekdayName),
    ("Mon", Element::WeekdayShort),
    ("MST", Element::Abbreviation),
    ("01", Element::Month { zero: true }),
    ("02", Element::Day(Padding::Zero)),
    ("03", Element::Hour12 { zero: true }),
    ("04", Element::Minute { zero: true }),
    ("05", Element::Second { zero: true }),
    ("06", Element::YearOfCentury),
    ("002", Element::YearDay(Padding::Zero)),
    ("15", Element::Hour),
    ("1", Element::Month { zero: false }),
    ("2006", Element::Year),
    ("2", Element::Day(Padding::None)),
    ("_2", Element::Day(Padding::Space)),
    ("__2", Element::YearDay(Padding::Space)),
    ("3", Element::Hour12 { zero: false }),
    ("4", Element::Minute { zero: false }),
    ("5", Element::Second { zero: false }),
    ("PM", Element::Half { upper: true }),
    ("pm", Element::Half { upper: false }),
    ("-070000", Element::Offset { form: Form::Seconds { colon: false }, z: false }),
    ("-07:00:00", Element::Offset { form: Form::Seconds { colon: true }, z: false }),
    ("-0700", Element::Offset { form: Form::Minutes { colon: false }, z: false }),
    ("-07:00", Element::Offset { form: Form::Minutes { colon: true }, z: false }),
    ("-07", Element::Offset { form: Form::Hours, z: false }),
    ("Z070000", Element::Offset { form: Form::Seconds { colon: false }, z: true }),
    ("Z07:00:00", Element::Offset { form: Form::Seconds { colon: true }, z: true }),
    ("Z0700", Element::Offset { form: Form::Minutes { colon: false }, z: true }),
    ("Z07:00", Element::Offset { form: Form::Minutes { colon: true }, z: true }),
    ("Z07", Element::Offset { form: Form::Hours, z: true }),
];

/// The text before the next element, the element, and what comes after it.
pub(super) fn next(layout: &str) -> (&str, Option<Element>, &str) {
    for (at, character) in layout.char_indices() {
        if !matches!(character, 'J' | 'M' | '0'..='5' | '_' | 'P' | 'p' | '-' | 'Z' | '.' | ',') {
            continue;
        }
        let (before, here) = layout.split_at(at);
        if let Some((element, length)) = element(here) {
            return (before, Some(element), &here[length..]);
        }
    }
    (layout, None, "")
}

/// The element that text begins with, and its length.
fn element(text: &str) -> Option<(Element, usize)> {
    if text.starts_with(['.', ',']) {
        return fraction(text);
    }
    // Before a year the underscore is plain text.
    if text.starts_with("_2006") {
        return None;
    }
    ELEMENTS.iter().find_map(|(written, element)| {
        let rest = text.strip_prefix(written)?;
        // `Month` does not begin with a weekday.
        let is_word = matches!(element, Element::MonthShort | Element::WeekdayShort);
        let goes_on = rest.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
        (!(is_word && goes_on)).then_some((*element, written.len()))
    })
}

fn fraction(text: &str) -> Option<(Element, usize)> {
    let bytes = text.as_bytes();
    let digit = *bytes.get(1).filter(|byte| matches!(byte, b'0' | b'9'))?;
    let digits = bytes[1..].iter().take_while(|byte| **byte == digit).count();
    if bytes.get(1 + digits).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let element = Element::Fraction { digits, nines: digit == b'9', comma: bytes[0] == b',' };
    Some((element, 1 + digits))
}

/// Writes a time as the layout shows it.
pub(super) fn write(text: &mut Text<'_, '_>, time: &Time<'_>, layout: &str) -> Result<(), Failure> {
    let civil = time.civil();
    let hour12 = if civil.hour.is_multiple_of(12) { 12 } else { civil.hour % 12 };
    let month = MONTHS[usize::from(civil.month - 1) % 12];
    let weekday = WEEKDAYS[usize::from(civil.weekday()) % 7];
    let mut rest = layout;
    loop {
        let (before, element, after) = next(rest);
        text.push(before)?;
        let Some(element) = element else { return Ok(()) };
        rest = after;
        match element {
            Element::Year => year(text, civil.year)?,
            Element::YearOfCentury => text.format(format_args!("{:02}", civil.year.unsigned_abs() % 100))?,
            Element::MonthName => text.push(month)?,
            Element::MonthShort => text.push(&month[..3])?,
            Element::Month { zero } => number(text, civil.month, zero)?,
            Element::WeekdayName => text.push(weekday)?,
            Element::WeekdayShort => text.push(&weekday[..3])?,
            Element::Day(Padding::Space) => text.format(format_args!("{:2}", civil.day))?,
            Element::Day(padding) => number(text, civil.day, padding == Padding::Zero)?,
            Element::YearDay(Padding::Zero) => text.format(format_args!("{:03}", civil.year_day()))?,
            Element::YearDay(_) => text.format(format_args!("{:3}", civil.year_day()))?,
            Element::Hour => number(text, civil.hour, true)?,
            Element::Hour12 { zero } => number(text, hour12, zero)?,
            Element::Minute { zero } => number(text, civil.minute, zero)?,
            Element::Second { zero } => number(text, civil.second, zero)?,
            Element::Half { upper } => text.push(match (civil.hour >= 12, upper) {
                (true, true) => "PM",
                (true, false) => "pm",
                (false, true) => "AM",
                (false, false) => "am",
            })?,
            Element::Abbreviation => {
                let written = time.zone.with_abbreviation(time.moment, |name| {
                    if name.is_empty() { Ok(false) } else { text.push(name).map(|()| true) }
                })?;
                if !written {
                    offset(text, time.zone.offset(time.moment), Form::Minutes { colon: false })?;
                }
            }
            Element::Offset { form, z } => match time.zone.offset(time.moment) {
                0 if z => text.push("Z")?,
                seconds => offset(text, seconds, form)?,
            },
            Element::Fraction { digits, nines, comma } => {
                fraction_of(text, time.moment.nanoseconds(), digits, nines, comma)?;
            }
        }
    }
}

fn number(text: &mut Text<'_, '_>, number: u8, zero: bool) -> Result<(), Failure> {
    if zero { text.format(format_args!("{number:02}")) } else { text.format(format_args!("{number}")) }
}

fn year(text: &mut Text<'_, '_>, year: i64) -> Result<(), Failure> {
    let sign = if year < 0 { "-" } else { "" };
    text.format(format_args!("{sign}{:04}", year.unsigned_abs()))
}

fn offset(text: &mut Text<'_, '_>, seconds: i32, form: Form) -> Result<(), Failure> {
    let (minutes, rest) = (seconds / 60, seconds.unsigned_abs() % 60);
    let sign = if minutes < 0 { '-' } else { '+' };
    let (hours, minutes) = (minutes.unsigned_abs() / 60, minutes.unsigned_abs() % 60);
    match form {
        Form::Hours => text.format(format_args!("{sign}{hours:02}")),
        Form::Minutes { colon: false } => text.format(format_args!("{sign}{hours:02}{minutes:02}")),
        Form::Minutes { colon: true } => text.format(format_args!("{sign}{hours:02}:{minutes:02}")),
        Form::Seconds { colon: false } => text.format(format_args!("{sign}{hours:02}{minutes:02}{rest:02}")),
        Form::Seconds { colon: true } => text.format(format_args!("{sign}{hours:02}:{minutes:02}:{rest:02}")),
    }
}

fn fraction_of(
    text: &mut Text<'_, '_>,
    nanoseconds: u32,
    digits: usize,
    nines: bool,
    comma: bool,
) -> Result<(), Failure> {
    if nines && nanoseconds == 0 {
        return Ok(());
    }
    let start = text.len();
    text.format(format_args!("{}{nanoseconds:09}", if comma { ',' } else { '.' }))?;
    text.truncate(start + 1 + digits.min(9));
    if nines {
        let zeros = text.bytes()[start..].iter().rev().take_while(|byte| **byte == b'0').count();
        let end = text.len() - zeros;
        // Only the separator is left when the digits that were asked for are all zero.
        text.truncate(if end == start + 1 { start } else { end });
    }
    Ok(())
}
