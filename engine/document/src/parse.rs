//! JSON into a document.

mod elements;
mod escapes;
mod lex;
mod scan;
mod skip;
mod special;

use crate::{document::Document, error::Error, options::Options};

pub(crate) use elements::element_lines;
pub(crate) use special::find_special;

/// Input whose positions might not fit the payload of a word is refused whatever the caller allows: a byte of input is at
/// most one word.
pub(crate) const MAX_BYTES: usize = 128 << 20;

impl Document {
    /// Reads one JSON value as the API server does: strictly, but with U+FFFD for what is not Unicode, and with the last
    /// one of a key that an object has twice. Integers that fit 64 bits stay integers.
    pub fn parse(body: &[u8], options: &Options) -> Result<Document, Error> {
        let limit = options.limits.bytes.min(MAX_BYTES);
        if body.len() > limit {
            return Err(Error::TooLarge { bytes: body.len(), limit });
        }
        scan::scan(body, options).map(|(document, _)| document).map_err(|error| *error)
    }
}

/// Reads one JSON value, and says how many bytes buffers had at most on the way.
#[cfg(test)]
pub(crate) fn parse_and_measure(body: &[u8], options: &Options) -> Result<(Document, usize), Error> {
    scan::scan(body, options).map_err(|error| *error)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::{DocumentLimits, Path};

    #[track_caller]
    fn check(body: impl AsRef<[u8]>, expected: Expect) {
        let body = body.as_ref();
        let whole = render(body, &Options::default());
        expected.assert_eq(&whole);
        // What is stepped over is read as strictly as the rest.
        let wrapped = [b"[", body, b"]"].concat();
        let drop = [Path::parse("[*]").unwrap()];
        let dropped = Document::parse(&wrapped, &Options { drop: &drop, ..Options::default() });
        assert_eq!(dropped.is_ok(), Document::parse(&wrapped, &Options::default()).is_ok());
    }

    fn render(body: &[u8], options: &Options) -> String {
        match Document::parse(body, options) {
            Ok(document) => document.to_json(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_kind_of_value_is_read() {
        check("null", expect!["null"]);
        check(" [ true , false ] ", expect!["[true,false]"]);
        check("{}", expect!["{}"]);
        check("[]", expect!["[]"]);
        check(
            "\t{ \"a\" : [ ] , \"b\" : { } ,\r\n\"c\":{\"d\":[{\"e\":\"f\"}]} }",
            expect![[r#"{"a":[],"b":{},"c":{"d":[{"e":"f"}]}}"#]],
        );
    }

    #[test]
    fn integers_stay_integers() {
        check(
            "[0,-0,1,-1,134217727,134217728,-134217728,-134217729]",
            expect!["[0,0,1,-1,134217727,134217728,-134217728,-134217729]"],
        );
        check("[999999999999999999,1000000000000000000]", expect!["[999999999999999999,1000000000000000000]"]);
        check("[9223372036854775807,-9223372036854775808]", expect!["[9223372036854775807,-9223372036854775808]"]);
    }

    #[test]
    fn other_numbers_are_floats() {
        check("[1.0,-0.0,0.1,1e5,1E+5,1e-7]", expect!["[1.0,-0.0,0.1,100000.0,100000.0,1e-7]"]);
        check("[9223372036854775808,-9223372036854775809]", expect!["[9.223372036854776e18,-9.223372036854776e18]"]);
        check("[1e-400,5e-324,1.7976931348623157e308]", expect!["[0.0,5e-324,1.7976931348623157e308]"]);
    }

    #[test]
    fn numbers_past_64_bits_are_refused() {
        check("1e309", expect!["1:1: number is out of range"]);
        check("[0, -1e999]", expect!["1:5: number is out of range"]);
        check(format!("[1{}]", "0".repeat(400)), expect!["1:2: number is out of range"]);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        check("-", expect!["1:2: expected a digit, found the end"]);
        check("[-a]", expect!["1:3: expected a digit, found `a`"]);
        check("1.", expect!["1:3: expected a digit, found the end"]);
        check("[1.,2]", expect!["1:4: expected a digit, found `,`"]);
        check("1e+", expect!["1:4: expected a digit, found the end"]);
        check("01", expect!["1:2: expected the end, found `1`"]);
        check("[-01]", expect!["1:4: expected `,` or `]`, found `1`"]);
        check("+1", expect!["1:1: expected a value, found `+`"]);
        check(".5", expect!["1:1: expected a value, found `.`"]);
        check("NaN", expect!["1:1: expected a value, found `N`"]);
    }

    #[test]
    fn strings_are_decoded() {
        check(r#"["","a","ä€😀","\"\\\/\b\f\n\r\t"]"#, expect![[r#"["","a","ä€😀","\"\\/\u0008\u000c\n\r\t"]"#]]);
        check(r#"["\u00e4\ud83d\ude00"]"#, expect![[r#"["ä😀"]"#]]);
        check(r#"["\u0000"]"#, expect![[r#"["\u0000"]"#]]);
        check(r#"{"\u0061":1}"#, expect![[r#"{"a":1}"#]]);
    }

    #[test]
    fn what_is_not_unicode_becomes_a_replacement_character() {
        check(b"[\"a\xffb\"]", expect![[r#"["a�b"]"#]]);
        check(b"{\"\xff\":\"\xe2\x82\"}", expect![[r#"{"�":"��"}"#]]);
        check(r#"["\ud83d","\ude00x"]"#, expect![[r#"["�","�x"]"#]]);
    }

    #[test]
    fn what_is_no_string_is_refused() {
        check(r#"["a"#, expect!["1:4: expected the closing quote of a string, found the end"]);
        check("[\"a\nb\"]", expect!["1:4: expected the closing quote of a string, found the control character U+000A"]);
        check("[\"\0\"]", expect!["1:3: expected the closing quote of a string, found the control character U+0000"]);
        check(r#"["\x"]"#, expect!["1:4: expected the letter of an escape, found `x`"]);
        check(r#"["\'"]"#, expect!["1:4: expected the letter of an escape, found `'`"]);
        check(r#"["\u12g4"]"#, expect!["1:7: expected a hexadecimal digit, found `g`"]);
        check(r#"["\"#, expect!["1:4: expected the letter of an escape, found the end"]);
        check("['a']", expect!["1:2: expected a value, found `'`"]);
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        check("", expect!["1:1: expected a value, found the end"]);
        check(" \n ", expect!["2:2: expected a value, found the end"]);
        check("nul", expect!["1:4: expected null, found the end"]);
        check("trux", expect!["1:4: expected true, found `x`"]);
        check("[1 2]", expect!["1:4: expected `,` or `]`, found `2`"]);
        check("[1,]", expect!["1:4: expected a value, found `]`"]);
        check("[1", expect!["1:3: expected `,` or `]`, found the end"]);
        check("[1}", expect!["1:3: expected `,` or `]`, found `}`"]);
        check(r#"{"a":1"#, expect!["1:7: expected `,` or `}`, found the end"]);
        check(r#"{"a":1]"#, expect!["1:7: expected `,` or `}`, found `]`"]);
        check(r#"{"a" 1}"#, expect!["1:6: expected `:`, found `1`"]);
        check(r#"{"a":}"#, expect!["1:6: expected a value, found `}`"]);
        check(r#"{"a":1,}"#, expect!["1:8: expected a key in quotes, found `}`"]);
        check("{a:1}", expect!["1:2: expected a key in quotes, found `a`"]);
        check("{\n  \"ä\": x\n}", expect!["2:8: expected a value, found `x`"]);
        check("{} {}", expect!["1:4: expected the end, found `{`"]);
        check("[1]\0", expect!["1:4: expected the end, found the control character U+0000"]);
        check(b"\xff", expect!["1:1: expected a value, found the byte 0xFF"]);
        check("\u{feff}{}", expect!["1:1: expected a value, found `\u{feff}`"]);
    }

    #[test]
    fn the_last_one_of_a_repeated_key_wins() {
        check(r#"{"a":1,"b":2,"a":3}"#, expect![[r#"{"b":2,"a":3}"#]]);
        check(r#"{"a":{"x":1},"a":{"y":2}}"#, expect![[r#"{"a":{"y":2}}"#]]);
        check(r#"{"a":1,"\u0061":2}"#, expect![[r#"{"a":2}"#]]);
    }

    #[test]
    fn a_body_over_the_limit_is_refused() {
        let options = Options { limits: DocumentLimits { bytes: 4, depth: 10 }, ..Options::default() };
        assert_eq!(render(b"[12]", &options), "[12]");
        assert_eq!(render(b"[123]", &options), "5 bytes are over the limit of 4 bytes");
    }

    #[test]
    fn nesting_over_the_limit_is_refused_with_its_place() {
        let options = Options { limits: DocumentLimits { bytes: 100, depth: 2 }, ..Options::default() };
        assert_eq!(render(br#"[{"a":1}]"#, &options), r#"[{"a":1}]"#);
        assert_eq!(render(br#"[{"a":[]}]"#, &options), "1:7: nesting is over the limit of 2 levels");
    }

    #[test]
    fn a_guess_that_is_almost_right_is_wrong() {
        // Each body is read when the one before is what is expected.
        check(
            r#"{"containerPort":8080,"protocol":"TCP"}        "#,
            expect![[r#"{"containerPort":8080,"protocol":"TCP"}"#]],
        );
        check(
            r#"{"containerPorts":8080,"protocol":"TCPX"}      "#,
            expect![[r#"{"containerPorts":8080,"protocol":"TCPX"}"#]],
        );
        check(
            r#"{"containerPort" :8080,"protocol": "TC"}       "#,
            expect![[r#"{"containerPort":8080,"protocol":"TC"}"#]],
        );
        check(
            r#"{"containerPort\u0073":1,"protoco":"T\u0043P"} "#,
            expect![[r#"{"containerPorts":1,"protoco":"TCP"}"#]],
        );
        let long =
            r#"{"requiredDuringSchedulingIgnoredDuringExecution":"requiredDuringSchedulingIgnoredDuringExecution"}"#;
        check(
            long,
            expect![[
                r#"{"requiredDuringSchedulingIgnoredDuringExecution":"requiredDuringSchedulingIgnoredDuringExecution"}"#
            ]],
        );
        check(
            long.replace("cution", "cutioN"),
            expect![[
                r#"{"requiredDuringSchedulingIgnoredDuringExecutioN":"requiredDuringSchedulingIgnoredDuringExecutioN"}"#
            ]],
        );
    }
}
