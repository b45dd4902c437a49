//! `portal generate report-crds`: the definitions of reports. They belong to others: names, fields and words are theirs.

use serde_json::{Value, json};

/// A kind of report: its group and version, whether it is in a namespace, kind, plural, and what kubectl takes for short.
const KINDS: [(&str, &str, bool, &str, &str, &str); 4] = [
    ("wgpolicyk8s.io", "v1alpha2", true, "PolicyReport", "policyreports", "polr"),
    ("wgpolicyk8s.io", "v1alpha2", false, "ClusterPolicyReport", "clusterpolicyreports", "cpolr"),
    ("openreports.io", "v1alpha1", true, "Report", "reports", "reps"),
    ("openreports.io", "v1alpha1", false, "ClusterReport", "clusterreports", "creps"),
];

/// The outcomes of a check, in the order of the columns.
const OUTCOMES: [(&str, &str); 5] = [
    ("pass", "How many checks were met."),
    ("fail", "How many checks were not met."),
    ("warn", "How many checks were not met, and only warn."),
    ("error", "How many checks could not be made."),
    ("skip", "How many checks were left out."),
];

/// The definitions, as YAML.
pub(crate) fn yaml() -> anyhow::Result<String> {
    let documents: Result<Vec<String>, _> =
        KINDS.iter().map(|kind| serde_saphyr::to_string(&definition(*kind))).collect();
    Ok(documents?.join("---\n"))
}

fn definition((group, version, is_namespaced, kind, plural, short): (&str, &str, bool, &str, &str, &str)) -> Value {
    let shown = |name: &str, path: &str, priority: u32| {
        let kind = if name == "Age" {
            "date"
        } else if priority == 1 {
            "string"
        } else {
            "integer"
        };
        json!({ "name": name, "type": kind, "jsonPath": path, "priority": priority })
    };
    let mut columns = vec![shown("Kind", ".scope.kind", 1), shown("Name", ".scope.name", 1)];
    for (outcome, _) in OUTCOMES {
        let mut name = outcome.to_owned();
        name[..1].make_ascii_uppercase();
        columns.push(shown(&name, &format!(".summary.{outcome}"), 0));
    }
    columns.push(shown("Age", ".metadata.creationTimestamp", 0));
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group,
            "scope": if is_namespaced { "Namespaced" } else { "Cluster" },
            "names": {
                "kind": kind,
                "listKind": format!("{kind}List"),
                "plural": plural,
                "singular": kind.to_lowercase(),
                "shortNames": [short],
            },
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "additionalPrinterColumns": columns,
                "schema": { "openAPIV3Schema": report(group == "openreports.io", is_namespaced) },
            }],
        },
    })
}

fn report(is_open: bool, is_namespaced: bool) -> Value {
    let place = if is_namespaced { "a namespace" } else { "the whole cluster" };
    let counts = OUTCOMES.iter().map(|(outcome, description)| ((*outcome).to_owned(), integer(description)));
    let summary = counts.collect::<Value>();
    let mut fields = json!({
        "scope": reference("The object that all results are about."),
        "scopeSelector": selector("The objects that all results are about, by their labels."),
        "summary": object("How many results there are of each outcome.", summary, &[]),
        "results": {
            "description": "What was found.",
            "type": "array",
            "items": result(),
        },
    });
    if is_open {
        fields["source"] = text("The tool that has written all results, if it was one.");
        let limits = json!({
            "maxResults": integer("How many results the report holds at most."),
            "statusFilter": {
                "description": "The outcomes that the report holds.",
                "type": "array",
                "items": word("An outcome.", &OUTCOMES.map(|(outcome, _)| outcome)),
            },
        });
        let limits = object("How much the report holds.", limits, &[]);
        fields["configuration"] =
            object("What readers may expect of the report.", json!({ "limits": limits }), &["limits"]);
    }
    object(&format!("What checks found in {place}."), fields, &[])
}

fn result() -> Value {
    let time = json!({
        "seconds": { "description": "Seconds since 1970.", "type": "integer", "format": "int64" },
        "nanos": { "description": "Nanoseconds beyond them.", "type": "integer", "format": "int32" },
    });
    let fields = json!({
        "source": text("The tool that made the check."),
        "policy": text("The check, or the set of checks that it is one of."),
        "rule": text("The check in its set."),
        "category": text("What sort of check it is."),
        "severity": word("How bad it is not to meet the check.", &["critical", "high", "low", "medium", "info"]),
        "timestamp": object("When it was found.", time, &["seconds", "nanos"]),
        "result": word("The outcome.", &OUTCOMES.map(|(outcome, _)| outcome)),
        "scored": { "description": "Whether the outcome counts in a score.", "type": "boolean" },
        "resources": {
            "description": "The objects that it is about.",
            "type": "array",
            "items": reference("An object."),
        },
        "resourceSelector": selector("The objects that it is about, by their labels."),
        "message": text("What was found, for people."),
        "properties": {
            "description": "What else the tool says.",
            "type": "object",
            "additionalProperties": { "type": "string" },
        },
    });
    object("The outcome of a check.", fields, &["policy"])
}

fn reference(description: &str) -> Value {
    let fields = json!({
        "apiVersion": text("Its group and version."),
        "kind": text("Its kind."),
        "namespace": text("Its namespace."),
        "name": text("Its name."),
        "uid": text("Its UID."),
        "resourceVersion": text("The version of it that was looked at."),
        "fieldPath": text("The part of it that is meant."),
    });
    let mut reference = object(description, fields, &[]);
    reference["x-kubernetes-map-type"] = "atomic".into();
    reference
}

fn selector(description: &str) -> Value {
    let texts = |description: &str| {
        json!({
            "description": description, "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "atomic",
        })
    };
    let condition = json!({
        "key": text("The key of the label."),
        "operator": text("How the label relates to the values: In, NotIn, Exists or DoesNotExist."),
        "values": texts("The values."),
    });
    let fields = json!({
        "matchLabels": {
            "description": "Labels that they have.",
            "type": "object",
            "additionalProperties": { "type": "string" },
        },
        "matchExpressions": {
            "description": "Further conditions on their labels.",
            "type": "array",
            "x-kubernetes-list-type": "atomic",
            "items": object("A condition.", condition, &["key", "operator"]),
        },
    });
    let mut selector = object(description, fields, &[]);
    selector["x-kubernetes-map-type"] = "atomic".into();
    selector
}

fn object(description: &str, fields: Value, required: &[&str]) -> Value {
    let mut object = json!({ "description": description, "type": "object", "properties": fields });
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

fn text(description: &str) -> Value {
    json!({ "description": description, "type": "string" })
}

fn integer(description: &str) -> Value {
    json!({ "description": description, "type": "integer" })
}

fn word(description: &str, words: &[&str]) -> Value {
    json!({ "description": description, "type": "string", "enum": words })
}
