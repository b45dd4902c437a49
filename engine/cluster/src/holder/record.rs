//! What a Lease says, and how it is written without touching what others wrote into it.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, OwnerReference};
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use serde_json::{Value, json};

/// Where the holder is reached, for the replicas that do not hold.
pub const ADDRESS: &str = "portal.io/holder-address";

/// What the election reads and writes. Two records that are equal are one record: nobody renewed it in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Empty if nobody holds.
    pub(super) holder: Arc<str>,
    pub(super) duration_seconds: Option<i32>,
    pub(super) acquired: Option<Timestamp>,
    pub(super) renewed: Option<Timestamp>,
    pub(super) transitions: i32,
}

impl Record {
    /// Whether its holder let go of it. A Lease that somebody emptied by hand does not say so: its holder may still act.
    pub(super) fn is_released(&self) -> bool {
        self.holder.is_empty() && self.duration_seconds == Some(RELEASED_SECONDS)
    }
}

/// The duration of a released Lease, as client-go writes it.
pub(super) const RELEASED_SECONDS: i32 = 1;

/// Leases in the form that keeps fields that this release does not know.
pub(super) fn resource() -> ApiResource {
    ApiResource::erase::<Lease>(&())
}

/// Reads a Lease. One without a spec that can be read gives an empty record, which is waited out like any other.
pub(super) fn read(lease: &DynamicObject) -> Record {
    let spec = lease.data.get("spec").cloned().unwrap_or_default();
    let spec: LeaseSpec = serde_json::from_value(spec).unwrap_or_default();
    Record {
        holder: spec.holder_identity.unwrap_or_default().into(),
        duration_seconds: spec.lease_duration_seconds,
        acquired: spec.acquire_time.map(|time| time.0),
        renewed: spec.renew_time.map(|time| time.0),
        transitions: spec.lease_transitions.unwrap_or_default(),
    }
}

/// A Lease that says this. `base` is the one that was read: its `resourceVersion` makes sure that nobody wrote in between, and its
/// `uid` that a PUT never makes a deleted Lease anew, which the API server would do otherwise.
pub(super) fn write(base: DynamicObject, record: &Record, address: Option<&str>) -> DynamicObject {
    let mut lease = base;
    let spec = LeaseSpec {
        holder_identity: Some(record.holder.to_string()),
        lease_duration_seconds: record.duration_seconds,
        acquire_time: record.acquired.map(MicroTime),
        renew_time: record.renewed.map(MicroTime),
        lease_transitions: Some(record.transitions),
        ..LeaseSpec::default()
    };
    let Ok(Value::Object(fields)) = serde_json::to_value(spec) else { unreachable!("a spec is a map of plain values") };
    if !lease.data.is_object() {
        lease.data = json!({});
    }
    if !lease.data["spec"].is_object() {
        lease.data["spec"] = json!({});
    }
    for (field, value) in fields {
        lease.data["spec"][field] = value;
    }
    match address.filter(|_| !record.holder.is_empty()) {
        Some(address) => lease.annotations_mut().insert(ADDRESS.to_owned(), address.to_owned()),
        None => lease.annotations_mut().remove(ADDRESS),
    };
    lease
}

/// A Lease that goes with its owner, and no more with one of the same kind that was there before. What others said of owners stays.
pub(super) fn owned(mut lease: DynamicObject, owner: Option<&OwnerReference>) -> DynamicObject {
    if let Some(owner) = owner {
        let owners = lease.owner_references_mut();
        owners.retain(|found| found.kind != owner.kind || found.api_version != owner.api_version);
        owners.push(owner.clone());
    }
    lease
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_into_a_lease_is_kept() {
        let lease: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": "portal", "uid": "u", "resourceVersion": "7", "annotations": { "other": "stays" } },
            "spec": { "holderIdentity": "a", "preferredHolder": "c", "fieldOfTomorrow": [1], "leaseTransitions": 3 },
        }))
        .unwrap();
        let time = "2026-01-02T03:04:05.000006Z".parse().ok();
        let record =
            Record { holder: "b".into(), duration_seconds: Some(15), acquired: time, renewed: time, transitions: 4 };
        let written = write(lease, &record, Some("10.0.0.1:8443"));
        assert_eq!(read(&written), record);
        let expected = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": "portal",
                "uid": "u",
                "resourceVersion": "7",
                "annotations": { "other": "stays", "portal.io/holder-address": "10.0.0.1:8443" },
            },
            "spec": {
                "holderIdentity": "b",
                "preferredHolder": "c",
                "fieldOfTomorrow": [1],
                "leaseTransitions": 4,
                "leaseDurationSeconds": 15,
                "acquireTime": "2026-01-02T03:04:05.000006Z",
                "renewTime": "2026-01-02T03:04:05.000006Z",
            },
        });
        assert_eq!(serde_json::to_value(&written).unwrap(), expected);

        let released = Record { holder: "".into(), duration_seconds: Some(RELEASED_SECONDS), ..record };
        assert_eq!(
            write(written, &released, Some("10.0.0.1:8443")).annotations().keys().collect::<Vec<_>>(),
            ["other"]
        );
    }

    #[test]
    fn a_lease_goes_with_its_owner() {
        let owner = |kind: &str, uid: &str| OwnerReference {
            kind: kind.to_owned(),
            uid: uid.to_owned(),
            ..OwnerReference::default()
        };
        let mut lease = DynamicObject::new("portal", &resource());
        lease.owner_references_mut().extend([owner("PortalInstance", "before"), owner("Other", "x")]);
        let uids = |lease: &DynamicObject| -> Vec<String> {
            lease.owner_references().iter().map(|owner| owner.uid.clone()).collect()
        };
        assert_eq!(uids(&owned(lease.clone(), None)), ["before", "x"]);
        assert_eq!(uids(&owned(lease, Some(&owner("PortalInstance", "now")))), ["x", "now"]);
    }

    #[test]
    fn a_lease_without_a_spec_is_no_released_one() {
        let mut lease = DynamicObject::new("portal", &resource());
        assert!(!read(&lease).is_released());
        lease.data = json!({ "spec": { "holderIdentity": "" } });
        assert!(!read(&lease).is_released());
        lease.data = json!({ "spec": { "holderIdentity": "", "leaseDurationSeconds": 1 } });
        assert!(read(&lease).is_released());
    }
}
