//! What expressions give in rules, where nil is no error, and why.

use crate::{Arena, Limits, Moment, testing::Pod};

#[track_caller]
fn check(source: &str, expected: &str) {
    assert_eq!(Pod::new().evaluate(source), expected, "{source}");
}

#[test]
fn nil_has_every_field_and_is_false_and_empty() {
    check("object.a.b.c == nil", "true");
    check("object.a.b['c'].d == nil", "true");
    check("not object.missing", "true");
    check("object.missing && true", "false");
    check("object.missing || object.missing", "false");
    check("object.missing ? 1 : 2", "2");
    check("any(object.missing, true)", "false");
    check("all(object.missing, false)", "true");
    check("'x' in object.missing", "false");
    check("object.missing in [nil, 'x']", "true");
    check("object.missing in ['x']", "false");
    check("'' in [nil, 'x'] or 'y' in [nil, 'x']", "false");
    check("[1, 'x', 1.5] | map(# in [nil, 'x'])", "[false true false]");
    check("object.missing", "<nil>");
}

#[test]
fn lists_and_maps_of_a_schema_are_never_nil() {
    check("len(container.ports)", "0");
    check("container.labels.app == nil", "true");
    check("'app' in container.labels", "false");
    check("container.labels == nil", "true");
    check("container.labels != nil", "false");
    check("container.labels ?? {a: 1}", "map[a:1]");
    check("container.labels == {}", "true");
    check("container.args == nil", "false");
    check("container.args != []", "true");
    check("(container.ports ?? [1])[0]", "1");
    check("filter(container.args, false) == nil", "true");
    check("container == {}", "false");
    // Only what is known to be a list or a map: an empty text is there.
    check("object.spec == nil", "false");
    check("len(container.args)", "1");
}

#[test]
fn what_is_missing_is_neither_more_nor_less_than_anything() {
    check("container.user > 1000", "false");
    check("container.user >= spec.priority", "false");
    check("not (container.user > 1000)", "true");
    check("any(spec.containers, .user > 1)", "false");
}

#[test]
fn functions_of_lists_and_maps_take_what_is_missing_for_an_empty_one() {
    check("len(object.missing)", "0");
    check("keys(object.missing) | len()", "0");
    check("concat(object.missing, [1]) | len()", "1");
    check("join(object.missing, ',')", "");
    check("sum(object.missing)", "0");
    check("first(object.missing)", "<nil>");
    check("sort([object.missing, 2, 1])[1]", "1");
    check("reduce(object.missing, #acc + #)", "<nil>");
}

#[test]
fn past_the_end_of_a_list_there_is_nothing() {
    check("container.args[5]", "<nil>");
    check("spec.containers[5].image.tag", "<nil>");
    check("split('a/b', '/')[2]", "<nil>");
    check("container.args[object.missing]", "<nil>");
}

#[test]
fn what_is_no_object_has_no_fields() {
    let failed = |source: &str, message: &str| {
        let found = Pod::new().evaluate(source);
        assert!(found.contains(message), "{source}: {found}");
    };
    failed("object.kind.name == 'x'", "1:13: cannot fetch name from string");
    failed("object.kind.a.b.c", "cannot fetch a from string");
    failed("any(object.spec.containers, .image.tag == 'latest')", "1:36: cannot fetch tag from string");
    failed("any(object.spec.containers, .limit.cpu != nil)", "cannot fetch cpu from int");
    failed("object.spec.containers.image", "cannot fetch image from array");
    failed("any(object.kind.list, true)", "cannot fetch list from string");
    failed("object.kind.name ?? 1", "cannot fetch name from string");
}

#[test]
fn the_host_computes_fields_and_answers_calls() {
    check("container.image.tag", "1.2");
    check("container.image", "ghcr.io/team/web:1.2");
    check("double(4) + 1", "9");
    check("cluster.pods.list('a', selector={app: 'b'})", "[a map[app:b]]");
    check(
        "cluster.pods.list(object.missing)",
        "1:14: a namespace is needed\n | cluster.pods.list(object.missing)\n |              ^",
    );
}

