//! Who asks, and what they may: the guard in front of every route. Host and origin first, then
//! the key, then the scope that the route needs. One plane is one trust domain: scopes limit
//! what a key may do, they are no tenancy.

mod attempts;
mod codes;
pub(crate) mod cookie;
mod credential;
pub mod enrolment;
mod guard;
pub mod identity;
mod index;
mod issue;
pub mod origin;
pub mod owner;
mod ring;
pub mod scope;
pub mod session;
pub mod table;
pub mod text;

use std::path::PathBuf;
use std::sync::Arc;

use muster_store::annex::{AuditRow, KeyRecord};
use muster_store::{Annex, StoreError, StoreResult, Stores};
use muster_wire::{AgentId, Timestamp};

use crate::config::Config;
pub use attempts::Attempts;
pub(crate) use codes::GOOD_FOR as CODE_GOOD_FOR;
pub use codes::{Code, Codes};
pub use credential::{Credential, Held};
pub use enrolment::{Enrolment, NewEnrolment};
pub use guard::guard;
pub(crate) use guard::{is_local, place_of};
pub use identity::{Identity, OWNER};
pub use issue::Subject;
pub use origin::Hosts;
pub use owner::{owner_key_path, read_owner_key};
pub use ring::{Key, NotTaken, Ring};
pub use scope::{Grants, Need, Scope};
pub use text::{Form, KeyText};

/// The name of the key that the first start makes.
const OWNER_KEY_NAME: &str = "owner key of the data directory";
/// The id of the key from the configuration.
const CONFIGURED_KEY_ID: &str = "key_configured";

/// Keys and rules.
#[derive(Debug)]
pub struct Auth {
    /// The keys.
    pub ring: Ring,
    /// Which hosts are ours.
    pub hosts: Hosts,
    /// Open codes for signing in.
    pub codes: Codes,
    /// Wrong sign-ins.
    pub attempts: Attempts,
    /// The name of the cookie of sessions.
    cookie: String,
    /// The data directory, where the owner key lies; `None` when nothing is on a disk.
    data_dir: Option<PathBuf>,
    /// Whether loopback callers need a key for everything.
    require_key: bool,
}

/// What became of a rotation or a registration that changes a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// The key acts as this agent from now on, or did before.
    Yes,
    /// The key is bound to another agent.
    Elsewhere,
}

impl Auth {
    /// Reads the keys and makes the owner's when there is none that is taken. The port is the
    /// one that is listened on.
    ///
    /// # Errors
    /// When the store or the data directory cannot be read or written.
    pub fn open(config: &Arc<Config>, stores: &Stores, port: u16) -> Result<Self, StoreError> {
        let mut names = config.server.allowed_hosts.clone();
        names.push(config.server.listen.to_string());
        let now = Timestamp::wall_clock();
        let fixed = configured_key(config, now)?.into_iter().collect();
        let on_disk = stores.decisions.about().kind != "memory";
        let auth = Self {
            ring: Ring::open(&*stores.annex, fixed)?,
            hosts: Hosts::new(names),
            codes: Codes::default(),
            attempts: Attempts::default(),
            cookie: format!("muster_session_{port}"),
            data_dir: config.store.data.clone().filter(|_| on_disk),
            require_key: config.auth.require_key,
        };
        auth.ensure_owner(&*stores.annex, now)?;
        Ok(auth)
    }

    /// Whether a caller on loopback needs a key for everything, too.
    pub fn asks_all(&self) -> bool {
        self.require_key
    }

    /// Keys of a store, and no rules.
    #[cfg(test)]
    fn for_tests(annex: &dyn Annex) -> Self {
        Self {
            ring: Ring::open(annex, Vec::new()).expect("a ring"),
            hosts: Hosts::default(),
            codes: Codes::default(),
            attempts: Attempts::default(),
            cookie: "muster_session_0".to_owned(),
            data_dir: None,
            require_key: false,
        }
    }

