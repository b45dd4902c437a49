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

/// The candidates that have a name in them: `ownerReferences` has `owner`, `volumeMounts` has `mounts`, `sha256` has `sha`. Nothing if
/// there are many.
pub(crate) fn similar<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> Vec<&'c str> {
    let (lower, parts) = (name.to_lowercase(), words(name));
    let has_words = |candidate: &str| {
        let candidate = words(candidate);
        let mut rest = candidate.iter();
        parts.iter().all(|part| rest.any(|word| word == part))
    };
    let begins = |candidate: &str| lower.len() >= 3 && candidate.to_lowercase().starts_with(&lower);
    let mut found: Vec<&str> =
        candidates.filter(|candidate| begins(candidate) || !parts.is_empty() && has_words(candidate)).collect();
    found.sort_unstable();
    found.dedup();
    if found.len() > MAX_SIMILAR { Vec::new() } else { found }
}

/// More are no help.
const MAX_SIMILAR: usize = 3;

/// The words of a name, whether there is one of something or several.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for character in name.chars() {
        match words.last_mut() {
            Some(word) if !character.is_uppercase() => word.push(character),
            _ => words.push(character.to_lowercase().collect()),
        }
    }
    for word in &mut words {
        if let Some(one) = word.strip_suffix('s').filter(|one| one.len() > 2) {
            *word = one.to_owned();
        }
    }
    words
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
    #[test]
    fn a_name_that_is_part_of_another_is_found_in_it() {
        let names = ["ownerReferences", "volumeMounts", "livenessProbe", "readinessProbe", "imagePullPolicy", "sha256"];
        for (name, expected) in [
            ("owner", &["ownerReferences"][..]),
            ("owners", &["ownerReferences"]),
            ("mounts", &["volumeMounts"]),
            ("probes", &["livenessProbe", "readinessProbe"]),
            ("imagePolicy", &["imagePullPolicy"]),
            ("sha", &["sha256"]),
            ("policyImage", &[]),
            ("", &[]),
        ] {
            assert_eq!(similar(name, names.into_iter()), expected, "{name}");
        }
        // Too many to be a help.
        assert_eq!(similar("probe", ["aProbe", "bProbe", "cProbe", "dProbe"].into_iter()), [""; 0]);
    }
}
