//! The documentation says what expressions give: every `expr` block marked `runnable` is evaluated.

use std::path::Path;

use portal_test_kit::pages::{self, Language};
use portal_test_kit::repository;

#[test]
fn every_expression_on_a_page_gives_what_the_page_says() {
    let mut count = 0;
    for path in pages::find(&repository().join("docs")).unwrap() {
        let text = std::fs::read_to_string(&path).unwrap();
        let blocks = pages::blocks(&text).unwrap_or_else(|error| panic!("{}: {error:#}", path.display()));
        count += blocks.iter().filter(|block| block.language == Language::Expr).count();
        pages::evaluate(&path, &blocks, Path::new(env!("CARGO_BIN_EXE_portal")))
            .unwrap_or_else(|error| panic!("{error:#}"));
    }
    assert!(count > 0, "the documentation has expressions");
}
