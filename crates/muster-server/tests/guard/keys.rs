//! Keys and scopes.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use muster_server::auth::owner_key_path;
use serde_json::{Value, json};

use crate::support::World;
use crate::support::agent::Agent;

#[tokio::test]
async fn the_first_start_writes_an_owner_key_and_the_next_keeps_it() {
    let world = World::start().await;
    let path = owner_key_path(world.dir.path());
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(world.owner.starts_with("mk_"));
    let keys = world.as_owner("GET", "/api/v1/keys", &Value::Null).await;
    assert_eq!(keys.status, 200);
    assert_eq!(keys.json()["keys"][0]["scopes"], json!(["admin"]));
    assert!(
        !keys.text().contains(&world.owner),
        "lists never hold a key's text"
    );

    let (dir, owner) = (world.dir.clone(), world.owner.clone());
    world.plane.stop().await;
    let again = World::on(dir.clone(), |_| {}).await;
    assert_eq!(again.owner, owner);
    again.plane.stop().await;

    // A lost file is written again: whoever has the directory has the store.
    std::fs::remove_file(owner_key_path(dir.path())).unwrap();
    let anew = World::on(dir, |_| {}).await;
    assert_ne!(anew.owner, owner);
    assert_eq!(
        anew.as_owner("GET", "/api/v1/keys", &Value::Null)
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn without_a_key_loopback_sees_and_never_decides() {
    let world = World::start().await;
    for path in [
        "/healthz",
        "/health",
        "/readyz",
        "/openapi.json",
        "/docs",
        "/api/v1/system",
    ] {
        assert_eq!(world.get(path).await.status, 200, "{path}");
    }
    for (method, path) in [
        ("GET", "/api/v1/keys"),
        ("POST", "/api/v1/keys"),
        ("POST", "/api/v1/keys/key_1/revoke"),
        ("POST", "/api/v1/keys/key_1/rotate"),
        ("GET", "/api/v1/audit"),
        ("POST", "/api/v1/hold"),
        ("POST", "/api/v1/unhold"),
        ("POST", "/api/v1/quarantine/q/drop"),
    ] {
        let answer = world.send(method, path, &[], b"").await;
        assert_eq!(
            (answer.status, answer.category().as_str()),
            (401, "unauthenticated"),
            "{method} {path}"
        );
    }
    assert_eq!(world.get("/nowhere").await.status, 404);
    assert_eq!(
        world.send("DELETE", "/api/v1/keys", &[], b"").await.status,
        405
    );
}

#[tokio::test]
async fn what_a_proxy_passes_on_is_not_on_loopback() {
    let world = World::start().await;
    for header in ["Forwarded", "X-Forwarded-For", "X-Real-IP"] {
        let passed_on = [(header, "203.0.113.9")];
        assert_eq!(
            world
                .send("GET", "/api/v1/health", &passed_on, b"")
                .await
                .status,
            401,
            "{header}"
        );
        assert_eq!(
            world.send("GET", "/nowhere", &passed_on, b"").await.status,
            401,
            "{header}"
        );
        assert_eq!(
            world.send("GET", "/healthz", &passed_on, b"").await.status,
            200,
            "{header}"
        );
    }
}

#[tokio::test]
async fn a_plane_may_ask_loopback_for_a_key_too() {
    let world = World::with(|config| {
        config.auth.require_key = true;
        config.auth.api_key = Some(muster_server::config::Secret::new("a deployment's own key"));
    })
    .await;
    assert_eq!(world.get("/api/v1/health").await.status, 401);
    assert_eq!(world.get("/readyz").await.status, 200);
    let key = "a deployment's own key";
    assert_eq!(
        world.as_key(key, "GET", "/api/v1/system", b"").await.status,
        200
    );
    assert_eq!(
        world.as_key(key, "GET", "/api/v1/keys", b"").await.status,
        403
    );
    let system = world.as_key(key, "GET", "/api/v1/system", b"").await;
    assert!(!system.text().contains(key), "secrets are redacted");
    let revoked = world
        .as_owner("POST", "/api/v1/keys/key_configured/revoke", &Value::Null)
        .await;
    assert_eq!(
        (revoked.status, revoked.category().as_str()),
        (409, "conflict")
    );
}

#[tokio::test]
async fn a_wrong_key_is_refused_even_where_none_is_needed() {
    let world = World::start().await;
    let (_, good) = world.key(&["read"]).await;
    let mut unknown = good.clone();
    unknown.replace_range(5..6, if &good[5..6] == "a" { "b" } else { "a" });
    for headers in [
        vec![("X-API-Key", "")],
        vec![("X-API-Key", "mk_nonsense")],
        vec![("X-API-Key", unknown.as_str())],
        vec![("Authorization", "Bearer nonsense")],
        vec![("Authorization", "Basic dXNlcjpwYXNz")],
        vec![("Authorization", "Bearer")],
        vec![("X-API-Key", "nonsense"), ("Authorization", "Bearer x")],
    ] {
        let answer = world.send("GET", "/api/v1/system", &headers, b"").await;
        assert_eq!(
            (answer.status, answer.category().as_str()),
            (401, "unauthenticated"),
            "{headers:?}"
        );
        assert!(!answer.text().contains("nonsense"), "a key is never shown");
    }
    let bearer = format!("Bearer {good}");
    for header in [
        ("X-API-Key", good.as_str()),
        ("Authorization", bearer.as_str()),
    ] {
        assert_eq!(
            world
                .send("GET", "/api/v1/system", &[header], b"")
                .await
                .status,
            200
        );
    }
    let in_url = format!("/api/v1/keys?api_key={}", world.owner);
    assert_eq!(world.get(&in_url).await.status, 401, "never in a URL");
}

#[tokio::test]
async fn a_missing_scope_is_denied_and_named() {
    let world = World::start().await;
    let (_, read) = world.key(&["read"]).await;
    let denied = world
        .as_key(&read, "POST", "/api/v1/hold", br#"{"reason":"r"}"#)
        .await;
    assert_eq!(
        (denied.status, denied.category().as_str()),
        (403, "permission_denied")
    );
    assert!(denied.text().contains("operate"));
    assert_eq!(denied.json()["details"]["needs"], "operate");
    assert_eq!(
        world
            .as_key(&read, "GET", "/api/v1/audit", b"")
            .await
            .status,
        403
    );
    let (_, call) = world.key(&["call"]).await;
    assert_eq!(
        world
            .as_key(&call, "GET", "/api/v1/system", b"")
            .await
            .status,
        403
    );
    let (_, operate) = world.key(&["operate"]).await;
    assert_eq!(
        world
            .as_key(&operate, "GET", "/api/v1/keys", b"")
            .await
            .status,
        403
    );
}

#[tokio::test]
async fn a_key_bound_to_an_agent_beats_only_for_it() {
    let world = World::start().await;
    let (_, key) = world.key(&["agent:mine"]).await;
    for path in [
        "/api/v1/nodes/other/heartbeat",
        "/api/v1/nodes/other/shutdown",
        "/api/v1/nodes/%6Dine/heartbeat",
    ] {
        let answer = world.as_key(&key, "POST", path, b"{}").await;
        assert_eq!(
            (answer.status, answer.category().as_str()),
            (403, "permission_denied"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn revoking_takes_effect_at_once_and_rotating_overlaps() {
    let world = World::start().await;
    let (id, key) = world.key(&["read"]).await;
    let path = format!("/api/v1/keys/{id}");

    let rotated = world
        .as_owner(
            "POST",
            &format!("{path}/rotate"),
            &json!({ "overlap_seconds": 60 }),
        )
        .await;
    assert_eq!(rotated.status, 201, "{}", rotated.text());
    assert_eq!(rotated.header("cache-control"), Some("no-store"));
    let fresh = rotated.json();
    let fresh_key = fresh["key"].as_str().unwrap();
    assert_eq!(fresh["principal"], "owner");
    for key in [&key, fresh_key] {
        assert_eq!(
            world.as_key(key, "GET", "/api/v1/system", b"").await.status,
            200,
            "both are taken in the overlap"
        );
    }
    let cut = world
        .as_owner(
            "POST",
            &format!("{path}/rotate"),
            &json!({ "overlap_seconds": 0 }),
        )
        .await;
    assert_eq!(cut.status, 201);
    assert_eq!(
        world
            .as_key(&key, "GET", "/api/v1/system", b"")
            .await
            .status,
        401
    );

    let fresh_id = fresh["id"].as_str().unwrap();
    let revoked = world
        .as_owner(
            "POST",
            &format!("/api/v1/keys/{fresh_id}/revoke"),
            &Value::Null,
        )
        .await;
    assert_eq!(revoked.json()["state"], "revoked");
    assert_eq!(
        world
            .as_key(fresh_key, "GET", "/api/v1/system", b"")
            .await
            .status,
        401
    );
    let again = world
        .as_owner(
            "POST",
            &format!("/api/v1/keys/{fresh_id}/rotate"),
            &Value::Null,
        )
        .await;
    assert_eq!((again.status, again.category().as_str()), (409, "conflict"));
    let nobody = world
        .as_owner("POST", "/api/v1/keys/key_none/revoke", &Value::Null)
        .await;
    assert_eq!(
        (nobody.status, nobody.category().as_str()),
        (404, "not_found")
    );

    let audit = world
        .as_owner("GET", "/api/v1/audit?limit=50", &Value::Null)
        .await
        .json();
    let actions: Vec<&str> = audit["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l["action"].as_str().unwrap())
        .collect();
    assert_eq!(
        actions,
        [
            "key.revoked",
            "key.rotated",
            "key.rotated",
            "key.created",
            "key.created"
        ]
    );
    assert!(!audit.to_string().contains(&key) && !audit.to_string().contains(fresh_key));
}

#[tokio::test]
async fn rotating_the_owner_key_writes_its_file() {
    let world = World::start().await;
    let keys = world
        .as_owner("GET", "/api/v1/keys", &Value::Null)
        .await
        .json();
    let id = keys["keys"][0]["id"].as_str().unwrap().to_owned();
    let rotated = world
        .as_owner(
            "POST",
            &format!("/api/v1/keys/{id}/rotate"),
            &json!({ "overlap_seconds": 0 }),
        )
        .await;
    let fresh = rotated.json()["key"].as_str().unwrap().to_owned();
    let on_disk = std::fs::read_to_string(owner_key_path(world.dir.path())).unwrap();
    assert_eq!(on_disk.trim(), fresh);
    assert_eq!(
        world
            .as_owner("GET", "/api/v1/keys", &Value::Null)
            .await
            .status,
        401
    );
    assert_eq!(
        world
            .as_key(&fresh, "GET", "/api/v1/keys", b"")
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_wish_for_a_key_that_makes_no_sense_is_refused() {
    let world = World::start().await;
    for wanted in [
        json!({}),
        json!({ "name": "n" }),
        json!({ "name": "", "scopes": ["read"] }),
        json!({ "name": "n\u{0}", "scopes": ["read"] }),
        json!({ "name": "n".repeat(300), "scopes": ["read"] }),
        json!({ "name": "n", "scopes": [] }),
        json!({ "name": "n", "scopes": ["root"] }),
        json!({ "name": "n", "scopes": ["node:"] }),
        json!({ "name": "n", "scopes": ["node:n", "read"] }),
        json!({ "name": "n", "scopes": ["relay", "admin"] }),
        json!({ "name": "n", "scopes": ["enroll:n"] }),
        json!({ "name": "n", "scopes": ["relay-agent:n"] }),
        json!({ "name": "n", "scopes": ["worker:a", "worker:b"] }),
        json!({ "name": "n", "scopes": ["worker:a", "admin", "read"] }),
        json!({ "name": "n", "scopes": ["read"], "principal": ".." }),
        json!({ "name": "n", "scopes": ["read"], "expires_in_seconds": 0 }),
        json!({ "name": "n", "scopes": ["read"], "expires_in_seconds": u64::MAX }),
        json!({ "name": "n", "scopes": ["read"], "expires_in_seconds": -1 }),
        json!({ "name": "n", "scopes": ["read"], "secret": "mine" }),
        json!([1]),
    ] {
        let answer = world.as_owner("POST", "/api/v1/keys", &wanted).await;
        assert_eq!(
            (answer.status, answer.category().as_str()),
            (400, "validation"),
            "{wanted}"
        );
    }
    let keys = world
        .as_owner("GET", "/api/v1/keys", &Value::Null)
        .await
        .json();
    assert_eq!(
        keys["keys"].as_array().unwrap().len(),
        1,
        "nothing was written"
    );
}

#[tokio::test]
async fn an_expired_key_is_not_taken() {
    let world = World::start().await;
    let wanted = json!({ "name": "short", "scopes": ["read"], "expires_in_seconds": 1 });
    let made = world.as_owner("POST", "/api/v1/keys", &wanted).await.json();
    let key = made["key"].as_str().unwrap().to_owned();
    assert_eq!(
        world
            .as_key(&key, "GET", "/api/v1/system", b"")
            .await
            .status,
        200
    );
    let world = Arc::new(world);
    let until = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    while world
        .as_key(&key, "GET", "/api/v1/system", b"")
        .await
        .status
        == 200
    {
        assert!(tokio::time::Instant::now() < until, "it never expired");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_only_calls_sees_and_cancels_only_what_it_called() {
    let world = World::start().await;
    let _agent = Agent::start(&world, "sane").await;
    let (_, mine) = world.key(&["call"]).await;
    let (_, other) = world.key(&["call"]).await;
    let (_, operate) = world.key(&["call", "operate"]).await;
    let call = async |key: &str| {
        let path = "/api/v1/execute/sane.echo";
        let made = world.as_key(key, "POST", path, b"{\"input\":{}}").await;
        assert_eq!(made.status, 200, "{}", made.text());
        let made = made.json();
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        (text("execution_id"), text("run_id"))
    };
    let (execution, run) = call(&mine).await;
    let (owners, _) = call(&world.owner).await;
    let status = async |key: &str, method: &str, path: String| {
        world.as_key(key, method, &path, b"").await.status
    };
    let one = format!("/api/v1/executions/{execution}");
    assert_eq!(status(&mine, "GET", one.clone()).await, 200);
    assert_eq!(status(&other, "GET", one.clone()).await, 404);
    assert_eq!(status(&world.owner, "GET", one.clone()).await, 200);
    let of_owner = format!("/api/v1/executions/{owners}");
    assert_eq!(status(&mine, "GET", of_owner.clone()).await, 404);
    assert_eq!(
        status(&mine, "POST", format!("{of_owner}/cancel")).await,
        404
    );
    let cancel = format!("{one}/cancel");
    assert_eq!(status(&other, "POST", cancel.clone()).await, 404);
    // It ended: whoever may cancel it hears that.
    assert_eq!(status(&mine, "POST", cancel.clone()).await, 409);
    assert_eq!(status(&operate, "POST", cancel).await, 409);
    let tree = format!("/api/v1/workflows/{run}/cancel-tree");
    assert_eq!(status(&other, "POST", tree.clone()).await, 404);
    assert_ne!(status(&operate, "POST", tree.clone()).await, 404);
    assert_ne!(status(&mine, "POST", tree).await, 404);
    let named = json!({ "name": "n", "scopes": ["call"], "principal": "owner" });
    let named = world.as_owner("POST", "/api/v1/keys", &named).await.json();
    assert_eq!(named["principal"], "owner");
    let key = named["key"].as_str().unwrap();
    assert_eq!(status(key, "GET", of_owner).await, 200, "it was named");
}
