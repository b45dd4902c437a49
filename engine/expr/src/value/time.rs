//! Moments, time zones and the calendar. What functions do with them is in [`crate::builtins`].

use std::{
    collections::BTreeMap,
    fmt,
    sync::{LazyLock, Mutex, PoisonError},
};

use jiff::{
    Timestamp,
    tz::{Offset, TimeZone, TimeZoneDatabase},
};

const NANOSECONDS: i64 = 1_000_000_000;
const SECONDS_OF_DAY: i64 = 86_400;
/// Days from the first of March of year 0, where leap days end their year, to 1970.
const DAYS_TO_1970: i64 = 719_468;
const DAYS_OF_400_YEARS: i64 = 146_097;

/// A moment, wherever one is.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Moment {
    /// Since 1970 began in UTC.
    seconds: i64,
    /// Added to the seconds; less than a second.
    nanoseconds: u32,
}

/// A moment in a time zone.
#[derive(Clone, Copy, Debug)]
pub struct Time<'a> {
    /// When it is.
    pub moment: Moment,
    /// Which calendar and clock show it.
    pub zone: Zone<'a>,
}

/// A time zone.
#[derive(Clone, Copy, Debug)]
pub enum Zone<'a> {
    /// Coordinated universal time.
    Utc,
    /// Always the same distance from UTC, in seconds to the east. A time that was read with an offset has a zone without
    /// a name.
    Fixed {
        /// What it calls itself.
        name: &'a str,
        /// Seconds to the east.
        offset: i32,
    },
    /// A zone of the IANA database.
    Named(&'static Named),
}

/// A zone of the IANA database. Each is made once and stays: there are some six hundred.
pub struct Named {
    name: Box<str>,
    zone: TimeZone,
}

/// What a calendar and a clock show.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: u8,
    /// From 1.
    pub(crate) day: u8,
    pub(crate) hour: u8,
    pub(crate) minute: u8,
    pub(crate) second: u8,
}

static ZONES: LazyLock<Mutex<BTreeMap<&'static str, &'static Named>>> = LazyLock::new(Mutex::default);

impl Moment {
    /// A moment of seconds since 1970 began in UTC, and nanoseconds, of which more than a second's worth is carried over.
    pub fn new(seconds: i64, nanoseconds: u32) -> Moment {
        let carry = i64::from(nanoseconds) / NANOSECONDS;
        Moment { seconds: seconds.saturating_add(carry), nanoseconds: nanoseconds % NANOSECONDS as u32 }
    }

    /// Whole seconds since 1970 began in UTC.
    pub fn seconds(self) -> i64 {
        self.seconds
    }

    /// What comes after the whole seconds.
    pub fn nanoseconds(self) -> u32 {
        self.nanoseconds
    }

    /// The moment so many nanoseconds later.
    pub(crate) fn add(self, nanoseconds: i64) -> Moment {
        let sum = i64::from(self.nanoseconds) + nanoseconds.rem_euclid(NANOSECONDS);
        let seconds = self.seconds.saturating_add(nanoseconds.div_euclid(NANOSECONDS));
        Moment { seconds: seconds.saturating_add(sum / NANOSECONDS), nanoseconds: (sum % NANOSECONDS) as u32 }
    }

    /// Nanoseconds since an earlier moment: the largest or smallest number if there are more.
    pub(crate) fn since(self, earlier: Moment) -> i64 {
        let seconds = i128::from(self.seconds) - i128::from(earlier.seconds);
        let nanoseconds = i128::from(self.nanoseconds) - i128::from(earlier.nanoseconds);
        let sum = seconds * i128::from(NANOSECONDS) + nanoseconds;
        sum.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }
}

impl Time<'_> {
    /// What calendar and clock show.
    pub(crate) fn civil(&self) -> Civil {
        Civil::from_seconds(self.moment.seconds.saturating_add(i64::from(self.zone.offset(self.moment))))
    }
}

