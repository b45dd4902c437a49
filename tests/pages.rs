//! The documentation says what happens: every block marked `runnable` is run, and prints what its page says.

use std::path::Path;

use portal_test_kit::cache::Cache;
use portal_test_kit::image::{DOCUMENTED_IMAGE, PORTAL_IMAGE};
use portal_test_kit::pages::{self, Block, Language};
use portal_test_kit::{Cluster, Size, prepare, repository};

#[test]
fn every_runnable_block_prints_what_its_page_says() {
    let mut paths = pages::find(&repository().join("docs")).unwrap();
    paths.push(repository().join("README.md"));
    let mut count = 0;
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let blocks = pages::blocks(&text).unwrap_or_else(|error| panic!("{}: {error:#}", path.display()));
        count += blocks.iter().filter(|block| block.language != Language::Expr).count();
        run(&path, &text, &blocks).unwrap_or_else(|error| panic!("{error:#}"));
    }
    assert!(count > 0, "the documentation has runnable blocks");
}

/// Runs the blocks of a page that need a cluster, in one of its own: it reads like the page of a person who just started one.
fn run(path: &Path, text: &str, blocks: &[Block]) -> anyhow::Result<()> {
    let with_cluster = blocks.iter().filter(|block| block.language != Language::Expr);
    let Some(size) = with_cluster.map(|block| block.size).max_by_key(|size| *size as u8) else { return Ok(()) };
    let cluster = Cluster::start(size)?;
    if size == Size::Full {
        cluster.import_image(&prepare::portal_image(&Cache::open()?)?)?;
        cluster.tag_image(PORTAL_IMAGE, DOCUMENTED_IMAGE)?;
    }
    let portal = Path::new(env!("CARGO_BIN_EXE_portal")).parent().expect("a program lies in a folder");
    if let Some((earlier, blocks)) = pages::before(path, text)? {
        pages::run(&earlier, &blocks, &cluster, &[portal])?;
    }
    pages::run(path, blocks, &cluster, &[portal])
}
