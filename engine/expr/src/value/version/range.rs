//! Ranges of versions: `>=1.20 <2 || 3.x`.

use super::Version;
use crate::builtins::quoted;

/// A range of versions: of several lists of comparators, all of one must hold.
#[derive(Clone, Debug)]
pub(crate) struct Range(Box<[Box<[Comparator]>]>);

#[derive(Clone, Debug)]
struct Comparator {
    operator: Operator,
    numbers: [u64; 3],
    /// How many of the numbers are written. The others stand for any where the operator asks for the same, and are zero where it
    /// asks for an order.
    given: usize,
    pre: Box<str>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Operator {
    Same,
    More,
    MoreOrSame,
    Less,
    LessOrSame,
    Caret,
    Tilde,
}

impl Range {
    /// The range that a text says, or why it says none.
    pub(crate) fn parse(text: &str) -> Result<Range, String> {
        text.split("||").map(alternative).collect::<Result<_, _>>().map(Range)
    }

    pub(crate) fn contains(&self, version: &Version<'_>) -> bool {
        self.0.iter().any(|alternative| alternative.iter().all(|comparator| comparator.holds(version)))
    }
}

/// The comparators between two `||`.
fn alternative(text: &str) -> Result<Box<[Comparator]>, String> {
    let is_between = |character: char| character.is_whitespace() || character == ',';
    let mut comparators = Vec::new();
    let mut rest = text.trim_matches(is_between);
    if rest.is_empty() {
        return Err("a range has a version such as \"1.2\" on each side of `||`".to_owned());
    }
    while !rest.is_empty() {
        let is_sign = |character: char| "=<>^~!".contains(character);
        let (sign, behind) = rest.split_at(rest.find(|character| !is_sign(character)).unwrap_or(rest.len()));
        let behind = behind.trim_start();
        let (version, behind) = behind.split_at(behind.find(is_between).unwrap_or(behind.len()));
        comparators.push(Comparator::parse(sign, version)?);
        rest = behind.trim_start_matches(is_between);
    }
    Ok(comparators.into())
}

impl Comparator {
    fn parse(sign: &str, version: &str) -> Result<Comparator, String> {
        let operator = match sign {
            "" | "=" => Operator::Same,
            ">" => Operator::More,
            ">=" => Operator::MoreOrSame,
            "<" => Operator::Less,
            "<=" => Operator::LessOrSame,
            "^" => Operator::Caret,
            "~" => Operator::Tilde,
            _ => return Err(format!("`{sign}` is none of the operators =, >, >=, <, <=, ^ and ~")),
        };
        let is_any = matches!(version, "*" | "x" | "X");
        if is_any && operator == Operator::Same {
            return Ok(Comparator { operator, numbers: [0; 3], given: 0, pre: "".into() });
        }
        let comparator = Comparator::of(operator, version);
        comparator.ok_or_else(|| match version {
            "" => "a version such as \"1.2\" follows each operator".to_owned(),
            "-" => "a range from one version to another is written \">=1.2 <=2\"".to_owned(),
            _ if is_any => format!("`{version}` is every version, so that nothing is {sign} it"),
            _ => format!("{} is no version such as \"1.2.3\" or \"1.x\"", quoted(version)),
        })
    }

    fn of(operator: Operator, version: &str) -> Option<Comparator> {
        if version.contains(['-', '+']) {
            let Version { numbers, pre, .. } = Version::parse(version)?;
            return Some(Comparator { operator, numbers, given: 3, pre: pre.into() });
        }
        let bare = version.strip_prefix(['v', 'V']).unwrap_or(version);
        // With a sign: without one the crate takes every comparator for `^`.
        let semver::Comparator { major, minor, patch, .. } = semver::Comparator::parse(&format!("={bare}")).ok()?;
        let given = 1 + usize::from(minor.is_some()) + usize::from(patch.is_some());
        let numbers = [major, minor.unwrap_or_default(), patch.unwrap_or_default()];
        Some(Comparator { operator, numbers, given, pre: "".into() })
    }

