//! The overview from the caller's side: each count equals what its link lists, what nobody knows
//! is null, and nothing to do is an empty list.

use muster_server::config::Agent;
use serde_json::{Value, json};

use crate::support::{FakeAgent, TestPlane, eventually};

async fn overview(plane: &TestPlane) -> Value {
    let answer = plane.client.get("/api/v1/overview").await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    assert!(answer.bytes.len() <= 20 * 1024, "{}", answer.bytes.len());
    answer.json()
}

/// How many executions a query of the overview lists.
async fn listed(plane: &TestPlane, query: &str) -> u64 {
    let path = format!("/api/v1/executions?limit=500&{query}");
    let answer = plane.client.get(&path).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.json());
    answer.json()["executions"].as_array().unwrap().len() as u64
}

fn cause<'v>(overview: &'v Value, word: &str) -> &'v Value {
    let causes = overview["held"]["causes"].as_array().unwrap();
    let found = causes.iter().find(|one| one["cause"] == word);
    found.unwrap_or_else(|| panic!("no cause {word} in {}", overview["held"]))
}

fn capped(plane: &mut muster_server::Config, agent: &str) {
    let own = Agent {
        max_concurrent: Some(1),
        ..Agent::default()
    };
    plane.agents.by_id.insert(agent.into(), own);
}

