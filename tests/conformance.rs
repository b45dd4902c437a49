//! Our expr-lang against the real one, and our reading of YAML and JSON and our rules for the security of pods against
//! Kubernetes' own: oracles answer for them.
//! Where they disagree is counted and named, so that a new disagreement fails.

mod documents;
mod mutants;
mod oracle;
mod parse;
pub(crate) mod pod_security;
mod quantities;
mod random;
mod values;
