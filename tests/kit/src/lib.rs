//! Real Kubernetes for tests, for the demo and for a developer's own hands: started in seconds, gone when its user is.
//!
//! A test asks for a [`Cluster`]. That starts a *keeper*, a process of its own that runs etcd, the API server and the
//! rest, and that ends when the pipe to the test closes: on success, failure, panic, Ctrl-C or `kill -9` alike.

pub mod audit_log;
pub mod cache;
pub mod certificates;
pub mod cluster;
pub mod components;
pub mod detached;
pub mod fault_proxy;
pub mod gitops;
pub mod held;
pub mod image;
pub mod keeper;
pub mod kubernetes;
pub mod namespace;
pub mod node;
pub mod pages;
pub mod policy_reports;
pub mod prepare;
pub mod program;
pub mod prometheus;
pub mod share;
pub mod state;
pub mod suites;

use std::path::{Path, PathBuf};

pub use cluster::Cluster;
pub use fault_proxy::FaultProxy;
pub use namespace::Namespace;
pub use state::Size;

/// The folder of this project.
pub fn repository() -> PathBuf {
    let kit = Path::new(env!("CARGO_MANIFEST_DIR"));
    kit.ancestors().nth(2).expect("the kit lies two folders below the top").to_owned()
}

/// The small program of the test images: serves, answers reviews as told, calls out.
pub fn responder() -> program::Program {
    program::Program {
        build_flags: vec!["-ldflags=-s -w".to_owned()],
        ..program::Program::new("responder", repository().join("tests/responder"))
    }
}

/// The real Alertmanager, as its users run it. The module has no code of its own: it names the program as a tool.
pub fn alertmanager() -> program::Program {
    program::Program {
        package: "github.com/prometheus/alertmanager/cmd/alertmanager".to_owned(),
        ..program::Program::new("alertmanager", repository().join("tests/alertmanager"))
    }
}

/// The program that answers for the real expr-lang.
pub fn expr_oracle() -> program::Program {
    program::Program::new("expr-oracle", repository().join("tests/oracles/expr"))
}

/// The program that answers for Kubernetes' own reading of YAML and JSON.
pub fn yaml_oracle() -> program::Program {
    program::Program::new("yaml-oracle", repository().join("tests/oracles/yaml"))
}

/// The program that answers for Kubernetes' own reading of quantities.
pub fn quantity_oracle() -> program::Program {
    program::Program::new("quantity-oracle", repository().join("tests/oracles/quantity"))
}

/// The program that answers for kstatus, and runs scripts for Argo CD.
pub fn gitops_oracle() -> program::Program {
    program::Program::new("gitops-oracle", repository().join("tests/oracles/gitops"))
}

/// The program that answers for Prometheus: its parsers of expressions and rules, and when alerts fire.
pub fn prometheus_oracle() -> program::Program {
    program::Program::new("prometheus-oracle", repository().join("tests/oracles/prometheus"))
}

/// The program that answers for tools that show policy reports: it reads reports by the types that they have.
pub fn reports_oracle() -> program::Program {
    program::Program::new("reports-oracle", repository().join("tests/oracles/reports"))
}

/// The program that answers for Kubernetes' own Pod Security Standards.
pub fn pod_security_oracle() -> program::Program {
    program::Program::new("pod-security-oracle", repository().join("tests/oracles/podsecurity"))
}
