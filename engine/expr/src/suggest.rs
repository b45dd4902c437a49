//! The nearest name, for people who mistyped one.

/// The candidate that is closest to a name, if one is close enough to be meant.
pub fn nearest<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    // A third of the name may be wrong; more is another name.
    let allowed = (name.chars().count() / 3).max(1);
    candidates
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// `, did you mean …?` if there is something close, nothing otherwise.
pub(crate) fn hint<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> String {
    nearest(name, candidates).map(|nearest| format!(", did you mean `{nearest}`?")).unwrap_or_default()
}

/// How many letters have to be changed, added, dropped or swapped with their neighbour. Case counts for nothing.
fn distance(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().flat_map(char::to_lowercase).collect();
    let other: Vec<char> = other.chars().flat_map(char::to_lowercase).collect();
    // Names are short, and a name that is much longer is not near.
    if one.len().abs_diff(other.len()) > 8 {
        return usize::MAX;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, other_letter) in other.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != other_letter);
            let mut best = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            let is_swap = row > 0 && column > 0 && *letter == other[column - 1] && one[row - 1] == *other_letter;
            if is_swap {
                best = best.min(before_last[column - 1] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_close_is_suggested_and_one_that_is_not_is_not() {
        let names = ["privileged", "procMount", "capabilities", "runAsUser"];
        for (name, expected) in [
            ("privilged", Some("privileged")),
            ("Privileged", Some("privileged")),
            ("runasuser", Some("runAsUser")),
            ("rnuAsUser", Some("runAsUser")),
            ("hostNetwork", None),
            ("x", None),
        ] {
            assert_eq!(nearest(name, names.into_iter()), expected, "{name}");
        }
    }
}