/// A plane where nothing is wrong says so with an empty list, zeros that are known, and nulls
/// for the time before it was there.
#[tokio::test(flavor = "multi_thread")]
async fn an_untroubled_plane_needs_nobody_and_does_not_know_what_was_before_it() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    assert_eq!(plane.call("a.echo", json!({})).await.status, 200);
    let now = overview(&plane).await;
    assert_eq!(now["needs"], json!([]), "{now}");
    assert_eq!(
        (&now["needs_total"], &now["held"]["total"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(now["agents"]["total"], 1);
    assert_eq!(now["flow"]["open"], 0);
    assert_eq!(now["flow"]["oldest_wait_ms"], Value::Null);
    let started = now["flow"]["started"].as_array().unwrap();
    assert_eq!(started.len(), 60);
    assert_eq!(started[0], Value::Null, "nobody was there an hour ago");
    let sum: u64 = started.iter().filter_map(Value::as_u64).sum();
    assert_eq!(sum, 1, "{now}");
    assert_eq!(now["failed"]["total"], 0);
    assert_eq!(now["failed"]["before"], Value::Null);
    assert_eq!(now["slots"]["unknown"], 0);
}

/// Held up by cause; each cause has a query that lists exactly what it counts, and all of them
/// together are what does not run.
#[tokio::test(flavor = "multi_thread")]
async fn each_cause_counts_exactly_what_its_query_lists() {
    let directory = tempfile::tempdir().unwrap();
    for sqlite in [false, true] {
        let change = |config: &mut muster_server::Config| {
            capped(config, "full");
        };
        let plane = match sqlite {
            true => TestPlane::sqlite_with(directory.path(), change).await,
            false => TestPlane::with(change).await,
        };
        let full = FakeAgent::start(&plane, "full").await;
        let _held = FakeAgent::start(&plane, "held").await;
        let asker = FakeAgent::start(&plane, "asker").await;
        for _ in 0..4 {
            plane.submit("full.gate", json!({})).await;
        }
        full.until_seen(1).await;
        let hold = json!({"agent": "held", "reason": "a test"});
        assert_eq!(plane.as_person("/api/v1/hold", &hold).await.status, 200);
        for _ in 0..2 {
            plane.submit("held.never", json!({})).await;
        }
        let paused = plane.submit("asker.never", json!({})).await;
        let path = format!("/api/v1/executions/{paused}/pause");
        asker.until_seen(1).await;
        assert_eq!(plane.as_person(&path, &json!({})).await.status, 200);

        let now = overview(&plane).await;
        let held = &now["held"];
        let counts = |word| cause(&now, word)["count"].as_u64().unwrap();
        assert_eq!(counts("agent_full"), 3, "{held}");
        assert_eq!(counts("hold"), 2, "{held}");
        assert_eq!(counts("paused"), 1, "{held}");
        let mut total = 0;
        for one in held["causes"].as_array().unwrap() {
            let query = one["query"].as_str().unwrap();
            let count = one["count"].as_u64().unwrap();
            assert_eq!(listed(&plane, query).await, count, "{query}");
            assert!(one["oldest_at"].is_string(), "{one}");
            total += count;
        }
        assert_eq!(held["total"], total);
        assert_eq!(now["queued"], 5);
        assert_eq!(now["paused"], 1);
        assert_eq!(now["running"], 1);
        assert_eq!(now["flow"]["open"], 7);
        assert!(now["flow"]["oldest_wait_ms"].is_u64());
        let kinds: Vec<&str> = now["needs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|need| need["kind"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["hold"], "{now}");
    }
}

/// Failures by category, with the list that shows them.
#[tokio::test(flavor = "multi_thread")]
async fn failures_are_counted_by_category_as_their_query_lists_them() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    for target in ["a.boom", "a.boom", "a.invalid", "a.echo"] {
        plane.call(target, json!({})).await;
    }
    let now = overview(&plane).await;
    assert_eq!(now["failed"]["total"], 3, "{now}");
    let groups = now["failed"]["categories"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    assert_eq!(groups[0]["category"], "agent_error");
    assert_eq!(groups[0]["count"], 2);
    for group in groups {
        let query = group["query"].as_str().unwrap();
        assert_eq!(
            listed(&plane, query).await,
            group["count"].as_u64().unwrap(),
            "{query}"
        );
    }
}

/// A decision of a person, an agent that is down and missed: each with the page that shows it.
#[tokio::test(flavor = "multi_thread")]
async fn what_needs_somebody_is_named_with_its_page() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "billing").await;
    let path = "/api/v1/nodes/billing/shutdown";
    assert_eq!(plane.client.post(path, &json!({})).await.status, 202);
    let calm = overview(&plane).await;
    assert_eq!(calm["needs"], json!([]), "nobody misses it: {calm}");
    assert_eq!(plane.call("billing.echo", json!({})).await.status, 503);
    let now = overview(&plane).await;
    let need = &now["needs"][0];
    assert_eq!(
        (&need["kind"], &need["id"], &need["state"], &need["path"]),
        (
            &json!("agent"),
            &json!("billing"),
            &json!("down"),
            &json!("/ui/agents/billing")
        ),
        "{now}"
    );
    assert!(
        need["text"]
            .as_str()
            .unwrap()
            .contains("it said goodbye; in the last hour 1 call refused"),
        "{need}"
    );
    assert!(need["since"].is_string());
    drop(agent);
}

/// What is wrong with a call itself is no call that a down agent refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_wrong_itself_misses_nobody() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "billing").await;
    let path = "/api/v1/nodes/billing/shutdown";
    assert_eq!(plane.client.post(path, &json!({})).await.status, 202);
    plane
        .call("billing.strict", json!({}))
        .await
        .is_problem(400, "validation");
    let now = overview(&plane).await;
    assert_eq!(now["needs"], json!([]), "{now}");
    let agent = plane.client.get("/api/v1/nodes/billing").await.json();
    assert_eq!(agent["window"]["refused"], 0, "{agent}");
}

/// Principle 1: calls that an agent had when it went down are missed, though nobody called since.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_went_down_with_calls_needs_somebody() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "billing").await;
    plane.submit("billing.gate", json!({})).await;
    agent.until_seen(1).await;
    let path = "/api/v1/nodes/billing/shutdown";
    assert_eq!(plane.client.post(path, &json!({})).await.status, 202);
    let now = overview(&plane).await;
    let text = now["needs"][0]["text"].as_str().unwrap_or_default();
    assert!(text.ends_with("1 not ended"), "{now}");
}