    /// A code that signs a browser in as the owner of the data directory; `None` when there is
    /// no such key.
    pub fn owner_code(&self, until: Timestamp, now: Timestamp) -> Option<String> {
        let key = owner::read_owner_key(self.data_dir.as_ref()?).ok()??;
        let key = self.ring.find(key.expose(), now).ok()?;
        let scopes = key.record.scopes.clone();
        self.codes.issue(key.record.hash, scopes, until, now)
    }

    /// The owner of the data directory always has a key that works: whoever can read the
    /// directory could write the store as well.
    fn ensure_owner(&self, annex: &dyn Annex, now: Timestamp) -> StoreResult<()> {
        let Some(dir) = &self.data_dir else {
            return Ok(());
        };
        let io = |source| StoreError::Io {
            doing: format!("owner key in {}", dir.display()),
            source,
        };
        if let Some(key) = owner::read_owner_key(dir).map_err(io)?
            && let Ok(found) = self.ring.find(key.expose(), now)
            && found.identity.grants.satisfy(Need::Admin)
        {
            if owner::tighten(dir).map_err(io)? {
                tracing::warn!(path = %owner_key_path(dir).display(), "others could read the owner key; they no longer can, and it should be rotated");
            }
            return Ok(());
        }
        let key = KeyText::mint().map_err(io)?;
        let record = new_record(
            &key,
            OWNER_KEY_NAME,
            vec![Scope::Admin.word()],
            OWNER,
            now,
            None,
        );
        self.ring.add(annex, &record)?;
        owner::write(dir, &key).map_err(io)?;
        annex.audit_add(&AuditRow {
            at: now,
            principal: OWNER.into(),
            action: "key.created".into(),
            object: record.id.clone(),
            detail: format!("{OWNER_KEY_NAME}, made at start; scopes admin"),
        })?;
        tracing::info!(key.id = %record.id, path = %owner_key_path(dir).display(), "wrote the owner key");
        Ok(())
    }

    /// Makes a key.
    ///
    /// # Errors
    /// When the store cannot be written, or the operating system has no randomness.
    pub fn create(
        &self,
        annex: &dyn Annex,
        name: &str,
        scopes: &[Scope],
        principal: &str,
        expires_at: Option<Timestamp>,
        now: Timestamp,
    ) -> StoreResult<(KeyText, KeyRecord)> {
        let key = mint_as(form_of(scopes))?;
        let words = scopes.iter().map(Scope::word).collect();
        let record = new_record(&key, name, words, principal, now, expires_at);
        self.ring.add(annex, &record)?;
        Ok((key, record))
    }

