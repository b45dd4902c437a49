//! What a scalar of YAML is, as Kubernetes sees it: `sigs.k8s.io/yaml` over go-yaml v2, which is YAML 1.1 with its own
//! ideas. The rules, their order and their exceptions are those of `resolve.go` there.

use std::borrow::Cow;

/// A scalar after its type has been found.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar<'t> {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer that only fits without a sign.
    Large(u64),
    Float(f64),
    Text(Cow<'t, str>),
}

impl Scalar<'_> {
    pub(super) fn into_owned(self) -> Scalar<'static> {
        match self {
            Scalar::Null => Scalar::Null,
            Scalar::Bool(bool) => Scalar::Bool(bool),
            Scalar::Int(int) => Scalar::Int(int),
            Scalar::Large(large) => Scalar::Large(large),
            Scalar::Float(float) => Scalar::Float(float),
            Scalar::Text(text) => Scalar::Text(Cow::Owned(text.into_owned())),
        }
    }
}

/// How a scalar is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written<'t> {
    pub(super) text: &'t str,
    /// Without quotes and not as a block.
    pub(super) is_plain: bool,
    /// The name of its tag among those of YAML itself, such as `int`. Empty for any other tag.
    pub(super) tag: Option<&'t str>,
}

impl Written<'_> {
    /// Whether this key means that its value is merged into the mapping.
    pub(super) fn is_merge(self) -> bool {
        self.text == "<<" && (self.tag.is_none() && self.is_plain || self.tag == Some("merge"))
    }
}

/// What a scalar is not, though its tag says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotA(pub(super) &'static str);

/// Finds what a scalar is.
pub(super) fn resolve<'t>(written: Written<'t>) -> Result<Scalar<'t>, NotA> {
    let Written { text, is_plain, tag } = written;
    match tag {
        None if is_plain => Ok(resolve_plain(text)),
        Some("null") => expect(text, "null", |scalar| matches!(scalar, Scalar::Null)),
        Some("bool") => expect(text, "bool", |scalar| matches!(scalar, Scalar::Bool(_))),
        Some("int") => expect(text, "int", |scalar| matches!(scalar, Scalar::Int(_) | Scalar::Large(_))),
        Some("float") => match resolve_plain(text) {
            Scalar::Int(int) => Ok(Scalar::Float(int as f64)),
            float @ Scalar::Float(_) => Ok(float),
            _ => Err(NotA("float")),
        },
        Some("binary") => base64(text).map(|text| Scalar::Text(text.into())).ok_or(NotA("binary")),
        // Quoted text, text by its tag, a time (which stays text), and tags that nobody knows.
        _ => Ok(Scalar::Text(text.into())),
    }
}

fn expect<'t>(text: &'t str, tag: &'static str, is: impl FnOnce(&Scalar) -> bool) -> Result<Scalar<'t>, NotA> {
    let scalar = resolve_plain(text);
    if is(&scalar) { Ok(scalar) } else { Err(NotA(tag)) }
}

/// Finds what a scalar without quotes and tag is.
pub(super) fn resolve_plain(text: &str) -> Scalar<'_> {
    let found = match text.as_bytes().first() {
        None => Some(Scalar::Null),
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => word(text),
        Some(b'.') => word(text).or_else(|| dotted(text)),
        Some(b'0'..=b'9') => number(text),
        Some(b'+' | b'-') => word(text).or_else(|| number(text)),
        _ => None,
    };
    found.unwrap_or(Scalar::Text(text.into()))
}

fn word(text: &str) -> Option<Scalar<'static>> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Scalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Scalar::Bool(false),
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        _ => return None,
    })
}

/// A float that begins with its point. Underscores may stand between digits, as in a literal of Go.
fn dotted(text: &str) -> Option<Scalar<'static>> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let underscores = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_');
    let are_between_digits = underscores.map(|(at, _)| at).all(|at| at > 0 && is_digit(at - 1) && is_digit(at + 1));
    if are_between_digits { float(&text.replace('_', "")) } else { None }
}

