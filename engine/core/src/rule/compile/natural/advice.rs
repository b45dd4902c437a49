//! Advice that was once poor: rules that were accepted and did something else, and errors that led nowhere.

use super::{check, check_accepted};

#[test]
fn a_number_beside_an_amount_is_one() {
    check_accepted(
        "{kind: Pod}",
        &[
            r#"sum(spec.containers, .resources.requests.cpu ?? 0) > "4""#,
            r#"sum(map(spec.containers, .resources.requests.memory), # ?? 0) > "8Gi""#,
            r#"(container.resources.limits.cpu ?? 0.5) > "4""#,
            r#"reduce(spec.containers, #acc + (.resources.requests.cpu ?? 0), quantity("0")) > "4""#,
        ],
    );
    check(
        "{kind: Pod}",
        &[
            ("sum(spec.containers, .resources.requests.cpu ?? 0) > 4", r#"`"4"`"#),
            ("(container.resources.limits.cpu ?? 0) == 0", r#"`"0"`"#),
            (r#"sum(spec.containers, .resources.limits.cpu ?? "") > "4""#, "may be a quantity or a text"),
            (r#"sum(map(spec.containers, .resources.requests.memory)) > "8Gi""#, "# ?? 0)` to count them as 0"),
        ],
    );
}
