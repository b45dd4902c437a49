//! What is said of a kind that nobody serves: the way out is always a kind that is there.

use portal_crds::GroupVersionKind;

use super::spared::spared;
use crate::kinds::{Kind, Kinds};

/// What is wrong with a kind that is not served, and what may have been meant.
pub(super) fn unknown_kind(kinds: &Kinds, gvk: &GroupVersionKind) -> String {
    let GroupVersionKind { group, version, kind, .. } = gvk;
    let is_judged = |known: &&Kind| !known.is_assumed() && spared(&known.group, &known.kind).is_none();
    let defined = || kinds.iter().filter(is_judged);
    let place = if group.is_empty() { "the core group".to_owned() } else { format!("group `{group}`") };
    let wrong = format!("no kind `{kind}` is served in {place}");
    if kind.contains('*') && kind != "*" {
        return format!(
            "{wrong}: a `*` stands alone, for all kinds of the group: write `kind: \"*\"`, or name the kinds one by one"
        );
    }
    let elsewhere: Vec<&Kind> = defined().filter(|known| known.kind == *kind).collect();
    let fits = |known: &&&Kind| version == "*" || known.versions.contains(version);
    let fitting: Vec<String> =
        elsewhere.iter().filter(fits).map(|known| format!("`group: {:?}`", known.group)).collect();
    if !fitting.is_empty() {
        return format!("{wrong}: write {}", fitting.join(" or "));
    }
    if !elsewhere.is_empty() {
        // Whoever names a version that is gone may mean just that one.
        let served: Vec<String> = elsewhere.iter().flat_map(|known| api_versions(known)).collect();
        return format!("{wrong}: it is served in {}", served.join(", "));
    }
    let nearest = |known: &mut dyn Iterator<Item = &Kind>| {
        let names: Vec<&str> = known.map(|known| known.kind.as_str()).collect();
        portal_expr::nearest(kind, names.into_iter()).map(str::to_owned)
    };
    if let Some(near) = nearest(&mut defined().filter(|known| known.group == *group)) {
        return format!("{wrong}, did you mean `{near}`?");
    }
    if let Some(near) = nearest(&mut defined()) {
        let groups = defined().filter(|known| known.kind == near).map(|known| format!("`group: {:?}`", known.group));
        return format!("{wrong}, did you mean `{near}` with {}?", groups.collect::<Vec<_>>().join(" or "));
    }
    match group.as_str() {
        "" => format!("{wrong}: a kind of another group needs its `group`"),
        // A version that is gone is taken for what it is, if it is named.
        "policy" if version == "*" && kind == "PodSecurityPolicy" => {
            format!("{wrong}: a version that is not served any more is named, `version: v1beta1`")
        }
        _ => wrong,
    }
}

/// What is sent to a subresource has a kind of its own, which `match` does not name: by its group and kind, the one that it is sent to, and
/// the subresource.
const BODIES: [(&str, &str, &str, &str); 9] = [
    ("", "PodExecOptions", "Pod", "exec"),
    ("", "PodAttachOptions", "Pod", "attach"),
    ("", "PodPortForwardOptions", "Pod", "portforward"),
    ("", "PodProxyOptions", "Pod", "proxy"),
    ("", "NodeProxyOptions", "Node", "proxy"),
    ("", "ServiceProxyOptions", "Service", "proxy"),
    ("policy", "Eviction", "Pod", "eviction"),
    ("authentication.k8s.io", "TokenRequest", "ServiceAccount", "token"),
    ("autoscaling", "Scale", "", "scale"),
];

