//! Expressions that can be taken apart: text with other expressions in it.

use std::fmt;

/// An expression.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    parts: Vec<Part>,
    /// Whether it needs parentheses beside an operator.
    loose: bool,
}

#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Tree(Tree),
}

/// What shrinking puts in the place of an expression, if none of its own parts will do.
const PLAIN: [&str; 8] = ["nil", "true", "0", "1", "1.5", "\"a\"", "[]", "{}"];

impl Tree {
    /// An expression that has no parts.
    pub(super) fn literal(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::Text(text.into())], loose: false }
    }

    /// An expression with others in the places of `~`, which the language has no use for.
    pub(super) fn new(form: &str, children: impl IntoIterator<Item = Tree>) -> Self {
        let mut parts = Vec::new();
        let mut children = children.into_iter();
        for (index, text) in form.split('~').enumerate() {
            if index > 0 {
                parts.push(Part::Tree(children.next().expect("a form has a child for each place")));
            }
            parts.push(Part::Text(text.to_owned()));
        }
        assert!(children.next().is_none(), "the form `{form}` has a place for each child");
        Self { parts, loose: false }
    }

    /// The same, of an expression that needs parentheses beside an operator.
    pub(super) fn loose(form: &str, children: impl IntoIterator<Item = Tree>) -> Self {
        Self { loose: true, ..Self::new(form, children) }
    }

    /// Within parentheses if it needs them.
    pub(super) fn tight(self) -> Self {
        if self.loose { Self::new("(~)", [self]) } else { self }
    }

    /// Every expression that is this one with one part of it simpler, the simplest first.
    pub(super) fn simpler(&self) -> Vec<Tree> {
        let mut found = Vec::new();
        let children = self.parts.iter().filter_map(|part| match part {
            Part::Tree(tree) => Some(tree),
            Part::Text(_) => None,
        });
        found.extend(children.cloned());
        let text = self.to_string();
        if !PLAIN.contains(&&*text) {
            found.extend(PLAIN.iter().filter(|plain| plain.len() <= text.len()).map(|plain| Self::literal(*plain)));
        }
        for (index, part) in self.parts.iter().enumerate() {
            let Part::Tree(tree) = part else { continue };
            found.extend(tree.simpler().into_iter().map(|simpler| {
                let mut whole = self.clone();
                whole.parts[index] = Part::Tree(simpler);
                whole
            }));
        }
        found
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Text(text) => formatter.write_str(text),
            Part::Tree(tree) => write!(formatter, "{tree}"),
        })
    }
}
