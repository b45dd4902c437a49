//! The children of instances, as people read them.
