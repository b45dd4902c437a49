//! Reading dates by a layout.

use super::layout::{self, Element, Form, MONTHS, Padding, WEEKDAYS};
use crate::value::{
    Moment, Time, Zone,
    time::{Civil, days_of_month},
};

/// What is wrong with a date. The words end a sentence that begins with the date.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Problem<'l> {
    /// Text does not fit a part of the layout.
    Mismatch { found: String, wanted: &'l str },
    /// A number is too small or too large for what it stands for.
    OutOfRange(&'static str),
    /// Something follows that the layout does not show.
    Extra(String),
}

/// What was read so far.
#[derive(Default)]
struct Parts<'v> {
    year: i64,
    month: Option<u8>,
    day: Option<u8>,
    year_day: Option<u16>,
    hour: u8,
    minute: u8,
    second: u8,
    nanoseconds: u32,
    is_am: bool,
    is_pm: bool,
    is_utc: bool,
    offset: Option<i32>,
    abbreviation: &'v str,
}

/// What stops the reading of one part.
enum Stop {
    Mismatch,
    OutOfRange(&'static str),
}

/// Reads a date. Without a zone of its own it is in `zone`, whose offsets and abbreviations are also known.
pub(super) fn parse<'v, 'l>(layout: &'l str, date: &'v str, zone: Zone<'v>) -> Result<Time<'v>, Problem<'l>> {
    let mut parts = Parts::default();
    let mut layout = layout;
    let mut rest = date;
    loop {
        let (before, element, after) = layout::next(layout);
        rest = skip(rest, before).map_err(|found| Problem::Mismatch { found: found.to_owned(), wanted: before })?;
        let Some(element) = element else { break };
        let wanted = &layout[before.len()..layout.len() - after.len()];
        layout = after;
        rest = parts.read(element, rest, after).map_err(|stop| match stop {
            Stop::Mismatch => Problem::Mismatch { found: rest.to_owned(), wanted },
            Stop::OutOfRange(what) => Problem::OutOfRange(what),
        })?;
    }
    if !rest.is_empty() {
        return Err(Problem::Extra(rest.to_owned()));
    }
    parts.time(zone)
}

impl<'v> Parts<'v> {
    /// Reads one element and returns what comes after it. The layout's rest decides whether a fraction is expected.
    fn read(&mut self, element: Element, text: &'v str, layout: &str) -> Result<&'v str, Stop> {
        let mut rest = text;
        match element {
            Element::Year => {
                let year = text.get(..4).filter(|year| year.as_bytes()[0].is_ascii_digit()).ok_or(Stop::Mismatch)?;
                self.year = year.parse().map_err(|_| Stop::Mismatch)?;
                rest = &text[4..];
            }
            Element::YearOfCentury => {
                let year: i64 = text.get(..2).and_then(|year| year.parse().ok()).ok_or(Stop::Mismatch)?;
                self.year = if year >= 69 { year + 1900 } else { year + 2000 };
                rest = &text[2..];
            }
            Element::MonthName | Element::MonthShort => {
                let short = element == Element::MonthShort;
                let (index, after) = name(&MONTHS, short, text).ok_or(Stop::Mismatch)?;
                self.month = Some(index + 1);
                rest = after;
            }
            Element::WeekdayName | Element::WeekdayShort => {
                // It must be a weekday, but the date says which.
                rest = name(&WEEKDAYS, element == Element::WeekdayShort, text).ok_or(Stop::Mismatch)?.1;
            }
            Element::Month { zero } => {
                let month = number(&mut rest, zero)?;
                self.month = Some(within(month, 1, 12, "month")?);
            }
            Element::Day(padding) => {
                if padding == Padding::Space {
                    rest = rest.strip_prefix(' ').unwrap_or(rest);
                }
                self.day = Some(number(&mut rest, padding == Padding::Zero)?);
            }
            Element::YearDay(padding) => {
                if padding == Padding::Space {
                    rest = rest.strip_prefix(' ').unwrap_or(rest);
                    rest = rest.strip_prefix(' ').unwrap_or(rest);
                }
                let digits = rest.bytes().take(3).take_while(u8::is_ascii_digit).count();
                if digits == 0 || padding == Padding::Zero && digits != 3 {
                    return Err(Stop::Mismatch);
                }
                self.year_day = Some(rest[..digits].parse().map_err(|_| Stop::Mismatch)?);
                rest = &rest[digits..];
            }
            Element::Hour => self.hour = within(number(&mut rest, false)?, 0, 23, "hour")?,
            Element::Hour12 { zero } => self.hour = within(number(&mut rest, zero)?, 0, 12, "hour")?,
            Element::Minute { zero } => self.minute = within(number(&mut rest, zero)?, 0, 59, "minute")?,
            Element::Second { zero } => {
                self.second = within(number(&mut rest, zero)?, 0, 59, "second")?;
                // A fraction may follow even where the layout shows none.
                let is_expected = matches!(layout::next(layout).1, Some(Element::Fraction { .. }));
                if !is_expected && let Some(length) = fraction(rest) {
                    self.nanoseconds = nanoseconds(&rest[..length])?;
                    rest = &rest[length..];
                }
            }
            Element::Half { upper } => {
                let (am, pm) = if upper { ("AM", "PM") } else { ("am", "pm") };
                let afternoon = text.strip_prefix(pm);
                self.is_pm |= afternoon.is_some();
                self.is_am |= afternoon.is_none();
                rest = afternoon.or_else(|| text.strip_prefix(am)).ok_or(Stop::Mismatch)?;
            }
            Element::Offset { z: true, .. } if text.starts_with('Z') => {
                self.is_utc = true;
                rest = &text[1..];
            }
            Element::Offset { form, .. } => self.offset = Some(offset(&mut rest, form)?),
            Element::Abbreviation => match text.strip_prefix("UTC") {
                Some(after) => {
                    self.is_utc = true;
                    rest = after;
                }
                None => {
                    let length = abbreviation(text).ok_or(Stop::Mismatch)?;
                    (self.abbreviation, rest) = text.split_at(length);
                }
            },
            Element::Fraction { nines: false, digits, .. } => {
                let written = text.get(..1 + digits).ok_or(Stop::Mismatch)?;
                self.nanoseconds = nanoseconds(written)?;
                rest = &text[1 + digits..];
            }
            Element::Fraction { .. } => {
                if let Some(length) = fraction(text) {
                    self.nanoseconds = nanoseconds(&text[..length])?;
                    rest = &text[length..];
                }
            }
        }
        Ok(rest)
    }

    fn time<'l>(self, zone: Zone<'v>) -> Result<Time<'v>, Problem<'l>> {
        let (month, day) = self.date()?;
        if day < 1 || day > days_of_month(self.year, month) {
            return Err(Problem::OutOfRange("day"));
        }
        let hour = match self.hour {
            hour if self.is_pm && hour < 12 => hour + 12,
            12 if self.is_am && !self.is_pm => 0,
            hour => hour,
        };
        let civil = Civil { year: self.year, month, day, hour, minute: self.minute, second: self.second };
        if self.is_utc {
            return Ok(Time { moment: Zone::Utc.moment(civil, self.nanoseconds), zone: Zone::Utc });
        }
        let local = civil.seconds();
        let name = self.abbreviation;
        if let Some(offset) = self.offset {
            let moment = Moment::new(local - i64::from(offset), self.nanoseconds);
            let is_ours = zone.offset(moment) == offset
                && (name.is_empty() || zone.with_abbreviation(moment, |ours| ours == name));
            return Ok(Time { moment, zone: if is_ours { zone } else { Zone::Fixed { name, offset } } });
        }
        if name.is_empty() {
            return Ok(Time { moment: zone.moment(civil, self.nanoseconds), zone });
        }
        if let Some(offset) = zone.offset_of(name, local) {
            return Ok(Time { moment: Moment::new(local - i64::from(offset), self.nanoseconds), zone });
        }
        // With an abbreviation that is not known, Go takes the time for UTC. Of `GMT+3` it shows the offset, and does not
        // subtract it either.
        let hours: i32 = name.strip_prefix("GMT").and_then(|hours| hours.parse().ok()).unwrap_or(0);
        let zone = Zone::Fixed { name, offset: hours * 3600 };
        Ok(Time { moment: Moment::new(local, self.nanoseconds), zone })
    }

