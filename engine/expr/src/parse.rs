//! Source to tree. pest reads the source by `grammar.pest`; what is here builds the tree from what it read, and says in
//! plain words what is wrong with a source that it could not read.

mod calls;
mod explain;
mod foreign;
mod literals;
mod nesting;
mod operands;
mod operators;
#[cfg(test)]
mod outline;
mod repair;
mod token;

use pest::Parser as _;
use pest::iterators::Pair;

pub(crate) use self::repair::element_meant;
pub(crate) use self::token::{is_reserved, is_word};
use crate::ast::{Id, Kind, Node, Tree};
use crate::error::{Error, Phase};
use crate::limits::{MAX_NESTING, MAX_NODES, MAX_SOURCE, MAX_VISITS};

/// Parses an expression.
pub(crate) fn parse(source: &str) -> Result<Tree<'_>, Error> {
    let instead = |error: &Error| repair::instead(source, error).or_else(|| foreign::instead(source));
    read(source, !repair::LENIENT).map_err(|error| match instead(&error) {
        Some(instead) => {
            // Of two advices the one that says everything is enough.
            let wrong = error.message.split_once("; use `").map_or(&*error.message, |(wrong, _)| wrong);
            Error { message: format!("{wrong}: write `{instead}`"), ..error }
        }
        None => error,
    })
}

fn read(source: &str, lenient: bool) -> Result<Tree<'_>, Error> {
    if source.len() > MAX_SOURCE {
        let message = format!("the expression is longer than {MAX_SOURCE} bytes");
        return Err(Error::at(Phase::Parse, source, 0, message));
    }
    // First, because pest recurses as deep as brackets are nested.
    nesting::check(source)?;
    let mut pairs = Grammar::parse(Rule::program, source).map_err(|error| explain::explain(source, &error))?;
    let mut builder = Builder::new(source, lenient);
    let root = builder.sequence(pairs.next().expect("a program is a sequence"))?;
    Ok(Tree { nodes: builder.nodes, root })
}

/// Parses an expression into the tree of another one, whose places are before `at`. Nothing comes of one that is wrong, or that is nested too
/// deep below `level` others; what was added to the tree then is for the caller to remove.
pub(crate) fn append<'s>(tree: &mut Tree<'s>, source: &'s str, at: u32, level: usize) -> Option<Id> {
    nesting::check(source).ok()?;
    let mut pairs = Grammar::parse(Rule::program, source).ok()?;
    let count = tree.nodes.len();
    let nodes = std::mem::take(&mut tree.nodes);
    let mut builder = Builder { nodes, depths: vec![0; count], level, ..Builder::empty(source) };
    let root = builder.sequence(pairs.next().expect("a program is a sequence"));
    let root = root.ok().filter(|root| builder.depths[root.0 as usize] + level <= MAX_NESTING);
    builder.nodes[count..].iter_mut().for_each(|node| node.at += at);
    tree.nodes = builder.nodes;
    root
}

#[derive(pest_derive::Parser)]
#[grammar = "grammar.pest"]
struct Grammar;

/// A tree while it grows. Children are made before the node that holds them.
struct Builder<'s> {
    source: &'s str,
    nodes: Vec<Node<'s>>,
    /// How deep the tree below each node is.
    depths: Vec<usize>,
    /// Nodes made, as Go counts them.
    made: usize,
    /// Nodes that a walk of what was made so far meets.
    visits: usize,
    /// How many expressions, prefix and right-associative operators are around the current operand: how deep the builder
    /// has recursed.
    level: usize,
    /// Predicates around the current operand.
    predicates: usize,
    /// Whether more is read than the language has, to see what was meant.
    lenient: bool,
}

impl<'s> Builder<'s> {
    fn new(source: &'s str, lenient: bool) -> Self {
        // Most sources have fewer.
        let nodes = source.len() / 4;
        let (nodes, depths) = (Vec::with_capacity(nodes), Vec::with_capacity(nodes));
        Self { nodes, depths, lenient, ..Self::empty(source) }
    }

    fn empty(source: &'s str) -> Self {
        let (nodes, depths) = (Vec::new(), Vec::new());
        Self { source, nodes, depths, made: 0, visits: 0, level: 0, predicates: 0, lenient: !repair::LENIENT }
    }

    fn sequence(&mut self, pair: Pair<'s, Rule>) -> Result<Id, Error> {
        let mut inner = pair.into_inner();
        let first = self.expression(inner.next().expect("a sequence has an expression"))?;
        let mut elements = Vec::new();
        for pair in inner {
            if elements.is_empty() {
                elements.push(first);
            }
            elements.push(self.expression(pair)?);
        }
        if elements.is_empty() {
            return Ok(first);
        }
        self.push(Kind::Sequence(elements), self.nodes[first.0 as usize].at)
    }

