//! Requests whose form is wrong, before anybody looks at what they say.

use expect_test::expect;
use serde_json::{Value, json};

use super::{Corpus, bad_pod, pod};
use crate::engine::admission::asking::{CLUSTER, head, post};

fn chunked(pieces: &[&[u8]]) -> Vec<u8> {
    let mut request = head(CLUSTER, 0).replace("Content-Length: 0", "Transfer-Encoding: chunked").into_bytes();
    for piece in pieces {
        request.extend(format!("{:x}\r\n", piece.len()).into_bytes());
        request.extend([piece, &b"\r\n"[..]].concat());
    }
    request.extend(b"0\r\n\r\n");
    request
}

fn of_type(content_type: &str, body: &str) -> Vec<u8> {
    let request = String::from_utf8(post(CLUSTER, body)).unwrap();
    request.replace("Content-Type: application/json\r\n", content_type).into_bytes()
}

#[test]
fn what_is_no_json_is_refused_with_its_place() {
    let corpus = Corpus::shared();
    let bad = bad_pod().to_string();
    corpus.review(
        "",
        expect!["400: the body is no AdmissionReview that can be read: 1:1: expected a value, found the end"],
    );
    corpus.review(
        " \n",
        expect!["400: the body is no AdmissionReview that can be read: 2:1: expected a value, found the end"],
    );
    corpus.review(
        "hello",
        expect!["400: the body is no AdmissionReview that can be read: 1:1: expected a value, found `h`"],
    );
    corpus.review(
        &bad[..bad.len() - 1],
        expect!["400: the body is no AdmissionReview that can be read: 1:513: expected `,` or `}`, found the end"],
    );
    corpus.review(
        format!("{bad} x"),
        expect!["400: the body is no AdmissionReview that can be read: 1:515: expected the end, found `x`"],
    );
    corpus.review(
        format!("{bad}{bad}"),
        expect!["400: the body is no AdmissionReview that can be read: 1:514: expected the end, found `{`"],
    );
    corpus.review(
        format!("\u{feff}{bad}"),
        expect!["400: the body is no AdmissionReview that can be read: 1:1: expected a value, found `﻿`"],
    );
    corpus.review(b"\0".repeat(1000), expect!["400: the body is no AdmissionReview that can be read: 1:1: expected a value, found the control character U+0000"]);
    corpus.review(bad.replace("\"web\"", "\"w\0b\""), expect!["400: the body is no AdmissionReview that can be read: 1:145: expected the closing quote of a string, found the control character U+0000"]);
    corpus.review(
        bad.replace("true", "True"),
        expect!["400: the body is no AdmissionReview that can be read: 1:336: expected a value, found `T`"],
    );
    corpus.review(
        bad.replace("\"web\"", "NaN"),
        expect!["400: the body is no AdmissionReview that can be read: 1:143: expected a value, found `N`"],
    );
    corpus.review(
        bad.replace("\"web\"", "1e999"),
        expect!["400: the body is no AdmissionReview that can be read: 1:143: number is out of range"],
    );
    corpus.review(
        "apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\n",
        expect!["400: the body is no AdmissionReview that can be read: 1:1: expected a value, found `a`"],
    );
}

#[test]
fn what_json_leaves_open_is_read_as_the_api_server_reads_it() {
    let corpus = Corpus::shared();
    let (good, bad) = (pod(json!({})).to_string(), bad_pod().to_string());
    // The last one of a repeated key counts, wherever it is repeated.
    corpus
        .review(bad.replace("\"hostNetwork\":true", "\"hostNetwork\":true,\"hostNetwork\":false"), expect!["allowed"]);
    corpus.review(
        bad.replace("\"hostNetwork\":true", "\"hostNetwork\":false,\"hostNetwork\":true"),
        expect!["denied: host-network: spec.hostNetwork is true"],
    );
    let (good_object, bad_object) = (object(&good), object(&bad));
    let both = |first: &str, last: &str| bad.replace(&bad_object, &format!("{first},\"object\":{last}"));
    corpus.review(both(&bad_object, &good_object), expect!["allowed"]);
    corpus.review(both(&good_object, &bad_object), expect!["denied: host-network: spec.hostNetwork is true"]);
    let twice = |first: &str, last: &str| {
        let request = |review: &str| serde_json::from_str::<Value>(review).unwrap()["request"].to_string();
        let (first, last) = (request(first), request(last));
        format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{first},"request":{last}}}"#)
    };
    corpus.review(twice(&bad, &good), expect!["allowed"]);
    corpus.review(twice(&good, &bad), expect!["denied: host-network: spec.hostNetwork is true"]);
    // Bytes and escapes that stand for no character become the one that says so.
    let odd = |text: &[u8]| {
        let (before, after) = bad.split_once("\"acme.io/app:1\"").unwrap();
        [before.as_bytes(), b"\"", text, b"\"", after.as_bytes()].concat()
    };
    corpus.review(odd(b"\xff\xfe"), expect!["denied: host-network: spec.hostNetwork is true"]);
    corpus.review(odd(b"\xed\xa0\x80"), expect!["denied: host-network: spec.hostNetwork is true"]);
    corpus.review(odd(br"\ud800"), expect!["denied: host-network: spec.hostNetwork is true"]);
    corpus.review(odd(br"\udc00\ud800"), expect!["denied: host-network: spec.hostNetwork is true"]);
    corpus.review(odd(br"\u0000"), expect!["denied: host-network: spec.hostNetwork is true"]);
    corpus.review(odd(br"\ud83d\ude00"), expect!["denied: host-network: spec.hostNetwork is true"]);
    // Numbers that no integer of 64 bits holds.
    let number = |digits: &str| bad.replace("\"acme.io/app:1\"", digits);
    corpus.review(number("123456789012345678901234567890"), expect!["denied: host-network: spec.hostNetwork is true"]);
    corpus.review(number("-9223372036854775809"), expect!["denied: host-network: spec.hostNetwork is true"]);
    corpus.review(
        number(&"9".repeat(100_000)),
        expect!["400: the body is no AdmissionReview that can be read: 1:291: number is out of range"],
    );
    corpus.review(
        number(&format!("0.{}", "1".repeat(100_000))),
        expect!["denied: host-network: spec.hostNetwork is true"],
    );
}

