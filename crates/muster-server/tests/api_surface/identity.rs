//! Identities, signed submissions, credentials.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::agent::Agent;
use crate::on_each_store;
use crate::world::World;

on_each_store!(
    the_same_registration_gives_the_same_identities,
    identities_are_for_registered_agents_only,
    a_did_resolves_to_its_document,
    a_credential_verifies_and_a_changed_one_does_not,
    a_credential_needs_the_attempts_secret,
    a_signed_submission_is_checked,
    chains_are_not_supported,
);

fn functions(reasoners: &[&str], skills: &[&str]) -> Value {
    let list = |names: &[&str]| -> Vec<Value> {
        names
            .iter()
            .map(|id| json!({ "id": id, "input_schema": {}, "tags": [] }))
            .collect()
    };
    json!({ "agent_node_id": "did-agent", "reasoners": list(reasoners), "skills": list(skills) })
}

async fn package(world: &World, body: Value) -> Value {
    let answer = world.post("/api/v1/did/register", &[], body).await;
    answer.is(200);
    let body = answer.json();
    assert_eq!(body["success"], true);
    body["identity_package"].clone()
}

fn key(identity: &Value) -> SigningKey {
    let jwk: Value = serde_json::from_str(identity["private_key_jwk"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&jwk["kty"], &jwk["crv"]),
        (&json!("OKP"), &json!("Ed25519"))
    );
    let seed = URL_SAFE_NO_PAD.decode(jwk["d"].as_str().unwrap()).unwrap();
    SigningKey::from_bytes(&seed.try_into().unwrap())
}

