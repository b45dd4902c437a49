//! What compiles, what does not and why, and what is known about what does.

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use crate::{ArgumentShape, Mode, Read, Segment, compile, compile_condition, compile_condition_and, testing::Pod};

/// The mistake, or the warnings and facts.
#[track_caller]
fn check(source: &str, expected: Expect) {
    let pod = Pod::new();
    let text = match pod.compile(source) {
        Err(error) => error.to_string(),
        Ok(program) => {
            let mut text = String::new();
            for warning in program.warnings() {
                let _ = writeln!(text, "warning {}:{}: {}", warning.line, warning.column, warning.message);
            }
            for read in &program.facts().reads {
                let _ = writeln!(text, "reads {}", path(read));
            }
            for (site, arguments) in program.calls().iter().zip(&program.facts().calls) {
                let arguments: Vec<String> = arguments.iter().map(shape).collect();
                let _ = writeln!(text, "calls {} of {:?} with {}", site.function.0, site.names, arguments.join(", "));
            }
            if let Some((line, column)) = program.facts().now {
                let _ = writeln!(text, "{line}:{column}: uses the time");
            }
            text
        }
    };
    expected.assert_eq(text.trim_end());
}

fn path(read: &Read) -> String {
    let mut text = ["container", "object", "cluster", "spec"][usize::from(read.root.0)].to_owned();
    for segment in &read.path {
        match segment {
            Segment::Field(name) => text.push_str(&format!(".{name}")),
            Segment::Each => text.push_str("[*]"),
        }
    }
    text
}

fn shape(argument: &ArgumentShape) -> String {
    match argument {
        ArgumentShape::Text(text) => format!("{text:?}"),
        ArgumentShape::Path(read) => path(read),
        other => format!("{other:?}"),
    }
}

