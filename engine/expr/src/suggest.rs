//! The nearest name, for people who mistyped one.

/// The candidate that is closest to a name, if one is close enough to be meant. Case counts for nothing.
pub fn nearest<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let name = name.to_lowercase();
    let length = name.chars().count();
    // A third of the name may be wrong; more is another name.
    let allowed = (length / 3).max(1);
    let distance = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        // What is that much longer or shorter is not near, and is not worth the time: a name may be as long as a rule.
        let is_worth_it = candidate.chars().count().abs_diff(length) <= allowed;
        is_worth_it.then(|| strsim::osa_distance(&name, &candidate)).filter(|distance| *distance <= allowed)
    };
    candidates.filter_map(|candidate| Some((distance(candidate)?, candidate))).min().map(|(_, candidate)| candidate)
}

/// `, did you mean …?` if there is something close, nothing otherwise.
pub(crate) fn hint<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> String {
    nearest(name, candidates).map(|nearest| format!(", did you mean `{nearest}`?")).unwrap_or_default()
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
            // One letter too many, one too few, another one, and two that changed places.
            ("procMountt", Some("procMount")),
            ("procMont", Some("procMount")),
            ("procMaunt", Some("procMount")),
            ("rnuAsUser", Some("runAsUser")),
            // A third of the letters, and one more.
            ("runBzUzer", Some("runAsUser")),
            ("runBzUzez", None),
            ("hostNetwork", None),
            ("x", None),
        ] {
            assert_eq!(nearest(name, names.into_iter()), expected, "{name}");
        }
    }
}
