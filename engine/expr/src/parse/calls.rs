//! Calls, and names that are not called.

use pest::iterators::{Pair, Pairs};

use super::explain::shown;
use super::{Builder, Rule, start};
use crate::ast::{Argument, Id, Kind};
use crate::builtins;
use crate::error::Error;

impl<'s> Builder<'s> {
    /// A name, or a call of it.
    pub(super) fn call(&mut self, pair: Pair<'s, Rule>) -> Result<Id, Error> {
        let rule = pair.as_rule();
        let mut inner = pair.into_inner();
        let name = inner.next().expect("a call begins with a name");
        match (name.as_str(), inner.peek()) {
            ("true" | "false" | "nil", Some(arguments)) => {
                Err(self.error(start(&arguments), "expected an operator, found `(`"))
            }
            (_, Some(_)) => self.called(rule, &name, inner, None),
            (text, None) => self.name(text, start(&name)),
        }
    }

    /// A name that is not called.
    pub(super) fn name(&mut self, name: &'s str, at: u32) -> Result<Id, Error> {
        let kind = match name {
            "true" => Kind::Bool(true),
            "false" => Kind::Bool(false),
            "nil" => Kind::Nil,
            name => Kind::Identifier(name),
        };
        self.push(kind, at)
    }

    /// The call after `::`, or after `|`, which gives the first argument.
    pub(super) fn sure_call(&mut self, pair: Pair<'s, Rule>, first: Option<Id>) -> Result<Id, Error> {
        let pair = pair.into_inner().next().expect("`::` and `|` are followed by a name");
        let rule = pair.as_rule();
        let mut inner = pair.into_inner();
        let name = inner.next().expect("a call begins with a name");
        if inner.is_empty() {
            let end = name.as_span().end() as u32;
            return Err(
                self.error(end, format!("expected `(`, for only a call of {} can stand here", shown(name.as_str())))
            );
        }
        self.called(rule, &name, inner, first)
    }

    fn called(
        &mut self,
        rule: Rule,
        name: &Pair<'s, Rule>,
        mut inner: Pairs<'s, Rule>,
        first: Option<Id>,
    ) -> Result<Id, Error> {
        let (text, at) = (name.as_str(), start(name));
        if rule != Rule::call {
            let arguments = self.predicate_arguments(text, inner, first)?;
            return self.push(Kind::Builtin { name: text, arguments }, at);
        }
        let arguments = inner.next().expect("it is not empty");
        // What is no builtin is called as a function of the host.
        if builtins::find(text).is_some() {
            let arguments = self.arguments(arguments, first)?;
            if let Some((_, at)) = arguments.iter().find_map(|argument| argument.name) {
                return Err(self.error(at, format!("the arguments of `{text}` have no names")));
            }
            let arguments = arguments.into_iter().map(|argument| argument.value).collect();
            return self.push(Kind::Builtin { name: text, arguments }, at);
        }
        let callee = self.push(Kind::Identifier(text), at)?;
        let arguments = self.arguments(arguments, first)?;
        self.push(Kind::Call { callee, arguments }, at)
    }