/// A number that begins with a sign or a digit. Underscores may stand anywhere in it.
fn number(text: &str) -> Option<Scalar<'static>> {
    if let Some(int) = short_decimal(text.as_bytes()) {
        return Some(Scalar::Int(int));
    }
    // Most have none, and need no copy.
    let plain: Cow<'_, str> = if text.contains('_') { text.replace('_', "").into() } else { text.into() };
    let digits = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    let (digits, radix) = radix(digits);
    integer(digits, radix, plain.starts_with('-'), !plain.starts_with(['+', '-']))
        .or_else(|| float(&plain))
        .or_else(|| binary(&plain))
}

/// An integer as nearly all are written: digits, of which the first is no zero, and so few that they fit.
fn short_decimal(text: &[u8]) -> Option<i64> {
    let is_short = matches!(text, [b'0'] | [b'1'..=b'9', ..]) && text.len() <= 18;
    let digits = text.iter().map(|byte| byte.is_ascii_digit().then(|| i64::from(byte - b'0')));
    if is_short { digits.into_iter().try_fold(0, |int, digit| Some(10 * int + digit?)) } else { None }
}

/// The digits of an integer without what says their radix: `0x`, `0o`, `0b`, or a zero for octal.
fn radix(digits: &str) -> (&str, u32) {
    let prefixed = digits.strip_prefix('0').filter(|rest| !rest.is_empty());
    match prefixed.map(|rest| (rest, rest.as_bytes()[0].to_ascii_lowercase())) {
        Some((rest, b'x')) => (&rest[1..], 16),
        Some((rest, b'o')) => (&rest[1..], 8),
        Some((rest, b'b')) => (&rest[1..], 2),
        Some((rest, _)) => (rest, 8),
        None => (digits, 10),
    }
}

fn integer(digits: &str, radix: u32, is_negative: bool, may_be_large: bool) -> Option<Scalar<'static>> {
    // The parser of numbers would take another sign here.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let value = u64::from_str_radix(digits, radix).ok()?;
    if is_negative {
        return 0i64.checked_sub_unsigned(value).map(Scalar::Int);
    }
    match i64::try_from(value) {
        Ok(int) => Some(Scalar::Int(int)),
        // Go reads unsigned integers without a sign only.
        Err(_) => may_be_large.then_some(Scalar::Large(value)),
    }
}

/// A decimal float: digits with a point anywhere, and an exponent.
fn float(text: &str) -> Option<Scalar<'static>> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_decimal = unsigned.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    if !is_decimal {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(Scalar::Float(value))
}

/// What go-yaml takes for binary after all else failed: a sign may stand behind the prefix.
fn binary(text: &str) -> Option<Scalar<'static>> {
    let digits = text.strip_prefix("0b")?;
    i64::from_str_radix(digits, 2).ok().map(Scalar::Int)
}

