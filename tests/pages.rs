//! The documentation says what happens: every block marked `runnable` is run, and prints what its page says.

use std::path::Path;

use portal_test_kit::pages::{self, Language};
use portal_test_kit::{Cluster, repository};

#[test]
fn every_runnable_block_prints_what_its_page_says() {
    let mut paths = pages::find(&repository().join("docs")).unwrap();
    paths.push(repository().join("README.md"));
    let portal = Path::new(env!("CARGO_BIN_EXE_portal")).parent().unwrap();
    let mut count = 0;
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let blocks = pages::blocks(&text).unwrap_or_else(|error| panic!("{}: {error:#}", path.display()));
        let with_cluster = blocks.iter().filter(|block| block.language != Language::Expr);
        count += with_cluster.clone().count();
        let Some(size) = with_cluster.map(|block| block.size).max_by_key(|size| *size as u8) else { continue };
        // A page of its own cluster reads like the page of a person who just started one.
        let cluster = Cluster::start(size).unwrap();
        pages::run(&path, &blocks, &cluster, &[portal]).unwrap_or_else(|error| panic!("{error:#}"));
    }
    assert!(count > 0, "the documentation has runnable blocks");
}
