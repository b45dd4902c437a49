//! The kind itself.

use std::borrow::Cow;

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::instance::{InstanceSpec, status::PortalInstanceStatus};
use crate::schema::{must, tidy};

/// What a PortalInstance says.
#[allow(clippy::duplicated_attributes, reason = "each column has a type of its own")]
#[derive(Clone, CustomResource, Debug, Default, Deserialize, PartialEq, Serialize)]
#[expect(clippy::duplicated_attributes, reason = "columns have the same type, and are not the same")]
#[kube(
    group = "portal.io",
    version = "v1alpha1",
    kind = "PortalInstance",
    shortname = "portal",
    category = "portal-all",
    status = "PortalInstanceStatus",
    schema = "manual",
    derive = "PartialEq",
    printcolumn(
        name = "Ready",
        type_ = "string",
        description = "Whether everything that the instance asks for runs.",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Mode", type_ = "string", description = "Whether layers share pods.", json_path = ".spec.mode"),
    printcolumn(
        name = "Replicas",
        type_ = "string",
        description = "How many pods are ready of those that there should be.",
        json_path = ".status.replicas"
    ),
    printcolumn(
        name = "Enforcing",
        type_ = "string",
        description = "What happens to requests that violate a rule.",
        json_path = ".status.enforcing"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        description = "Why the instance is ready or not, in a word.",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        description = "How long the instance has been there.",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "Rules",
        type_ = "integer",
        description = "How many rules the instance has loaded.",
        json_path = ".status.rules.loaded",
        priority = 1
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        description = "The version of the operator.",
        json_path = ".status.operatorVersion",
        priority = 1
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        description = "Why the instance is ready or not.",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    )
)]
#[serde(transparent)]
pub struct PortalInstanceSpec(pub InstanceSpec);

impl JsonSchema for PortalInstance {
    fn schema_name() -> Cow<'static, str> {
        "PortalInstance".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut spec = generator.subschema_for::<InstanceSpec>();
        // An instance without a spec has all defaults, those of its parts too. They are written out, because the API server validates a default
        // without filling in what is missing in it.
        spec.insert("default".to_owned(), json!(InstanceSpec::default()));
        let mut schema = json_schema!({
            "description": "One installation of the engine.",
            "type": "object",
            "properties": {
                "spec": spec,
                "status": generator.subschema_for::<PortalInstanceStatus>(),
            },
            "x-kubernetes-validations": must(&[
                (
                    "self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",
                    "other objects are named after the instance: use up to 40 of a-z, 0-9 and -, beginning with a letter",
                ),
                // `x-admission` would have a Deployment of the name that `x` gives to one of its own.
                (
                    "!self.metadata.name.matches('-(admission|audit|network|actions|pods|issued|replicas)$')",
                    "objects of another instance may have this name: use one that does not end with -admission, -audit, -network, \
                     -actions, -pods, -issued or -replicas",
                ),
            ]),
        });
        tidy(&mut schema);
        schema
    }
}
