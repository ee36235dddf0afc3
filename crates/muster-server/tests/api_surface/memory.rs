//! Values in four scopes.

use serde_json::{Value, json};

use crate::on_each_store;
use crate::world::World;

on_each_store!(
    a_value_comes_back_as_it_was_sent,
    scopes_are_chosen_by_header_and_body,
    a_read_without_a_scope_walks_the_scopes,
    null_is_a_value_and_absence_is_404,
    lists_show_keys_in_order_without_values,
    ids_of_attempts_are_cut_down,
    vectors_are_not_supported,
);

/// The headers of a call inside a run, a session and for an actor.
const EVERYWHERE: &[(&str, &str)] = &[
    ("X-Workflow-ID", "run-1"),
    ("X-Session-ID", "session-1"),
    ("X-Actor-ID", "actor-1"),
];

async fn set(world: &World, headers: &[(&str, &str)], key: &str, data: Value, scope: Option<&str>) {
    let mut body = json!({ "key": key, "data": data });
    if let Some(scope) = scope {
        body["scope"] = scope.into();
    }
    world
        .post("/api/v1/memory/set", headers, body)
        .await
        .is(200);
}

async fn get(world: &World, headers: &[(&str, &str)], body: Value) -> (u16, Value) {
    let answer = world.post("/api/v1/memory/get", headers, body).await;
    (answer.status, answer.json())
}

async fn a_value_comes_back_as_it_was_sent(world: World) {
    // No double, no reordering, no loss.
    let data = r#"{"z":1,"a":[123456789012345678901234567890.10, 1e400, "\u0000\ud800"],"z":2}"#;
    let body = format!(r#"{{"key":"k\u0000é","data":{data}}}"#);
    let answer = world.raw("POST", "/api/v1/memory/set", &[], body).await;
    answer.is(200);
    assert!(answer.text.contains(data), "{answer:?}");
    let answer = world
        .raw("POST", "/api/v1/memory/get", &[], r#"{"key":"k\u0000é"}"#)
        .await;
    answer.is(200);
    assert!(answer.text.contains(data), "{answer:?}");
    for member in [
        "\"scope\":\"global\"",
        "\"scope_id\":\"global\"",
        "created_at",
        "updated_at",
    ] {
        assert!(answer.text.contains(member), "{member}: {answer:?}");
    }
}

async fn scopes_are_chosen_by_header_and_body(world: World) {
    for (headers, scope, want) in [
        (EVERYWHERE, None, ("workflow", "run-1")),
        (&EVERYWHERE[1..], None, ("session", "session-1")),
        (&EVERYWHERE[2..], None, ("actor", "actor-1")),
        (&[], None, ("global", "global")),
        (EVERYWHERE, Some("global"), ("global", "global")),
        (EVERYWHERE, Some("actor"), ("actor", "actor-1")),
    ] {
        let mut body = json!({ "key": "k", "data": 1 });
        if let Some(scope) = scope {
            body["scope"] = scope.into();
        }
        let row = world.post("/api/v1/memory/set", headers, body).await.json();
        assert_eq!(
            (&row["scope"], &row["scope_id"]),
            (&want.0.into(), &want.1.into())
        );
    }
    let body = json!({ "key": "k", "data": 1, "scope": "session" });
    let answer = world.post("/api/v1/memory/set", &[], body).await;
    answer.is_problem(400, "validation");
    assert!(answer.text.contains("x-session-id"), "{answer:?}");
    let body = json!({ "key": "k", "data": 1, "scope": "galaxy" });
    world
        .post("/api/v1/memory/set", &[], body)
        .await
        .is_problem(400, "validation");
}

async fn a_read_without_a_scope_walks_the_scopes(world: World) {
    for (scope, data) in [("global", 1), ("actor", 2), ("session", 3), ("workflow", 4)] {
        set(&world, EVERYWHERE, "k", data.into(), Some(scope)).await;
        let (_, row) = get(&world, EVERYWHERE, json!({ "key": "k" })).await;
        assert_eq!((&row["data"], &row["scope"]), (&data.into(), &scope.into()));
    }
    // Only scopes whose header is there are looked into.
    let (_, row) = get(&world, &[("X-Session-ID", "other")], json!({ "key": "k" })).await;
    assert_eq!(row["data"], 1);
    // A delete without a scope takes the first, and lets the next one show.
    let answer = world
        .post("/api/v1/memory/delete", EVERYWHERE, json!({ "key": "k" }))
        .await;
    assert_eq!((answer.status, answer.text.as_str()), (204, ""));
    let (_, row) = get(&world, EVERYWHERE, json!({ "key": "k" })).await;
    assert_eq!(row["data"], 3);
}

async fn null_is_a_value_and_absence_is_404(world: World) {
    set(&world, &[], "null", Value::Null, None).await;
    let (status, row) = get(&world, &[], json!({ "key": "null" })).await;
    assert_eq!(status, 200);
    assert!(row.as_object().unwrap().contains_key("data"));
    assert_eq!(row["data"], Value::Null);
    let absent = world
        .post("/api/v1/memory/get", &[], json!({ "key": "absent" }))
        .await;
    absent.is_problem(404, "not_found");
    let missing = world
        .post("/api/v1/memory/set", &[], json!({ "key": "k" }))
        .await;
    missing.is_problem(400, "validation");
    let twice = world
        .post("/api/v1/memory/delete", &[], json!({ "key": "absent" }))
        .await;
    twice.is(204);
}

async fn lists_show_keys_in_order_without_values(world: World) {
    for key in ["b", "a", "c\"", "é"] {
        set(&world, &[], key, json!("secret"), Some("global")).await;
    }
    set(&world, EVERYWHERE, "elsewhere", json!(1), Some("session")).await;
    let answer = world.get("/api/v1/memory/list?scope=global").await;
    let keys: Vec<Value> = answer
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["key"].clone())
        .collect();
    assert_eq!(keys, ["a", "b", "c\"", "é"]);
    assert!(!answer.text.contains("secret"));
    let page = world
        .get("/api/v1/memory/list?scope=global&after=a&limit=1")
        .await
        .json();
    assert_eq!(page.as_array().unwrap().len(), 1);
    assert_eq!(page[0]["key"], "b");
    let none = world
        .get("/api/v1/memory/list?scope=global&after=zzz&limit=0")
        .await;
    assert_eq!(none.text, "[]");
    world
        .get("/api/v1/memory/list?scope=session")
        .await
        .is_problem(400, "validation");
    world
        .get("/api/v1/memory/list?limit=many")
        .await
        .is_problem(400, "validation");
}

async fn ids_of_attempts_are_cut_down(world: World) {
    let headers = [("X-Workflow-ID", "exec_1~2.ABCDEFGHIJKLMNOP")];
    set(&world, &headers, "k", json!(1), None).await;
    let (_, row) = get(
        &world,
        &[("X-Workflow-ID", "exec_1")],
        json!({ "key": "k" }),
    )
    .await;
    assert_eq!(row["scope_id"], "exec_1");
    let history = world.get("/api/v1/memory/events/history").await;
    assert!(!history.text.contains("ABCDEFGHIJKLMNOP"), "{history:?}");
}

async fn vectors_are_not_supported(world: World) {
    for path in ["set", "search", "delete"] {
        let path = format!("/api/v1/memory/vector/{path}");
        world
            .post(&path, &[], json!({ "key": "k" }))
            .await
            .is_problem(501, "not_supported");
    }
}
