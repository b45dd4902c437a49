//! Rules out of documents: the two custom resources, and the form of files, where `name` stands beside the rest.
//!
//! The form is checked against the schema of the custom resources, so that a file is refused for what the API server
//! would refuse, and a field that nobody knows is never passed over.

mod advice;

use std::sync::LazyLock;

use portal_crds::RuleSpec;
use portal_document::{Node, View};
use serde_json::Value;

use crate::rule::{
    diagnostic::{Diagnostic, Level, Step},
    source::{Origin, RuleId, RuleSource},
};

/// The group of the custom resources.
const GROUP: &str = "portal.io/";

/// The schemas of the two kinds, as the API server has them.
static CLUSTER_RULE: LazyLock<Value> = LazyLock::new(|| schema_of("PortalClusterRule"));
static RULE: LazyLock<Value> = LazyLock::new(|| schema_of("PortalRule"));

/// The schema of a rule of a file: the fields of a spec, and its name.
static PLAIN: LazyLock<Value> = LazyLock::new(|| {
    let mut schema = CLUSTER_RULE["properties"]["spec"].clone();
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.insert("name".to_owned(), serde_json::json!({ "type": "string" }));
    }
    schema
});

/// Whether a document claims to be a rule.
pub fn is_rule(document: Node<'_>) -> bool {
    match document.get_str("apiVersion") {
        Some(version) => version.as_str().is_some_and(|version| version.starts_with(GROUP)),
        None => document.get_str("rule").is_some(),
    }
}

/// Whether a document that does not claim to be a rule was meant as one: it is called nearly like one, or has what only rules have.
pub(crate) fn is_meant_as_rule(document: Node<'_>) -> bool {
    let kind = document.get_str("kind").and_then(Node::as_str).unwrap_or_default();
    let has = |name: &str| document.get_str("spec").is_some_and(|spec| spec.get_str(name).is_some());
    portal_expr::nearest(kind, ["PortalClusterRule", "PortalRule"].into_iter()).is_some()
        || (has("match") && has("rule"))
}

/// Reads a rule, or says everything that is wrong with its form. `base` is the way to it in its document, which is empty
/// unless it is an item of a list.
pub fn load(document: Node<'_>, origin: Origin, base: Vec<Step>) -> Result<RuleSource, Vec<Diagnostic>> {
    let mut loader = Loader { rule: None, origin, base, problems: Vec::new() };
    match loader.load(document) {
        Some(source) if loader.problems.is_empty() => Ok(source),
        _ => Err(loader.problems),
    }
}

/// Reads the rule that an object of the cluster is. The caller says which kind it asked the API server for: an item of a list may
/// leave its kind out.
pub fn load_object(object: Node<'_>, kind: RuleKind, origin: Origin) -> Result<RuleSource, Vec<Diagnostic>> {
    let mut loader = Loader { rule: None, origin, base: Vec::new(), problems: Vec::new() };
    match loader.load_custom(object, kind) {
        Some(source) if loader.problems.is_empty() => Ok(source),
        _ => Err(loader.problems),
    }
}

/// The two custom resources.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RuleKind {
    /// `PortalClusterRule`
    Cluster,
    /// `PortalRule`
    Namespaced,
}

struct Loader {
    rule: Option<RuleId>,
    origin: Origin,
    base: Vec<Step>,
    problems: Vec<Diagnostic>,
}

impl Loader {
    fn load(&mut self, document: Node<'_>) -> Option<RuleSource> {
        if document.as_object().is_none() {
            self.problem(&[], format!("a rule is a map, not {}", kind_of(document)));
            return None;
        }
        if document.get_str("apiVersion").is_none() && document.get_str("kind").is_none() {
            return self.load_plain(document);
        }
        let text = |node: Option<Node<'_>>| node.and_then(Node::as_str).map(str::to_owned);
        let (version, kind) = (text(document.get_str("apiVersion")), text(document.get_str("kind")));
        if version.as_deref() != Some("portal.io/v1alpha1") {
            let version = version.unwrap_or_default();
            self.problem(&["apiVersion"], format!("unknown version `{version}`: this is portal.io/v1alpha1"));
            return None;
        }
        let kind = match kind.as_deref() {
            Some("PortalClusterRule") => RuleKind::Cluster,
            Some("PortalRule") => RuleKind::Namespaced,
            other => {
                let other = other.unwrap_or_default();
                self.problem(
                    &["kind"],
                    format!("unknown kind `{other}`: a rule is a PortalClusterRule or a PortalRule"),
                );
                return None;
            }
        };
        self.load_custom(document, kind)
    }

