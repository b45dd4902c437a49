//! Portal's custom resources as Rust types. The YAML generated from them is committed beside this crate.

mod conditions;
mod instance;
mod rule;
mod schema;
mod status;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

pub use conditions::ConditionType;
pub use instance::admission::{AdmissionSpec, ClientsSpec, ExistingViolations};
pub use instance::certificates::{CertificateSource, CertificatesSpec, IssuerReference};
pub use instance::kind::{PortalInstance, PortalInstanceSpec};
pub use instance::layers::{ActionsSpec, AuditSpec, LookupsSpec, NetworkCheck, NetworkSpec};
pub use instance::outputs::{
    AlertmanagerSink, DecisionLog, MonitoringSpec, PolicyReportSink, ReportApi, SecretReference, SinksSpec,
};
pub use instance::pods::{Amount, PodLabels, Resources, SchedulingSpec, Spread, Toleration};
pub use instance::rbac::{AuthorCheck, GrantedResource, RbacMode, RbacSpec};
pub use instance::status::{
    CertificatesStatus, EngineStatus, ExceptionCounts, PortalInstanceStatus, RuleCounts, WebhookStatus,
};
pub use instance::{BootstrapRules, ExpressionLanguage, InstanceSpec, Mode, PullPolicy, WatchedKind};
pub use rule::action::{Action, ActionType, Allow, Direction, Port, Protocol};
pub use rule::kinds::{PortalClusterRule, PortalClusterRuleSpec, PortalRule, PortalRuleSpec};
pub use rule::matching::{Globs, GroupVersionKind, Match, Operation};
pub use rule::{EnforcementAction, Exception, Front, RuleSpec, Severity};
pub use status::{InstanceStatus, ParseError, RuleStatus};

/// What a cluster needs to know of the kinds, in the order in which people meet them.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![PortalInstance::crd(), PortalClusterRule::crd(), PortalRule::crd()]
}

/// The same of one kind. Schemas take long to make, and hardly anybody needs them all.
pub fn definition(kind: &str) -> Option<CustomResourceDefinition> {
    match kind {
        "PortalInstance" => Some(PortalInstance::crd()),
        "PortalClusterRule" => Some(PortalClusterRule::crd()),
        "PortalRule" => Some(PortalRule::crd()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_defined_by_its_name_too() {
        for expected in definitions() {
            assert_eq!(definition(&expected.spec.names.kind), Some(expected));
        }
        assert_eq!(definition("PortalSet"), None);
    }
}
