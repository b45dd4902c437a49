//! What the API server sends to an instance: how the webhook configuration of the core is filled in.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use portal_core::{
    requirements::Requirements,
    webhook::{OwnRules, Target, WebhookSettings, configuration},
};
use portal_crds::AuthorCheck;
use serde_json::json;

use crate::children::services::PORT;
use crate::instance::{Instance, OperatorSettings};
use crate::names::{account, labels, service};
use crate::object::{Kind, Object};

/// What the webhook configuration of an instance depends on beside the instance.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    /// All instances, with this one and those that are being deleted: what Portal itself needs is never sent to any of them.
    pub instances: &'a [Instance],
    /// Who runs the operator.
    pub operator: &'a OperatorSettings,
    /// The authorities that the API server trusts, in PEM.
    pub ca_bundle: &'a [u8],
    /// The UID of the engine's namespace, which owns the configuration.
    pub namespace_uid: &'a str,
}

/// What the instance says about its webhook.
pub fn webhook_settings(instance: &Instance, around: &Around<'_>) -> WebhookSettings {
    let spec = &instance.spec;
    let admission = &spec.admission;
    let OperatorSettings { namespace: operator_namespace, account: operator_account, .. } = around.operator;
    let everyone = || around.instances.iter().chain([instance]);
    let engines = everyone().flat_map(|other| {
        let names = other.engines().into_iter().map(|engine| engine.name);
        names.map(|name| account(other.namespace(), &name))
    });
    let namespaces = everyone().map(|other| other.namespace().to_owned());
    WebhookSettings {
        instance: instance.name.clone(),
        target: Target::Service {
            namespace: instance.namespace().to_owned(),
            name: service(&instance.name),
            port: PORT.into(),
        },
        ca_bundle: around.ca_bundle.to_vec(),
        timeout_seconds: i32::try_from(admission.timeout_seconds).unwrap_or(i32::MAX),
        fail_closed: admission.fail_closed,
        max_enforcement: admission.max_enforcement,
        namespace_selector: spec.namespace_selector.clone().unwrap_or_default(),
        exclude_namespaces: admission.exclude_namespaces.iter().cloned().collect(),
        own_namespaces: namespaces.chain([operator_namespace.clone()]).collect(),
        own_accounts: engines.chain([account(operator_namespace, operator_account)]).collect::<BTreeSet<String>>(),
        own_rules: Some(OwnRules {
            selector: spec.rule_selector.clone().unwrap_or_default(),
            enforces_author_check: spec.rbac.author_check == AuthorCheck::Enforce,
        }),
        probe_namespace: Some(operator_namespace.clone()),
        owner: Some(OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Namespace".to_owned(),
            name: instance.namespace().to_owned(),
            uid: around.namespace_uid.to_owned(),
            ..OwnerReference::default()
        }),
    }
}

/// The webhook configuration for rules that need this, as an object with our labels.
pub fn webhook_configuration(requirements: &Requirements, settings: &WebhookSettings) -> Object {
    let mut object = Object::of(Kind::ValidatingWebhookConfiguration, &configuration(requirements, settings));
    for (key, value) in labels(&settings.instance) {
        object.value["metadata"]["labels"][key] = json!(value);
    }
    object
}
