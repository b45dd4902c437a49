use futures_util::{TryStreamExt as _, stream};
use portal_document::{Document, DocumentLimits, Node, Options};

use super::*;

/// An object of at most three levels.
#[derive(Clone, Debug)]
struct Shallow(Document);

impl Form for Shallow {
    fn read(json: &[u8]) -> Result<Self, portal_document::Error> {
        let limits = DocumentLimits { depth: 3, ..DocumentLimits::default() };
        Document::parse(json, &Options { limits, ..Options::default() }).map(Shallow)
    }

    fn root(&self) -> Node<'_> {
        self.0.root()
    }
}

type Told = WatchEvent<Watched<Shallow>>;

const ADDED: &str = r#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"1"},"x":"}\n"}}"#;
const DEEP: &str = r#"{"type":"MODIFIED","object":{"metadata":{"name":"b","resourceVersion":"2"},"x":[[[1]]]}}"#;
const DELETED: &str = r#"{"type":"DELETED","object":{"metadata":{"name":"c","resourceVersion":"3"}}}"#;
const SPACED: &str = r#"{"type":"ADDED","object":{"metadata":{"name":"e","resourceVersion":"5"}} }"#;
const BOOKMARK: &str =
    r#"{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"6"}}}"#;
const END: &str = r#"{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
const GONE_NOW: &str =
    r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410,"message":"too old"}}"#;
const STATUS: &str = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"message":"no"}"#;
const CUT: &str = r#"{"type":"ADDED","object":{"metadata":{"na"#;

fn describe(event: &kube::Result<Told>) -> String {
    let object = |word: &str, object: &Watched<Shallow>| {
        let form = object.form.as_ref().map_or_else(|error| error.reason(), |form| form.root().to_json());
        format!("{word} {} {} {form}", object.metadata.name.as_deref().unwrap_or("-"), object.version())
    };
    match event {
        Ok(WatchEvent::Added(added)) => object("added", added),
        Ok(WatchEvent::Modified(modified)) => object("modified", modified),
        Ok(WatchEvent::Deleted(deleted)) => object("deleted", deleted),
        Ok(WatchEvent::Bookmark(bookmark)) => format!("bookmark {}", bookmark.metadata.resource_version),
        Ok(WatchEvent::Error(status)) => format!("error {}", status.code),
        Err(error) => format!("failed: {error}"),
    }
}

/// The events of an answer that comes in these chunks.
async fn told(chunks: Vec<io::Result<Vec<u8>>>) -> Vec<String> {
    let mut lines = Lines::new(stream::iter(chunks).into_async_read());
    let mut told = Vec::new();
    while let Some(event) = lines.next().await {
        told.push(describe(&event));
    }
    assert!(lines.next::<Shallow>().await.is_none(), "the end is the end");
    told
}

fn text() -> String {
    [ADDED, DEEP, "", DELETED, SPACED, BOOKMARK, GONE_NOW, STATUS].join("\n") + "\n"
}

#[tokio::test]
async fn events_are_read_as_kube_reads_them() {
    let read = told(vec![Ok(text().into_bytes())]).await;
    let expected = [
        r#"added a 1 {"metadata":{"name":"a","resourceVersion":"1"},"x":"}\n"}"#,
        "modified b 2 nesting is over the limit of 3 levels",
        r#"deleted c 3 {"metadata":{"name":"c","resourceVersion":"3"}}"#,
        r#"added e 5 {"metadata":{"name":"e","resourceVersion":"5"}}"#,
        "bookmark 6",
        "error 410",
    ];
    assert_eq!(read[..6], expected);
    assert!(read[6].contains("no"), "{read:?}");
    for (line, ours) in [ADDED, DEEP, DELETED, SPACED, BOOKMARK, GONE_NOW].into_iter().zip(&read) {
        let theirs = serde_json::from_str::<Told>(line).map_err(Error::SerdeError);
        assert_eq!(describe(&theirs), *ours);
    }
}

#[tokio::test]
async fn it_does_not_matter_in_which_parts_they_come() {
    let text = text().into_bytes();
    let whole = told(vec![Ok(text.clone())]).await;
    for at in 0..=text.len() {
        let (one, other) = text.split_at(at);
        let chunks = [one, other].into_iter().filter(|part| !part.is_empty());
        assert_eq!(told(chunks.map(|part| Ok(part.to_vec())).collect()).await, whole, "split at {at}");
    }
    assert_eq!(told(text.chunks(1).map(|byte| Ok(byte.to_vec())).collect()).await, whole);
}

#[tokio::test]
async fn an_answer_that_ends_too_early_is_over() {
    let first = format!("{ADDED}\n{CUT}").into_bytes();
    let end = || Err(io::Error::other(io::Error::from(ErrorKind::UnexpectedEof)));
    assert_eq!(told(vec![Ok(first.clone())]).await.len(), 1);
    assert_eq!(told(vec![Ok(first.clone()), end()]).await.len(), 1);
    let failed = told(vec![Ok(first), Err(io::Error::other("the wire is cut"))]).await;
    assert!(matches!(&failed[..], [_, failure] if failure.contains("the wire is cut")), "{failed:?}");
}

/// Where a watch is after an event, and what it tells.
fn after(state: State, line: Option<&str>) -> (State, String) {
    let mut state = state;
    let event = line.map(|line| serde_json::from_str::<Told>(line).unwrap());
    let event = match &state {
        State::Listing(_) => state.list(event),
        _ => state.follow(event),
    };
    let event = match event {
        None => "nothing",
        Some(Event::Init) => "init",
        Some(Event::InitApply(_)) => "listed",
        Some(Event::InitDone) => "all",
        Some(Event::Apply(_)) => "applied",
        Some(Event::Delete(_)) => "deleted",
    };
    let place = match &state {
        State::Begin => "begin".to_owned(),
        State::Listing(_) => "listing".to_owned(),
        State::Following(version, lines) => {
            format!("following {version}{}", if lines.is_some() { "" } else { " anew" })
        }
    };
    (state, format!("{event}, {place}"))
}

#[test]
fn a_list_is_whole_when_the_server_says_so() {
    let lines = || Lines::new(&b""[..]);
    let listing = || State::Listing(lines());
    let check = |state: State, line: Option<&str>, expected: &str| assert_eq!(after(state, line).1, expected);
    check(listing(), Some(ADDED), "listed, listing");
    check(listing(), Some(BOOKMARK), "nothing, listing");
    check(listing(), Some(END), "all, following 7");
    check(listing(), Some(DELETED), "nothing, begin");
    check(listing(), None, "nothing, begin");

    let following = || State::Following("1".to_owned(), Some(lines()));
    check(following(), Some(DEEP), "applied, following 2");
    check(following(), Some(DELETED), "deleted, following 3");
    check(following(), Some(BOOKMARK), "nothing, following 6");
    check(following(), None, "nothing, following 1 anew");
    check(following(), Some(r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#), "nothing, begin");
}
