//! Amounts as the API server stores them, and what pods ask for and may take.

use std::collections::BTreeMap;

use portal_crds::{Amount, Resources};
use serde_json::{Value, json};

/// What a pod asks for if nothing is said.
const REQUESTS: [(&str, &str); 2] = [("cpu", "100m"), ("memory", "64Mi")];

/// What it may take. The processor is not limited: whoever waits for an answer would wait for the next slice of time.
const LIMITS: [(&str, &str); 1] = [("memory", "512Mi")];

const ONE: i128 = 1_000_000_000;
const MILLI: i128 = ONE / 1000;

/// What a pod asks for and may take. What the instance leaves out has a default, which gives way where it would contradict what the instance
/// says: more cannot be asked for than may be taken.
pub(super) fn resources(resources: Option<&Resources>) -> Value {
    let given = |amounts: Option<&Option<BTreeMap<String, Amount>>>| -> BTreeMap<String, String> {
        let amounts = amounts.and_then(Option::as_ref).into_iter().flatten();
        amounts.map(|(name, amount)| (name.clone(), canonical(&amount.0))).collect()
    };
    let mut requests = given(resources.map(|resources| &resources.requests));
    let mut limits = given(resources.map(|resources| &resources.limits));
    for (name, amount) in LIMITS {
        let least = requests.get(name).filter(|asked| amount_of(asked) > amount_of(amount)).cloned();
        limits.entry(name.to_owned()).or_insert_with(|| least.unwrap_or_else(|| amount.to_owned()));
    }
    for (name, amount) in REQUESTS {
        let most = limits.get(name).filter(|limit| amount_of(limit) < amount_of(amount)).cloned();
        requests.entry(name.to_owned()).or_insert_with(|| most.unwrap_or_else(|| amount.to_owned()));
    }
    json!({ "requests": requests, "limits": limits })
}

/// An amount as the API server writes it, rounded up to a thousandth as it does. What is no amount stays, and is refused by it.
fn canonical(text: &str) -> String {
    let Some(amount) = amount_of(text) else { return text.to_owned() };
    let amount = amount.div_euclid(MILLI) * MILLI + if amount.rem_euclid(MILLI) == 0 { 0 } else { MILLI };
    let is_binary = text.ends_with('i') && amount >= 1024 * ONE && amount % ONE == 0;
    let (number, power) = match is_binary {
        true => without_factors(amount / ONE, 1024, 6),
        // Billionths: nine digits are behind the point.
        false => without_factors(amount, 1000, 9),
    };
    if amount == 0 {
        return "0".to_owned();
    }
    let has_exponent = text.contains(['e', 'E']) && !text.ends_with('E');
    match (is_binary, has_exponent) {
        (true, _) => format!("{number}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power]),
        (false, false) => format!("{number}{}", ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][power]),
        (false, true) if power == 3 => number.to_string(),
        (false, true) => format!("{number}e{}", (power as i64 - 3) * 3),
    }
}

/// A number without as many factors as it has, up to a number of them, and how many those are.
fn without_factors(mut number: i128, factor: i128, most: usize) -> (i128, usize) {
    let mut power = 0;
    while power < most && number != 0 && number % factor == 0 {
        number /= factor;
        power += 1;
    }
    (number, power)
}

/// An amount in billionths.
fn amount_of(text: &str) -> Option<i128> {
    portal_expr::Amount::parse(text).map(portal_expr::Amount::billionths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_as_the_api_server_does() {
        for (written, stored) in [
            ("100m", "100m"),
            ("0.1", "100m"),
            ("+1", "1"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1.5", "1500m"),
            ("0", "0"),
            ("0Mi", "0"),
            ("1u", "1m"),
            ("64Mi", "64Mi"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("512Ki", "512Ki"),
            ("0.5Ki", "512"),
            ("0.1Ki", "102400m"),
            ("1000", "1k"),
            ("1500k", "1500k"),
            ("2000k", "2M"),
            ("1e3", "1e3"),
            ("1E", "1E"),
            ("12e2", "1200"),
            ("1e4", "10e3"),
            ("67108864", "67108864"),
        ] {
            assert_eq!(canonical(written), stored, "{written}");
        }
    }

    #[test]
    fn defaults_give_way_to_what_the_instance_says() {
        let check = |given: Value, expected: Value| {
            let given: Resources = serde_json::from_value(given).unwrap();
            assert_eq!(resources(Some(&given)), expected);
        };
        let default = json!({ "requests": { "cpu": "100m", "memory": "64Mi" }, "limits": { "memory": "512Mi" } });
        assert_eq!(resources(None), default);
        check(json!({}), default);
        check(
            json!({ "requests": { "memory": "1Gi" } }),
            json!({ "requests": { "cpu": "100m", "memory": "1Gi" }, "limits": { "memory": "1Gi" } }),
        );
        check(
            json!({ "limits": { "memory": "32Mi", "cpu": "50m" } }),
            json!({ "requests": { "cpu": "50m", "memory": "32Mi" }, "limits": { "cpu": "50m", "memory": "32Mi" } }),
        );
        check(
            json!({ "requests": { "cpu": 1, "ephemeral-storage": "10M" } }),
            json!({
                "requests": { "cpu": "1", "ephemeral-storage": "10M", "memory": "64Mi" }, "limits": { "memory": "512Mi" },
            }),
        );
    }
}
