//! The form that people are shown: what it says is read back as the same tree. Brackets stand where the meaning needs them, and where a
//! reader would stumble without them.

use super::{Printer, literals::quote_bytes};
use crate::{
    ast::{Binary, Id, Kind, Tree, Unary},
    parse::{is_reserved, is_word},
};

/// How tightly what is no operation holds together.
const WHOLE: u16 = u16::MAX;

/// Whether something needs brackets beside an operator that binds as tightly as any.
pub(super) fn is_operation(tree: &Tree<'_>, id: Id) -> bool {
    binding(tree, id) < WHOLE
}

impl<'t> Printer<'t, '_> {
    /// Prints a leaf, or replaces a node by the steps that print it.
    pub(super) fn written_node(&mut self, id: Id) {
        let tree = self.tree;
        let mark = self.steps.len();
        match tree.kind(id) {
            Kind::Float(value) => self.output.push_str(&format!("{value:?}")),
            Kind::Bytes(bytes) => quote_bytes(bytes, &mut self.output),
            // A brace would begin a block.
            Kind::Predicate(inner) => {
                self.wrapped(
                    *inner,
                    is_sequence(tree, *inner) || matches!(tree.kind(first(tree, *inner)), Kind::Map(_)),
                );
            }
            Kind::Unary(operator, inner) => match negatable(tree, *operator, *inner) {
                Some((relation, left, right)) => {
                    self.operand(left, needs_brackets_left(tree, relation, left));
                    self.text(" not ");
                    self.text(relation.text());
                    self.text(" ");
                    self.operand(right, needs_brackets_right(tree, relation, right));
                }
                None => {
                    self.text(operator.text());
                    if operator.text() == "not" {
                        self.text(" ");
                    }
                    let binds_less = binding(tree, *inner) < operator.precedence();
                    self.operand(*inner, binds_less || is_coalesce(tree, *inner));
                }
            },
            Kind::Binary(operator, left, right) => match ordered(tree, id) {
                Some((first, rest)) => {
                    self.operand(first, needs_brackets_left(tree, rest[0].0, first));
                    for (operator, operand) in rest {
                        self.operator(operator);
                        self.operand(operand, needs_brackets_right(tree, operator, operand));
                    }
                }
                None => {
                    self.operand(*left, needs_brackets_left(tree, *operator, *left));
                    self.operator(*operator);
                    self.operand(*right, needs_brackets_right(tree, *operator, *right));
                }
            },
            Kind::Member { base, property, optional, method } => self.field(*base, *property, *optional, *method),
            Kind::Slice { base, from, to } => {
                self.base(*base);
                self.text("[");
                from.iter().for_each(|from| self.operand(*from, binding(tree, *from) <= CHOICE));
                self.text(":");
                to.iter().for_each(|to| self.operand(*to, binding(tree, *to) <= CHOICE));
                self.text("]");
            }
            Kind::Call { callee, arguments } => {
                // `a | true()` calls a function of that name, and `true(a)` does not.
                if matches!(tree.kind(*callee), Kind::Identifier("true" | "false" | "nil")) {
                    self.text("::");
                }
                self.then(*callee);
                self.text("(");
                self.list(arguments, ", ", |printer, argument| {
                    if let Some((name, _)) = argument.name {
                        printer.text(name);
                        printer.text("=");
                    }
                    printer.expression(argument.value);
                });
                self.text(")");
            }
            Kind::Builtin { name, arguments } => {
                self.text(name);
                self.text("(");
                self.list(arguments, ", ", |printer, argument| printer.expression(*argument));
                self.text(")");
            }
            Kind::Conditional { ternary: true, condition, yes, no } => {
                self.operand(*condition, binding(tree, *condition) <= CHOICE);
                if condition == yes {
                    self.text(" ?: ");
                } else {
                    self.text(" ? ");
                    self.operand(*yes, binding(tree, *yes) <= CHOICE);
                    self.text(" : ");
                }
                let is_choice = matches!(tree.kind(*no), Kind::Conditional { ternary: true, .. });
                self.operand(*no, binding(tree, *no) <= CHOICE && !is_choice);
            }
            Kind::Conditional { ternary: false, condition, yes, no } => {
                self.text("if ");
                self.operand(*condition, binding(tree, *condition) <= CHOICE);
                self.text(" { ");
                self.then(*yes);
                self.text(" } else ");
                let is_if = matches!(tree.kind(*no), Kind::Conditional { ternary: false, .. });
                self.text(if is_if { "" } else { "{ " });
                self.then(*no);
                self.text(if is_if { "" } else { " }" });
            }
            Kind::Let { name, value, body } => {
                self.text("let ");
                self.text(name);
                self.text(" = ");
                self.operand(*value, binding(tree, *value) == STATEMENT);
                self.text("; ");
                self.then(*body);
            }
            // What a `let` declares reaches to the end of all of them.
            Kind::Sequence(elements) => self.list(elements, "; ", |printer, element| {
                let is_last = elements.last() == Some(element);
                let is_let = matches!(tree.kind(*element), Kind::Let { .. });
                printer.operand(*element, binding(tree, *element) == STATEMENT && !(is_let && is_last));
            }),
            Kind::Array(elements) => {
                self.text("[");
                self.list(elements, ", ", |printer, element| printer.expression(*element));
                self.text("]");
            }
            Kind::Map(pairs) => {
                self.text("{");
                self.list(pairs, ", ", |printer, (key, value)| {
                    match tree.kind(*key) {
                        Kind::Text(name) if is_property(name) && !is_reserved(name) => printer.text(name),
                        Kind::Text(_) => printer.then(*key),
                        _ => printer.operand(*key, true),
                    }
                    printer.text(": ");
                    printer.expression(*value);
                });
                self.text("}");
            }
            // The rest is the same for Go.
            _ => return self.canonical_node(id),
        }
        self.steps[mark..].reverse();
    }

    /// `base.name`, `base[property]`. A chain that skips what follows ends at a bracket.
    fn field(&mut self, base: Id, property: Id, optional: bool, is_method: bool) {
        let tree = self.tree;
        let name = match tree.kind(property) {
            Kind::Text(name) if is_method || is_property(name) => Some(name),
            _ => None,
        };
        let name = name.filter(|_| !matches!(tree.kind(base), Kind::Chain(_)));
        let is_element = matches!(tree.kind(base), Kind::Pointer(""));
        if optional || name.is_none() || !is_element {
            self.base(base);
        }
        if optional {
            self.text("?");
        }
        match name {
            Some(name) => {
                self.text(".");
                self.text(name);
            }
            None => {
                self.text(if optional { ".[" } else { "[" });
                self.expression(property);
                self.text("]");
            }
        }
    }

    /// What a field, an element or a part is taken of.
    fn base(&mut self, id: Id) {
        let tree = self.tree;
        let is_number_or_constant =
            matches!(tree.kind(id), Kind::Nil | Kind::Bool(_) | Kind::Integer(_) | Kind::Float(_));
        self.operand(id, is_number_or_constant || is_operation(tree, id));
    }

    /// What stands where several expressions cannot.
    fn expression(&mut self, id: Id) {
        self.wrapped(id, is_sequence(self.tree, id));
    }

    fn operand(&mut self, id: Id, needs_brackets: bool) {
        self.wrapped(id, needs_brackets);
    }

    fn operator(&mut self, operator: Binary) {
        if operator == Binary::Range {
            return self.text("..");
        }
        self.text(" ");
        self.text(operator.text());
        self.text(" ");
    }
}

