//! What is told of an expression that is true, on the objects of the test host.

use crate::{Arena, Limits, Moment, Seen, testing::Pod};

fn explain(source: &str) -> String {
    let pod = Pod::new();
    let program = pod.compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    let arena = Arena::new();
    let observations = program.explain(&pod, &arena, &Limits::default(), Moment::default());
    let lines: Vec<String> = observations
        .iter()
        .map(|observation| match observation.seen {
            Seen::Field if observation.is_aside => format!("{} is {} (aside)", observation.subject, observation.value),
            Seen::Field => format!("{} is {}", observation.subject, observation.value),
            Seen::Found => format!("{} was found to be {}", observation.subject, observation.value),
            Seen::NoneFits => format!("none of {} fits", observation.subject),
        })
        .collect();
    lines.join(", ")
}

#[track_caller]
fn check(table: &[(&str, &str)]) {
    for (source, expected) in table {
        assert_eq!(explain(source), *expected, "{source}");
    }
}

#[test]
fn what_was_compared_is_told() {
    check(&[
        ("container.privileged", "container.privileged is true"),
        ("container.image in ['a', 'ghcr.io/team/web:1.2']", "container.image is ghcr.io/team/web:1.2"),
        ("container.labels == nil", "container.labels is <nil>"),
        (
            "container.limits.memory > container.requests.memory",
            "container.limits.memory is 20Mi, container.requests.memory is 10M",
        ),
        ("len(container.args) > 0", "len(container.args) is 1"),
        ("len(container.ports) == 0", "container.ports is <nil>"),
        ("container.privileged == false", ""),
    ]);
}

#[test]
fn what_decides_comes_first_and_what_any_object_passes_is_left_out() {
    check(&[
        (
            "container.privileged == true && container.image.tag != 'x'",
            "container.image.tag is 1.2, container.privileged is true",
        ),
        ("container.privileged == false || container.image contains 'ghcr'", "container.image is ghcr.io/team/web:1.2"),
        ("object.os != 'windows' && container.privileged", "container.privileged is true"),
        ("object.os != 'windows' && object.mode != 'x'", "object.mode is <nil>"),
        ("object.os not in ['windows'] && object.mode != true", "object.mode is <nil>"),
        // A name that only had to be another one says less than what is missing.
        (
            "object.mode not in ['a', 'b'] && not (container.name startsWith 'kube-')",
            "container.name is web, object.mode is <nil> (aside)",
        ),
        (
            "object.mode != 'a' && not (container.name matches '^kube-')",
            "container.name is web, object.mode is <nil> (aside)",
        ),
        ("object.mode != 'a' && container.name not in ['x']", "container.name is web, object.mode is <nil> (aside)"),
        ("object.mode != 'a' && container.name startsWith 'w'", "container.name is web"),
        // Both matter.
        (
            "not (container.image startsWith 'a/') && container.privileged",
            "container.privileged is true, container.image is ghcr.io/team/web:1.2",
        ),
        // What only had to be something else is worth less, too.
        ("object.kind != 'Node' && container.privileged", "container.privileged is true, object.kind is Pod (aside)"),
        // It is what decides, although any object passes it.
        ("container.privileged && object.mode != 'x'", "object.mode is <nil>, container.privileged is true"),
        // Whoever requires something compares with true or false, wherever it stands.
        ("object.mode != true && object.os != 'windows'", "object.mode is <nil>"),
        ("object.mode != true && container.name == 'web'", "container.name is web, object.mode is <nil> (aside)"),
        ("container.privileged ? object.mode != 'x' : false", "object.mode is <nil>, container.privileged is true"),
        // Each is enough.
        ("container.privileged || object.kind == 'Pod'", "container.privileged is true, object.kind is Pod"),
        // A part says what the whole would.
        ("container.limits != nil && container.limits.memory > '1Mi'", "container.limits.memory is 20Mi"),
    ]);
}

#[test]
fn a_value_that_was_given_instead_is_told_as_what_was_missing() {
    check(&[
        ("(object.a ?? object.b ?? container.privileged) == true", "container.privileged is true"),
        ("(object.a ?? 5) < 10", "object.a is <nil>"),
        ("(object.a ?? object.b) != true", "object.a is <nil>, object.b is <nil>"),
        ("(object.a ?? object.b ?? 0) == 0", "object.a is <nil>, object.b is <nil>"),
        // Four of them explain nothing.
        (
            "(object.a ?? object.b ?? object.c ?? object.d) == nil && container.privileged",
            "container.privileged is true",
        ),
        ("len(object.missing ?? [1]) > 0", "len(object.missing) is 1"),
    ]);
}

