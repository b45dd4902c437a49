//! Texts that stand for something: amounts, versions, networks and patterns.

use expect_test::expect;

use super::check;
use crate::testing::Pod;

#[test]
fn a_constant_that_cannot_be_read_is_refused() {
    check(
        &[
            "now() - date('2026-01-01') > duration('30d')",
            "now() - date('2026-01-01') > duration('1 week')",
            "duration('soon') > duration('1h')",
            "now() > date('yesterday')",
            "now() > date('31.1.2026')",
            "now(timezone('Mars')) > now()",
            "int('abc') > 1",
            "int(trim(' abc ')) > 1",
            "quantity('1GB') > quantity('1')",
            "quantity('lots') > quantity('1')",
            "fromJSON('{') == nil",
        ],
        expect![[r#"
            now() - date('2026-01-01') > duration('30d')
                30: this always fails, because "30d" is not a duration such as 1h30m: write `duration("720h")`, in hours, minutes and seconds
            now() - date('2026-01-01') > duration('1 week')
                30: this always fails, because "1 week" is not a duration such as 1h30m: write `duration("168h")`, in hours, minutes and seconds
            duration('soon') > duration('1h')
                1: this always fails, because "soon" is not a duration such as 1h30m: write hours, minutes and seconds, such as `duration("1h30m")`
            now() > date('yesterday')
                9: this always fails, because "yesterday" is not a date of a known form: write `now() - duration("24h")`
            now() > date('31.1.2026')
                9: this always fails, because "31.1.2026" is not a date of a known form: write a date such as `date("2026-01-31")` or `date("2026-01-31T12:00:00Z")`
            now(timezone('Mars')) > now()
                5: this always fails, because unknown timezone "Mars": write a name of the IANA database, such as `timezone("Europe/Berlin")`
            int('abc') > 1
                1: this always fails, because "abc" is not an int
            int(trim(' abc ')) > 1
                1: this always fails, because "abc" is not an int
            quantity('1GB') > quantity('1')
                1: this always fails, because "1GB" is no quantity such as "100m", "2" or "1Gi": write `quantity("1G")`, without `B`
            quantity('lots') > quantity('1')
                1: this always fails, because "lots" is no quantity such as "100m", "2" or "1Gi": write a quantity such as `quantity("100m")` or `quantity("1Gi")`
            fromJSON('{') == nil
                1: this always fails, because this JSON ends too early
        "#]],
    );
}

#[test]
fn versions_networks_and_patterns_of_other_languages_are_shown_as_they_are_written_here() {
    check(
        &[
            "cidr('10.0.0.0/8').containsIP(container.name)",
            "cidr('10.0.0.0/8').containsIP(ip(container.name))",
            "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
            "cidr('10.0.0.0/8').contains(container.name)",
            "!cidr('10.0.0.0/8').contains(container.name)",
            "net.cidr_contains('10.0.0.0/8', container.name)",
            "net.cidr_is_valid(container.name)",
            "ip(container.name) == '10.0.0.1'",
            "semver(container.name).isLessThan(semver('1.2.0'))",
            "semver(container.name).compareTo(semver('1.2.0')) < 0",
            "semver(container.name).compareTo(semver('1.2.0')) == -1",
            "semver(container.name).compareTo(semver('1.2.0')) != 1",
            "semver.compare(container.name, '1.2.0') >= 0",
            "semver.compare(container.name, '1.2.0') == 1 && container.privileged",
            "semver.is_valid(container.name)",
            "semver_compare(container.name, '>=1.2')",
            "semverCompare('>=1.2', container.name)",
            "wildcard('prod-*', container.name)",
            "glob.match('prod-*', [], container.name)",
            "parse_yaml(container.name).a == 1",
            "yaml.unmarshal(container.name).a == 1",
            "base64_decode(container.name) == 'a'",
            "regex.match('^a', container.name)",
            "url(container.name).getHost() == 'a'",
            "isSemVer(container.name)",
            "isIp(container.name)",
        ],
        expect![[r#"
            cidr('10.0.0.0/8').containsIP(container.name)
                20: there is no method `containsIP`: write `container.name in cidr("10.0.0.0/8")`
            cidr('10.0.0.0/8').containsIP(ip(container.name))
                20: there is no method `containsIP`: write `container.name in cidr("10.0.0.0/8")`
            cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')
                20: there is no method `containsCIDR`: write `"10.1.0.0/16" in cidr("10.0.0.0/8")`
            cidr('10.0.0.0/8').contains(container.name)
                20: there is no method `contains`: write `container.name in cidr("10.0.0.0/8")`
            !cidr('10.0.0.0/8').contains(container.name)
                21: there is no method `contains`: write `container.name in cidr("10.0.0.0/8")`
            net.cidr_contains('10.0.0.0/8', container.name)
                5: unknown function `net.cidr_contains`: write `container.name in cidr("10.0.0.0/8")`
            net.cidr_is_valid(container.name)
                5: unknown function `net.cidr_is_valid`: write `isCIDR(container.name)`
            ip(container.name) == '10.0.0.1'
                1: unknown function `ip`: write `container.name`
            semver(container.name).isLessThan(semver('1.2.0'))
                24: there is no method `isLessThan`: write `semver(container.name) < semver("1.2.0")`
            semver(container.name).compareTo(semver('1.2.0')) < 0
                24: there is no method `compareTo`: write `semver(container.name) < semver("1.2.0")`
            semver(container.name).compareTo(semver('1.2.0')) == -1
                24: there is no method `compareTo`: write `semver(container.name) < semver("1.2.0")`
            semver(container.name).compareTo(semver('1.2.0')) != 1
                24: there is no method `compareTo`: write `semver(container.name) <= semver("1.2.0")`
            semver.compare(container.name, '1.2.0') >= 0
                8: there is no method `compare`: write `semver(container.name) >= semver("1.2.0")`
            semver.compare(container.name, '1.2.0') == 1 && container.privileged
                8: there is no method `compare`: write `semver(container.name) > semver("1.2.0")`
            semver.is_valid(container.name)
                8: unknown function `semver.is_valid`: write `isSemver(container.name)`
            semver_compare(container.name, '>=1.2')
                1: unknown function `semver_compare`: write `semver(container.name) in ">=1.2"`
            semverCompare('>=1.2', container.name)
                1: unknown function `semverCompare`: write `semver(container.name) in ">=1.2"`
            wildcard('prod-*', container.name)
                1: unknown function `wildcard`: write `glob(container.name, "prod-*")`
            glob.match('prod-*', [], container.name)
                6: unknown function `glob.match`: write `glob(container.name, "prod-*")`
            parse_yaml(container.name).a == 1
                1: unknown function `parse_yaml`: write `fromYAML(container.name)`
            yaml.unmarshal(container.name).a == 1
                6: unknown function `yaml.unmarshal`: write `fromYAML(container.name)`
            base64_decode(container.name) == 'a'
                1: unknown function `base64_decode`: write `fromBase64(container.name)`
            regex.match('^a', container.name)
                7: unknown function `regex.match`: write `container.name matches "^a"`
            url(container.name).getHost() == 'a'
                1: unknown function `url`: write `text startsWith "https://"`, or take the host by `split(text, "/")[2]`
            isSemVer(container.name)
                1: unknown function `isSemVer`, did you mean `isSemver`?
            isIp(container.name)
                1: unknown function `isIp`, did you mean `isIP`?
        "#]],
    );
}

#[test]
fn texts_that_are_compared_letter_by_letter_are_warned_of() {
    for (source, way_out) in [
        ("container.image.tag >= 'v1.2.3'", "semver(container.image.tag) >= semver(\"v1.2.3\")"),
        ("'1.20' < container.image.tag", "semver(\"1.20\") < semver(container.image.tag)"),
        ("object.timeout > '30s'", "duration(object.timeout) > duration(\"30s\")"),
        ("object.count > '10'", "float(object.count) > float(\"10\")"),
        ("object.cpu > '500m'", "quantity(object.cpu) > quantity(\"500m\")"),
        ("any(spec.containers, container.privileged)", "does not look at the element"),
        ("count(object.flags) > 1", "len(object.flags)"),
    ] {
        let program = Pod::new().compile(source).expect(source);
        let warnings: Vec<&str> = program.warnings().iter().map(|warning| warning.message.as_str()).collect();
        assert!(matches!(warnings[..], [warning] if warning.contains(way_out)), "{source}: {warnings:?}");
    }
}