/// The text that base64 stands for. Bytes that are not UTF-8 become U+FFFD on the way through JSON.
fn base64(text: &str) -> Option<String> {
    let clean: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let mut bytes = Vec::with_capacity(clean.len() / 4 * 3);
    let (groups, []) = clean.as_chunks::<4>() else { return None };
    for (number, group) in groups.iter().enumerate() {
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > 2 || padding > 0 && number + 1 < groups.len() {
            return None;
        }
        let values = group[..4 - padding].iter().map(|byte| sextet(*byte));
        let bits = values.chain([Some(0); 2]).take(4).try_fold(0u32, |bits, value| Some(bits << 6 | value?))?;
        bytes.extend(&bits.to_be_bytes()[1..4 - padding]);
    }
    let mut decoded = String::new();
    for chunk in bytes.utf8_chunks() {
        decoded.push_str(chunk.valid());
        decoded.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Some(decoded)
}

fn sextet(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Scalar) {
        let found = resolve(Written { text, is_plain: true, tag: None });
        // Floats that are not a number are equal to none.
        assert_eq!(format!("{found:?}"), format!("{:?}", Ok::<_, NotA>(expected)), "{text}");
    }

    #[track_caller]
    fn check_text(texts: &[&str]) {
        for text in texts {
            check(text, Scalar::Text((*text).into()));
        }
    }

    #[track_caller]
    fn check_tagged(tag: &str, text: &str, expected: Result<Scalar, NotA>) {
        for is_plain in [true, false] {
            assert_eq!(resolve(Written { text, is_plain, tag: Some(tag) }), expected);
        }
    }

    #[test]
    fn booleans_are_those_of_yaml_1_1_in_the_spellings_of_go_yaml() {
        for text in ["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"] {
            check(text, Scalar::Bool(true));
        }
        for text in ["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"] {
            check(text, Scalar::Bool(false));
        }
        check_text(&["yEs", "tRUE", "oN", "nO", "fALSE", "oFF", "yess", "o", "t", "f"]);
    }

    #[test]
    fn null_has_five_spellings() {
        for text in ["", "~", "null", "Null", "NULL"] {
            check(text, Scalar::Null);
        }
        check_text(&["nULL", "~~", "nil", "none"]);
    }

    #[test]
    fn integers_have_four_radices() {
        check("685230", Scalar::Int(685_230));
        check("+685_230", Scalar::Int(685_230));
        check("-685230", Scalar::Int(-685_230));
        check("02472256", Scalar::Int(685_230));
        check("0777", Scalar::Int(511));
        check("-0777", Scalar::Int(-511));
        check("0o777", Scalar::Int(511));
        check("0O17", Scalar::Int(15));
        check("0x_0A_74_AE", Scalar::Int(685_230));
        check("0XaE", Scalar::Int(174));
        check("+0x1F", Scalar::Int(31));
        check("0b1010_0111_0100_1010_1110", Scalar::Int(685_230));
        check("-0b101010", Scalar::Int(-42));
        check("0", Scalar::Int(0));
        check("-0", Scalar::Int(0));
        check("00", Scalar::Int(0));
        check("1__0_", Scalar::Int(10));
        check("0_x1_F", Scalar::Int(31));
    }

    #[test]
    fn a_sign_may_stand_behind_the_prefix_of_binary() {
        check("0b-11", Scalar::Int(-3));
        check("0b+11", Scalar::Int(3));
        check_text(&["-0b-11", "0x-1", "0o-1", "+-1", "--1"]);
    }

    #[test]
    fn integers_past_64_bits_are_floats() {
        check("9223372036854775807", Scalar::Int(i64::MAX));
        check("-9223372036854775808", Scalar::Int(i64::MIN));
        check("-0b1000000000000000000000000000000000000000000000000000000000000000", Scalar::Int(i64::MIN));
        check("9223372036854775808", Scalar::Large(1 << 63));
        check("18446744073709551615", Scalar::Large(u64::MAX));
        check("0xFFFFFFFFFFFFFFFF", Scalar::Large(u64::MAX));
        check("+9223372036854775808", Scalar::Float(9_223_372_036_854_775_808.0));
        check("-9223372036854775809", Scalar::Float(-9_223_372_036_854_775_808.0));
        check("18446744073709551616", Scalar::Float(18_446_744_073_709_551_616.0));
        check_text(&["0x10000000000000000"]);
    }

    #[test]
    fn octal_with_digits_that_it_does_not_have_is_a_float() {
        check("08", Scalar::Float(8.0));
        check("09.5", Scalar::Float(9.5));
        check_text(&["0o8", "0b2", "0xg", "0x", "0b", "0o"]);
    }

    #[test]
    fn floats_are_decimal() {
        check("6.8523e+5", Scalar::Float(685_230.0));
        check("685.230_15e+03", Scalar::Float(685_230.15));
        check("685_230.15", Scalar::Float(685_230.15));
        check("1.", Scalar::Float(1.0));
        check("1.e1", Scalar::Float(10.0));
        check("1e3", Scalar::Float(1000.0));
        check("-.5", Scalar::Float(-0.5));
        check("+.5", Scalar::Float(0.5));
        check(".5", Scalar::Float(0.5));
        check(".5e1_0", Scalar::Float(5e9));
        check(".5_5", Scalar::Float(0.55));
        check("1e-400", Scalar::Float(0.0));
        check_text(&[
            "._5", ".5_", ".5_e1", ".", "..", "-.", "1..2", "1e", "1e+", "0x1p3", "1e400", "-1e400", "e5", "inf",
        ]);
    }

    #[test]
    fn infinity_and_nan_have_a_point() {
        check(".nan", Scalar::Float(f64::NAN));
        check(".NaN", Scalar::Float(f64::NAN));
        check(".inf", Scalar::Float(f64::INFINITY));
        check("+.INF", Scalar::Float(f64::INFINITY));
        check("-.Inf", Scalar::Float(f64::NEG_INFINITY));
        check_text(&[".Nan", ".iNF", "-.nan", "Infinity", "nan", "+inf"]);
    }

    #[test]
    fn times_and_base_60_stay_text() {
        check_text(&["2001-01-01", "2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43.10", "190:20:30", "1:30"]);
    }

    #[test]
    fn other_text_is_text() {
        check_text(&["<<", "_1", "a", "ä", "-", "+", "*", "1a", "=", "1 000", "12e03x"]);
    }

    #[test]
    fn quotes_make_text_of_anything() {
        for text in ["1", "true", "", "~", ".inf", "<<"] {
            let found = resolve(Written { text, is_plain: false, tag: None });
            assert_eq!(found, Ok(Scalar::Text(text.into())));
        }
    }

    #[test]
    fn tags_say_what_a_scalar_is() {
        check_tagged("str", "1", Ok(Scalar::Text("1".into())));
        check_tagged("int", "1", Ok(Scalar::Int(1)));
        check_tagged("int", "0x10", Ok(Scalar::Int(16)));
        check_tagged("float", "1.1", Ok(Scalar::Float(1.1)));
        check_tagged("float", "-1", Ok(Scalar::Float(-1.0)));
        check_tagged("bool", "yes", Ok(Scalar::Bool(true)));
        check_tagged("null", "", Ok(Scalar::Null));
        check_tagged("timestamp", "2001-01-01", Ok(Scalar::Text("2001-01-01".into())));
        // A tag of somebody else.
        check_tagged("", "1", Ok(Scalar::Text("1".into())));
    }

    #[test]
    fn a_scalar_that_is_not_what_its_tag_says_is_refused() {
        check_tagged("int", "1.5", Err(NotA("int")));
        check_tagged("int", "x", Err(NotA("int")));
        check_tagged("float", "x", Err(NotA("float")));
        check_tagged("float", "18446744073709551615", Err(NotA("float")));
        check_tagged("bool", "1", Err(NotA("bool")));
        check_tagged("null", "x", Err(NotA("null")));
    }

    #[test]
    fn binary_is_decoded() {
        check_tagged("binary", "aGVsbG8=", Ok(Scalar::Text("hello".into())));
        check_tagged("binary", "aGVs\nbG8h\n", Ok(Scalar::Text("hello!".into())));
        check_tagged("binary", "aA==", Ok(Scalar::Text("h".into())));
        check_tagged("binary", "", Ok(Scalar::Text("".into())));
        check_tagged("binary", "//4=", Ok(Scalar::Text("\u{fffd}\u{fffd}".into())));
        for text in ["aGVsbG8", "a===", "====", "aA==aA==", "a GVs", "a-_s"] {
            check_tagged("binary", text, Err(NotA("binary")));
        }
    }

    #[test]
    fn a_merge_key_has_no_quotes_or_its_own_tag() {
        let is_merge = |text, is_plain, tag| Written { text, is_plain, tag }.is_merge();
        assert!(is_merge("<<", true, None));
        assert!(is_merge("<<", false, Some("merge")));
        assert!(!is_merge("<<", false, None));
        assert!(!is_merge("<<", true, Some("str")));
        assert!(!is_merge("<", true, None));
    }
}