#[test]
fn a_variable_is_told_as_what_it_stands_for() {
    check(&[
        ("let image = container.image; image contains 'ghcr'", "container.image is ghcr.io/team/web:1.2"),
        ("let bad = filter(container.args, # == '-v'); len(bad) > 0", "container.args[0] is -v"),
        ("let bad = filter(container.args, # == '-v'); bad != []", "container.args[0] is -v"),
        ("let forbidden = ['-v', '-x']; any(container.args, # in forbidden)", "container.args[0] is -v"),
        (
            "let names = map(object.spec.containers, .name); container.name in names",
            "container.name is web, object.spec.containers[0].name is web",
        ),
        // In a predicate it stands for a part of the element around.
        (
            "any(object.spec.containers, let outer = #; none(container.args, # == outer.name))",
            "container.args[0] is -v, object.spec.containers[0].name is web",
        ),
    ]);
}

#[test]
fn the_elements_that_decide_are_told() {
    check(&[
        ("any(object.spec.containers, .image endsWith ':latest')", "object.spec.containers[0].image is web:latest"),
        (
            "any(object.spec.containers, .image contains ':')",
            "object.spec.containers[0].image is web:latest, object.spec.containers[1].image is log:1",
        ),
        ("not all(object.spec.containers, .limit != nil)", "object.spec.containers[1].limit is <nil>"),
        ("count(object.spec.containers, .limit == nil) == 1", "object.spec.containers[1].limit is <nil>"),
        ("len(filter(object.spec.containers, .limit == nil)) > 0", "object.spec.containers[1].limit is <nil>"),
        ("find(object.spec.containers, .limit == nil) != nil", "object.spec.containers[1].limit is <nil>"),
        ("find(object.spec.containers, .limit == nil).image == 'log:1'", "object.spec.containers[1].image is log:1"),
        ("one(object.spec.containers, .limit == nil)", "object.spec.containers[1].limit is <nil>"),
        // None is what was looked for: that is how they are.
        (
            "none(object.spec.containers, .name == 'x')",
            "object.spec.containers[0].name is web, object.spec.containers[1].name is log",
        ),
        (
            "count(object.spec.containers, .name == 'x') == 0",
            "object.spec.containers[0].name is web, object.spec.containers[1].name is log",
        ),
        (
            "find(object.spec.containers, .name == 'x') == nil",
            "object.spec.containers[0].name is web, object.spec.containers[1].name is log",
        ),
        ("none(container.ports, .port == 80)", "container.ports is <nil>"),
        ("all(object.missing, .x)", "object.missing is <nil>"),
    ]);
}

#[test]
fn an_element_is_called_by_where_it_comes_from() {
    let both = "concat(object.missing, object.spec.containers)";
    check(&[
        ("any([object.missing, container.image], # contains 'ghcr')", "container.image is ghcr.io/team/web:1.2"),
        (&format!("any({both}, .limit == 2)"), "object.spec.containers[0].limit is 2"),
        ("any(map(object.spec.containers, .image), # == 'log:1')", "object.spec.containers[1].image is log:1"),
        (
            "first(filter(object.spec.containers, .name == 'log')).image == 'log:1'",
            "object.spec.containers[1].image is log:1",
        ),
        ("any(keys(container.limits), # == 'cpu')", "a key of container.limits is cpu"),
        ("any(values(container.limits), # > '10Mi')", "container.limits.memory is 20Mi"),
        (
            "any(toPairs(container.limits), #[0] == 'cpu' && quantity(#[1] ?? '0') == '1')",
            "container.limits.cpu is 1000m",
        ),
        (
            "any(['team', 'owner'], # not in container.labels)",
            "container.labels.team is <nil>, container.labels.owner is <nil>",
        ),
        ("'cpu' in container.limits", "container.limits.cpu is 1000m"),
        ("'team' not in keys(container.labels)", "container.labels.team is <nil>"),
        ("'-v' in container.args", "container.args[0] is -v"),
        ("2 in [object.missing, object.spec.containers[0].limit]", "object.spec.containers[0].limit is 2"),
    ]);
}

#[test]
fn a_function_that_reads_a_value_is_told_as_the_value() {
    check(&[
        ("quantity(container.limits.memory ?? '0') > quantity('1Mi')", "container.limits.memory is 20Mi"),
        ("upper(container.name) == 'WEB'", "container.name is web"),
        ("split(container.image ?? '', '/')[0] == 'ghcr.io'", "container.image is ghcr.io/team/web:1.2"),
        ("(container.image ?? '')[0:4] == 'ghcr'", "container.image is ghcr.io/team/web:1.2"),
        ("(object.spec.containers[0].limit ?? 0) * 2 > 3", "object.spec.containers[0].limit is 2"),
    ]);
}

#[test]
fn variables_of_variables_come_to_an_end() {
    let mut source = "let a0 = filter(object.spec.containers, .limit != 7);".to_owned();
    for index in 1..14 {
        source += &format!("let a{index} = concat(a{0}, a{0});", index - 1);
    }
    source += "container.privileged || any(a13, .limit == 2)";
    assert_eq!(explain(&source), "container.privileged is true");
}
