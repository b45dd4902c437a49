//! `now`, `date`, `duration` and `timezone`, and the methods of what they return.

mod duration;
mod layout;
mod methods;
mod parse;

pub(super) use self::methods::has_method;
pub(crate) use self::methods::{METHODS, method, signature};
use self::parse::Problem;
use super::{check::Refusal, quoted, text_of};
use crate::{
    machine::{Failure, Machine, Text},
    types::Type,
    value::{Time, Value, Zone},
};

/// Layouts that `date` tries in turn.
const LAYOUTS: [&str; 7] = [
    "2006-01-02",
    "15:04:05",
    "2006-01-02 15:04:05",
    layout::RFC3339,
    "02 Jan 06 15:04 MST",
    "Monday, 02-Jan-06 15:04:05 MST",
    "Mon, 02 Jan 2006 15:04:05 MST",
];

pub(super) fn now<'a>(machine: &Machine<'a>, arguments: &[Value<'a>]) -> Result<Value<'a>, Failure> {
    let zone = match arguments {
        [] => Zone::Utc,
        [Value::Zone(zone)] => **zone,
        _ => return Err(Failure::arguments()),
    };
    machine.keep(Time { moment: machine.now(), zone }).map(Value::Time)
}

pub(super) fn duration<'a>(machine: &Machine<'a>, arguments: &[Value<'a>]) -> Result<Value<'a>, Failure> {
    let [text] = arguments else { return Err(Failure::arguments()) };
    let text = text_of(*text)?;
    machine.step_bytes(text.len())?;
    match duration::parse(text) {
        Some(nanoseconds) => Ok(Value::Duration(nanoseconds)),
        None => Err(Failure::new(format!("{} is not a duration such as 1h30m", quoted(text)))),
    }
}

pub(super) fn timezone<'a>(machine: &Machine<'a>, arguments: &[Value<'a>]) -> Result<Value<'a>, Failure> {
    let [name] = arguments else { return Err(Failure::arguments()) };
    let zone = zone(machine, text_of(*name)?)?;
    machine.keep(zone).map(Value::Zone)
}

/// `date([zone,] text [, layout [, zone]])`.
pub(super) fn date<'a>(machine: &Machine<'a>, arguments: &[Value<'a>]) -> Result<Value<'a>, Failure> {
    let (first, arguments) = match arguments {
        [Value::Zone(zone), rest @ ..] => (Some(**zone), rest),
        _ => (None, arguments),
    };
    let [text, rest @ ..] = arguments else { return Err(Failure::arguments()) };
    let text = text_of(*text)?;
    let utc = first.unwrap_or(Zone::Utc);
    let time = match rest {
        [] => {
            machine.step(8)?;
            let found = LAYOUTS.iter().find_map(|layout| parse::parse(layout, text, utc).ok());
            found.ok_or_else(|| Failure::new(format!("{} is not a date of a known form", quoted(text))))?
        }
        [layout] => parse_layout(machine, text_of(*layout)?, text, utc)?,
        [layout, name] => {
            let layout = text_of(*layout)?;
            let zone = zone(machine, text_of(*name)?)?;
            parse_layout(machine, layout, text, zone)?
        }
        _ => return Err(Failure::arguments()),
    };
    machine.keep(time).map(Value::Time)
}

pub(super) fn check_now(types: &[Type]) -> Result<Type, Refusal> {
    match types {
        [] | [Type::ZONE] => Ok(Type::TIME),
        _ => Err(Refusal::call("takes no argument but a timezone")),
    }
}

pub(super) fn check_date(types: &[Type]) -> Result<Type, Refusal> {
    let rest = match types {
        [] => return Err(Refusal::call("needs a date")),
        [Type::ZONE, rest @ ..] => rest,
        rest => rest,
    };
    if rest.len() > 3 {
        return Err(Refusal::call("takes a date, a layout and the name of a timezone"));
    }
    Ok(Type::TIME)
}

/// Writes a time as `string` shows it.
pub(super) fn write_time(text: &mut Text<'_, '_>, time: &Time<'_>) -> Result<(), Failure> {
    layout::write(text, time, layout::PLAIN)
}

/// Writes a time as JSON has it, which knows only four digits for a year and 24 hours for an offset.
pub(super) fn write_json_time(text: &mut Text<'_, '_>, time: &Time<'_>) -> Result<(), Failure> {
    if !(0..=9999).contains(&time.civil().year) {
        return Err(Failure::new("a time outside of the years 0 to 9999 has no form in JSON"));
    }
    if time.zone.offset(time.moment).unsigned_abs() >= 24 * 3600 {
        return Err(Failure::new("a time a day or more from UTC has no form in JSON"));
    }
    layout::write(text, time, layout::RFC3339_NANOS)
}

/// Writes a duration as `string` shows it.
pub(super) fn write_duration(text: &mut Text<'_, '_>, nanoseconds: i64) -> Result<(), Failure> {
    duration::write(text, nanoseconds)
}

fn parse_layout<'a>(
    machine: &Machine<'a>,
    layout: &'a str,
    text: &'a str,
    zone: Zone<'a>,
) -> Result<Time<'a>, Failure> {
    machine.step(layout.len() as u64 + text.len() as u64 / 16 + 1)?;
    parse::parse(layout, text, zone).map_err(|problem| {
        let date = quoted(text);
        Failure::new(match problem {
            Problem::Mismatch { found, wanted } => {
                format!("date {date} does not fit its layout: {} is not of the form {}", quoted(&found), quoted(wanted))
            }
            Problem::OutOfRange(what) => format!("date {date}: {what} out of range"),
            Problem::Extra(extra) => format!("date {date}: {} is more than its layout shows", quoted(&extra)),
        })
    })
}

/// The zone of a name. There is no local zone: an engine must answer the same wherever it runs.
fn zone<'a>(machine: &Machine<'a>, name: &str) -> Result<Zone<'a>, Failure> {
    machine.step(16)?;
    match name {
        "" | "UTC" | "Local" => Ok(Zone::Utc),
        _ => Zone::named(name).ok_or_else(|| Failure::new(format!("unknown timezone {}", quoted(name)))),
    }
}

