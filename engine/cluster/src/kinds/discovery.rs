//! What the API server serves at this moment, asked all at once or group by group.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::{Client, core::discovery::v2::APIGroupDiscovery};
use portal_core::kinds::{Kind, Kinds};
use tokio::time::timeout;

/// How long a group is waited for. The client would ask an unavailable server again for minutes, while the other groups wait.
const PATIENCE: Duration = Duration::from_secs(5);

/// A version of a group, as the server tells it.
#[derive(Clone, Debug)]
struct Version {
    group: String,
    name: String,
    /// Nothing if that cannot be told at the moment: whoever serves the group does not answer.
    resources: Option<Vec<Resource>>,
}

#[derive(Clone, Debug)]
struct Resource {
    kind: String,
    plural: String,
    namespaced: bool,
    subresources: Vec<String>,
}

/// Everything that the API server serves. What it cannot tell at the moment is taken from the snapshot before.
pub async fn discover(client: &Client, before: Option<&Kinds>) -> Result<Kinds, kube::Error> {
    let core = client.list_core_api_versions_aggregated().await?.items;
    let groups = client.list_api_groups_aggregated().await?.items;
    if core.is_empty() || groups.is_empty() {
        // An older server answers with the plain list, which looks empty.
        return discover_each(client, before).await;
    }
    Ok(merge(core.into_iter().chain(groups).flat_map(versions_of), before))
}

/// The same by a request for each version of each group, for servers that cannot tell everything at once.
pub async fn discover_each(client: &Client, before: Option<&Kinds>) -> Result<Kinds, kube::Error> {
    let mut versions = Vec::new();
    for name in client.list_core_api_versions().await?.versions {
        let resources = told(client.list_core_api_resources(&name)).await?;
        versions.push(Version { group: String::new(), name, resources });
    }
    for group in client.list_api_groups().await?.groups {
        let preferred = group.preferred_version.map(|preferred| preferred.version);
        let mut served = group.versions;
        served.sort_by_key(|served| Some(&served.version) != preferred.as_ref());
        for served in served {
            let resources = told(client.list_api_group_resources(&served.group_version)).await?;
            versions.push(Version { group: group.name.clone(), name: served.version, resources });
        }
    }
    Ok(merge(versions, before))
}

/// The versions of a group, from the answer that tells everything at once.
fn versions_of(group: APIGroupDiscovery) -> Vec<Version> {
    let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
    let versions = group.versions.into_iter().map(|version| {
        let is_told = version.freshness.as_deref() != Some("Stale") || !version.resources.is_empty();
        let resources = version.resources.into_iter().filter_map(|resource| {
            Some(Resource {
                kind: resource.response_kind?.kind?,
                plural: resource.resource.unwrap_or_default(),
                namespaced: resource.scope.as_deref() == Some("Namespaced"),
                subresources: resource.subresources.into_iter().filter_map(|below| below.subresource).collect(),
            })
        });
        let resources = is_told.then(|| resources.collect());
        Version { group: name.clone(), name: version.version.unwrap_or_default(), resources }
    });
    versions.collect()
}

/// What comes of asking for a version of a group. Only an API server that is not reached is an error.
async fn told(
    answer: impl Future<Output = Result<APIResourceList, kube::Error>>,
) -> Result<Option<Vec<Resource>>, kube::Error> {
    match timeout(PATIENCE, answer).await {
        Ok(Ok(list)) => Ok(Some(resources_of(&list))),
        // It went away after the groups were listed.
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(Some(Vec::new())),
        Ok(Err(kube::Error::Api(_))) | Err(_) => Ok(None),
        Ok(Err(error)) => Err(error),
    }
}

/// The resources of a plain list, where subresources are named like `pods/log`.
fn resources_of(list: &APIResourceList) -> Vec<Resource> {
    let resources = list.resources.iter().filter(|resource| !resource.name.contains('/')).map(|resource| {
        let below =
            list.resources.iter().filter_map(|below| below.name.strip_prefix(&resource.name)?.strip_prefix('/'));
        Resource {
            kind: resource.kind.clone(),
            plural: resource.name.clone(),
            namespaced: resource.namespaced,
            subresources: below.map(str::to_owned).collect(),
        }
    });
    resources.collect()
}

