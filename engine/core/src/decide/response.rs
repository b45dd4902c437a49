//! A decision as the API server takes it.

use serde_json::{Value, json};

use super::{Decision, Finding, Reason};

/// Causes of a refusal that are told one by one. Clients show the message, which says how many there are.
const MAX_CAUSES: usize = 100;

impl Decision {
    /// The AdmissionReview that answers the request of this uid.
    pub fn response(&self, uid: &str) -> Value {
        let mut response = json!({"uid": uid, "allowed": self.is_allowed()});
        if !self.is_allowed() {
            let causes: Vec<Value> = self.denials.iter().take(MAX_CAUSES).map(Reason::cause).collect();
            response["status"] = json!({
                "code": 403,
                "reason": "Forbidden",
                "message": self.message(),
                "details": {"causes": causes},
            });
        }
        let (warnings, annotations) = (self.warnings(), self.annotations());
        if !warnings.is_empty() {
            response["warnings"] = json!(warnings);
        }
        if !annotations.is_empty() {
            response["auditAnnotations"] = json!(annotations);
        }
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
    }
}

impl Reason {
    /// For programs that take a refusal apart: the rule, and which container it is about.
    fn cause(&self) -> Value {
        let reason = match self.finding {
            Finding::Violation | Finding::Existing => "RuleViolated",
            Finding::Failure => "RuleFailed",
        };
        let mut cause = json!({"reason": reason, "message": self.to_string()});
        if let Some(container) = &self.container {
            cause["field"] = json!(format!("container {container}"));
        }
        cause
    }
}
