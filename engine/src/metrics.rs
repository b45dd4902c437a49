//! What the engine counts, beside what every process does.

use portal_cluster::{
    health::Part,
    metrics::{Counter, Counters, Gauge, Gauges, Label, Metric, MetricKind, Seconds, Word},
    metrics_label, metrics_table,
};

metrics_table! {
    /// What the engine counts.
    EngineMetrics, METRICS {
        cache_objects: Gauges<Part> = "portal_cache_objects", "Objects that rules look up in this replica, by their watch.";
        cache_bytes: Gauges<Part> =
            "portal_cache_bytes", "Memory that these objects take, beside what all objects share.";
        audit_evaluations: Counters<AuditEvaluation> =
            "portal_audit_evaluations_total", "Rules that audit asked about objects, by what came of it.";
        audit_seconds: Seconds =
            "portal_audit_latency_seconds", "Time from a change that was seen to what was found because of it.";
        audit_queue: Gauge = "portal_audit_queue_depth", "Objects that wait to be judged by audit.";
        audit_resyncs: Counter =
            "portal_audit_resyncs_total", "Times that every object was judged again although nothing had changed.";
        audit_relists: Counter =
            "portal_audit_watch_reconnects_total", "Times that a watch of objects began anew with a list. What has not changed is not judged again.";
        lookup_dependencies: Gauge =
            "portal_lookup_dependencies", "Lookups of rules that are remembered, so that a change of what they found is noticed.";
        dependencies_forgotten: Counter =
            "portal_lookup_dependencies_forgotten_total", "Objects whose lookups were forgotten to make room. They are judged again with all others.";
        lookups_suppressed: Counter =
            "portal_lookup_cycle_suppressed_total", "Times that a rule had to wait before it judged an object again, because what it looks up changes too often.";
        fresh_reads: Counters<FreshRead> =
            "portal_fresh_reads_total", "Reads of the API server that a rule asked for by `consistentCluster`, by what came of them.";
        outcomes_lost: Counter =
            "portal_audit_outcomes_lost_total", "Requests that were let in with something to say, by rules that audit never asks, and came too many to be reported.";
        status_writes: Counters<StatusWrite> = "portal_status_writes_total", "Writes of rule status.";
        admission_requests: Counters<AdmissionDecision> =
            "portal_admission_requests_total", "Reviews that the webhook answered, by the answer.";
        admission_seconds: Seconds =
            "portal_admission_latency_seconds", "Time from a review that was read to its answer.";
        admission_bypass: Counters<NamespaceName> =
            "portal_admission_bypass_total", "Reviews that no rule was asked about, because the annotation of their namespace says so.";
        rule_reviews: Counters<RuleReview> =
            "portal_rule_reviews_total", "Rules that somebody wrote and the webhook was asked about, by the answer.";
        sink_records_lost: Counters<SinkName> =
            "portal_sink_records_lost_total", "Records of decisions that a sink could not take.";
        reports: Gauge = "portal_reports", "Policy reports of this instance, in the replica that writes them.";
        report_results_left_out: Gauge =
            "portal_report_results_left_out", "Results that policy reports have no room for. They are in their summaries.";
        report_writes: Counters<ReportWrite> = "portal_report_writes_total", "Writes of policy reports.";
        report_bytes: Counter = "portal_report_written_bytes_total", "How large the policy reports were that were written.";
        alerts_firing: Gauges<AlertMode> =
            "portal_alerts_firing", "Alerts that fire, as far as this replica knows. Those of audit are sent by the holder of the Lease alone.";
        alerts_sent: Counters<ReceiverNumber> =
            "portal_alerts_sent_total", "Alerts that an Alertmanager took. One that fires is sent again every minute.";
        alerts_waiting: Gauges<ReceiverNumber> =
            "portal_alerts_waiting", "Alerts that an Alertmanager has yet to take.";
        alert_failures: Counters<AlertFailure> =
            "portal_alert_failures_total", "Messages that an Alertmanager did not take. They are tried again.";
        alerts_lost: Counters<AlertLoss> =
            "portal_alerts_lost_total", "Alerts that an Alertmanager was not told of.";
        connections: Gauge = "portal_admission_connections", "Connections of the webhook that are open.";
        connections_closed: Counters<Closed> =
            "portal_admission_connections_closed_total", "Connections of the webhook that were closed although their client was there.";
        accept_errors: Counter =
            "portal_admission_accept_errors_total", "Times that the webhook could not take a connection; it goes on.";
        body_bytes: Gauge =
            "portal_admission_body_bytes", "Memory that is held for the bodies of requests to the webhook.";
        requests_refused: Counters<RefusedRequest> =
            "portal_admission_requests_refused_total", "Requests to the webhook that were answered without a decision.";
        certificate_loads: Counters<CertificateLoad> =
            "portal_admission_certificate_loads_total", "Times that the webhook's certificate or the authority of its clients had changed.";
        certificate_loaded: Gauge =
            "portal_admission_certificate_loaded_timestamp_seconds", "When the certificate that the webhook shows was loaded.";
        certificate_expires: Gauge =
            "portal_admission_certificate_expiry_timestamp_seconds", "When the certificate that the webhook shows expires.";
    }
}