    /// The month and the day, from either or both of two ways to write them.
    fn date<'l>(&self) -> Result<(u8, u8), Problem<'l>> {
        let Some(year_day) = self.year_day else {
            return Ok((self.month.unwrap_or(1), self.day.unwrap_or(1)));
        };
        let mut day = year_day;
        let mut month = 1;
        while month <= 12 && day > u16::from(days_of_month(self.year, month)) {
            day -= u16::from(days_of_month(self.year, month));
            month += 1;
        }
        if year_day == 0 || month > 12 {
            return Err(Problem::OutOfRange("day of the year"));
        }
        let day = day as u8;
        if self.month.is_some_and(|written| written != month) || self.day.is_some_and(|written| written != day) {
            return Err(Problem::OutOfRange("day of the year, which is another date,"));
        }
        Ok((month, day))
    }
}

/// Steps over text that layout and date share. Spaces in a row count as one, and one may be missing at the end.
fn skip<'v>(date: &'v str, prefix: &str) -> Result<&'v str, &'v str> {
    let mut date = date;
    let mut prefix = prefix;
    while let Some(character) = prefix.chars().next() {
        if character == ' ' {
            if !date.is_empty() && !date.starts_with(' ') {
                return Err(date);
            }
            prefix = prefix.trim_start_matches(' ');
            date = date.trim_start_matches(' ');
        } else {
            date = date.strip_prefix(character).ok_or(date)?;
            prefix = &prefix[character.len_utf8()..];
        }
    }
    Ok(date)
}

