//! Calls of several names that are written out.

use crate::{CallSite, Read, Segment, Slot, testing::Pod};

/// What is called with which names, and where these are; or what is wrong.
#[track_caller]
fn check(table: &[(&str, &str)]) {
    for (source, expected) in table {
        let text = match Pod::new().compile(source) {
            Err(error) => format!("{}:{}: {}", error.line, error.column, error.message),
            Ok(program) => {
                let site = |site: &CallSite| {
                    let among = site.among.iter().map(|name| format!("{} at {}:{}", name.text, name.line, name.column));
                    let among: Vec<String> = among.collect();
                    format!("{} of {:?} among {}", site.name, site.names, among.join(", "))
                };
                program.calls().iter().map(site).collect::<Vec<_>>().join("; ")
            }
        };
        assert_eq!(text, *expected, "{source}");
    }
}

#[test]
fn names_that_are_written_out_are_known_with_their_places() {
    check(&[
        ("cluster.any('a', \"b\").byRef('ns', object.ref) == nil", "byRef of [] among a at 1:13, b at 1:18"),
        ("cluster.fresh.any(`a`).byRef('ns', object.ref) == nil", "byRef of [\"fresh\"] among a at 1:19"),
        ("cluster\n.any(\n  'a').byRef('ns', object.ref) == nil", "byRef of [] among a at 3:3"),
        ("cluster?.any('a')?.byRef('ns', object.ref)?.spec == nil", "byRef of [] among a at 1:14"),
        ("any(object.refs, cluster.any('a').byRef('ns', #) == nil)", "byRef of [] among a at 1:30"),
        ("cluster.any.list('ns') == []", "list of [\"any\"] among "),
    ]);
}

#[test]
fn the_word_means_nothing_elsewhere() {
    check(&[
        ("any(object.list, .x == 1) && all(object.list, .y == 1)", ""),
        (
            "object.any('a').byRef('ns', object.ref) == nil",
            r#"1:8: there is no method `any`: write `any(object, "a")`"#,
        ),
        (
            "cluster.any('a').b.byRef('ns', object.ref) == nil",
            r#"1:9: `cluster` has no function `any` alone: write `cluster.any("a").byRef(ns, ref)`"#,
        ),
        (
            "cluster.any('a').any('b').byRef('ns', object.ref) == nil",
            "1:18: `any(…)` has no function `any`, it has `byRef`",
        ),
        ("cluster.any('a').byRef('ns', object.ref).byRef('ns', object.ref) == nil", "1:42: there is no method `byRef`"),
    ]);
}

#[test]
fn what_a_reference_is_is_read() {
    let object = |path: &[&str]| {
        let segment = |name: &&str| if *name == "*" { Segment::Each } else { Segment::Field((*name).to_owned()) };
        Read { root: Slot(1), path: path.iter().map(segment).collect() }
    };
    for (source, expected) in [
        ("cluster.any('a').byRef('ns', object.spec.ref) == nil", object(&["spec", "ref"])),
        ("any(object.refs, cluster.any('a').byRef('ns', #) == nil)", object(&["refs", "*"])),
        ("cluster.any('a').byRef('ns', {kind: object.kind}) == nil", object(&["kind"])),
    ] {
        assert_eq!(Pod::new().compile(source).expect(source).facts().reads, [expected], "{source}");
    }
}
