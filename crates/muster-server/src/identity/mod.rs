//! Decentralised identities: one Ed25519 key for each agent and function, made here, sealed in
//! the store, and handed to the agent that owns it. The plane has one of its own, with which it
//! signs credentials. Knows no routes.

pub mod credential;
pub mod did_key;
pub mod group;
pub mod jwk;
pub mod proof;
pub mod seal;
pub mod submission;

use std::io;
use std::sync::Arc;

use axum::http::HeaderMap;
use bytes::Bytes;
use ed25519_dalek::SigningKey;
use muster_store::annex::IdentityRow;
use muster_store::{StoreError, Stores};
use muster_wire::{AgentId, FunctionKind, FunctionName, Timestamp};
use parking_lot::Mutex;

use crate::config::Config;
pub use group::CredentialGroup;
use seal::{CannotOpen, Sealer};
pub use submission::{SignatureFault, Signer, SubmissionCheck};

/// The setting with the plane's own sealed seed.
const ISSUER: &str = "identity.issuer";

/// What can go wrong with identities.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The key file, or the operating system's random bytes.
    #[error("the key that seals identities: {0}")]
    Io(#[from] io::Error),
    /// The key file is another one.
    #[error(transparent)]
    CannotOpen(#[from] CannotOpen),
    /// The key file is gone, and there are identities that it sealed.
    #[error(
        "identity.key is not in the data directory, and identities were sealed with it; put it back"
    )]
    KeyGone,
}

/// The plane's identities.
#[derive(Debug, Default)]
pub struct Identities {
    ready: Mutex<Option<Arc<Ready>>>,
    check: SubmissionCheck,
    /// Credentials on their way to the store.
    pub credentials: CredentialGroup,
    /// One registration makes keys at a time, so that no two make the same one.
    making: Mutex<()>,
}

/// What is there once the key file was read.
#[derive(Debug)]
pub struct Ready {
    sealer: Sealer,
    /// The plane's own key.
    pub issuer: SigningKey,
    /// Its DID, in the standard spelling: others check what it signed.
    pub issuer_did: String,
}

/// One identity with its private key.
#[derive(Debug)]
pub struct Owned {
    /// The row.
    pub row: IdentityRow,
    /// The key.
    pub key: SigningKey,
}

impl Identities {
    /// Checks the signature of a submission where it has one: see [`SubmissionCheck::verify`].
    ///
    /// # Errors
    /// When it is signed and the signature does not hold.
    pub fn verify_submission(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Option<Signer>, SignatureFault> {
        self.check.verify(headers, body, now)
    }

    /// Reads the key file and the plane's own identity, or makes them, once. Blocks.
    ///
    /// # Errors
    /// When that cannot be; it is tried again with the next call.
    pub fn ready(&self, config: &Config, stores: &Stores) -> Result<Arc<Ready>, IdentityError> {
        let mut ready = self.ready.lock();
        if let Some(ready) = &*ready {
            return Ok(ready.clone());
        }
        let fresh = Arc::new(Ready::open(config, stores)?);
        *ready = Some(fresh.clone());
        Ok(fresh)
    }

    /// What [`Identities::ready`] made, when it is there already. Never waits.
    pub(crate) fn at_hand(&self) -> Option<Arc<Ready>> {
        self.ready.try_lock().and_then(|ready| ready.clone())
    }

    /// The identities of an agent and of these functions; those that are not there are made.
    /// Blocks.
    ///
    /// # Errors
    /// When the store cannot be read or written, or an identity cannot be opened.
    pub fn of_agent(
        &self,
        ready: &Ready,
        stores: &Stores,
        agent: &AgentId,
        functions: &[(FunctionKind, FunctionName)],
        now: Timestamp,
    ) -> Result<Vec<Owned>, IdentityError> {
        let _one_at_a_time = self.making.lock();
        let mut wanted = vec![("agent", "")];
        wanted.extend(
            functions
                .iter()
                .map(|(kind, name)| (kind.word(), name.as_str())),
        );
        let there = stores.annex.identities(agent)?;
        let lacks = |(component, function): &&(&str, &str)| {
            !there
                .iter()
                .any(|row| row.component == *component && row.function == *function)
        };
        let made = wanted
            .iter()
            .filter(lacks)
            .map(|(component, function)| ready.make(agent, component, function, now))
            .collect::<Result<Vec<_>, _>>()?;
        let rows = if made.is_empty() {
            there
        } else {
            stores.annex.identities_add(&made)?;
            // What is there counts: another replica may have been first.
            stores.annex.identities(agent)?
        };
        rows.into_iter()
            .filter(|row| wanted.contains(&(row.component.as_str(), row.function.as_str())))
            .map(|row| {
                let seed = ready.sealer.unseal(&row.sealed_seed, &row.did)?;
                let key = SigningKey::from_bytes(&seed);
                Ok(Owned { row, key })
            })
            .collect()
    }
}

impl Ready {
    /// Seals and opens secrets of this store.
    pub(crate) fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    fn open(config: &Config, stores: &Stores) -> Result<Self, IdentityError> {
        let on_disk = stores.decisions.about().kind != "memory";
        let stored = stores.annex.setting(ISSUER)?;
        let sealer = match config.store.data.as_deref().filter(|_| on_disk) {
            None => Sealer::ephemeral()?,
            Some(directory) if stored.is_some() && !Sealer::is_in(directory) => {
                return Err(IdentityError::KeyGone);
            }
            Some(directory) => Sealer::open(directory)?,
        };
        let seed = match stored {
            Some(sealed) => sealer.unseal(&sealed, ISSUER)?,
            None => {
                let seed = seal::random()?;
                let sealed = Bytes::from(sealer.seal(&seed, ISSUER)?);
                stores.annex.setting_put(ISSUER, sealed)?;
                seed
            }
        };
        let issuer = SigningKey::from_bytes(&seed);
        let issuer_did = did_key::standard_spelling(&issuer.verifying_key());
        Ok(Self {
            sealer,
            issuer,
            issuer_did,
        })
    }

    fn make(
        &self,
        agent: &AgentId,
        component: &str,
        function: &str,
        now: Timestamp,
    ) -> Result<IdentityRow, IdentityError> {
        let seed = seal::random()?;
        let did = did_key::sdk_spelling(&SigningKey::from_bytes(&seed).verifying_key());
        Ok(IdentityRow {
            sealed_seed: Bytes::from(self.sealer.seal(&seed, &did)?),
            did,
            agent: agent.clone(),
            component: component.to_owned(),
            function: function.to_owned(),
            created_at: now,
        })
    }
}
