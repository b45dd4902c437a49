//! What the reference page says about the functions of the language.

use crate::builtins::{Group, METHODS, OURS, builtins};

/// A function, or a method of a time or a duration, for people.
#[derive(Clone, Debug)]
pub struct FunctionReference {
    /// The heading that it belongs under.
    pub group: &'static str,
    /// How it is called.
    pub signature: String,
    /// What it does, in one line.
    pub about: &'static str,
    /// An expression that shows it, and what that gives.
    pub example: Option<(&'static str, &'static str)>,
}

/// The heading of the functions that rules have beside those of expr-lang. A host has its own under it too.
pub const RULES_ONLY: &str = "Kubernetes, in rules only";

/// Every function and method, in the order of the reference page.
pub fn functions() -> Vec<FunctionReference> {
    let functions = builtins().chain(OURS).map(|builtin| FunctionReference {
        group: heading(builtin.group),
        signature: builtin.signature.to_owned(),
        about: builtin.about,
        example: Some(builtin.example),
    });
    let methods = METHODS.iter().map(|method| {
        let parameters: Vec<String> = method.parameters.iter().map(ToString::to_string).collect();
        FunctionReference {
            group: "Methods",
            signature: format!("{}.{}({})", method.base, method.name, parameters.join(", ")),
            about: method.about,
            example: None,
        }
    });
    functions.chain(methods).collect()
}

fn heading(group: Group) -> &'static str {
    match group {
        Group::Predicate => "Predicates",
        Group::Text => "Strings",
        Group::Number => "Numbers",
        Group::List => "Arrays",
        Group::Map => "Maps",
        Group::Conversion => "Conversion",
        Group::Time => "Time",
        Group::Kubernetes => RULES_ONLY,
    }
}
