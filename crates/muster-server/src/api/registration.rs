//! Reads a registration: ids, address, functions with what admission must know of them. The
//! body itself is kept as it came.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use http::Uri;
use muster_engine::row::Function;
use muster_store::glob;
use muster_wire::{AgentId, FunctionKind, FunctionName, InstanceId};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::body;
use super::problem::Problem;
use crate::dispatch::address::{self, DialRules, has_sound_port};
use crate::fleet::tunnel;

/// Functions of one agent.
const FUNCTIONS_MAX: usize = 2_000;
/// Required fields of one function.
const REQUIRED_MAX: usize = 256;
/// Other addresses of one instance.
const CANDIDATES_MAX: usize = 8;
/// The longest tag that needs an approval.
const TAG_MAX: usize = 128;
/// Tags of one agent that need an approval.
const TAGS_MAX: usize = 200;
/// The longest address, version and field name.
const TEXT_MAX: usize = 2_048;

/// A registration that is well formed.
pub(crate) struct Read {
    pub(crate) agent: AgentId,
    pub(crate) instance: InstanceId,
    pub(crate) base_url: Arc<str>,
    pub(crate) version: Arc<str>,
    pub(crate) functions: Vec<Function>,
    pub(crate) starting: bool,
    /// Every tag it proposes or carries, of itself and of its functions.
    pub(crate) tags: Vec<String>,
    /// Other addresses it names, in its order and unchecked.
    pub(crate) candidates: Vec<String>,
}

impl Read {
    /// The same of a worker that is called through its node: its address is one of that machine.
    pub(crate) fn of_worker(self, worker: &str) -> Self {
        let base_url = tunnel::through(&self.base_url, worker);
        let unnamed = self.instance.as_str() == format!("url:{}", self.base_url);
        Self {
            instance: if unnamed {
                InstanceId::trusted(format!("url:{base_url}"))
            } else {
                self.instance
            },
            base_url: base_url.into(),
            ..self
        }
    }
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    base_url: Cow<'a, str>,
    #[serde(borrow, default)]
    version: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    instance_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    lifecycle_status: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    reasoners: Option<Vec<Offered<'a>>>,
    #[serde(borrow, default)]
    skills: Option<Vec<Offered<'a>>>,
    #[serde(default)]
    proposed_tags: Option<Vec<String>>,
    #[serde(default)]
    callback_discovery: Option<Discovery>,
}

/// What the SDK knows of its own addresses. Of another form it says nothing.
#[derive(Deserialize, Default)]
#[serde(from = "serde_json::Value")]
struct Discovery {
    candidates: Vec<String>,
}

impl From<serde_json::Value> for Discovery {
    fn from(value: serde_json::Value) -> Self {
        let list = value.get("callback_candidates").and_then(|v| v.as_array());
        let texts = list.into_iter().flatten().filter_map(|v| v.as_str());
        Self {
            candidates: texts.take(CANDIDATES_MAX).map(str::to_owned).collect(),
        }
    }
}

#[derive(Deserialize)]
struct Offered<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    input_schema: Option<&'a RawValue>,
    #[serde(default)]
    tags: Option<Vec<String>>,
    #[serde(default)]
    proposed_tags: Option<Vec<String>>,
}

/// Reads and checks a registration.
///
/// # Errors
/// 400 with a sentence.
pub(crate) fn read(bytes: &[u8]) -> Result<Read, Problem> {
    let body: Body<'_> = body::json(
        bytes,
        "a registration {id, base_url, reasoners?, skills?, …}",
    )?;
    let agent = AgentId::parse(&body.id).map_err(|e| Problem::validation(format!("id: {e}")))?;
    if agent.as_str().contains('.') {
        return Err(Problem::validation(
            "id: an agent's id has no dot, as targets are written agent.function",
        ));
    }
    let base_url = body.base_url.trim().trim_end_matches('/');
    let base_url: Arc<str> = Arc::from(check_url(base_url)?);
    let version = body.version.as_deref().unwrap_or("");
    if version.len() > TEXT_MAX {
        return Err(Problem::validation("version: too long"));
    }
    let instance = match body.instance_id.as_deref().filter(|id| !id.is_empty()) {
        Some(id) => {
            InstanceId::parse(id).map_err(|e| Problem::validation(format!("instance_id: {e}")))?
        }
        None => InstanceId::trusted(format!("url:{base_url}")),
    };
    let mut functions = Vec::new();
    let mut tags = body.proposed_tags.unwrap_or_default();
    for (list, kind) in [
        (body.reasoners.unwrap_or_default(), FunctionKind::Reasoner),
        (body.skills.unwrap_or_default(), FunctionKind::Skill),
    ] {
        for offered in list {
            let function = function(&offered, kind)?;
            let own = offered.tags.into_iter().chain(offered.proposed_tags);
            tags.extend(own.flatten());
            // Reasoners come first: a skill of the same name is not reachable.
            if functions
                .iter()
                .all(|known: &Function| known.name != function.name)
            {
                functions.push(function);
            }
        }
    }
    if functions.len() > FUNCTIONS_MAX {
        return Err(Problem::validation(format!(
            "an agent has at most {FUNCTIONS_MAX} functions"
        )));
    }
    Ok(Read {
        agent,
        instance,
        base_url,
        version: version.into(),
        functions,
        tags,
        candidates: body.callback_discovery.unwrap_or_default().candidates,
        starting: body.lifecycle_status.as_deref() == Some("starting"),
    })
}

