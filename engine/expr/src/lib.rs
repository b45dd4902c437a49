//! The rule language: expr-lang, parsed, resolved and evaluated over borrowed documents. Knows no Kubernetes.