impl<'a> Zone<'a> {
    /// The zone that the IANA database calls so, letter by letter.
    pub(crate) fn named(name: &str) -> Option<Zone<'a>> {
        let mut zones = ZONES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = zones.get(name) {
            return Some(Zone::Named(known));
        }
        let zone = TimeZoneDatabase::bundled().get(name).ok()?;
        // The database does not mind the case of letters. Go does.
        let exact = zone.iana_name()? == name;
        if !exact {
            return None;
        }
        let named: &'static Named = Box::leak(Box::new(Named { name: name.into(), zone }));
        zones.insert(&named.name, named);
        Some(Zone::Named(named))
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Zone::Utc => "UTC",
            Zone::Fixed { name, .. } => name,
            Zone::Named(named) => &named.name,
        }
    }

    /// Seconds to the east of UTC at a moment.
    pub(crate) fn offset(&self, moment: Moment) -> i32 {
        match self {
            Zone::Utc => 0,
            Zone::Fixed { offset, .. } => *offset,
            Zone::Named(named) => named.zone.to_offset(timestamp(moment)).seconds(),
        }
    }

    /// Shows what the zone calls itself at a moment, such as `CEST`. Empty if it has no name.
    pub(crate) fn with_abbreviation<R>(&self, moment: Moment, then: impl FnOnce(&str) -> R) -> R {
        match self {
            Zone::Utc => then("UTC"),
            Zone::Fixed { name, .. } => then(name),
            Zone::Named(named) => then(named.zone.to_offset_info(timestamp(moment)).abbreviation()),
        }
    }

    /// The moment at which calendar and clock show something. Of two such moments one, of none a near one: the same as Go
    /// takes.
    pub(crate) fn moment(&self, civil: Civil, nanoseconds: u32) -> Moment {
        let local = civil.seconds();
        let guess = i64::from(self.offset(Moment::new(local, 0)));
        let offset = i64::from(self.offset(Moment::new(local.saturating_sub(guess), 0)));
        Moment::new(local.saturating_sub(offset), nanoseconds)
    }

    /// Seconds to the east when the zone called itself so: at the moment that the clock shows, or else at the first time.
    pub(crate) fn offset_of(&self, abbreviation: &str, local: i64) -> Option<i32> {
        let Zone::Named(named) = self else { return None };
        // Abbreviations that come after this are the same every year.
        let last = Timestamp::from_second(4_102_444_800).unwrap_or(Timestamp::MAX);
        let changes = named.zone.following(Timestamp::MIN).take_while(|change| change.timestamp() < last);
        let before = named.zone.to_offset_info(Timestamp::MIN);
        let is_before = before.abbreviation() == abbreviation;
        let offsets = is_before
            .then(|| before.offset())
            .into_iter()
            .chain(changes.filter(|change| change.abbreviation() == abbreviation).map(|change| change.offset()));
        let mut first = None;
        for offset in offsets.map(Offset::seconds) {
            let moment = timestamp(Moment::new(local.saturating_sub(i64::from(offset)), 0));
            let then = named.zone.to_offset_info(moment);
            if then.abbreviation() == abbreviation {
                return Some(then.offset().seconds());
            }
            first = first.or(Some(offset));
        }
        first
    }
}

impl Civil {
    /// What is shown so many seconds after 1970 began there.
    pub(crate) fn from_seconds(seconds: i64) -> Civil {
        let (year, month, day) = date(seconds.div_euclid(SECONDS_OF_DAY));
        let second = seconds.rem_euclid(SECONDS_OF_DAY);
        Civil {
            year,
            month,
            day,
            hour: (second / 3600) as u8,
            minute: (second / 60 % 60) as u8,
            second: (second % 60) as u8,
        }
    }

