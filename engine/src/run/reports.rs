//! Reports of what is wrong, and how they are, for the health of the engine.

use portal_cluster::{health::Part, holder::Holder, rules::snapshot::InForce, runtime::Runtime};

use super::EngineSettings;
use crate::{
    audit::Hearing,
    findings::Board,
    metrics::EngineMetrics,
    sinks::report::{self, ReportSettings, Reporting},
};

/// The task that writes reports, and says in the health of the engine how they are.
pub(super) fn write(
    runtime: &Runtime,
    settings: &EngineSettings,
    api: report::Api,
    metrics: &EngineMetrics,
    holder: &Holder,
    (board, hearing): (&Board, Hearing),
    in_force: &InForce,
) -> impl Future<Output = ()> + Send + use<> {
    let about = ReportSettings {
        instance: settings.instance.clone(),
        instance_uid: settings.instance_uid.clone(),
        api,
        timeout: settings.timing.action_timeout(),
        look: report::LOOK,
    };
    let (holder, outlet, in_force) = (holder.clone(), board.outlet_with_passes(), in_force.clone());
    let (writer, mut reporting) =
        report::Writer::new(runtime.clone(), metrics.clone(), about, holder, outlet, in_force);
    let writer = writer.telling(hearing);
    let health = runtime.health.clone();
    let telling = async move {
        loop {
            match &*reporting.borrow_and_update() {
                Reporting::Standby | Reporting::Starting | Reporting::Available => health.recovered(&Part::Reports),
                Reporting::NotServed(reason) | Reporting::Failing(reason) => health.unwell(&Part::Reports, reason),
            }
            if reporting.changed().await.is_err() {
                return;
            }
        }
    };
    async move {
        tokio::join!(writer.run(), telling);
    }
}
