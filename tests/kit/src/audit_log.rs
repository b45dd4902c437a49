//! The API server's record of requests, parsed: who did what.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;

/// One request that the API server answered.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent {
    /// `create`, `get`, `patch` and so on.
    pub verb: String,
    /// The path and the query of the request.
    #[serde(rename = "requestURI")]
    pub request_uri: String,
    /// What the client calls itself.
    #[serde(default)]
    pub user_agent: String,
    /// When the request came, as the API server wrote it.
    #[serde(default)]
    pub request_received_timestamp: String,
    /// When the request was answered, as the API server wrote it.
    pub stage_timestamp: String,
    /// What the request was about; nothing for paths that are no resource.
    #[serde(default)]
    pub object_ref: ObjectRef,
    /// What was sent, for writes.
    pub request_object: Option<Value>,
    /// What admission noted about the request, that of webhooks under their names.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    user: User,
    impersonated_user: Option<User>,
    response_status: Option<ResponseStatus>,
}

/// The object of a request. What does not apply is empty.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectRef {
    /// The plural of the kind.
    pub resource: String,
    /// `status`, `scale` and so on.
    pub subresource: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The API group, empty for the core group.
    pub api_group: String,
}

#[derive(Clone, Debug, Deserialize)]
struct User {
    /// Empty for a request of nobody that the API server knows.
    #[serde(default)]
    username: String,
    #[serde(default)]
    extra: BTreeMap<String, Vec<String>>,
}

#[derive(Clone, Debug, Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

impl AuditEvent {
    /// Who did it. A test's users come in by impersonation, and it is they who count.
    pub fn user(&self) -> &str {
        &self.impersonated_user.as_ref().unwrap_or(&self.user).username
    }

    /// The name that the test gave to the client, if it came through the fault proxy.
    pub fn client(&self) -> Option<&str> {
        self.user.extra.get("client")?.first().map(String::as_str)
    }

    /// The HTTP status of the answer, 0 if there was none.
    pub fn code(&self) -> u16 {
        self.response_status.as_ref().map_or(0, |status| status.code)
    }

    /// Whether the request changes something.
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }
}

/// Reads the whole record. A line that is still being written is left for the next time.
pub fn read(path: &Path) -> anyhow::Result<Vec<AuditEvent>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("not an audit event: {line}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_are_read_and_the_last_half_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let line = r#"{"verb":"create","requestURI":"/api/v1/namespaces/a/pods","stageTimestamp":"t","user":{"username":"admin"},"impersonatedUser":{"username":"jane"},"objectRef":{"resource":"pods","namespace":"a"},"responseStatus":{"code":403}}"#;
        std::fs::write(&path, format!("{line}\n{}", &line[..40])).unwrap();
        let events = read(&path).unwrap();
        assert_eq!(events.len(), 1);
        let event = &events[0];
        assert_eq!((event.user(), event.code(), event.is_write()), ("jane", 403, true));
        assert_eq!((event.object_ref.resource.as_str(), event.object_ref.name.as_str()), ("pods", ""));
    }
}