    fn expression(&mut self, pair: Pair<'s, Rule>) -> Result<Id, Error> {
        // Braces around a predicate or a branch.
        if pair.as_rule() == Rule::sequence {
            return self.sequence(pair);
        }
        self.enter(start(&pair))?;
        let node = match pair.as_rule() {
            Rule::operation => self.operation(pair),
            Rule::text => self.text(&pair),
            Rule::let_in => self.let_in(pair),
            Rule::if_else => self.if_else(pair),
            rule => unreachable!("no expression is a {rule:?}"),
        }?;
        self.level -= 1;
        Ok(node)
    }

    /// Goes a level down, whether the tree will show it or not.
    fn enter(&mut self, at: u32) -> Result<(), Error> {
        self.level += 1;
        // The outermost expression is in nothing.
        if self.level > MAX_NESTING + 1 { Err(nesting::too_deep(self.source, at)) } else { Ok(()) }
    }

    fn let_in(&mut self, pair: Pair<'s, Rule>) -> Result<Id, Error> {
        let mut inner = pair.into_inner().filter(|pair| !is_mark(pair.as_rule()));
        let mut part = || inner.next().expect("`let` has a name, a value and a body");
        let (name, value, body) = (part(), part(), part());
        let value = self.expression(value)?;
        let body = self.sequence(body)?;
        self.push(Kind::Let { name: name.as_str(), value, body }, start(&name))
    }

    fn if_else(&mut self, pair: Pair<'s, Rule>) -> Result<Id, Error> {
        let mut inner = pair.into_inner().filter(|pair| !is_mark(pair.as_rule()));
        let mut part = || inner.next().expect("`if` has a condition and two branches");
        let (condition, yes, no) = (part(), part(), part());
        let condition = self.expression(condition)?;
        let yes = self.sequence(yes)?;
        let no = self.expression(no)?;
        // Go forgets to count it and to give it a place, which leaves it at the start.
        self.made -= 1;
        self.push(Kind::Conditional { ternary: false, condition, yes, no }, 0)
    }

    fn push(&mut self, kind: Kind<'s>, at: u32) -> Result<Id, Error> {
        let depth = self.depth(&kind);
        if depth > MAX_NESTING {
            return Err(nesting::too_deep(self.source, at));
        }
        self.count(at)?;
        self.visit(1, at)?;
        let id = Id(self.nodes.len() as u32);
        self.nodes.push(Node { kind, at });
        self.depths.push(depth);
        Ok(id)
    }

    /// Counts a node that Go makes.
    fn count(&mut self, at: u32) -> Result<(), Error> {
        self.made += 1;
        if self.made > MAX_NODES {
            return Err(self.error(at, format!("the expression has more than {MAX_NODES} nodes")));
        }
        Ok(())
    }

    /// Counts nodes that a walk meets.
    fn visit(&mut self, nodes: usize, at: u32) -> Result<(), Error> {
        self.visits += nodes;
        if self.visits > MAX_VISITS {
            let message = format!("`a < b < c` and `a ?: b` repeat more than {MAX_VISITS} nodes of the expression");
            return Err(self.error(at, message));
        }
        Ok(())
    }

    /// How deep the tree below a node is. Walks go down a chain in a loop, so that it counts once.
    fn depth(&self, kind: &Kind<'s>) -> usize {
        let depth = |id: &Id| self.depths[id.0 as usize];
        let base = |id: &Id| match self.nodes[id.0 as usize].kind {
            Kind::Member { .. } | Kind::Slice { .. } | Kind::Call { .. } | Kind::Chain(_) => depth(id) - 1,
            _ => depth(id),
        };
        let below = match kind {
            Kind::Binary(operator, left, right) => match self.nodes[left.0 as usize].kind {
                Kind::Binary(above, ..) if above.precedence() == operator.precedence() => {
                    depth(right).max(depth(left) - 1)
                }
                _ => depth(right).max(depth(left)),
            },
            Kind::Chain(inner) => base(inner),
            Kind::Member { base: id, property, .. } => base(id).max(depth(property)),
            Kind::Slice { base: id, from, to } => {
                [from, to].into_iter().flatten().map(depth).fold(base(id), usize::max)
            }
            Kind::Call { callee, arguments } => {
                arguments.iter().map(|argument| depth(&argument.value)).fold(base(callee), usize::max)
            }
            kind => {
                let mut deepest = 0;
                kind.each_child(|child| deepest = deepest.max(depth(&child)));
                deepest
            }
        };
        below + 1
    }

    fn error(&self, at: u32, message: impl Into<String>) -> Error {
        Error::at(Phase::Parse, self.source, at, message)
    }
}

/// Tokens that are rules for the sake of errors.
fn is_mark(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::word_let
            | Rule::word_if
            | Rule::word_else
            | Rule::assign
            | Rule::semicolon
            | Rule::open_brace
            | Rule::close_brace
    )
}