#[cfg(test)]
mod tests {
    use crate::builtins::sample::check;

    #[test]
    fn dates_are_read_in_common_forms_and_by_layouts() {
        check(
            r#"
            date("2026-03-01") => 2026-03-01T00:00:00Z
            date("12:30:00") => 0000-01-01T12:30:00Z
            date("2026-03-01 12:30:15") => 2026-03-01T12:30:15Z
            date("2026-03-01T12:30:15.5+02:00") => 2026-03-01T10:30:15.5Z
            date("01 Mar 26 12:30 UTC") => 2026-03-01T12:30:00Z
            date("Sunday, 01-Mar-26 12:30:15 UTC") => 2026-03-01T12:30:15Z
            date("Sun, 01 Mar 2026 12:30:15 GMT") => 2026-03-01T12:30:15Z
            date("2026-02-30") => error: "2026-02-30" is not a date of a known form
            date("nonsense") => error: "nonsense" is not a date of a known form
            date("01.03.2026", "02.01.2006") => 2026-03-01T00:00:00Z
            date("3:04pm 1/2/26", "3:04pm 1/2/06") => 2026-01-02T15:04:00Z
            date("12:00 am", "03:04 pm") => 0000-01-01T00:00:00Z
            date("2026-060", "2006-002") => 2026-03-01T00:00:00Z
            date("2026-366", "2006-002") => error: date "2026-366": day of the year out of range
            date("2026-03-01 05:00 -0330", "2006-01-02 15:04 -0700") => 2026-03-01T08:30:00Z
            date("2026-03-01", "2006-01-02", "Europe/Berlin") => 2026-02-28T23:00:00Z
            date("2026-07-01", "2006-01-02", "Europe/Berlin") => 2026-06-30T22:00:00Z
            date(timezone("America/New_York"), "2026-07-01 12:00:00") => 2026-07-01T16:00:00Z
            date("2026-07-01 12:00 CEST", "2006-01-02 15:04 MST", "Europe/Berlin") => 2026-07-01T10:00:00Z
            date("2026-03-01", "2006-01-02", "Nowhere") => error: unknown timezone "Nowhere"
            date("2026-13-01", "2006-01-02") => error: date "2026-13-01": month out of range
            date("2026-03-01x", "2006-01-02") => error: date "2026-03-01x": "x" is more than its layout shows
            date("2026/03/01", "2006-01-02") => error: date "2026/03/01" does not fit its layout: "/03/01" is not of the form "-"
            date(1) => error: expected a string, got int
            date(nil) => error: expected a string, got nil
            "#,
        );
    }