#[test]
fn an_unknown_name_is_refused_with_the_one_that_was_meant() {
    check(
        "contaner.image == 'x'",
        expect![[r#"
            1:1: unknown name `contaner`, did you mean `container`?
             | contaner.image == 'x'
             | ^"#]],
    );
    check(
        "container.privilged",
        expect![[r#"
            1:11: a container has no field `privilged`, did you mean `privileged`?
             | container.privilged
             |           ^"#]],
    );
    check(
        "container.image.tga == 'x'",
        expect![[r#"
            1:17: an image has no field `tga`, did you mean `tag`?
             | container.image.tga == 'x'
             |                 ^"#]],
    );
    check(
        "lenn(container.args) > 1",
        expect![[r#"
            1:1: unknown function `lenn`, did you mean `len`?
             | lenn(container.args) > 1
             | ^"#]],
    );
}

#[test]
fn types_that_can_never_fit_are_refused() {
    check(
        "container.privileged == 'yes'",
        expect![[r#"
            1:22: `==` does not work between bool and string
             | container.privileged == 'yes'
             |                      ^"#]],
    );
    check(
        "'x' in container.image",
        expect![[r#"
            1:5: `in` looks for an element of a list or a key of a map: for text write `container.image contains "x"`
             | 'x' in container.image
             |     ^"#]],
    );
    check(
        "container.args.name == 'x'",
        expect![[r#"
            1:16: a list has no field `name`: write `"name" in container.args`
             | container.args.name == 'x'
             |                ^"#]],
    );
    check(
        "object.kind matches '['",
        expect![[r#"
            1:13: missing closing ] in pattern
             | object.kind matches '['
             |             ^"#]],
    );
}

#[test]
fn what_is_read_is_known_through_predicates_and_variables() {
    check("container.privileged == true", expect!["reads container.privileged"]);
    check(
        "any(object.spec.containers, .image == 'x' && .name != nil)",
        expect![[r#"
            reads object.spec.containers[*].image
            reads object.spec.containers[*].name"#]],
    );
    check("any(object.spec.containers, true)", expect!["reads object.spec.containers"]);
    check("filter(object.spec.containers, .image == 'x')[0].name", expect!["reads object.spec.containers"]);
    check("let c = object.spec; c.replicas == 1", expect!["reads object.spec.replicas"]);
    check(
        "object.metadata.labels[object.kind] == 'x'",
        expect![[r#"
        reads object.kind
        reads object.metadata.labels"#]],
    );
    check("object.metadata[\"labels\"].app == 'x'", expect!["reads object.metadata.labels.app"]);
    check("container.image.tag == 'latest'", expect!["reads container.image"]);
    check("now() > date('2026-01-01')", expect!["1:1: uses the time"]);
}

#[test]
fn strict_programs_say_what_they_read_too() {
    let program = compile("object.spec.replicas", &Pod::new().schema, Mode::Strict).unwrap();
    assert_eq!(program.facts().reads.iter().map(path).collect::<Vec<_>>(), ["object"]);
    let program = compile("missing(object)", &Pod::new().schema, Mode::Strict).unwrap();
    assert_eq!(program.facts().reads.iter().map(path).collect::<Vec<_>>(), ["object"]);
}

#[test]
fn calls_of_the_host_are_known_with_their_arguments() {
    check(
        "any(cluster.pods.list(object.metadata.namespace, selector={app: 'web'}), .kind == 'Pod')",
        expect![[r#"
            reads object.metadata.namespace
            calls 7 of ["pods"] with object.metadata.namespace, Map"#]],
    );
    check(
        "len(cluster['networkpolicies.networking.k8s.io'].list('default')) == double(1)",
        expect![[r#"
            calls 7 of ["networkpolicies.networking.k8s.io"] with "default", Missing
            calls 8 of [] with Constant"#]],
    );
    check(
        "len(cluster.pods.list()) > 0",
        expect![[r#"
            1:18: `list` needs `ns`: write `list(ns, selector)`
             | len(cluster.pods.list()) > 0
             |                  ^"#]],
    );
    check(
        "len(cluster.pods.list('a', select={})) > 0",
        expect![[r#"
            1:28: `list` has no parameter `select`, did you mean `selector`?
             | len(cluster.pods.list('a', select={})) > 0
             |                            ^"#]],
    );
}

#[test]
fn a_root_without_a_value_can_only_be_called_through() {
    for source in
        ["let c = cluster; c.pods.list('a')", "cluster == nil", "cluster.pods", "cluster[object.kind].list('a')"]
    {
        let pod = Pod::new();
        let error = pod.compile(source).expect_err(source).to_string();
        assert!(error.contains("`cluster` can only be used as `cluster.NAME.list(…)`"), "{error}");
    }
}

#[test]
fn an_expression_that_reads_nothing_is_warned_of() {
    check("(container.user ?? 0) < 1000", expect!["reads container.user"]);
    check("len(container.args) < 3", expect!["reads container.args"]);
    check("1 == 1", expect!["warning 1:3: this reads nothing, so its answer is always the same"]);
}

/// The first way out that a refusal shows.
fn way_out(source: &str) -> String {
    let error = Pod::new().compile(source).expect_err(source);
    let (_, way_out) = error.message.split_once("write `").unwrap_or_else(|| panic!("{source}: {}", error.message));
    way_out.split('`').next().unwrap_or_default().to_owned()
}

#[test]
fn what_may_be_missing_is_refused_where_nothing_can_be_done_with_it() {
    for (source, expected) in [
        ("upper(spec.name) == 'X'", r#"upper(spec.name ?? "")"#),
        ("upper(object.x) == 'X'", r#"upper(object.x ?? "")"#),
        ("split(spec.name, object.x) == []", r#"split(spec.name ?? "", object.x)"#),
        ("date(object.since) < now()", "object.since != nil && …"),
        ("duration(object.since) > duration('1h')", r#"duration(object.since ?? "0s")"#),
        ("fromJSON(object.x) == 1", r#"fromJSON(object.x ?? "null")"#),
        ("get(container.labels, object.key) == nil", r#"get(container.labels, object.key ?? {})"#),
        ("int(container.labels.x) > 5", r#"int(container.labels.x ?? "0")"#),
        ("spec.priority + 1 > 5", "(spec.priority ?? 0) + 1"),
        ("1 + spec.priority > 5", "… + (spec.priority ?? 0)"),
        ("spec.name + '-x' == 'a-x'", r#"(spec.name ?? "") + "-x""#),
        ("container.args[0:spec.priority] == []", "[(spec.priority ?? 0):]"),
        ("-spec.priority > 0", "-(spec.priority ?? 0)"),
        ("max(spec.priority, 1) > 0", "max(spec.priority ?? 0, 1)"),
        ("let p = spec.priority; p + 1 > 1", "(p ?? 0) + 1"),
        ("sum(spec.containers, .user) > 5", "sum(spec.containers, .user ?? 0)"),
        ("any(map(spec.containers, .user), # + 1 > 1000)", "(# ?? 0) + 1"),
        ("any([spec.priority], # + 1 > 1000)", "(# ?? 0) + 1"),
        ("lower(container.args[0]) == 'a'", r#"lower(container.args[0] ?? "")"#),
        ("lower(first(container.args)) == 'a'", r#"lower(first(container.args) ?? "")"#),
        ("lower(find(container.args, # > 'a')) == 'a'", r#"lower(find(container.args, # > "a") ?? "")"#),
        ("lower(container.labels[spec.name ?? 'a']) == 'a'", r#"lower(container.labels[spec.name ?? "a"] ?? "")"#),
        ("spec.name != nil || upper(spec.name) == 'A'", r#"upper(spec.name ?? "")"#),
        ("(spec.name == nil && true) || upper(spec.name) == 'A'", r#"upper(spec.name ?? "")"#),
        ("spec.name != nil && true; upper(spec.name) == 'A'", r#"upper(spec.name ?? "")"#),
        ("spec.name != '' && upper(spec.name) == 'A'", r#"(spec.name ?? "") != """#),
        ("(spec.name ?? 'a') != '' && upper(spec.name) == 'A'", r#"upper(spec.name ?? "")"#),
        ("(spec.priority ?? 9) > 5 && spec.priority + 1 > 1", "(spec.priority ?? 0) + 1"),
        ("any(spec.containers, .user != nil) && any(spec.containers, .user + 1 > 1)", "(.user ?? 0) + 1"),
        ("any(spec.containers, .user != nil && any(spec.containers, .user + 1 > 1))", "(.user ?? 0) + 1"),
        ("let ok = any(spec.containers, .user != nil); any(spec.containers, ok && .user + 1 > 1)", "(.user ?? 0) + 1"),
        ("object.x != nil && lower(object.x[0]) == 'a'", r#"lower(object.x[0] ?? "")"#),
        ("1..spec.priority == []", "1..(spec.priority ?? 0)"),
        ("{(spec.name): 1} == {}", r#"{(spec.name ?? ""): …}"#),
    ] {
        assert_eq!(way_out(source), expected, "{source}");
    }
    let refused = |source: &str| Pod::new().compile(source).expect_err(source).message;
    assert_eq!(
        refused("join(map(spec.containers, .image), ',') == ''"),
        "elements of `map(spec.containers, .image)` may be missing: write `join(filter(map(spec.containers, .image), # != nil), \",\")` to leave those out, or `?? …` where they are read"
    );
}

#[test]
fn an_order_that_would_let_pass_what_is_missing_is_refused() {
    for (source, expected) in [
        ("container.user < 1000", "(container.user ?? 0) < 1000"),
        ("container.user <= 1000", "(container.user ?? 0) <= 1000"),
        ("1000 > container.user", "1000 > (container.user ?? 0)"),
        ("1000 >= container.user", "1000 >= (container.user ?? 0)"),
        ("container.user < 2 * 500", "(container.user ?? 0) < (2 * 500)"),
        ("let limit = 1000; container.user < limit", "(container.user ?? 0) < limit"),
        ("object.x < 'b'", r#"(object.x ?? "") < "b""#),
        ("any(spec.containers, .user < 1000)", "(.user ?? 0) < 1000"),
        ("spec.name != nil || spec.priority < 1", "(spec.priority ?? 0) < 1"),
    ] {
        assert_eq!(way_out(source), expected, "{source}");
    }
    for source in [
        "container.user > 1000",
        "1000 < container.user",
        "1 < spec.priority < 5",
        "container.user < spec.priority",
        "len(container.args) < 3",
        "(container.user ?? 0) < 1000",
        "container.user != nil && container.user < 1000",
        "container.user == nil || container.user < 1000",
    ] {
        assert!(Pod::new().compile(source).is_ok(), "{source}");
    }
}

#[test]
fn what_a_condition_has_found_to_be_there_is_not_in_doubt_behind_it() {
    for source in [
        "spec.priority != nil && spec.priority + 1 > 1",
        "nil != spec.priority and spec.priority + 1 > 1",
        "spec.priority == nil || spec.priority + 1 > 1",
        "not (spec.priority == nil) && spec.priority + 1 > 1",
        "!(spec.priority == nil || spec.name == nil) && spec.priority + 1 > 1 && upper(spec.name) > 'A'",
        "spec.priority == nil ? true : spec.priority + 1 > 1",
        "if spec.priority != nil { spec.priority + 1 > 1 } else { false }",
        "spec.priority > 5 && spec.priority + 1 > 7",
        "spec.name contains 'x' && upper(spec.name) > 'A'",
        "(spec.name ?? '') != '' && upper(spec.name) == 'X'",
        "(spec.priority ?? 0) != 0 && spec.priority + 1 > 5",
        "spec.name == 'a' && upper(spec.name) == 'A'",
        "spec.name in ['a', 'b'] && upper(spec.name) == 'A'",
        "'x' in container.labels && upper(container.labels.x) == 'X'",
        "object.spec.x != nil && upper(object.spec) == 'X'",
        "object.flag && upper(object.flag) == 'X'",
        "any(spec.containers, .user != nil && .user + 1 > 1)",
        "let p = spec.priority; p != nil && p + 1 > 1",
        "let p = spec.priority ?? 1; p + 1 > 1",
        "let ok = spec.name != nil; ok && upper(spec.name) == 'A'",
        "len(container.args) > 0 && upper(container.args[0]) == 'A'",
        "0 < len(container.args) && upper(first(container.args)) == 'A'",
        "len(container.args) == 2 && upper(last(container.args)) == 'A'",
        "container.args != nil && upper(container.args[0]) == 'A'",
        "container.args == [] || upper(container.args[-1]) == 'A'",
        "object.x && (object.y != nil && (object.x == false || object.y + 1 > 1))",
    ] {
        assert!(Pod::new().compile(source).is_ok(), "{source}: {:?}", Pod::new().compile(source).err());
    }
}

#[test]
fn methods_are_checked_before_they_run() {
    let refused = |source: &str| Pod::new().compile(source).expect_err(source).message;
    assert_eq!(refused("date('2026-03-01').Foo()"), "a time has no method `Foo`");
    assert_eq!(refused("date('2026-03-01').Minute(nil)"), "Minute takes 0 arguments, got 1");
    assert_eq!(refused("date('2026-03-01').Add(1)"), "Add expects a duration, got int");
    assert_eq!(refused("date('2026-03-01').Format(nil)"), "Format expects a string, got nil");
    assert!(refused("date('2026-03-01').Add(object.x) > now()").starts_with("`object.x` may be missing"));
    assert_eq!(refused("groupBy([1], #).Year()"), "a map has no method `Year`");
    for source in [
        "timezone('UTC').String()",
        "date('2026-03-01').Add(object.x ?? duration('1h'))",
        "object.x != nil && object.x.Add(1)",
    ] {
        assert!(Pod::new().compile(source).is_ok(), "{source}");
    }
}

#[test]
fn a_choice_between_arrays_of_two_types_may_be_anything_to_go() {
    let compile = |source, mode| compile(source, &Pod::new().schema, mode);
    assert!(compile("true == (object.x ? split('a', 'a') : [])", Mode::Strict).is_ok());
    assert!(compile("true == (object.x ? split('a', 'a') : [])", Mode::Rules).is_err());
    assert!(compile("true == (object.x ? ['a'] : [1])", Mode::Strict).is_err());
}

/// Every way in which a container can come out of an expression.
const CONTAINERS: [&str; 34] = [
    "container",
    "spec.containers[0]",
    "spec.containers[0:1][0]",
    "spec['containers'][0]",
    "get(spec, 'containers')[0]",
    "get(spec.containers, 0)",
    "filter(spec.containers, true)[0]",
    "map(spec.containers, #)[0]",
    "find(spec.containers, true)",
    "findLast(spec.containers, .privileged)",
    "first(spec.containers)",
    "last(take(spec.containers, 1))",
    "take(spec.containers, 1)[0]",
    "reverse(reverse(spec.containers))[0]",
    "uniq(spec.containers)[0]",
    "sort(take(spec.containers, 1))[0]",
    "sortBy(spec.containers, .image, 'desc')[0]",
    "flatten([[spec.containers], [container]])[0]",
    "concat([], spec.containers, [container])[0]",
    "groupBy(spec.containers, .privileged)[true][0]",
    "values(groupBy(take(spec.containers, 1), .image))[0][0]",
    "reduce(spec.containers, spec.containers[0])",
    "reduce(take(spec.containers, 1), #, container)",
    "[container][0]",
    "{a: container, b: 1}.a",
    "{('a' + 'b'): container}.ab",
    "values({a: container})[0]",
    "toPairs({a: container})[0][1]",
    "fromPairs([['a', container]]).a",
    "(nil ?? container)",
    "(container.privileged ? container : spec.containers[1])",
    "(if container.privileged { container } else { nil })",
    "(let c = [container]; c[0])",
    "(1; container)",
];

#[test]
fn a_field_is_known_wherever_its_object_has_got_to() {
    let pod = Pod::new();
    for source in CONTAINERS {
        assert_eq!(pod.evaluate(&format!("{source}.image.tag == '1.2'")), "true", "{source}");
        assert_eq!(pod.evaluate(&format!("len({source}.labels)")), "0", "{source}");
        assert_eq!(pod.evaluate(&format!("any([{source}], .image.tag == '1.2')")), "true", "{source}");
        let error = pod.compile(&format!("{source}.privilged")).expect_err(source).message;
        assert!(
            error.contains("a container has no field `privilged`, did you mean `privileged`?"),
            "{source}: {error}"
        );
        let error = pod.compile(&format!("{source}.image.tga == ''")).expect_err(source).message;
        assert!(error.contains("an image has no field `tga`, did you mean `tag`?"), "{source}: {error}");
        let error = pod.compile(&format!("any([{source}], .privilged)")).expect_err(source).message;
        assert!(
            error.contains("a container has no field `privilged`, did you mean `privileged`?"),
            "{source}: {error}"
        );
    }
}

#[test]
fn of_several_things_that_a_value_may_be_one_has_the_field() {
    check(
        "(object.x ?? container).image.tag == '1.2'",
        expect![[r#"
            reads container
            reads object.x"#]],
    );
    check(
        "(object.x ?? container).imag == '1.2'",
        expect![[r#"
            warning 1:25: a container has no field `imag`, did you mean `image`?, unless this is something else
            reads container
            reads object.x"#]],
    );
    check(
        "[container, spec][0].nam == ''",
        expect![[r#"
            1:22: a container or a spec has no field `nam`, did you mean `name`?
             | [container, spec][0].nam == ''
             |                      ^"#]],
    );
    let pod = Pod::new();
    assert_eq!(pod.evaluate("map([container, spec], .image.tag)"), "[1.2 <nil>]");
    assert_eq!(pod.evaluate("[container.image, 'a:b', spec.name][1].tag"), "b");
    assert_eq!(pod.evaluate("len([object, container, spec][2].args)"), "0", "a list is empty, not nil");
    assert_eq!(pod.evaluate("1 in first([groupBy([1, 2], #)])"), "true", "a key is not always text");
    assert_eq!(pod.evaluate("any([groupBy([1, 2], #)], 1 in #)"), "true");
    assert_eq!(
        pod.evaluate("map([container.image, {tag: 'x'}], .tag)"),
        "[1.2 x]",
        "a field is computed of text, and read of a map"
    );
    assert_eq!(
        pod.evaluate("[container.image, 1][1].tag"),
        "1:25: cannot fetch tag from int\n | [container.image, 1][1].tag\n |                         ^"
    );
    check(
        "object.size > 1",
        expect![[r#"
            warning 1:8: `size` is worked out for a spec where that is known: here it is a field like any other, and may be missing
            reads object.size"#]],
    );
    check("{a: 1}.b.c == nil", expect!["warning 1:12: this reads nothing, so its answer is always the same"]);
}

#[test]
fn a_rule_that_can_never_be_true_or_false_is_no_condition() {
    let refused = |source: &str| {
        let compiled = compile_condition(source, &Pod::new().schema, Mode::Rules);
        compiled.map_or_else(|error| error.to_string(), |_| "condition".to_owned())
    };
    assert_eq!(
        refused("spec.name"),
        "1:6: a rule must be true or false, and this is string: write `(spec.name ?? \"\") != \"\"`, or `spec.name != nil` to ask only whether it is there\n | spec.name\n |      ^"
    );
    for (source, kind) in [
        ("spec.containers", "array of object"),
        ("spec", "object"),
        ("len(spec.containers)", "int"),
        ("filter(spec.containers, .privileged)", "array of object"),
        ("first(spec.containers)", "object"),
        ("map(spec.containers, .privileged)", "array of bool"),
        ("{a: true}", "map"),
        ("'abc'", "string"),
        ("let n = spec.name; n ?? 'x'", "string"),
        ("object.x ? 1 : 'x'", "neither"),
        ("now()", "time"),
    ] {
        let message = refused(source);
        let told = message.lines().next().and_then(|line| line.split(": write").next()).unwrap_or_default();
        assert!(told.ends_with(&format!("must be true or false, and this is {kind}")), "{source}: {message}");
    }
    for source in
        ["object.x", "first(object.list)", "object.x ? 1 : true", "first(map(spec.containers, .privileged))", "nil"]
    {
        assert_eq!(refused(source), "condition", "{source}");
    }
}

#[test]
fn forms_that_grow_with_each_other_are_compiled_in_time() {
    let mut source = String::from("let a0 = {x: container}; let b0 = {x: container}; ");
    for level in 1..40 {
        for name in ["a", "b"] {
            let below = level - 1;
            source += &format!("let {name}{level} = {{l: {name}{below}, r: [{name}{below}], m: {name}{below}}}; ");
        }
    }
    source += "[a39, b39, a38, b38][0].l == nil";
    Pod::new().compile(&source).expect("it compiles");
}

#[test]
fn a_quantity_is_compared_with_nothing_but_quantities() {
    let refused = |source: &str| Pod::new().compile(source).expect_err(source).message;
    for (source, message) in [
        ("container.limits.cpu > 2", "a quantity is compared with a quantity: write `\"2\"`"),
        ("0.5 < container.limits.cpu", "a quantity is compared with a quantity: write `\"0.5\"`"),
        ("container.limits.memory > '1GB'", "\"1GB\" is no quantity such as \"100m\", \"2\" or \"1Gi\""),
        (
            "container.limits.memory == ''",
            "\"\" is no quantity such as \"100m\", \"2\" or \"1Gi\": what is missing is `nil`",
        ),
        ("container.limits.cpu in ['1', 'x']", "\"x\" is no quantity such as \"100m\", \"2\" or \"1Gi\""),
        (
            "container.limits.cpu == container.labels.cpu",
            "a quantity is compared with a quantity, and this is string: write `quantity(…)` around it",
        ),
        (
            "(container.limits.cpu ?? '') > '1'",
            "this may be a quantity or a text: write `?? \"0\"`, or `quantity(…)` around it",
        ),
        (
            "container.limits.memory endsWith 'Mi'",
            "`endsWith` does not work between quantity and string: the text of a quantity is `string(…)`",
        ),
        ("(container.limits.cpu ?? '0') + 1 > '1'", "a quantity is compared with a quantity: write `\"1\"`"),
    ] {
        assert_eq!(refused(source), message, "{source}");
    }
    assert_eq!(way_out("container.limits.cpu < '1'"), r#"(container.limits.cpu ?? "0") < "1""#);
}

#[test]
fn a_text_that_a_field_can_never_be_is_refused() {
    let refused = |source: &str| Pod::new().compile(source).expect_err(source).message;
    for (source, message) in [
        (
            "container.policy == 'always'",
            "this is never \"always\": it is \"Always\" or \"Never\", did you mean `Always`?",
        ),
        (
            "'Alwys' != container.policy",
            "this is never \"Alwys\": it is \"Always\" or \"Never\", did you mean `Always`?",
        ),
        ("container.policy in ['Never', 'x']", "this is never \"x\": it is \"Always\" or \"Never\""),
        (
            "container.policy == ''",
            "this is never \"\": where there is none it is `nil`: write `container.policy == nil`",
        ),
        (
            "any(spec.containers, .policy == 'always')",
            "this is never \"always\": it is \"Always\" or \"Never\", did you mean `Always`?",
        ),
    ] {
        assert_eq!(refused(source), message, "{source}");
    }
    for source in
        ["container.policy == 'Always'", "(container.policy ?? '') == ''", "container.policy == container.name"]
    {
        assert!(Pod::new().compile(source).is_ok(), "{source}");
    }
}

#[test]
fn the_declarations_of_an_expression_can_stand_before_another() {
    let pod = Pod::new();
    let condition = |source: &str| compile_condition(source, &pod.schema, Mode::Rules).expect("it compiles");
    let program = condition("let a = container.args;\nlet b = filter(a, # != \"x\\n\"); len(b) > 0");
    assert_eq!(program.declarations(), r#"let a = container.args; let b = filter(a, # != "x\n"); "#);
    assert_eq!(pod.evaluate(&format!("{}\nb | join(',')", program.declarations())), "-v");
    assert_eq!(condition("container.privileged").declarations(), "");
}

#[test]
fn what_stands_behind_declarations_is_what_it_is_with_them_as_text() {
    let pod = Pod::new();
    let rule =
        "let args = container.args; let others = filter(args, # != \"x\"); len(others) > 0 && container.name != nil";
    let behind = [
        "others | join(',')",
        "{\"n\": len(args)}",
        "container.name",
        "others.nope +",
        "nope(args)",
        "cluster.pods.list(args)",
    ];
    let (condition, compiled) = compile_condition_and(rule, &behind, &pod.schema, Mode::Rules).expect("it compiles");
    assert_eq!(condition.declarations(), "let args = container.args; let others = filter(args, # != \"x\"); ");
    for (text, program) in behind.iter().zip(&compiled) {
        let Some(program) = program else { continue };
        let as_text = pod.compile(&format!("{}\n{text}", condition.declarations())).expect("it compiles as text");
        assert_eq!(format!("{:?}", program.facts().reads), format!("{:?}", as_text.facts().reads), "{text}");
        assert_eq!(program.variables, as_text.variables, "{text}");
        // Nothing of the rest of the rule is in it.
        assert!(!format!("{:?}", program.root).contains("\"name\""), "{text}");
    }
    let is_compiled: Vec<bool> = compiled.iter().map(Option::is_some).collect();
    assert_eq!(is_compiled, [true, true, false, false, false, false]);
}

#[test]
fn what_is_always_there_is_not_in_doubt() {
    for source in ["lower(container.name) == 'a'", "any(spec.containers, upper(.name) == 'A')"] {
        assert!(Pod::new().compile(source).is_ok(), "{source}");
    }
    assert_eq!(way_out("lower(spec.containers[0].name) == 'a'"), r#"lower(spec.containers[0].name ?? "")"#);
}
