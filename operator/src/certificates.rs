//! The certificate of the webhook, and the authorities that API servers trust because of it.
//!
//! An *authority* signs. Its Secret lies in the operator's namespace, where nobody else reads its key. A *leaf* is what engine pods
//! show to API servers. Its Secret lies beside the pods, which mount it. The *bundle* is what API servers trust: every entry of the
//! webhook configuration has it as its `caBundle`.
//!
//! [`judge`] decides what to do next. It is a function of what the Secrets hold, what the webhook configuration says, what each pod
//! serves, and the time; nothing is remembered anywhere else. It names one write of one Secret, which [`perform`] prepares, and the
//! bundle that is right at this moment. Whoever writes names the version of the Secret that was judged, so that nothing is written
//! over what was not seen. This holds after every step, wherever the steps are cut, and whichever of them are done twice:
//!
//! 1. **The bundle trusts whatever a pod serves or may start to serve.** A leaf is written only when its authority has been in the
//!    published bundle for [`PROPAGATION`]; without a webhook configuration, when the authority is as old as that, because somebody
//!    may have made one since. There is one exception, in which waiting would help nobody: no pod can have anything valid to show.
//! 2. **An authority leaves the bundle** when every running pod has been seen with the leaf that the Secret holds, which is of the
//!    current authority and has been there for [`SETTLING`]; or when it has expired. A pod that could not be asked keeps it in.
//! 3. **A rotation of the authority goes on from wherever it was left**: `next` is written, published, becomes the current one, signs
//!    a leaf, and the one before is forgotten when nobody shows its leaves any more.
//! 4. **What is lost, broken, or out of its time is made anew at once**, and what pods may still show stays trusted meanwhile.
//! 5. **When all is well, nothing is written.**
//!
//! [`verify`] is for certificates that somebody else issues: it looks at what is given, and issues nothing.

pub mod cert_manager;
mod decide;
#[cfg(test)]
mod histories;
mod issue;
mod read;
#[cfg(test)]
mod scene;
mod state;
mod supplied;
#[cfg(test)]
mod tests;
mod trust;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

pub use self::{
    issue::{Error, perform},
    read::{fingerprint, fingerprint_of_der},
    state::{Reason, State},
    supplied::{Source, Supplied, verify},
};

/// The data of a Secret.
pub type Data = BTreeMap<String, Vec<u8>>;

/// What is known when certificates are judged.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// The time.
    pub now: Timestamp,
    /// The DNS names of the leaf. API servers ask for the first.
    pub names: &'a [String],
    /// The Secret in the operator's namespace, if it exists: `ca.crt` and `ca.key`, `next.crt` and `next.key`, `previous.crt`.
    pub authority: Option<&'a Data>,
    /// The Secret that pods mount, if it exists: `tls.crt`, `tls.key`, and the bundle as `ca.crt`, by which replicas know each other.
    pub leaf: Option<&'a Data>,
    /// What the webhook configuration says, if it exists.
    pub published: Option<Published<'a>>,
    /// What pods serve: all pods that run, and those that may run for all we know.
    pub served: &'a [Served],
    /// How long certificates are valid.
    pub validity: Validity,
}

/// What API servers are told to trust.
#[derive(Clone, Copy, Debug)]
pub struct Published<'a> {
    /// The `caBundle` that every entry of the webhook configuration has. Empty if two of them differ.
    pub bundle: &'a [u8],
    /// Since when they have it: what [`Judgement::since`] said when it was written.
    pub since: Timestamp,
}

/// What a pod serves.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Served {
    /// The name of the pod.
    pub pod: String,
    /// The [`fingerprint`] of the certificate that it shows. None if it could not be asked, or had nothing to show.
    pub fingerprint: Option<String>,
}

/// How long certificates are valid from when they are made. Each is replaced after two thirds of its life.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Validity {
    /// An authority.
    pub authority: SignedDuration,
    /// A leaf. It never outlives its authority.
    pub leaf: SignedDuration,
}

/// What is right at this moment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Judgement {
    /// What API servers must trust, in PEM: the `caBundle` of every entry. The same authorities are always the same text. Empty only
    /// as long as there is no authority at all: a webhook configuration without a `caBundle` would trust the authorities of the machine.
    pub bundle: Vec<u8>,
    /// Since when the bundle is published, to be kept with it, where [`Published::since`] is read from.
    pub since: Timestamp,
    /// Whether a webhook configuration that does not exist may be made: pods serve what the bundle trusts. Whether one that exists is
    /// changed does not depend on it.
    pub can_begin: bool,
    /// One write of one Secret, after which is judged again. Nothing to do if none.
    pub action: Option<Action>,
    /// When to judge again if nothing else happens. Whoever waits for it looks at the clock every few minutes: a clock that is set,
    /// or a machine that was asleep, tells nobody.
    pub look_again: Timestamp,
    /// How the certificates are, for people.
    pub state: State,
}

/// One write of one Secret.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Action {
    /// Makes an authority, because there is none that can sign.
    FoundAuthority,
    /// Makes the authority that will follow the current one.
    PrepareNext,
    /// Makes the next authority the current one.
    Promote,
    /// Removes authorities that nobody needs from the authority's Secret.
    Forget,
    /// Issues a leaf.
    Issue,
    /// Writes the bundle beside the leaf, which stays.
    ShareBundle,
}

/// Which of the two Secrets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Secret {
    /// That of the authority, in the operator's namespace.
    Authority,
    /// That of the leaf, in the engine's namespace.
    Leaf,
}

/// What is written.
#[derive(Clone, Eq, PartialEq)]
pub struct Write {
    /// Where to.
    pub secret: Secret,
    /// All that the Secret holds then.
    pub data: Data,
}

/// How long a bundle is published before anything relies on it. API servers hear of a change within a second or two, and one that
/// was cut off reads all again after half a minute.
pub const PROPAGATION: SignedDuration = SignedDuration::from_secs(60);

/// How long a leaf lies in its Secret before authorities are forgotten. The kubelet of a pod that starts may show it what the Secret
/// held a minute or two ago.
pub const SETTLING: SignedDuration = SignedDuration::from_mins(5);

/// How long before they are made certificates begin to be valid: API servers have clocks of their own.
const BACKDATED: SignedDuration = SignedDuration::from_hours(1);

/// How soon pods are asked again that do not serve the leaf yet.
const ASK_AGAIN: SignedDuration = SignedDuration::from_secs(30);

/// What is right at this moment. Two calls with the same arguments have the same result.
pub fn judge(given: &Given<'_>) -> Judgement {
    decide::judgement(&read::Known::read(given), given)
}

impl Default for Validity {
    fn default() -> Self {
        Validity { authority: SignedDuration::from_hours(365 * 24), leaf: SignedDuration::from_hours(30 * 24) }
    }
}

/// Without the data, which has a key in it.
impl std::fmt::Debug for Write {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Write").field("secret", &self.secret).finish_non_exhaustive()
    }
}
