//! How bad the worst of what is wrong with each object is.

use std::collections::BTreeMap;

use portal_crds::Severity;
use portal_engine::findings::{Offender, OffenderId, Outlet};

/// Knows what is wrong, and tells when an object becomes worse, better or right.
pub struct Worst {
    outlet: Outlet,
    /// What was told last.
    told: BTreeMap<OffenderId, (String, Severity)>,
}

impl Worst {
    /// Reads what comes out there. What is on the board already comes first.
    pub fn new(outlet: Outlet) -> Worst {
        Worst { outlet, told: BTreeMap::new() }
    }

    /// Waits until something is to be told, and says it. Nothing is lost if the wait is cut off.
    pub async fn next(&mut self) -> Vec<String> {
        loop {
            let changes = self.outlet.changes().await;
            let lines: Vec<String> =
                changes.into_iter().filter_map(|(id, offender)| self.take(id, offender.as_deref())).collect();
            if !lines.is_empty() {
                return lines;
            }
        }
    }

    fn take(&mut self, id: OffenderId, offender: Option<&Offender>) -> Option<String> {
        let Some(offender) = offender else {
            let (name, _) = self.told.remove(&id)?;
            return Some(format!("{name} is right"));
        };
        let name = format!("{} {}", offender.kind, offender.name);
        let severity =
            offender.findings.iter().map(|finding| finding.rule.severity).min_by_key(|severity| *severity as u8)?;
        let before = self.told.insert(id, (name.clone(), severity));
        let is_new = before.is_none_or(|(_, before)| before != severity);
        is_new.then(|| format!("{name} is {severity}"))
    }
}