#[test]
fn predicates_see_elements_of_documents() {
    check("map(object.spec.containers, .name)", "[web log]");
    check("any(object.spec.containers, .image endsWith ':latest')", "true");
    check("filter(object.spec.containers, .limit == nil)[0].name", "log");
    check("sortBy(object.spec.containers, .name)[0].name", "log");
    check("groupBy(object.spec.containers, .name).web[0].limit", "2");
    check("reduce(object.spec.containers, #acc + (#.name ?? ''), '')", "weblog");
    check("findLast(object.spec.containers, true).name", "log");
}

#[test]
fn chains_of_thousands_of_operators_need_no_stack() {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        for source in [vec!["1"; 4999].join(" + "), vec!["1"; 4999].join(" * "), vec!["true"; 4999].join(" && ")] {
            assert!(!Pod::new().evaluate(&source).contains('^'));
        }
        assert_eq!(Pod::new().evaluate(&format!("object{}", ".a".repeat(4000))), "<nil>");
        assert!(Pod::new().evaluate(&vec!["true"; 200].join(" == ")).contains("nested too deeply"));
        assert!(Pod::new().evaluate(&format!("{}1{}", "(".repeat(5000), ")".repeat(5000))).contains('^'));
    });
    thread.expect("a thread can be made").join().expect("nothing overflows");
}

#[test]
fn work_without_end_runs_out_of_fuel() {
    let source = "count(1..1000, count(1..1000, count(1..1000, true) > 0) > 0) > 0";
    assert!(Pod::new().evaluate(source).contains("out of fuel: an evaluation may take 1000000 steps"));
    let pod = Pod::new();
    let program = pod.compile("repeat('x', 600000) + repeat('y', 300000) == ''").expect("it compiles");
    let arena = Arena::new();
    let limits = Limits { bytes: 1 << 20, ..Limits::default() };
    let error = program.evaluate(&pod, &arena, &limits, Moment::default()).expect_err("it is too large");
    assert!(error.message.contains("out of memory"), "{error}");
}

#[test]
fn a_mistake_in_a_value_of_a_map_comes_before_one_in_a_key() {
    check(
        "{(1): (object.kind ?? 0) + 1}",
        "1:26: cannot use + with string and int\n | {(1): (object.kind ?? 0) + 1}\n |                          ^",
    );
    check("{(1): 1}", "1:1: a key of a map must be a string, got int\n | {(1): 1}\n | ^");
}

#[test]
fn quantities_are_compared_and_counted_by_their_amount() {
    for (source, expected) in [
        ("container.limits.memory > '1Gi'", "false"),
        ("container.limits.memory > '19Mi' && '21Mi' > container.limits['memory']", "true"),
        ("container.limits.cpu == '1'", "true"),
        ("container.limits.cpu == container.requests.cpu", "true"),
        ("container.limits.cpu != '1000m'", "false"),
        ("container.limits.cpu in ['500m', '1']", "true"),
        ("container.limits.gpu > '1'", "false"),
        ("container.limits.gpu == nil", "true"),
        ("(container.limits.gpu ?? '0') < '1'", "true"),
        ("(container.limits.gpu ?? '') == ''", "true"),
        ("(container.limits.cpu != nil ? container.limits.cpu : '5') <= '1'", "true"),
        ("let m = container.limits.memory; m >= '20Mi'", "true"),
        ("any(values(container.limits), # > '10Mi')", "true"),
        ("any(spec.containers, .limits.memory > '1Gi')", "false"),
        ("quantity('0.1') + quantity('0.2') == quantity('300m')", "true"),
        ("(container.limits.memory ?? '0') + '1Mi'", "22020096"),
        ("(container.limits.cpu ?? '0') * 2 == '2'", "true"),
        ("container.limits != {} && max(values(container.limits)) == '20Mi'", "true"),
        ("sum(values(container.limits)) == quantity('20971521')", "true"),
        ("sort(values(container.limits))[0]", "1000m"),
        ("container.limits.memory", "20Mi"),
        ("string(container.limits.memory) endsWith 'Mi'", "true"),
        (
            "quantity(object.kind ?? '0') > '1'",
            "1:1: \"Pod\" is no quantity such as \"100m\", \"2\" or \"1Gi\"\n | quantity(object.kind ?? '0') > '1'\n | ^",
        ),
        ("(object.spec.containers[0].limit ?? 0) < quantity('3')", "true"),
    ] {
        check(source, expected);
    }
}
