//! Names with `*`, which stands for any characters, and `?`, which stands for one.

/// Whether a name is one that a pattern means. Takes time in proportion to both lengths at most: names are short, and a
/// `*` is tried again only from the last one.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut place) = (0, 0);
    // Where to go on if it does not work out: behind the last star, with one more character for it.
    let mut retry: Option<(usize, usize)> = None;
    while place < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                retry = Some((at + 1, place + 1));
                at += 1;
            }
            Some(character) if *character == name[place] || *character == b'?' => {
                at += 1;
                place += 1;
            }
            _ => match retry {
                Some((behind, from)) => {
                    (at, place) = (behind, from);
                    retry = Some((behind, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|character| *character == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, name: &str, expected: bool) {
        assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
    }

    #[test]
    fn stars_stand_for_anything() {
        check("prod-*", "prod-eu", true);
        check("prod-*", "prod-", true);
        check("prod-*", "preprod-eu", false);
        check("*-eu-*", "prod-eu-1", true);
        check("*", "", true);
        check("", "", true);
        check("", "a", false);
        check("a*b*c", "a-b-b-c", true);
        check("a*b*c", "a-b-b-d", false);
        check("team-?", "team-1", true);
        check("team-?", "team-12", false);
        check("prod", "prod-eu", false);
    }

    #[test]
    fn many_stars_end() {
        check(&"*a".repeat(100), &"a".repeat(99), false);
        check(&"*a".repeat(100), &"a".repeat(10_000), true);
    }
}