/// `let` and several expressions reach to the end of what is around them.
const STATEMENT: u16 = 0;

/// `? :` and `if` take what is left of it.
const CHOICE: u16 = 1;

/// How tightly something holds together as it is written, on the scale of [`Binary::precedence`].
fn binding(tree: &Tree<'_>, id: Id) -> u16 {
    match tree.kind(id) {
        Kind::Let { .. } | Kind::Sequence(_) => STATEMENT,
        Kind::Conditional { .. } => CHOICE,
        Kind::Unary(operator, inner) => match negatable(tree, *operator, *inner) {
            Some((relation, ..)) => relation.precedence(),
            None => operator.precedence(),
        },
        Kind::Binary(operator, ..) => {
            ordered(tree, id).map_or(operator.precedence(), |(_, rest)| rest[0].0.precedence())
        }
        _ => WHOLE,
    }
}

fn needs_brackets_left(tree: &Tree<'_>, operator: Binary, id: Id) -> bool {
    let (binding, precedence) = (binding(tree, id), operator.precedence());
    let continues = operator.is_ordering() && is_ordering(tree, id);
    binding < precedence
        || binding == precedence && (operator.is_right_associative() || continues)
        || would_stumble(tree, operator, id)
}

fn needs_brackets_right(tree: &Tree<'_>, operator: Binary, id: Id) -> bool {
    let (binding, precedence) = (binding(tree, id), operator.precedence());
    binding < precedence
        || binding == precedence && !operator.is_right_associative()
        || would_stumble(tree, operator, id)
}