fn function(offered: &Offered<'_>, kind: FunctionKind) -> Result<Function, Problem> {
    let wrong = |why: String| {
        let name: String = offered.id.chars().take(64).collect();
        Problem::validation(format!("function {name:?}: {why}"))
    };
    let name = FunctionName::parse(&offered.id).map_err(|e| wrong(e.to_string()))?;
    if name.as_str().contains('.') {
        return Err(wrong("a function's name has no dot".into()));
    }
    let tagged = |word: &str| {
        let mut tags = offered.tags.iter().chain(&offered.proposed_tags).flatten();
        tags.any(|tag| tag == word)
    };
    Ok(Function {
        name,
        kind,
        required: offered.input_schema.map(required).unwrap_or_default(),
        idempotent: tagged("idempotent"),
        cancel_with_parent: tagged("on_parent_end:cancel"),
    })
}

/// Those of its tags that need an approval by the patterns of the configuration.
///
/// # Errors
/// 400 when there are more of them, or longer ones, than anybody would decide about.
pub(crate) fn tags_for_approval(
    tags: &[String],
    patterns: &[String],
) -> Result<Vec<Box<str>>, Problem> {
    if patterns.is_empty() {
        return Ok(Vec::new());
    }
    let fits = |tag: &&String| glob::fits_any(patterns, tag);
    let mut wanted: Vec<Box<str>> = tags
        .iter()
        .filter(fits)
        .map(|t| t.as_str().into())
        .collect();
    wanted.sort();
    wanted.dedup();
    if wanted.len() > TAGS_MAX || wanted.iter().any(|tag| tag.len() > TAG_MAX) {
        return Err(Problem::validation(format!(
            "tags: at most {TAGS_MAX} that need an approval, of at most {TAG_MAX} bytes"
        )));
    }
    Ok(wanted)
}

/// The required fields of a schema; a schema of another form requires nothing.
fn required(schema: &RawValue) -> Vec<Box<str>> {
    #[derive(Deserialize)]
    struct Schema {
        #[serde(default)]
        required: Vec<Box<str>>,
    }
    let schema: Option<Schema> = serde_json::from_str(schema.get()).ok();
    let mut required = schema.map(|schema| schema.required).unwrap_or_default();
    required.retain(|field| field.len() <= TEXT_MAX);
    required.truncate(REQUIRED_MAX);
    required
}

