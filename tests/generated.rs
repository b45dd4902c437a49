//! Files that are generated from the code are committed, and are what the code would generate now.

use std::path::Path;
use std::process::Command;

use portal_test_kit::repository;

/// What is generated, and into which file. A page that people write too has a region for it.
const FILES: [(&str, &str, Option<&str>); 12] = [
    ("command-line", "docs/reference/cli.md", None),
    ("expression-functions", "docs/reference/expression-language.md", Some("functions")),
    ("portal-instance", "crds/yaml/portal.io_portalinstances.yaml", None),
    ("portal-cluster-rule", "crds/yaml/portal.io_portalclusterrules.yaml", None),
    ("portal-rule", "crds/yaml/portal.io_portalrules.yaml", None),
    ("rule-schema", "docs/reference/rule-schema.md", Some("fields")),
    ("portal-instance-page", "docs/reference/crd/portalinstance.md", Some("kind")),
    ("portal-cluster-rule-page", "docs/reference/crd/portalclusterrule.md", Some("kind")),
    ("portal-rule-page", "docs/reference/crd/portalrule.md", Some("kind")),
    ("metrics", "docs/reference/metrics.md", None),
    ("rbac-posture", "docs/security/rbac-posture.md", Some("accounts")),
    ("expected-schema", "docs/reference/expected.schema.json", None),
];

#[test]
fn every_generated_file_is_up_to_date() {
    for (what, file, region) in FILES {
        let output = Command::new(env!("CARGO_BIN_EXE_portal")).args(["generate", what]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let generated = String::from_utf8(output.stdout).unwrap();
        let path = repository().join(file);
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        let wanted = region.map_or(generated.clone(), |region| with_region(&committed, region, &generated));
        compare(&path, &committed, &wanted);
    }
}

/// The page with what is generated between its markers.
fn with_region(page: &str, region: &str, generated: &str) -> String {
    let (begin, end) = (format!("<!-- begin generated: {region} -->\n"), "<!-- end generated -->");
    let start = page.find(&begin).expect("the page has the region's marker") + begin.len();
    let stop = start + page[start..].find(end).expect("the region ends");
    format!("{}{generated}{}", &page[..start], &page[stop..])
}

fn compare(path: &Path, committed: &str, wanted: &str) {
    if std::env::var_os("PORTAL_UPDATE").is_some() {
        std::fs::write(path, wanted).unwrap_or_else(|error| panic!("could not write {}: {error}", path.display()));
        return;
    }
    assert!(committed == wanted, "{} is not what the code generates: run `make generate`", path.display());
}
