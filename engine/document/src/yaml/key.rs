//! How a scalar is written when it is a key: JSON has strings only, and `sigs.k8s.io/yaml` says which.

use std::borrow::Cow;

use super::resolve::Scalar;

/// The text of a key. Nothing for what no key can be.
pub(super) fn key_text<'s>(scalar: &'s Scalar) -> Option<Cow<'s, str>> {
    match scalar {
        Scalar::Text(text) => Some(Cow::Borrowed(text)),
        Scalar::Bool(true) => Some("true".into()),
        Scalar::Bool(false) => Some("false".into()),
        Scalar::Int(int) => Some(int.to_string().into()),
        Scalar::Float(float) => Some(float_text(*float as f32).into()),
        Scalar::Null | Scalar::Large(_) => None,
    }
}

/// A float as Go's `FormatFloat(float, 'g', -1, 32)` has it, with go-yaml's names for what is not finite.
fn float_text(float: f32) -> String {
    if float.is_nan() {
        return ".nan".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    float.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(scalar: Scalar, expected: Option<&str>) {
        assert_eq!(key_text(&scalar).as_deref(), expected);
    }

    #[test]
    fn keys_become_strings() {
        check(Scalar::Text("a b".into()), Some("a b"));
        check(Scalar::Int(-7), Some("-7"));
        check(Scalar::Bool(true), Some("true"));
        check(Scalar::Bool(false), Some("false"));
        check(Scalar::Null, None);
        check(Scalar::Large(u64::MAX), None);
    }

    #[test]
    fn floats_are_written_as_go_writes_small_floats() {
        check(Scalar::Float(1.0), Some("1"));
        check(Scalar::Float(0.1), Some("0.1"));
        check(Scalar::Float(-2.5), Some("-2.5"));
        check(Scalar::Float(100_000.0), Some("100000"));
        check(Scalar::Float(1e6), Some("1e+06"));
        check(Scalar::Float(1_234_567.5), Some("1.2345675e+06"));
        check(Scalar::Float(0.0001), Some("0.0001"));
        check(Scalar::Float(0.00001), Some("1e-05"));
        check(Scalar::Float(1.5e-30), Some("1.5e-30"));
        check(Scalar::Float(0.123_456_789_123), Some("0.12345679"));
        check(Scalar::Float(-0.0), Some("-0"));
    }

    #[test]
    fn floats_that_are_not_finite_have_the_names_of_yaml() {
        check(Scalar::Float(f64::NAN), Some(".nan"));
        check(Scalar::Float(f64::INFINITY), Some(".inf"));
        check(Scalar::Float(f64::NEG_INFINITY), Some("-.inf"));
        // Too large for the smaller floats that keys are written as.
        check(Scalar::Float(1e40), Some(".inf"));
    }
}
