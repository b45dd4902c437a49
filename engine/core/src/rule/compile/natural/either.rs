//! What may be a number or a text.

use super::{DEPLOYMENT, PDB, check, check_accepted, check_warned};

#[test]
fn a_type_that_was_asked_for_is_known() {
    check(
        PDB,
        &[(
            "object.spec.minAvailable > 3",
            "`type(object.spec.minAvailable) == \"int\" && object.spec.minAvailable > 3`",
        )],
    );
    check_accepted(
        PDB,
        &[
            "type(object.spec.minAvailable) == \"int\" && object.spec.minAvailable < 3",
            "type(object.spec.minAvailable) != \"string\" || object.spec.minAvailable endsWith \"%\"",
        ],
    );
    check(PDB, &[("type(object.spec.minAvailable) == \"string\" && object.spec.minAvailable < 3", "may be a number")]);
    check(
        "{kind: Pod}",
        &[(
            "date(metadata.annotations.expires) < now()",
            "write `metadata.annotations.expires != nil && …` to leave out what has none, or `date(",
        )],
    );
}

#[test]
fn what_may_be_a_number_or_a_text_is_asked_for_both() {
    check_warned(
        PDB,
        &[
            (
                "object.spec.maxUnavailable == 0",
                r#"0 is not "0%": write `object.spec.maxUnavailable in [0, "0%"]` for both"#,
            ),
            (r#""0%" == object.spec.maxUnavailable"#, r#"`object.spec.maxUnavailable in [0, "0%"]`"#),
            ("object.spec.maxUnavailable != 0", r#"`object.spec.maxUnavailable not in [0, "0%"]`"#),
            ("object.spec.maxUnavailable not in [0, 1]", r#"`object.spec.maxUnavailable not in [0, 1, "0%"]`"#),
            ("(object.spec.maxUnavailable ?? 1) == 0", r#"`(object.spec.maxUnavailable ?? 1) in [0, "0%"]`"#),
            ("let x = object.spec.maxUnavailable; x == 0", r#"`x in [0, "0%"]`"#),
        ],
    );
    check_warned(
        DEPLOYMENT,
        &[(
            "object.spec.strategy.rollingUpdate.maxSurge == 0",
            r#"`object.spec.strategy.rollingUpdate.maxSurge in [0, "0%"]`"#,
        )],
    );
    check_accepted(
        PDB,
        &[
            r#"object.spec.maxUnavailable == 0 || object.spec.maxUnavailable == "0%""#,
            r#"type(object.spec.maxUnavailable) == "int" && object.spec.maxUnavailable == 0"#,
            r#"object.spec.minAvailable == "100%""#,
            "object.spec.minAvailable == 1",
            r#"(object.spec.minAvailable ?? "") == """#,
        ],
    );
    check_accepted("{kind: Service}", &["any(object.spec.ports, .targetPort == 80)"]);
    check(
        PDB,
        &[
            (r#"object.spec.maxUnavailable == "0""#, r#"never "0": write `object.spec.maxUnavailable in [0, "0%"]`"#),
            (r#"object.spec.maxUnavailable != "5""#, "`object.spec.maxUnavailable != 5`"),
            ("not object.spec.maxUnavailable", "`object.spec.maxUnavailable == nil` to ask whether it is missing"),
            ("object.spec.maxUnavailable", "`object.spec.maxUnavailable != nil` to ask whether it is there"),
        ],
    );
    let port = r#"any(object.spec.ports, .targetPort == "80")"#;
    check("{kind: Service}", &[(port, r#"the name of a port, and never "80": write `.targetPort == 80`"#)]);
}

#[test]
fn what_may_be_a_number_or_a_text_works_with_neither_alone() {
    check(
        PDB,
        &[
            (
                r#"trimSuffix(object.spec.maxUnavailable, "%") == "0""#,
                r#"may be a number, which is no text: write `trimSuffix(string(object.spec.maxUnavailable ?? ""), "%")`"#,
            ),
            (
                r#"object.spec.maxUnavailable not contains "%""#,
                r#"`string(object.spec.maxUnavailable ?? "") not contains "%"`"#,
            ),
            (
                r#"object.spec.maxUnavailable != nil && object.spec.maxUnavailable matches "^0""#,
                r#"`string(object.spec.maxUnavailable) matches "^0"`"#,
            ),
            ("len(object.spec.maxUnavailable) > 3", r#"`len(string(object.spec.maxUnavailable ?? ""))`"#),
            (
                "object.spec.maxUnavailable + 1 > 2",
                r#"`int(trimSuffix(string(object.spec.maxUnavailable ?? 0), "%")) + 1` to take the number alone"#,
            ),
            (
                "int(object.spec.maxUnavailable ?? 1) < 1",
                r#"`type(object.spec.maxUnavailable) == "int" && …` to leave out such texts, or `int(trimSuffix(string("#,
            ),
            (
                "(object.spec.maxUnavailable ?? 1) < 1",
                r#"`(let x = object.spec.maxUnavailable ?? 1; type(x) == "int" && x < 1)` to leave out such texts"#,
            ),
            (r#"object.spec.maxUnavailable + "a" == "1a""#, r#"`string(object.spec.maxUnavailable ?? "") + "a"`"#),
            (
                r#"type(object.spec.maxUnavailable) == "int" && lower(object.spec.maxUnavailable) == "1""#,
                "which is no text",
            ),
        ],
    );
    check(
        "{kind: Service}",
        &[
            (r#"any(object.spec.ports, .targetPort matches "^h")"#, r#"`string(.targetPort ?? "") matches "^h"`"#),
            ("any(object.spec.ports, .targetPort + 1 > 80)", r#"`type(.targetPort) == "int" && …` to leave out names"#),
        ],
    );
    check_accepted(
        PDB,
        &[
            r#"type(object.spec.maxUnavailable) == "int" && object.spec.maxUnavailable + 1 > 2"#,
            r#"type(object.spec.maxUnavailable) == "string" && lower(object.spec.maxUnavailable) == "0%""#,
            r#"type(object.spec.maxUnavailable) != "int" && object.spec.maxUnavailable endsWith "%""#,
            r#"int(trimSuffix(string(object.spec.maxUnavailable ?? 0), "%")) > 50"#,
        ],
    );
}
