//! What errors of the API server mean to a person, and the way out.

use kube::runtime::watcher;

use super::is_expired;

/// What an error of a watch means, and the way out. `None` for what is part of the life of a watch.
pub(super) fn explain_watch(resource: &str, error: &watcher::Error) -> Option<String> {
    match error {
        error if is_expired(error) => None,
        watcher::Error::InitialListFailed(error) => Some(explain("list", resource, error)),
        watcher::Error::WatchStartFailed(error) => Some(explain("watch", resource, error)),
        watcher::Error::WatchFailed(error) => Some(explain("watch", resource, error)),
        // The server forgot where we were: the watch begins again by itself.
        watcher::Error::WatchError(status) if status.code == 410 => None,
        watcher::Error::WatchError(status) => Some(explain("watch", resource, &kube::Error::Api(status.clone()))),
        watcher::Error::NoResourceVersion => Some(format!("the API server does not let {resource} be watched")),
    }
}

/// What an error of a request means, and the way out.
pub fn explain(verb: &str, resource: &str, error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 403 => {
            format!("not allowed to {verb} {resource}: grant the verb `{verb}` to this ServiceAccount")
        }
        kube::Error::Api(status) if status.code == 401 => {
            format!("the API server does not know who asks to {verb} {resource}: the credentials are wrong or too old")
        }
        kube::Error::Api(status) if status.code == 404 && resource.ends_with(".portal.io") => format!(
            "the API server does not know {resource}: install the definitions with \
             `portal generate crds | kubectl apply --server-side -f -`"
        ),
        kube::Error::Api(status) => format!("could not {verb} {resource}: {} ({})", status.message, status.code),
        error => format!("could not {verb} {resource}: {}", chain(error)),
    }
}

/// An error and what is behind it, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        // Some errors repeat the one behind them.
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(verb: &str, resource: &str, code: u16, expected: &str) {
        let mut status = kube::core::Status::failure("something", "Something");
        status.code = code;
        assert_eq!(explain(verb, resource, &kube::Error::Api(status.boxed())), expected);
    }

    #[test]
    fn errors_say_the_way_out() {
        check(
            "watch",
            "portalrules.portal.io",
            403,
            "not allowed to watch portalrules.portal.io: grant the verb `watch` to this ServiceAccount",
        );
        check(
            "list",
            "portalrules.portal.io",
            404,
            "the API server does not know portalrules.portal.io: install the definitions with \
             `portal generate crds | kubectl apply --server-side -f -`",
        );
        check("list", "leases", 500, "could not list leases: something (500)");
    }
}
