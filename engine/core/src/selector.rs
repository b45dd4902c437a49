//! Which labels are meant: Kubernetes' label selectors, in one form that can be compared.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use portal_document::Node;
use portal_expr::Value;

use crate::rule::message::show;

/// Requirements on labels, all of which must hold. Without any, all labels fit. Two selectors with the same
/// requirements are equal.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Selector {
    requirements: BTreeSet<Requirement>,
}

/// What one label must be.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// What is asked of it.
    pub test: Test,
}

/// What is asked of a label.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Test {
    /// It has one of these values.
    In(BTreeSet<String>),
    /// It has none of these values, or is missing.
    NotIn(BTreeSet<String>),
    /// It is there.
    Exists,
    /// It is missing.
    DoesNotExist,
}

impl Selector {
    /// A selector of these requirements.
    pub fn new(requirements: impl IntoIterator<Item = Requirement>) -> Selector {
        Selector { requirements: requirements.into_iter().collect() }
    }

    /// A selector as Kubernetes writes them. Says what is wrong with one that can never fit.
    pub fn of(selector: &LabelSelector) -> Result<Selector, String> {
        let mut requirements = Vec::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            let test = Test::In(BTreeSet::from([value.clone()]));
            requirements.push(Requirement { key: key.clone(), test });
        }
        for expression in selector.match_expressions.iter().flatten() {
            let values = expression.values.iter().flatten().cloned().collect();
            let test = Test::new(&expression.operator, values)?;
            requirements.push(Requirement { key: expression.key.clone(), test });
        }
        Ok(Selector::new(requirements))
    }

    /// Reads a selector from a rule's argument: a map of labels, or a LabelSelector. Says what is wrong otherwise.
    pub fn from_value(value: Value<'_>) -> Result<Selector, String> {
        let entries = value.entries().ok_or_else(|| format!("a selector is a map of labels, not {}", show(value)))?;
        let is_label_selector = !entries.is_empty()
            && entries.iter().all(|(key, _)| matches!(key, Value::Text("matchLabels" | "matchExpressions")));
        let mut requirements = BTreeSet::new();
        if !is_label_selector {
            labels(&entries, &mut requirements)?;
            return Ok(Selector { requirements });
        }
        for (key, value) in &entries {
            match (key, value) {
                (_, Value::Nil) => {}
                (Value::Text("matchLabels"), value) => {
                    let entries = value.entries().ok_or("matchLabels of a selector is no map")?;
                    labels(&entries, &mut requirements)?;
                }
                (_, value) => {
                    let expressions = value.elements().ok_or("matchExpressions of a selector is no list")?;
                    for expression in expressions {
                        requirements.insert(requirement(expression)?);
                    }
                }
            }
        }
        Ok(Selector { requirements })
    }

    /// Whether labels meet all requirements. None is an object without labels.
    pub fn matches(&self, labels: Option<Node<'_>>) -> bool {
        self.requirements.iter().all(|requirement| {
            let label = labels.and_then(|labels| labels.get_str(&requirement.key)).and_then(Node::as_str);
            requirement.test.holds(label)
        })
    }

    /// Whether labels that are a value of an expression meet all requirements.
    pub(crate) fn matches_value(&self, labels: Value<'_>) -> Result<bool, String> {
        let entries = match labels {
            Value::Nil => Vec::new(),
            labels => labels.entries().ok_or_else(|| format!("labels are a map, not {}", show(labels)))?,
        };
        Ok(self.requirements.iter().all(|requirement| {
            let label = entries.iter().find(|(key, _)| matches!(key, Value::Text(key) if *key == requirement.key));
            let text = label.and_then(|(_, value)| if let Value::Text(text) = value { Some(*text) } else { None });
            requirement.test.holds(text)
        }))
    }

    /// Whether there are labels that fit both.
    pub fn meets(&self, other: &Selector) -> bool {
        let all = || self.requirements.iter().chain(&other.requirements);
        all().all(|Requirement { key, .. }| {
            let tests = || all().filter(|found| found.key == *key).map(|found| &found.test);
            let named = || tests().flat_map(Test::values).map(String::as_str);
            // One that nobody names: it is longer than each of them.
            let other = named().collect::<String>() + "x";
            let candidates = named().map(Some).chain([None, Some(&*other)]);
            candidates.into_iter().any(|label| tests().all(|test| test.holds(label)))
        })
    }

    /// What is asked of labels.
    pub fn requirements(&self) -> impl Iterator<Item = &Requirement> {
        self.requirements.iter()
    }

    /// Whether there are no requirements, so that all labels fit.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

