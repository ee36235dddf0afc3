//! Identities of agents and functions, and credentials of executions, as the SDK asks for them.
//! It asks on its event loop and waits, so everything here is quick.

mod credential;
mod not_there;
mod register;

use axum::extract::State;
use axum::response::IntoResponse as _;
use ed25519_dalek::VerifyingKey;
use muster_store::StoreError;
use muster_store::annex::IdentityRow;
use muster_wire::Category;
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::PathText;
use super::problem::{Answer, Problem};
use crate::app::App;
use crate::identity::{IdentityError, SignatureFault, did_key, jwk};

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(register::register))
        .routes(routes!(resolve))
        .routes(routes!(document))
        .routes(routes!(credential::issue))
        .routes(routes!(credential::verify))
        .merge(not_there::routes())
}

impl From<IdentityError> for Problem {
    fn from(error: IdentityError) -> Self {
        tracing::error!(error = %error, "identities cannot be used");
        let said = match &error {
            IdentityError::Store(_) | IdentityError::Io(_) => {
                "identities cannot be used now; the plane's log has the cause".to_owned()
            }
            IdentityError::CannotOpen(_) | IdentityError::KeyGone => error.to_string(),
        };
        Problem::new(Category::ControlPlaneUnavailable, said).retry_after(1)
    }
}

impl From<SignatureFault> for Problem {
    fn from(fault: SignatureFault) -> Self {
        Problem::new(Category::Unauthenticated, fault.message())
    }
}

/// What is known of a DID: whose it is, and its document.
#[utoipa::path(get, path = "/api/v1/did/resolve/{did}", tag = "identity",
    params(("did" = String, Path, description = "A `did:key` that this plane has given out")),
    responses((status = 200, description = "`did`, `did_document`, `public_key_jwk`, whose it is"),
              (status = 404, description = "Not one of this plane's")))]
async fn resolve(State(app): State<App>, PathText(did): PathText) -> Answer {
    let found = find(&app, did).await?;
    let mut answer = json!({
        "did": found.did,
        "did_document": document_of(&found.did, &found.key),
        "public_key_jwk": jwk::public(&found.key).to_string(),
        "component_type": "control_plane",
    });
    if let Some(row) = &found.row {
        answer["component_type"] = row.component.as_str().into();
        answer["agent_node_id"] = row.agent.as_str().into();
        answer["created_at"] = row.created_at.rfc3339().into();
        answer["derivation_path"] = path_of(row).into();
        if !row.function.is_empty() {
            answer["function_name"] = row.function.as_str().into();
        }
    }
    Ok(axum::Json(answer).into_response())
}

/// The W3C DID document of a DID.
#[utoipa::path(get, path = "/api/v1/did/document/{did}", tag = "identity",
    params(("did" = String, Path, description = "A `did:key` that this plane has given out")),
    responses((status = 200, description = "A DID document"),
              (status = 404, description = "Not one of this plane's")))]
async fn document(State(app): State<App>, PathText(did): PathText) -> Answer {
    let found = find(&app, did).await?;
    Ok(axum::Json(document_of(&found.did, &found.key)).into_response())
}

/// A DID of this plane.
struct Found {
    did: String,
    key: VerifyingKey,
    /// `None` for the plane's own.
    row: Option<IdentityRow>,
}

async fn find(app: &App, did: String) -> Result<Found, Problem> {
    let unknown = || Problem::not_found("no identity of this plane has this DID");
    let did = did.split('#').next().unwrap_or_default().to_owned();
    let key = did_key::read(&did).ok_or_else(unknown)?;
    let work = app.clone();
    app.blocking(move |stores| {
        // The same key may be spelled in two ways; rows have the SDK's.
        if let Some(row) = stores.annex.identity(&did_key::sdk_spelling(&key))? {
            return Ok(Some(Found {
                did,
                key,
                row: Some(row),
            }));
        }
        let ready = work.identity.ready(&work.config, stores)?;
        let is_ours = ready.issuer.verifying_key() == key;
        Ok::<_, IdentityError>(is_ours.then_some(Found {
            did,
            key,
            row: None,
        }))
    })
    .await?
    .ok_or_else(unknown)
}

fn document_of(did: &str, key: &VerifyingKey) -> Value {
    let multibase = did_key::multibase(key);
    let method = format!("{did}#{multibase}");
    json!({
        "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"],
        "id": did,
        "verificationMethod": [{
            "id": method,
            "type": "Multikey",
            "controller": did,
            "publicKeyMultibase": multibase,
        }],
        "authentication": [method],
        "assertionMethod": [method],
    })
}

/// Where the SDK expects a path of key derivation; ours are not derived, so it names the thing.
fn path_of(row: &IdentityRow) -> String {
    let mut path = format!("{}/{}", row.agent, row.component);
    if !row.function.is_empty() {
        path.push('/');
        path.push_str(&row.function);
    }
    path
}

/// The agent that a DID belongs to; `None` when it is none of this plane's.
fn agent_of(
    stores: &muster_store::Stores,
    did: &str,
) -> Result<Option<muster_wire::AgentId>, StoreError> {
    let Some(key) = did_key::read(did) else {
        return Ok(None);
    };
    let row = stores.annex.identity(&did_key::sdk_spelling(&key))?;
    Ok(row.map(|row| row.agent))
}
