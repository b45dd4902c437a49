//! The flat form of a JSON object that rules read and caches hold. Knows neither rules nor Kubernetes.