impl Test {
    fn holds(&self, label: Option<&str>) -> bool {
        match self {
            Test::In(values) => label.is_some_and(|label| values.contains(label)),
            Test::NotIn(values) => label.is_none_or(|label| !values.contains(label)),
            Test::Exists => label.is_some(),
            Test::DoesNotExist => label.is_none(),
        }
    }

    fn values(&self) -> impl Iterator<Item = &String> {
        let values = match self {
            Test::In(values) | Test::NotIn(values) => Some(values),
            Test::Exists | Test::DoesNotExist => None,
        };
        values.into_iter().flatten()
    }

    /// The test of an operator of Kubernetes.
    pub fn new(operator: &str, values: BTreeSet<String>) -> Result<Test, String> {
        match (operator, values.is_empty()) {
            ("In", false) => Ok(Test::In(values)),
            ("NotIn", false) => Ok(Test::NotIn(values)),
            ("In" | "NotIn", true) => Err(format!("`{operator}` of a selector needs values")),
            ("Exists", true) => Ok(Test::Exists),
            ("DoesNotExist", true) => Ok(Test::DoesNotExist),
            ("Exists" | "DoesNotExist", false) => Err(format!("`{operator}` of a selector takes no values")),
            _ => Err(format!("a selector has no operator `{operator}`: there are In, NotIn, Exists and DoesNotExist")),
        }
    }
}

fn labels(entries: &[(Value<'_>, Value<'_>)], requirements: &mut BTreeSet<Requirement>) -> Result<(), String> {
    for (key, value) in entries {
        let (Value::Text(key), Value::Text(value)) = (key, value) else {
            return Err(format!("a selector compares labels with text, not `{}` with {}", show(*key), show(*value)));
        };
        let test = Test::In(BTreeSet::from([(*value).to_owned()]));
        requirements.insert(Requirement { key: (*key).to_owned(), test });
    }
    Ok(())
}

fn requirement(expression: Value<'_>) -> Result<Requirement, String> {
    let entries = expression.entries().ok_or("an expression of a selector is no map")?;
    let get = |name: &str| {
        entries.iter().find(|(key, _)| matches!(key, Value::Text(key) if *key == name)).map(|(_, value)| *value)
    };
    let (Some(Value::Text(key)), Some(Value::Text(operator))) = (get("key"), get("operator")) else {
        return Err("an expression of a selector needs `key` and `operator`".to_owned());
    };
    let mut values = BTreeSet::new();
    for value in get("values").and_then(Value::elements).into_iter().flatten() {
        let Value::Text(value) = value else { return Err("the values of a selector are text".to_owned()) };
        values.insert(value.to_owned());
    }
    Ok(Requirement { key: key.to_owned(), test: Test::new(operator, values)? })
}

#[cfg(test)]
mod tests {
    use portal_document::{Document, Options};

    use super::*;

