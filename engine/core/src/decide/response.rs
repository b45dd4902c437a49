//! A decision as the API server takes it.

use serde_json::{Value, json};

use super::{Decision, Finding, MAX_CAUSES, Reason, within};

/// What the API server shows of a warning; the rest of a longer one is cut off without a sign.
const MAX_WARNING: usize = 256;

/// How many bytes all warnings together may have. The API server drops what is beyond 4096 without a sign.
const MAX_WARNINGS: usize = 3500;

/// The AdmissionReview that lets the request of this uid in, or refuses it for a reason. Warnings are cut to what is passed on.
pub fn response(uid: &str, refusal: Option<&str>, warnings: Vec<String>) -> Value {
    let mut response = json!({"uid": uid, "allowed": refusal.is_none()});
    if let Some(refusal) = refusal {
        response["status"] = json!({"code": 403, "reason": "Forbidden", "message": refusal});
    }
    let warnings = fitting(warnings);
    if !warnings.is_empty() {
        response["warnings"] = json!(warnings);
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

/// The warnings, each and all together no longer than the API server passes on.
fn fitting(warnings: Vec<String>) -> Vec<String> {
    let (all, mut told, mut left) = (warnings.len(), Vec::new(), MAX_WARNINGS);
    for warning in warnings {
        let warning = within(&warning, MAX_WARNING);
        if warning.len() > left {
            told.push(format!("and {} more warnings of rules", all - told.len()));
            break;
        }
        left -= warning.len();
        told.push(warning);
    }
    told
}

impl Decision {
    /// The AdmissionReview that answers the request of this uid.
    pub fn response(&self, uid: &str) -> Value {
        let message = (!self.is_allowed()).then(|| self.message());
        let mut review = response(uid, message.as_deref(), self.warning_lines());
        let response = &mut review["response"];
        if !self.is_allowed() {
            let mut bytes = 0;
            let fits = |cause: &Value| {
                bytes += cause.to_string().len();
                bytes <= MAX_CAUSES
            };
            let causes: Vec<Value> = self.denials.iter().map(Reason::cause).take_while(fits).collect();
            response["status"]["details"] = json!({"causes": causes});
        }
        if !self.is_silent() {
            response["auditAnnotations"] = json!(self.annotations());
        }
        review
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