/// A hold over everything is in the needs though nobody is registered, with who holds it; so is
/// that of one agent; and both are kept over a restart of the plane.
#[tokio::test(flavor = "multi_thread")]
async fn who_holds_what_is_named_everywhere() {
    let directory = tempfile::tempdir().unwrap();
    let plane = TestPlane::sqlite(directory.path()).await;
    let free = plane.client.get("/api/v1/hold").await.json();
    assert_eq!(
        (&free["held"], &free["by"], &free["held_agents"]),
        (&json!(false), &Value::Null, &json!([]))
    );
    let all = json!({"reason": "moving house"});
    let held = plane.as_person("/api/v1/hold", &all).await.json();
    assert_eq!(
        (&held["held"], &held["by"], &held["reason"]),
        (&json!(true), &json!("ada"), &json!("moving house"))
    );
    let now = overview(&plane).await;
    let need = &now["needs"][0];
    assert_eq!(
        (&need["kind"], &need["by"], &need["since"]),
        (&json!("hold"), &json!("ada"), &held["since"]),
        "{now}"
    );
    assert_eq!(
        need["text"],
        "nothing is dispatched; ada holds it: moving house"
    );

    let _agent = FakeAgent::start(&plane, "a").await;
    let waits = plane.submit("a.echo", json!({})).await;
    let why = plane
        .client
        .get(&format!("/api/v1/why/{waits}"))
        .await
        .json();
    let said = "a.echo waits because dispatching is on hold by ada: moving house";
    assert_eq!(why["verdict"], said, "{why}");
    let one = json!({"agent": "a", "reason": "it misbehaves"});
    assert_eq!(plane.as_person("/api/v1/hold", &one).await.status, 200);
    plane.running.stop().await;

    let plane = TestPlane::sqlite(directory.path()).await;
    let held = plane.client.get("/api/v1/hold").await.json();
    assert_eq!(held["by"], "ada", "{held}");
    let own = &held["held_agents"][0];
    assert_eq!(
        (&own["agent"], &own["by"], &own["reason"]),
        (&json!("a"), &json!("ada"), &json!("it misbehaves"))
    );
    assert!(own["since"].is_string());
    let lifted = plane.as_person("/api/v1/unhold", &json!({})).await;
    assert_eq!(lifted.status, 200);
    let agent = plane.client.get("/api/v1/nodes/a").await.json();
    assert_eq!(agent["hold"]["everything"], false, "{agent}");
    assert_eq!(agent["hold"]["by"], "ada");
    let why = plane
        .client
        .get(&format!("/api/v1/why/{waits}"))
        .await
        .json();
    let said = "a.echo waits because a is on hold by ada: it misbehaves";
    assert_eq!(why["verdict"], said, "{why}");
    let queue = plane.client.get("/api/v1/queues/a").await.json();
    let text = "a is held by ada: it misbehaves";
    assert_eq!(queue["held_by"]["text"], text, "{queue}");
    let now = overview(&plane).await;
    assert_eq!(cause(&now, "hold")["text"], text, "{now}");
    let text = now["needs"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("ada holds it: it misbehaves; 1 wait"),
        "{now}"
    );
    let lifted = plane
        .as_person("/api/v1/unhold", &json!({"agent": "a"}))
        .await;
    assert_eq!(lifted.status, 200);
    let free = plane.client.get("/api/v1/hold").await.json();
    assert_eq!(free["held_agents"], json!([]));
    assert_eq!(
        plane.client.get("/api/v1/nodes/a").await.json().get("hold"),
        None
    );
}

/// A page that polls learns that nothing changed but time.
#[tokio::test(flavor = "multi_thread")]
async fn an_overview_that_says_the_same_is_not_sent_again() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    plane.call("a.echo", json!({})).await;
    let ask = |tag: String| {
        let client = plane.client.clone();
        async move {
            let headers = [("if-none-match", tag.as_str())];
            client
                .send(http::Method::GET, "/api/v1/overview", &headers, "")
                .await
        }
    };
    // The minute may turn between two questions: then the buckets moved.
    eventually("the same is told by its tag", || async {
        let first = plane.client.get("/api/v1/overview").await;
        let tag = first.header("etag").unwrap().to_owned();
        let second = ask(tag).await;
        (second.status == 304 && second.bytes.is_empty()).then_some(())
    })
    .await;
    let tag = plane
        .client
        .get("/api/v1/overview")
        .await
        .header("etag")
        .unwrap()
        .to_owned();
    plane.call("a.boom", json!({})).await;
    assert_eq!(ask(tag).await.status, 200, "something failed since");
}
