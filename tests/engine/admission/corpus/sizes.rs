//! Bodies that are deep, large, or made to cost more than they weigh.

use std::time::Duration;

use expect_test::expect;
use serde_json::json;

use super::{Corpus, bad_pod};
use crate::engine::admission::asking::{CLUSTER, head, post};

/// What a webhook takes.
const LIMIT: usize = 7 << 20;

/// What the API server takes of an object.
const OBJECT: usize = 3 << 20;

/// The review of a pod that violates a rule, with this JSON in a field that no rule reads.
fn with(json: &str) -> String {
    bad_pod().to_string().replace("\"hostNetwork\":true", &format!("\"hostNetwork\":true,\"x\":{json}"))
}

fn nested(open: &str, close: &str, levels: usize) -> String {
    with(&format!("{}1{}", open.repeat(levels), close.repeat(levels)))
}

/// A body of so many bytes.
fn padded(length: usize) -> String {
    let body = with("\"\"");
    let padding = "x".repeat(length - body.len());
    with(&format!("\"{padding}\""))
}

#[test]
fn what_the_api_server_takes_is_judged_however_deep_it_is_and_what_is_deeper_is_refused() {
    let corpus = Corpus::shared();
    // The object and its spec are levels too.
    for levels in [128, 1_000, 10_000 - 2] {
        let list = nested("[", "]", levels);
        // What has to be copied, because rules may not see all of it.
        let copied = list.replace("\"metadata\":{", "\"metadata\":{\"managedFields\":[{}],");
        corpus.all([list, copied, nested("{\"a\":", "}", levels)], "denied: host-network: spec.hostNetwork is true");
    }
    corpus.review(
        nested("[", "]", 10_010),
        expect![
            "400: the body is no AdmissionReview that can be read: 1:10349: nesting is over the limit of 10008 levels"
        ],
    );
    corpus.review(
        nested("{\"a\":", "}", 100_000),
        expect![
            "400: the body is no AdmissionReview that can be read: 1:50365: nesting is over the limit of 10008 levels"
        ],
    );
    corpus.review(
        "[".repeat(1_000_000),
        expect![
            "400: the body is no AdmissionReview that can be read: 1:10009: nesting is over the limit of 10008 levels"
        ],
    );
    corpus.review(
        "{\"request\":".repeat(600_000),
        expect![
            "400: the body is no AdmissionReview that can be read: 1:110089: nesting is over the limit of 10008 levels"
        ],
    );
}

#[test]
fn a_body_of_seven_mebibytes_is_judged_and_one_byte_more_is_refused() {
    let corpus = Corpus::shared();
    corpus.review(padded(LIMIT), expect!["denied: host-network: spec.hostNetwork is true"]);
    corpus.review(
        padded(LIMIT + 1),
        expect!["413: the body is larger than 7340032 bytes, which no review of what the API server takes can be"],
    );
    // Without a length in its head it is refused where it becomes too large.
    let chunked = |body: &str| {
        let head = head(CLUSTER, 0).replace("Content-Length: 0", "Transfer-Encoding: chunked");
        format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
    };
    corpus.send(chunked(&padded(LIMIT)).as_bytes(), expect!["denied: host-network: spec.hostNetwork is true"]);
    corpus.send(
        chunked(&padded(LIMIT + 1)).as_bytes(),
        expect!["413: the body is larger than 7340032 bytes, which no review of what the API server takes can be"],
    );
    // A length that nobody will send.
    corpus.send(
        head(CLUSTER, usize::MAX / 2).as_bytes(),
        expect!["413: the body is larger than 7340032 bytes, which no review of what the API server takes can be"],
    );
    corpus.send(head(CLUSTER, 0).replace(": 0", &format!(": {}", "9".repeat(30))).as_bytes(), expect!["400: "]);
}

#[test]
fn an_object_and_its_former_self_may_both_be_as_large_as_the_api_server_takes() {
    let corpus = Corpus::shared();
    for value in ["{\"a\":1}", "{\"name\":\"a\"}", "0"] {
        let bomb = format!("[{}{value}]", format!("{value},").repeat((OBJECT - 1000) / (value.len() + 1)));
        let object = format!("{{\"metadata\":{{\"name\":\"web\"}},\"spec\":{{\"hostNetwork\":true,\"x\":{bomb}}}}}");
        let mut review = bad_pod();
        review["request"]["operation"] = json!("UPDATE");
        review["request"]["object"] = json!("OBJECT");
        review["request"]["oldObject"] = json!("OBJECT");
        let review = review.to_string().replace("\"OBJECT\"", &object);
        // A change of what the rule does not read, in the last of a million places.
        let changed = review.replacen(&format!("{value}]"), &format!("{value},{value}]"), 1);
        let as_before = "allowed\nwarning: host-network, as before this change: spec.hostNetwork is true";
        corpus.all([review, changed], as_before);
    }
    // All of them together have cost less memory than one body would in a tree of values.
    for judging in [&corpus.closed.judging, &corpus.open.judging] {
        let peak = judging.engine.peak_memory() >> 20;
        assert!(peak < 200, "{peak} MiB");
    }
}

#[test]
fn a_pod_of_thousands_of_containers_that_violate_already_is_judged_in_time() {
    const CONTAINERS: usize = 8_000;
    let corpus = Corpus::shared();
    let container =
        |number| json!({"name": format!("c{number}"), "image": "a:1", "securityContext": {"privileged": true}});
    let containers: Vec<_> = (0..CONTAINERS).map(container).collect();
    let mut review = super::pod_update(json!({"containers": containers}), json!({"containers": containers}));
    review["request"]["object"]["metadata"]["labels"] = json!({"a": "b"});
    let body = review.to_string();
    for judging in [&corpus.closed.judging, &corpus.open.judging] {
        let before = judging.engine.processor_time();
        let answer = judging.caller().review(&body).unwrap();
        assert!(answer.body.len() < 64 << 10, "{} bytes", answer.body.len());
        // Which of so many violated before, nobody asks.
        assert_eq!(answer.response()["allowed"], false, "{}", answer.body);
        // Of the processors, because the machine may be busy. To ask about each of them anew would take minutes.
        let spent = judging.engine.processor_time() - before;
        assert!(spent < Duration::from_secs(5), "{spent:?}");
    }
    corpus.send(
        &post(CLUSTER, super::pod(json!({"containers": containers})).to_string()),
        expect![[r#"
            denied: a rule refuses this:
            - privileged: container c0: securityContext.privileged is true
            - privileged: container c1: securityContext.privileged is true
            - privileged: container c2: securityContext.privileged is true
            - privileged: container c3: securityContext.privileged is true
            - privileged: container c4: securityContext.privileged is true
            - privileged: container c5: securityContext.privileged i… and 6064 bytes"#]],
    );
}
