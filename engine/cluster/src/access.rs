//! Asks the API server what somebody may do.

use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::{
    ClusterResourceScope,
    api::authorization::v1::{
        ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
        SubjectAccessReviewSpec,
    },
};
use kube::{Api, Client, Resource, api::PostParams};
use portal_core::requirements::Permission;
use serde::{Serialize, de::DeserializeOwned};

use crate::watch::explain;

/// Somebody, as the API server knows them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Subject {
    /// The name.
    pub name: String,
    /// What tells them from others of this name.
    pub uid: Option<String>,
    /// The groups that they are in.
    pub groups: Vec<String>,
    /// What else is known of them.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Subject {
    /// The ServiceAccount of this name.
    pub fn account(namespace: &str, name: &str) -> Subject {
        Subject {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ],
            ..Subject::default()
        }
    }
}

/// Whether somebody may do something, in a namespace or everywhere; no subject: whoever asks. An error is for people.
pub async fn is_allowed(
    client: &Client,
    subject: Option<&Subject>,
    permission: &Permission,
    namespace: Option<&str>,
) -> Result<bool, String> {
    let (resource, subresource) = match permission.resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (permission.resource.as_str(), None),
    };
    let resource_attributes = Some(ResourceAttributes {
        group: Some(permission.group.clone()),
        version: Some("*".to_owned()),
        resource: Some(resource.to_owned()),
        subresource,
        verb: Some(permission.verb.to_owned()),
        namespace: namespace.map(str::to_owned),
        ..ResourceAttributes::default()
    });
    match subject {
        Some(subject) => {
            let spec = SubjectAccessReviewSpec {
                user: Some(subject.name.clone()),
                uid: subject.uid.clone(),
                groups: Some(subject.groups.clone()),
                extra: Some(subject.extra.clone()),
                resource_attributes,
                ..SubjectAccessReviewSpec::default()
            };
            let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
            ask(client, &review, "subjectaccessreviews").await.map(|answer| answer.status)
        }
        None => {
            let spec = SelfSubjectAccessReviewSpec { resource_attributes, ..SelfSubjectAccessReviewSpec::default() };
            let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
            ask(client, &review, "selfsubjectaccessreviews").await.map(|answer| answer.status)
        }
    }
    .map(|status| status.is_some_and(|status| status.allowed))
}

async fn ask<K>(client: &Client, review: &K, plural: &str) -> Result<K, String>
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + DeserializeOwned + Debug + Serialize,
{
    let answer = Api::<K>::all(client.clone()).create(&PostParams::default(), review).await;
    answer.map_err(|error| explain("create", &format!("{plural}.authorization.k8s.io"), &error))
}
