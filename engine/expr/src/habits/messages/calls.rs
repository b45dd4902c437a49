//! Functions, methods and predicates of other languages.

use expect_test::expect;

use super::check;

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
