//! Tells as Events what has become different about an instance.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{
    Client, Resource as _,
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use portal_crds::PortalInstance;
use tracing::debug;

use crate::{desired::status_of, instance::Instance};

/// How many bytes of a text the API server takes, at least.
const MOST: usize = 1000;

/// Tells what these conditions say that those before did not.
pub(crate) async fn announce(client: &Client, instance: &Instance, conditions: &[Condition]) {
    let mut object = PortalInstance::new(&instance.name, portal_crds::PortalInstanceSpec::default());
    object.metadata.uid = Some(instance.uid.clone());
    let recorder = Recorder::new(client.clone(), Reporter { controller: "portal-operator".to_owned(), instance: None });
    for event in news(&status_of(instance).conditions, conditions) {
        if let Err(error) = recorder.publish(&event, &object.object_ref(&())).await {
            debug!(%error, "Event could not be written");
        }
    }
}

fn news(before: &[Condition], now: &[Condition]) -> Vec<Event> {
    let is_stalled = now.iter().any(|found| found.type_ == "Stalled" && found.status == "True");
    let news = now.iter().filter(|now| {
        let before = before.iter().find(|known| known.type_ == now.type_);
        match now.type_.as_str() {
            "Ready" => before.is_none_or(|before| (&before.status, &before.reason) != (&now.status, &now.reason)),
            // What is granted is told by the roles; what is not, by nobody else.
            "RBACReady" => now.status == "False" && before.is_none_or(|before| before.message != now.message),
            _ => false,
        }
    });
    let event = |condition: &Condition| Event {
        type_: if is_stalled || condition.type_ != "Ready" { EventType::Warning } else { EventType::Normal },
        reason: condition.reason.clone(),
        note: Some(condition.message[..condition.message.floor_char_boundary(MOST)].to_owned()),
        action: "Reconcile".to_owned(),
        secondary: None,
    };
    news.map(event).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    /// Conditions as `Ready=True Ready: message`.
    fn conditions(texts: &[&str]) -> Vec<Condition> {
        let condition = |text: &&str| {
            let (head, message) = text.split_once(": ").unwrap();
            let (kind, rest) = head.split_once('=').unwrap();
            let (status, reason) = rest.split_once(' ').unwrap();
            let [type_, status, reason, message] = [kind, status, reason, message].map(str::to_owned);
            let last_transition_time = Time(Timestamp::UNIX_EPOCH);
            Condition { type_, status, reason, message, last_transition_time, observed_generation: None }
        };
        texts.iter().map(condition).collect()
    }

    #[track_caller]
    fn check(before: &[&str], now: &[&str], expected: &[&str]) {
        let events = news(&conditions(before), &conditions(now));
        let shown: Vec<String> = events
            .iter()
            .map(|event| format!("{:?} {}: {}", event.type_, event.reason, event.note.as_deref().unwrap_or_default()))
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_has_changed_is_told_once_and_what_is_refused_is_a_warning() {
        let (ready, granted) = ("Ready=True Ready: it runs", "RBACReady=True InSync: all of it");
        let refused = "RBACReady=False PermissionRefused: rule a: list secrets";
        check(&[], &["Ready=False Progressing: soon", granted], &["Normal Progressing: soon"]);
        check(&["Ready=False Progressing: soon"], &[ready, granted], &["Normal Ready: it runs"]);
        check(&[ready, granted], &[ready, refused], &["Warning PermissionRefused: rule a: list secrets"]);
        check(&[ready, refused], &[ready, refused], &[]);
        // Another rule lacks something.
        let more = "RBACReady=False PermissionRefused: rule a: list secrets; rule b: list leases";
        check(
            &[ready, refused],
            &[ready, more],
            &["Warning PermissionRefused: rule a: list secrets; rule b: list leases"],
        );
        check(&[ready, more], &[ready, granted], &[]);
        check(&[ready, granted], &[ready, "RBACReady=Unknown Asking: a moment"], &[]);
        let stalled = ["Ready=False NamespaceMissing: none", "Stalled=True NamespaceMissing: none"];
        check(&[ready], &stalled, &["Warning NamespaceMissing: none"]);
        // How many pods are ready changes often.
        let pods = |ready| format!("Ready=False Progressing: {ready} of 3 pods");
        check(&[&pods(1)], &[&pods(2)], &[]);
        let long = "é".repeat(5000);
        let told = news(&[], &conditions(&[&format!("RBACReady=False PermissionRefused: {long}")]));
        assert_eq!(told[0].note.as_ref().map(String::len), Some(MOST));
    }
}