    /// Revokes a key at once; `None` when there is none of that id.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn revoke(
        &self,
        annex: &dyn Annex,
        id: &str,
        now: Timestamp,
    ) -> StoreResult<Option<KeyRecord>> {
        let changed = self.ring.change(annex, id, |record| {
            record.revoked_at = record.revoked_at.or(Some(now));
        })?;
        Ok(changed.map(|(_, record)| record))
    }

    /// Makes a key of the same name, scopes and principal; the old one is taken until
    /// `old_until`. `None` when there is none of that id that is still taken. When it is the
    /// owner's, the file gets the new one.
    ///
    /// # Errors
    /// When the store or the owner key's file cannot be written.
    pub fn rotate(
        &self,
        annex: &dyn Annex,
        id: &str,
        old_until: Timestamp,
        now: Timestamp,
    ) -> StoreResult<Option<(KeyText, KeyRecord)>> {
        let Some(old) = self.ring.get(id) else {
            return Ok(None);
        };
        if old.revoked_at.is_some() || old.expires_at.is_some_and(|at| at <= now) {
            return Ok(None);
        }
        let lifetime = old.expires_at.map(|at| now + at.since(old.created_at));
        let scopes: Vec<Scope> = old
            .scopes
            .iter()
            .filter_map(|word| Scope::parse(word).ok())
            .collect();
        let key = mint_as(form_of(&scopes))?;
        let words = old.scopes.clone();
        let fresh = new_record(&key, &old.name, words, &old.principal, now, lifetime);
        self.ring.add(annex, &fresh)?;
        if let Some(dir) = &self.data_dir {
            let io = |source| StoreError::Io {
                doing: format!("owner key in {}", dir.display()),
                source,
            };
            if owner::read_owner_key(dir)
                .map_err(io)?
                .is_some_and(|text| text.hash() == old.hash)
            {
                owner::write(dir, &key).map_err(io)?;
            }
        }
        self.ring.change(annex, id, |record| {
            record.expires_at = Some(record.expires_at.map_or(old_until, |at| at.min(old_until)));
        })?;
        Ok(Some((key, fresh)))
    }

    /// Binds a worker's key to the agent it registers as, once. Blocks: it writes the key.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn bind(&self, annex: &dyn Annex, key_id: &str, agent: &AgentId) -> StoreResult<Bound> {
        let changed = self.ring.change(annex, key_id, |record| {
            let scopes: Vec<Scope> = record
                .scopes
                .iter()
                .filter_map(|w| Scope::parse(w).ok())
                .collect();
            let grants = Grants::of(&scopes);
            if grants.is_unbound_worker() {
                record.scopes.push(Scope::AgentOnly(agent.clone()).word());
                return Bound::Yes;
            }
            if grants.act_as(agent.as_str()) {
                Bound::Yes
            } else {
                Bound::Elsewhere
            }
        })?;
        Ok(changed.map_or(Bound::Elsewhere, |(bound, _)| bound))
    }
}

/// The form of a key with these scopes.
fn form_of(scopes: &[Scope]) -> Form {
    match scopes {
        [Scope::Relay] => Form::RelayWorkspace,
        [Scope::Enroll(_)] => Form::Enrolment,
        [Scope::RelayAgent(_)] => Form::RelayAgent,
        _ => Form::Key,
    }
}

fn mint_as(form: Form) -> StoreResult<KeyText> {
    KeyText::mint_as(form).map_err(|source| StoreError::Io {
        doing: "minting a key".into(),
        source,
    })
}

fn new_record(
    key: &KeyText,
    name: &str,
    scopes: Vec<String>,
    principal: &str,
    now: Timestamp,
    expires_at: Option<Timestamp>,
) -> KeyRecord {
    KeyRecord {
        id: muster_wire::mint("key"),
        prefix: key.prefix(),
        hash: key.hash(),
        name: name.to_owned(),
        scopes,
        principal: principal.to_owned(),
        created_at: now,
        used_at: None,
        revoked_at: None,
        expires_at,
        detail: None,
    }
}

/// The key that deployments of AgentField set for all their agents: everything an agent and
/// its callers need, and nothing that decides for a person. It stands for the owner, so that
/// agents which registered before it was set keep their ids.
fn configured_key(config: &Config, now: Timestamp) -> StoreResult<Option<KeyRecord>> {
    let text = match (&config.auth.api_key, &config.auth.api_key_file) {
        (Some(secret), _) => secret.reveal().to_owned(),
        (None, Some(path)) => std::fs::read_to_string(path).map_err(|source| StoreError::Io {
            doing: format!("reading auth.api_key_file {}", path.display()),
            source,
        })?,
        (None, None) => return Ok(None),
    };
    let text = KeyText::from_file(&text);
    if text.expose().is_empty() {
        return Ok(None);
    }
    let scopes = [Scope::Agent, Scope::Call, Scope::Read];
    let words = scopes.iter().map(Scope::word).collect();
    let mut record = new_record(
        &text,
        "auth.api_key of the configuration",
        words,
        OWNER,
        now,
        None,
    );
    record.id = CONFIGURED_KEY_ID.into();
    record.prefix = "(configured)".into();
    Ok(Some(record))
}
