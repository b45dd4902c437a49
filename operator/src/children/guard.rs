//! Who may set the mark by which a namespace is passed by. See `docs/adr/0008-guarded-namespace-bypass.md`.

use serde_json::{Value, json};

use crate::names::{GUARD, MANAGED_BY};
use crate::object::{Kind, Object};

/// The mark is passed on as it is, or taken away: that makes nothing looser. Whoever sets or changes it needs the verb. The engine knows
/// `true` alone, and yet every value is guarded, so that what is seen on a namespace was set by somebody who may.
const MAY_SET: &str = "variables.after == '' || variables.after == variables.before || \
                       authorizer.group('portal.io').resource('portalinstances').check('bypass').allowed()";

/// The mark of a namespace as it is to be, and as it was.
const AFTER: &str = "object.metadata.?annotations[?'portal.io/bypass'].orValue('')";
const BEFORE: &str = "oldObject == null ? '' : oldObject.metadata.?annotations[?'portal.io/bypass'].orValue('')";

/// The policy and its binding. They are there once for a cluster, belong to no instance, and hold while no engine runs.
pub fn guard() -> Vec<Object> {
    let made = |kind: Kind, spec: Value| {
        let labels = json!({ MANAGED_BY.0: MANAGED_BY.1, "app.kubernetes.io/name": "portal" });
        Object::from_value(kind, json!({ "metadata": { "name": GUARD, "labels": labels }, "spec": spec }))
    };
    let policy = json!({
        "failurePolicy": "Fail",
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "resourceRules": [{
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                // Metadata can be changed by way of subresources too.
                "resources": ["namespaces", "namespaces/status", "namespaces/finalize"],
                "scope": "*",
            }],
        },
        "variables": [{ "name": "after", "expression": AFTER }, { "name": "before", "expression": BEFORE }],
        "validations": [{
            "expression": MAY_SET,
            "reason": "Forbidden",
            "message": "the annotation `portal.io/bypass` switches all rules off for what is in the namespace: \
                        to set it takes the verb `bypass` on portalinstances.portal.io, which an administrator can grant",
        }],
    });
    let binding = json!({ "policyName": GUARD, "validationActions": ["Deny"] });
    vec![made(Kind::ValidatingAdmissionPolicy, policy), made(Kind::ValidatingAdmissionPolicyBinding, binding)]
}
