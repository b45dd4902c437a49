//! Operands: values, and what follows them to reach into them.

use pest::iterators::Pair;

use super::operators::Parts;
use super::{Builder, Rule, start};
use crate::ast::{Id, Kind};
use crate::error::Error;

impl<'s> Builder<'s> {
    /// Reads an operand with its prefix and postfix operators.
    pub(super) fn operand(&mut self, parts: &mut Parts<'s>) -> Result<Id, Error> {
        let part = parts.take().expect("the grammar has an operand here");
        let node = match part.as_rule() {
            Rule::prefix => self.prefix(&part, parts)?,
            Rule::number => return self.number(&part),
            Rule::call | Rule::predicate_call => {
                let node = self.call(part)?;
                if matches!(self.nodes[node.0 as usize].kind, Kind::Nil | Kind::Bool(_)) {
                    return Ok(node);
                }
                node
            }
            Rule::path => {
                let (name, fields) = part.as_str().split_once('.').unwrap_or((part.as_str(), ""));
                let node = self.name(name, start(&part))?;
                if fields.is_empty() && matches!(self.nodes[node.0 as usize].kind, Kind::Nil | Kind::Bool(_)) {
                    return Ok(node);
                }
                self.fields(node, fields, start(&part) + name.len() as u32 + 1)?
            }
            Rule::text | Rule::raw_text => self.text(&part)?,
            Rule::bytes => self.bytes(&part)?,
            Rule::group => self.sequence(part.into_inner().next().expect("parentheses hold something"))?,
            Rule::array => self.array(part)?,
            Rule::map => self.map(part)?,
            Rule::pointer => self.pointer(part)?,
            Rule::member => {
                let element = self.element("", start(&part))?;
                self.member(element, part, false)?
            }
            Rule::fields => {
                let element = self.element("", start(&part))?;
                self.fields(element, &part.as_str()[1..], start(&part) + 1)?
            }
            Rule::global => self.sure_call(part, None)?,
            rule => unreachable!("no operand is a {rule:?}"),
        };
        self.postfixes(node, parts)
    }

    fn postfixes(&mut self, mut node: Id, parts: &mut Parts<'s>) -> Result<Id, Error> {
        while let Some(rule @ (Rule::member | Rule::index | Rule::optional)) = parts.rule() {
            let part = parts.take().expect("it was looked at");
            node = match rule {
                Rule::member => self.member(node, part, false)?,
                Rule::index => self.index(node, part, false)?,
                _ => {
                    let inner = part.clone().into_inner().next().expect("`?.` is followed by something");
                    match inner.as_rule() {
                        Rule::index => self.index(node, inner, true)?,
                        _ => self.member(node, part, true)?,
                    }
                }
            };
        }
        Ok(node)
    }

    /// Names with dots between them, of which the first is at this place.
    fn fields(&mut self, mut node: Id, names: &'s str, mut at: u32) -> Result<Id, Error> {
        for name in names.split('.').filter(|name| !name.is_empty()) {
            let property = self.push(Kind::Text(name.into()), at)?;
            node = self.push(Kind::Member { base: node, property, optional: false, method: false }, at)?;
            at += name.len() as u32 + 1;
        }
        Ok(node)
    }

    /// `.name`, `.name(…)` and the same after `?.`.
    fn member(&mut self, base: Id, pair: Pair<'s, Rule>, optional: bool) -> Result<Id, Error> {
        let mut inner = pair.into_inner();
        let name = inner.next().expect("a member has a name");
        let arguments = inner.next();
        let (name, at) = (name.as_str(), start(&name));
        // A chain goes on until an index, so that nil skips all of it.
        let (base, chained) = self.unchain(base);
        let property = self.push(Kind::Text(name.into()), at)?;
        let mut node = self.push(Kind::Member { base, property, optional, method: arguments.is_some() }, at)?;
        if let Some(arguments) = arguments {
            let arguments = self.arguments(arguments, None)?;
            node = self.push(Kind::Call { callee: node, arguments }, at)?;
        }
        if chained || optional { self.push(Kind::Chain(node), at) } else { Ok(node) }
    }

