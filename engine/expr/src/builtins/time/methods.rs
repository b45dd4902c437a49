//! What can be called on a time, a duration or a timezone: `.Year()`, `.Hours()`.

use std::cmp::Ordering;

use super::{duration, layout};
use crate::{
    builtins::{check::Refusal, integer_of, text_of},
    machine::{Failure, Machine},
    types::Type,
    value::{
        Time, Value,
        time::{Civil, days},
    },
};

/// Seconds from 1970 to the start of the year 1, which is what Go calls the zero time.
const ZERO: i64 = -62_135_596_800;

/// A method.
pub(crate) struct Method {
    /// What it is called on.
    pub(crate) base: Type,
    pub(crate) name: &'static str,
    pub(crate) parameters: &'static [Type],
    pub(crate) result: Type,
    /// One line for the reference page.
    pub(crate) about: &'static str,
    run: Run,
}

enum Run {
    Time(for<'a> fn(&Machine<'a>, &'a Time<'a>, &[Value<'a>]) -> Result<Value<'a>, Failure>),
    Part(fn(&Time<'_>) -> i64),
    Duration(for<'a> fn(&Machine<'a>, i64) -> Result<Value<'a>, Failure>),
    ZoneName,
}

/// The methods, in the order of the reference page.
pub(crate) static METHODS: &[Method] = &[
    part("Year", "the year", |time| time.civil().year),
    part("Month", "the month, 1 to 12", |time| i64::from(time.civil().month)),
    part("Day", "the day of the month", |time| i64::from(time.civil().day)),
    part("Hour", "the hour, 0 to 23", |time| i64::from(time.civil().hour)),
    part("Minute", "the minute", |time| i64::from(time.civil().minute)),
    part("Second", "the second", |time| i64::from(time.civil().second)),
    part("Nanosecond", "the nanoseconds after the whole second", |time| i64::from(time.moment.nanoseconds())),
    part("Weekday", "the day of the week, 0 for Sunday", |time| i64::from(time.civil().weekday())),
    part("YearDay", "the day of the year, from 1", |time| i64::from(time.civil().year_day())),
    part("Unix", "seconds since 1970", |time| time.moment.seconds()),
    part("UnixMilli", "milliseconds since 1970", |time| unix(time, 1_000)),
    part("UnixMicro", "microseconds since 1970", |time| unix(time, 1_000_000)),
    part("UnixNano", "nanoseconds since 1970", |time| unix(time, 1_000_000_000)),
    time("Format", &[Type::TEXT], Type::TEXT, "the time as a layout shows it", format),
    time("String", &[], Type::TEXT, "the time as `string` shows it", |machine, time, _| {
        write(machine, time, layout::PLAIN)
    }),
    time("Add", &[Type::DURATION], Type::TIME, "the time so much later", |machine, time, arguments| {
        let [Value::Duration(nanoseconds)] = arguments else { return refused("a duration", arguments) };
        machine.keep(Time { moment: time.moment.add(*nanoseconds), zone: time.zone }).map(Value::Time)
    }),
    time(
        "AddDate",
        &[Type::INT, Type::INT, Type::INT],
        Type::TIME,
        "the time so many years, months, days later",
        add_date,
    ),
    time("Sub", &[Type::TIME], Type::DURATION, "how much later it is than another time", |_, time, arguments| {
        Ok(Value::Duration(time.moment.since(other(arguments)?.moment)))
    }),
    time("Before", &[Type::TIME], Type::BOOL, "whether it is before another time", |_, time, arguments| {
        Ok(Value::Bool(time.moment < other(arguments)?.moment))
    }),
    time("After", &[Type::TIME], Type::BOOL, "whether it is after another time", |_, time, arguments| {
        Ok(Value::Bool(time.moment > other(arguments)?.moment))
    }),
    time("Equal", &[Type::TIME], Type::BOOL, "whether it is the same moment", |_, time, arguments| {
        Ok(Value::Bool(time.moment == other(arguments)?.moment))
    }),
    time("Compare", &[Type::TIME], Type::INT, "-1 before another time, 1 after it, 0 at it", |_, time, arguments| {
        Ok(Value::Int(match time.moment.cmp(&other(arguments)?.moment) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }))
    }),
    time("IsZero", &[], Type::BOOL, "whether it is the start of the year 1", |_, time, _| {
        Ok(Value::Bool((time.moment.seconds(), time.moment.nanoseconds()) == (ZERO, 0)))
    }),
    time("UTC", &[], Type::TIME, "the same moment in UTC", |machine, time, _| {
        machine.keep(Time { moment: time.moment, zone: crate::value::Zone::Utc }).map(Value::Time)
    }),
    time("In", &[Type::ZONE], Type::TIME, "the same moment in a timezone", |machine, time, arguments| {
        let [Value::Zone(zone)] = arguments else { return refused("a timezone", arguments) };
        machine.keep(Time { moment: time.moment, zone: **zone }).map(Value::Time)
    }),
    length("Hours", Type::FLOAT, "the duration in hours", |_, all| Ok(Value::Float(split(all, 3_600_000_000_000)))),
    length("Minutes", Type::FLOAT, "the duration in minutes", |_, all| Ok(Value::Float(split(all, 60_000_000_000)))),
    length("Seconds", Type::FLOAT, "the duration in seconds", |_, all| Ok(Value::Float(split(all, 1_000_000_000)))),
    length("Milliseconds", Type::INT, "whole milliseconds", |_, all| Ok(Value::Int(all / 1_000_000))),
    length("Microseconds", Type::INT, "whole microseconds", |_, all| Ok(Value::Int(all / 1_000))),
    length("Nanoseconds", Type::INT, "nanoseconds", |_, all| Ok(Value::Int(all))),
    length("Abs", Type::DURATION, "the duration without its sign", |_, all| Ok(Value::Duration(all.saturating_abs()))),
    length("String", Type::TEXT, "the duration as `string` shows it", |machine, all| {
        let mut text = machine.writer();
        duration::write(&mut text, all)?;
        text.finish().map(Value::Text)
    }),
    Method {
        base: Type::ZONE,
        name: "String",
        parameters: &[],
        result: Type::TEXT,
        about: "the name of the timezone",
        run: Run::ZoneName,
    },
];

impl Method {
    /// Whether it can be called with these. `nil` passes for a timezone, as in Go, and fails when the call runs.
    pub(crate) fn check(&self, types: &[Type]) -> Result<(), Refusal> {
        let (name, expected) = (self.name, self.parameters.len());
        if types.len() != expected {
            return Err(Refusal::call(format!("{name} takes {expected} arguments, got {}", types.len())));
        }
        let fits = |parameter: Type, found: Type| {
            found.is_unknown() || found == parameter || found.is_nil() && parameter == Type::ZONE
        };
        match (0..expected).find(|index| !fits(self.parameters[*index], types[*index])) {
            None => Ok(()),
            Some(index) => {
                let message = format!("{name} expects a {}, got {}", self.parameters[index], types[index]);
                Err(Refusal::argument(index, message))
            }
        }
    }
}

/// The method of a type, for the compiler.
pub(crate) fn signature(base: Type, name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.base == base && method.name == name)
}

/// Whether a value has a method of that name.
pub(in crate::builtins) fn has_method(value: Value<'_>, name: &str) -> bool {
    type_of(value).is_some_and(|base| signature(base, name).is_some())
}

/// Calls a method of a value.
pub(crate) fn method<'a>(
    machine: &Machine<'a>,
    base: Value<'a>,
    name: &str,
    arguments: &[Value<'a>],
) -> Result<Value<'a>, Failure> {
    let unknown = || Failure::new(format!("{} has no method {name}", base.kind()));
    let method = type_of(base).and_then(|kind| signature(kind, name)).ok_or_else(unknown)?;
    if arguments.len() != method.parameters.len() {
        let expected = method.parameters.len();
        return Err(Failure::new(format!("{name} takes {expected} arguments, got {}", arguments.len())));
    }
    match (&method.run, base) {
        (Run::Part(run), Value::Time(time)) => Ok(Value::Int(run(time))),
        (Run::Time(run), Value::Time(time)) => run(machine, time, arguments),
        (Run::Duration(run), Value::Duration(nanoseconds)) => run(machine, nanoseconds),
        (Run::ZoneName, Value::Zone(zone)) => Ok(Value::Text(zone.name())),
        _ => Err(unknown()),
    }
}

