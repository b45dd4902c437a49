//! Operations: operands and operators put together by precedence.

use pest::iterators::{Pair, Pairs};

use super::token::skip_space;
use super::{Builder, Rule, start};
use crate::ast::{Binary, Id, Kind, Unary};
use crate::error::Error;

/// The parts of an operation, looked at one at a time.
pub(super) struct Parts<'s> {
    current: Option<Pair<'s, Rule>>,
    rest: Pairs<'s, Rule>,
}

/// An infix operator as it was read.
struct Infix {
    operator: Binary,
    /// `not in` and its like.
    negated: bool,
    at: u32,
}

impl<'s> Builder<'s> {
    pub(super) fn operation(&mut self, pair: Pair<'s, Rule>) -> Result<Id, Error> {
        let mut rest = pair.into_inner();
        let mut parts = Parts { current: rest.next(), rest };
        let before = self.visits;
        let mut node = self.climb(&mut parts, 0)?;
        while let Some(part) = parts.take() {
            if part.as_rule() != Rule::choice {
                // A postfix after a number, `true`, `false`, `nil` or a pipe.
                let found = match part.as_rule() {
                    Rule::index => "[",
                    Rule::optional => "?.",
                    _ => ".",
                };
                return Err(self.error(start(&part), format!("expected an operator, found `{found}`")));
            }
            node = self.choice(node, part, self.visits - before)?;
        }
        Ok(node)
    }

    /// Reads an operand, and all operators after it that bind at least as tightly as `least`.
    pub(super) fn climb(&mut self, parts: &mut Parts<'s>, least: u16) -> Result<Id, Error> {
        let mut left = self.operand(parts)?;
        let mut after_coalesce = false;
        while let Some(part) = &parts.current {
            match part.as_rule() {
                Rule::operator => {
                    let infix = Infix::read(part);
                    if infix.operator.precedence() < least {
                        break;
                    }
                    if after_coalesce && infix.operator != Binary::Coalesce {
                        let text = infix.operator.text();
                        let message = format!("`??` and `{text}` cannot be mixed: put one of them in parentheses");
                        return Err(self.error(infix.at, message));
                    }
                    after_coalesce = infix.operator == Binary::Coalesce;
                    parts.advance();
                    left = match infix.operator.is_ordering() {
                        true => self.ordering(left, infix, parts)?,
                        false => self.infix(left, &infix, parts)?,
                    };
                }
                // It binds loosest of all.
                Rule::pipe if least == 0 => {
                    after_coalesce = false;
                    let pipe = parts.take().expect("it was looked at");
                    left = self.sure_call(pipe, Some(left))?;
                }
                _ => break,
            }
        }
        Ok(left)
    }

    pub(super) fn prefix(&mut self, prefix: &Pair<'s, Rule>, parts: &mut Parts<'s>) -> Result<Id, Error> {
        let operator = match prefix.as_str() {
            "!" => Unary::Not { word: false },
            "-" => Unary::Minus,
            "+" => Unary::Plus,
            _ => Unary::Not { word: true },
        };
        let inner = self.nested(parts, operator.precedence(), start(prefix))?;
        self.push(Kind::Unary(operator, inner), start(prefix))
    }

    fn infix(&mut self, left: Id, infix: &Infix, parts: &mut Parts<'s>) -> Result<Id, Error> {
        let Infix { operator, negated, at } = *infix;
        let right = match operator.is_right_associative() {
            true => self.nested(parts, operator.precedence(), at)?,
            false => self.climb(parts, operator.precedence() + 1)?,
        };
        let node = self.push(Kind::Binary(operator, left, right), at)?;
        if negated { self.push(Kind::Unary(Unary::Not { word: true }, node), at) } else { Ok(node) }
    }

