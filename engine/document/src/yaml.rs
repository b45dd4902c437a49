//! YAML into documents, as Kubernetes reads it: several documents in one text, scalars of YAML 1.1, merge keys, anchors.

mod aliases;
mod elements;
mod key;
mod load;
mod locate;
mod quick;
mod resolve;
mod value;

use crate::{
    document::Document,
    error::{Error, Position},
    options::Options,
};

pub use elements::element_lines;
pub use locate::{Step, locate};

/// A document and where it stands in its file.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlDocument {
    /// The line of its first value, from 1.
    pub line: usize,
    /// The document. One that is empty is `null`.
    pub document: Document,
}

/// Reads every document of a YAML text.
///
/// Keys that are no strings become strings, whole floats become integers, and the last one of a repeated key wins: all as
/// when Kubernetes turns YAML into JSON.
pub fn from_yaml(text: &str, options: &Options) -> Result<Vec<YamlDocument>, Error> {
    check_size(text, options)?;
    quick::load(text, options)
}

/// Reads every document of a YAML text by the general parser alone. It has the same result as [`from_yaml`], which leaves only
/// what is unusual to that parser, and takes longer: it is there to compare with.
pub fn from_yaml_generally(text: &str, options: &Options) -> Result<Vec<YamlDocument>, Error> {
    check_size(text, options)?;
    load::load(text, options)
}

fn check_size(text: &str, options: &Options) -> Result<(), Error> {
    let limit = options.limits.bytes.min(crate::parse::MAX_BYTES);
    if text.len() > limit { Err(Error::TooLarge { bytes: text.len(), limit }) } else { Ok(()) }
}