    #[test]
    fn durations_are_numbers_with_units() {
        check(
            r#"
            duration("1h30m") => 5400000000000ns
            duration("-1.5h") => -5400000000000ns
            duration("100us") => 100000ns
            duration("0") => 0ns
            duration("1.000000001s") => 1000000001ns
            duration("") => error: "" is not a duration such as 1h30m
            duration("1") => error: "1" is not a duration such as 1h30m
            duration("1 h") => error: "1 h" is not a duration such as 1h30m
            duration("1d") => error: "1d" is not a duration such as 1h30m
            duration("9223372036854775807ns") => 9223372036854775807ns
            duration("9223372036854775808ns") => error: "9223372036854775808ns" is not a duration such as 1h30m
            duration(1) => error: expected a string, got int
            timezone("Europe/Berlin") => Europe/Berlin
            timezone("UTC") => UTC
            timezone("") => UTC
            timezone("europe/berlin") => error: unknown timezone "europe/berlin"
            timezone("../etc") => error: unknown timezone "../etc"
            timezone(nil) => error: expected a string, got nil
            "#,
        );
    }

    #[test]
    fn times_have_the_methods_of_go() {
        check(
            r#"
            date("2026-03-01T12:30:15.25Z").Year() => 2026
            date("2026-03-01T12:30:15.25Z").Day() => 1
            date("2026-03-01T12:30:15.25Z").Hour() => 12
            date("2026-03-01T12:30:15.25Z").Minute() => 30
            date("2026-03-01T12:30:15.25Z").Second() => 15
            date("2026-03-01T12:30:15.25Z").Nanosecond() => 250000000
            date("2026-03-01T12:30:15.25Z").YearDay() => 60
            date("2026-03-01T12:30:15.25Z").Unix() => 1772368215
            date("2026-03-01T12:30:15.25Z").UnixMilli() => 1772368215250
            date("1969-12-31T23:59:59.5Z").Unix() => -1
            date("1969-12-31T23:59:59.5Z").UnixNano() => -500000000
            date("2026-03-01T12:30:15.25Z").Format("Mon Jan _2 15:04:05.000 2006") => "Sun Mar  1 12:30:15.250 2026"
            date("2026-03-01T12:30:15.25Z").Format("3:04PM Monday, January 02, 06 (002) -07:00") => "12:30PM Sunday, March 01, 26 (060) +00:00"
            date("2026-03-01T12:30:15.25Z").In(timezone("Asia/Kolkata")).Format("2006-01-02T15:04:05.999Z07:00 MST") => "2026-03-01T18:00:15.25+05:30 IST"
            date("2026-03-01T12:30:15+01:00").Format("MST Z0700 -07 .000 2006-01-02T15:04:05Z07:00") => "+0100 +0100 +01 .000 2026-03-01T12:30:15+01:00"
            date("2026-03-01").Format("") => ""
            date("2026-01-31").AddDate(0, 1, 0) => 2026-03-03T00:00:00Z
            date("2024-02-29").AddDate(1, 0, -1) => 2025-02-28T00:00:00Z
            date("2026-03-28T12:00:00Z").In(timezone("Europe/Berlin")).AddDate(0, 0, 1) => 2026-03-29T11:00:00Z
            date("2026-03-01").Add(duration("36h")) => 2026-03-02T12:00:00Z
            date("2026-03-02").Sub(date("2026-03-01")) => 86400000000000ns
            date("2026-03-02").Before(date("2026-03-01")) => false
            date("2026-03-02").After(date("2026-03-01")) => true
            date("2026-03-01T01:00:00+01:00").Equal(date("2026-03-01")) => true
            date("2026-03-01").Compare(date("2026-03-02")) => -1
            date("0001-01-01").IsZero() => true
            date("2026-03-01T01:00:00+01:00").UTC().String() => "2026-03-01 00:00:00 +0000 UTC"
            duration("90m").Hours() => 1.5
            duration("90s").Minutes() => 1.5
            duration("1500ms").Seconds() => 1.5
            duration("1500us").Milliseconds() => 1
            duration("1500ns").Microseconds() => 1
            duration("1us").Nanoseconds() => 1000
            duration("-1h").Abs() => 3600000000000ns
            duration("1h1ms").String() => "1h0m0.001s"
            timezone("Europe/Berlin").String() => "Europe/Berlin"
            date("2026-03-01").Foo() => error: time has no method Foo
            date("2026-03-01").Format() => error: Format takes 1 arguments, got 0
            date("2026-03-01").Format(1) => error: expected a string, got int
            date("2026-03-01").Add(1) => error: expected a duration, got int
            duration("1h").Year() => error: duration has no method Year
            (nil).Year() => error: nil has no method Year
            "#,
        );
    }
}