    /// `a < b < c` is `a < b && b < c`.
    fn ordering(&mut self, mut left: Id, mut infix: Infix, parts: &mut Parts<'s>) -> Result<Id, Error> {
        let mut all = None;
        loop {
            let before = self.visits;
            let right = self.climb(parts, infix.operator.precedence() + 1)?;
            let visits = self.visits - before;
            let comparison = self.push(Kind::Binary(infix.operator, left, right), infix.at)?;
            let node = match all {
                None => comparison,
                Some(all) => self.push(Kind::Binary(Binary::And { word: false }, all, comparison), infix.at)?,
            };
            infix = match parts.current.as_ref().filter(|part| part.as_rule() == Rule::operator).map(Infix::read) {
                Some(infix) if infix.operator.is_ordering() => infix,
                _ => return Ok(node),
            };
            parts.advance();
            self.visit(visits, infix.at)?;
            all = Some(node);
            left = right;
        }
    }

    fn choice(&mut self, condition: Id, pair: Pair<'s, Rule>, visits: usize) -> Result<Id, Error> {
        let end = pair.as_span().end();
        let mut inner = pair.into_inner().filter(|pair| !matches!(pair.as_rule(), Rule::question | Rule::colon));
        let first = self.expression(inner.next().expect("a choice has a branch"))?;
        // Go takes the place of the token that follows, and at the end the last character.
        let next = skip_space(self.source, end);
        let last = self.source.char_indices().next_back().map_or(0, |(at, _)| at);
        let at = next.min(last) as u32;
        let (yes, no) = match inner.next() {
            Some(second) => (first, self.expression(second)?),
            None => {
                self.visit(visits, at)?;
                (condition, first)
            }
        };
        self.push(Kind::Conditional { ternary: true, condition, yes, no }, at)
    }

    /// Climbs into the right side of an operator that can stand next to itself without an end.
    fn nested(&mut self, parts: &mut Parts<'s>, least: u16, at: u32) -> Result<Id, Error> {
        self.enter(at)?;
        let node = self.climb(parts, least)?;
        self.level -= 1;
        Ok(node)
    }
}

impl<'s> Parts<'s> {
    pub(super) fn rule(&self) -> Option<Rule> {
        self.current.as_ref().map(Pair::as_rule)
    }

    pub(super) fn take(&mut self) -> Option<Pair<'s, Rule>> {
        std::mem::replace(&mut self.current, self.rest.next())
    }

    fn advance(&mut self) {
        self.current = self.rest.next();
    }
}

impl Infix {
    fn read(pair: &Pair<'_, Rule>) -> Self {
        let text = pair.as_str();
        let negated = text.starts_with("not");
        // Whatever stands between `not` and the operator, the operator is last, and none ends as another one does.
        let operator = TEXTS.iter().find(|(word, _)| if negated { text.ends_with(word) } else { text == *word });
        let (word, operator) = *operator.expect("the grammar knows no other operator");
        Self { operator, negated, at: (pair.as_span().end() - word.len()) as u32 }
    }
}