/// `a && b || c` and `a + b ?? c`: nobody knows by heart what comes first.
fn would_stumble(tree: &Tree<'_>, operator: Binary, id: Id) -> bool {
    match tree.kind(id) {
        Kind::Binary(below, ..) if ordered(tree, id).is_none() => {
            below.is_boolean() && *below != operator || *below == Binary::Coalesce && operator != Binary::Coalesce
        }
        _ => false,
    }
}

fn is_coalesce(tree: &Tree<'_>, id: Id) -> bool {
    matches!(tree.kind(id), Kind::Binary(Binary::Coalesce, ..))
}

fn is_sequence(tree: &Tree<'_>, id: Id) -> bool {
    matches!(tree.kind(id), Kind::Sequence(_))
}

/// Whether another `<` after it would go on from its last operand.
fn is_ordering(tree: &Tree<'_>, id: Id) -> bool {
    matches!(tree.kind(id), Kind::Binary(operator, ..) if operator.is_ordering()) || ordered(tree, id).is_some()
}

/// Whether a text can stand after a dot.
fn is_property(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_word) && !text.starts_with(|first: char| first.is_ascii_digit())
}

/// What is written as `a not in b`.
fn negatable(tree: &Tree<'_>, operator: Unary, inner: Id) -> Option<(Binary, Id, Id)> {
    match tree.kind(inner) {
        Kind::Binary(
            relation @ (Binary::In | Binary::Matches | Binary::Contains | Binary::StartsWith | Binary::EndsWith),
            left,
            right,
        ) if operator == (Unary::Not { word: true }) => Some((*relation, *left, *right)),
        _ => None,
    }
}

/// The operands of `a < b < c`, which is `a < b && b < c` with one `b`.
fn ordered(tree: &Tree<'_>, id: Id) -> Option<(Id, Vec<(Binary, Id)>)> {
    let mut rest = Vec::new();
    let mut node = id;
    loop {
        match tree.kind(node) {
            Kind::Binary(Binary::And { word: false }, left, right) => {
                let Kind::Binary(operator, middle, last) = tree.kind(*right) else { return None };
                let Kind::Binary(before, from, shared) = tree.kind(last_comparison(tree, *left)) else { return None };
                if !(operator.is_ordering() && before.is_ordering() && shared == middle) {
                    return None;
                }
                rest.push((*operator, *last));
                if last_comparison(tree, *left) == *left {
                    rest.push((*before, *shared));
                    rest.reverse();
                    return Some((*from, rest));
                }
                node = *left;
            }
            _ => return None,
        }
    }
}

/// The comparison before another in a row of them.
fn last_comparison(tree: &Tree<'_>, id: Id) -> Id {
    match tree.kind(id) {
        Kind::Binary(Binary::And { .. }, _, right) => *right,
        _ => id,
    }
}