/// The place of the name that text begins with, whatever the case of its letters.
fn name<'v>(names: &[&str], short: bool, text: &'v str) -> Option<(u8, &'v str)> {
    names.iter().enumerate().find_map(|(index, name)| {
        let name = if short { &name[..3] } else { name };
        let found = text.get(..name.len()).filter(|found| found.eq_ignore_ascii_case(name))?;
        Some((index as u8, &text[found.len()..]))
    })
}

/// One or two digits.
fn number(text: &mut &str, two: bool) -> Result<u8, Stop> {
    let digits = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    if digits == 0 || two && digits == 1 {
        return Err(Stop::Mismatch);
    }
    let number = text[..digits].parse().map_err(|_| Stop::Mismatch)?;
    *text = &text[digits..];
    Ok(number)
}

fn within(number: u8, least: u8, most: u8, what: &'static str) -> Result<u8, Stop> {
    if (least..=most).contains(&number) { Ok(number) } else { Err(Stop::OutOfRange(what)) }
}

/// The length of a point or comma with digits after it.
fn fraction(text: &str) -> Option<usize> {
    let digits = text.strip_prefix(['.', ','])?.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then_some(1 + digits)
}

/// Nanoseconds of a separator and digits, of which nine count. A sign may come first, as in Go; less than zero is too
/// small.
fn nanoseconds(text: &str) -> Result<u32, Stop> {
    let digits = text.strip_prefix(['.', ',']).ok_or(Stop::Mismatch)?;
    let digits = digits.get(..9).unwrap_or(digits);
    let number: i64 = digits.parse().map_err(|_| Stop::Mismatch)?;
    if number < 0 {
        return Err(Stop::OutOfRange("fractional second"));
    }
    let missing = 9_u32.saturating_sub(digits.len() as u32);
    u32::try_from(number * 10_i64.pow(missing)).map_err(|_| Stop::OutOfRange("fractional second"))
}

fn offset(text: &mut &str, form: Form) -> Result<i32, Stop> {
    let (length, minutes, seconds) = match form {
        Form::Hours => (3, None, None),
        Form::Minutes { colon: false } => (5, Some(3), None),
        Form::Minutes { colon: true } => (6, Some(4), None),
        Form::Seconds { colon: false } => (7, Some(3), Some(5)),
        Form::Seconds { colon: true } => (9, Some(4), Some(7)),
    };
    let written = text.get(..length).ok_or(Stop::Mismatch)?;
    let colons = matches!(form, Form::Minutes { colon: true } | Form::Seconds { colon: true });
    let is_colon = |at: Option<usize>| at.is_none_or(|at| written.as_bytes()[at - 1] == b':');
    if colons && !(is_colon(minutes) && is_colon(seconds)) {
        return Err(Stop::Mismatch);
    }
    let part = |at: Option<usize>| match at {
        Some(at) => number(&mut written.get(at..at + 2).ok_or(Stop::Mismatch)?, true),
        None => Ok(0),
    };
    let (hours, minutes, seconds) = (part(Some(1))?, part(minutes)?, part(seconds)?);
    // People do write offsets of 24 hours and of 60 minutes.
    within(hours, 0, 24, "time zone offset hour")?;
    within(minutes, 0, 60, "time zone offset minute")?;
    within(seconds, 0, 60, "time zone offset second")?;
    let offset = (i32::from(hours) * 60 + i32::from(minutes)) * 60 + i32::from(seconds);
    *text = &text[length..];
    match written.as_bytes()[0] {
        b'+' => Ok(offset),
        b'-' => Ok(-offset),
        _ => Err(Stop::Mismatch),
    }
}

/// The length of an abbreviation of a zone: three capitals, more if a T ends them, or one of some exceptions.
fn abbreviation(text: &str) -> Option<usize> {
    if text.len() < 3 {
        return None;
    }
    if text.starts_with("ChST") || text.starts_with("MeST") {
        return Some(4);
    }
    if let Some(hours) = text.strip_prefix("GMT") {
        return Some(3 + signed_hours(hours).unwrap_or(0));
    }
    if text.starts_with(['+', '-']) {
        return signed_hours(text);
    }
    let capitals = text.bytes().take(6).take_while(u8::is_ascii_uppercase).count();
    let is_zone = match capitals {
        3 => true,
        4 => text.as_bytes()[3] == b'T' || text.starts_with("WITA"),
        5 => text.as_bytes()[4] == b'T',
        _ => false,
    };
    is_zone.then_some(capitals)
}

/// The length of a sign and a number of hours below 24.
fn signed_hours(text: &str) -> Option<usize> {
    let digits = text.strip_prefix(['+', '-'])?;
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    let hours: u64 = digits[..length].parse().ok()?;
    (hours <= 23).then_some(1 + length)
}
