//! Patterns with `*`, which stands for any characters, and `?`, which stands for one.

use std::convert::Infallible;

/// How many characters are looked at between two payments.
const CHARACTERS_PER_STEP: u64 = 16;

/// Whether a text is one that a pattern means, all of it. For short texts, such as names: takes time in proportion to both
/// lengths at most.
pub fn glob(pattern: &str, text: &str) -> bool {
    let Ok(found) = paid(pattern, text, |_| Ok::<(), Infallible>(()));
    found
}

/// The same, for whoever pays for each step. A `*` is tried again only from the last one, so that the work is in proportion to
/// both lengths at most.
pub(crate) fn paid<E>(pattern: &str, text: &str, mut pay: impl FnMut(u64) -> Result<(), E>) -> Result<bool, E> {
    let (mut pattern, mut rest) = (pattern.chars(), text.chars());
    // Where to go on if it does not work out: behind the last star, with one more character for it.
    let mut retry = None;
    let mut looked = 0;
    loop {
        looked += 1;
        if looked == CHARACTERS_PER_STEP {
            looked = 0;
            pay(1)?;
        }
        let mut ahead = pattern.clone();
        match (ahead.next(), rest.clone().next()) {
            (Some('*'), _) => {
                pattern = ahead;
                retry = Some((pattern.clone(), rest.clone()));
            }
            (None, None) => return Ok(true),
            (Some(wanted), Some(found)) if wanted == found || wanted == '?' => {
                pattern = ahead;
                rest.next();
            }
            // With more for the star there would be even less for the rest of the pattern.
            (Some(_), None) => return Ok(false),
            _ => {
                let Some((behind, from)) = &mut retry else { return Ok(false) };
                from.next();
                (pattern, rest) = (behind.clone(), from.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, text: &str, expected: bool) {
        assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
    }

    #[test]
    fn stars_stand_for_anything() {
        check("prod-*", "prod-eu", true);
        check("prod-*", "prod-", true);
        check("prod-*", "preprod-eu", false);
        check("*-eu-*", "prod-eu-1", true);
        check("*", "", true);
        check("**", "a", true);
        check("", "", true);
        check("", "a", false);
        check("a*b*c", "a-b-b-c", true);
        check("a*b*c", "a-b-b-d", false);
        check("prod", "prod-eu", false);
        check("prod-eu", "prod", false);
    }

    #[test]
    fn a_question_mark_stands_for_one_character() {
        check("team-?", "team-1", true);
        check("team-?", "team-12", false);
        check("team-?", "team-", false);
        check("caf?", "café", true);
        check("?", "😀", true);
        check("??", "é", false);
        check("*?", "é", true);
    }

    #[test]
    fn many_stars_end() {
        check(&"*a".repeat(100), &"a".repeat(99), false);
        check(&"*a".repeat(100), &"a".repeat(10_000), true);
    }

    #[test]
    fn what_is_tried_again_is_paid_for() {
        let mut steps = 0;
        let (pattern, text) = ("*".to_owned() + &"a".repeat(100) + "b", "a".repeat(10_000));
        let found = paid(&pattern, &text, |paid| {
            steps += paid;
            Ok::<(), Infallible>(())
        });
        assert_eq!(found, Ok(false));
        assert!((50_000..100_000).contains(&steps), "{steps}");
    }
}
