//! Tests against real clusters.
