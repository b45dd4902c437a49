//! A tree as tests show it: with what the canonical form leaves out.

use crate::ast::{Id, Kind, Tree};
use crate::print::canonical_node;

/// The tree in prefix form, or the error on one line.
pub(super) fn outline(source: &str) -> String {
    match super::parse(source) {
        Ok(tree) => node(&tree, tree.root),
        Err(error) => format!("{}:{} {}", error.line, error.column, error.message),
    }
}

fn node(tree: &Tree<'_>, id: Id) -> String {
    let name = match tree.kind(id) {
        Kind::Unary(operator, _) => operator.text(),
        Kind::Binary(operator, ..) => operator.text(),
        Kind::Chain(_) => "chain",
        Kind::Member { optional, method, .. } => match (optional, method) {
            (false, false) => "member",
            (true, false) => "member?",
            (false, true) => "method",
            (true, true) => "method?",
        },
        Kind::Slice { .. } => "slice",
        Kind::Call { .. } => "call",
        Kind::Builtin { name, .. } => name,
        Kind::Let { name, .. } => &format!("let {name}"),
        Kind::Predicate(_) => "predicate",
        Kind::Conditional { ternary, .. } => ["if", "?:"][usize::from(*ternary)],
        Kind::Sequence(_) => ";",
        Kind::Array(_) => "[]",
        Kind::Map(_) => "{}",
        _ => return canonical_node(tree, id),
    };
    let mut text = format!("({name}");
    tree.kind(id).each_child(|child| text += &format!(" {}", node(tree, child)));
    text + ")"
}
