//! Who may ask a replica how it is: whoever shows a token of the instance's account that was made for this very purpose. A token for the
//! API server would be worth stealing here, and is refused.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenReview, TokenReviewSpec};
use kube::{Api, Client, api::PostParams};
use portal_cluster::watch::explain;
use tokio::sync::{OnceCell, Semaphore};

/// Checks tokens.
pub struct Tokens {
    client: Client,
    /// What a token must be made for.
    audience: String,
    /// Who may ask, as `system:serviceaccount:NAMESPACE:NAME`. If nobody is named, this engine's own account.
    accounts: Vec<String>,
    own_account: OnceCell<String>,
    /// What came of tokens, and until when that is believed.
    known: Mutex<HashMap<String, Remembered>>,
    /// Those who ask the API server. Others are told to come later, so that nobody can make us ask it all the time.
    asking: Semaphore,
}

/// Until when what came of a token is believed, and what that is.
type Remembered = (Instant, Result<(), Refusal>);

/// Why somebody is not told.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("a token is needed here, as `Authorization: Bearer …`, whose audience is {0}")]
    NoToken(String),
    #[error("the token is not valid for the audience {0}")]
    Invalid(String),
    #[error("{0} is not the account of this instance")]
    Stranger(String),
    #[error("other tokens are being checked: try again")]
    Busy,
    #[error("the token could not be checked: {0}")]
    Unknown(String),
}

/// How long it is believed that a token is good, or bad.
const GOOD: Duration = Duration::from_secs(60);
const BAD: Duration = Duration::from_secs(10);

/// How many tokens are remembered. There are a few replicas, and each has one.
const MOST: usize = 64;

/// A longer text is no token.
const MAX_TOKEN: usize = 16 << 10;

/// How long the API server may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The audience of the tokens by which the replicas of an instance know each other.
pub fn audience(instance: &str) -> String {
    format!("portal-{instance}")
}

impl Tokens {
    /// Checks tokens of these accounts, or of the engine's own if none is named.
    pub fn new(client: Client, instance: &str, accounts: Vec<String>) -> Tokens {
        Tokens {
            client,
            audience: audience(instance),
            accounts,
            own_account: OnceCell::new(),
            known: Mutex::default(),
            asking: Semaphore::new(2),
        }
    }

    /// Whether whoever shows this token may ask.
    pub(super) async fn check(&self, token: Option<&str>) -> Result<(), Refusal> {
        let Some(token) = token.filter(|token| !token.is_empty() && token.len() <= MAX_TOKEN) else {
            return Err(Refusal::NoToken(self.audience.clone()));
        };
        if let Some(known) = self.recall(token) {
            return known;
        }
        let Ok(_asking) = self.asking.try_acquire() else { return Err(Refusal::Busy) };
        let answer = tokio::time::timeout(TIMEOUT, self.ask(token)).await;
        let answer = answer.unwrap_or_else(|_| Err(Refusal::Unknown(format!("no answer within {TIMEOUT:?}"))));
        if !matches!(answer, Err(Refusal::Unknown(_))) {
            self.remember(token, &answer);
        }
        answer
    }

    async fn ask(&self, token: &str) -> Result<(), Refusal> {
        let review = TokenReview {
            spec: TokenReviewSpec { token: Some(token.to_owned()), audiences: Some(vec![self.audience.clone()]) },
            ..TokenReview::default()
        };
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let answer = api.create(&PostParams::default(), &review).await;
        let answer = answer
            .map_err(|error| Refusal::Unknown(explain("create", "tokenreviews.authentication.k8s.io", &error)))?;
        let status = answer.status.unwrap_or_default();
        // An authenticator that knows nothing of audiences names none.
        let is_for_us = status.audiences.unwrap_or_default().contains(&self.audience);
        if !status.authenticated.unwrap_or_default() || !is_for_us {
            return Err(Refusal::Invalid(self.audience.clone()));
        }
        let name = status.user.and_then(|user| user.username).unwrap_or_default();
        let may_ask = match self.accounts.is_empty() {
            true => *self.own_account().await? == name,
            false => self.accounts.contains(&name),
        };
        if may_ask { Ok(()) } else { Err(Refusal::Stranger(name)) }
    }

    /// Who this engine is to the API server.
    async fn own_account(&self) -> Result<&String, Refusal> {
        let ask = || async {
            let api: Api<SelfSubjectReview> = Api::all(self.client.clone());
            let answer = api.create(&PostParams::default(), &SelfSubjectReview::default()).await;
            let answer = answer.map_err(|error| {
                Refusal::Unknown(explain("create", "selfsubjectreviews.authentication.k8s.io", &error))
            })?;
            let user = answer.status.and_then(|status| status.user_info).and_then(|user| user.username);
            user.ok_or_else(|| Refusal::Unknown("the API server does not say who this engine is".to_owned()))
        };
        self.own_account.get_or_try_init(ask).await
    }

    fn recall(&self, token: &str) -> Option<Result<(), Refusal>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, answer) = known.get(token)?;
        (*until > Instant::now()).then(|| answer.clone())
    }

    fn remember(&self, token: &str, answer: &Result<(), Refusal>) {
        let now = Instant::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (until, _)| *until > now);
        // Good ones stay: strangers cannot make us ask about our own again.
        if known.len() >= MOST {
            known.retain(|_, (_, answer)| answer.is_ok());
        }
        let until = now + if answer.is_ok() { GOOD } else { BAD };
        known.insert(token.to_owned(), (until, answer.clone()));
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match &self {
            Refusal::NoToken(_) | Refusal::Invalid(_) => StatusCode::UNAUTHORIZED,
            Refusal::Stranger(_) => StatusCode::FORBIDDEN,
            Refusal::Busy => StatusCode::TOO_MANY_REQUESTS,
            Refusal::Unknown(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        (status, format!("{self}\n")).into_response()
    }
}
