//! Enrolment: a token makes one node, once, and a node's key opens a link and nothing else.

use serde_json::{Value, json};

use crate::support::World;
use crate::support::wire::Answer;

const TOKENS: &str = "/api/v1/fleet/enrollments";

async fn token(world: &World, name: &str) -> Value {
    let made = world
        .as_owner("POST", TOKENS, &json!({ "name": name }))
        .await;
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(made.header("cache-control"), Some("no-store"));
    made.json()
}

async fn hand_in(world: &World, body: &Value) -> Answer {
    let json = [("Content-Type", "application/json")];
    let body = body.to_string();
    world
        .send("POST", "/api/v1/fleet/enroll", &json, body.as_bytes())
        .await
}

fn is_problem(answer: &Answer, status: u16, category: &str) -> String {
    assert_eq!(
        (answer.status, answer.category().as_str()),
        (status, category),
        "{}",
        answer.text()
    );
    answer.json()["message"].as_str().unwrap().to_owned()
}

async fn pending(world: &World) -> Vec<Value> {
    let listed = world.as_owner("GET", TOKENS, &Value::Null).await.json();
    listed["enrollments"].as_array().unwrap().clone()
}

async fn actions(world: &World) -> Vec<String> {
    let audit = world.as_owner("GET", "/api/v1/audit", &Value::Null).await;
    let lines = audit.json()["lines"].as_array().unwrap().clone();
    let action = |line: &Value| line["action"].as_str().unwrap().to_owned();
    lines.iter().map(action).collect()
}

#[tokio::test]
async fn a_token_enrols_one_machine_once() {
    let world = World::start().await;
    let wanted = json!({ "name": "box-1", "labels": ["gpu", "zone=eu"], "max_workers": 4 });
    let made = world.as_owner("POST", TOKENS, &wanted).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.json();
    let text = made["token"].as_str().unwrap();
    assert!(text.starts_with("enr_"), "{text}");
    assert_eq!(made["again"], false);
    assert!(made["plane"].as_str().unwrap().starts_with("http://"));
    let [waits] = &pending(&world).await[..] else {
        panic!("one token waits")
    };
    assert_eq!((&waits["name"], &waits["id"]), (&made["name"], &made["id"]));
    assert!(
        !waits.to_string().contains(text),
        "lists never hold a token"
    );

    let body =
        json!({ "token": text, "name": "box-1", "labels": ["own"], "max_workers": 9, "host": "h" });
    let enrolled = hand_in(&world, &body).await;
    assert_eq!(enrolled.status, 201, "{}", enrolled.text());
    assert_eq!(enrolled.header("cache-control"), Some("no-store"));
    let enrolled = enrolled.json();
    assert_eq!(enrolled["node_id"], made["node_id"]);
    assert_eq!(
        enrolled["labels"],
        json!(["gpu", "zone=eu"]),
        "the token's go before"
    );
    assert_eq!(enrolled["max_workers"], 4);
    assert!(enrolled["token"].as_str().unwrap().starts_with("mk_"));
    assert!(pending(&world).await.is_empty());
    let node = world.get("/api/v1/fleet/nodes/box-1").await;
    assert_eq!(node.status, 200, "{}", node.text());

    let message = is_problem(&hand_in(&world, &body).await, 409, "conflict");
    assert!(message.contains("make another"), "{message}");
    let audit = actions(&world).await;
    assert_eq!(audit[..2], ["enrolment.redeemed", "enrolment.created"]);
    // Nothing anywhere holds the text of either.
    let audit = world
        .as_owner("GET", "/api/v1/audit", &Value::Null)
        .await
        .text();
    let keys = world
        .as_owner("GET", "/api/v1/keys?all=true", &Value::Null)
        .await
        .text();
    for secret in [text, enrolled["token"].as_str().unwrap()] {
        assert!(!audit.contains(secret) && !keys.contains(secret));
    }
}