/// What to write for a kind that is a subresource, or what is sent to one: `pods/exec`, `PodExecOptions`.
pub(super) fn subresource(kinds: &Kinds, gvk: &GroupVersionKind) -> Option<String> {
    let (kind, subresource) = match gvk.kind.split_once('/') {
        Some((name, subresource)) => {
            let is_meant = |kind: &&Kind| kind.kind.eq_ignore_ascii_case(name) || kind.plural == name;
            let kind = kinds.iter().find(is_meant);
            let group = |kind: &Kind| match kind.group.as_str() {
                "" => format!("kind: {}", kind.kind),
                group => format!("group: {group}, kind: {}", kind.kind),
            };
            (kind.map_or_else(|| format!("kind: {name}"), group), subresource)
        }
        None => {
            // Who leaves out the group may mean any, and another group may get a kind of this name.
            let is_meant = |group: &str| gvk.group.is_empty() || gvk.group == group;
            let (.., kind, subresource) =
                BODIES.iter().find(|(group, body, ..)| *body == gvk.kind && is_meant(group))?;
            let own = "group: apps, kind: Deployment";
            (if kind.is_empty() { own.to_owned() } else { format!("kind: {kind}") }, *subresource)
        }
    };
    // Whoever defines a kind of this name means that.
    if kinds.get(&gvk.group, &gvk.kind).is_some() {
        return None;
    }
    let example = if gvk.kind == "Scale" { ", and whatever else is scaled," } else { "" };
    Some(format!(
        "`{}` is no kind by itself: write `gvk: [{{{kind}}}]`{example} and `subresources: [{subresource}]` below `match`",
        gvk.kind
    ))
}

/// What is wrong with a group of which nothing is served, or nothing in a version.
pub(super) fn unknown_group(kinds: &Kinds, gvk: &GroupVersionKind) -> String {
    let GroupVersionKind { group, version, .. } = gvk;
    if kinds.of_group(group).next().is_some() {
        return format!("no kind of group `{group}` is served in version `{version}`");
    }
    let groups = kinds.iter().filter(|kind| !kind.is_assumed()).map(|kind| kind.group.as_str());
    if group == "*" {
        return "there is no `*` for groups: name the kinds one by one, `gvk: [{kind: Pod}, {group: apps, kind: \"*\"}]`".to_owned();
    }
    let groups = groups.filter(|group| !group.is_empty());
    let hint = portal_expr::nearest(group, groups).map(|near| format!(", did you mean `{near}`?"));
    format!("no kind is served in group `{group}`{}", hint.unwrap_or_default())
}

fn api_versions(kind: &Kind) -> impl Iterator<Item = String> {
    kind.versions.iter().map(|version| kind.api_version(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(group: &str, version: &str, kind: &str, expected: &str) {
        let (group, version, kind) = (group.to_owned(), version.to_owned(), kind.to_owned());
        assert_eq!(
            unknown_kind(Kinds::builtin(), &GroupVersionKind { group, version, kind, pod_template: None }),
            expected
        );
    }

    #[test]
    fn a_group_is_advised_only_if_it_has_the_kind() {
        check("", "*", "Deployment", "no kind `Deployment` is served in the core group: write `group: \"apps\"`");
        check("apps", "v1", "Pod", "no kind `Pod` is served in group `apps`: write `group: \"\"`");
        check(
            "extensions",
            "v1beta1",
            "Ingress",
            "no kind `Ingress` is served in group `extensions`: it is served in networking.k8s.io/v1",
        );
    }

    #[test]
    fn a_kind_that_is_near_is_named_with_its_group() {
        check("apps", "*", "Deploymnt", "no kind `Deploymnt` is served in group `apps`, did you mean `Deployment`?");
        check(
            "",
            "*",
            "Deploymnt",
            "no kind `Deploymnt` is served in the core group, did you mean `Deployment` with `group: \"apps\"`?",
        );
        check("", "*", "pods", "no kind `pods` is served in the core group, did you mean `Pod`?");
    }

    #[test]
    fn nothing_is_advised_that_no_rule_may_judge() {
        check("event.k8s.io", "*", "Event", "no kind `Event` is served in group `event.k8s.io`");
        check("coordination.k8s.io", "*", "Leas", "no kind `Leas` is served in group `coordination.k8s.io`");
    }

    #[test]
    fn a_kind_that_is_like_no_other_is_not_guessed_at() {
        check(
            "",
            "*",
            "Rollout",
            "no kind `Rollout` is served in the core group: a kind of another group needs its `group`",
        );
        check(
            "apps",
            "*",
            "Deploy*",
            "no kind `Deploy*` is served in group `apps`: a `*` stands alone, for all kinds of the group: write `kind: \"*\"`, or name the kinds one by one",
        );
        check("argoproj.io", "*", "Rollout", "no kind `Rollout` is served in group `argoproj.io`");
    }
}
