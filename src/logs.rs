//! Logs as JSON, one object a line.

use anyhow::Context as _;
use tracing_subscriber::{EnvFilter, Registry, fmt, layer::SubscriberExt as _, reload, util::SubscriberInitExt as _};

/// What is logged, which can be changed.
#[derive(Clone)]
pub(crate) struct Logs {
    filter: reload::Handle<EnvFilter, Registry>,
}

impl Logs {
    /// Starts to log, these levels or else the usual ones.
    pub(crate) fn start(levels: Option<&str>) -> anyhow::Result<Logs> {
        let (filter, handle) = reload::Layer::new(parse(levels)?);
        let lines = fmt::layer().json().flatten_event(true).with_current_span(false).with_span_list(false);
        tracing_subscriber::registry().with(filter).with(lines.with_writer(std::io::stderr)).init();
        Ok(Logs { filter: handle })
    }

    /// Changes what is logged from now on.
    pub(crate) fn change(&self, levels: Option<&str>) -> anyhow::Result<()> {
        Ok(self.filter.reload(parse(levels)?)?)
    }
}

fn parse(levels: Option<&str>) -> anyhow::Result<EnvFilter> {
    // What a watch runs into is told by the part that it is, once and in words.
    let levels = levels.unwrap_or("info,kube_runtime::watcher=error");
    EnvFilter::builder().parse(levels).with_context(|| {
        format!(
            "`{levels}` says no levels: write error, warn, info, debug or trace, or module=level, with commas between"
        )
    })
}
