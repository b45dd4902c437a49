//! What a change costs the cache: from the bytes of an event to what others see.

use std::cell::{Cell, RefCell};
use std::error::Error;

use portal_engine::cache::store::Store;

use super::events::{changed, name_of, take, text_behind};
use super::{PODS, print};
use crate::measure::{nanoseconds, repeats};
use crate::objects::crowd;

/// How many pods are changed again and again.
const CHANGED: usize = 2_000;

const ROUNDS: usize = 21;

/// Prints how long an event takes, with the indexes and until others see it.
pub(super) fn measure(store: &mut Store) -> Result<(), Box<dyn Error>> {
    let count = store.shown().moment().map(|moment| moment.len());
    // From all over the cluster.
    let pods: Vec<String> = crowd(PODS).step_by(PODS / CHANGED).collect();
    let event = |kind: &str, pod: &str| format!(r#"{{"type":"{kind}","object":{pod}}}"#);
    // Each comes in two versions, so that every event changes something.
    let status = [1, 2].map(|version| {
        let pods = pods.iter().map(|pod| event("MODIFIED", &changed(pod, version)));
        pods.collect::<Vec<String>>()
    });
    let team = |pod: &str, version: u32| {
        let team = text_behind(pod, r#""team":""#);
        pod.replacen(&format!(r#""team":"{team}""#), &format!(r#""team":"{team}-{version}""#), 1)
    };
    let labels = [1, 2].map(|version| {
        let pods = pods.iter().map(|pod| event("MODIFIED", &team(&changed(pod, version), version)));
        pods.collect::<Vec<String>>()
    });
    let other = |pod: &str| {
        let (_, name) = name_of(pod);
        pod.replacen(&format!(r#""name":"{name}","namespace""#), &format!(r#""name":"{name}2","namespace""#), 1)
    };
    let others: Vec<String> = pods.iter().map(|pod| other(pod)).collect();
    let others = ["ADDED", "DELETED"].map(|kind| {
        let pods = others.iter().map(|pod| event(kind, pod));
        pods.collect::<Vec<String>>()
    });
    let store = RefCell::new(store);
    for (what, versions) in [("a changed status", status), ("changed labels", labels), ("made and deleted", others)] {
        print(&format!("an event into 100,000 cached pods: {what}"), "", times(&store, &versions), 50.0, Some(20.0));
    }
    let left = store.borrow().shown().moment().map(|moment| moment.len());
    assert_eq!(left, count, "what was made was deleted");
    Ok(())
}

/// Microseconds for an event. All pods get the first version, then all get the second.
fn times(store: &RefCell<&mut Store>, versions: &[Vec<String>; 2]) -> Vec<f64> {
    let place = Cell::new(0);
    let all: Vec<&String> = versions.iter().flatten().collect();
    let next = || {
        take(&mut store.borrow_mut(), all[place.get()]);
        place.set((place.get() + 1) % all.len());
    };
    let repeats = repeats(next);
    let times = (0..ROUNDS).map(|_| nanoseconds(repeats, next) / 1000.0).collect();
    // What has begun is brought to its end, so that nothing is left that was made.
    while place.get() != 0 {
        next();
    }
    times
}
