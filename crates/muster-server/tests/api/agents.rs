//! Agents as people see them: state with evidence, slots, queue, what they did lately, what they
//! offer, and their past.

use muster_server::config::Agent;
use serde_json::{Value, json};

use crate::support::{FakeAgent, TestPlane, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_shown_with_its_evidence_slots_queue_and_last_hour() {
    let plane = TestPlane::with(|config| {
        let own = Agent {
            max_concurrent: Some(1),
            ..Agent::default()
        };
        config.agents.by_id.insert("a".into(), own);
    })
    .await;
    let agent = FakeAgent::start(&plane, "a").await;
    agent.beat(&plane).await;
    plane.call("a.echo", json!({})).await;
    plane.call("a.boom", json!({})).await;
    assert_eq!(plane.call("a.nothing", json!({})).await.status, 404);
    for _ in 0..2 {
        plane.submit("a.gate", json!({})).await;
    }
    agent.until_seen(3).await;
    let list = plane.client.get("/api/v1/nodes").await.json();
    let shown = &list["nodes"][0];
    assert_eq!(shown["state"], "active", "{shown}");
    assert_eq!(shown["slots"], json!({"used": 1, "cap": 1}));
    assert_eq!(shown["queue"]["depth"], 1);
    assert!(shown["queue"]["oldest_at"].is_string());
    assert_eq!(shown["window"]["calls"], 2);
    assert_eq!(shown["window"]["failed"], 1);
    // A name that the agent does not have says nothing of the agent.
    assert_eq!(shown["window"]["refused"], 0, "{shown}");
    assert!(shown.get("why").is_none() && shown.get("hold").is_none());
    let instance = &shown["instances"][0];
    assert_eq!(instance["state"], "active");
    assert!(["beat", "exchange"].contains(&instance["last_sign"]["what"].as_str().unwrap()));
    assert_eq!(list["total"], 1);
    assert_eq!(list["states"], json!({"active": 1}));
    let one = plane.client.get("/api/v1/nodes/a").await.json();
    for name in ["state", "slots", "functions"] {
        assert_eq!(one[name], shown[name], "{name}");
    }
    let strict = one["offers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|offer| offer["id"] == "strict");
    assert_eq!(
        strict.unwrap()["input_schema"]["required"],
        json!(["count"])
    );
    assert_eq!(strict.unwrap()["target"], "a.strict");

    let hold = json!({"agent": "a", "reason": "a test"});
    plane.as_person("/api/v1/hold", &hold).await;
    let held = plane.client.get("/api/v1/nodes/a").await.json();
    assert_eq!(held["hold"]["everything"], false);
    assert!(
        held["why"]
            .as_str()
            .unwrap()
            .contains("nothing is dispatched"),
        "{held}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_filtered_and_paged_and_counts_stay_whole() {
    let plane = TestPlane::start().await;
    for id in ["alpha", "beta", "gamma"] {
        FakeAgent::start(&plane, id).await;
    }
    let path = "/api/v1/nodes/beta/shutdown";
    assert_eq!(plane.client.post(path, &json!({})).await.status, 202);
    let list = |query: &str| {
        let path = format!("/api/v1/nodes?{query}");
        let client = plane.client.clone();
        async move { client.get(&path).await.json() }
    };
    let ids = |list: &Value| -> Vec<String> {
        let nodes = list["nodes"].as_array().unwrap();
        nodes
            .iter()
            .map(|node| node["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let down = list("state=down").await;
    assert_eq!(ids(&down), ["beta"]);
    assert_eq!(down["total"], 1);
    assert_eq!(down["states"], json!({"down": 1, "unknown": 2}), "{down}");
    assert_eq!(ids(&list("status=down").await), ["beta"], "the older name");
    assert_eq!(ids(&list("q=AMM").await), ["gamma"]);
    assert_eq!(
        list("q=echo").await["count"],
        3,
        "a function's name finds its agents"
    );
    let first = list("limit=2").await;
    assert_eq!(
        (ids(&first), &first["total"]),
        (vec!["alpha".into(), "beta".into()], &json!(3))
    );
    let next = list(&format!(
        "limit=2&cursor={}",
        first["next_cursor"].as_str().unwrap()
    ))
    .await;
    assert_eq!(ids(&next), ["gamma"]);
    assert!(next.get("next_cursor").is_none());
}

/// What was silent while no plane was there is nobody's fault.
#[tokio::test(flavor = "multi_thread")]
async fn the_past_of_an_agent_shows_its_changes_and_when_no_plane_was_there() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    agent.beat(&plane).await;
    eventually("it is active", || async {
        let node = plane.client.get("/api/v1/nodes/a").await.json();
        (node["state"] == "active").then_some(())
    })
    .await;
    let path = "/api/v1/nodes/a/shutdown";
    assert_eq!(plane.client.post(path, &json!({})).await.status, 202);
    let past = plane.client.get("/api/v1/nodes/a/history?buckets=24").await;
    assert_eq!(past.status, 200, "{}", past.json());
    let past = past.json();
    let buckets = past["buckets"].as_array().unwrap();
    assert_eq!(buckets.len(), 24);
    assert_eq!(buckets[0]["state"], Value::Null);
    assert_eq!(buckets[0]["plane_down"], false, "none was there to be down");
    assert_eq!(
        buckets[0]["state_unknown"],
        "before this plane's first start"
    );
    assert_eq!(buckets[23]["state"], "down", "{past}");
    let changes = past["changes"].as_array().unwrap();
    assert!(changes.len() >= 2, "{past}");
    let last = changes.last().unwrap();
    assert_eq!(
        (&last["to"], &last["instance"]),
        (&json!("down"), &json!("instance-1"))
    );
    for bad in [
        "from=2999-01-01T00:00:00Z",
        "from=x",
        "from=1999-01-01T00:00:00Z",
    ] {
        let answer = plane
            .client
            .get(&format!("/api/v1/nodes/a/history?{bad}"))
            .await;
        answer.is_problem(400, "validation");
    }
    let answer = plane.client.get("/api/v1/nodes/nobody/history").await;
    answer.is_problem(404, "not_found");
}
