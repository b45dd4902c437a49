//! Portal's custom resources as Rust types. The YAML generated from them is committed beside this crate.

mod conditions;
mod rule;
mod schema;
mod status;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

pub use conditions::ConditionType;
pub use rule::action::{Action, ActionType, Allow, Direction, Port, Protocol};
pub use rule::kinds::{PortalClusterRule, PortalClusterRuleSpec, PortalRule, PortalRuleSpec};
pub use rule::matching::{Globs, GroupVersionKind, Match, Operation};
pub use rule::{EnforcementAction, Exception, Front, RuleSpec, Severity};
pub use status::{InstanceStatus, ParseError, RuleStatus};

/// What a cluster needs to know of the kinds, in the order in which people meet them.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![PortalClusterRule::crd(), PortalRule::crd()]
}