async fn the_same_registration_gives_the_same_identities(world: World) {
    Agent::start(&world, "did-agent").await;
    let first = package(&world, functions(&["work"], &["add"])).await;
    assert_eq!(package(&world, functions(&["work"], &["add"])).await, first);
    let agent = &first["agent_did"];
    let tagged = [&[0xed, 0x01][..], key(agent).verifying_key().as_bytes()].concat();
    assert_eq!(
        agent["did"],
        format!("did:key:z{}", URL_SAFE_NO_PAD.encode(tagged))
    );
    assert_eq!(agent["component_type"], "agent");
    assert_eq!(first["reasoner_dids"]["work"]["function_name"], "work");
    assert_eq!(first["skill_dids"]["add"]["component_type"], "skill");
    let public: Value = serde_json::from_str(agent["public_key_jwk"].as_str().unwrap()).unwrap();
    assert!(public.get("d").is_none());
    // New functions get identities, and the old ones keep theirs.
    let more = package(&world, functions(&["work", "new"], &["add"])).await;
    assert_eq!(
        more["reasoner_dids"]["work"],
        first["reasoner_dids"]["work"]
    );
    assert_ne!(more["reasoner_dids"]["new"]["did"], agent["did"]);
    // One that is no longer registered is not handed out.
    let fewer = package(&world, functions(&[], &[])).await;
    assert_eq!(fewer["reasoner_dids"], json!({}));
    assert_eq!(fewer["agent_did"], first["agent_did"]);
    if world.stores.decisions.about().kind != "memory" {
        use std::os::unix::fs::PermissionsExt as _;
        let file = world.directory.path().join("identity.key");
        assert_eq!(
            std::fs::metadata(file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let seed = key(agent).to_bytes();
        for entry in std::fs::read_dir(world.directory.path()).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            assert!(
                !bytes.windows(32).any(|w| w == seed),
                "a seed lies open on the disk"
            );
        }
    }
}

async fn identities_are_for_registered_agents_only(world: World) {
    let unknown = world
        .post("/api/v1/did/register", &[], functions(&["work"], &[]))
        .await;
    unknown.is_problem(404, "not_found");
    for bad in [
        json!({}),
        json!({ "agent_node_id": "a b" }),
        json!({ "agent_node_id": "a", "reasoners": [{ "id": "../x" }] }),
        json!({ "agent_node_id": "a", "reasoners": "all" }),
    ] {
        world
            .post("/api/v1/did/register", &[], bad)
            .await
            .is_problem(400, "validation");
    }
}

async fn a_did_resolves_to_its_document(world: World) {
    Agent::start(&world, "did-agent").await;
    let package = package(&world, functions(&["work"], &[])).await;
    let did = package["reasoner_dids"]["work"]["did"].as_str().unwrap();
    let found = world
        .get(&format!("/api/v1/did/resolve/{did}"))
        .await
        .json();
    assert_eq!(
        (&found["did"], &found["agent_node_id"]),
        (&json!(did), &json!("did-agent"))
    );
    assert_eq!(found["function_name"], "work");
    assert!(found.get("private_key_jwk").is_none());
    let document = world
        .get(&format!("/api/v1/did/document/{did}"))
        .await
        .json();
    assert_eq!(document, found["did_document"]);
    assert_eq!(document["id"], did);
    let multibase = document["verificationMethod"][0]["publicKeyMultibase"]
        .as_str()
        .unwrap();
    assert!(multibase.starts_with("z6Mk"));
    let server = package["agentfield_server_id"].as_str().unwrap();
    let ours = world
        .get(&format!("/api/v1/did/resolve/{server}"))
        .await
        .json();
    assert_eq!(ours["component_type"], "control_plane");
    let strange = "did:key:z6MkrJVnaZkeFzdQyMZu1cgjg7k1pZZ6pvBQ7XJPt4swbTQ2";
    for unknown in [strange, "did:web:example.org", "x", "%00", "%ff"] {
        for route in ["resolve", "document"] {
            let path = format!("/api/v1/did/{route}/{unknown}");
            world.get(&path).await.is_problem(404, "not_found");
        }
    }
}

fn report(execution: &str, did: &Value) -> Value {
    json!({
        "execution_context": {
            "execution_id": execution, "workflow_id": "run-1", "session_id": null,
            "caller_did": did, "target_did": did, "agent_node_did": did,
            "parent_vc_id": null, "timestamp": "2026-01-31T12:00:00+00:00",
        },
        "input_data": STANDARD.encode("abc"), "output_data": "",
        "status": "success", "error_message": null, "duration_ms": 18446744073709551615_u64,
    })
}

async fn a_credential_verifies_and_a_changed_one_does_not(world: World) {
    let agent = Agent::start(&world, "did-agent").await;
    let did = package(&world, functions(&["work"], &[])).await["agent_did"]["did"].clone();
    let call = agent.call(&world, &[]).await;
    let answer = world
        .post("/api/v1/execution/vc", &[], report(&call.attempt, &did))
        .await;
    answer.is(200);
    assert!(!answer.text.contains('~'), "{answer:?}");
    let vc = answer.json();
    for field in [
        "vc_id",
        "execution_id",
        "workflow_id",
        "session_id",
        "issuer_did",
        "target_did",
        "caller_did",
        "signature",
        "input_hash",
        "output_hash",
        "status",
        "created_at",
    ] {
        assert!(vc[field].is_string(), "{field}: {vc}");
    }
    assert_eq!(vc["execution_id"], call.execution());
    assert_eq!(vc["status"], "succeeded");
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(vc["input_hash"], abc);
    let subject = &vc["vc_document"]["credentialSubject"];
    assert_eq!(
        subject["durationMs"], "18446744073709551615",
        "exact, as text"
    );
    assert_eq!(subject["attemptProved"], true);
    let check = |document: Value| {
        let world = &world;
        async move {
            let body = json!({ "vc_document": document });
            let answer = world.post("/api/v1/did/verify", &[], body).await;
            answer.is(200);
            answer.json()
        }
    };
    let good = check(vc["vc_document"].clone()).await;
    assert_eq!(
        (&good["valid"], &good["issuer_known"]),
        (&json!(true), &json!(true))
    );
    let mut changed = vc["vc_document"].clone();
    changed["credentialSubject"]["status"] = "failed".into();
    let bad = check(changed).await;
    assert_eq!(bad["valid"], false);
    assert!(bad["error"].is_string());
    for odd in [
        json!(null),
        json!([]),
        json!({}),
        json!({ "proof": 1 }),
        json!({ "proof": { "verificationMethod": "x" } }),
    ] {
        assert_eq!(check(odd).await["valid"], false);
    }
    let stored = world.stores.annex.credentials("run-1").unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].id, vc["vc_id"].as_str().unwrap());
}