metrics_label! {
    /// What came of a read for a rule.
    pub enum FreshRead in "result" {
        Answered = "answered", "";
        Failed = "failed", "";
        Late = "late", "there was no answer in time";
        Refused = "refused", "there were too many at a time";
    }
}

metrics_label! {
    /// What came of asking a rule about an object.
    pub enum AuditEvaluation in "result" {
        Passed = "passed", "";
        Violated = "violated", "";
        Failed = "failed", "the rule could not be evaluated";
        Skipped = "skipped", "nothing had changed that the rule reads";
    }
}

metrics_label! {
    /// What came of writing the status of a rule.
    pub enum StatusWrite in "result" {
        Written = "written", "";
        Conflict = "conflict", "somebody wrote in between; tried again";
        Failed = "failed", "";
    }
}

metrics_label! {
    /// What came of writing a policy report.
    pub enum ReportWrite in "result" {
        Created = "created", "";
        Replaced = "replaced", "";
        Deleted = "deleted", "";
        Conflict = "conflict", "somebody wrote in between; tried again";
        Failed = "failed", "";
    }
}

/// What [`crate::tally`] tells when somebody asks: rules come and go, and counting one must not cost the search for its
/// series.
pub const RULE_EVALUATIONS: Metric = Metric {
    name: "portal_rule_evaluations_total",
    kind: MetricKind::Counter,
    help: "Objects that a rule was asked about, by what it answered. The rules after the first thousand by name share one series.",
    labels: &[("rule", &[]), (RuleAnswer::NAME, RuleAnswer::WORDS)],
};

metrics_label! {
    /// What a rule answered about an object.
    pub enum RuleAnswer in "result" {
        Passed = "passed", "";
        Violated = "violated", "";
        Failed = "failed", "the rule could not be evaluated";
    }
}

/// What [`crate::findings`] tells when somebody asks.
pub const AUDIT_VIOLATIONS: Metric = Metric {
    name: "portal_audit_violations",
    kind: MetricKind::Gauge,
    help: "Objects that violate a rule now, as audit has found. Every replica says so; take the largest. The rules after the first thousand by name share one series.",
    labels: &[
        ("rule", &[]),
        (
            "severity",
            &[
                Word("critical", ""),
                Word("high", ""),
                Word("medium", ""),
                Word("low", ""),
                Word("info", ""),
                Word("any", "of the rules that share a series"),
            ],
        ),
    ],
};

metrics_label! {
    /// What the webhook answered.
    pub enum AdmissionDecision in "decision" {
        Allowed = "allowed", "";
        Warned = "warned", "allowed with a warning";
        Denied = "denied", "";
        Excluded = "excluded", "the namespace is left alone";
        Bypassed = "bypassed", "the namespace says so";
        Unknown = "unknown", "no rule is about the kind";
        Unreadable = "unreadable", "no review";
    }
}