    fn load_custom(&mut self, document: Node<'_>, kind: RuleKind) -> Option<RuleSource> {
        let text = |node: Option<Node<'_>>| node.and_then(Node::as_str).map(str::to_owned);
        let metadata = document.get_str("metadata");
        let field = |name| metadata.and_then(|metadata| metadata.get_str(name));
        let Some(name) = text(field("name")).filter(|name| !name.is_empty()) else {
            self.problem(&["metadata", "name"], no_name(field("name")));
            return None;
        };
        let (schema, namespace) = match kind {
            RuleKind::Cluster => (&*CLUSTER_RULE, None),
            RuleKind::Namespaced => (&*RULE, Some(text(field("namespace")).unwrap_or_else(|| "default".to_owned()))),
        };
        self.rule = Some(RuleId { namespace, name });
        let known = ["apiVersion", "kind", "metadata", "spec", "status"];
        for (key, value) in document.as_object().into_iter().flat_map(|object| object.iter()) {
            if !known.contains(&key) {
                self.unknown_field(&mut Vec::new(), key, value, known.into_iter());
            }
        }
        let Some(spec) = document.get_str("spec") else {
            self.problem(&["spec"], "a rule needs a spec".to_owned());
            return None;
        };
        self.check(spec, &schema["properties"]["spec"], &mut vec![Step::Field("spec".to_owned())]);
        let generation = match field("generation").map(Node::view) {
            Some(View::Int(generation)) => generation,
            _ => 0,
        };
        let spec = self.problems.is_empty().then(|| self.spec(&spec.to_json()))??;
        let mut base = self.base.clone();
        base.push(Step::Field("spec".to_owned()));
        Some(RuleSource { id: self.rule.clone()?, origin: self.origin.clone(), base, generation, spec })
    }

    fn load_plain(&mut self, document: Node<'_>) -> Option<RuleSource> {
        let name = document.get_str("name");
        let Some(name) = name.and_then(Node::as_str).filter(|name| !name.is_empty()) else {
            self.problem(&["name"], no_name(name));
            return None;
        };
        self.rule = Some(RuleId { namespace: None, name: name.to_owned() });
        self.check(document, &PLAIN, &mut Vec::new());
        let spec = self.problems.is_empty().then(|| self.spec(&document.to_json()))??;
        let (origin, base) = (self.origin.clone(), self.base.clone());
        Some(RuleSource { id: self.rule.clone()?, origin, base, generation: 0, spec })
    }

    fn spec(&mut self, json: &str) -> Option<RuleSpec> {
        match serde_json::from_str(json) {
            Ok(spec) => Some(spec),
            // The schema says all that the type says, so this is a bug; the rule's author is still told.
            Err(error) => {
                self.problem(&["spec"], error.to_string());
                None
            }
        }
    }

    /// Checks a value against the part of a schema that structural schemas use.
    fn check(&mut self, node: Node<'_>, schema: &Value, path: &mut Vec<Step>) {
        if node.is_null() {
            // The API server drops null where a default or nothing is allowed.
            return;
        }
        let expected = schema["type"].as_str().unwrap_or("object");
        if !fits(node, expected) {
            let hint = advice::of_form(path, node, expected).map(|advice| format!(": {advice}")).unwrap_or_default();
            return self.add(path, format!("{}{hint}", unexpected(node, expected)));
        }
        match node.view() {
            View::Object(object) => {
                let properties = schema["properties"].as_object();
                for (key, value) in object.iter() {
                    path.push(Step::Field(key.to_owned()));
                    match (properties.and_then(|properties| properties.get(key)), schema.get("additionalProperties")) {
                        (Some(property), _) => self.check(value, property, path),
                        (None, Some(property)) => self.check(value, property, path),
                        (None, None) => {
                            path.pop();
                            let names = properties.into_iter().flatten().map(|(name, _)| name.as_str());
                            self.unknown_field(path, key, value, names);
                            continue;
                        }
                    }
                    path.pop();
                }
                for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                    if object.get_str(name).is_none_or(Node::is_null) {
                        self.add(path, format!("`{name}` is missing"));
                    }
                }
                self.check_count(object.len(), schema, "maxProperties", "entries", path);
            }
            View::Array(array) => {
                self.check_count(array.len(), schema, "maxItems", "elements", path);
                if (array.len() as u64) < schema["minItems"].as_u64().unwrap_or_default() {
                    self.add(path, "must not be empty".to_owned());
                }
                for (index, element) in array.iter().enumerate() {
                    path.push(Step::Index(index));
                    self.check(element, &schema["items"], path);
                    path.pop();
                }
            }
            View::Str(text) => {
                let length = text.chars().count();
                self.check_count(length, schema, "maxLength", "characters", path);
                if (length as u64) < schema["minLength"].as_u64().unwrap_or_default() {
                    self.add(path, "must not be empty".to_owned());
                }
                if let Some(words) = schema["enum"].as_array() {
                    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                    if !words.contains(&text) {
                        let theirs = advice::of_word(path, text);
                        let hint = theirs.or_else(|| portal_expr::nearest(text, words.iter().copied()));
                        let hint = hint.map(|word| format!(", did you mean `{word}`?")).unwrap_or_default();
                        self.add(path, format!("`{text}` is none of {}{hint}", words.join(", ")));
                    }
                }
            }
            View::Int(number) => {
                let bound = |name| schema[name].as_f64();
                let (least, most) = (bound("minimum"), bound("maximum"));
                if least.is_some_and(|least| (number as f64) < least) || most.is_some_and(|most| number as f64 > most) {
                    let range = (least.unwrap_or(f64::MIN), most.unwrap_or(f64::MAX));
                    self.add(path, format!("{number} is not between {} and {}", range.0, range.1));
                }
            }
            _ => {}
        }
    }

    fn check_count(&mut self, count: usize, schema: &Value, bound: &str, what: &str, path: &[Step]) {
        if let Some(most) = schema[bound].as_u64()
            && count as u64 > most
        {
            self.add(path, format!("may have at most {most} {what}, has {count}"));
        }
    }

    fn unknown_field<'n>(
        &mut self,
        path: &mut Vec<Step>,
        key: &str,
        value: Node<'_>,
        names: impl Iterator<Item = &'n str> + Clone,
    ) {
        // A key that YAML takes for a boolean has become one of these words.
        let boolean = names.clone().find(|name| (key == "true" && *name == "on") || (key == "false" && *name == "off"));
        let (written, hint) = match boolean {
            Some(name) => (name, Some(format!(": YAML reads `{name}` as a boolean: write it in quotes"))),
            None => {
                let known: Vec<&str> = names.collect();
                let advice = advice::of_unknown(key, value, &known).map(|advice| format!(": {advice}"));
                let nearest = || portal_expr::nearest(key, known.iter().copied());
                (key, advice.or_else(|| nearest().map(|name| format!(", did you mean `{name}`?"))))
            }
        };
        path.push(Step::Field(written.to_owned()));
        self.add(path, format!("unknown field `{key}`{}", hint.unwrap_or_default()));
        path.pop();
    }

    fn problem(&mut self, path: &[&str], message: String) {
        let path: Vec<Step> = path.iter().map(|name| Step::Field((*name).to_owned())).collect();
        self.add(&path, message);
    }

    fn add(&mut self, path: &[Step], message: String) {
        self.problems.push(Diagnostic {
            rule: self.rule.clone(),
            origin: self.origin.clone(),
            level: Level::Error,
            field: self.base.iter().chain(path).cloned().collect(),
            message,
            excerpt: None,
            awaits_kind: false,
        });
    }
}

