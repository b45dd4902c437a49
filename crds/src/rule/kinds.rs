//! The two kinds of rule.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::rule::RuleSpec;
use crate::schema::{add_validation, tidy};
use crate::status::RuleStatus;

/// A kind of rule. kube makes one kind from one struct, so each has a wrapper of its own around the one [`RuleSpec`],
/// which shows neither in YAML nor, thanks to `Deref`, in code that reads a rule.
macro_rules! rule_kind {
    ($kind:tt, $spec:ident, $short:tt $(, $scope:ident)?) => {
        #[doc = concat!("What a ", $kind, " says.")]
        #[derive(Clone, CustomResource, Debug, Deserialize, PartialEq, Serialize)]
        #[kube(
            group = "portal.io",
            version = "v1alpha1",
            kind = $kind,
            shortname = $short,
            // Not `portal`, which is short for PortalInstance: of a category and a short name kubectl takes the category.
            category = "portal-all",
            status = "RuleStatus",
            schema = "manual",
            derive = "PartialEq",
            $($scope,)?
            printcolumn(
                name = "Ready",
                type_ = "string",
                description = "Whether every instance that serves the rule runs it.",
                json_path = r#".status.conditions[?(@.type=="Ready")].status"#
            ),
            printcolumn(
                name = "Mode",
                type_ = "string",
                description = "Where the rule runs.",
                json_path = ".status.mode"
            ),
            printcolumn(
                name = "Action",
                type_ = "string",
                description = "What admission does about a violation.",
                json_path = ".spec.enforcementAction"
            ),
            printcolumn(
                name = "Severity",
                type_ = "string",
                description = "How bad a violation is.",
                json_path = ".spec.severity"
            ),
            printcolumn(
                name = "Violations",
                type_ = "integer",
                description = "How many objects violate the rule.",
                json_path = ".status.violationCount"
            ),
            printcolumn(
                name = "Age",
                type_ = "date",
                description = "How long the rule has been there.",
                json_path = ".metadata.creationTimestamp"
            ),
            printcolumn(
                name = "Reason",
                type_ = "string",
                description = "Why the rule is ready or not, in a word.",
                json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
                priority = 1
            ),
            printcolumn(
                name = "Message",
                type_ = "string",
                description = "Why the rule is ready or not.",
                json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
                priority = 1
            ),
            printcolumn(
                name = "Rule",
                type_ = "string",
                description = "The expression.",
                json_path = ".spec.rule",
                priority = 1
            )
        )]
        #[serde(transparent)]
        pub struct $spec(pub RuleSpec);

        impl Deref for $spec {
            type Target = RuleSpec;

            fn deref(&self) -> &RuleSpec {
                &self.0
            }
        }

        impl DerefMut for $spec {
            fn deref_mut(&mut self) -> &mut RuleSpec {
                &mut self.0
            }
        }

        impl From<RuleSpec> for $spec {
            fn from(spec: RuleSpec) -> Self {
                Self(spec)
            }
        }
    };
}

rule_kind!("PortalClusterRule", PortalClusterRuleSpec, "pcr");
rule_kind!("PortalRule", PortalRuleSpec, "prule", namespaced);

impl JsonSchema for PortalClusterRule {
    fn schema_name() -> Cow<'static, str> {
        "PortalClusterRule".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        root("A rule for the whole cluster.", generator.subschema_for::<RuleSpec>(), generator)
    }
}

impl JsonSchema for PortalRule {
    fn schema_name() -> Cow<'static, str> {
        "PortalRule".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut spec = generator.subschema_for::<RuleSpec>();
        add_validation(
            spec.pointer_mut("/properties/match"),
            "!has(self.namespaces) && !has(self.namespaceSelector)",
            "a PortalRule sees its own namespace only: remove `namespaces` and `namespaceSelector`, or use a \
             PortalClusterRule",
        );
        add_validation(
            spec.pointer_mut("/properties/exceptions/items"),
            "!has(self.namespaces)",
            "a PortalRule sees its own namespace only: remove `namespaces` and give `names`, or use a PortalClusterRule",
        );
        root("A rule for its own namespace: what it judges, looks up and acts on never leaves it.", spec, generator)
    }
}

/// The schema of a kind. kube would derive one in which `status` may be null and has no default.
fn root(description: &str, spec: Schema, generator: &mut SchemaGenerator) -> Schema {
    let mut schema = json_schema!({
        "description": description,
        "type": "object",
        "properties": { "spec": spec, "status": generator.subschema_for::<RuleStatus>() },
        "required": ["spec"],
    });
    tidy(&mut schema);
    schema
}