impl AdmissionDecision {
    /// Its word.
    pub fn name(self) -> &'static str {
        Self::WORDS[self as usize].0
    }
}

metrics_label! {
    /// What whoever writes a rule is answered.
    pub enum RuleReview in "decision" {
        Allowed = "allowed", "";
        Warned = "warned", "something is wrong with it, or may be";
        Denied = "denied", "its author may not do what it does, or its namespace has too many";
    }
}

/// The name of a sink.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SinkName(pub &'static str);

impl Label for SinkName {
    const NAME: &'static str = "sink";
    const WORDS: &'static [Word] = &[Word("stdout", "")];
    const IS_OPEN: bool = true;

    fn word(&self) -> &str {
        self.0
    }
}

metrics_label! {
    /// Which loop an alert comes from.
    pub enum AlertMode in "mode" {
        Admission = "admission", "";
        Audit = "audit", "";
    }
}

metrics_label! {
    /// Why a message with alerts was not taken.
    pub enum AlertFailure in "reason" {
        Credentials = "credentials", "the files cannot be used";
        Unreachable = "unreachable", "";
        Certificate = "certificate", "it is not accepted";
        Broken = "broken", "the connection, or the answer";
        TooLate = "too-late", "there was no answer in time";
        Refused = "refused", "an alert in it; the message is taken apart";
        Busy = "busy", "";
        Server = "server-error", "";
        Redirected = "redirected", "which is not followed";
        Unexpected = "unexpected", "the address or the credentials may be wrong";
        LeaseLost = "lease-lost", "on its way";
    }
}

metrics_label! {
    /// Why an alert was not told.
    pub enum AlertLoss in "reason" {
        Refused = "refused", "Alertmanager takes the others, and not this one; tried again, ever more rarely";
        NoRoom = "no-room", "there are too many; what still fires is told when there is room";
        Queue = "queue", "too many denials at once";
        TooLate = "too-late", "an Alertmanager could not be told of a denial before it had ended";
    }
}

/// An Alertmanager, by its place in the list of addresses. There are up to eight.
#[derive(Clone, Debug)]
pub struct ReceiverNumber(pub String);

impl Label for ReceiverNumber {
    const NAME: &'static str = "receiver";
    const WORDS: &'static [Word] = &[];
    const IS_OPEN: bool = true;

    fn word(&self) -> &str {
        &self.0
    }
}

/// A namespace in which rules were passed by. Few ever are, and at most 256 have series of their own.
#[derive(Clone, Debug)]
pub struct NamespaceName(pub String);

impl Label for NamespaceName {
    const NAME: &'static str = "namespace";
    const WORDS: &'static [Word] = &[];
    const IS_OPEN: bool = true;

    fn word(&self) -> &str {
        &self.0
    }
}

metrics_label! {
    /// Why a connection was closed although its client was there.
    pub enum Closed in "reason" {
        NotTls = "not-tls", "it began with something else";
        HandshakeFailed = "handshake-failed", "one side refused the other";
        Handshake = "handshake", "it took too long";
        Header = "header", "it took too long";
        Body = "body", "it took too long";
        Decision = "decision", "it took too long";
        Answer = "answer", "the client did not read it";
        Idle = "idle", "";
        MakeRoom = "make-room", "for another connection, or for a body";
        NoRoom = "no-room", "every other connection waited for a decision";
        Shutdown = "shutdown", "";
    }
}

metrics_label! {
    /// Why a request was answered without a decision.
    pub enum RefusedRequest in "reason" {
        TooLarge = "too-large", "";
        TooSlow = "too-slow", "its body";
        Broken = "broken", "its body";
        NoMemory = "no-memory", "bodies hold all that they may";
        NoCertificate = "no-certificate", "the client showed none";
        WrongCertificate = "wrong-certificate", "of the client";
        NotJson = "not-json", "";
        Panic = "panic", "";
    }
}

metrics_label! {
    /// What came of a certificate that had changed.
    pub enum CertificateLoad in "result" {
        Loaded = "loaded", "";
        Refused = "refused", "the one before stays";
    }
}