#[tokio::test]
async fn of_many_who_hand_in_the_same_token_one_is_enrolled() {
    let world = World::start().await;
    let made = token(&world, "box-1").await;
    let body = json!({ "token": made["token"] });
    let tries = futures_util::future::join_all((0..8).map(|_| hand_in(&world, &body))).await;
    let won: Vec<&Answer> = tries.iter().filter(|one| one.status == 201).collect();
    let [won] = won[..] else {
        panic!(
            "{:?}",
            tries.iter().map(|one| one.status).collect::<Vec<_>>()
        )
    };
    assert_eq!(tries.iter().filter(|one| one.status == 409).count(), 7);
    let nodes = world.get("/api/v1/fleet/nodes").await.json();
    assert_eq!(nodes["nodes"].as_array().unwrap().len(), 1, "{nodes}");
    let key = won.json()["token"].as_str().unwrap().to_owned();
    let link = world.as_key(&key, "GET", "/api/v1/executions", b"").await;
    is_problem(&link, 403, "permission_denied");
    let keys = world
        .as_owner("GET", "/api/v1/keys", &Value::Null)
        .await
        .json();
    let of_nodes = |key: &&Value| key["scopes"][0].as_str().unwrap().starts_with("node:");
    assert_eq!(
        keys["keys"]
            .as_array()
            .unwrap()
            .iter()
            .filter(of_nodes)
            .count(),
        1
    );
}

#[tokio::test]
async fn a_token_for_another_name_is_refused_and_stays_good() {
    let world = World::start().await;
    let made = token(&world, "box-1").await;
    let text = made["token"].as_str().unwrap();
    let other = hand_in(&world, &json!({ "token": text, "name": "box-2" })).await;
    let message = is_problem(&other, 403, "permission_denied");
    assert!(message.contains("box-1"), "{message}");
    for bad in [
        json!({ "token": text, "labels": [""] }),
        json!({ "token": text, "labels": "gpu" }),
        json!({ "token": text, "max_workers": -1 }),
        json!({ "token": text, "host": "h\n" }),
        json!({ "token": text, "unknown": 1 }),
        json!([text]),
    ] {
        is_problem(&hand_in(&world, &bad).await, 400, "validation");
    }
    assert_eq!(pending(&world).await.len(), 1);
    // In a header, as programs send it that have no body to say.
    let bearer = format!("Bearer {text}");
    let header = [("Authorization", bearer.as_str())];
    let enrolled = world
        .send("POST", "/api/v1/fleet/enroll", &header, b"")
        .await;
    assert_eq!(enrolled.status, 201, "{}", enrolled.text());
    assert_eq!(enrolled.json()["name"], "box-1");
}

#[tokio::test]
async fn what_is_no_token_is_told_so() {
    let world = World::start().await;
    let none = hand_in(&world, &json!({})).await;
    let message = is_problem(&none, 401, "unauthenticated");
    assert!(message.contains("muster nodes enroll"), "{message}");
    let (_, read) = world.key(&["read"]).await;
    let good = token(&world, "box-1").await;
    let mut typo = good["token"].as_str().unwrap().to_owned();
    typo.pop();
    for text in ["", "enr_", "é", &read, &world.owner, &typo] {
        let answer = hand_in(&world, &json!({ "token": text })).await;
        is_problem(&answer, 401, "unauthenticated");
    }
    let revoke = format!("{TOKENS}/{}/revoke", good["id"].as_str().unwrap());
    let revoked = world.as_owner("POST", &revoke, &Value::Null).await;
    assert_eq!(revoked.status, 200, "{}", revoked.text());
    is_problem(
        &world.as_owner("POST", &revoke, &Value::Null).await,
        409,
        "conflict",
    );
    let used = hand_in(&world, &json!({ "token": good["token"] })).await;
    is_problem(&used, 409, "conflict");
    assert!(pending(&world).await.is_empty());
    assert_eq!(actions(&world).await[0], "enrolment.revoked");
    let nobody = format!("{TOKENS}/enrol_x/revoke");
    is_problem(
        &world.as_owner("POST", &nobody, &Value::Null).await,
        404,
        "not_found",
    );
    let nodes = world.get("/api/v1/fleet/nodes").await.json();
    assert!(nodes["nodes"].as_array().unwrap().is_empty(), "{nodes}");
}