    /// `[…]`, `[…:…]` and the same after `?.`, which means nothing before a slice.
    fn index(&mut self, base: Id, pair: Pair<'s, Rule>, optional: bool) -> Result<Id, Error> {
        let at = start(&pair);
        let (mut from, mut to, mut is_slice) = (None, None, false);
        for pair in pair.into_inner() {
            match pair.as_rule() {
                Rule::colon => is_slice = true,
                Rule::close_index => {}
                _ if is_slice => to = Some(self.expression(pair)?),
                _ => from = Some(self.expression(pair)?),
            }
        }
        if is_slice {
            return self.push(Kind::Slice { base, from, to }, at);
        }
        let property = from.expect("what is no slice has an index");
        let node = self.push(Kind::Member { base, property, optional, method: false }, at)?;
        if optional { self.push(Kind::Chain(node), at) } else { Ok(node) }
    }

    /// What a chain holds, and whether it was one. The chain is the last node, and gives way to one that reaches further.
    fn unchain(&mut self, id: Id) -> (Id, bool) {
        let Kind::Chain(inner) = self.nodes[id.0 as usize].kind else { return (id, false) };
        debug_assert_eq!(id.0 as usize + 1, self.nodes.len(), "nothing is made between a chain and what follows it");
        self.nodes.pop();
        self.depths.pop();
        self.visits -= 1;
        (inner, true)
    }

    fn array(&mut self, pair: Pair<'s, Rule>) -> Result<Id, Error> {
        let at = start(&pair);
        let mut elements = Vec::new();
        for pair in pair.into_inner().filter(|pair| pair.as_rule() != Rule::close_bracket) {
            elements.push(self.expression(pair)?);
        }
        self.push(Kind::Array(elements), at)
    }

    fn map(&mut self, pair: Pair<'s, Rule>) -> Result<Id, Error> {
        let at = start(&pair);
        let mut inner = pair.into_inner().filter(|pair| !matches!(pair.as_rule(), Rule::colon | Rule::close_brace));
        let mut pairs = Vec::new();
        while let Some(key) = inner.next() {
            let key = match key.as_rule() {
                Rule::text | Rule::raw_text => self.text(&key)?,
                Rule::operation => self.expression(key)?,
                _ => self.push(Kind::Text(key.as_str().into()), start(&key))?,
            };
            let value = self.expression(inner.next().expect("a key has a value"))?;
            // Go has a node for the pair.
            self.count(at)?;
            pairs.push((key, value));
        }
        self.push(Kind::Map(pairs), at)
    }

    fn pointer(&mut self, pair: Pair<'s, Rule>) -> Result<Id, Error> {
        let at = start(&pair);
        let name = pair.into_inner().next().map_or("", |name| name.as_str());
        self.element(name, at)
    }