/// The text of the object in a review.
fn object(review: &str) -> String {
    serde_json::from_str::<Value>(review).unwrap()["request"]["object"].to_string()
}

#[test]
fn a_request_that_is_no_post_of_json_is_refused_in_words() {
    let corpus = Corpus::shared();
    let bad = bad_pod().to_string();
    corpus.send(
        &of_type("Content-Type: text/plain\r\n", &bad),
        expect!["415: the body has to be application/json, and is text/plain"],
    );
    corpus.send(
        &of_type("Content-Type: application/yaml\r\n", &bad),
        expect!["415: the body has to be application/json, and is application/yaml"],
    );
    corpus.send(&of_type("", &bad), expect!["415: the body has to be application/json, and is not named"]);
    corpus.send(
        &of_type("Content-Type: application/json; charset=utf-8\r\n", &bad),
        expect!["denied: host-network: spec.hostNetwork is true"],
    );
    corpus.send(
        format!("GET {CLUSTER} HTTP/1.1\r\nHost: portal\r\n\r\n").as_bytes(),
        expect!["405: this path takes POST, not GET"],
    );
    corpus.send(&post("/validate/everything", &bad), expect!["404: there is no entry `everything`: there are cluster, cluster-pinned, namespace, namespace-pinned; /validate judges by every rule"]);
    corpus.send(&post("/validate/%ff", &bad), expect!["400: Invalid URL: Invalid UTF-8 in `entry`"]);
    corpus.send(&post("/", &bad), expect!["404: there is nothing at this path"]);
    corpus.send(&post("/validate", &bad), expect!["denied: host-network: spec.hostNetwork is true"]);
}

#[test]
fn a_body_may_come_in_pieces_and_must_come_whole() {
    let corpus = Corpus::shared();
    let bad = bad_pod().to_string();
    let (first, last) = bad.as_bytes().split_at(bad.len() / 2);
    corpus.send(&chunked(&[first, last]), expect!["denied: host-network: spec.hostNetwork is true"]);
    let bytes: Vec<&[u8]> = bad.as_bytes().chunks(1).collect();
    corpus.send(&chunked(&bytes), expect!["denied: host-network: spec.hostNetwork is true"]);
    corpus.send(
        &chunked(&[]),
        expect!["400: the body is no AdmissionReview that can be read: 1:1: expected a value, found the end"],
    );
    // A length that is none.
    let broken = String::from_utf8(chunked(&[first])).unwrap().replace("0\r\n\r\n", "xyz\r\n\r\n");
    corpus.send(broken.as_bytes(), expect!["400: the body ended before its end"]);
    // Two lengths: whoever stands between could take it for two requests.
    let two = String::from_utf8(chunked(&[first, last])).unwrap();
    let two = two.replace("Transfer-Encoding", "Content-Length: 5\r\nTransfer-Encoding");
    corpus.send(two.as_bytes(), expect!["denied: host-network: spec.hostNetwork is true"]);
    let two = String::from_utf8(post(CLUSTER, &bad)).unwrap();
    corpus.send(two.replace("Content-Length", "Content-Length: 5\r\nContent-Length").as_bytes(), expect!["400: "]);
    // Less than there is: what is left over is no request.
    let short = [head(CLUSTER, 10).as_bytes(), bad.as_bytes()].concat();
    corpus.send(&short, expect!["400: the body is no AdmissionReview that can be read: 1:11: expected the closing quote of a string, found the end"]);
}
