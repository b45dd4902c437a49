//! Parsing: both take and refuse the same expressions, print them alike, and have every node at the same place.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::thread;

use expect_test::{Expect, expect};

use super::mutants::mutants;
use super::oracle::{Oracle, Parsed};

/// What a comparison found.
#[derive(Default)]
struct Report {
    /// Expressions that both take, with the same tree.
    taken: usize,
    /// Expressions that both refuse, for a reason at the same place.
    refused: usize,
    /// Expressions that both refuse, for reasons at two places: whoever reads an expression in another order stumbles over
    /// another of its mistakes, and we point at the start of a literal that has no end, and behind the end of the source.
    refused_elsewhere: usize,
    /// The rest, by what is different, with the first examples of each.
    different: BTreeMap<&'static str, (usize, Vec<String>)>,
}

/// How many examples of a difference are kept, and how many characters of each.
const EXAMPLES: usize = 3;
const EXAMPLE_LENGTH: usize = 200;

fn compare(oracle: &Oracle, expressions: &[String]) -> Report {
    let answers = oracle.parse(expressions);
    let mut report = Report::default();
    // The oracle takes a second, we take several as long as nothing is optimised.
    let half = expressions.len() / 2;
    thread::scope(|scope| {
        let first = scope.spawn(|| compare_some(&expressions[..half], &answers[..half]));
        let second = compare_some(&expressions[half..], &answers[half..]);
        report.add(first.join().unwrap());
        report.add(second);
    });
    report
}

fn compare_some(expressions: &[String], answers: &[Parsed]) -> Report {
    let mut report = Report::default();
    for (expression, answer) in expressions.iter().zip(answers) {
        match (portal_expr::canonical_with_places(expression), answer) {
            (Ok((ours, our_places)), Parsed::Tree { printed, places }) => {
                if ours != *printed {
                    report.difference("printed differently", format!("{expression}: {ours}, not {printed}"));
                } else if our_places != *places {
                    report.difference("at different places", expression.clone());
                } else {
                    report.taken += 1;
                }
            }
            (Err(error), Parsed::Refused { line, column, .. }) => {
                let same = (u64::from(error.line), u64::from(error.column)) == (*line, *column);
                *(if same { &mut report.refused } else { &mut report.refused_elsewhere }) += 1;
            }
            (Ok(_), Parsed::Refused { message, .. }) if message == "unexpected token Operator(\"=\")" => {
                report.difference("named arguments, which only we have", expression.clone());
            }
            (Ok((ours, _)), Parsed::Refused { message, .. }) => {
                report.difference("only taken by us", format!("{expression}: {ours}, not {message}"));
            }
            (Err(error), Parsed::Tree { .. }) => {
                report.difference("only refused by us", format!("{expression}: {}", error.message));
            }
        }
    }
    report
}

impl Report {
    fn difference(&mut self, what: &'static str, example: String) {
        let (count, examples) = self.different.entry(what).or_default();
        *count += 1;
        if examples.len() < EXAMPLES {
            examples.push(example.escape_debug().take(EXAMPLE_LENGTH).collect());
        }
    }

    fn add(&mut self, other: Self) {
        self.taken += other.taken;
        self.refused += other.refused;
        self.refused_elsewhere += other.refused_elsewhere;
        for (what, (count, examples)) in other.different {
            let ours = self.different.entry(what).or_default();
            ours.0 += count;
            ours.1.extend(examples);
        }
    }

    fn table(&self, name: &str) -> String {
        let Self { taken, refused, refused_elsewhere, different } = self;
        let mut table = format!(
            "{name}: both take {taken}, both refuse {refused} at the same place and {refused_elsewhere} elsewhere\n"
        );
        for (what, (count, examples)) in different {
            writeln!(table, "  {what}: {count}").unwrap();
            examples.iter().for_each(|example| writeln!(table, "    {example}").unwrap());
        }
        table
    }
}

#[track_caller]
fn check(name: &str, expressions: &[String], expected: Expect) {
    expected.assert_eq(&compare(&Oracle::find(), expressions).table(name));
}

