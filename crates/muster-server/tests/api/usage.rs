//! `/api/v1/usage` from the caller's side: what agents reported comes out as exact sums, and
//! nothing else does.

use serde_json::{Value, json};

use crate::support::{FakeAgent, TestPlane};

async fn usage(plane: &TestPlane, query: &str) -> Value {
    let answer = plane.client.get(&format!("/api/v1/usage{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()
}

async fn billed(plane: &TestPlane, agent: &str, report: Value) -> String {
    let answer = plane.call(&format!("{agent}.bill"), report).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()["run_id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_what_agents_reported_summed_up_exactly() {
    let directory = tempfile::tempdir().unwrap();
    let plane = TestPlane::sqlite(directory.path()).await;
    let (_a, _b) = (
        FakeAgent::start(&plane, "a").await,
        FakeAgent::start(&plane, "b").await,
    );
    let nothing = usage(&plane, "").await;
    assert_eq!(nothing["rows"], json!([]));
    assert_eq!(nothing["total"]["total_tokens"], Value::Null);
    assert!(nothing["total"]["usage_unknown"].is_string());

    let run = billed(&plane, "a", json!({
        "total_cost_usd": 0.1, "total_input_tokens": 10, "total_output_tokens": 3, "total_tokens": 13,
        "entries": [{"model": "m", "cache_read_tokens": 4, "cache_creation_tokens": 1}],
    })).await;
    billed(
        &plane,
        "a",
        json!({"total_cost_usd": 0.2, "total_tokens": 90_071_992_547_u64, "colour": "red"}),
    )
    .await;
    billed(
        &plane,
        "b",
        json!({"total_tokens": -1, "total_cost_usd": "free"}),
    )
    .await;
    assert_eq!(plane.call("b.echo", json!({})).await.status, 200);

    let agents = usage(&plane, "?by=agent").await;
    let (a, b) = (&agents["rows"][0], &agents["rows"][1]);
    assert_eq!((&a["key"], &b["key"]), (&json!("a"), &json!("b")));
    assert_eq!(
        a["usage"]["cost"],
        json!([{"currency": "USD", "amount": "0.30", "executions": 2}])
    );
    assert_eq!(a["usage"]["total_tokens"], 90_071_992_560_u64);
    assert_eq!(a["usage"]["cache_read_tokens"], 4);
    assert_eq!(a["usage"]["model_calls"], 1);
    assert_eq!(a["usage"]["with_other_keys"], 1);
    assert_eq!(b["usage"]["executions"], 2);
    assert_eq!(b["usage"]["unreported"], 1);
    assert_eq!(b["usage"]["unreadable"], 1);
    assert_eq!(
        (&b["usage"]["cost"], &b["usage"]["total_tokens"]),
        (&json!([]), &Value::Null)
    );
    assert_eq!(agents["total"]["executions"], 4);
    for by in ["run", "function", "day"] {
        assert_eq!(
            usage(&plane, &format!("?by={by}")).await["total"],
            agents["total"],
            "{by}"
        );
    }
    let functions = usage(&plane, "?by=function").await;
    assert_eq!(functions["rows"][0]["key"], "a.bill");
    assert_eq!(
        (
            &functions["rows"][0]["agent"],
            &functions["rows"][0]["function"]
        ),
        (&json!("a"), &json!("bill"))
    );
    let days = usage(&plane, "?by=day").await;
    assert_eq!(days["rows_total"], 1);
    assert_eq!(days["rows"][0]["key"].as_str().unwrap().len(), 10);

    let shown = plane
        .client
        .get(&format!("/api/v1/runs/{run}"))
        .await
        .json();
    assert_eq!(shown["usage"]["total_tokens"], 13, "{shown}");
    assert_eq!(shown["usage"]["cost"][0]["amount"], "0.10");

    // Pages follow each other, in the time of the first.
    let first = usage(&plane, "?by=run&limit=3").await;
    let cursor = first["next_cursor"].as_str().unwrap();
    assert_eq!(plane.call("b.echo", json!({})).await.status, 200);
    let last = usage(&plane, &format!("?by=run&limit=3&cursor={cursor}")).await;
    assert_eq!(last["next_cursor"], Value::Null);
    assert_eq!(
        (last["rows_total"].as_u64(), last["to"].clone()),
        (Some(4), first["to"].clone())
    );
    let mut keys: Vec<&Value> = [&first, &last]
        .into_iter()
        .flat_map(|page| page["rows"].as_array().unwrap())
        .map(|row| &row["run_id"])
        .collect();
    assert!(keys.contains(&&json!(run)));
    keys.sort_by_key(|key| key.to_string());
    keys.dedup();
    assert_eq!(keys.len(), 4);

    for bad in [
        "?by=week",
        "?since=soon",
        "?limit=x",
        "?cursor=YQ",
        "?agent=a",
    ] {
        plane
            .client
            .get(&format!("/api/v1/usage{bad}"))
            .await
            .is_problem(400, "validation");
    }
    let empty = usage(
        &plane,
        "?since=2001-01-01T00:00:00Z&until=2001-01-02T00:00:00Z",
    )
    .await;
    assert_eq!(empty["rows_total"], 0);
}
