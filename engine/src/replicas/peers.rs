//! Where the other replicas are.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{
    Api,
    runtime::watcher::{self, Event},
};
use portal_cluster::{health::Part, runtime::Runtime, watch::Events};
use tokio::sync::watch;

/// Where the other replicas are found.
#[derive(Clone, Debug)]
pub enum Peers {
    /// At these addresses. Those where nobody is are not counted.
    Named(Vec<SocketAddr>),
    /// Behind a Service of the engine's namespace, which knows who is ready.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// The addresses of replicas that are ready, as far as is known.
pub(super) type Addresses = watch::Receiver<BTreeSet<SocketAddr>>;

/// The label by which the API server says which Service a slice belongs to.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// The name of the port by which replicas answer, if there are several.
const PORT: &str = "webhook";

/// Starts to follow the addresses. The task ends with the process.
pub(super) fn follow(peers: Peers, runtime: Runtime) -> (Addresses, impl Future<Output = ()> + Send) {
    let (sender, addresses) = watch::channel(BTreeSet::new());
    let task = async move {
        match peers {
            Peers::Named(named) => drop(sender.send(named.into_iter().collect())),
            Peers::Service { namespace, name } => follow_service(&namespace, &name, runtime, &sender).await,
        }
    };
    (addresses, task)
}

async fn follow_service(namespace: &str, name: &str, runtime: Runtime, sender: &watch::Sender<BTreeSet<SocketAddr>>) {
    let api: Api<EndpointSlice> = Api::namespaced(runtime.client.clone(), namespace);
    let config = watcher::Config::default().labels(&format!("{SERVICE_LABEL}={name}"));
    let mut events = Events::with(runtime, Part::Peers, "endpointslices.discovery.k8s.io".to_owned(), api, config);
    let mut slices: BTreeMap<String, BTreeSet<SocketAddr>> = BTreeMap::new();
    let mut listed: BTreeMap<String, BTreeSet<SocketAddr>> = BTreeMap::new();
    while let Some(event) = events.next().await {
        let name = |slice: &EndpointSlice| slice.metadata.name.clone().unwrap_or_default();
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(slice) => drop(listed.insert(name(&slice), ready_addresses(&slice))),
            Event::InitDone => slices = std::mem::take(&mut listed),
            Event::Apply(slice) => drop(slices.insert(name(&slice), ready_addresses(&slice))),
            Event::Delete(slice) => drop(slices.remove(&name(&slice))),
        }
        let addresses: BTreeSet<SocketAddr> = slices.values().flatten().copied().collect();
        sender.send_if_modified(|known| std::mem::replace(known, addresses.clone()) != addresses);
    }
}

/// The addresses of a slice that are ready.
fn ready_addresses(slice: &EndpointSlice) -> BTreeSet<SocketAddr> {
    let ports = slice.ports.as_deref().unwrap_or_default();
    let port = match ports {
        // Pods that judge no requests have a slice of their own, and answer nobody.
        [only] => Some(only).filter(|port| port.name.as_deref().is_none_or(|name| name.is_empty() || name == PORT)),
        several => several.iter().find(|port| port.name.as_deref() == Some(PORT)),
    };
    let Some(port) = port.and_then(|port| u16::try_from(port.port?).ok()) else { return BTreeSet::new() };
    let is_ready = |ready: Option<bool>| ready.unwrap_or(true);
    let endpoints = slice.endpoints.iter();
    let ready = endpoints.filter(|endpoint| is_ready(endpoint.conditions.as_ref().and_then(|found| found.ready)));
    ready
        .flat_map(|endpoint| &endpoint.addresses)
        .filter_map(|ip| Some(SocketAddr::new(ip.parse().ok()?, port)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn those_who_are_ready_are_asked_at_the_port_of_the_webhook() {
        let slice = json!({
            "addressType": "IPv4",
            "ports": [{"name": "metrics", "port": 8080}, {"name": "webhook", "port": 8443}],
            "endpoints": [
                {"addresses": ["10.0.0.1"], "conditions": {"ready": true}},
                {"addresses": ["10.0.0.2"], "conditions": {"ready": false}},
                {"addresses": ["10.0.0.3"]},
            ],
        });
        let addresses = |slice: &serde_json::Value| {
            let slice = serde_json::from_value(slice.clone()).unwrap();
            ready_addresses(&slice).into_iter().map(|address| address.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(addresses(&slice), ["10.0.0.1:8443", "10.0.0.3:8443"]);
        let mut one = slice.clone();
        one["ports"] = json!([{"port": 9443}]);
        assert_eq!(addresses(&one), ["10.0.0.1:9443", "10.0.0.3:9443"]);
        one["ports"] = json!([{"name": "metrics", "port": 8080}]);
        assert_eq!(addresses(&one), Vec::<String>::new());
        one["ports"] = json!([]);
        assert_eq!(addresses(&one), Vec::<String>::new());
    }
}
