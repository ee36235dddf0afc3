//! Notes and logs of executions.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::on_each_store;
use crate::world::{Answer, Events, World};

on_each_store!(
    a_note_with_the_attempts_id_is_kept_and_shown_without_its_secret,
    a_bare_id_of_a_dispatched_execution_is_no_proof,
    a_wrong_secret_is_no_proof,
    an_in_process_call_is_proved_by_its_parent,
    log_lines_come_back_by_number_and_level,
    a_follower_gets_lines_as_they_come_and_an_end,
    a_flood_is_bounded_and_says_so,
    unknown_executions_are_tolerated_and_not_shown,
);

fn entry(level: &str, message: &str) -> Value {
    json!({ "ts": "2026-01-31T12:00:00.000Z", "level": level, "source": "sdk",
            "event_type": "log.info", "message": message, "attributes": { "n": 1 } })
}

async fn log(world: &World, id: &str, entries: Vec<Value>) -> Answer {
    let path = format!("/api/v1/executions/{id}/logs");
    world.post(&path, &[], json!({ "entries": entries })).await
}

async fn logs(world: &World, execution: &str, query: &str) -> Value {
    let path = format!("/api/v1/executions/{execution}/logs{query}");
    let answer = world.get(&path).await;
    answer.is(200);
    answer.json()
}

fn messages(answer: &Value) -> Vec<&str> {
    let entries = answer["entries"].as_array().unwrap();
    entries
        .iter()
        .map(|e| e["message"].as_str().unwrap())
        .collect()
}

async fn note(world: &World, id: &str, message: &str) -> Answer {
    let body = json!({ "message": message, "tags": ["a", "b"], "timestamp": 1769860800.5, "agent_node_id": "n" });
    let headers = [
        ("X-Execution-ID", id),
        ("X-Parent-Execution-ID", id),
        ("X-Run-ID", "run-x"),
    ];
    world.post("/api/v1/executions/note", &headers, body).await
}

async fn a_note_with_the_attempts_id_is_kept_and_shown_without_its_secret(world: World) {
    let agent = Agent::start(&world, "noter").await;
    let call = agent.call(&world, &[]).await;
    let said = format!("I am {}", call.attempt);
    let answer = note(&world, &call.attempt, &said).await;
    answer.is(200);
    let body = answer.json();
    assert_eq!(body["success"], true);
    assert_eq!(body["note"]["tags"], json!(["a", "b"]));
    // Read at once: what was taken in before is there.
    let path = format!("/api/v1/executions/{}/notes", call.execution());
    let notes = world.get(&path).await.json();
    assert_eq!(notes["total"], 1);
    let kept = &notes["notes"][0];
    assert_eq!(kept["message"], format!("I am {}", call.execution()));
    assert_eq!(kept["timestamp"], "2026-01-31T12:00:00.500Z");
    assert_eq!(kept["run_id"], "run-x");
    let tagged = world.get(&format!("{path}?tags=x,b")).await.json();
    assert_eq!(tagged["total"], 1);
    let other = world.get(&format!("{path}?tags=x")).await.json();
    assert_eq!(other["total"], 0);
    let null_tags = json!({ "message": "m", "tags": null });
    world
        .post(
            "/api/v1/executions/note",
            &[("X-Execution-ID", &call.attempt)],
            null_tags,
        )
        .await
        .is(200);
    assert_eq!(world.get(&path).await.json()["total"], 2);
}

async fn a_bare_id_of_a_dispatched_execution_is_no_proof(world: World) {
    let agent = Agent::start(&world, "bare").await;
    let call = agent.call(&world, &[]).await;
    let before = world.counter("muster_messages_unproved_total").await;
    note(&world, call.execution(), "from nobody").await.is(200);
    log(&world, call.execution(), vec![entry("info", "from nobody")])
        .await
        .is(202);
    log(
        &world,
        &call.attempt,
        vec![entry("info", "from the attempt")],
    )
    .await
    .is(202);
    let answer = logs(&world, call.execution(), "").await;
    assert_eq!(messages(&answer), ["from the attempt"]);
    let path = format!("/api/v1/executions/{}/notes", call.execution());
    assert_eq!(world.get(&path).await.json()["total"], 0);
    let after = world.counter("muster_messages_unproved_total").await;
    assert_eq!(after - before, 2.0);
}

