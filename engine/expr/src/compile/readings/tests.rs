//! Versions and networks in rules: what they are compared with, and what is refused with what to write.

use crate::testing::Pod;

/// What each expression gives.
#[track_caller]
fn check(table: &[(&str, &str)]) {
    let pod = Pod::new();
    for (source, expected) in table {
        assert_eq!(pod.evaluate(source), *expected, "{source}");
    }
}

/// Why each expression is refused.
#[track_caller]
fn check_refused(table: &[(&str, &str)]) {
    let pod = Pod::new();
    for (source, expected) in table {
        let error = pod.compile(source).expect_err(source);
        assert_eq!(error.message, *expected, "{source}");
    }
}

#[test]
fn a_text_beside_a_version_is_one() {
    check(&[
        ("semver(container.image.tag ?? '0') < '1.27'", "true"),
        ("'1.10' > semver(container.image.tag ?? '0')", "true"),
        ("semver(container.image.tag ?? '0') == 'v1.2.0'", "true"),
        ("semver(container.image.tag ?? '0') != '1.2'", "false"),
        ("semver(container.image.tag ?? '0') > '1.2.0-rc.1'", "true"),
        ("semver(container.image.tag ?? '0') in ['1.1', '1.2.0']", "true"),
        ("semver(container.image.tag ?? '0') in ['1.2.0-rc.1']", "false"),
        ("semver(container.image.tag ?? '0') not in ['1.1', '1.2.0']", "false"),
        ("let v = semver(container.image.tag ?? '0'); '1' < v && v < '2'", "true"),
        ("semver('1.9') < semver('1.10-a')", "true"),
        ("any(['1.9', '1.10'], semver(#) > '1.9.5')", "true"),
        ("max(map(['1.9', '1.10'], semver(#))) == '1.10'", "true"),
        ("semver(object.kind == 'Pod' ? 'v2' : 'x') >= '2'", "true"),
    ]);
}

#[test]
fn a_version_is_in_a_range() {
    check(&[
        ("semver(container.image.tag ?? '0') in '>=1.0 <2 || 3.x'", "true"),
        ("semver(container.image.tag ?? '0') not in '1.2.x'", "false"),
        ("semver('1.19.0-evil') in '<1.20'", "true"),
        (
            "semver('1.2.3') in container.name",
            "1:17: \"web\" is no version such as \"1.2.3\" or \"1.x\"\n | semver('1.2.3') in container.name\n |                 ^",
        ),
        ("semver('1.2.3') in object.spec.range", "false"),
        ("semver('1.2.3') in fromJSON('\"1.x\"')", "true"),
    ]);
    check_refused(&[
        (
            "semver(container.name) in '>=1.x.3'",
            "\">=1.x.3\" is no range of versions: \"1.x.3\" is no version such as \"1.2.3\" or \"1.x\"",
        ),
        (
            "semver(container.name) in '!=1'",
            "\"!=1\" is no range of versions: `!=` is none of the operators =, >, >=, <, <=, ^ and ~",
        ),
        (
            "semver(container.name) in ''",
            "\"\" is no range of versions: a range has a version such as \"1.2\" on each side of `||`",
        ),
        (
            "container.name in '>=1'",
            "`in` looks for an element of a list or a key of a map: write `container.name in [\">=1\"]`",
        ),
    ]);
}

#[test]
fn a_version_is_compared_with_nothing_but_versions() {
    check_refused(&[
        ("semver(container.name) < 'latest'", "\"latest\" is no version such as \"1.2.3\" or \"v1.27\""),
        (
            "semver(container.name) == '>=1.2'",
            "\">=1.2\" is no version such as \"1.2.3\" or \"v1.27\": a range stands behind `in`",
        ),
        (
            "semver(container.name) in ['>=1.2']",
            "\">=1.2\" is no version such as \"1.2.3\" or \"v1.27\": a range stands behind `in`",
        ),
        ("semver(container.name) != ''", "\"\" is no version such as \"1.2.3\" or \"v1.27\": what is missing is `nil`"),
        ("semver(container.name) > 1.20", "a version is compared with a version: write `\"1.20\"`"),
        ("2 < semver(container.name)", "a version is compared with a version: write `\"2\"`"),
        (
            "semver(container.name) > container.image",
            "a version is compared with a version, and this is string: write `semver(…)` around it",
        ),
        (
            "semver(container.name) in container.args",
            "a version is compared with a version, and this is array of string: write `any(container.args, semver(#) == …)`",
        ),
        (
            "semver(container.name) == cidr('10.0.0.0/8')",
            "a version is compared with a version, and this is network: write `semver(…)` around it",
        ),
        (
            "(container.privileged ? semver(container.name) : 'x') < '2'",
            "this may be a version or a text: write `semver(…)` around it",
        ),
        (
            "semver(container.name) startsWith '1.'",
            "`startsWith` does not work between version and string: the text of a version is `string(…)`",
        ),
        ("semver(container.name) + 1 > 2", "`+` does not work between version and int"),
        (
            "semver(container.name).major == 1",
            "a value that is version has no field `major`: write `… in \"1.x\"`, or `… < \"2\"`",
        ),
        (
            "semver(container.name).minor() == 1",
            "a version has no method `minor`: write `… in \"1.x\"`, or `… < \"2\"`",
        ),
        (
            "semver('latest') > '1'",
            "this always fails, because \"latest\" is no version such as \"1.2.3\" or \"v1.27\": write a version such as `semver(\"1.2.3\")`",
        ),
        (
            "semver('>=1') > '1'",
            "this always fails, because \">=1\" is no version such as \"1.2.3\" or \"v1.27\": a range stands behind `in`, write `semver(…) in \">=1\"`",
        ),
        ("semver(1.2) > '1'", "semver expects a string, got float"),
    ]);
}

