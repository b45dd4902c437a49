//! Values from the outside: for whoever prints, reports or compares the result of an evaluation.

use std::fmt;

use bumpalo::Bump;

use crate::{
    builtins,
    limits::Limits,
    machine::Machine,
    value::{Moment, Time, Value, map::Fields, time::Civil},
};

impl<'a> Value<'a> {
    /// The elements, if it is a list, a range, bytes or an array of a document.
    pub fn elements(self) -> Option<impl Iterator<Item = Value<'a>> + 'a> {
        self.sequence().map(|sequence| sequence.iter())
    }

    /// The keys and values, if it is a map or an object of a document.
    pub fn entries(self) -> Option<Vec<(Value<'a>, Value<'a>)>> {
        Some(match self.fields()? {
            Fields::Map(map) => map.entries().to_vec(),
            Fields::Object(object) => {
                object.iter().map(|(key, value)| (Value::Text(key), Value::from_node(value))).collect()
            }
        })
    }
}

impl Time<'_> {
    /// The moment in the form of RFC 3339, in UTC.
    pub fn rfc3339(&self) -> String {
        let Civil { year, month, day, hour, minute, second } = Civil::from_seconds(self.moment.seconds());
        let sign = if year < 0 { "-" } else { "" };
        let year = year.unsigned_abs();
        let mut text = format!("{sign}{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
        if self.moment.nanoseconds() > 0 {
            let fraction = format!(".{:09}", self.moment.nanoseconds());
            text.push_str(fraction.trim_end_matches('0'));
        }
        text + "Z"
    }
}

impl fmt::Display for Value<'_> {
    /// As the builtin `string` shows it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arena = Bump::new();
        let machine = Machine::new(&arena, &Limits::default(), Moment::default(), true);
        match builtins::show(&machine, *self) {
            Ok(text) => formatter.write_str(text),
            // Larger than an evaluation may make. Whoever prints it has seen enough.
            Err(_) => formatter.write_str("…"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::value::{Moment, Time, Zone};

    #[test]
    fn a_year_has_four_digits_before_the_year_0_too() {
        let text = |seconds| Time { moment: Moment::new(seconds, 0), zone: Zone::Utc }.rfc3339();
        assert_eq!(text(-62_167_219_201), "-0001-12-31T23:59:59Z");
        assert_eq!(text(0), "1970-01-01T00:00:00Z");
    }
}