/// An address that can be called: http or https, a host, no credentials, nothing behind a path.
fn check_url(text: &str) -> Result<&str, Problem> {
    let wrong = |why: &str| Problem::validation(format!("base_url: {why}"));
    if text.len() > TEXT_MAX {
        return Err(wrong("too long"));
    }
    let uri: Uri = text
        .parse()
        .map_err(|_| wrong("not an address like http://host:8001"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(wrong("must begin with http:// or https://"));
    }
    let host = uri.host().unwrap_or_default();
    if host.is_empty() {
        return Err(wrong("names no host"));
    }
    if uri
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'))
    {
        return Err(wrong("must not carry credentials"));
    }
    if !has_sound_port(&uri) {
        return Err(wrong("the port must be a number from 1 to 65535"));
    }
    if uri.query().is_some() || text.contains('#') {
        return Err(wrong("must have no query and no fragment"));
    }
    Ok(text)
}

/// Where else an instance may be: what it names, and where it registers from, as far as the
/// plane may dial there. What cannot be used is left out: the address it gave is what counts.
pub(crate) fn candidates(
    read: &Read,
    peer: Option<SocketAddr>,
    rules: &DialRules,
) -> Vec<Arc<str>> {
    let own: Option<Uri> = read.base_url.parse().ok();
    let port = own.and_then(|uri| uri.port_u16());
    let from = peer.zip(port).map(|(peer, port)| {
        let address = SocketAddr::new(peer.ip().to_canonical(), port);
        format!("http://{address}")
    });
    let mut found: Vec<Arc<str>> = Vec::new();
    for url in read.candidates.iter().cloned().chain(from) {
        let url = url.trim().trim_end_matches('/');
        let usable = check_url(url).is_ok() && check_address(url, peer, rules).is_ok();
        let known = *url == *read.base_url || found.iter().any(|other| **other == *url);
        if usable && !known {
            found.push(url.into());
        }
    }
    found
}

/// Whether the plane may dial there at all, as far as the address itself says, and whether the
/// agent that gave it can mean it.
///
/// # Errors
/// 400 with the rule.
pub(crate) fn check_address(
    base_url: &str,
    peer: Option<SocketAddr>,
    rules: &DialRules,
) -> Result<(), Problem> {
    let uri: Uri = base_url
        .parse()
        .map_err(|_| Problem::validation("base_url: no address"))?;
    let host = uri.host().unwrap_or_default();
    let https = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
    let Some(ip) = address::literal(host) else {
        if address::is_numeric(host) {
            return Err(Problem::validation(
                "base_url: the host is a number and no address",
            ));
        }
        // Names are resolved and checked when they are dialled.
        return Ok(());
    };
    rules
        .check(SocketAddr::new(ip, port))
        .map_err(|why| Problem::validation(format!("base_url: {why}")))?;
    let from_elsewhere = peer.is_some_and(|peer| !peer.ip().to_canonical().is_loopback());
    if ip.to_canonical().is_loopback() && from_elsewhere {
        return Err(Problem::validation(
            "base_url: a loopback address was registered from another machine; set AGENT_CALLBACK_URL to an address at which the plane reaches the agent",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(id: &str, base_url: &str) -> String {
        serde_json::json!({
            "id": id, "base_url": base_url, "version": "1.0.0", "instance_id": "",
            "lifecycle_status": "starting",
            "reasoners": [{"id": "f", "input_schema": {"type": "object", "required": ["x"], "properties": {}}, "tags": ["idempotent"]}],
            "skills": [{"id": "f"}, {"id": "g", "input_schema": {"required": "odd"}}],
            "features": {"experimental": {}},
        })
        .to_string()
    }

    #[test]
    fn what_the_sdk_sends_is_read() {
        let read = read(body("a", "http://127.0.0.1:8001/").as_bytes())
            .unwrap_or_else(|p| panic!("{p:?}"));
        assert_eq!(&*read.base_url, "http://127.0.0.1:8001");
        assert_eq!(read.instance.as_str(), "url:http://127.0.0.1:8001");
        assert!(read.starting);
        let names: Vec<_> = read
            .functions
            .iter()
            .map(|f| (f.name.as_str(), f.kind))
            .collect();
        assert_eq!(
            names,
            [("f", FunctionKind::Reasoner), ("g", FunctionKind::Skill)]
        );
        assert_eq!(&*read.functions[0].required[0], "x");
        assert!(read.functions[0].idempotent && !read.functions[1].idempotent);
    }

    #[test]
    fn ids_and_addresses_that_cannot_be_called_are_refused() {
        for (id, url) in [
            ("a.b", "http://h:1"),
            ("", "http://h:1"),
            ("a b", "http://h:1"),
            ("a", "ftp://h"),
            ("a", "h:1"),
            ("a", ""),
            ("a", "http://u:p@h:1"),
            ("a", "http://h:1/?q"),
        ] {
            assert!(read(body(id, url).as_bytes()).is_err(), "{id:?} {url:?}");
        }
    }

    #[test]
    fn other_addresses_are_those_it_names_and_the_one_it_registers_from() {
        let rules = DialRules::default();
        let peer = Some("10.0.0.5:51000".parse().unwrap());
        let named = serde_json::json!({"callback_candidates": [
            "http://agent.local:8001/", "http://wrong:8001", "ftp://no", 7,
            "http://169.254.169.254:80", "http://localhost:8001", "http://10.0.0.5:8001",
        ]});
        for (discovery, want) in [
            (
                named,
                vec!["http://agent.local:8001", "http://10.0.0.5:8001"],
            ),
            (serde_json::json!("odd"), vec!["http://10.0.0.5:8001"]),
        ] {
            let body = serde_json::json!({
                "id": "a", "base_url": "http://wrong:8001", "callback_discovery": discovery,
            });
            let read = read(body.to_string().as_bytes()).unwrap_or_else(|p| panic!("{p:?}"));
            let found = candidates(&read, peer, &rules);
            assert_eq!(found.iter().map(|url| &**url).collect::<Vec<_>>(), want);
        }
    }

    #[test]
    fn addresses_never_dialled_and_foreign_loopback_are_refused() {
        let rules = DialRules::default();
        let here = Some("127.0.0.1:5".parse().unwrap());
        let there = Some("10.0.0.5:5".parse().unwrap());
        assert!(check_address("http://localhost:8001", here, &rules).is_ok());
        assert!(check_address("http://localhost:8001", there, &rules).is_err());
        assert!(check_address("http://10.0.0.5:8001", there, &rules).is_ok());
        assert!(check_address("http://169.254.169.254", here, &rules).is_err());
        assert!(check_address("http://[::]:8001", here, &rules).is_err());
    }
}