#[test]
fn the_corpora_are_parsed_as_by_the_real_one() {
    let oracle = Oracle::find();
    let mut table = String::new();
    for name in ["generated", "fuzz", "seeds", "docs", "crowdsec"] {
        table += &compare(&oracle, &oracle.corpus(name)).table(name);
    }
    expect![[r#"
        generated: both take 43689, both refuse 0 at the same place and 0 elsewhere
        fuzz: both take 19546, both refuse 0 at the same place and 0 elsewhere
        seeds: both take 16376, both refuse 0 at the same place and 0 elsewhere
        docs: both take 135, both refuse 22 at the same place and 8 elsewhere
        crowdsec: both take 673, both refuse 0 at the same place and 0 elsewhere
    "#]]
    .assert_eq(&table);
}

#[test]
fn mutants_of_the_corpora_are_parsed_as_by_the_real_one() {
    let oracle = Oracle::find();
    let corpora: Vec<String> = ["generated", "seeds", "docs", "crowdsec"].map(|name| oracle.corpus(name)).concat();
    check(
        "mutants",
        &mutants(&corpora, 30_000),
        expect![[r#"
            mutants: both take 4458, both refuse 18377 at the same place and 7165 elsewhere
        "#]],
    );
}

/// Sources of as many nodes as can be, and of one more: something again and again, and then something that is one node.
fn at_the_limit(around: (&str, &str, usize), again: &str, nodes: usize, one: &str) -> [String; 2] {
    let (before, after, others) = around;
    let (times, rest) = ((10_000 - others) / nodes, (10_000 - others) % nodes);
    [rest, rest + 1].map(|rest| format!("{before}{}{}{after}", again.repeat(times), one.repeat(rest)))
}

#[test]
fn nodes_are_counted_as_by_the_real_one() {
    let elements =
        "f(), -1, a not in b, a<b<c, a?b:c, a?:b, if a{b}else{c}, (a;b), map(a,#), a|f(), {a:b}, (let a=b;c),";
    let sources = [
        at_the_limit(("[", "]", 1), elements, 2 + 2 + 4 + 6 + 4 + 3 + 3 + 3 + 4 + 3 + 4 + 3, "1,"),
        at_the_limit(("a", "", 1), ".a?.a.a()[a]?.[a][a:b]", 2 + 3 + 4 + 2 + 3 + 3, "[:]"),
        at_the_limit(("[a", "]", 2), "+a", 2, ",1"),
        at_the_limit(("a;a", "", 3), ";a", 1, ";a"),
    ];
    check(
        "at the limit",
        &sources.concat(),
        expect![[r#"
        at the limit: both take 4, both refuse 0 at the same place and 4 elsewhere
    "#]],
    );
}

#[test]
fn these_are_the_differences() {
    let sources = [
        // An extension of ours: arguments of the host's functions can have names.
        "list(ns, selector={a: 1})".to_owned(),
        // Go takes a text for the operator that it reads as.
        "a not 'in' b".to_owned(),
        // Go computes the code in 32 bits with a sign, and takes the last byte of what is negative.
        r#""\UFFFFFFFF""#.to_owned(),
        // Go has version 15 of Unicode, we have what pest has.
        "\u{1C89}".to_owned(),
        // Limits of ours, against sources that would take too much of the stack or of the time.
        "(".repeat(101) + "a" + &")".repeat(101),
        "!".repeat(101) + "a",
        "a".to_owned() + &"|f()".repeat(101),
        "1<(".repeat(15) + "1" + &")<1".repeat(15),
        "a".to_owned() + &" ".repeat(65536),
    ];
    let mut table = String::new();
    for (source, answer) in sources.iter().zip(Oracle::find().parse(&sources)) {
        let shown: String = source.chars().take(30).collect();
        let ours = portal_expr::canonical(source).unwrap_or_else(|error| error.message);
        let theirs = match answer {
            Parsed::Tree { printed, .. } => printed.chars().take(30).collect(),
            Parsed::Refused { message, .. } => message,
        };
        writeln!(table, "{shown:30}  we: {ours}; Go: {theirs}").unwrap();
    }
    expect![[r#"
        list(ns, selector={a: 1})       we: list(ns, selector={a: 1}); Go: unexpected token Operator("=")
        a not 'in' b                    we: expected an operator or the end, found `not`; between values it goes with `in`, `contains` and their like; Go: not (a in b)
        "\UFFFFFFFF"                    we: `\U` is followed by the code of a character in eight hexadecimal digits; Go: "\xff"
        Ᲊ                               we: Ᲊ; Go: unrecognized character: U+1C89
        ((((((((((((((((((((((((((((((  we: the expression is nested deeper than 100 levels; Go: a
        !!!!!!!!!!!!!!!!!!!!!!!!!!!!!!  we: the expression is nested deeper than 100 levels; Go: !!!!!!!!!!!!!!!!!!!!!!!!!!!!!!
        a|f()|f()|f()|f()|f()|f()|f()|  we: the expression is nested deeper than 100 levels; Go: f(f(f(f(f(f(f(f(f(f(f(f(f(f(f(
        1<(1<(1<(1<(1<(1<(1<(1<(1<(1<(  we: `a < b < c` and `a ?: b` repeat more than 40000 nodes of the expression; Go: 1 < (1 < (1 < (1 < (1 < (1 < (
        a                               we: the expression is longer than 65536 bytes; Go: a
    "#]].assert_eq(&table);
}