    /// The arguments in parentheses, after the one that a pipe gives.
    pub(super) fn arguments(&mut self, pair: Pair<'s, Rule>, first: Option<Id>) -> Result<Vec<Argument<'s>>, Error> {
        let mut arguments: Vec<Argument<'s>> = first.map(|value| Argument { name: None, value }).into_iter().collect();
        for pair in pair.into_inner() {
            match pair.as_rule() {
                Rule::close_paren => {}
                Rule::named => {
                    let name = arguments.pop().expect("a name comes before `=`").value;
                    let name = self.name_of_argument(name, start(&pair))?;
                    let value = self.expression(pair.into_inner().nth(1).expect("`=` is followed by a value"))?;
                    arguments.push(Argument { name: Some(name), value });
                }
                _ => arguments.push(Argument { name: None, value: self.expression(pair)? }),
            }
        }
        Ok(arguments)
    }

    /// Takes back the expression before `=`, which must have been a plain name.
    fn name_of_argument(&mut self, id: Id, equals: u32) -> Result<(&'s str, u32), Error> {
        let node = &self.nodes[id.0 as usize];
        let (Kind::Identifier(name), at) = (&node.kind, node.at) else {
            return Err(self.error(equals, "expected an operator, found `=`; use `==` to compare"));
        };
        let name = *name;
        if self.source[at as usize + name.len()..equals as usize].contains(')') {
            return Err(self.error(equals, "expected a name without parentheses before `=`"));
        }
        self.nodes.pop();
        self.depths.pop();
        self.made -= 1;
        self.visits -= 1;
        Ok((name, at))
    }

    /// The arguments of a function that takes a predicate, after the one that a pipe gives.
    fn predicate_arguments(&mut self, name: &str, pairs: Pairs<'s, Rule>, first: Option<Id>) -> Result<Vec<Id>, Error> {
        let (least, most) = match name {
            "count" | "sum" => (1, 2),
            "sortBy" | "reduce" => (2, 3),
            // One more for a variable.
            _ => (2, if self.lenient { 3 } else { 2 }),
        };
        let mut arguments: Vec<Id> = first.into_iter().collect();
        let mut comma = false;
        for pair in pairs {
            let at = start(&pair);
            match pair.as_rule() {
                Rule::trailing_comma => comma = true,
                Rule::close_paren if arguments.len() < least || (comma && arguments.len() < most) => {
                    let expected = ["a list", "a predicate", "a value"][arguments.len()];
                    return Err(self.error(at, format!("expected {expected} for `{name}`, found `)`")));
                }
                Rule::close_paren => {}
                _ if arguments.len() == most => {
                    return Err(self.error(at, format!("`{name}` takes no more than {most} arguments")));
                }
                Rule::predicate => arguments.push(self.predicate(pair)?),
                _ => arguments.push(self.expression(pair)?),
            }
        }
        Ok(arguments)
    }

    fn predicate(&mut self, pair: Pair<'s, Rule>) -> Result<Id, Error> {
        let at = start(&pair);
        self.predicates += 1;
        let body = self.expression(pair.into_inner().next().expect("a predicate has a body"))?;
        self.predicates -= 1;
        self.push(Kind::Predicate(body), at)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::super::outline::outline;

    #[track_caller]
    fn check(source: &str, expected: Expect) {
        expected.assert_eq(&outline(source));
    }

    #[test]
    fn a_call_knows_builtins_from_others() {
        check("len(a)", expect!["(len a)"]);
        check("::len(a,)", expect!["(len a)"]);
        check("f(a, b,)", expect!["(call f a b)"]);
        check("::f(a)", expect!["(call f a)"]);
        check("a.len(b)", expect![[r#"(call (method a "len") b)"#]]);
        check("len", expect!["len"]);
        check("true(1)", expect!["1:5 expected an operator, found `(`"]);
        check("::len", expect!["1:6 expected `(`, for only a call of `len` can stand here"]);
        check("f(,)", expect!["1:3 expected a value or `)`, found `,`"]);
        check("f(a", expect!["1:4 expected an operator, `,` or `)`, found the end"]);
    }

    #[test]
    fn a_predicate_is_an_expression_or_a_sequence_in_braces() {
        check("any(a, # > 1)", expect!["(any a (predicate (> # 1)))"]);
        check("any(a, {let x = #; x > 1; true},)", expect!["(any a (predicate (let x # (; (> x 1) true))))"]);
        check("map(a, {{b: #}})", expect![[r#"(map a (predicate ({} "b" #)))"#]]);
        check("map(a, {#}.b)", expect!["1:11 expected `)`, found `.`"]);
        check(
            "map(a, #; 1)",
            expect!["1:9 expected an operator or `)`, found `;`; put several expressions in braces or parentheses"],
        );
    }

    #[test]
    fn functions_with_a_predicate_take_what_they_need() {
        check("count(a)", expect!["(count a)"]);
        check("a | count()", expect!["(count a)"]);
        check(r#"sortBy(a, .b, "desc",)"#, expect![[r#"(sortBy a (predicate (member # "b")) "desc")"#]]);
        check("a | reduce(#acc + #, 0)", expect!["(reduce a (predicate (+ #acc #)) 0)"]);
        check("all(a)", expect!["1:6 expected a predicate for `all`, found `)`"]);
        check("a | all()", expect!["1:9 expected a predicate for `all`, found `)`"]);
        check("all(a, #, 1)", expect!["1:11 `all` takes no more than 2 arguments"]);
        check("count(a,)", expect!["1:9 expected a predicate for `count`, found `)`"]);
        check("a | sum(,)", expect!["1:10 expected a predicate for `sum`, found `)`"]);
        check("sortBy(a, .b,)", expect!["1:14 expected a value for `sortBy`, found `)`"]);
        check("all()", expect!["1:5 expected a value, found `)`"]);
    }

    #[test]
    fn the_name_of_a_predicate_function_can_be_used_as_a_name() {
        check("map + all", expect!["(+ map all)"]);
        check("map.filter", expect![[r#"(member map "filter")"#]]);
        check("{map: 1}", expect![[r#"({} "map" 1)"#]]);
    }

    #[test]
    fn arguments_of_the_host_can_have_names() {
        check("list(ns, selector={a: 1})", expect![[r#"(call list ns ({} "a" 1))"#]]);
        check("a | list(b=1)", expect!["(call list a 1)"]);
        check("a.list(b = c == d)", expect![[r#"(call (method a "list") (== c d))"#]]);
        check("len(a=1)", expect!["1:5 the arguments of `len` have no names"]);
        check("list(a.b=1)", expect!["1:9 expected an operator, found `=`: write `list(a.b == 1)`"]);
        check("list((a)=1)", expect!["1:9 expected a name without parentheses before `=`: write `list(a == 1)`"]);
        check(r#"list("a"=1)"#, expect![[r#"1:9 expected an operator, found `=`: write `list("a" == 1)`"#]]);
    }
}
