//! The canonical form: byte for byte what Go's expr-lang prints. It is how two parsers are compared. Not all of it can be read back:
//! Go prints `(-a).b` as `-a.b`.

use std::fmt::Write as _;

use super::{
    Printer,
    literals::{float, is_name, quote},
};
use crate::ast::{Binary, Id, Kind};

impl<'t> Printer<'t, '_> {
    /// Prints a leaf, or replaces a node by the steps that print it.
    pub(super) fn canonical_node(&mut self, id: Id) {
        let tree = self.tree;
        let mark = self.steps.len();
        match tree.kind(id) {
            Kind::Nil => self.output.push_str("nil"),
            Kind::Bool(value) => self.output.push_str(if *value { "true" } else { "false" }),
            Kind::Integer(value) => write!(self.output, "{value}").expect("writing to a string cannot fail"),
            Kind::Float(value) => self.output.push_str(&float(*value)),
            Kind::Text(text) => quote(text.as_bytes(), &mut self.output),
            Kind::Bytes(bytes) => {
                self.output.push('b');
                quote(bytes, &mut self.output);
            }
            Kind::Identifier(name) => self.output.push_str(name),
            Kind::Pointer(name) => {
                self.output.push('#');
                self.output.push_str(name);
            }
            Kind::Chain(inner) | Kind::Predicate(inner) => self.then(*inner),
            Kind::Unary(operator, inner) => {
                self.text(operator.text());
                if operator.text() == "not" {
                    self.text(" ");
                }
                let wrap = match tree.kind(*inner) {
                    Kind::Binary(below, ..) => below.precedence() < operator.precedence(),
                    Kind::Conditional { .. } => true,
                    _ => false,
                };
                self.wrapped(*inner, wrap);
            }
            Kind::Binary(operator, left, right) => self.binary(*operator, *left, *right),
            Kind::Member { base, property, optional, .. } => self.member(*base, *property, *optional),
            Kind::Slice { base, from, to } => {
                self.then(*base);
                self.text("[");
                from.iter().for_each(|from| self.then(*from));
                self.text(":");
                to.iter().for_each(|to| self.then(*to));
                self.text("]");
            }
            Kind::Call { callee, arguments } => {
                self.then(*callee);
                self.text("(");
                self.list(arguments, ", ", |printer, argument| {
                    if let Some((name, _)) = argument.name {
                        printer.text(name);
                        printer.text("=");
                    }
                    printer.then(argument.value);
                });
                self.text(")");
            }
            Kind::Builtin { name, arguments } => {
                self.text(name);
                self.text("(");
                self.list(arguments, ", ", |printer, argument| printer.then(*argument));
                self.text(")");
            }
            Kind::Conditional { ternary, condition, yes, no } => self.conditional(*ternary, *condition, *yes, *no),
            Kind::Let { name, value, body } => {
                self.text("let ");
                self.text(name);
                self.text(" = ");
                self.then(*value);
                self.text("; ");
                self.then(*body);
            }
            Kind::Sequence(elements) => self.list(elements, "; ", |printer, element| printer.then(*element)),
            Kind::Array(elements) => {
                self.text("[");
                self.list(elements, ", ", |printer, element| printer.then(*element));
                self.text("]");
            }
            Kind::Map(pairs) => {
                self.text("{");
                self.list(pairs, ", ", |printer, (key, value)| {
                    match tree.kind(*key) {
                        Kind::Text(name) if is_name(name) => printer.text(name),
                        Kind::Text(_) => printer.then(*key),
                        _ => printer.wrapped(*key, true),
                    }
                    printer.text(": ");
                    printer.then(*value);
                });
                self.text("}");
            }
        }
        self.steps[mark..].reverse();
    }

    fn binary(&mut self, operator: Binary, left: Id, right: Id) {
        if operator == Binary::Range {
            self.then(left);
            self.text("..");
            self.then(right);
            return;
        }
        let precedence = operator.precedence();
        let differs = |below: Binary| below.is_boolean() && below != operator;
        let wrap_left = match self.tree.kind(left) {
            Kind::Unary(below, _) => below.precedence() < precedence,
            Kind::Binary(below, ..) => {
                below.precedence() < precedence
                    || (below.precedence() == precedence && operator.is_right_associative())
                    || *below == Binary::Coalesce
                    || differs(*below)
            }
            Kind::Conditional { .. } => true,
            _ => false,
        };
        let wrap_right = match self.tree.kind(right) {
            Kind::Binary(below, ..) => {
                below.precedence() < precedence
                    || (below.precedence() == precedence && !operator.is_right_associative())
                    || differs(*below)
            }
            Kind::Conditional { .. } => true,
            _ => false,
        };
        self.wrapped(left, wrap_left);
        self.text(" ");
        self.text(operator.text());
        self.text(" ");
        self.wrapped(right, wrap_right);
    }

    fn member(&mut self, base: Id, property: Id, optional: bool) {
        let tree = self.tree;
        let name = match tree.kind(property) {
            Kind::Text(name) if is_name(name) => Some(name),
            _ => None,
        };
        let is_element = matches!(tree.kind(base), Kind::Pointer(_));
        if optional || name.is_none() || !is_element {
            self.wrapped(base, matches!(tree.kind(base), Kind::Binary(..)));
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
                self.then(property);
                self.text("]");
            }
        }
    }

    fn conditional(&mut self, ternary: bool, condition: Id, yes: Id, no: Id) {
        let tree = self.tree;
        if ternary {
            let wrap = |id| matches!(tree.kind(id), Kind::Conditional { .. });
            self.wrapped(condition, wrap(condition));
            self.text(" ? ");
            self.wrapped(yes, wrap(yes));
            self.text(" : ");
            self.wrapped(no, wrap(no));
            return;
        }
        self.text("if ");
        self.then(condition);
        self.text(" { ");
        self.then(yes);
        self.text(" } else ");
        if matches!(tree.kind(no), Kind::Conditional { ternary: false, .. }) {
            self.then(no);
        } else {
            self.text("{ ");
            self.then(no);
            self.text(" }");
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::{parse::parse, print::canonical};

    #[track_caller]
    fn check(source: &str, expected: Expect) {
        expected.assert_eq(&canonical(&parse(source).unwrap()));
    }

    #[test]
    fn parentheses_are_kept_where_the_meaning_needs_them() {
        check("((a + b)) * c", expect!["(a + b) * c"]);
        check("a + (b * c)", expect!["a + b * c"]);
        check("(a - b) - c", expect!["a - b - c"]);
        check("a - (b - c)", expect!["a - (b - c)"]);
        check("(a ** b) ** c", expect!["(a ** b) ** c"]);
        check("a ** (b ** c)", expect!["a ** b ** c"]);
        check("(a && b) || c", expect!["(a && b) || c"]);
        check("a && (b and c)", expect!["a && (b and c)"]);
        check("(a and b) and c", expect!["a and b and c"]);
        check("-(a + b)", expect!["-(a + b)"]);
        check("(-a) ** b", expect!["(-a) ** b"]);
        check("not (a in b)", expect!["not (a in b)"]);
        check("!(a ? b : c)", expect!["!(a ? b : c)"]);
        check("(a ?? b) + c", expect!["(a ?? b) + c"]);
        check("a + (b ?? c)", expect!["a + b ?? c"]);
        check("(a ? b : c) + d", expect!["(a ? b : c) + d"]);
        check("(a + b)..(c + d)", expect!["a + b..c + d"]);
    }

    #[test]
    fn members_are_written_with_a_dot_if_they_can() {
        check(r#"a["b"]"#, expect!["a.b"]);
        check(r#"a["b c"]"#, expect![[r#"a["b c"]"#]]);
        check(r#"a?.["b"]"#, expect!["a?.b"]);
        check("a?.[b]", expect!["a?.[b]"]);
        check("(a + b).c", expect!["(a + b).c"]);
        check(r#"map(a, #["b"] + #acc.c)"#, expect!["map(a, .b + .c)"]);
        check("(-a).b", expect!["-a.b"]);
        check("a[1:2][:][b:][:c]", expect!["a[1:2][:][b:][:c]"]);
    }

    #[test]
    fn the_rest_is_written_in_one_way() {
        check("f( 'a' ,b = 1,)", expect![[r#"f("a", b=1)"#]]);
        check("a|map(#)", expect!["map(a, #)"]);
        check("::len( a )", expect!["len(a)"]);
        check(r#"{"a":1,"b c":2,(d):3}"#, expect![[r#"{a: 1, "b c": 2, (d): 3}"#]]);
        check("[ 1,2, ]", expect!["[1, 2]"]);
        check("let x=1;x", expect!["let x = 1; x"]);
        check("1;2;", expect!["1; 2"]);
        check("(1; 2) + 3", expect!["1; 2 + 3"]);
        check("if a{1}else if b{2}else{3}", expect!["if a { 1 } else if b { 2 } else { 3 }"]);
        check("a?b:c?d:e", expect!["a ? b : (c ? d : e)"]);
        check("a?:b", expect!["a ? a : b"]);
        check("a?.b.c()", expect!["a?.b.c()"]);
    }

    #[test]
    fn a_chain_of_any_length_is_printed() {
        for source in ["a".to_owned() + &" + a".repeat(4999), "a".to_owned() + &".b".repeat(4999)] {
            assert_eq!(canonical(&parse(&source).unwrap()), source);
        }
    }
}