#[test]
fn an_address_is_in_a_network() {
    check(&[
        ("'10.1.2.3' in cidr('10.0.0.0/8')", "true"),
        ("'::ffff:10.1.2.3' in cidr('10.0.0.0/8')", "true"),
        ("'10.1.0.0/16' in cidr('10.0.0.0/8')", "true"),
        ("'10.1.2.3' not in cidr(['10.0.0.0/8', 'fd00::/8'])", "false"),
        ("'10.1.2.3' in [cidr('192.168.0.0/16'), '10.0.0.0/8']", "true"),
        ("cidr('10.1.0.0/16') in ['10.0.0.0/8']", "true"),
        ("cidr('10.1.0.0/16') == '10.1.0.0/16'", "true"),
        ("object.status.podIP in cidr('10.0.0.0/8')", "false"),
        ("nil in cidr('10.0.0.0/8')", "false"),
        ("any(['10.1.2.3', '11.1.2.3'], # not in cidr('10.0.0.0/8'))", "true"),
        ("let inside = cidr(['10.0.0.0/8']); all(['10.1.2.3'], # in inside)", "true"),
        ("isIP(container.name) && container.name in cidr('10.0.0.0/8')", "false"),
        (
            "container.name in cidr('10.0.0.0/8')",
            "1:16: \"web\" is no address such as \"10.0.0.1\" and no network such as \"10.0.0.0/8\"\n | container.name in cidr('10.0.0.0/8')\n |                ^",
        ),
    ]);
}

#[test]
fn what_is_no_network_is_refused_when_it_can_be_known() {
    check_refused(&[
        (
            "container.name in cidr('10.0.0.1')",
            "this always fails, because \"10.0.0.1\" is no network such as \"10.0.0.0/8\": write `cidr(\"10.0.0.1/32\")` for one address",
        ),
        (
            "container.name in cidr('::1')",
            "this always fails, because \"::1\" is no network such as \"10.0.0.0/8\": write `cidr(\"::1/128\")` for one address",
        ),
        (
            "container.name in cidr('10/8')",
            "this always fails, because \"10/8\" is no network such as \"10.0.0.0/8\": write a network such as `cidr(\"10.0.0.0/8\")`",
        ),
        (
            "container.name in cidr('10.0.0.1/8')",
            "\"10.0.0.1/8\" says more than a network: write \"10.0.0.0/8\", or \"10.0.0.1/32\" for one address",
        ),
        (
            "container.name in cidr(['fd00::1/8'])",
            "\"fd00::1/8\" says more than a network: write \"fd00::/8\", or \"fd00::1/128\" for one address",
        ),
        (
            "'10.0.0.1/8' in cidr(container.name)",
            "\"10.0.0.1/8\" says more than a network: write \"10.0.0.0/8\", or \"10.0.0.1/32\" for one address",
        ),
        ("'10.0.0' in cidr(container.name)", "\"10.0.0\" is no address such as \"10.0.0.1\""),
        ("5 in cidr(container.name)", "an address is text such as \"10.0.0.1\", and this is int"),
        (
            "container.args in cidr(container.name)",
            "an address is text such as \"10.0.0.1\", and this is array of string",
        ),
        ("container.name in [cidr('10.0.0.0/8'), '10']", "\"10\" is no network such as \"10.0.0.0/8\""),
        (
            "cidr(container.name) == container.image",
            "a network is compared with a network, and this is string: write `cidr(…)` around it",
        ),
        ("cidr(container.name) < cidr('10.0.0.0/8')", "`<` does not work between network and network"),
        ("cidr(5) == nil", "cidr expects a string or an array of strings, got int"),
        ("cidr([5]) == nil", "cidr expects a string or an array of strings, got array of int"),
        ("isIP(5)", "isIP expects a string, got int"),
        ("isIP() || true", "isIP takes 1 argument, got 0"),
    ]);
}

