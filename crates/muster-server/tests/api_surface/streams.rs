//! Many polls in one, and the stream that nudges the SDK.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::on_each_store;
use crate::world::{Events, World};

on_each_store!(
    a_batch_answers_like_single_polls,
    the_stream_tells_of_an_end_when_a_poll_returns_it,
    an_open_stream_does_not_hold_up_the_end,
);

async fn a_batch_answers_like_single_polls(world: World) {
    let agent = Agent::start(&world, "batch").await;
    let one = agent.call(&world, &[]).await;
    let two = agent.call(&world, &[]).await;
    agent.succeed(&world, &two, json!([1, null])).await;
    let ids = json!({ "execution_ids": [one.execution(), two.execution(), "exec_unknown", "a b", two.execution()] });
    let answer = world
        .post("/api/v1/executions/batch-status", &[], ids)
        .await;
    answer.is(200);
    let all = answer.json();
    assert_eq!(all.as_object().unwrap().len(), 4);
    assert_eq!(all[one.execution()]["status"], "running");
    assert_eq!(all[two.execution()]["result"], json!([1, null]));
    for unknown in ["exec_unknown", "a b"] {
        assert_eq!(all[unknown]["error"], "not_found");
        assert_eq!(all[unknown]["status"], "unknown");
    }
    let path = format!("/api/v1/executions/{}", two.execution());
    assert_eq!(all[two.execution()], world.get(&path).await.json());
    let empty = json!({ "execution_ids": [] });
    assert_eq!(
        world
            .post("/api/v1/executions/batch-status", &[], empty)
            .await
            .text,
        "{}"
    );
    let many: Vec<String> = (0..501).map(|n| format!("e{n}")).collect();
    for bad in [
        json!({ "execution_ids": many }),
        json!({ "execution_ids": [1] }),
        json!({}),
        json!([]),
    ] {
        world
            .post("/api/v1/executions/batch-status", &[], bad)
            .await
            .is_problem(400, "validation");
    }
}

async fn the_stream_tells_of_an_end_when_a_poll_returns_it(world: World) {
    let agent = Agent::start(&world, "streamed").await;
    let mut events = Events::of(&world, "/api/ui/v1/executions/events", &[]).await;
    let mut calls = Vec::new();
    for number in 0..20 {
        let call = agent.call(&world, &[]).await;
        agent.succeed(&world, &call, json!(number)).await;
        calls.push(call);
    }
    let mut told = std::collections::HashMap::<String, Vec<String>>::new();
    let mut ended = 0;
    while ended < calls.len() {
        let message = events.next().await.expect("the stream goes on");
        assert!(message.event.is_empty(), "{message:?}");
        let change: Value = serde_json::from_str(&message.data).unwrap();
        let id = change["execution_id"].as_str().unwrap();
        let kinds = told.entry(id.to_owned()).or_default();
        kinds.push(change["type"].as_str().unwrap().to_owned());
        if change["status"] == "succeeded" {
            let number = calls
                .iter()
                .position(|call| call.execution() == id)
                .unwrap();
            let poll = world.get(&format!("/api/v1/executions/{id}")).await.json();
            assert_eq!(
                (&poll["status"], &poll["result"]),
                (&json!("succeeded"), &json!(number))
            );
            assert!(kinds.contains(&"execution_started".to_owned()), "{kinds:?}");
            assert_eq!(kinds.last().unwrap(), "execution_completed");
            ended += 1;
        }
    }
}

async fn an_open_stream_does_not_hold_up_the_end(mut world: World) {
    let mut events = Events::of(&world, "/api/ui/v1/executions/events", &[]).await;
    let mut changes = Events::of(&world, "/api/v1/memory/events/sse", &[]).await;
    let stopping = world.stop();
    tokio::time::timeout(std::time::Duration::from_secs(10), stopping)
        .await
        .expect("open streams end with the plane");
    assert!(events.next().await.is_none());
    assert!(changes.next().await.is_none());
}