/// The type of a value that has methods.
fn type_of(value: Value<'_>) -> Option<Type> {
    match value {
        Value::Time(_) => Some(Type::TIME),
        Value::Duration(_) => Some(Type::DURATION),
        Value::Zone(_) => Some(Type::ZONE),
        _ => None,
    }
}

const fn part(name: &'static str, about: &'static str, run: fn(&Time<'_>) -> i64) -> Method {
    Method { base: Type::TIME, name, parameters: &[], result: Type::INT, about, run: Run::Part(run) }
}

const fn time(
    name: &'static str,
    parameters: &'static [Type],
    result: Type,
    about: &'static str,
    run: for<'a> fn(&Machine<'a>, &'a Time<'a>, &[Value<'a>]) -> Result<Value<'a>, Failure>,
) -> Method {
    Method { base: Type::TIME, name, parameters, result, about, run: Run::Time(run) }
}

const fn length(
    name: &'static str,
    result: Type,
    about: &'static str,
    run: for<'a> fn(&Machine<'a>, i64) -> Result<Value<'a>, Failure>,
) -> Method {
    Method { base: Type::DURATION, name, parameters: &[], result, about, run: Run::Duration(run) }
}

fn format<'a>(machine: &Machine<'a>, time: &'a Time<'a>, arguments: &[Value<'a>]) -> Result<Value<'a>, Failure> {
    let [layout] = arguments else { return Err(Failure::arguments()) };
    write(machine, time, text_of(*layout)?)
}

fn write<'a>(machine: &Machine<'a>, time: &Time<'a>, layout: &str) -> Result<Value<'a>, Failure> {
    machine.step(layout.len() as u64)?;
    let mut text = machine.writer();
    text.reserve(layout.len() + 16)?;
    layout::write(&mut text, time, layout)?;
    text.finish().map(Value::Text)
}

/// Adds to each part of the date and lets what is too much run over: a month after January 31 is a day in March.
fn add_date<'a>(machine: &Machine<'a>, time: &'a Time<'a>, arguments: &[Value<'a>]) -> Result<Value<'a>, Failure> {
    let [years, months, later] = arguments else { return Err(Failure::arguments()) };
    let in_range = |number: Value<'a>| match integer_of(number)? {
        number @ -1_000_000_000..=1_000_000_000 => Ok(number),
        number => Err(Failure::new(format!("{number} is too far from now for AddDate"))),
    };
    let civil = time.civil();
    let month = i64::from(civil.month) - 1 + in_range(*months)?;
    let year = civil.year.saturating_add(in_range(*years)?).saturating_add(month.div_euclid(12));
    if !(-1_000_000_000..=1_000_000_000).contains(&year) {
        return Err(Failure::new(format!("the year {year} is too far from now for AddDate")));
    }
    let date = days(year, month.rem_euclid(12) + 1, i64::from(civil.day)) + in_range(*later)?;
    let clock = civil.seconds().rem_euclid(86_400);
    let moment = time.zone.moment(Civil::from_seconds(date * 86_400 + clock), time.moment.nanoseconds());
    machine.keep(Time { moment, zone: time.zone }).map(Value::Time)
}

fn unix(time: &Time<'_>, per_second: i64) -> i64 {
    let rest = i64::from(time.moment.nanoseconds()) / (1_000_000_000 / per_second);
    time.moment.seconds().wrapping_mul(per_second).wrapping_add(rest)
}

/// A number of units with a fraction, in the arithmetic that Go does it in.
fn split(nanoseconds: i64, unit: i64) -> f64 {
    (nanoseconds / unit) as f64 + (nanoseconds % unit) as f64 / unit as f64
}

fn other<'v, 'a>(arguments: &'v [Value<'a>]) -> Result<&'v Time<'a>, Failure> {
    match arguments {
        [Value::Time(time)] => Ok(time),
        _ => Err(refusal("a time", arguments)),
    }
}

fn refused<'a>(what: &str, arguments: &[Value<'a>]) -> Result<Value<'a>, Failure> {
    Err(refusal(what, arguments))
}

fn refusal(what: &str, arguments: &[Value<'_>]) -> Failure {
    Failure::expected(what, arguments.first().copied().unwrap_or(Value::Nil))
}
