//! The instance, the rules and the roles of a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use k8s_openapi::api::{
    core::v1::ConfigMap,
    rbac::v1::{ClusterRole, Role},
};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams},
};
use portal_cluster::{
    access::{Subject, is_allowed},
    rules::cluster::{RuleObject, id_of, labels_of, read},
    watch::{Watched, explain},
};
use portal_core::{
    kinds::Kinds,
    rule::{Rule, load::RuleKind, source::RuleId},
};
use portal_crds::{PortalClusterRule, PortalInstance, PortalRule, RbacMode};
use portal_operator::{
    instance::Instance,
    names::{INSTANCE_LABEL, OPERATOR, engine},
    needs::{Known, Rules},
    object::{Key, Kind, Object},
    permissions::{Held, Need, beside_base, has_everybody},
};

use super::permissions::Present;
use crate::check::live::Connection;

/// A cluster with Portal.
pub(super) struct Cluster(Connection);

impl Cluster {
    pub(super) fn open(kubeconfig: Option<&Path>) -> anyhow::Result<Cluster> {
        Connection::open(kubeconfig).map(Cluster).map_err(|problem| anyhow!("{problem}"))
    }

    pub(super) fn kinds(&self) -> &Kinds {
        self.0.kinds()
    }

    pub(super) fn instance(&self, name: &str) -> anyhow::Result<Instance> {
        let api: Api<DynamicObject> = Api::all_with(self.0.client(), &ApiResource::erase::<PortalInstance>(&()));
        let found = self.0.wait(api.get(name)).map_err(|error| {
            anyhow!("PortalInstance {name}: {}", explain("get", "portalinstances.portal.io", &error))
        })?;
        Instance::read(&serde_json::to_value(found)?).map_err(anyhow::Error::msg)
    }

    /// The rules that the instance serves.
    pub(super) fn rules(&self, instance: &Instance) -> anyhow::Result<Vec<Arc<Rule>>> {
        let mut rules = Rules::default();
        rules.set_kinds(Arc::new(self.kinds().clone()));
        let cluster = self.list::<PortalClusterRule>("portalclusterrules.portal.io")?;
        let namespaced = self.list::<PortalRule>("portalrules.portal.io")?;
        for (kind, plural, objects) in
            [(RuleKind::Cluster, "portalclusterrules", cluster), (RuleKind::Namespaced, "portalrules", namespaced)]
        {
            let mut seen = BTreeSet::new();
            for object in objects {
                let (id, metadata) = (id_of(&object), &object.metadata);
                let created = metadata.creation_timestamp.as_ref().map(|time| time.0.to_string()).unwrap_or_default();
                let version = (metadata.uid.clone().unwrap_or_default(), metadata.generation.unwrap_or_default());
                let known = Known::new(created, version, labels_of(&object), read(&object, kind, &id).ok());
                seen.insert(id.clone());
                rules.set(id, Some(known));
            }
            rules.set_listed(plural, &seen, |id: &RuleId| {
                id.namespace.is_some() == matches!(kind, RuleKind::Namespaced)
            });
        }
        let config_maps = self.config_maps(instance)?;
        let needs = rules.needs(instance, &instance.engines(), |key| config_maps.get(key));
        let needs = needs.context("all rules were listed")?;
        Ok(needs.rules.to_vec())
    }

    /// The ConfigMaps with rules of the instance. Those that are not there have none.
    fn config_maps(&self, instance: &Instance) -> anyhow::Result<BTreeMap<Key, Object>> {
        let api: Api<ConfigMap> = Api::namespaced(self.0.client(), instance.namespace());
        let mut found = BTreeMap::new();
        for name in &instance.spec.bootstrap_rules.config_maps {
            let config_map = self.0.wait(api.get_opt(name));
            let config_map = config_map.map_err(|error| anyhow!(explain("get", "configmaps", &error)))?;
            if let Some(config_map) = config_map {
                let object = Object::from_value(Kind::ConfigMap, serde_json::to_value(config_map)?);
                found.insert(object.key.clone(), object);
            }
        }
        Ok(found)
    }

    /// What the operator of the cluster may do of what is needed; of an instance that is granted by hand, what its engine may.
    pub(super) fn held(
        &self,
        instance: &Instance,
        needs: &portal_operator::needs::Needs,
        operator: &str,
    ) -> anyhow::Result<Held> {
        let subjects = |need: &Need| -> Vec<Subject> {
            match instance.spec.rbac.mode {
                RbacMode::Auto => vec![Subject::account(operator, OPERATOR)],
                RbacMode::Manual | RbacMode::Audit => {
                    let accounts = needs.layers_of(need).map(|layer| engine(&instance.name, layer));
                    accounts.map(|account| Subject::account(instance.namespace(), &account)).collect()
                }
            }
        };
        let client = self.0.client();
        self.0.wait(async {
            let mut held = Held::new();
            for need in needs.grants.keys().filter(|need| !has_everybody(need)) {
                let mut is_held = true;
                for subject in subjects(need) {
                    let answer = is_allowed(&client, Some(&subject), &need.0, need.1.as_deref()).await;
                    is_held &= answer.map_err(anyhow::Error::msg)?;
                }
                held.insert(need.clone(), is_held);
            }
            Ok(held)
        })
    }

    /// What the roles of the instance allow because of rules.
    pub(super) fn present(&self, instance: &Instance) -> anyhow::Result<Present> {
        let labelled = ListParams::default().labels(&format!("{INSTANCE_LABEL}={}", instance.name));
        let cluster_roles: Api<ClusterRole> = Api::all(self.0.client());
        let of_cluster = self.0.wait(cluster_roles.list(&labelled));
        let of_cluster =
            of_cluster.map_err(|error| anyhow!(explain("list", "clusterroles.rbac.authorization.k8s.io", &error)))?;
        let roles: Api<Role> = Api::all(self.0.client());
        let listed = self.0.wait(roles.list(&labelled));
        let listed = listed.map_err(|error| anyhow!(explain("list", "roles.rbac.authorization.k8s.io", &error)))?;
        let mut present = Present::new();
        let of_cluster = of_cluster.into_iter().map(|role| (role.metadata, role.rules));
        for (metadata, rules) in of_cluster.chain(listed.into_iter().map(|role| (role.metadata, role.rules))) {
            let needs = present.entry(metadata.name.unwrap_or_default()).or_default();
            for rule in rules.into_iter().flatten() {
                needs.extend(beside_base(&rule, metadata.namespace.as_deref(), instance.namespace()));
            }
        }
        Ok(present)
    }

    fn list<K: kube::Resource<DynamicType = ()>>(&self, name: &str) -> anyhow::Result<Vec<Watched<RuleObject>>> {
        let api: Api<Watched<RuleObject>> = Api::all_with(self.0.client(), &ApiResource::erase::<K>(&()));
        let listed = self.0.wait(api.list(&ListParams::default()));
        Ok(listed.map_err(|error| anyhow!(explain("list", name, &error)))?.items)
    }
}
