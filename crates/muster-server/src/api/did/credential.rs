//! `POST /execution/vc`: the plane signs what an agent reports of an execution that it proves
//! to have; and `POST /did/verify`, which checks any credential of the same suite.

use axum::extract::State;
use axum::response::IntoResponse as _;
use bytes::Bytes;
use muster_store::annex::CredentialRow;
use muster_store::{StoreError, Stores};
use muster_wire::{AttemptRef, Category, ExecutionKind, Status, mint};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::agent_of;
use crate::api::body::{HeldBody, RawBody, json as parse};
use crate::api::caller::Caller;
use crate::api::problem::{Answer, Problem};
use crate::app::App;
use crate::identity::credential::{Statement, hash_of, issue as sign};
use crate::identity::{IdentityError, did_key, proof};
use crate::logs::text::kept;
use crate::memory::scope::without_secret;

/// The longest of the short fields.
const WORD_BYTES_MAX: usize = 512;
/// The longest error text that goes into a credential.
const ERROR_BYTES_MAX: usize = 4 * 1024;

/// What an agent reports.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct Report {
    /// Of which execution.
    execution_context: Context,
    /// The input as base64.
    input_data: Option<String>,
    /// The output as base64.
    output_data: Option<String>,
    /// How it ended.
    status: Option<String>,
    /// The agent's error text.
    error_message: Option<String>,
    /// How long it took.
    #[schema(value_type = u64)]
    duration_ms: Option<serde_json::Number>,
}

/// Which execution, and who took part.
#[derive(Debug, Deserialize, ToSchema)]
struct Context {
    /// The execution, as the agent got it.
    execution_id: String,
    /// Its run.
    workflow_id: Option<String>,
    /// Its session.
    session_id: Option<String>,
    /// Who called.
    caller_did: Option<String>,
    /// What was called.
    target_did: Option<String>,
    /// The agent.
    agent_node_did: String,
    /// The credential that led to it.
    parent_vc_id: Option<String>,
}

/// Issues a credential for an execution: hashes of input and output, who took part, how it
/// ended, signed by the plane.
#[utoipa::path(post, path = "/api/v1/execution/vc", tag = "identity", request_body = Report,
    responses((status = 200, description = "The credential, and its fields for those who do not read it"),
              (status = 403, description = "The report does not prove to come from its execution")))]
pub(super) async fn issue(
    State(app): State<App>,
    caller: Caller,
    HeldBody(held): HeldBody,
) -> Answer {
    let report: Report = parse(
        &held.bytes,
        "{execution_context, input_data, output_data, status, …}",
    )?;
    let about = AttemptRef::parse(&report.execution_context.execution_id)
        .map_err(|error| Problem::validation(format!("execution_id: {error}")))?;
    let mut said = statement(&app, &about, &report)?;
    let work = app.clone();
    let (credential, row) = app
        .blocking(move |stores| {
            said.is_proved = match origin(stores, &caller, &about, &said.agent_did)? {
                Ok(is_proved) => is_proved,
                Err(refused) => return Ok(Err(refused)),
            };
            let ready = work.identity.ready(&work.config, stores)?;
            let credential = sign(&ready, &said)
                .map_err(|fault| IdentityError::Store(StoreError::Unreadable(fault.message())))?;
            let row = CredentialRow {
                id: said.id,
                execution: about.execution,
                run: said.run,
                created_at: work.clock.now(),
                body: Bytes::from(credential.to_string()),
            };
            Ok::<_, IdentityError>(Ok((credential, row)))
        })
        .await??;
    if !app.identity.credentials.write(&app, row).await {
        return Err(Problem::unavailable("the credential could not be stored"));
    }
    Ok(axum::Json(credential).into_response())
}

