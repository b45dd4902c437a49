//! Whether the API server reaches this replica. Somebody creates a labelled Lease without storing it; the API server sends it here; the
//! answer brings back what it carries, which nobody else could know.

use portal_core::{
    decide::response::response,
    review::request_of,
    webhook::{NONCE_ANNOTATION, PROBE_LABEL, probe_answer},
};
use portal_document::Node;
use serde_json::Value;

use super::judge::{Unanswerable, read_review};
use crate::sinks::About;

/// The longest text that is brought back.
const MAX_NONCE: usize = 64;

/// What the engine says that it is.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Answers a probe. It is always let in; without something to bring back it is told why.
pub fn answer(body: &[u8]) -> Result<Value, Unanswerable> {
    let document = read_review(body)?;
    let about = About::of(document.root())?;
    let metadata = request_of(document.root())?.get_str("object").and_then(|object| object.get_str("metadata"));
    let field = |part: &str, name: &str| metadata?.get_str(part)?.get_str(name).and_then(Node::as_str);
    let is_plain = |nonce: &&str| {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !nonce.is_empty() && nonce.len() <= MAX_NONCE && nonce.bytes().all(is_inner)
    };
    let instance = field("labels", PROBE_LABEL).unwrap_or_default();
    let warning = match field("annotations", NONCE_ANNOTATION).filter(is_plain) {
        Some(nonce) => probe_answer(instance, nonce) + VERSION,
        None => format!("the annotation {NONCE_ANNOTATION} is missing, or not 1 to {MAX_NONCE} letters, digits and -"),
    };
    Ok(response(&about.uid, None, vec![warning]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(nonce: &Value, expected: &str) {
        let lease = json!({"metadata": {"labels": {PROBE_LABEL: "default"}, "annotations": {NONCE_ANNOTATION: nonce}}});
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": "1", "operation": "CREATE", "object": lease},
        });
        let answer = answer(review.to_string().as_bytes()).unwrap();
        assert_eq!(answer["response"], json!({"uid": "1", "allowed": true, "warnings": [expected]}));
    }

    #[test]
    fn a_probe_gets_back_what_it_carries_and_the_version() {
        check(&json!("a-17"), &format!("portal default answers a-17 as {VERSION}"));
        let refused = "the annotation portal.io/nonce is missing, or not 1 to 64 letters, digits and -";
        for nonce in [json!(null), json!(""), json!("two\nlines"), json!("a".repeat(65)), json!(["a"])] {
            check(&nonce, refused);
        }
    }
}
