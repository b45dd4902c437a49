//! Another version of Portal, and the way back.

use portal_test_kit::image::PORTAL_IMAGE;
use serde_json::json;

use super::load::Load;
use super::{Installation, cluster_alone, portal, rolled_out};

/// What the other version is called. It is the same program: what differs between two releases is not known before there are two.
const OTHER_IMAGE: &str = "localhost/portal:other";

#[test]
fn an_upgrade_and_the_way_back_replace_operator_and_engine_and_no_request_fails() {
    // Alone, because the engines of all instances are replaced.
    let (cluster, _alone) = cluster_alone();
    cluster.tag_image(PORTAL_IMAGE, OTHER_IMAGE).unwrap();
    let installation = Installation::new(cluster, "upgraded", json!({}));
    installation.ready();
    installation.refuse_bad();
    let load = Load::start(cluster, installation.work());
    for image in [OTHER_IMAGE, PORTAL_IMAGE] {
        for arguments in [&["generate", "crds"][..], &["generate", "install", "--image", image]] {
            cluster.kubectl_with_input(&["apply", "--server-side", "--filename=-"], &portal(arguments)).unwrap();
        }
        rolled_out(cluster, "portal-operator", "portal-operator");
        installation.eventually("the engine runs the other image", || {
            let engine = &installation.get()["status"]["engines"][0];
            engine["image"] == image && engine["updatedReplicas"] == 2 && engine["readyReplicas"] == 2
        });
        installation.ready();
        assert!(installation.create_bad().is_err_and(|refusal| refusal.contains("it is bad")));
    }
    load.end();
    let status = &installation.get()["status"];
    assert_eq!(status["operatorVersion"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["engines"][0]["version"], env!("CARGO_PKG_VERSION"));
}