/// The kinds of versions. Those of a group come in a row, the preferred one first.
fn merge(versions: impl IntoIterator<Item = Version>, before: Option<&Kinds>) -> Kinds {
    let mut kinds: Vec<Kind> = Vec::new();
    let mut first = 0;
    for Version { group, name, resources } in versions {
        if kinds.last().is_none_or(|last| last.group != group) {
            first = kinds.len();
        }
        for resource in resources.unwrap_or_else(|| known(before, &group, &name)) {
            add(&mut kinds, first, &group, &name, resource);
        }
    }
    Kinds::new(kinds)
}

/// What a version had in the snapshot before. Nobody answers for it, but it is not gone for that.
fn known(before: Option<&Kinds>, group: &str, version: &str) -> Vec<Resource> {
    let kinds = before.into_iter().flat_map(Kinds::iter).filter(|kind| kind.group == group);
    let kinds = kinds.filter(|kind| kind.versions.iter().any(|known| known == version)).cloned();
    let resources = kinds.map(|Kind { kind, plural, namespaced, subresources, .. }| Resource {
        kind,
        plural,
        namespaced,
        subresources,
    });
    resources.collect()
}

/// Adds a version of a kind. Those of its group begin at `first`.
fn add(kinds: &mut Vec<Kind>, first: usize, group: &str, version: &str, resource: Resource) {
    let Resource { kind, plural, namespaced, subresources } = resource;
    match kinds[first..].iter_mut().find(|known| known.kind == kind && known.plural == plural) {
        Some(known) => {
            known.versions.push(version.to_owned());
            known.subresources.extend(subresources);
            known.subresources.sort();
            known.subresources.dedup();
        }
        None => {
            let versions = vec![version.to_owned()];
            kinds.push(Kind { group: group.to_owned(), kind, plural, versions, namespaced, subresources });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    fn version(group: &str, name: &str, kinds: Option<&[&str]>) -> Version {
        let resource = |kind: &&str| Resource {
            kind: (*kind).to_owned(),
            plural: format!("{}s", kind.to_lowercase()),
            namespaced: true,
            subresources: vec!["status".to_owned()],
        };
        let resources = kinds.map(|kinds| kinds.iter().map(resource).collect());
        Version { group: group.to_owned(), name: name.to_owned(), resources }
    }

    #[track_caller]
    fn check(kinds: &Kinds, expected: &[&str]) {
        let lines = kinds.iter().map(|kind| {
            let Kind { group, kind, versions, subresources, .. } = kind;
            format!("{group}/{kind} {} {}", versions.join(","), subresources.join(","))
        });
        assert_eq!(lines.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn versions_of_a_kind_are_one_kind_and_groups_are_apart() {
        let versions = [
            version("", "v1", Some(&["Pod"])),
            version("acme.io", "v1", Some(&["Pod", "Widget"])),
            version("acme.io", "v1beta1", Some(&["Widget", "Gadget"])),
        ];
        let expected = [
            "/Pod v1 status",
            "acme.io/Gadget v1beta1 status",
            "acme.io/Pod v1 status",
            "acme.io/Widget v1,v1beta1 status",
        ];
        check(&merge(versions, None), &expected);
    }

    #[test]
    fn what_cannot_be_told_is_as_it_was_however_often_that_is_so() {
        let before =
            [version("acme.io", "v1", Some(&["Widget"])), version("acme.io", "v2", Some(&["Widget", "Gadget"]))];
        let mut kinds = merge(before, None);
        let expected = ["acme.io/Gadget v2 status", "acme.io/Widget v1,v2 status"];
        for (first, second) in [(None, Some(&["Widget", "Gadget"][..])), (Some(&["Widget"][..]), None), (None, None)] {
            for _ in 0..2 {
                kinds = merge([version("acme.io", "v1", first), version("acme.io", "v2", second)], Some(&kinds));
                check(&kinds, &expected);
            }
        }
        check(
            &merge([version("acme.io", "v2", None)], Some(&kinds)),
            &["acme.io/Gadget v2 status", "acme.io/Widget v2 status"],
        );
        check(&merge([version("acme.io", "v2", None)], None), &[]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_version_that_is_gone_has_no_kinds_and_one_that_fails_cannot_be_told() {
        let answer = async |code: u16| {
            let mut status = kube::core::Status::failure("something", "Something");
            status.code = code;
            let resources = told(ready(Err(kube::Error::Api(status.boxed())))).await.unwrap();
            resources.map(|resources| resources.len())
        };
        assert_eq!(answer(404).await, Some(0));
        assert_eq!(answer(503).await, None);
        assert!(told(pending()).await.unwrap().is_none());
        assert!(told(ready(Err(kube::Error::LinesCodecMaxLineLengthExceeded))).await.is_err());
    }
}