fn statement(app: &App, about: &AttemptRef, report: &Report) -> Result<Statement, Problem> {
    let context = &report.execution_context;
    let word = |name: &str, text: &Option<String>| {
        let text = without_secret(text.as_deref().unwrap_or(""));
        if text.len() > WORD_BYTES_MAX {
            return Err(Problem::validation(format!(
                "{name} has at most {WORD_BYTES_MAX} bytes"
            )));
        }
        Ok(text.to_owned())
    };
    let hash = |name: &str, data: &Option<String>| {
        hash_of(data.as_deref().unwrap_or(""))
            .ok_or_else(|| Problem::validation(format!("{name} is not base64")))
    };
    let status = word("status", &report.status)?;
    let duration = report.duration_ms.as_ref();
    Ok(Statement {
        id: mint("vc"),
        execution: about.execution.to_string(),
        run: word("workflow_id", &context.workflow_id)?,
        session: word("session_id", &context.session_id)?,
        caller_did: word("caller_did", &context.caller_did)?,
        target_did: word("target_did", &context.target_did)?,
        agent_did: word("agent_node_did", &Some(context.agent_node_did.clone()))?,
        parent: match word("parent_vc_id", &context.parent_vc_id)? {
            parent if parent.is_empty() => None,
            parent => Some(parent),
        },
        input_hash: hash("input_data", &report.input_data)?,
        output_hash: hash("output_data", &report.output_data)?,
        status: match Status::from_agent(&status) {
            Some(known) => known.word().to_owned(),
            None => status,
        },
        error: report
            .error_message
            .as_deref()
            .map(|text| kept(text, ERROR_BYTES_MAX)),
        duration_ms: duration.and_then(serde_json::Number::as_u64).unwrap_or(0),
        is_proved: false,
        issued_at: app.clock.now().rfc3339(),
    })
}

/// Whether a report comes from the execution it names, by the same rule as its log lines; an
/// execution nobody knows is taken, for reports may be quicker than the event that tells of it.
fn origin(
    stores: &Stores,
    caller: &Caller,
    about: &AttemptRef,
    agent_did: &str,
) -> Result<Result<bool, Problem>, StoreError> {
    let wrong = || {
        Problem::new(
            Category::WrongAttempt,
            "the report does not prove that it comes from this execution",
        )
    };
    let Some(agent) = agent_of(stores, agent_did)? else {
        return Ok(Err(Problem::validation(
            "agent_node_did is no identity of this plane; register the agent's identities again",
        )));
    };
    if let Err(problem) = caller.must_be(agent.as_str()) {
        return Ok(Err(problem));
    }
    let (_, row) = stores.decisions.execution(&about.execution)?;
    let Some(row) = row else {
        return Ok(match about.proof {
            Some(_) => Err(wrong()),
            None => Ok(false),
        });
    };
    if row.agent != agent {
        return Ok(Err(wrong()));
    }
    if let Some((n, hash)) = about.proof
        && stores
            .decisions
            .attempts(&about.execution)?
            .iter()
            .any(|attempt| attempt.n == n && attempt.secret_hash == hash)
    {
        return Ok(Ok(true));
    }
    let may =
        row.kind == ExecutionKind::Observed || caller.grants.bound_agent() == Some(&row.agent);
    Ok(if may { Ok(false) } else { Err(wrong()) })
}

/// A credential to check.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct Check {
    /// The whole credential with its proof.
    #[schema(value_type = Object)]
    vc_document: Value,
}

/// Checks a credential with an `eddsa-jcs-2022` proof by a `did:key`.
#[utoipa::path(post, path = "/api/v1/did/verify", tag = "identity", request_body = Check,
    responses((status = 200, description = "`valid`, and why not")))]
pub(super) async fn verify(State(app): State<App>, RawBody(body): RawBody) -> Answer {
    let Check { vc_document } = parse(&body, "{vc_document}")?;
    let checked = proof::verify(&vc_document);
    let issuer = match &vc_document["issuer"] {
        Value::String(issuer) => Value::String(issuer.clone()),
        other => other["id"].clone(),
    };
    let mut answer = json!({
        "valid": checked.is_ok(),
        "issuer_did": issuer,
        "verification_method": vc_document["proof"]["verificationMethod"],
        "cryptosuite": vc_document["proof"]["cryptosuite"],
    });
    match checked {
        Ok(did) => {
            let work = app.clone();
            let is_ours = app
                .blocking(move |stores| {
                    let ready = work.identity.ready(&work.config, stores)?;
                    let key = did_key::read(&did);
                    Ok::<_, IdentityError>(
                        key == Some(ready.issuer.verifying_key())
                            || agent_of(stores, &did)?.is_some(),
                    )
                })
                .await?;
            answer["issuer_known"] = is_ours.into();
            answer["message"] = "the signature holds".into();
        }
        Err(fault) => {
            answer["issuer_known"] = false.into();
            answer["message"] = fault.message().into();
            answer["error"] = fault.message().into();
        }
    }
    Ok(axum::Json(answer).into_response())
}
