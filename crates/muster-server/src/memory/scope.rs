//! Which of the four scopes a request means. The scopes are siblings, not nested; the ids of
//! three of them come in headers, that of the global one is `global`.

use std::sync::Arc;

use axum::http::HeaderMap;
use muster_store::annex::MemoryScope;
use muster_wire::AttemptRef;

/// The longest id of a scope, in bytes: people use addresses and names for sessions and actors.
pub const SCOPE_ID_BYTES_MAX: usize = 512;

/// The four scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeWord {
    /// Shared by everybody.
    Global,
    /// One conversation.
    Session,
    /// One actor, over all conversations.
    Actor,
    /// One run.
    Workflow,
}

impl ScopeWord {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            ScopeWord::Global => "global",
            ScopeWord::Session => "session",
            ScopeWord::Actor => "actor",
            ScopeWord::Workflow => "workflow",
        }
    }

    /// Reads the word.
    ///
    /// # Errors
    /// When it is none of the four.
    pub fn parse(word: &str) -> Result<Self, ScopeError> {
        Ok(match word {
            "global" => ScopeWord::Global,
            "session" => ScopeWord::Session,
            "actor" => ScopeWord::Actor,
            "workflow" => ScopeWord::Workflow,
            _ => return Err(ScopeError::Unknown),
        })
    }

    /// The header with its id; the global one has none.
    pub fn header(self) -> Option<&'static str> {
        match self {
            ScopeWord::Global => None,
            ScopeWord::Session => Some("x-session-id"),
            ScopeWord::Actor => Some("x-actor-id"),
            ScopeWord::Workflow => Some("x-workflow-id"),
        }
    }
}

/// Why no scope can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeError {
    /// The word is none of the four.
    Unknown,
    /// The scope needs an id, and its header is not there.
    NoId(ScopeWord),
    /// The header's value cannot be an id.
    BadId(&'static str),
}

impl std::fmt::Display for ScopeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ScopeError::Unknown => {
                f.write_str("scope is one of global, session, actor and workflow")
            }
            ScopeError::NoId(scope) => write!(
                f,
                "scope {} needs an id in the header {}",
                scope.word(),
                scope.header().unwrap_or_default()
            ),
            ScopeError::BadId(header) => write!(
                f,
                "the header {header} must be text of at most {SCOPE_ID_BYTES_MAX} bytes without control characters"
            ),
        }
    }
}

/// The ids that came with a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScopeIds {
    /// `X-Workflow-ID`.
    pub workflow: Option<Arc<str>>,
    /// `X-Session-ID`.
    pub session: Option<Arc<str>>,
    /// `X-Actor-ID`.
    pub actor: Option<Arc<str>>,
}

impl ScopeIds {
    /// Takes them from the headers. An empty header counts as absent.
    ///
    /// # Errors
    /// When one of them cannot be an id.
    pub fn from_headers(headers: &HeaderMap) -> Result<Self, ScopeError> {
        Ok(Self {
            workflow: id(headers, "x-workflow-id")?,
            session: id(headers, "x-session-id")?,
            actor: id(headers, "x-actor-id")?,
        })
    }

    /// The scope that was named, with its id.
    ///
    /// # Errors
    /// When its header is not there.
    pub fn named(&self, word: ScopeWord) -> Result<MemoryScope, ScopeError> {
        let id = match word {
            ScopeWord::Global => return Ok(global()),
            ScopeWord::Session => &self.session,
            ScopeWord::Actor => &self.actor,
            ScopeWord::Workflow => &self.workflow,
        };
        match id {
            Some(id) => Ok(scope(word, id)),
            None => Err(ScopeError::NoId(word)),
        }
    }

    /// Where a read without a scope looks, in this order.
    pub fn walk(&self) -> Vec<MemoryScope> {
        let mut scopes = Vec::with_capacity(4);
        for (word, id) in [
            (ScopeWord::Workflow, &self.workflow),
            (ScopeWord::Session, &self.session),
            (ScopeWord::Actor, &self.actor),
        ] {
            if let Some(id) = id {
                scopes.push(scope(word, id));
            }
        }
        scopes.push(global());
        scopes
    }