async fn a_credential_needs_the_attempts_secret(world: World) {
    let agent = Agent::start(&world, "did-agent").await;
    let did = package(&world, functions(&["work"], &[])).await["agent_did"]["did"].clone();
    let call = agent.call(&world, &[]).await;
    for id in [
        call.execution().to_owned(),
        format!("{}~1.ABCDEFGHIJKLMNOP", call.execution()),
    ] {
        let answer = world
            .post("/api/v1/execution/vc", &[], report(&id, &did))
            .await;
        answer.is_problem(403, "wrong_attempt");
    }
    // A call of another agent is not this agent's.
    let other = Agent::start(&world, "other-agent").await;
    let theirs = other.call(&world, &[]).await;
    let answer = world
        .post("/api/v1/execution/vc", &[], report(&theirs.attempt, &did))
        .await;
    answer.is_problem(403, "wrong_attempt");
    // One that ran in the agent's own process has no attempt.
    let local = world
        .post("/api/v1/execution/vc", &[], report("exec_local_1", &did))
        .await;
    assert_eq!(
        local.json()["vc_document"]["credentialSubject"]["attemptProved"],
        false
    );
    let strange = json!("did:key:z6MkrJVnaZkeFzdQyMZu1cgjg7k1pZZ6pvBQ7XJPt4swbTQ2");
    for (body, status) in [
        (report("exec_local_1", &strange), 400),
        (report("a b", &did), 400),
        (json!({ "execution_context": {} }), 400),
        (json!({ "execution_context": null }), 400),
    ] {
        world
            .post("/api/v1/execution/vc", &[], body)
            .await
            .is_problem(status, "validation");
    }
    let mut odd = report(&call.attempt, &did);
    odd["input_data"] = "not base64!".into();
    world
        .post("/api/v1/execution/vc", &[], odd)
        .await
        .is_problem(400, "validation");
}

async fn a_signed_submission_is_checked(world: World) {
    let agent = Agent::start(&world, "did-agent").await;
    let package = package(&world, functions(&["work"], &[])).await;
    let (did, key) = (
        package["agent_did"]["did"].as_str().unwrap(),
        key(&package["agent_did"]),
    );
    let body = r#"{"input":{"n":1}}"#;
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let submit = |body: &'static str, signed: &'static str, at: u64, nonce: &'static str| {
        let hash: String = Sha256::digest(signed)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        let signature = key.sign(format!("{at}:{nonce}:{hash}").as_bytes());
        let (signature, at) = (STANDARD.encode(signature.to_bytes()), at.to_string());
        let world = &world;
        async move {
            let headers = [
                ("Content-Type", "application/json"),
                ("X-Caller-DID", did),
                ("X-DID-Signature", &signature),
                ("X-DID-Timestamp", &at),
                ("X-DID-Nonce", nonce),
            ];
            let path = "/api/v1/execute/async/did-agent.work";
            world.raw("POST", path, &headers, body).await
        }
    };
    submit(body, body, now, "n1").await.is(202);
    agent.next().await;
    submit(body, body, now, "n1")
        .await
        .is_problem(401, "unauthenticated");
    submit(body, r#"{"input":{"n":2}}"#, now, "n2")
        .await
        .is_problem(401, "unauthenticated");
    submit(body, body, now - 400, "n3")
        .await
        .is_problem(401, "unauthenticated");
    // A claimed DID alone asks for nothing.
    let claimed = [("X-Caller-DID", "did:key:zwhoever")];
    let path = "/api/v1/execute/async/did-agent.work";
    world.raw("POST", path, &claimed, body).await.is(202);
    let memory = json!({ "key": "k", "data": 1 });
    world
        .post("/api/v1/memory/set", &claimed, memory)
        .await
        .is(200);
}

async fn chains_are_not_supported(world: World) {
    for path in [
        "/api/v1/did/workflow/run-1/vc-chain",
        "/api/v1/did/export/vcs",
        "/api/v1/policies",
        "/api/v1/revocations",
        "/api/v1/registered-dids",
        "/api/v1/admin/public-key",
    ] {
        world.get(path).await.is_problem(501, "not_supported");
    }
    let path = "/api/v1/did/workflow/run-1/vc";
    world
        .post(path, &[], json!({}))
        .await
        .is_problem(501, "not_supported");
}
