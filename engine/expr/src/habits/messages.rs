//! What each habit of another language is told.

mod calls;
mod constants;
mod operators;

use expect_test::{Expect, expect};

use crate::testing::Pod;

/// A line for each source, and one for what is said about it.
#[track_caller]
fn check(sources: &[&str], expected: Expect) {
    let pod = Pod::new();
    let mut table = String::new();
    for source in sources {
        let error = pod.compile(source).expect_err(source);
        table += &format!("{source}\n    {}: {}\n", error.column, error.message);
    }
    expected.assert_eq(&table);
}

#[test]
fn what_may_be_missing_is_asked_for_with_nil() {
    check(
        &[
            "has(container.image)",
            "!has(container.image)",
            "not has(container.image) && container.privileged",
            "container.image == null",
            "container.image == None",
            "container.image != undefined",
            "container.image is None",
            "container.image is not None",
            "is_null(container.image)",
            "!container.image",
            "!container.args",
            "container.image && container.privileged",
            "container.labels || container.privileged",
            "object.?spec.?replicas.orValue(1) > 3",
        ],
        expect![[r#"
            has(container.image)
                1: unknown function `has`: write `container.image != nil`
            !has(container.image)
                2: unknown function `has`: write `container.image == nil`
            not has(container.image) && container.privileged
                5: unknown function `has`: write `container.image == nil`
            container.image == null
                20: unknown name `null`: write `nil`
            container.image == None
                20: unknown name `None`: write `nil`
            container.image != undefined
                20: unknown name `undefined`: write `nil`
            container.image is None
                17: expected an operator or the end, found `is`: write `container.image == nil`
            container.image is not None
                17: expected an operator or the end, found `is`: write `container.image != nil`
            is_null(container.image)
                1: unknown function `is_null`: write `container.image == nil`
            !container.image
                1: `!` does not work with string: write `(container.image ?? "") == ""`, or `container.image == nil` to ask only whether it is there
            !container.args
                1: `!` does not work with array of string: write `container.args == nil`
            container.image && container.privileged
                17: `&&` does not work between string and bool: write `(container.image ?? "") != ""`, or `container.image != nil` to ask only whether it is there
            container.labels || container.privileged
                18: `||` does not work between map and bool: write `container.labels != nil`
            object.?spec.?replicas.orValue(1) > 3
                8: expected a name, found `?`; a field that is missing is nil without it: write `(object.spec.replicas ?? 1) > 3`
        "#]],
    );
}

#[test]
fn what_only_looks_like_a_habit_is_left_alone() {
    for source in [
        "'team' not in container.labels",
        "!('team' in container.labels)",
        "not (container.image == 'x')",
        "not container.privileged == true",
        "container.labels.früh == 'x'",
        "container.labels.app == 'x' // a/b",
        "container.labels.app=='x'&&object.spec.x == 1",
        "object.spec['length'] == 3",
        "let center = 1; object.spec.cost != nil && object.spec.cost-center == 1",
        "object.created != nil && object.created.Unix() > 1",
        "object.n > 10",
        "object.date > '2026-01-31'",
        "count([true, false]) == 1",
        "duration('720h') > duration('1h')",
        "let length = 1; length == 1",
    ] {
        let program = Pod::new().compile(source);
        let warnings = program.as_ref().map(|program| program.warnings().len());
        assert!(program.is_ok(), "{source}: {:?}", program.err());
        assert!(warnings == Ok(0) || !source.contains("object"), "{source}");
    }
}

#[test]
fn strict_mode_has_no_habits() {
    for source in ["has(x)", "x.exists(1, 2)", "x.length == 1", "not x in y", "x.a-b == 1", "count(x)", "int('abc')"] {
        let strict = crate::compile(source, &Pod::new().schema, crate::Mode::Strict);
        assert!(strict.is_ok(), "{source}: {:?}", strict.err());
    }
}

#[test]
fn what_is_to_be_written_can_be_read() {
    for source in [
        "spec.containers.some(c => c.privileged && (c.image ?? '') == 'x')",
        "spec.containers.every(c => !c.args.includes('x') || c.user === 0)",
        "has(container.image) & size(container.args) = 1",
        "exists(spec.containers, c, c.args.exists(a, a = c.image))",
    ] {
        let message = Pod::new().compile(source).expect_err(source).message;
        let (_, ours) = message.rsplit_once("write `").unwrap_or_else(|| panic!("{source}: {message}"));
        let ours = ours.trim_end_matches('`');
        assert!(crate::canonical(ours).is_ok(), "{source}: {ours}");
    }
}

#[test]
fn what_may_be_a_list_or_a_text_is_told_with_both() {
    check(
        &[
            "object.spec.hosts.includes('*')",
            "object.spec.hosts.contains('*')",
            "object.a.b.get('c', {}).get('d') == 1",
        ],
        expect![[r#"
            object.spec.hosts.includes('*')
                19: there is no method `includes`: write `"*" in object.spec.hosts` if it is a list or a map, or `object.spec.hosts contains "*"` if it is text
            object.spec.hosts.contains('*')
                19: there is no method `contains`: write `"*" in object.spec.hosts` if it is a list or a map, or `object.spec.hosts contains "*"` if it is text
            object.a.b.get('c', {}).get('d') == 1
                25: there is no method `get`: write `object.a.b.c.d`
        "#]],
    );
}
