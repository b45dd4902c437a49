//! The one place that asks what time it is.

use portal_expr::Moment;

pub(crate) fn now() -> Moment {
    let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default();
    Moment::new(since.as_secs() as i64, since.subsec_nanos())
}