    #[track_caller]
    fn check(selector: &str, labels: &str, expected: Result<bool, &str>) {
        let parse = |json: &str| Document::parse(json.as_bytes(), &Options::default()).unwrap();
        let (selector, labels) = (parse(selector), parse(labels));
        let found = Selector::from_value(Value::from_node(selector.root()))
            .map(|selector| selector.matches(Some(labels.root())));
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn labels_are_selected() {
        check(r#"{"app":"api"}"#, r#"{"app":"api","tier":"web"}"#, Ok(true));
        check(r#"{"app":"api"}"#, r#"{"app":"web"}"#, Ok(false));
        check(r#"{}"#, r#"{"app":"web"}"#, Ok(true));
        check(r#"{"matchLabels":{"app":"api"}}"#, r#"{"app":"api"}"#, Ok(true));
        check(r#"{"matchLabels":{"app":"api"}}"#, r#"{}"#, Ok(false));
    }

    #[test]
    fn two_selectors_meet_where_some_labels_fit_both() {
        let values = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let mut tests = vec![Test::Exists, Test::DoesNotExist];
        for names in [&["a"][..], &["b"], &["a", "b"]] {
            tests.extend([Test::In(values(names)), Test::NotIn(values(names))]);
        }
        // Every test of one label, and every pair of them; `c` stands for all that nobody names.
        let selector = |picked: &[&Test]| {
            let one = |test: &&Test| Requirement { key: "app".to_owned(), test: (*test).clone() };
            Selector::new(picked.iter().map(one))
        };
        let labels = [None, Some("a"), Some("b"), Some("c")];
        let mut counts = [0, 0];
        for one in &tests {
            for other in &tests {
                for third in &tests {
                    let expected = labels.iter().any(|label| [one, other, third].iter().all(|test| test.holds(*label)));
                    assert_eq!(
                        selector(&[one, other]).meets(&selector(&[third])),
                        expected,
                        "{one:?} {other:?} {third:?}"
                    );
                    counts[usize::from(expected)] += 1;
                }
            }
        }
        assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
        let elsewhere = Selector::new([Requirement { key: "tier".to_owned(), test: Test::Exists }]);
        assert!(selector(&[&Test::DoesNotExist]).meets(&elsewhere) && Selector::default().meets(&elsewhere));
    }

    #[test]
    fn expressions_are_those_of_kubernetes() {
        let expression = |operator: &str, values: &str| {
            format!(r#"{{"matchExpressions":[{{"key":"app","operator":"{operator}"{values}}}]}}"#)
        };
        let values = r#","values":["api","web"]"#;
        check(&expression("In", values), r#"{"app":"web"}"#, Ok(true));
        check(&expression("In", values), r#"{}"#, Ok(false));
        check(&expression("NotIn", values), r#"{"app":"db"}"#, Ok(true));
        check(&expression("NotIn", values), r#"{}"#, Ok(true));
        check(&expression("NotIn", values), r#"{"app":"web"}"#, Ok(false));
        check(&expression("Exists", ""), r#"{"app":""}"#, Ok(true));
        check(&expression("DoesNotExist", ""), r#"{"app":""}"#, Ok(false));
        check(&expression("DoesNotExist", ""), r#"{}"#, Ok(true));
    }

    #[test]
    fn a_bad_selector_says_what_is_wrong() {
        check(r#""app=api""#, "{}", Err("a selector is a map of labels, not app=api"));
        check(r#"{"app":1}"#, "{}", Err("a selector compares labels with text, not `app` with 1"));
        let expression = r#"{"matchExpressions":[{"key":"app","operator":"In"}]}"#;
        check(expression, "{}", Err("`In` of a selector needs values"));
    }

    #[test]
    fn selectors_with_the_same_requirements_are_equal() {
        let parse = |json: &str| {
            let document = Document::parse(json.as_bytes(), &Options::default()).unwrap();
            Selector::from_value(Value::from_node(document.root())).unwrap()
        };
        let expression = r#"{"matchExpressions":[{"key":"b","operator":"In","values":["2"]}],"matchLabels":{"a":"1"}}"#;
        assert_eq!(parse(r#"{"b":"2","a":"1"}"#), parse(expression));
    }
}
