//! Versions as people write them in tags: `1.2.3`, `v1.27`, `2.0.0-rc.1`.

mod range;

use std::{cmp::Ordering, fmt};

use semver::Prerelease;

pub(crate) use self::range::Range;

/// A version. What may be left out is zero, and build metadata counts for nothing.
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    /// Major, minor and patch.
    numbers: [u64; 3],
    /// What stands behind `-`. Empty for a release.
    pre: &'a str,
    /// As it was written. Without it, it was a constant of the rule.
    text: Option<&'a str>,
}

impl<'a> Version<'a> {
    /// The version that a text says. Nothing if it says none.
    pub fn parse(text: &'a str) -> Option<Version<'a>> {
        let bare = text.strip_prefix(['v', 'V']).unwrap_or(text);
        let (numbers, rest) = bare.split_at(bare.find(['-', '+']).unwrap_or(bare.len()));
        let read = match numbers.matches('.').count() {
            0 => semver::Version::parse(&format!("{numbers}.0.0{rest}")),
            1 => semver::Version::parse(&format!("{numbers}.0{rest}")),
            _ => semver::Version::parse(bare),
        };
        let semver::Version { major, minor, patch, .. } = read.ok()?;
        let pre = rest.strip_prefix('-').unwrap_or_default();
        let pre = pre.split_once('+').map_or(pre, |(pre, _)| pre);
        Some(Version { numbers: [major, minor, patch], pre, text: Some(text) })
    }

    /// The same as a constant. Nothing for one that borrows from its text.
    pub(crate) fn constant(self) -> Option<Version<'static>> {
        self.pre.is_empty().then_some(Version { numbers: self.numbers, pre: "", text: None })
    }

    /// How many bytes an order has to look at.
    pub(crate) fn len(&self) -> usize {
        self.pre.len()
    }

    /// The order of versions: a pre-release is below its release.
    pub fn order(&self, other: &Version<'_>) -> Ordering {
        let of_pre = || match (self.pre, other.pre) {
            (one, other) if one == other => Ordering::Equal,
            // What was read as a version has a pre-release that can be read.
            (one, other) => Prerelease::new(one).ok().cmp(&Prerelease::new(other).ok()),
        };
        self.numbers.cmp(&other.numbers).then_with(of_pre)
    }
}

impl fmt::Display for Version<'_> {
    /// As it was written.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([major, minor, patch], separator) = (self.numbers, if self.pre.is_empty() { "" } else { "-" });
        match self.text {
            Some(text) => formatter.write_str(text),
            None => write!(formatter, "{major}.{minor}.{patch}{separator}{}", self.pre),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line is versions in their order: `<` and `=` stand between them.
    #[track_caller]
    fn check_order(lines: &str) {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split(' ').collect();
            for [one, sign, other] in words.windows(3).step_by(2).map(|words| [words[0], words[1], words[2]]) {
                let version = |text| Version::parse(text).unwrap_or_else(|| panic!("{text} is no version"));
                let expected = if sign == "<" { Ordering::Less } else { Ordering::Equal };
                assert_eq!(version(one).order(&version(other)), expected, "{one} {other}");
                assert_eq!(version(other).order(&version(one)), expected.reverse(), "{other} {one}");
            }
        }
    }

    #[test]
    fn versions_have_the_order_of_their_numbers() {
        check_order(
            "
            1.9.0 < 1.10.0 < 2.0.0 < 10.0.0
            1 = 1.0 = 1.0.0 = v1 = V1.0
            v1.27 = 1.27.0 < 1.27.1
            0 < 18446744073709551615
            1.2.3 = 1.2.3+build.7 = 1.2.3+other-one
            ",
        );
    }

    #[test]
    fn a_pre_release_is_below_its_release() {
        check_order(
            "
            1.0.0-alpha < 1.0.0-alpha.1 < 1.0.0-alpha.beta < 1.0.0-beta.2 < 1.0.0-beta.11 < 1.0.0-rc.1 < 1.0.0
            1.26.9 < 1.27-alpine < 1.27 = 1.27+alpine
            1.2-a = 1.2.0-a+b
            ",
        );
    }

    #[test]
    fn what_is_no_version_is_none() {
        for text in [
            "",
            "v",
            "latest",
            "1.",
            "1.2.",
            ".1",
            "1.2.3.4",
            "01.2",
            "1.2.3-",
            "1.2.3-01",
            "1.2.3-a..b",
            "1.2.3+",
            " 1",
        ] {
            assert!(Version::parse(text).is_none(), "{text}");
        }
        for text in ["1 ", "1.x", "-1", "+1", "1,2", "18446744073709551616", "1.2.3-é", "vv1", "1.2.3 4"] {
            assert!(Version::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_version_is_shown_as_it_was_written() {
        let version = |text| Version::parse(text).unwrap();
        assert_eq!(version("v1.27-rc.1+b").to_string(), "v1.27-rc.1+b");
        assert_eq!(version("v1.27").constant().unwrap().to_string(), "1.27.0");
        assert!(version("1-a").constant().is_none());
    }
}
