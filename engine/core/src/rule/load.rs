//! Rules out of documents: the two custom resources, and the form of files, where `name` stands beside the rest.
//!
//! The form is checked against the schema of the custom resources, so that a file is refused for what the API server
//! would refuse, and a field that nobody knows is never passed over.

mod advice;
mod form;

use std::sync::{Arc, LazyLock};

use portal_crds::RuleSpec;
use portal_document::{Node, View};
use serde_json::Value;

use self::form::Form;
use crate::rule::{
    diagnostic::{Diagnostic, Level, Step},
    source::{CATEGORY, Origin, RuleId, RuleSource},
};

/// The group of the custom resources.
const GROUP: &str = "portal.io/";

/// The specs of the two kinds, as the API server has them.
static CLUSTER_RULE: LazyLock<Form> = LazyLock::new(|| Form::of(&schema_of("PortalClusterRule")["properties"]["spec"]));
static RULE: LazyLock<Form> = LazyLock::new(|| Form::of(&schema_of("PortalRule")["properties"]["spec"]));

/// How long a category may be. Of a longer one this much is told.
const CATEGORY_LENGTH: usize = 100;

/// The form of a rule of a file: the fields of a spec, its name and its category.
static PLAIN: LazyLock<Form> = LazyLock::new(|| {
    let mut schema = schema_of("PortalClusterRule")["properties"]["spec"].take();
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.insert("name".to_owned(), serde_json::json!({ "type": "string" }));
        let category = serde_json::json!({ "type": "string", "maxLength": CATEGORY_LENGTH });
        properties.insert("category".to_owned(), category);
    }
    Form::of(&schema)
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

/// One step to a value, as long as nobody is told of it: most rules are right.
#[derive(Clone, Copy)]
enum Way<'n> {
    Field(&'n str),
    Index(usize),
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
            let hint =
                if document.as_array().is_some() { ": write each as a document, with `---` between" } else { "" };
            self.problem(&[], format!("a rule is a map, not {}{hint}", kind_of(document)));
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
        let (form, namespace) = match kind {
            RuleKind::Cluster => (&*CLUSTER_RULE, None),
            RuleKind::Namespaced => (&*RULE, Some(text(field("namespace")).unwrap_or_else(|| "default".to_owned()))),
        };
        self.rule = Some(RuleId { namespace, name });
        let known = ["apiVersion", "kind", "metadata", "spec", "status"];
        for (key, value) in document.as_object().into_iter().flat_map(|object| object.iter()) {
            if !known.contains(&key) {
                self.unknown_field(&[], key, value, known.into_iter());
            }
        }
        let Some(spec) = document.get_str("spec") else {
            self.problem(&["spec"], "a rule needs a spec".to_owned());
            return None;
        };
        self.check(spec, form, &mut vec![Way::Field("spec")]);
        let generation = match field("generation").map(Node::view) {
            Some(View::Int(generation)) => generation,
            _ => 0,
        };
        let spec = self.problems.is_empty().then(|| self.spec(&spec.to_json()))??;
        let mut base = self.base.clone();
        base.push(Step::Field("spec".to_owned()));
        let category = category(field("annotations").and_then(|annotations| annotations.get_str(CATEGORY)));
        Some(RuleSource { id: self.rule.clone()?, origin: self.origin.clone(), base, generation, category, spec })
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
        let category = category(document.get_str("category"));
        Some(RuleSource { id: self.rule.clone()?, origin, base, generation: 0, category, spec })
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
    fn check<'n>(&mut self, node: Node<'n>, form: &Form, way: &mut Vec<Way<'n>>) {
        if node.is_null() {
            // The API server drops null where a default or nothing is allowed.
            return;
        }
        let expected = form.expected.as_str();
        if !fits(node, expected) {
            let advice = advice::of_form(&steps(way), node, expected);
            let hint = advice.map(|advice| format!(": {advice}")).unwrap_or_default();
            return self.add(way, format!("{}{hint}", unexpected(node, expected)));
        }
        match node.view() {
            View::Object(object) => {
                for (key, value) in object.iter() {
                    let Some(field) = form.field(key) else {
                        let names = form.properties.iter().map(|(name, _)| name.as_str());
                        self.unknown_field(way, key, value, names);
                        continue;
                    };
                    way.push(Way::Field(key));
                    self.check(value, field, way);
                    way.pop();
                }
                for name in &form.required {
                    if object.get_str(name).is_none_or(Node::is_null) {
                        self.add(way, format!("`{name}` is missing"));
                    }
                }
                self.check_count(object.len(), form.max_properties, "entries", way);
            }
            View::Array(array) => {
                self.check_count(array.len(), form.max_items, "elements", way);
                if (array.len() as u64) < form.min_items {
                    self.add(way, "must not be empty".to_owned());
                }
                for (index, element) in array.iter().enumerate() {
                    way.push(Way::Index(index));
                    self.check(element, form.items.as_deref().unwrap_or(&form::ANYTHING), way);
                    way.pop();
                }
            }
            View::Str(text) => {
                // There are no more characters than bytes.
                if form.max_length.is_some_and(|most| text.len() as u64 > most) {
                    self.check_count(text.chars().count(), form.max_length, "characters", way);
                }
                if text.chars().take(form.min_length).count() < form.min_length {
                    self.add(way, "must not be empty".to_owned());
                }
                if let Some(words) = form.words.as_ref().filter(|words| !words.iter().any(|word| word == text)) {
                    let theirs = advice::of_word(&steps(way), text);
                    let hint = theirs.or_else(|| portal_expr::nearest(text, words.iter().map(String::as_str)));
                    let hint = hint.map(|word| format!(", did you mean `{word}`?")).unwrap_or_default();
                    self.add(way, format!("`{text}` is none of {}{hint}", words.join(", ")));
                }
            }
            View::Int(number) => {
                let (least, most) = (form.minimum, form.maximum);
                if least.is_some_and(|least| (number as f64) < least) || most.is_some_and(|most| number as f64 > most) {
                    let range = (least.unwrap_or(f64::MIN), most.unwrap_or(f64::MAX));
                    self.add(way, format!("{number} is not between {} and {}", range.0, range.1));
                }
            }
            _ => {}
        }
    }

    fn check_count(&mut self, count: usize, most: Option<u64>, what: &str, way: &[Way<'_>]) {
        if let Some(most) = most.filter(|most| count as u64 > *most) {
            self.add(way, format!("may have at most {most} {what}, has {count}"));
        }
    }

    fn unknown_field<'n>(
        &mut self,
        way: &[Way<'_>],
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
        let way = [way, &[Way::Field(written)]].concat();
        self.add(&way, format!("unknown field `{key}`{}", hint.unwrap_or_default()));
    }

    fn problem(&mut self, path: &[&str], message: String) {
        let way: Vec<Way<'_>> = path.iter().map(|name| Way::Field(name)).collect();
        self.add(&way, message);
    }

    fn add(&mut self, way: &[Way<'_>], message: String) {
        self.problems.push(Diagnostic {
            rule: self.rule.clone(),
            origin: self.origin.clone(),
            level: Level::Error,
            field: self.base.iter().cloned().chain(steps(way)).collect(),
            message,
            excerpt: None,
            awaits_kind: false,
        });
    }
}

fn steps(way: &[Way<'_>]) -> Vec<Step> {
    let step = |step: &Way<'_>| match step {
        Way::Field(name) => Step::Field((*name).to_owned()),
        Way::Index(index) => Step::Index(*index),
    };
    way.iter().map(step).collect()
}

/// What sort of rule it is, if it says so.
pub fn category(text: Option<Node<'_>>) -> Option<Arc<str>> {
    let text = text.and_then(Node::as_str)?.trim();
    let end = text.char_indices().nth(CATEGORY_LENGTH).map_or(text.len(), |(end, _)| end);
    Some(text[..end].trim_end()).filter(|text| !text.is_empty()).map(Arc::from)
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
    let version = portal_crds::definition(kind).and_then(|definition| definition.spec.versions.into_iter().next());
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

    use crate::{
        manifest::Manifest,
        rule::{
            file,
            source::{Origin, is_version_of},
        },
        testing::rules,
    };

    #[test]
    fn a_rule_has_the_category_that_it_says() {
        let sources = |text: &str| {
            let file = file::read(&Manifest::new("rules.yaml", text.as_bytes()));
            assert_eq!(file.problems.iter().map(ToString::to_string).collect::<Vec<_>>(), Vec::<String>::new());
            file.sources
        };
        let object = |annotations: &str| {
            let text = format!(
                "{{apiVersion: portal.io/v1alpha1, kind: PortalClusterRule, metadata: {{name: a, annotations: {{{annotations}}}}}, \
                 spec: {{match: {{gvk: [{{kind: Pod}}]}}, rule: spec.hostPID}}}}"
            );
            sources(&text).swap_remove(0)
        };
        assert_eq!(object("portal.io/category: ' Pod Security '").category.as_deref(), Some("Pod Security"));
        assert_eq!(object("portal.io/category: ' ', a: b").category, None);
        let long = "ä".repeat(200);
        assert_eq!(object(&format!("portal.io/category: {long}")).category.as_deref(), Some(&long[..200]));
        let plain = |category: &str| {
            sources(&format!("name: a\n{category}match: {{gvk: [{{kind: Pod}}]}}\nrule: spec.hostPID\n")).swap_remove(0)
        };
        assert_eq!(plain("category: Network\n").category.as_deref(), Some("Network"));
        assert_eq!(plain("").category, None);
        // Whoever tells of a rule must learn of another category.
        assert_ne!(plain("category: Network\n").version(), plain("").version());
        // And whoever knows of its object alone knows its version nevertheless.
        for annotations in ["portal.io/category: Network/Ports", "a: b"] {
            let mut source = object(annotations);
            (source.origin, source.generation) = (Origin::Cluster { uid: "u".to_owned() }, 12);
            let version = source.version();
            let known = [("u", 12), ("u", 1), ("u", 2), ("", 12), ("u/12", 12)];
            assert_eq!(
                known.map(|(uid, generation)| is_version_of(&version, uid, generation)),
                [true, false, false, false, false]
            );
        }
    }

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
