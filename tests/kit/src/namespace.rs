//! A namespace per test, so that tests share a cluster without meeting each other.

use k8s_openapi::api::core::v1::Namespace as Object;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

use crate::cluster::Cluster;
use crate::state::Size;

/// The namespace of one test. When the test fails, what is in it goes to standard error.
#[derive(Debug)]
pub struct Namespace<'cluster> {
    /// Its name.
    pub name: String,
    cluster: &'cluster Cluster,
}

impl<'cluster> Namespace<'cluster> {
    pub(crate) async fn create(cluster: &'cluster Cluster, name: &str) -> Self {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let namespaces: Api<Object> = Api::all(cluster.client().await);
        namespaces
            .create(&PostParams::default(), &Object { metadata, ..Object::default() })
            .await
            .unwrap_or_else(|error| panic!("the namespace {name} could not be made: {error}"));
        Self { name: name.to_owned(), cluster }
    }

    /// Objects of one kind in this namespace.
    pub fn api<K>(&self, client: Client) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(client, &self.name)
    }

    /// Runs kubectl in this namespace as the administrator.
    pub fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.cluster.kubectl(&[&["--namespace", &self.name], arguments].concat())
    }

    /// Creates or changes what this YAML describes, in this namespace.
    pub fn apply(&self, yaml: &str) -> anyhow::Result<String> {
        self.cluster.kubectl_with_input(&["--namespace", &self.name, "apply", "--filename", "-"], yaml)
    }
}

impl Drop for Namespace<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let state = self.kubectl(&["get", "all,configmaps,events", "--output", "wide"]);
            let state = state.unwrap_or_else(|error| format!("{error:#}"));
            eprintln!("what is in the namespace {}:\n{}", self.name, state.trim_end());
            self.cluster.show_logs();
        } else if self.cluster.size() == Size::Full {
            // Its pods would go on taking memory from the tests that follow.
            let _ = self.cluster.kubectl(&["delete", "namespace", &self.name, "--wait=false"]);
        }
    }
}