async fn a_wrong_secret_is_no_proof(world: World) {
    let agent = Agent::start(&world, "wrong").await;
    let call = agent.call(&world, &[]).await;
    for tail in ["~1.ABCDEFGHIJKLMNOP", "~2.ABCDEFGHIJKLMNOP", "~x", "~"] {
        let id = format!("{}{tail}", call.execution());
        log(&world, &id, vec![entry("info", "forged")])
            .await
            .is(202);
    }
    assert!(messages(&logs(&world, call.execution(), "").await).is_empty());
    log(&world, "a%20b", vec![])
        .await
        .is_problem(400, "validation");
}

async fn an_in_process_call_is_proved_by_its_parent(world: World) {
    let agent = Agent::start(&world, "parent").await;
    let call = agent.call(&world, &[]).await;
    let child = "exec_1700000000000_abcdef01";
    let mut line = entry("info", "from the child");
    line["parent_execution_id"] = call.attempt.as_str().into();
    // Its first line comes before the report that tells of it.
    log(&world, child, vec![line]).await.is(202);
    let report = json!({
        "execution_id": child, "workflow_id": call.run, "run_id": call.run,
        "reasoner_id": "work", "type": "work", "agent_node_id": "parent", "status": "running",
        "parent_execution_id": call.attempt, "parent_workflow_id": null, "input_data": {},
    });
    world
        .post("/api/v1/workflow/executions/events", &[], report)
        .await
        .is(200);
    // A note of it carries nothing but its own bare id.
    note(&world, child, "a child's note").await.is(200);
    let path = format!("/api/v1/executions/{child}/logs");
    let found = world
        .until("the child's line", &path, |answer| {
            (answer.status == 200 && answer.text.contains("from the child"))
                .then(|| answer.text.clone())
        })
        .await;
    assert!(!found.contains('~'), "{found}");
    let path = format!("/api/v1/executions/{child}/notes");
    world
        .until("the child's note", &path, |answer| {
            (answer.status == 200 && answer.json()["total"] == 1).then_some(())
        })
        .await;
}

async fn log_lines_come_back_by_number_and_level(world: World) {
    let agent = Agent::start(&world, "logger").await;
    let call = agent.call(&world, &[]).await;
    let mut last = entry("ERROR", &"x".repeat(70_000));
    last["attributes"] = json!({ "me": call.attempt, "big": 12345678901234567890_u64 });
    let lines = vec![
        entry("debug", "1"),
        entry("info", "2"),
        entry("warn", "3"),
        last,
    ];
    let answer = log(&world, &call.attempt, lines).await;
    assert_eq!(answer.json()["accepted"], 4);
    let all = logs(&world, call.execution(), "").await;
    assert_eq!((&all["total"], &all["dropped"]), (&json!(4), &json!(0)));
    let entries = all["entries"].as_array().unwrap();
    assert_eq!(entries[0]["ts"], "2026-01-31T12:00:00.000Z");
    assert_eq!(entries[3]["level"], "error");
    assert_eq!(entries[3]["attributes"]["me"], call.execution());
    assert!(entries[3]["message"].as_str().unwrap().len() <= 64 * 1024);
    let seqs: Vec<u64> = entries.iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    assert!(seqs.windows(2).all(|w| w[0] < w[1]), "{seqs:?}");
    let grave = logs(&world, call.execution(), "?level=warn").await;
    assert_eq!(grave["entries"].as_array().unwrap().len(), 2);
    let page = logs(&world, call.execution(), "?limit=2").await;
    assert_eq!(
        (messages(&page), &page["has_more"]),
        (vec!["1", "2"], &json!(true))
    );
    let rest = logs(
        &world,
        call.execution(),
        &format!("?after={}&limit=1", page["next_after"]),
    )
    .await;
    assert_eq!(messages(&rest), ["3"]);
    for bad in ["?level=loud", "?after=-1", "?limit=x", "?follow=maybe"] {
        let path = format!("/api/v1/executions/{}/logs{bad}", call.execution());
        world.get(&path).await.is_problem(400, "validation");
    }
}