#[tokio::test]
async fn a_machine_that_is_enrolled_again_is_the_same_node_with_a_new_key() {
    let world = World::start().await;
    let first = token(&world, "box-1").await;
    let first = hand_in(&world, &json!({ "token": first["token"] }))
        .await
        .json();
    let again = token(&world, "box-1").await;
    assert_eq!(again["again"], true);
    let second = hand_in(&world, &json!({ "token": again["token"] }))
        .await
        .json();
    assert_eq!(first["node_id"], second["node_id"]);
    assert_ne!(first["token"], second["token"]);
    let asks = |key: &Value| {
        let key = key.as_str().unwrap().to_owned();
        let world = &world;
        async move { world.as_key(&key, "GET", "/nowhere", b"").await.status }
    };
    assert_eq!(
        asks(&first["token"]).await,
        401,
        "the former key is no longer taken"
    );
    assert_eq!(asks(&second["token"]).await, 404);
    let id = second["node_id"].as_str().unwrap();
    let named = json!({ "name": id });
    is_problem(
        &world.as_owner("POST", TOKENS, &named).await,
        409,
        "conflict",
    );
    let gone = world
        .as_owner("DELETE", "/api/v1/fleet/nodes/box-1", &Value::Null)
        .await;
    assert_eq!(gone.status, 200, "{}", gone.text());
    assert_eq!(asks(&second["token"]).await, 401, "its key went with it");
}

#[tokio::test]
async fn tokens_and_nodes_outlive_a_restart() {
    let world = World::start().await;
    let waits = token(&world, "box-2").await;
    let made = token(&world, "box-1").await;
    let node = hand_in(&world, &json!({ "token": made["token"] }))
        .await
        .json();
    let dir = world.dir.clone();
    world.plane.stop().await;
    let world = World::on(dir, |_| {}).await;
    is_problem(
        &hand_in(&world, &json!({ "token": made["token"] })).await,
        409,
        "conflict",
    );
    let key = node["token"].as_str().unwrap();
    assert_eq!(world.as_key(key, "GET", "/nowhere", b"").await.status, 404);
    let other = hand_in(&world, &json!({ "token": waits["token"] })).await;
    assert_eq!(other.status, 201, "{}", other.text());
    assert_eq!(other.json()["node_id"], waits["node_id"]);
}

#[tokio::test]
async fn only_an_admin_makes_tokens() {
    let world = World::start().await;
    let (_, operate) = world.key(&["operate", "read", "call", "agent"]).await;
    let (_, node) = world.key(&["node:n1"]).await;
    let (_, relay) = world.key(&["relay"]).await;
    for (method, path) in [
        ("GET", TOKENS),
        ("POST", TOKENS),
        ("POST", "/api/v1/fleet/enrollments/x/revoke"),
    ] {
        let keyless = world.send(method, path, &[], b"").await;
        is_problem(&keyless, 401, "unauthenticated");
        for key in [&operate, &node, &relay] {
            let answer = world.as_key(key, method, path, b"{\"name\":\"n\"}").await;
            is_problem(&answer, 403, "permission_denied");
        }
    }
    for bad in [
        json!({}),
        json!({ "name": "" }),
        json!({ "name": "a b" }),
        json!({ "name": "a\u{0}" }),
        json!({ "name": ".." }),
        json!({ "name": "n".repeat(129) }),
        json!({ "name": "n", "labels": ["a b"] }),
        json!({ "name": "n", "labels": ["x".repeat(129)] }),
        json!({ "name": "n", "max_workers": u64::MAX }),
        json!({ "name": "n", "ttl": 5 }),
        json!("n"),
    ] {
        is_problem(
            &world.as_owner("POST", TOKENS, &bad).await,
            400,
            "validation",
        );
    }
    assert!(pending(&world).await.is_empty());
}