    fn element(&mut self, name: &'s str, at: u32) -> Result<Id, Error> {
        if self.predicates == 0 && !self.lenient {
            let message = match self.source.as_bytes()[at as usize] {
                b'#' => "`#` is the element that a predicate looks at, as in `any(list, # > 1)`: here is none",
                _ => {
                    "`.name` is a field of the element that a predicate looks at, as in `any(list, .size > 1)`: here is none"
                }
            };
            return Err(self.error(at, message));
        }
        self.push(Kind::Pointer(name), at)
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
    fn an_optional_chain_reaches_to_its_end_or_to_an_index() {
        check("a.b.c", expect![[r#"(member (member a "b") "c")"#]]);
        check("a?.b.c", expect![[r#"(chain (member (member? a "b") "c"))"#]]);
        check("a.b?.c()", expect![[r#"(chain (call (method? (member a "b") "c")))"#]]);
        check("a?.b[0].c", expect![[r#"(member (member (chain (member? a "b")) 0) "c")"#]]);
        check("a?.b?.[0].c", expect![[r#"(chain (member (member? (chain (member? a "b")) 0) "c"))"#]]);
        check("(a?.b).c", expect![[r#"(chain (member (member? a "b") "c"))"#]]);
        check("(a?.b)[0]", expect![[r#"(member (chain (member? a "b")) 0)"#]]);
        check("a?.[1:2]", expect!["(slice a 1 2)"]);
    }

    #[test]
    fn names_with_dots_are_the_same_in_one_piece_and_apart() {
        for (together, apart) in [
            ("a.b.c", "a . b . c"),
            ("map(a, .b.c)", "map(a, . b . c)"),
            ("a.b.c(d)", "a . b . c (d)"),
            ("map(a, .b(c))", "map(a, . b (c))"),
            ("a.b[0].c", "a . b [0] . c"),
            ("a.b?.c", "a . b ?. c"),
            ("früh.ß", "früh . ß"),
            ("f(a.b)", "f (a . b)"),
            ("-a.b", "- a . b"),
        ] {
            assert_eq!(outline(together), outline(apart));
        }
        check("not nil.a", expect![[r#"(member (not nil) "a")"#]]);
        check("nilly.a", expect![[r#"(member nilly "a")"#]]);
    }

    #[test]
    fn names_before_a_call_are_not_read_again_and_again() {
        // A token of all names fails at the bracket; name by name there is only one way to read them.
        let source = format!("a{} (b)", ".b".repeat(20000));
        let started = std::time::Instant::now();
        assert!(!outline(&source).is_empty());
        assert!(started.elapsed() < std::time::Duration::from_secs(20));
    }

    #[test]
    fn any_word_is_a_name_after_a_dot() {
        check("a.not.in.let?.if", expect![[r#"(chain (member? (member (member (member a "not") "in") "let") "if"))"#]]);
        check("a.true(1)", expect![[r#"(call (method a "true") 1)"#]]);
        check("a.1", expect!["1:3 expected a name, found `1`"]);
        check("a.", expect!["1:3 expected a name, found the end"]);
        check(r#"a."b""#, expect![[r#"1:3 expected a name, found `"b"`: write `a.b`"#]]);
    }

    #[test]
    fn an_index_or_a_slice_takes_whole_expressions() {
        check("a[b ? c : d]", expect!["(member a (?: b c d))"]);
        check("a[:]", expect!["(slice a)"]);
        check("a[1:]", expect!["(slice a 1)"]);
        check("a[:2]", expect!["(slice a 2)"]);
        check("a[b ? c : d:e]", expect!["(slice a (?: b c d) e)"]);
        check(
            "a[]",
            expect![
                "1:3 expected a value or `:`, found `]`; for all elements there are `any(list, .name …)` and `map(list, .name)`"
            ],
        );
        check("a[1:2:3]", expect!["1:6 expected an operator or `]`, found `:`"]);
    }

    #[test]
    fn numbers_and_constants_have_no_members_but_a_prefix_before_them_has() {
        check("1[0]", expect!["1:2 expected an operator, found `[`"]);
        check("true.a", expect!["1:5 expected an operator, found `.`"]);
        check("nil?.a", expect!["1:4 expected an operator, found `?.`"]);
        check("-1[0]", expect!["(member (- 1) 0)"]);
        check("not true.a", expect![[r#"(member (not true) "a")"#]]);
        check("-2 ** 3[0]", expect!["(member (- (** 2 3)) 0)"]);
        check("- -1[0]", expect!["(- (member (- 1) 0))"]);
    }

    #[test]
    fn a_key_is_a_name_a_text_a_number_or_in_parentheses() {
        check(
            r#"{a: 1, "b c": 2, 0x1F: 3, true: 4, `d`: 5, (e) + f: 6,}"#,
            expect![[r#"({} "a" 1 "b c" 2 "0x1F" 3 "true" 4 "d" 5 (+ e f) 6)"#]],
        );
        check("{}", expect!["({})"]);
        check("{in: 1}", expect!["1:2 expected a key or `}`, found `in`; `in` is an operator"]);
        check("{-}", expect!["1:2 expected a key or `}`, found `-`"]);
        check("{a: 1,,}", expect!["1:7 expected a key or `}`, found `,`"]);
        check("{a 1}", expect!["1:4 expected `:`, found `1`"]);
    }

    #[test]
    fn an_array_may_end_with_a_comma() {
        check("[]", expect!["([])"]);
        check("[1, [2],]", expect!["([] 1 ([] 2))"]);
        check("[,]", expect!["1:2 expected a value or `]`, found `,`"]);
        check("[1 2]", expect!["1:4 expected an operator, `,` or `]`, found `2`"]);
    }

    #[test]
    fn an_element_is_known_only_in_a_predicate() {
        check("map(a, #.b + .c)", expect![[r#"(map a (predicate (+ (member # "b") (member # "c"))))"#]]);
        check("map(a, # index + #acc + #in + #1)", expect!["(map a (predicate (+ (+ (+ #index #acc) #in) #1)))"]);
        check("#", expect!["1:1 `#` is the element that a predicate looks at, as in `any(list, # > 1)`: here is none"]);
        check(
            ".a",
            expect![
                "1:1 `.name` is a field of the element that a predicate looks at, as in `any(list, .size > 1)`: here is none: write `a`"
            ],
        );
        check(
            "map(a, #) + #",
            expect!["1:13 `#` is the element that a predicate looks at, as in `any(list, # > 1)`: here is none"],
        );
        check("map(a, 1...b)", expect![[r#"(map a (predicate (.. 1 (member # "b"))))"#]]);
    }
}