#[test]
fn a_question_says_that_something_is_there() {
    for source in [
        "isSemver(container.image.tag) && semver(container.image.tag) < '2'",
        "not isSemver(container.image.tag) || semver(container.image.tag) < '2'",
        "isSemver(object.version) ? semver(object.version) in '1.x' : true",
        "isCIDR(object.range) && '10.0.0.1' in cidr(object.range)",
        "isQuantity(object.size) && quantity(object.size) > '1Gi'",
        "isIP(object.ip) && upper(object.ip) == 'A'",
        "let is_version = isSemver(object.v); is_version && semver(object.v) < '1'",
    ] {
        assert!(Pod::new().compile(source).is_ok(), "{source}");
    }
    check_refused(&[
        (
            "semver(container.image.tag) < '2'",
            "`container.image.tag` may be missing, and may be no version: write `isSemver(container.image.tag) && …` to leave out what is none",
        ),
        (
            "isSemver(object.a) && semver(object.b) < '2'",
            "`object.b` may be missing, and may be no version: write `isSemver(object.b) && …` to leave out what is none",
        ),
        (
            "'10.0.0.1' in cidr(object.range)",
            "`object.range` may be missing: write `cidr(object.range ?? [])` to give it a value, or `object.range != nil && …` to leave out what has none",
        ),
        (
            "glob(object.name, 'a*')",
            "`object.name` may be missing: write `glob(object.name ?? \"\", \"a*\")` to give it a value, or `object.name != nil && …` to leave out what has none",
        ),
        (
            "fromYAML(object.text).a == 1",
            "`object.text` may be missing: write `fromYAML(object.text ?? \"\")` to give it a value, or `object.text != nil && …` to leave out what has none",
        ),
        (
            "'10.0.0.1' in cidr([container.labels.range, '10.0.0.0/8'])",
            "elements of `[container.labels.range, \"10.0.0.0/8\"]` may be missing: write `cidr(filter([container.labels.range, \"10.0.0.0/8\"], # != nil))` to leave those out, or `?? …` where they are read",
        ),
        (
            "glob('prod-*', container.name)",
            "the pattern of `glob` comes last: write `glob(container.name, \"prod-*\")`",
        ),
    ]);
}

#[test]
fn strict_mode_has_none_of_these_functions() {
    let pod = Pod::new();
    for name in crate::builtins::our_names() {
        let source = format!("{name}('1')");
        let program = crate::compile(&source, &pod.schema, crate::Mode::Strict).expect("Go finds out when it calls it");
        let arena = crate::Arena::new();
        let outcome = program.evaluate(&pod, &arena, &crate::Limits::default(), crate::Moment::default());
        assert_eq!(outcome.unwrap_err().message, "a value that is nil cannot be called", "{name}");
    }
}

#[test]
fn a_number_that_stands_for_a_missing_amount_is_one() {
    check(&[
        ("sum(spec.containers, .limits.cpu ?? 0) > '4'", "false"),
        ("sum(spec.containers, .limits.cpu ?? 0) == '0'", "true"),
        ("sum([container, spec.containers[0]], .limits.cpu ?? 0) == '1'", "true"),
        ("sum(map(spec.containers, .limits.cpu), # ?? 0) == '0'", "true"),
        ("sum(spec.containers, .limits.cpu ?? 0.5) == '1'", "true"),
        ("(container.limits.gpu ?? 0) + (container.limits.cpu ?? 0) == '1'", "true"),
        ("(container.limits.gpu != nil ? container.limits.gpu : 2) > '1500m'", "true"),
        ("sortBy(spec.containers, .limits.cpu ?? 0)[0].image", "web:1.2"),
        ("(max(values(container.limits)) ?? 0) > '10Mi'", "true"),
        ("(min(values(spec.containers[0].limits)) ?? 0.5) < '1'", "true"),
        ("quantity(reduce([container, container], #acc + (.limits.cpu ?? 0), 0)) == '2'", "true"),
    ]);
    check_refused(&[
        (
            "sum(spec.containers, .limits.cpu ?? '') > '4'",
            "this may be a quantity or a text: write `?? \"0\"`, or `quantity(…)` around it",
        ),
        (
            "(container.limits.cpu ?? container.name) + '1' > '4'",
            "this may be a quantity or a text: write `?? \"0\"`, or `quantity(…)` around it",
        ),
        (
            "(container.limits.cpu ?? container.privileged) > '4'",
            "this may be a quantity or a bool: write `?? \"0\"`, or `quantity(…)` around it",
        ),
        (
            "(max(values(container.limits)) ?? '') > sum(spec.containers, .limits.cpu ?? 0)",
            "this may be a quantity or a text: write `?? \"0\"`, or `quantity(…)` around it",
        ),
        (
            "(object.limit ?? '') > sum(spec.containers, .limits.cpu ?? 0)",
            "\"\" is no quantity such as \"100m\", \"2\" or \"1Gi\": what is missing is `nil`",
        ),
        ("(container.limits.cpu ?? 0) > 4", "a quantity is compared with a quantity: write `\"4\"`"),
    ]);
}
