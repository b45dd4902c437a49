//! Operators and signs of other languages.

use expect_test::expect;

use super::check;

#[test]
fn an_operator_of_another_language_is_told_with_ours() {
    check(
        &[
            "container.user === 0",
            "container.user !== 0",
            "container.user = 0",
            "container.privileged & object.x",
            "container.privileged | object.x",
            "container.privileged | true",
            "container.args | len",
            "container.image <> 'x'",
            "container.image =~ 'x'",
            "container.image ~ 'x'",
            "container.privileged AND object.x",
            "container.image in ('a', 'b')",
            "container.image !in ['a', 'b']",
            "x := container.image",
            "{{ object.x }} == 'x'",
        ],
        expect![[r#"
            container.user === 0
                18: expected a value, found `=`; two signs are enough: write `container.user == 0`
            container.user !== 0
                18: expected a value, found `=`; two signs are enough: write `container.user != 0`
            container.user = 0
                16: expected an operator or the end, found `=`: write `container.user == 0`
            container.privileged & object.x
                22: expected an operator or the end, found `&`: write `container.privileged && object.x`
            container.privileged | object.x
                30: expected an operator or the end, found `.`: write `container.privileged || object.x`
            container.privileged | true
                28: expected `(`, for only a call of `true` can stand here: write `container.privileged || true`
            container.args | len
                21: expected `(`, for only a call of `len` can stand here: write `len(container.args)`
            container.image <> 'x'
                18: expected a value, found `>`: write `container.image != "x"`
            container.image =~ 'x'
                17: expected an operator or the end, found `=`: write `container.image matches "x"`
            container.image ~ 'x'
                17: unexpected character `~`: write `container.image matches "x"`
            container.privileged AND object.x
                22: expected an operator or the end, found `AND`: write `container.privileged and object.x`
            container.image in ('a', 'b')
                24: expected an operator or `)`, found `,`; a list is written in brackets, `[a, b]`
            container.image !in ['a', 'b']
                17: expected an operator or the end, found `!`: write `container.image not in ["a", "b"]`
            x := container.image
                3: expected an operator or the end, found `:`; a value gets a name by `let name = …;`
            {{ object.x }} == 'x'
                2: expected a key or `}`, found `{`; a name stands alone, without braces: write `object.x == "x"`
        "#]],
    );
}

#[test]
fn not_goes_before_what_it_negates() {
    check(
        &[
            "not 'team' in container.labels",
            "!'team' in container.labels",
            "not container.image startsWith 'a'",
            "not container.image == 'x'",
        ],
        expect![[r#"
            not 'team' in container.labels
                12: this is `(not "team") in container.labels`: write `"team" not in container.labels`
            !'team' in container.labels
                9: this is `(!"team") in container.labels`: write `"team" not in container.labels`
            not container.image startsWith 'a'
                21: this is `(not container.image) startsWith "a"`: write `container.image not startsWith "a"`
            not container.image == 'x'
                21: this is `(not container.image) == "x"`: write `not (container.image == "x")`
        "#]],
    );
}

#[test]
fn text_is_not_what_it_says() {
    check(
        &[
            "container.privileged == `true`",
            "container.user == `5`",
            "container.user == '5'",
            "container.privileged == 'true'",
            "container.privileged == True",
        ],
        expect![[r#"
            container.privileged == `true`
                22: `==` does not work between bool and string: what is in backticks is text, write `true` without quotes
            container.user == `5`
                16: `==` does not work between int and string: what is in backticks is text, write `5` without quotes
            container.user == '5'
                16: `==` does not work between int and string: write `5` without quotes
            container.privileged == 'true'
                22: `==` does not work between bool and string: write `true` without quotes
            container.privileged == True
                25: unknown name `True`: write `true`
        "#]],
    );
}

#[test]
fn a_key_with_other_signs_is_put_in_quotes() {
    check(
        &[
            "container.labels.app.kubernetes.io/name == 'x'",
            "container.labels.cost-center == 'x'",
            "'a' + container.labels.cost-center == 'x'",
            "object.metadata.labels.cost-center == 'x'",
            "object.metadata.labels.app.kubernetes.io/name == 'x'",
            "object.spec.some-field == 1",
        ],
        expect![[r#"
            container.labels.app.kubernetes.io/name == 'x'
                18: a key with other signs than letters and digits is put in quotes: write `container.labels["app.kubernetes.io/name"]`
            container.labels.cost-center == 'x'
                18: a key with other signs than letters and digits is put in quotes: write `container.labels["cost-center"]`
            'a' + container.labels.cost-center == 'x'
                24: a key with other signs than letters and digits is put in quotes: write `container.labels["cost-center"]`
            object.metadata.labels.cost-center == 'x'
                24: a key with other signs than letters and digits is put in quotes: write `object.metadata.labels["cost-center"]`
            object.metadata.labels.app.kubernetes.io/name == 'x'
                24: a key with other signs than letters and digits is put in quotes: write `object.metadata.labels["app.kubernetes.io/name"]`
            object.spec.some-field == 1
                13: a key with other signs than letters and digits is put in quotes: write `object.spec["some-field"]`
        "#]],
    );
}