fn position(marker: &granit_parser::Marker) -> Position {
    Position { offset: marker.byte_offset().unwrap_or_default(), line: marker.line(), column: marker.col() + 1 }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// Compares the JSON of each document, after its line.
    #[track_caller]
    fn check(text: &str, expected: Expect) {
        let found = match from_yaml(text, &Options::default()) {
            Ok(documents) => {
                let lines = documents.iter().map(|found| format!("{}: {}", found.line, found.document.to_json()));
                lines.collect::<Vec<_>>().join("\n")
            }
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&found);
    }

    #[test]
    fn a_manifest_is_read() {
        check(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: api # the name\n  labels: {app: api, tier: 'web'}\nspec:\n  \
             containers:\n  - name: a\n    args: [\"-p\", 80]\n    command:\n    - sh\n    - |\n      echo 1\n      echo 2\n",
            expect![[
                r#"1: {"apiVersion":"v1","kind":"Pod","metadata":{"name":"api","labels":{"app":"api","tier":"web"}},"spec":{"containers":[{"name":"a","args":["-p",80],"command":["sh","echo 1\necho 2\n"]}]}}"#
            ]],
        );
    }

    #[test]
    fn json_is_yaml() {
        check(
            r#"{"a": [1, 2.5, null, true, "x\n"], "b": {}}"#,
            expect![[r#"1: {"a":[1,2.5,null,true,"x\n"],"b":{}}"#]],
        );
    }

    #[test]
    fn every_document_has_its_line() {
        check(
            "a: 1\n---\n# comment\nb: 2\n---\n\n- 3\n",
            expect![[r#"
            1: {"a":1}
            4: {"b":2}
            7: [3]"#]],
        );
        check(
            "--- a\n--- b\n",
            expect![[r#"
            1: "a"
            2: "b""#]],
        );
    }

    #[test]
    fn an_empty_document_is_null() {
        check("", expect![""]);
        check("# nothing\n", expect![""]);
        check(
            "---\n---\na: 1\n",
            expect![[r#"
                1: null
                3: {"a":1}"#]],
        );
    }

    #[test]
    fn scalars_are_what_kubernetes_takes_them_for() {
        check(
            "[yes, 'yes', 0777, 0o17, 1_000, ~, 2001-01-01, !!str 1, !!int '7', 0x10]",
            expect![[r#"1: [true,"yes",511,15,1000,null,"2001-01-01","1",7,16]"#]],
        );
    }

    #[test]
    fn whole_floats_become_integers_on_their_way_through_json() {
        check("[1.0, 1e3, 5.0e0, -0.0, 1.5, 1e20, 1e18]", expect!["1: [1,1000,5,0,1.5,1e20,1000000000000000000]"]);
        // The shortest text of this float is not its exact value.
        check("4611686018427387904.0", expect!["1: 4611686018427388000"]);
        check("18446744073709551615", expect!["1: 1.8446744073709552e19"]);
    }

    #[test]
    fn what_json_cannot_say_is_refused() {
        check("a: .inf", expect!["1:4: number is out of range"]);
        check("a:\n- -.INF", expect!["2:3: number is out of range"]);
        check("a: .nan", expect!["1:4: number is out of range"]);
    }

    #[test]
    fn keys_become_strings() {
        check("1: a\ntrue: b\n1.5: c\non: d\n.inf: e\n", expect![[r#"1: {"1":"a","1.5":"c","true":"d",".inf":"e"}"#]]);
        check("~: a", expect!["1:1: only a string, a number or a boolean can be a key"]);
        check("? [a]\n: b", expect!["1:3: only a string, a number or a boolean can be a key"]);
        check("? {a: b}\n: c", expect!["1:3: only a string, a number or a boolean can be a key"]);
    }

    #[test]
    fn the_last_one_of_a_repeated_key_wins() {
        check("a: 1\nb: 2\na: 3\n", expect![[r#"1: {"b":2,"a":3}"#]]);
    }

    #[test]
    fn aliases_stand_for_what_their_anchor_is_on() {
        check(
            "a: &x 1\nb: *x\nc: &y {d: [2]}\ne: [*y, *x, *y]",
            expect![[r#"1: {"a":1,"b":1,"c":{"d":[2]},"e":[{"d":[2]},1,{"d":[2]}]}"#]],
        );
        check("a: &x 1\nb: *x\nc: &x 2\nd: *x", expect![[r#"1: {"a":1,"b":1,"c":2,"d":2}"#]]);
        check("&k key: *k", expect![[r#"1: {"key":"key"}"#]]);
        check("a: &k 1e6\n*k : b", expect![[r#"1: {"a":1000000,"1e+06":"b"}"#]]);
        check("a: &x [1]\n*x : 2", expect!["2:1: only a string, a number or a boolean can be a key"]);
    }

    #[test]
    fn aliases_belong_to_their_document() {
        check("a: *x", expect!["1:4: while parsing node, found unknown anchor"]);
        check("a: &x 1\n---\nb: *x", expect!["3:4: while parsing node, found unknown anchor"]);
        check("a: &x [*x]", expect!["1:8: alias stands for a value that it is part of"]);
    }

    #[test]
    fn merge_keys_add_entries() {
        check(
            "base: &b {x: 1, z: 2}\nthis:\n  <<: *b\n  z: 3\n",
            expect![[r#"1: {"base":{"x":1,"z":2},"this":{"x":1,"z":3}}"#]],
        );
        check("{a: 1, <<: {b: {c: 2}}, d: 3}", expect![[r#"1: {"a":1,"b":{"c":2},"d":3}"#]]);
        check("{<<: {<<: {a: 1}, b: 2}}", expect![[r#"1: {"a":1,"b":2}"#]]);
    }

    #[test]
    fn a_merge_key_overrides_what_stands_before_it_as_in_go() {
        check("{a: 1, <<: {a: 2}}", expect![[r#"1: {"a":2}"#]]);
    }

    #[test]
    fn earlier_mappings_of_a_merged_list_take_precedence() {
        check("x: &x {a: 1}\nz: {<<: [*x, {a: 2, b: 3}]}", expect![[r#"1: {"x":{"a":1},"z":{"b":3,"a":1}}"#]]);
    }

    #[test]
    fn an_anchor_on_what_is_merged_can_be_used() {
        check(
            "a: {<<: &m {x: [1]}}\nb: *m\nc: {<<: *m}",
            expect![[r#"1: {"a":{"x":[1]},"b":{"x":[1]},"c":{"x":[1]}}"#]],
        );
    }

    #[test]
    fn only_mappings_can_be_merged() {
        check("<<: 1", expect!["1:5: only a mapping or a list of mappings can be merged"]);
        check("<<: 1.5", expect!["1:5: only a mapping or a list of mappings can be merged"]);
        check("<<: [{a: 1}, 2]", expect!["1:5: only a mapping or a list of mappings can be merged"]);
        check("a: &a [{b: 1}]\n<<: *a", expect!["2:5: only a mapping or a list of mappings can be merged"]);
    }

    #[test]
    fn quoted_merge_keys_are_keys() {
        check("\"<<\": {a: 1}", expect![[r#"1: {"<<":{"a":1}}"#]]);
    }

    #[test]
    fn a_block_ends_where_the_file_ends() {
        check("a: |\n  x", expect![[r#"1: {"a":"x"}"#]]);
        check("a: |\n  x\n", expect![[r#"1: {"a":"x\n"}"#]]);
        check("a: >+\n  x", expect![[r#"1: {"a":"x"}"#]]);
        check("a: |\n  x\n  ", expect![[r#"1: {"a":"x\n"}"#]]);
    }

    #[test]
    fn what_is_no_yaml_is_refused_with_its_place() {
        check("a: [1", expect!["1:4: unclosed bracket '['"]);
        check("a: b: c", expect!["1:5: mapping values are not allowed in this context"]);
        check("a:\n  - b\n c: d", expect!["3:2: while parsing a block mapping, did not find expected key"]);
        check("a: 'x", expect!["1:4: unclosed quote"]);
        check("a: !!int x", expect!["1:10: value is not of the type `int` that its tag says"]);
    }

    #[test]
    fn a_text_over_the_limit_is_refused() {
        let limits = crate::DocumentLimits { bytes: 3, depth: 10 };
        let error = from_yaml("a: 1", &Options { limits, ..Options::default() }).unwrap_err();
        assert_eq!(error.to_string(), "4 bytes are over the limit of 3 bytes");
    }

    #[test]
    fn what_comes_through_an_alias_is_masked() {
        let mask = [crate::Path::parse("data").unwrap()];
        let options = Options { mask: &mask, ..Options::default() };
        let documents = from_yaml("a: &a {b: hidden}\ndata: {<<: *a, c: *a}", &options).unwrap();
        assert_eq!(documents[0].document.to_json(), r#"{"a":{"b":"hidden"},"data":{"b":"***","c":{"b":"***"}}}"#);
    }
}