    /// Whether a version is one of these. Pre-releases are where the order has them, and nowhere else: with the rule that they are
    /// in no range that does not name one, a pre-release would pass where its release does not.
    fn holds(&self, version: &Version<'_>) -> bool {
        let order = || version.order(&Version { numbers: self.numbers, pre: &self.pre, text: None });
        let is_same = |count: usize| version.numbers[..count] == self.numbers[..count];
        // Where not all numbers are written, all versions with those that are count as one.
        let rough = || match self.given {
            3 => order(),
            given => version.numbers[..given].cmp(&self.numbers[..given]),
        };
        match self.operator {
            Operator::Same => rough().is_eq(),
            Operator::More => rough().is_gt(),
            Operator::MoreOrSame => order().is_ge(),
            Operator::Less => order().is_lt(),
            Operator::LessOrSame => rough().is_le(),
            // Up to the next version that may break something: the first number that is not zero stays.
            Operator::Caret => {
                let first = self.numbers[..self.given].iter().position(|number| *number > 0);
                order().is_ge() && is_same(first.map_or(self.given, |first| first + 1))
            }
            Operator::Tilde => order().is_ge() && is_same(self.given.min(2)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line is a range, versions that are in it, `|`, and versions that are not.
    #[track_caller]
    fn check_range(lines: &str) {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (text, versions) = line.split_once(" has ").expect("a line has a range");
            let range = Range::parse(text).unwrap();
            let (inside, outside) = versions.split_once(" and not ").expect("a line has two sides");
            for (versions, expected) in [(inside, true), (outside, false)] {
                for version in versions.split(' ') {
                    let found = range.contains(&Version::parse(version).unwrap());
                    assert_eq!(found, expected, "{version} in {text}");
                }
            }
        }
    }

    #[test]
    fn a_range_has_every_operator() {
        check_range(
            "
            =1.2.3 has 1.2.3 1.2.3+b and not 1.2.4 1.2.3-a
            1.2.3 has 1.2.3 and not 1.2.4 2.0.0
            >1.2.3 has 1.2.4 1.2.4-a 2 and not 1.2.3 1.2.3-a
            >=1.2.3 has 1.2.3 2 and not 1.2.2 1.2.3-a
            <1.2.3 has 1.2.2 1.2.3-a 0 and not 1.2.3
            <=1.2.3 has 1.2.3 1.2.3-a and not 1.2.4-a
            ^1.2.3 has 1.2.3 1.9.0 1.9.0-a and not 1.2.2 2.0.0 2.0.0-a 1.2.3-a
            ^0.2.3 has 0.2.3 0.2.9 and not 0.3.0 0.3.0-a 0.2.2
            ^0.0.3 has 0.0.3 and not 0.0.4 0.0.2
            ^0.0 has 0.0.9 and not 0.1.0
            ^0 has 0.9.9 and not 1.0.0 1.0.0-a
            ^1 has 1.9.9 and not 2.0.0-a
            ~1.2.3 has 1.2.3 1.2.9 and not 1.2.2 1.3.0 1.3.0-a
            ~1.2 has 1.2.0 1.2.9 and not 1.3.0-a 1.1.9
            ~1 has 1.0.0 1.9.9 and not 2.0.0-a
            ^1.2.3-b has 1.2.3-b 1.2.3 1.3.0 and not 1.2.3-a 2.0.0-a
            ",
        );
    }

    #[test]
    fn what_is_left_out_of_a_version_may_be_anything() {
        check_range(
            "
            1.2 has 1.2.0 1.2.9 1.2.0-a and not 1.3.0 1.3.0-a 1.1.9
            =1.2 has 1.2.9 and not 1.3.0
            1.2.x has 1.2.9 and not 1.3.0
            1.X has 1.9.9 and not 2.0.0
            1.* has 1.9.9 and not 2.0.0-a
            1.x.x has 1.9.9 and not 2.0.0
            v1 has 1.9.9 and not 2.0.0
            >1.2 has 1.3.0 1.3.0-a 2 and not 1.2.9
            <=1.2 has 1.2.9 1.0.0 and not 1.3.0 1.3.0-a
            >=1.2 has 1.2.0 2 and not 1.1.9
            <1.2 has 1.1.9 1.2.0-a and not 1.2.0
            >=1.x has 1.0.0 2 and not 0.9.0
            ",
        );
        for any in ["*", "x", "X", "=*"] {
            assert!(Range::parse(any).unwrap().contains(&Version::parse("0.0.0-a").unwrap()), "{any}");
        }
    }

    #[test]
    fn a_pre_release_walks_around_no_range() {
        check_range(
            "
            <1.20 has 1.19.0-evil 1.19.99 and not 1.20.0
            >=1.20 <2 || 3.x has 1.20.0 1.99.0-evil 3.0.0 3.1.0-evil and not 1.19.9 2.0.0 4.0.0-a
            ",
        );
    }

    #[test]
    fn comparators_are_separated_by_spaces_and_commas() {
        check_range(
            "
            >=1.2 <2 has 1.2.0 1.9.0 and not 2.0.0 1.1.0
            >=1.2, <2 has 1.2.0 and not 2.0.0
            >=1.2,<2 has 1.2.0 and not 2.0.0
            >= 1.2  < 2 has 1.2.0 and not 2.0.0
            1.2||1.4 || 2 has 1.2.5 1.4.0 2.1.0 and not 1.3.0
            ",
        );
    }

    #[test]
    fn what_is_no_range_says_why() {
        for (text, expected) in [
            ("", "a range has a version such as \"1.2\" on each side of `||`"),
            ("1.2 ||", "a range has a version such as \"1.2\" on each side of `||`"),
            (">=", "a version such as \"1.2\" follows each operator"),
            ("!=1.2", "`!=` is none of the operators =, >, >=, <, <=, ^ and ~"),
            ("1.2 - 2.0", "a range from one version to another is written \">=1.2 <=2\""),
            (">*", "`*` is every version, so that nothing is > it"),
            ("latest", "\"latest\" is no version such as \"1.2.3\" or \"1.x\""),
            (">=1.2|2", "\"1.2|2\" is no version such as \"1.2.3\" or \"1.x\""),
            ("1.x.3", "\"1.x.3\" is no version such as \"1.2.3\" or \"1.x\""),
        ] {
            assert_eq!(Range::parse(text).unwrap_err(), expected, "{text}");
        }
    }
}