    /// Where a change without a scope goes: the first of those a read would look into.
    pub fn first(&self) -> MemoryScope {
        self.walk().remove(0)
    }
}

fn scope(word: ScopeWord, id: &Arc<str>) -> MemoryScope {
    MemoryScope {
        scope: Arc::from(word.word()),
        id: id.clone(),
    }
}

fn global() -> MemoryScope {
    MemoryScope {
        scope: Arc::from("global"),
        id: Arc::from("global"),
    }
}

fn id(headers: &HeaderMap, name: &'static str) -> Result<Option<Arc<str>>, ScopeError> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let text = std::str::from_utf8(value.as_bytes()).map_err(|_| ScopeError::BadId(name))?;
    if text.is_empty() {
        return Ok(None);
    }
    if text.len() > SCOPE_ID_BYTES_MAX || text.chars().any(char::is_control) {
        return Err(ScopeError::BadId(name));
    }
    Ok(Some(Arc::from(without_secret(text))))
}

/// An agent may use its execution's id, which is an attempt id, as a name: the secret goes.
pub fn without_secret(text: &str) -> &str {
    match AttemptRef::parse(text) {
        Ok(AttemptRef { proof: Some(_), .. }) => text.split('~').next().unwrap_or(text),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.insert(
                *name,
                axum::http::HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
        map
    }

    fn words(scopes: &[MemoryScope]) -> Vec<String> {
        scopes
            .iter()
            .map(|s| format!("{}/{}", s.scope, s.id))
            .collect()
    }

    #[test]
    fn a_read_walks_what_is_there_and_a_write_takes_the_first() {
        let all = ScopeIds::from_headers(&headers(&[
            ("x-actor-id", "a"),
            ("x-session-id", "s"),
            ("x-workflow-id", "w"),
        ]))
        .unwrap();
        assert_eq!(
            words(&all.walk()),
            ["workflow/w", "session/s", "actor/a", "global/global"]
        );
        let actor = ScopeIds::from_headers(&headers(&[("x-actor-id", "a"), ("x-session-id", "")]));
        assert_eq!(words(&[actor.unwrap().first()]), ["actor/a"]);
        assert_eq!(words(&[ScopeIds::default().first()]), ["global/global"]);
    }

    #[test]
    fn a_named_scope_needs_its_header() {
        let ids = ScopeIds::from_headers(&headers(&[("x-session-id", "s")])).unwrap();
        assert_eq!(
            ids.named(ScopeWord::Actor).unwrap_err(),
            ScopeError::NoId(ScopeWord::Actor)
        );
        assert_eq!(
            words(&[ids.named(ScopeWord::Session).unwrap()]),
            ["session/s"]
        );
        assert_eq!(
            words(&[ids.named(ScopeWord::Global).unwrap()]),
            ["global/global"]
        );
        assert_eq!(ScopeWord::parse("Global"), Err(ScopeError::Unknown));
    }

    #[test]
    fn the_secret_of_an_attempt_never_becomes_a_name() {
        let ids = ScopeIds::from_headers(&headers(&[
            ("x-session-id", "exec_1~2.ABCDEFGHIJKLMNOP"),
            ("x-actor-id", "~/home"),
        ]))
        .unwrap();
        assert_eq!(ids.session.as_deref(), Some("exec_1"));
        assert_eq!(ids.actor.as_deref(), Some("~/home"));
    }

    #[test]
    fn ids_that_are_no_text_or_too_long_are_refused() {
        let mut map = HeaderMap::new();
        map.insert(
            "x-actor-id",
            axum::http::HeaderValue::from_bytes(b"\xff").unwrap(),
        );
        assert!(ScopeIds::from_headers(&map).is_err());
        let long = "x".repeat(SCOPE_ID_BYTES_MAX + 1);
        assert!(ScopeIds::from_headers(&headers(&[("x-actor-id", &long)])).is_err());
    }
}
