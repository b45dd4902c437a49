//! What sources may reach for: the pure crates not for I/O, and a layer of the engine not for another layer.

use cargo_metadata::TargetKind;
use expect_test::{Expect, expect};

use super::{
    PURE, check,
    fixture::good_workspace,
    mentions::{Kind, Mention},
    modules::{Module, Tree},
};

/// What of the standard library does I/O, or asks the machine what time it is. Addresses without sockets are in `core::net`.
const IO: [&str; 17] = [
    "std::dbg!",
    "std::env",
    "std::eprint!",
    "std::eprintln!",
    "std::fs",
    "std::io::stderr",
    "std::io::stdin",
    "std::io::stdout",
    "std::net",
    "std::os",
    "std::print!",
    "std::println!",
    "std::process",
    "std::thread::sleep",
    "std::thread::spawn",
    "std::time::Instant",
    "std::time::SystemTime",
];

/// The modules of the engine that know nothing of each other. What two of them need lies beside them.
const LAYERS: [&str; 4] = ["crate::actions", "crate::admission", "crate::audit", "crate::network"];

pub(crate) fn violations(member: &str, target: &[TargetKind], tree: &Tree) -> Vec<String> {
    let is_tooling = target.iter().any(|kind| {
        matches!(kind, TargetKind::Bench | TargetKind::CustomBuild | TargetKind::Example | TargetKind::Test)
    });
    let mut sentences = Vec::new();
    for module in &tree.modules {
        if PURE.contains(&member) && !is_tooling && !module.test_only {
            sentences.extend(uses_of(&IO, member, module, tree));
        }
        let own_layer = LAYERS.into_iter().find(|layer| is_within(&module.path.join("::"), layer));
        if let Some(own_layer) = own_layer.filter(|_| member == "portal-engine") {
            let others: Vec<_> = LAYERS.into_iter().filter(|layer| *layer != own_layer).collect();
            sentences.extend(uses_of(&others, own_layer, module, tree));
        }
    }
    sentences
}

/// Where a module uses something that is banned for the subject.
fn uses_of(banned: &[&str], subject: &str, module: &Module, tree: &Tree) -> Vec<String> {
    let used = |mention: &Mention| use_of(banned, mention, module, tree);
    // The import has its sentence already: what it brought in needs none.
    let is_told = |mention: &Mention| {
        let has_path = matches!(mention.kind, Kind::Macro | Kind::Path);
        has_path && module.mentions.iter().any(|import| import.imports(&mention.path[0]) && used(import).is_some())
    };
    let mut sentences = Vec::new();
    for mention in &module.mentions {
        if let Some(used) = used(mention).filter(|_| !is_told(mention)) {
            sentences.push(format!("{}:{}: {subject} must not use {used}", module.file.display(), mention.line));
        }
    }
    sentences
}

fn use_of(banned: &[&str], mention: &Mention, module: &Module, tree: &Tree) -> Option<String> {
    let path = tree.resolve(&module.path, &mention.path).join("::");
    if matches!(mention.kind, Kind::Glob) && banned.iter().any(|banned| is_within(banned, &path)) {
        return Some(format!("all of {path}"));
    }
    let path = match mention.kind {
        // `env!` is not the module `std::env`.
        Kind::Macro if path.contains("::") => format!("{path}!"),
        Kind::Macro => format!("std::{path}!"),
        _ => path,
    };
    banned.iter().find(|banned| is_within(&path, banned)).map(ToString::to_string)
}

fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Gives a pure crate one source, and compares what is wrong then.
#[track_caller]
fn check_pure(source: &str, expected: Expect) {
    check(&good_workspace().write("engine/expr/src/lib.rs", source), expected);
}

/// Gives the layer `audit` one source, and compares what is wrong then.
#[track_caller]
fn check_layer(source: &str, expected: Expect) {
    check(&good_workspace().write("engine/src/audit.rs", source), expected);
}