async fn a_follower_gets_lines_as_they_come_and_an_end(world: World) {
    let agent = Agent::start(&world, "followed").await;
    let call = agent.call(&world, &[]).await;
    log(&world, &call.attempt, vec![entry("info", "before")])
        .await
        .is(202);
    let path = format!(
        "/api/v1/executions/{}/logs?follow=true&level=info",
        call.execution()
    );
    let mut events = Events::of(&world, &path, &[]).await;
    let message = |data: &str| serde_json::from_str::<Value>(data).unwrap()["message"].clone();
    assert_eq!(message(&events.next().await.unwrap().data), "before");
    for number in 0..3 {
        log(
            &world,
            &call.attempt,
            vec![
                entry("debug", "not shown"),
                entry("info", &number.to_string()),
            ],
        )
        .await
        .is(202);
        assert_eq!(
            message(&events.next().await.unwrap().data),
            number.to_string()
        );
    }
    agent.succeed(&world, &call, json!(1)).await;
    log(
        &world,
        &call.attempt,
        vec![entry("info", "after the result")],
    )
    .await
    .is(202);
    assert_eq!(
        message(&events.next().await.unwrap().data),
        "after the result"
    );
    assert_eq!(events.next().await.unwrap().event, "end");
    assert!(events.next().await.is_none());
    // Of something that has ended: all of it, and the end.
    let mut late = Events::of(&world, &path, &[]).await;
    let mut count = 0;
    while late.next().await.unwrap().event != "end" {
        count += 1;
    }
    assert_eq!(count, 5);
}

async fn a_flood_is_bounded_and_says_so(world: World) {
    let agent = Agent::start(&world, "noisy").await;
    let call = agent.call(&world, &[]).await;
    log(&world, &call.attempt, vec![entry("info", "the first")])
        .await
        .is(202);
    let many: Vec<Value> = (0..1000).map(|n| entry("debug", &n.to_string())).collect();
    for _ in 0..6 {
        log(&world, &call.attempt, many.clone()).await.is(202);
    }
    let all = logs(&world, call.execution(), "?limit=1").await;
    assert_eq!(messages(&all), ["the first"], "debug lines go first");
    let (total, dropped) = (
        all["total"].as_u64().unwrap(),
        all["dropped"].as_u64().unwrap(),
    );
    assert!(total <= 5_000, "{total}");
    assert_eq!(total + dropped, 6_001);
    let too_many: Vec<Value> = (0..1001).map(|_| json!({})).collect();
    log(&world, &call.attempt, too_many)
        .await
        .is_problem(400, "validation");
}

async fn unknown_executions_are_tolerated_and_not_shown(world: World) {
    note(&world, "exec_unknown", "who am I").await.is(200);
    log(&world, "exec_unknown", vec![entry("info", "x")])
        .await
        .is(202);
    world
        .get("/api/v1/executions/exec_unknown/notes")
        .await
        .is_problem(404, "not_found");
    world
        .get("/api/v1/executions/exec_unknown/logs")
        .await
        .is_problem(404, "not_found");
    let path = "/api/v1/executions/exec_unknown/logs?follow=true";
    world.get(path).await.is_problem(404, "not_found");
    let body = json!({ "message": "m" });
    world
        .post("/api/v1/executions/note", &[], body.clone())
        .await
        .is_problem(400, "validation");
    world
        .post(
            "/api/v1/executions/note",
            &[("X-Execution-ID", "a b")],
            body,
        )
        .await
        .is_problem(400, "validation");
}