/// What an expression begins with as it is written, brackets apart.
fn first(tree: &Tree<'_>, mut id: Id) -> Id {
    loop {
        id = match tree.kind(id) {
            Kind::Binary(_, left, _) => *left,
            Kind::Unary(operator, inner) => match negatable(tree, *operator, *inner) {
                Some((_, left, _)) => left,
                None => return id,
            },
            Kind::Conditional { ternary: true, condition, .. } => *condition,
            Kind::Member { base, .. } | Kind::Slice { base, .. } => *base,
            Kind::Call { callee, .. } => *callee,
            Kind::Chain(inner) => *inner,
            _ => return id,
        };
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::{
        parse::parse,
        print::{canonical, written},
    };

    /// Compares how an expression is written, and that it is read back.
    #[track_caller]
    fn check(source: &str, expected: Expect) {
        let tree = parse(source).unwrap();
        let text = written(&tree, tree.root);
        expected.assert_eq(&text);
        assert!(parse(&text).unwrap().is_same(&tree), "{source} is read back as {}", canonical(&parse(&text).unwrap()));
    }

    #[test]
    fn brackets_are_kept_where_the_meaning_needs_them() {
        check("(-a).b", expect!["(-a).b"]);
        check("((a + b)) * c", expect!["(a + b) * c"]);
        check("a - (b - c)", expect!["a - (b - c)"]);
        check("(a ** b) ** -c ** d", expect!["(a ** b) ** (-c ** d)"]);
        check("(-a) ** b", expect!["(-a) ** b"]);
        check("a ** (not b) * c", expect!["a ** (not b) * c"]);
        check("-(not a) * b", expect!["-(not a) * b"]);
        check("(a < b) < c", expect!["(a < b) < c"]);
        check("(a ? b : c).d", expect!["(a ? b : c).d"]);
        check("(a ? b : c) ? d : e", expect!["(a ? b : c) ? d : e"]);
        check("(if a { 1 } else { 2 }) + 1", expect!["(if a { 1 } else { 2 }) + 1"]);
        check("(1; 2) + 3", expect!["(1; 2) + 3"]);
        check("(let x = 1; x) + 2", expect!["(let x = 1; x) + 2"]);
        check("let x = (let y = 1; y); x", expect!["let x = (let y = 1; y); x"]);
        check("(1).a", expect!["(1).a"]);
        check("map(a, {{b: #}})", expect!["map(a, ({b: #}))"]);
        check("any(a, {{b: 1}.b == #})", expect!["any(a, ({b: 1}.b == #))"]);
        check("any(a, {1; #})", expect!["any(a, (1; #))"]);
    }

    #[test]
    fn brackets_are_kept_where_a_reader_would_stumble() {
        check("a && b || c", expect!["(a && b) || c"]);
        check("a + b ?? c", expect!["a + (b ?? c)"]);
        check("-a ?? b", expect!["-(a ?? b)"]);
        check("a ?? b ?? c", expect!["a ?? b ?? c"]);
        check("a[b ? c : d:e]", expect!["a[(b ? c : d):e]"]);
        check("a ? b ? c : d : e ? f : g", expect!["a ? (b ? c : d) : e ? f : g"]);
    }

    #[test]
    fn what_was_written_once_is_written_once() {
        check("a < b <= c == d", expect!["a < b <= c == d"]);
        check("a < b && b < c", expect!["a < b && b < c"]);
        check("(a < b < c) && d", expect!["a < b < c && d"]);
        check("a ?: b ?: c", expect!["a ?: b ?: c"]);
        check("not (a in b)", expect!["a not in b"]);
        check("not (a not matches b)", expect!["not (a not matches b)"]);
        check("!(a in b)", expect!["!(a in b)"]);
    }

    #[test]
    fn a_chain_ends_where_it_did() {
        check("a?.b.c", expect!["a?.b.c"]);
        check(r#"a?.b["c"]"#, expect![[r#"a?.b["c"]"#]]);
        check(r#"a?.b?.["c"].d[0]"#, expect![[r#"a?.b?.["c"].d[0]"#]]);
        check(r#"map(a, #["b"] + #acc.c)"#, expect!["map(a, .b + #acc.c)"]);
        check(r#"a["b"]["in"]["b c"]"#, expect![[r#"a.b.in["b c"]"#]]);
        check("a.٣()", expect!["a.٣()"]);
        check("a | true()", expect!["::true(a)"]);
    }

    #[test]
    fn literals_keep_their_kind() {
        check("[1.0, 1, 1e21, .5, 0x10]", expect!["[1.0, 1, 1e21, 0.5, 16]"]);
        check(r#"b"a\xff\xc2\xad\né\"""#, expect![[r#"b"a\xff\xc2\xad\né\"""#]]);
        check(r#"{in: 1}"#.replace("in", "'in'").as_str(), expect![[r#"{"in": 1}"#]]);
        check("{0x1F: 1, true: 2, (a): 3}", expect![[r#"{"0x1F": 1, true: 2, (a): 3}"#]]);
        check("1.0..2", expect!["1.0..2"]);
    }

    #[test]
    fn a_chain_of_any_length_is_written() {
        for link in [" + a", " == a", " < a", ".b", "?.b", "[0]", " || a", " ?? a"] {
            let source = "a".to_owned() + &link.repeat(1999);
            let tree = parse(&source).unwrap();
            assert_eq!(written(&tree, tree.root), source);
        }
    }
}