fn no_name(name: Option<Node<'_>>) -> String {
    match name.filter(|name| !name.is_null() && name.as_str().is_none()) {
        Some(name) => unexpected(name, "string"),
        None => "a rule needs a name".to_owned(),
    }
}

fn unexpected(node: Node<'_>, expected: &str) -> String {
    let hint = match (expected, node.view()) {
        ("string", View::Bool(_)) => ": YAML reads on, off, yes, no, y and n as booleans, so write it in quotes",
        ("string", View::Int(_) | View::Float(_)) => ": write it in quotes",
        _ => "",
    };
    format!("expected {}, got {}{hint}", article(expected), kind_of(node))
}

fn schema_of(kind: &str) -> Value {
    let definition = portal_crds::definitions().into_iter().find(|definition| definition.spec.names.kind == kind);
    let version = definition.and_then(|definition| definition.spec.versions.into_iter().next());
    let schema = version.and_then(|version| version.schema).and_then(|schema| schema.open_api_v3_schema);
    serde_json::to_value(schema).unwrap_or_default()
}

fn fits(node: Node<'_>, expected: &str) -> bool {
    match node.view() {
        View::Null => true,
        View::Bool(_) => expected == "boolean",
        View::Int(_) => matches!(expected, "integer" | "number"),
        View::Float(_) => expected == "number",
        View::Str(_) => expected == "string",
        View::Array(_) => expected == "array",
        View::Object(_) => expected == "object",
    }
}

fn kind_of(node: Node<'_>) -> &'static str {
    match node.view() {
        View::Null => "nothing",
        View::Bool(_) => "a boolean",
        View::Int(_) | View::Float(_) => "a number",
        View::Str(_) => "text",
        View::Array(_) => "a list",
        View::Object(_) => "a map",
    }
}

fn article(expected: &str) -> &'static str {
    match expected {
        "boolean" => "a boolean",
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "text",
        "array" => "a list",
        _ => "a map",
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::testing::rules;

    #[test]
    fn a_rule_runs_in_admission_and_audit_and_acts_on_the_network_too() {
        let rule = "name: r\nmode: [admission, network]\nmatch: {gvk: [{kind: Pod}]}\nrule: spec.hostNetwork\n";
        let (_, problems) = rules(&format!("{rule}actions: [{{type: evict, 'on': [network, kitchen]}}]\n"));
        expect![[r#"
            Error: rule r: mode[1]: `network` is none of admission, audit
            Error: rule r: actions[0].on[1]: `kitchen` is none of admission, audit, network"#]]
        .assert_eq(&problems.join("\n"));
    }
}