/// The operators. Those that can be negated come first.
const TEXTS: [(&str, Binary); 24] = [
    ("in", Binary::In),
    ("matches", Binary::Matches),
    ("contains", Binary::Contains),
    ("startsWith", Binary::StartsWith),
    ("endsWith", Binary::EndsWith),
    ("==", Binary::Equal),
    ("&&", Binary::And { word: false }),
    ("||", Binary::Or { word: false }),
    ("and", Binary::And { word: true }),
    ("or", Binary::Or { word: true }),
    ("!=", Binary::NotEqual),
    ("<", Binary::Less),
    (">", Binary::Greater),
    ("<=", Binary::LessOrEqual),
    (">=", Binary::GreaterOrEqual),
    ("..", Binary::Range),
    ("+", Binary::Add),
    ("-", Binary::Subtract),
    ("*", Binary::Multiply),
    ("/", Binary::Divide),
    ("%", Binary::Modulo),
    ("**", Binary::Power { caret: false }),
    ("^", Binary::Power { caret: true }),
    ("??", Binary::Coalesce),
];

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::super::outline::outline;

    #[track_caller]
    fn check(source: &str, expected: Expect) {
        expected.assert_eq(&outline(source));
    }

    #[track_caller]
    fn check_places(source: &str, expected: &[usize]) {
        assert_eq!(super::super::parse(source).unwrap().places(source), expected);
    }

    #[test]
    fn operators_bind_as_in_go() {
        check("a or b and c == d .. e + f * g ** h", expect!["(or a (and b (== c (.. d (+ e (* f (** g h)))))))"]);
        check("a * b + c", expect!["(+ (* a b) c)"]);
        check("a - b - c", expect!["(- (- a b) c)"]);
        check("a ** b ^ c", expect!["(** a (^ b c))"]);
        check("not a in b", expect!["(in (not a) b)"]);
        check("!a == b", expect!["(== (! a) b)"]);
        check("-a ** b", expect!["(- (** a b))"]);
        check("- a * b", expect!["(* (- a) b)"]);
        check("a == b != c", expect!["(!= (== a b) c)"]);
        check("a and b && c", expect!["(&& (and a b) c)"]);
    }

    #[test]
    fn a_negated_operator_is_the_negation_of_it() {
        check("a not in b", expect!["(not (in a b))"]);
        check("a + b not contains c + d", expect!["(not (contains (+ a b) (+ c d)))"]);
        check("a not /* c */ startsWith b", expect!["(not (startsWith a b))"]);
        check("a not in b not in c", expect!["(not (in (not (in a b)) c))"]);
        check(
            "a not b",
            expect![
                "1:3 expected an operator or the end, found `not`; between values it goes with `in`, `contains` and their like"
            ],
        );
    }

    #[test]
    fn coalescing_binds_tightest_and_is_not_mixed() {
        check("a ?? b ?? c", expect!["(?? (?? a b) c)"]);
        check("a + b ?? c + d", expect!["(+ (+ a (?? b c)) d)"]);
        check("c == a ?? b", expect!["(== c (?? a b))"]);
        check("a ?? b | f()", expect!["(call f (?? a b))"]);
        check("(a ?? b) || c", expect!["(|| (?? a b) c)"]);
        check(
            "a ?? b || c",
            expect!["1:8 `??` and `||` cannot be mixed: put one of them in parentheses: write `(a ?? b) || c`"],
        );
        check(
            "a ?? b not in c",
            expect!["1:12 `??` and `in` cannot be mixed: put one of them in parentheses: write `(a ?? b) not in c`"],
        );
    }

    #[test]
    fn comparisons_in_a_row_share_their_operands() {
        check("a < b", expect!["(< a b)"]);
        check("a < b <= c > d", expect!["(&& (&& (< a b) (<= b c)) (> c d))"]);
        check("a < b == c < d", expect!["(< (== (< a b) c) d)"]);
        check("(a < b) < c", expect!["(< (< a b) c)"]);
    }

    #[test]
    fn a_choice_goes_to_the_right() {
        check("a ? b : c ? d : e", expect!["(?: a b (?: c d e))"]);
        check("a ? b ? c : d : e", expect!["(?: a (?: b c d) e)"]);
        check("a ?: b ?: c", expect!["(?: a a (?: b b c))"]);
        check("a ? b : if c { d } else { e } ? f : g", expect!["(?: (?: a b (if c d e)) f g)"]);
        check("a ? ::len(b) : c", expect!["(?: a (len b) c)"]);
        check("a ? b", expect!["1:6 expected an operator or `:`, found the end"]);
    }

    #[test]
    fn a_pipe_binds_loosest_and_gives_the_first_argument() {
        check("a and b | f(c) == 2", expect!["(== (call f (and a b) c) 2)"]);
        check("a | map(# + 1) | sum()", expect!["(sum (map a (predicate (+ # 1))))"]);
        check("a | true()", expect!["(call true a)"]);
        check("a | f().b", expect!["1:8 expected an operator or the end, found `.`"]);
        check("a | f", expect!["1:6 expected `(`, for only a call of `f` can stand here: write `a || f`"]);
        check("a | 1", expect!["1:5 expected a name, found `1`: write `a ?? 1`"]);
    }

    #[test]
    fn places_are_those_of_the_operators() {
        check_places("a not in b", &[6, 6, 0, 9]);
        check_places("a < b < c", &[6, 2, 0, 4, 6, 4, 8]);
        check_places("x ? 1 : 2", &[8, 0, 4, 8]);
        check_places("(x ? 1 : 2 ) + 3", &[13, 11, 1, 5, 9, 15]);
        check_places("é + -ö", &[2, 0, 4, 5]);
    }
}
