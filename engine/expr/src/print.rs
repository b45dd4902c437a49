//! Tree to text. What is shown to people, and what is put together from parts of an expression, is written so that it is read back
//! as the same tree; the canonical form is for comparing with Go.
//!
//! It works off a list of steps instead of recursing, so that a chain of any length can be printed.

mod canonical;
mod literals;
mod written;

use crate::ast::{Id, Tree};

/// Prints a whole expression as Go does.
pub(crate) fn canonical(tree: &Tree<'_>) -> String {
    canonical_node(tree, tree.root)
}

/// Prints a part of an expression as Go does.
pub(crate) fn canonical_node(tree: &Tree<'_>, id: Id) -> String {
    print(tree, id, Printer::canonical_node)
}

/// Prints a part of an expression as it could be written.
pub(crate) fn written(tree: &Tree<'_>, id: Id) -> String {
    print(tree, id, Printer::written_node)
}

/// Prints a part of an expression as it could be written beside an operator.
pub(crate) fn written_operand(tree: &Tree<'_>, id: Id) -> String {
    let text = written(tree, id);
    if written::is_operation(tree, id) { format!("({text})") } else { text }
}

fn print<'t, 's>(tree: &'t Tree<'s>, id: Id, node: fn(&mut Printer<'t, 's>, Id)) -> String {
    let mut printer = Printer { tree, output: String::new(), steps: vec![Step::Node(id)] };
    while let Some(step) = printer.steps.pop() {
        match step {
            Step::Text(text) => printer.output.push_str(text),
            Step::Node(id) => node(&mut printer, id),
        }
    }
    printer.output
}

/// What is left to print.
enum Step<'t> {
    Node(Id),
    Text(&'t str),
}

struct Printer<'t, 's> {
    tree: &'t Tree<'s>,
    output: String,
    /// The next step is the last.
    steps: Vec<Step<'t>>,
}

impl<'t> Printer<'t, '_> {
    fn list<T>(&mut self, elements: &'t [T], separator: &'static str, mut print: impl FnMut(&mut Self, &'t T)) {
        for (index, element) in elements.iter().enumerate() {
            if index > 0 {
                self.text(separator);
            }
            print(self, element);
        }
    }

    fn wrapped(&mut self, id: Id, wrap: bool) {
        if wrap {
            self.text("(");
        }
        self.then(id);
        if wrap {
            self.text(")");
        }
    }

    fn text(&mut self, text: &'t str) {
        self.steps.push(Step::Text(text));
    }

    fn then(&mut self, id: Id) {
        self.steps.push(Step::Node(id));
    }
}
