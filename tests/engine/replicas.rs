//! Of several replicas one writes, and another one takes over.