#[tokio::test]
async fn the_key_of_a_broker_and_of_a_node_do_nothing_else() {
    let world = World::start().await;
    let (relay_id, relay) = world.key(&["relay"]).await;
    let (_, node) = world.key(&["node:n1"]).await;
    assert!(relay.starts_with("rk_live_") && node.starts_with("mk_"));
    for key in [&relay, &node] {
        for (method, path) in [
            ("GET", "/api/v1/executions"),
            ("GET", "/api/v1/fleet/workers"),
            ("POST", "/api/v1/fleet/workers"),
            ("POST", "/api/v1/fleet/nodes/n/drain"),
            ("POST", "/api/v1/nodes/register"),
            ("POST", "/api/v1/execute/a.b"),
            ("POST", "/api/v1/memory/set"),
            ("POST", "/mcp"),
            ("GET", "/api/v1/keys"),
            ("GET", "/metrics"),
        ] {
            let answer = world.as_key(key, method, path, b"{}").await;
            is_problem(&answer, 403, "permission_denied");
        }
    }
    // The nodes of a broker are its own: its key stands for nobody else.
    let keys = world
        .as_owner("GET", "/api/v1/keys", &Value::Null)
        .await
        .json();
    let keys = keys["keys"].as_array().unwrap();
    let record = keys
        .iter()
        .find(|key| key["id"] == relay_id.as_str())
        .unwrap();
    assert!(
        record["principal"].as_str().unwrap().starts_with("relay_"),
        "{record}"
    );
    let rotated = world
        .as_owner(
            "POST",
            &format!("/api/v1/keys/{relay_id}/rotate"),
            &Value::Null,
        )
        .await
        .json();
    assert!(rotated["key"].as_str().unwrap().starts_with("rk_live_"));
    assert_eq!(rotated["principal"], record["principal"]);
}

#[tokio::test]
async fn a_cancel_is_in_the_audit_log() {
    let world = World::start().await;
    let _agent = crate::support::agent::Agent::start(&world, "a").await;
    let hold = json!({ "agent": "a", "reason": "calls wait" });
    let held = world.as_owner("POST", "/api/v1/hold", &hold).await;
    assert_eq!(held.status, 200, "{}", held.text());
    let submit = async || {
        let call = json!({ "input": {} }).to_string();
        let path = "/api/v1/execute/async/a.echo";
        let taken = world
            .as_key(&world.owner, "POST", path, call.as_bytes())
            .await;
        assert!(taken.status < 300, "{}", taken.text());
        taken.json()
    };
    let why = json!({ "reason": "enough" });
    let one = submit().await["execution_id"].as_str().unwrap().to_owned();
    let run = submit().await["run_id"].as_str().unwrap().to_owned();
    for (path, action) in [
        (
            format!("/api/v1/executions/{one}/cancel"),
            "execution.cancelled",
        ),
        (
            format!("/api/v1/workflows/{run}/cancel-tree"),
            "run.cancelled",
        ),
    ] {
        let cancelled = world.as_owner("POST", &path, &why).await;
        assert_eq!(cancelled.status, 200, "{}", cancelled.text());
        let audit = world.as_owner("GET", "/api/v1/audit", &Value::Null).await;
        let line = &audit.json()["lines"][0];
        assert_eq!(line["action"], action);
        assert_eq!(line["principal"], "owner");
        assert_eq!(line["detail"], "1 ended: enough");
    }
    // What had ended already was not cancelled by anybody.
    let lines = actions(&world).await.len();
    let path = format!("/api/v1/executions/{one}/cancel");
    is_problem(&world.as_owner("POST", &path, &why).await, 409, "conflict");
    assert_eq!(actions(&world).await.len(), lines);
}
