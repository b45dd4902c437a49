//! What Kubernetes lets objects be called.

/// Whether a namespace, or an instance, can have this name.
pub fn is_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_end = |byte: Option<&u8>| byte.is_some_and(|byte| *byte != b'-');
    let bytes = name.as_bytes();
    bytes.iter().all(|byte| is_inner(*byte)) && is_end(bytes.first()) && is_end(bytes.last()) && name.len() <= 63
}
