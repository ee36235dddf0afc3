//! `[llm_health]`: LLM endpoints whose health is checked, and when their circuits open.

use muster_engine::limits::LlmLimits;
use serde::{Deserialize, Serialize};

use super::Span;
use crate::dispatch::address::has_sound_port;

/// `[llm_health]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LlmHealth {
    /// Whether anything is checked.
    pub enabled: bool,
    /// What is checked.
    pub endpoints: Vec<LlmEndpoint>,
    /// Time between two checks of a circuit that is not open.
    pub check_interval: Span,
    /// How long a check may take.
    pub check_timeout: Span,
    /// Failed checks in a row that open a circuit.
    pub failure_threshold: u32,
    /// How long a circuit stays open before the next check.
    pub recovery_timeout: Span,
    /// Good checks in a row that close a half-open circuit.
    pub half_open_probes: u32,
}

impl Default for LlmHealth {
    fn default() -> Self {
        Self {
            enabled: false,
            endpoints: Vec::new(),
            check_interval: Span::seconds(15),
            check_timeout: Span::seconds(5),
            failure_threshold: 3,
            recovery_timeout: Span::seconds(30),
            half_open_probes: 2,
        }
    }
}

/// One endpoint: `{name = "…", url = "…"}`, `"name=https://…"`, or an address alone, which is
/// called by its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct LlmEndpoint {
    /// What calls and views name it by.
    pub name: String,
    /// What is asked for with GET; any answer below 500 is good.
    pub url: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Table(Table),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    name: String,
    url: String,
}

impl TryFrom<Written> for LlmEndpoint {
    type Error = String;
    fn try_from(written: Written) -> Result<Self, String> {
        let (name, url) = match written {
            Written::Table(Table { name, url }) => (Some(name), url),
            Written::Text(text) => match text.split_once('=') {
                Some((name, url)) if !name.contains("://") => {
                    (Some(name.to_owned()), url.to_owned())
                }
                _ => (None, text),
            },
        };
        let uri: http::Uri = url
            .trim()
            .parse()
            .map_err(|_| "an LLM endpoint's url is no address".to_owned())?;
        let host = uri.host().unwrap_or_default();
        if host.is_empty() || !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err("an LLM endpoint's url begins with http:// or https://".into());
        }
        if !has_sound_port(&uri) {
            return Err("an LLM endpoint's port is a number from 1 to 65535".into());
        }
        let name = name.unwrap_or_else(|| host.to_owned());
        let name = name.trim();
        if name.is_empty() || name.len() > 128 || name.chars().any(char::is_control) {
            return Err("an LLM endpoint's name has 1 to 128 characters".into());
        }
        Ok(Self {
            name: name.to_owned(),
            url: url.trim().to_owned(),
        })
    }
}

impl LlmHealth {
    /// The endpoint that a call means: by its name, or by the beginning of its address.
    pub fn named(&self, wanted: &str) -> Option<&LlmEndpoint> {
        let own = self.endpoints.iter();
        own.clone().find(|e| e.name == wanted).or_else(|| {
            let mut own = own;
            own.find(|e| origin(&e.url).is_some_and(|o| origin(wanted).as_ref() == Some(&o)))
        })
    }

    pub(super) fn limits(&self) -> LlmLimits {
        let mut endpoints: Vec<String> = Vec::new();
        for endpoint in self.endpoints.iter().filter(|_| self.enabled) {
            if !endpoints.contains(&endpoint.name) {
                endpoints.push(endpoint.name.clone());
            }
        }
        LlmLimits {
            endpoints,
            check_interval: self.check_interval.0.max(SHORTEST),
            failure_threshold: self.failure_threshold.max(1),
            recovery_timeout: self.recovery_timeout.0.max(SHORTEST),
            half_open_probes: self.half_open_probes.max(1),
        }
    }
}

/// A check more often than this would be an attack.
const SHORTEST: std::time::Duration = std::time::Duration::from_millis(100);

/// Scheme, host and port of an address.
fn origin(url: &str) -> Option<(String, String, u16)> {
    let uri: http::Uri = url.parse().ok()?;
    let scheme = uri.scheme_str()?.to_owned();
    let port = uri
        .port_u16()
        .unwrap_or(if scheme == "https" { 443 } else { 80 });
    Some((scheme, uri.host()?.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_written_in_three_ways_and_found_by_name_or_address() {
        let health: LlmHealth = serde_json::from_str(
            r#"{"enabled":true,"endpoints":["https://api.one.example/v1",
                "two=http://127.0.0.1:9/health",{"name":"three","url":"https://three.example"}]}"#,
        )
        .unwrap();
        assert_eq!(
            health.limits().endpoints,
            ["api.one.example", "two", "three"]
        );
        for (wanted, name) in [
            ("two", Some("two")),
            ("https://API.one.example/v1/chat", Some("api.one.example")),
            ("http://127.0.0.1:9", Some("two")),
            ("http://127.0.0.1:8", None),
            ("four", None),
        ] {
            assert_eq!(
                health.named(wanted).map(|e| e.name.as_str()),
                name,
                "{wanted}"
            );
        }
    }

    #[test]
    fn what_is_no_endpoint_is_refused_and_nothing_is_checked_unless_enabled() {
        for bad in [
            r#"["ftp://x"]"#,
            r#"["nothing"]"#,
            r#"[{"name":"x"}]"#,
            r#"["=http://x"]"#,
        ] {
            let text = format!("{{\"endpoints\":{bad}}}");
            assert!(serde_json::from_str::<LlmHealth>(&text).is_err(), "{bad}");
        }
        let off: LlmHealth = serde_json::from_str(r#"{"endpoints":["http://x"]}"#).unwrap();
        assert!(off.limits().endpoints.is_empty());
    }
}
