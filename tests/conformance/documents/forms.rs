//! Every form of a scalar, in every position; blocks with every indicator; and what else YAML has.

use expect_test::{Expect, expect};

use super::compare_yaml;

/// Plain scalars that mean something, or almost do.
const PLAIN: &str = "
    y Y yes Yes YES yEs n N no No NO nO true True TRUE tRUE false False FALSE on On ON oN off Off OFF oFF
    ~ null Null NULL nULL none nil
    .nan .NaN .NAN .Nan .inf .Inf .INF .iNf +.inf -.inf +.INF -.Inf inf nan Infinity
    0 -0 +0 00 1 -1 +1 007 0777 -0777 08 09 0_7 0_0 0o17 0O17 0o8 -0o17 +0o7 0x1F 0X1f +0x1F -0x1f 0xg 0x 0x_1F 0b11 -0b11 +0b11
    0b-11 0b+1 -0b-1 0b 0b2 0B1 1_000 1__0 1_ _1 -_1 0x1_F 0b1_1
    134217727 134217728 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809
    18446744073709551615 18446744073709551616 +9223372036854775808 123456789012345678901234567890 0x7fffffffffffffff
    0xffffffffffffffff 0x10000000000000000 01777777777777777777777
    0.0 -0.0 1.0 1.5 -1.5 +1.5 .5 -.5 +.5 5. -5. . .. -. +. 1..2 1.2.3 1e3 1E3 1e+3 1e-3 1e20 1e21 1e22 1e400 -1e400 1e-400
    1.e1 .e1 1e 1e+ e1 1.5e3 1.5_5 .5_5 ._5 .5_ .5e1_0 685.230_15e+03 0x1p3 0x1.8p1 4611686018427387904.0 9007199254740993.0
    1e15 1e-5 1e6 1234567.5 123456789.0 0.1 0.30000000000000004 5e-324 2.2250738585072014e-308 1.7976931348623157e308
    1:30 190:20:30 1:60 -1:30 1:30.5 20:30
    2001-01-01 2001-1-1 2001-01-01T00:00:00Z 2001-01-01t00:00:00z 2001-12-14T21:59:43.10-05:00 2001-13-01 2001-01-32 0001-01-01
    << = a a-b a:b a#b http://x/y 1.2.3.4 100m 1Gi 1e3m v1 - -a ?a :a @a `a %a !a &a *a |a >a 'a \"a [a ]a {a }a ,a #a a,b a]b a}b a[b
    é ä日本 😀 \\n a\\b 1a 0a 0x1g 1,000 1' 'a' \"a\" '' \"\" 'it''s' \"a\\nb\" '12' \"12\" 'yes' \"null\" '~' \"\\x41\" \"\\u00e4\" \"\\U0001F600\"
    \"\\/\" \"\\e\" \"\\0\" \"\\_\" \"\\N\" \"\\L\" \"\\P\" \"\\a\\b\\t\\v\\f\\r\" \"\\q\" \"\\x4\" \"\\ud83d\" \"\\'\"
    aGVsbG8= aGVsbG8 /w== gA==
";

/// Scalars with spaces in them.
const SPACED: [&str; 24] = [
    "",
    " ",
    "a b",
    "a  b",
    "2001-12-14 21:59:43.10 -5",
    "2001-01-01 00:00:00",
    "1 2",
    "- a",
    "? a",
    ": a",
    "a: b",
    "a #b",
    "a# b",
    "'a b'",
    "\"a b\"",
    "'a: b'",
    "\"a #b\"",
    "\"a\\\n  b\"",
    "'a\n\n  b'",
    "a\n  b",
    "a\n\n  b",
    "\"a\tb\"",
    "a\tb",
    "'a' b",
];

/// Before a scalar.
const TAGS: [&str; 14] = [
    "",
    "! ",
    "!!str ",
    "!!int ",
    "!!float ",
    "!!bool ",
    "!!null ",
    "!!binary ",
    "!!timestamp ",
    "!foo ",
    "!!foo ",
    "!!seq ",
    "!<tag:yaml.org,2002:int> ",
    "&x ",
];