    /// Seconds since 1970 began there.
    pub(crate) fn seconds(self) -> i64 {
        let clock = i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second);
        self.days().saturating_mul(SECONDS_OF_DAY).saturating_add(clock)
    }

    /// From 0 for Sunday.
    pub(crate) fn weekday(self) -> u8 {
        // 1970 began on a Thursday.
        (self.days() + 4).rem_euclid(7) as u8
    }

    /// From 1.
    pub(crate) fn year_day(self) -> u16 {
        (self.days() - days(self.year, 1, 1) + 1) as u16
    }

    fn days(self) -> i64 {
        days(self.year, i64::from(self.month), i64::from(self.day))
    }
}

impl fmt::Debug for Named {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

/// Days from 1970 to a date. Days beyond a month's end are days of the next; months from 1 to 12.
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    // A year that begins in March has its leap day at the end, and its months have a regular length: 153 days in five.
    let year = if month <= 2 { year - 1 } else { year };
    let cycle = year.div_euclid(400);
    let year = year.rem_euclid(400);
    let month = (month + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_cycle = year * 365 + year / 4 - year / 100 + day_of_year;
    cycle * DAYS_OF_400_YEARS + day_of_cycle - DAYS_TO_1970
}

pub(crate) fn days_of_month(year: i64, month: u8) -> u8 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Year, month and day, so many days after 1970 began.
fn date(days: i64) -> (i64, u8, u8) {
    let days = days + DAYS_TO_1970;
    let cycle = days.div_euclid(DAYS_OF_400_YEARS);
    let day = days.rem_euclid(DAYS_OF_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = cycle * 400 + year + i64::from(month <= 2);
    (year, month as u8, day as u8)
}

/// The moment as the database of zones takes it, which knows the years up to 9999. A later moment is replaced by
/// one with the same place in a cycle of 400 years: the calendar and the last rules of a zone repeat by then.
fn timestamp(moment: Moment) -> Timestamp {
    const PERIOD: i64 = DAYS_OF_400_YEARS * SECONDS_OF_DAY;
    let last = Timestamp::MAX.as_second();
    let seconds = if moment.seconds > last { last - PERIOD + (moment.seconds - last) % PERIOD } else { moment.seconds };
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(seconds: i64, date: (i64, u8, u8), weekday: u8, year_day: u16) {
        let civil = Civil::from_seconds(seconds);
        assert_eq!((civil.year, civil.month, civil.day), date);
        assert_eq!((civil.weekday(), civil.year_day()), (weekday, year_day));
        assert_eq!(civil.seconds(), seconds);
    }

    #[test]
    fn the_calendar_counts_leap_years() {
        check(0, (1970, 1, 1), 4, 1);
        check(-1, (1969, 12, 31), 3, 365);
        check(951_782_400, (2000, 2, 29), 2, 60);
        check(4_107_456_000, (2100, 2, 28), 0, 59);
        check(4_107_542_400, (2100, 3, 1), 1, 60);
        check(-62_167_219_200, (0, 1, 1), 6, 1);
        check(-62_167_219_201, (-1, 12, 31), 5, 365);
        check(253_402_300_799, (9999, 12, 31), 5, 365);
    }

    #[track_caller]
    fn check_moment(zone: &str, (month, day, hour): (u8, u8, u8), offset: i32) {
        let zone = Zone::named(zone).unwrap();
        let civil = Civil { year: 2026, month, day, hour, minute: 30, second: 0 };
        let moment = zone.moment(civil, 0);
        assert_eq!(moment.seconds(), civil.seconds() - i64::from(offset));
    }

    #[test]
    fn a_clock_that_shows_a_time_twice_or_never_means_what_go_takes() {
        check_moment("Europe/Berlin", (7, 1, 12), 7200);
        check_moment("Europe/Berlin", (10, 25, 2), 3600);
        check_moment("Europe/Berlin", (3, 29, 2), 3600);
        check_moment("America/New_York", (11, 1, 1), -14400);
        check_moment("America/New_York", (3, 8, 2), -14400);
    }

    #[test]
    fn names_of_zones_are_exact() {
        assert!(Zone::named("europe/berlin").is_none());
        assert!(Zone::named("../etc/passwd").is_none());
    }
}
