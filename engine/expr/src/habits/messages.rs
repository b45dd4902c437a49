//! What each habit of another language is told.

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
fn a_length_is_a_function() {
    check(
        &[
            "size(container.args) > 3",
            "container.args.size() > 3",
            "container.args.length > 3",
            "container.args.length() > 3",
            "container.image.tag.length > 5",
            "container.labels.length > 3",
            "object.spec.containers.length > 3",
            "object.spec.containers.size() > 3",
            "spec.containers.count() > 0",
            "count(spec.containers) > 0",
        ],
        expect![[r#"
            size(container.args) > 3
                1: unknown function `size`: write `len(container.args)`
            container.args.size() > 3
                16: there is no method `size`: write `len(container.args)`
            container.args.length > 3
                16: `length` is no field of this: write `len(container.args)`
            container.args.length() > 3
                16: there is no method `length`: write `len(container.args)`
            container.image.tag.length > 5
                21: `length` is no field of this: write `len(container.image.tag)`
            container.labels.length > 3
                18: `length` is no field of this: write `len(container.labels)`, or `container.labels["length"]` for a field of that name
            object.spec.containers.length > 3
                24: `length` is no field of this: write `len(object.spec.containers)`, or `object.spec.containers["length"]` for a field of that name
            object.spec.containers.size() > 3
                24: there is no method `size`: write `len(object.spec.containers)`
            spec.containers.count() > 0
                17: there is no method `count`: write `len(spec.containers)`
            count(spec.containers) > 0
                1: `count` counts what is true, and these are object: write `len(spec.containers)`
        "#]],
    );
}

#[test]
fn a_method_is_a_function_or_an_operator() {
    check(
        &[
            "container.image.startsWith('a')",
            "container.image.endsWith('a')",
            "container.image.contains('a')",
            "container.image.matches('a')",
            "container.image.includes('a')",
            "container.args.includes('-v')",
            "container.args.contains('-v')",
            "container.image.indexOf('x') > 0",
            "container.image.lower() == 'x'",
            "container.image.toLowerCase() == 'x'",
            "container.image.split(':')[0] == 'x'",
            "container.image.trim() == ''",
            "container.args.join(',') == ''",
            "container.image.substring(0, 3) == 'abc'",
            "container.image.split(':').size() == 1",
            "container.labels.app.startsWith('x')",
            "object.metadata.labels.hasOwnProperty('app')",
            "object.metadata.annotations.isEmpty()",
            "quantity('1').isGreaterThan(quantity('2'))",
            "now().unix() > 1",
            "now().getMinutes() > 1",
            "object.created.foo()",
        ],
        expect![[r#"
            container.image.startsWith('a')
                17: there is no method `startsWith`: write `container.image startsWith "a"`
            container.image.endsWith('a')
                17: there is no method `endsWith`: write `container.image endsWith "a"`
            container.image.contains('a')
                17: there is no method `contains`: write `container.image contains "a"`
            container.image.matches('a')
                17: there is no method `matches`: write `container.image matches "a"`
            container.image.includes('a')
                17: there is no method `includes`: write `container.image contains "a"`
            container.args.includes('-v')
                16: there is no method `includes`: write `"-v" in container.args`
            container.args.contains('-v')
                16: there is no method `contains`: write `"-v" in container.args`
            container.image.indexOf('x') > 0
                17: there is no method `indexOf`: write `indexOf(container.image, "x")`
            container.image.lower() == 'x'
                17: there is no method `lower`: write `lower(container.image)`
            container.image.toLowerCase() == 'x'
                17: there is no method `toLowerCase`: write `lower(container.image)`
            container.image.split(':')[0] == 'x'
                17: there is no method `split`: write `split(container.image, ":")`
            container.image.trim() == ''
                17: there is no method `trim`: write `trim(container.image)`
            container.args.join(',') == ''
                16: there is no method `join`: write `join(container.args, ",")`
            container.image.substring(0, 3) == 'abc'
                17: there is no method `substring`: write `container.image[0:3]`
            container.image.split(':').size() == 1
                28: there is no method `size`: write `len(split(container.image, ":"))`
            container.labels.app.startsWith('x')
                22: there is no method `startsWith`: write `container.labels.app startsWith "x"`
            object.metadata.labels.hasOwnProperty('app')
                24: there is no method `hasOwnProperty`: write `"app" in object.metadata.labels`
            object.metadata.annotations.isEmpty()
                29: there is no method `isEmpty`: write `len(object.metadata.annotations) == 0`
            quantity('1').isGreaterThan(quantity('2'))
                15: there is no method `isGreaterThan`: write `quantity("1") > quantity("2")`
            now().unix() > 1
                7: a time has no method `unix`, did you mean `Unix`?
            now().getMinutes() > 1
                7: a time has no method `getMinutes`, did you mean `Minute`?
            object.created.foo()
                16: there is no method `foo`
        "#]],
    );
}

#[test]
fn a_function_of_another_language_is_told_with_ours() {
    check(
        &[
            "startswith(container.image, 'x')",
            "startsWith(container.image, 'x')",
            "contains(container.image, 'x')",
            "container.args contains 'x'",
            "'x' in container.image",
            "container.image in ('x')",
            "container.image != nil && container.image < now()",
            "regex.match('^a', container.image)",
            "Object.keys(container.labels) == []",
            "JSON.parse(object.x).a == 1",
            "to_number(object.x) > 1",
            "timestamp('2026-01-01') < now()",
            "now > date('2026-01-01')",
            "type(object.x) == string",
        ],
        expect![[r#"
            startswith(container.image, 'x')
                1: unknown function `startswith`: write `container.image startsWith "x"`
            startsWith(container.image, 'x')
                1: expected a value, found `startsWith`; `startsWith` is an operator: write `container.image startsWith "x"`
            contains(container.image, 'x')
                1: expected a value, found `contains`; `contains` is an operator: write `container.image contains "x"`
            container.args contains 'x'
                16: `contains` does not work between array of string and string: write `"x" in container.args`
            'x' in container.image
                5: `in` looks for an element of a list or a key of a map: for text write `container.image contains "x"`
            container.image in ('x')
                17: `in` looks for an element of a list or a key of a map: write `container.image in ["x"]`
            container.image != nil && container.image < now()
                43: `<` does not work between string and time: write `date(container.image)`
            regex.match('^a', container.image)
                7: unknown function `regex.match`: write `container.image matches "^a"`
            Object.keys(container.labels) == []
                8: unknown function `Object.keys`: write `keys(container.labels)`
            JSON.parse(object.x).a == 1
                6: unknown function `JSON.parse`: write `fromJSON(object.x)`
            to_number(object.x) > 1
                1: unknown function `to_number`: write `float(object.x)`
            timestamp('2026-01-01') < now()
                1: unknown function `timestamp`: write `date("2026-01-01")`
            now > date('2026-01-01')
                1: unknown name `now`: write `now()`
            type(object.x) == string
                19: unknown name `string`: write `"string"` for the type that `type(…)` gives
        "#]],
    );
}

#[test]
fn a_predicate_has_no_variable() {
    check(
        &[
            "spec.containers.exists(c, c.privileged)",
            "spec.containers.all(c, c.image.startsWith('a') && has(c.privileged))",
            "spec.containers.filter(c, c.privileged).size() > 0",
            "spec.containers.map(c, c.image).exists(i, i.contains('x'))",
            "spec.containers.exists_one(c, c.privileged)",
            "spec.containers.some(c => c.privileged)",
            "spec.containers.every((c) => c.image !== null)",
            "spec.containers.any(c -> c.privileged)",
            "spec.containers.any(.privileged)",
            "spec.containers.all(c, c.ports.all(p, p.hostPort == 0))",
            "spec.containers.all(c, c.ports.all(p, p.hostPort == c.user))",
            "exists(spec.containers, .privileged)",
            "some(spec.containers, # != nil)",
            "every(spec.containers, c, c.privileged)",
            "any(spec.containers, c => c.privileged)",
            "any(spec.containers, c, c.privileged)",
            "spec.containers | any(c => c.privileged)",
            "any(spec.containers, (c) => { return c.privileged })",
            "spec.containers.forEach(c => c.privileged)",
            "any(spec.containers, @.privileged)",
            "@.image == 'x'",
            "some c in spec.containers",
            "any(c.privileged for c in spec.containers)",
            "spec.containers[*].image == 'x'",
            "spec.containers[?privileged==`true`]",
            "spec.containers[_].image == 'x'",
            "spec.containers.0.image == 'x'",
            "container.labels.all(k, k.startsWith('a'))",
            "container.ports.map(p => p.port).includes(80)",
            "spec.containers.filter(c => c.privileged).length > 1",
            "all(spec.containers, .image)",
            "any(spec.containers, c.image == 'x')",
            "any(spec.containers, image == 'x')",
            "container.args.image == 'x'",
        ],
        expect![[r#"
            spec.containers.exists(c, c.privileged)
                17: there is no method `exists`: write `any(spec.containers, .privileged)`
            spec.containers.all(c, c.image.startsWith('a') && has(c.privileged))
                17: there is no method `all`: write `all(spec.containers, .image startsWith "a" && .privileged != nil)`
            spec.containers.filter(c, c.privileged).size() > 0
                41: there is no method `size`: write `len(filter(spec.containers, .privileged))`
            spec.containers.map(c, c.image).exists(i, i.contains('x'))
                33: there is no method `exists`: write `any(map(spec.containers, .image), # contains "x")`
            spec.containers.exists_one(c, c.privileged)
                17: there is no method `exists_one`: write `one(spec.containers, .privileged)`
            spec.containers.some(c => c.privileged)
                25: expected a value, found `>`; the body of a predicate has no parameter, `#` is the element and `.name` its field: write `any(spec.containers, .privileged)`
            spec.containers.every((c) => c.image !== null)
                28: expected a value, found `>`; the body of a predicate has no parameter, `#` is the element and `.name` its field: write `all(spec.containers, .image != nil)`
            spec.containers.any(c -> c.privileged)
                24: expected a value, found `>`; the body of a predicate has no parameter, `#` is the element and `.name` its field: write `any(spec.containers, .privileged)`
            spec.containers.any(.privileged)
                21: `.name` is a field of the element that a predicate looks at, as in `any(list, .size > 1)`: here is none: write `any(spec.containers, .privileged)`
            spec.containers.all(c, c.ports.all(p, p.hostPort == 0))
                17: there is no method `all`: write `all(spec.containers, all(.ports, .hostPort == 0))`
            spec.containers.all(c, c.ports.all(p, p.hostPort == c.user))
                17: there is no method `all`: write `all(spec.containers, let c = #; all(c.ports, .hostPort == c.user))`
            exists(spec.containers, .privileged)
                25: `.name` is a field of the element that a predicate looks at, as in `any(list, .size > 1)`: here is none: write `any(spec.containers, .privileged)`
            some(spec.containers, # != nil)
                23: `#` is the element that a predicate looks at, as in `any(list, # > 1)`: here is none: write `any(spec.containers, # != nil)`
            every(spec.containers, c, c.privileged)
                1: unknown function `every`: write `all(spec.containers, .privileged)`
            any(spec.containers, c => c.privileged)
                24: expected an operator or `)`, found `=`; the body of a predicate has no parameter, `#` is the element and `.name` its field: write `any(spec.containers, .privileged)`
            any(spec.containers, c, c.privileged)
                25: `any` takes no more than 2 arguments: write `any(spec.containers, .privileged)`
            spec.containers | any(c => c.privileged)
                25: expected an operator or `)`, found `=`; the body of a predicate has no parameter, `#` is the element and `.name` its field: write `any(spec.containers, .privileged)`
            any(spec.containers, (c) => { return c.privileged })
                26: expected an operator or `)`, found `=`; the body of a predicate has no parameter, `#` is the element and `.name` its field
            spec.containers.forEach(c => c.privileged)
                28: expected a value, found `>`; the body of a predicate has no parameter, `#` is the element and `.name` its field
            any(spec.containers, @.privileged)
                22: unexpected character `@`; the element that a predicate looks at is `#`, and anything else begins with a name: write `any(spec.containers, .privileged)`
            @.image == 'x'
                1: unexpected character `@`; the element that a predicate looks at is `#`, and anything else begins with a name
            some c in spec.containers
                6: expected an operator or the end, found `c`; write `any(list, …)` or `all(list, …)`, where `#` is the element and `.name` its field
            any(c.privileged for c in spec.containers)
                18: expected an operator or `)`, found `for`; a list is asked by `any(list, …)`, where `#` is the element and `.name` its field: write `any(spec.containers, .privileged)`
            spec.containers[*].image == 'x'
                17: expected a value or `:`, found `*`; for all elements there are `any(list, .name …)` and `map(list, .name)`: write `"x" in map(spec.containers, .image)`
            spec.containers[?privileged==`true`]
                17: expected a value or `:`, found `?`; for some elements there are `any(list, …)` and `filter(list, …)`: write `any(spec.containers, .privileged == true)`
            spec.containers[_].image == 'x'
                17: unknown name `_`: write `any(spec.containers, .image == "x")`
            spec.containers.0.image == 'x'
                17: `0.image` is not a number; an element of a list is `[0]`
            container.labels.all(k, k.startsWith('a'))
                18: there is no method `all`: write `all(keys(container.labels), # startsWith "a")`
            container.ports.map(p => p.port).includes(80)
                24: expected a value, found `>`; the body of a predicate has no parameter, `#` is the element and `.name` its field: write `80 in map(container.ports, .port)`
            spec.containers.filter(c => c.privileged).length > 1
                27: expected a value, found `>`; the body of a predicate has no parameter, `#` is the element and `.name` its field: write `len(filter(spec.containers, .privileged)) > 1`
            all(spec.containers, .image)
                22: the body of `all` must be true or false, and this is string: write `(.image ?? "") != ""`, or `.image != nil` to ask only whether it is there
            any(spec.containers, c.image == 'x')
                22: unknown name `c`: the element is `#`, write `.image`
            any(spec.containers, image == 'x')
                22: unknown name `image`: the element is `#`, write `.image`
            container.args.image == 'x'
                16: a list has no field `image`: write `"image" in container.args`
        "#]],
    );
}

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
                2: expected a key or `}`, found `{`; a name stands alone, without braces
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
