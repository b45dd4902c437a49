//! An API server that says what a test wants, when the test lets it.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::{Request, Response};
use kube::{Client, client::Body};
use tokio::sync::Semaphore;
use tower_service::Service;

/// An API server, to whoever has a client of it. A clone is the same one.
#[derive(Clone)]
pub(crate) struct ApiServer {
    says: Arc<Says>,
    /// The paths that it was asked for.
    asked: Arc<Mutex<Vec<String>>>,
    /// Each answer takes a permit.
    pub(crate) answers: Arc<Semaphore>,
    under_way: Arc<UnderWay>,
}

/// The status and the body for a path, which may have a query.
type Says = dyn Fn(&str) -> (u16, String) + Send + Sync;

/// How many requests wait for their answers, and how many have at most.
#[derive(Default)]
struct UnderWay {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// Ends a request that is answered, or that nobody waits for any more.
struct Ends(Arc<UnderWay>);

impl ApiServer {
    /// One that answers at once.
    pub(crate) fn new(says: impl Fn(&str) -> (u16, String) + Send + Sync + 'static) -> ApiServer {
        let answers = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
        ApiServer { says: Arc::new(says), asked: Arc::default(), answers, under_way: Arc::default() }
    }

    /// One that says the same to everything.
    pub(crate) fn saying(status: u16, body: &str) -> ApiServer {
        let body = body.to_owned();
        ApiServer::new(move |_| (status, body.clone()))
    }

    /// The same, which answers nothing until `answers` has permits.
    pub(crate) fn silent(self) -> ApiServer {
        ApiServer { answers: Arc::new(Semaphore::new(0)), ..self }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    /// The paths that it was asked for.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// How many requests have waited for their answers at once.
    pub(crate) fn most_at_once(&self) -> usize {
        self.under_way.most.load(SeqCst)
    }
}

impl Service<Request<Body>> for ApiServer {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().to_string();
        let (status, body) = (self.says)(&path);
        self.asked.lock().unwrap().push(path);
        let now = self.under_way.now.fetch_add(1, SeqCst) + 1;
        self.under_way.most.fetch_max(now, SeqCst);
        let (answers, ends) = (Arc::clone(&self.answers), Ends(Arc::clone(&self.under_way)));
        Box::pin(async move {
            answers.acquire().await.unwrap().forget();
            drop(ends);
            Ok(Response::builder().status(status).body(Body::from(body.into_bytes())).unwrap())
        })
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, SeqCst);
    }
}