fn start(pair: &Pair<'_, Rule>) -> u32 {
    pair.as_span().start() as u32
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::outline::outline;
    use super::parse;
    use crate::limits::{MAX_NODES, MAX_SOURCE};

    #[track_caller]
    fn check(source: &str, expected: Expect) {
        expected.assert_eq(&outline(source));
    }

    fn message(source: &str) -> String {
        parse(source).err().map(|error| error.message).unwrap_or_default()
    }

    #[test]
    fn a_sequence_ends_with_a_semicolon_only_at_the_end() {
        check("a; b; c;", expect!["(; a b c)"]);
        check("(a; b).c", expect![[r#"(member (; a b) "c")"#]]);
        check("(a; b;)", expect!["1:7 expected a value, found `)`"]);
    }

    #[test]
    fn let_reaches_to_the_end() {
        check("let x = 1; let y = x; x + y", expect!["(let x 1 (let y x (+ x y)))"]);
        check("[let x = 1; x, 2]", expect!["([] (let x 1 x) 2)"]);
        check("let x = let y = 1; y; x", expect!["1:24 expected an operator or `;`, found the end"]);
    }

    #[test]
    fn if_has_two_branches_and_stands_alone() {
        check("if a { 1 } else if b { 2; 3 } else { 4 }", expect!["(if a 1 (if b (; 2 3) 4))"]);
        check("(if a { 1 } else { 2 }) + 1", expect!["(+ (if a 1 2) 1)"]);
        check("if a { 1 } else { 2 } + 1", expect!["1:23 expected the end, found `+`"]);
        check("1 + if a { 1 } else { 2 }", expect!["1:5 expected a value, found `if`; put it in parentheses"]);
    }

    #[test]
    fn comments_and_all_kinds_of_spaces_separate() {
        check("a/* b */+//c\n\u{a0}b\u{2003}", expect!["(+ a b)"]);
    }

    #[test]
    fn a_long_source_is_refused() {
        let source = " ".repeat(MAX_SOURCE) + "a";
        assert_eq!(message(&source), "the expression is longer than 65536 bytes");
        assert!(parse(&source[1..]).is_ok());
    }

    #[test]
    fn as_many_nodes_as_in_go_are_allowed() {
        // The array is a node, too.
        let elements = |count| format!("[{}]", "1,".repeat(count));
        assert!(parse(&elements(MAX_NODES - 1)).is_ok());
        assert_eq!(message(&elements(MAX_NODES)), "the expression has more than 10000 nodes");
    }

    #[test]
    fn the_tree_is_no_deeper_than_the_nesting_that_is_allowed() {
        assert!(parse(&("!".repeat(99) + "a")).is_ok());
        for source in [
            "!".repeat(100) + "a",
            "a ** ".repeat(100) + "a",
            "a".to_owned() + &" | f()".repeat(100),
            "a".to_owned() + &" not in b".repeat(50),
        ] {
            assert_eq!(message(&source), "the expression is nested deeper than 100 levels", "{source}");
        }
    }

    #[test]
    fn nesting_to_the_limit_and_beyond_fits_on_the_stack_of_a_thread() {
        let parts = [
            ("(", ")"),
            ("[", "]"),
            ("{a: ", "}"),
            ("{(", "): 1}"),
            ("a.b(", ")"),
            ("a?.[", "]"),
            ("map(a, {", "})"),
            ("a ? ", " : b"),
            ("a ?: ", ""),
            ("let a = b; ", ""),
            ("if a {", "} else {b}"),
            ("-", ""),
            ("a ** ", ""),
            ("a or a and a == a .. a + a * a ** -f(", ")"),
        ];
        for (before, after) in parts {
            for levels in [25, 50, 99, 100, 101, 5000] {
                let source = before.repeat(levels) + "a" + &after.repeat(levels);
                let thread = std::thread::Builder::new().stack_size(2 << 20);
                thread.spawn(move || parse(&source).is_ok()).unwrap().join().unwrap();
            }
        }
    }

    #[test]
    fn chains_do_not_nest() {
        for link in [
            ".b", "?.b", ".b()", "[0]", "?.[0]", "[1:2]", " + b", " - 1 + b", " || b", " and b", " ?? b", " == b",
            " < b",
        ] {
            let source = "a".to_owned() + &link.repeat(2000);
            assert!(parse(&source).is_ok(), "{link}: {}", message(&source));
        }
    }

    #[test]
    fn choices_without_an_end_are_read_once() {
        // The first of these did not end: every operation around a choice read it again.
        for choices in ["a ? b : c ? d : e ? ", "a ? b : ", "a ? "] {
            let source = choices.repeat(100 / choices.matches('?').count());
            assert!(message(&source).starts_with("expected a value"));
        }
        assert!(parse("a ? b : if c { d } else { e } ? f : g").is_ok());
    }

    #[test]
    fn what_is_repeated_is_bounded() {
        let ordered = |levels| "1 < (".repeat(levels) + "1" + &") < 1".repeat(levels);
        assert!(parse(&ordered(10)).is_ok());
        assert_eq!(message(&ordered(40)), "`a < b < c` and `a ?: b` repeat more than 40000 nodes of the expression");
    }
}