/// Where a scalar can stand, instead of the `@`.
const POSITIONS: [&str; 12] = [
    "@",
    "@\n",
    "a: @\n",
    "@: v\n",
    "- @\n",
    "[@, x]",
    "[x, @]",
    "{a: @}",
    "{@: v}",
    "{@}",
    "? @\n: v\n",
    "a:\n  b: @ # comment\n",
];

/// What a block scalar holds, each line indented by two where it is used.
const BLOCKS: [&str; 14] = [
    "",
    "a\n",
    "a",
    "a\nb\n",
    "a\n\nb\n",
    "a\n\n\n",
    "\na\n",
    "\n\n",
    "  a\nb\n",
    "a\n  b\nc\n",
    "a\n\n  b\n\nc\n",
    "a #b\n",
    "# a\n",
    "a\t\n \tb\n",
];

const INDICATORS: &str = "| > |- >- |+ >+ |1 |2 |3 >2 |2- |-2 >+2 >2+ |9 |0 |10 |-+ |x";

/// Whole texts. None has two keys of different types that become the same text: Go takes whichever its map gives it last,
/// which is another one each time.
const TEXTS: &str = r#"

# only a comment
---
---\n---\na: 1
--- a
---\na: 1\n...\n
a: 1\n---\nb: 2
a: 1\n...\nb: 2
...\n
%YAML 1.1\n---\na: 1
%YAML 1.2\n---\na: yes
%TAG ! tag:example.org,2000:\n---\na: !b 1
%FOO bar\n---\na: 1
\xEF\xBB\xBFa: 1
a: 1\r\nb:\r\n- c\r\n- d\r\n
a: 1\rb: 2\r
a: |\r\n  x\r\n  y\r\n
a: "x\r\n  y"\r\n
a:\tb
a: b\t
a: b\t# c
\ta: b
a:\n\tb: c
a:\n  b: c\n\td: e
-\ta
- a\n-\tb
[a,\tb]
{a:\tb}
a : b
a :b
a:b
"a":b
{"a":b}
{"a":1,"b":[2]}
{a:1}
[a:1]
[a: 1]
[a: 1, b]
[? a : b]
{? a : b}
{a, b: c}
{a: , b: c}
{a: b,}
[a,]
[,]
[a,,b]
{,}
[a
{a: b
]
}
a: [\n  b,\n  c\n]
a: [\nb,\nc\n]
a: {\n  b: c,\n  d: e\n}
a: {b: c\n  d: e}
a: b\n  c: d
a: b\n c
a:\n- b\n- c
a:\n  - b\n  - c
a:\n  - b\n - c
- - a\n  - b\n- c
- a: b\n  c: d\n- e: f
- a: b\n c: d
-
- \n- a
- -
a:
a:\nb:
? a
? a\n: b
? a\n? b
? [a]\n: b
? {a: b}\n: c
? |\n  a\n: b
: a
a: &x 1\nb: *x
a: &x {b: 1}\nc: *x
a: &x [1]\nb: [*x, *x]
a: *x
a: &x 1\na2: &x 2\nb: *x
a: &x 1\n---\nb: *x
&x a: *x
a: &x b\n*x : c
a: &x [1]\n*x : c
a: &x\n  b: 1\nc: *x
a: &x\nb: *x
a: & b
a: * b
a: &x &y 1
a: &x !!str 1
a: !!str &x 1
a: &x *x
a: &x [*x]
a: &x {b: *x}
&x\na: 1
&x {a: 1}
<<: {a: 1}
<<: {a: 1}\na: 2
a: 2\n<<: {a: 1}
<<: [{a: 1}, {a: 2, b: 3}]
<<: 1
<<: [1]
<<: []
<<: {}
<<: ~
<<:
<<: a
<<: [[{a: 1}]]
"<<": {a: 1}
!!merge <<: {a: 1}
!!str <<: {a: 1}
a: <<
[<<]
x: &x {a: 1}\ny: {<<: *x, b: 2}
x: &x {a: 1}\ny: {<<: [*x, *x], b: 2}
x: &x {a: 1}\ny: {<<: *x, <<: {a: 2}}
x: &x [{a: 1}]\n<<: *x
x: &x {<<: {a: 1}, b: 2}\ny: {<<: *x}
{<<: {1: a, yes: b}}
a: 1\na: 2
{a: 1, a: 2}
1: a\n0x1: b
yes: a\ntrue: b
1.0: a
1e3: a
1.5: a\n1.50: b
~: a
null: a
: b
.inf: a
.nan: a
18446744073709551615: a
2001-01-01: a
2001-01-01T00:00:00Z: a
!!binary aGVsbG8=: a
!!int "1": a
!!float 1: a
!!int 1.5
!!float x
!!bool 1
!!null a
!!str ~
!!str
!!int
!!map {a: 1}
!!map [a]
!!seq [a]
!!seq {a: 1}
!!set {a, b}
!!omap [a: 1]
!!binary "aGVs\n  bG8="
!!binary x
!!timestamp 2001-01-01
!!timestamp x
!foo {a: 1}
!foo [a]
!<x> a
!x!y a
!! a
!!str [a]
!!str {a: 1}
!!int {a: 1}
a: 'x\n  y'
a: 'x\n\n  y'
a: 'x\ny'
a: "x\\\n  y"
a: "x \\\n  y"
a: "x\n\n  y\n"
a: "x
a: 'x
a: "\\x"
a: "x" y
a: 'x'y
'a' : b
"a b": c
'a''b': c
? "a\n  b"\n: c
"a\n  b": c
a\nb: c
a b: c
a # b: c
a: b #c
a: b# c
a: #b
#a\n#b\na: 1 #c\n#d
a: 1 # \u00e9
a:\n  # comment\n  b: 1
a:\n# comment\n  b: 1
- a\n# comment\n- b
a: |\n  x\n# comment\nb: 1
a: |\n  x\n  # no comment\n
a: | # comment\n  x
a: |# no comment\n  x
a: >\n  x\n   y\n  z
a: |\n x\n  y
a: |\n  x\n y
a: |\n\tx
a: |\n  x\n\ty
- |\n a\n- b
- >-\n  a\n  b\n-\n  c
|\n a
|\na
>\n a\n b
--- |\na\nb
--- >\n  a
a: |\n\n  x
a: |\n     \n  x
a: |\n  x\n     \n
a: |2\n   x\n  y
a: |1\n x
a: |+\n\nb: 1
a: |-\nb: 1
a: |
a: >
a: @b
a: `b
a: %b
%a
a: -
a: - b
a: ?
a: ? b
a: :
a: : b
a: ,
a: ]
a: b]
a: b, c
a: [b]c
a: "b": c
a: b: c
- a: - b
a: [- b]
a: [-b]
a: [-]
a: {-: b}
[a, b: c, {d: e}]
[[[[a]]]]
{a: {b: {c: {}}}}
[]
{}
[ ]
{ }
[] a
{} a
[]: a
{}: a
[a]: b
{a: b}: c
\u0085
a: \u0085b
a: b\u2028c
a: "b\u2029c"
a: \u00a0b
a: \u200bb
a: \ufeffb
a: \u0000
a: \u0001b
a: \u007fb
a: \u0080b
a: \ud7ff
a: \ufffd
a: \uffff
"\u0000"
a: "\t"
a: '\t'
a: 1 2 3
12e03: x
a: 0x1F\nb: 0o17\nc: 017
apiVersion: v1\nkind: List\nitems:\n- {}\n
"#;

fn scalars() -> Vec<String> {
    PLAIN.split_whitespace().chain(SPACED).map(str::to_owned).collect()
}

/// The text of a line of [`TEXTS`].
fn unescape(line: &str) -> String {
    let text = line.replace("\\\\", "\u{1}").replace("\\r", "\r").replace("\\n", "\n").replace("\\t", "\t");
    let mut parts = text.replace("\\xEF\\xBB\\xBF", "\u{feff}").replace('\u{1}', "\\");
    while let Some(at) = parts.find("\\u") {
        let code = u32::from_str_radix(&parts[at + 2..at + 6], 16).unwrap();
        parts.replace_range(at..at + 6, &char::from_u32(code).unwrap().to_string());
    }
    parts
}

#[track_caller]
fn check(texts: &[String], expected: Expect) {
    expected.assert_eq(&compare_yaml(texts).table());
}

#[test]
fn every_scalar_is_read_alike_in_every_position() {
    let mut texts = Vec::new();
    for scalar in scalars() {
        for position in POSITIONS {
            texts.extend(TAGS.map(|tag| position.replace('@', &format!("{tag}{scalar}"))));
        }
    }
    check(
        &texts,
        expect![[r#"
            both take 23283, both refuse 19004
            another value: 31
                "[?a, x]": ["?a","x"], not [{"m":[["a",null]]},"x"]
                "[x, ?a]": ["x","?a"], not ["x",{"m":[["a",null]]}]
                "{?a: v}": {"m":[["?a","v"]]}, not {"m":[["a","v"]]}
            only refused by us: did not find expected <document start>: 125
                "! !a": ""
                "!!str !a": ""
                "!!null !a": null
            only refused by us: invalid indentation in multiline quoted scalar: 7
                "a:\n  b: 'a\n\n  b' # comment\n": {"m":[["a",{"m":[["b","a\nb"]]}]]}
                "a:\n  b: ! 'a\n\n  b' # comment\n": {"m":[["a",{"m":[["b","a\nb"]]}]]}
                "a:\n  b: !!str 'a\n\n  b' # comment\n": {"m":[["a",{"m":[["b","a\nb"]]}]]}
            only refused by us: invalid trailing content after single-quoted scalar: 14
                "'a' b": "a"
                "! 'a' b": "a"
                "!!str 'a' b": "a"
            only refused by us: misplaced bracket: 48
                "! ]a": ""
                "!!str ]a": ""
                "!!null ]a": null
            only refused by us: only a string, a number or a boolean can be a key: 1
                "{}a: v}": {"m":[]}
            only refused by us: plain scalar cannot start with '-' followed by ,[]{}: 28
                "[-, x]": ["-","x"]
                "[! -, x]": ["-","x"]
                "[!!str -, x]": ["-","x"]
            only refused by us: value is not of the type `binary` that its tag says: 5
                "[!!binary :a, x]": [{"m":[["","a"]]},"x"]
                "[x, !!binary :a]": ["x",{"m":[["","a"]]}]
                "{!!binary :a}": {"m":[["","a"]]}
            only refused by us: while parsing a quoted scalar, found unknown escape character: 84
                "\"\\'\"": "'"
                "! \"\\'\"": "'"
                "!!str \"\\'\"": "'"
            only taken by us: did not find expected ',' or ']': 16
                "[! ?a, x]": ["?a","x"]
                "[!!str ?a, x]": ["?a","x"]
                "[!!timestamp ?a, x]": ["?a","x"]
            only taken by us: did not find expected ',' or '}': 67
                "{a: ! ?a}": {"m":[["a","?a"]]}
                "{a: !!str ?a}": {"m":[["a","?a"]]}
                "{a: !!timestamp ?a}": {"m":[["a","?a"]]}
            only taken by us: did not find expected node content: 6
                "{a: ?a}": {"m":[["a","?a"]]}
                "[:a, x]": [":a","x"]
                "[x, :a]": ["x",":a"]
            only taken by us: did not find expected whitespace or line break: 4
                "{a: !a}": {"m":[["a",""]]}
                "{a: &x !a}": {"m":[["a",""]]}
                "{!a}": {"m":[["",null]]}
            only taken by us: found unknown escape character: 96
                "\"\\/\"": "/"
                "! \"\\/\"": "/"
                "!!str \"\\/\"": "/"
            only taken by us: map merge requires map or sequence of maps as the value: 4
                "! <<: v\n": {"m":[["<<","v"]]}
                "{! <<: v}": {"m":[["<<","v"]]}
                "{! <<}": {"m":[["<<",null]]}
            only taken by us: not a !!timestamp: 2868
                "!!timestamp y": "y"
                "!!timestamp y\n": "y"
                "a: !!timestamp y\n": {"m":[["a","y"]]}
            only taken by us: unsupported map key: 5
                "[&x :a, x]": [":a","x"]
                "[x, &x :a]": ["x",":a"]
                "{&x :a}": {"m":[[":a",null]]}
        "#]],
    );
}

#[test]
fn every_block_is_read_alike_with_every_indicator() {
    let mut texts = Vec::new();
    for indicator in INDICATORS.split_whitespace() {
        for block in BLOCKS {
            for (before, indent, after) in [
                ("", "  ", ""),
                ("a: ", "  ", ""),
                ("a: ", "  ", "b: 1\n"),
                ("a:\n  b: ", "    ", "  c: 1\n"),
                ("- ", "  ", "- x\n"),
                ("a: ", " ", ""),
            ] {
                let lines: String = block
                    .split_inclusive('\n')
                    .map(|line| if line == "\n" { line.to_owned() } else { format!("{indent}{line}") })
                    .collect();
                texts.push(format!("{before}{indicator}\n{lines}{after}"));
            }
        }
    }
    check(
        &texts,
        expect![[r#"
        both take 1008, both refuse 542
        only refused by us: did not find expected <document start>: 7
            "|\n    a\n  b\n": "a\n"
            ">\n    a\n  b\n": "a\n"
            "|-\n    a\n  b\n": "a"
        only refused by us: wrongly indented line in block scalar: 39
            "a: |2\n # a\n": {"m":[["a",""]]}
            "|3\n  a\n": ""
            "|3\n  a": ""
    "#]],
    );
}

#[test]
fn what_else_yaml_has_is_read_alike() {
    check(
        &TEXTS.lines().map(unescape).collect::<Vec<_>>(),
        expect![[r#"
            both take 169, both refuse 80
            another value: 3
                "|\na": "a", not ""
                "--- |\na\nb": "a\nb", not ""
                "\u{85}": "", not null
            only refused by us: a BOM must not appear inside a document: 1
                "a: \u{feff}b": {"m":[["a","﻿b"]]}
            only refused by us: comments must be separated from other tokens by whitespace: 1
                "a: |# no comment\n  x": {"m":[["a","x"]]}
            only refused by us: did not find expected <document start>: 3
                "\"a\":b": "a"
                "[] a": []
                "{} a": {"m":[]}
            only refused by us: invalid indentation in multiline quoted scalar: 1
                "a: 'x\ny'": {"m":[["a","x y"]]}
            only refused by us: only a string, a number or a boolean can be a key: 2
                "[]: a": []
                "{}: a": {"m":[]}
            only refused by us: plain scalar cannot start with '-' followed by ,[]{}: 1
                "a: [-]": {"m":[["a",["-"]]]}
            only refused by us: while parsing node, found unknown anchor: 1
                "a: &x 1\n---\nb: *x": {"m":[["a",{"i":"1"}]]}
            only taken by us: could not find expected ':': 2
                "a: \u{85}b": {"m":[["a","b"]]}
                "a: b\u{2028}c": {"m":[["a","b c"]]}
            only taken by us: did not find expected node content: 1
                "...\n": null
            only taken by us: found character that cannot start any token: 3
                "\ta: b": {"m":[["a","b"]]}
                "-\ta": ["a"]
                "- a\n-\tb": ["a","b"]
            only taken by us: found incompatible YAML document: 1
                "%YAML 1.2\n---\na: yes": {"m":[["a",true]]}
            only taken by us: found unknown directive name: 1
                "%FOO bar\n---\na: 1": {"m":[["a",{"i":"1"}]]}
            only taken by us: not a !!timestamp: 1
                "!!timestamp x": "x"
        "#]],
    );
}
