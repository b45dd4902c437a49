//! Each child of an instance as a function of the instance: names, labels, accounts, roles, Services, Deployments, monitoring.
//!
//! An object says the fields that we want and no others, in the form in which the API server stores them: what was applied and read back is
//! the same. A field that differs between instances is always said, or never has a default of the API server: a default that it filled in
//! for the spec before would stay, and the same spec would not always lead to the same children.

mod accounts;
mod amounts;
mod authorities;
mod budgets;
mod deployments;
pub mod flags;
mod guard;
mod monitoring;
mod network_policy;
mod pods;
pub mod roles;
mod services;
pub mod webhook;

#[cfg(test)]
pub(crate) mod tests;

use serde_json::{Value, json};

use crate::instance::{Instance, OperatorSettings};
use crate::names::labels;
use crate::object::{Kind, Object};
use crate::permissions::Permissions;

pub use self::{
    accounts::accounts,
    authorities::authorities,
    budgets::budgets,
    deployments::deployments,
    guard::guard,
    monitoring::monitoring,
    network_policy::network_policies,
    roles::roles,
    services::services,
    webhook::{webhook_configuration, webhook_settings},
};

/// What an instance has beside its certificates and its webhook configuration. The fields are in the order in which they are made.
#[derive(Clone, Debug, Default)]
pub struct Children {
    /// One for each set of pods.
    pub accounts: Vec<Object>,
    /// What the accounts may do, and the bindings.
    pub roles: Vec<Object>,
    /// The authorities of a certificate that comes without them.
    pub authorities: Vec<Object>,
    /// The one that the API server knows, and the one over all pods.
    pub services: Vec<Object>,
    /// How many pods must stay.
    pub budgets: Vec<Object>,
    /// The pods.
    pub deployments: Vec<Object>,
    /// Which ports are open, if others are closed.
    pub network_policies: Vec<Object>,
    /// What Prometheus is told. The kinds may not be served.
    pub monitoring: Vec<Object>,
}

/// What an instance has beside its certificates and its webhook configuration.
pub fn children(instance: &Instance, permissions: &Permissions, operator: &OperatorSettings) -> Children {
    Children {
        accounts: accounts(instance),
        roles: instance.engines().iter().flat_map(|engine| roles(instance, engine, permissions)).collect(),
        authorities: authorities(instance),
        services: services(instance),
        budgets: budgets(instance),
        deployments: deployments(instance, operator),
        network_policies: network_policies(instance),
        monitoring: monitoring(instance),
    }
}

impl Children {
    /// All of them, in the order in which they are made.
    pub fn iter(&self) -> impl Iterator<Item = &Object> {
        let Children { accounts, roles, authorities, services, budgets, deployments, network_policies, monitoring } =
            self;
        [accounts, roles, authorities, services, budgets, deployments, network_policies, monitoring]
            .into_iter()
            .flatten()
    }
}

/// A child of an instance: what it says beside its name, its labels and its owner. Those of kinds that have namespaces are in the
/// engine's.
fn child(instance: &Instance, kind: Kind, name: &str, value: Value) -> Object {
    child_in(instance, kind, name, instance.namespace(), value)
}

/// The same, in a namespace if its kind has one.
fn child_in(instance: &Instance, kind: Kind, name: &str, namespace: &str, mut value: Value) -> Object {
    value["metadata"] = json!({
        "name": name,
        "labels": labels(&instance.name),
        "ownerReferences": [instance.owner()],
    });
    if kind.is_namespaced() {
        value["metadata"]["namespace"] = namespace.into();
    }
    Object::from_value(kind, value)
}