#[test]
fn no_pure_crate_does_io() {
    let mut workspace = good_workspace();
    for folder in ["crds", "engine/core", "engine/document", "engine/expr"] {
        workspace = workspace.append(&format!("{folder}/src/lib.rs"), "use std::fs;");
    }
    check(
        &workspace,
        expect![[r#"
            engine/core/src/lib.rs:23: portal-core must not use std::fs
            crds/src/lib.rs:2: portal-crds must not use std::fs
            engine/document/src/lib.rs:2: portal-document must not use std::fs
            engine/expr/src/lib.rs:2: portal-expr must not use std::fs"#]],
    );
}

#[test]
fn every_part_of_std_that_does_io_is_noticed() {
    check_pure(
        r#"
fn f() -> Option<std::fs::File> {
    std::net::TcpStream::connect("api");
    std::process::exit(1);
    std::env::var("HOME");
    std::io::stdin();
    std::io::stdout();
    std::io::stderr();
    std::thread::spawn(f);
    std::thread::sleep(SECOND);
    std::os::fd::AsFd::as_fd(f);
    print!("");
    println!("");
    eprint!("");
    std::eprintln!("");
    dbg!(f);
    std::time::Instant::now();
    std::time::SystemTime::now();
}
"#,
        expect![[r#"
            engine/expr/src/lib.rs:2: portal-expr must not use std::fs
            engine/expr/src/lib.rs:3: portal-expr must not use std::net
            engine/expr/src/lib.rs:4: portal-expr must not use std::process
            engine/expr/src/lib.rs:5: portal-expr must not use std::env
            engine/expr/src/lib.rs:6: portal-expr must not use std::io::stdin
            engine/expr/src/lib.rs:7: portal-expr must not use std::io::stdout
            engine/expr/src/lib.rs:8: portal-expr must not use std::io::stderr
            engine/expr/src/lib.rs:9: portal-expr must not use std::thread::spawn
            engine/expr/src/lib.rs:10: portal-expr must not use std::thread::sleep
            engine/expr/src/lib.rs:11: portal-expr must not use std::os
            engine/expr/src/lib.rs:12: portal-expr must not use std::print!
            engine/expr/src/lib.rs:13: portal-expr must not use std::println!
            engine/expr/src/lib.rs:14: portal-expr must not use std::eprint!
            engine/expr/src/lib.rs:15: portal-expr must not use std::eprintln!
            engine/expr/src/lib.rs:16: portal-expr must not use std::dbg!
            engine/expr/src/lib.rs:17: portal-expr must not use std::time::Instant
            engine/expr/src/lib.rs:18: portal-expr must not use std::time::SystemTime"#]],
    );
}

#[test]
fn a_group_of_imports_hides_nothing() {
    check_pure(
        "
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{Read, stdin},
    net as network,
    thread::{self},
};
fn f() { thread::spawn(f) }
",
        expect![[r#"
            engine/expr/src/lib.rs:4: portal-expr must not use std::fs
            engine/expr/src/lib.rs:5: portal-expr must not use std::io::stdin
            engine/expr/src/lib.rs:6: portal-expr must not use std::net
            engine/expr/src/lib.rs:9: portal-expr must not use std::thread::spawn"#]],
    );
}

#[test]
fn an_import_is_told_once() {
    check_pure(
        "use std::fs; fn f() {\n fs::read(p); fs::File::open(p)\n}",
        expect!["engine/expr/src/lib.rs:1: portal-expr must not use std::fs"],
    );
}

#[test]
fn a_new_name_hides_nothing() {
    check_pure(
        "
extern crate std as library;
use std as standard;
use standard::io as console;
use console as terminal;
use std::println as say;
fn f() {
    library::fs::read(p);
    standard::env::var(p);
    terminal::stdout();
    say!();
}
",
        expect![[r#"
            engine/expr/src/lib.rs:8: portal-expr must not use std::fs
            engine/expr/src/lib.rs:9: portal-expr must not use std::env
            engine/expr/src/lib.rs:10: portal-expr must not use std::io::stdout
            engine/expr/src/lib.rs:11: portal-expr must not use std::println!"#]],
    );
}

#[test]
fn another_module_hides_nothing() {
    check_pure(
        "
mod prelude { pub use std::io as console; pub use std::thread; }
mod a {
    use super::prelude::*;
    fn f() { console::stdout(); }
    mod b {
        use super::*;
        fn f() { thread::spawn(f); }
    }
}
fn f() {
    prelude::thread::sleep(SECOND);
    self::prelude::console::stderr();
}
",
        expect![[r#"
            engine/expr/src/lib.rs:12: portal-expr must not use std::thread::sleep
            engine/expr/src/lib.rs:13: portal-expr must not use std::io::stderr
            engine/expr/src/lib.rs:5: portal-expr must not use std::io::stdout
            engine/expr/src/lib.rs:8: portal-expr must not use std::thread::spawn"#]],
    );
}

#[test]
fn importing_all_of_what_holds_io_is_noticed() {
    check_pure(
        "use std::*;\nuse std::io::*;\nuse std::io::prelude::*;\nuse std::fs::*;",
        expect![[r#"
        engine/expr/src/lib.rs:1: portal-expr must not use all of std
        engine/expr/src/lib.rs:2: portal-expr must not use all of std::io
        engine/expr/src/lib.rs:4: portal-expr must not use all of std::fs"#]],
    );
}

#[test]
fn what_a_macro_is_given_is_read() {
    check_pure(
        r#"
macro_rules! read {
    ($path:expr) => {{
        use std::{collections::*, fs::{self, File}, env::*};
        $crate::check!(std::io::stdin().lines(), [std::process::id()])
    }};
}
fn f() {
    assert!(a != b, "{}", {
        println!("{}", std::net::Ipv4Addr::LOCALHOST)
    });
}
#[derive(Parser)]
#[arg(default_value_t = std::env::temp_dir())]
struct Arguments;
"#,
        expect![[r#"
            engine/expr/src/lib.rs:4: portal-expr must not use std::fs
            engine/expr/src/lib.rs:4: portal-expr must not use all of std::env
            engine/expr/src/lib.rs:5: portal-expr must not use std::io::stdin
            engine/expr/src/lib.rs:5: portal-expr must not use std::process
            engine/expr/src/lib.rs:10: portal-expr must not use std::println!
            engine/expr/src/lib.rs:10: portal-expr must not use std::net
            engine/expr/src/lib.rs:14: portal-expr must not use std::env"#]],
    );
}

#[test]
fn only_a_module_that_is_never_built_without_tests_may_do_io() {
    check_pure(
        "
#[cfg(not(test))]
mod a { use std::fs; }
#[cfg(any(test, debug))]
mod b { use std::fs; }
#[cfg(test)]
mod c { mod d { use std::fs; } }
",
        expect![[r#"
            engine/expr/src/lib.rs:3: portal-expr must not use std::fs
            engine/expr/src/lib.rs:5: portal-expr must not use std::fs"#]],
    );
}

#[test]
fn a_binary_of_a_pure_crate_does_no_io() {
    check(
        &good_workspace().write("crds/src/bin/yaml.rs", "fn main() { println!() }"),
        expect!["crds/src/bin/yaml.rs:1: portal-crds must not use std::println!"],
    );
}

#[test]
fn no_layer_uses_another() {
    let source = "use crate::{actions, admission, audit, network};";
    let mut workspace = good_workspace();
    for layer in ["actions", "admission/review", "audit", "network"] {
        workspace = workspace.write(&format!("engine/src/{layer}.rs"), source);
    }
    check(
        &workspace,
        expect![[r#"
        engine/src/actions.rs:1: crate::actions must not use crate::admission
        engine/src/actions.rs:1: crate::actions must not use crate::audit
        engine/src/actions.rs:1: crate::actions must not use crate::network
        engine/src/admission/review.rs:1: crate::admission must not use crate::actions
        engine/src/admission/review.rs:1: crate::admission must not use crate::audit
        engine/src/admission/review.rs:1: crate::admission must not use crate::network
        engine/src/audit.rs:1: crate::audit must not use crate::actions
        engine/src/audit.rs:1: crate::audit must not use crate::admission
        engine/src/audit.rs:1: crate::audit must not use crate::network
        engine/src/network.rs:1: crate::network must not use crate::actions
        engine/src/network.rs:1: crate::network must not use crate::admission
        engine/src/network.rs:1: crate::network must not use crate::audit"#]],
    );
}

#[test]
fn a_layer_reaches_no_other_by_any_kind_of_path() {
    check_layer(
        "
use super::admission;
use crate::network::Graph as Map;
fn f(network: crate::network::Graph) {
    super::actions::act();
    crate::actions::check!();
    assert!(crate::actions::act());
    if let self::super::network::Edge { .. } = network {}
}
mod inner {
    use crate::cache;
    use super::super::actions;
}
#[cfg(test)]
mod tests {
    use crate::admission::review;
}
",
        expect![[r#"
            engine/src/audit.rs:2: crate::audit must not use crate::admission
            engine/src/audit.rs:3: crate::audit must not use crate::network
            engine/src/audit.rs:4: crate::audit must not use crate::network
            engine/src/audit.rs:5: crate::audit must not use crate::actions
            engine/src/audit.rs:6: crate::audit must not use crate::actions
            engine/src/audit.rs:7: crate::audit must not use crate::actions
            engine/src/audit.rs:8: crate::audit must not use crate::network
            engine/src/audit.rs:12: crate::audit must not use crate::actions
            engine/src/audit.rs:16: crate::audit must not use crate::admission"#]],
    );
}

#[test]
fn a_new_name_hides_no_layer() {
    check_layer(
        "
extern crate self as portal;
use crate as engine;
use super as root;
fn f() {
    portal::admission::admit();
    engine::network::analyse();
    root::actions::act();
}
",
        expect![[r#"
            engine/src/audit.rs:6: crate::audit must not use crate::admission
            engine/src/audit.rs:7: crate::audit must not use crate::network
            engine/src/audit.rs:8: crate::audit must not use crate::actions"#]],
    );
}

#[test]
fn another_module_hides_no_layer() {
    // `run` may use `admission`, but not for `audit`.
    check_layer(
        "use crate::run::admission::admit;",
        expect!["engine/src/audit.rs:1: crate::audit must not use crate::admission"],
    );
}

#[test]
fn a_layer_does_not_import_all_of_the_crate() {
    check_layer(
        "use super::*;\nfn f() { network::f() }",
        expect![[r#"
        engine/src/audit.rs:1: crate::audit must not use all of crate
        engine/src/audit.rs:2: crate::audit must not use crate::network"#]],
    );
}
