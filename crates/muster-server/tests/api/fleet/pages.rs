//! The fleet in pages, what waits for a place and why, and what an act would come to before it
//! is done.

use http::Method;
use serde_json::{Value, json};

use super::{node_is, quick};
use crate::support::{Daemon, Enrolled, TestPlane};

const WORKERS: &str = "/api/v1/fleet/workers";
const NODES: &str = "/api/v1/fleet/nodes";

async fn get(plane: &TestPlane, path: &str) -> Value {
    let answer = plane.client.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.json());
    answer.json()
}

fn names(page: &Value) -> Vec<&str> {
    let nodes = page["nodes"].as_array().unwrap();
    nodes
        .iter()
        .map(|node| node["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn nodes_are_paged_filtered_and_sorted_by_who_needs_somebody() {
    let plane = TestPlane::with(quick).await;
    let edge = Enrolled::new(&plane, "edge-1", &["gpu"], 4).await;
    let _daemon = Daemon::start(&edge).await;
    node_is(&plane, "edge-1", "online").await;
    Enrolled::new(&plane, "mini-7", &[], 2).await;
    Enrolled::new(&plane, "mini-8", &["gpu"], 2).await;
    let all = get(&plane, NODES).await;
    assert_eq!(names(&all), ["edge-1", "mini-7", "mini-8"]);
    assert_eq!(all["states"], json!({"connecting": 2, "online": 1}));
    let first = get(&plane, &format!("{NODES}?limit=2")).await;
    assert_eq!(
        (names(&first), &first["total"]),
        (vec!["edge-1", "mini-7"], &json!(3))
    );
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = get(&plane, &format!("{NODES}?limit=2&cursor={cursor}")).await;
    assert_eq!(names(&rest), ["mini-8"]);
    assert!(rest.get("next_cursor").is_none());
    let need = get(&plane, &format!("{NODES}?sort=need")).await;
    assert_eq!(names(&need), ["mini-7", "mini-8", "edge-1"]);
    assert_eq!(
        names(&get(&plane, &format!("{NODES}?q=MINI")).await),
        ["mini-7", "mini-8"]
    );
    let some = get(&plane, &format!("{NODES}?state=connecting&label=gpu")).await;
    assert_eq!(names(&some), ["mini-8"]);
    assert_eq!(
        some["states"],
        json!({"connecting": 1, "online": 1}),
        "whatever state is wanted"
    );
    for bad in ["sort=x", "state=x", "kind=x", "cursor=x"] {
        let answer = plane.client.get(&format!("{NODES}?{bad}")).await;
        answer.is_problem(400, "validation");
    }
    let fleet = get(&plane, "/api/v1/fleet").await;
    let gpu = &fleet["labels"][0];
    assert_eq!(
        (
            &gpu["label"],
            &gpu["nodes"],
            &gpu["capacity"],
            &gpu["unknown"]
        ),
        (&json!("gpu"), &json!(2), &json!(4), &json!(2)),
        "{fleet}"
    );
}

/// What waits for a place, with why every node was passed over.
#[tokio::test]
async fn a_placement_that_waits_says_why_each_node_was_passed_over() {
    let plane = TestPlane::with(quick).await;
    let edge = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let daemon = Daemon::start(&edge).await;
    node_is(&plane, "edge-1", "online").await;
    assert_eq!(
        get(&plane, "/api/v1/fleet/placements").await["placements"],
        json!([])
    );
    let body = json!({"command": "cat", "target_labels": ["gpu"], "queue": true});
    let waits = plane.as_person(WORKERS, &body).await;
    assert_eq!(waits.status, 202, "{}", waits.json());
    let id = waits.json()["worker"]["id"].clone();
    let shown = get(&plane, "/api/v1/fleet/placements").await;
    assert_eq!(shown["total"], 1);
    let one = &shown["placements"][0];
    assert_eq!(one["worker"]["id"], id);
    assert_eq!(one["passed_over"][0]["name"], "edge-1");
    assert_eq!(one["passed_over"][0]["why"], "labels");
    assert_eq!(one["passed_over_counts"], json!({"labels": 1}));
    assert!(one["expires_at"].is_string());

    let dry = format!("{WORKERS}?dry_run=true");
    let plan = plane.as_person(&dry, &body).await.json();
    assert_eq!(
        (&plan["dry_run"], &plan["would"]),
        (&json!(true), &json!("queue")),
        "{plan}"
    );
    let now = json!({"command": "cat", "target_labels": ["gpu"]});
    let plan = plane.as_person(&dry, &now).await.json();
    assert_eq!(
        (&plan["would"], &plan["error_category"]),
        (&json!("refuse"), &json!("no_eligible_node")),
        "{plan}"
    );
    let plan = plane
        .as_person(&dry, &json!({"command": "cat"}))
        .await
        .json();
    assert_eq!(
        (
            &plan["would"],
            &plan["node_name"],
            &plan["candidates"][0]["free"]
        ),
        (&json!("place"), &json!("edge-1"), &json!(4)),
        "{plan}"
    );
    assert!(
        daemon.script.started.lock().is_empty(),
        "nothing was started"
    );
    assert_eq!(get(&plane, "/api/v1/fleet/placements").await["total"], 1);
}

/// With dry_run=true an act says whom it touches and changes nothing.
#[tokio::test]
async fn an_act_says_first_what_it_would_come_to() {
    let plane = TestPlane::with(quick).await;
    let edge = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let daemon = Daemon::start(&edge).await;
    node_is(&plane, "edge-1", "online").await;
    let placed = plane
        .as_person(WORKERS, &json!({"command": "cat"}))
        .await
        .json();
    let id = placed["worker"]["id"].as_str().unwrap().to_owned();
    let before = get(&plane, &format!("{NODES}/edge-1")).await;
    let dry = |act: &str| {
        let path = format!("{NODES}/edge-1/{act}?dry_run=true");
        let plane = &plane;
        async move {
            let answer = plane.as_person(&path, &json!({})).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.json());
            answer.json()
        }
    };
    let drain = dry("drain").await;
    assert_eq!(
        (&drain["dry_run"], &drain["allowed"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(drain["workers_total"], 1);
    assert_eq!(drain["workers"][0]["id"], json!(id));
    assert_eq!(dry("cordon").await["workers_total"], 0, "what runs goes on");
    for refused in ["retire", "lost"] {
        let would = dry(refused).await;
        assert_eq!(would["allowed"], false, "{would}");
        let really = plane
            .as_person(&format!("{NODES}/edge-1/{refused}"), &json!({}))
            .await;
        really.is_problem(409, "conflict");
    }
    let key = [("x-api-key", plane.key())];
    let path = format!("{NODES}/edge-1?dry_run=true");
    let delete = plane
        .client
        .send(Method::DELETE, &path, &key, "")
        .await
        .json();
    assert_eq!(
        (&delete["dry_run"], &delete["allowed"]),
        (&json!(true), &json!(false))
    );
    let path = format!("{WORKERS}/{id}/release?dry_run=true");
    let release = plane.as_person(&path, &json!({"grace": "2s"})).await.json();
    assert_eq!(release["worker"], json!(id));
    assert!(
        release["text"]
            .as_str()
            .unwrap()
            .contains("SIGKILL after 2 s"),
        "{release}"
    );
    let after = get(&plane, &format!("{NODES}/edge-1")).await;
    assert_eq!(
        (&after["wish"], &after["workers"]),
        (&before["wish"], &before["workers"])
    );
    assert!(daemon.script.released.lock().is_empty());
    let none = plane
        .as_person(&format!("{NODES}/nobody/drain?dry_run=true"), &json!({}))
        .await;
    none.is_problem(404, "not_found");
}

#[tokio::test]
async fn the_past_of_the_fleet_and_of_a_node_has_its_unknown_stretches() {
    let plane = TestPlane::with(quick).await;
    let edge = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let _daemon = Daemon::start(&edge).await;
    node_is(&plane, "edge-1", "online").await;
    let past = get(&plane, "/api/v1/fleet/history?buckets=12").await;
    let buckets = past["buckets"].as_array().unwrap();
    assert_eq!(buckets.len(), 12);
    assert_eq!(buckets[0]["states"], Value::Null);
    assert_eq!(buckets[0]["plane_down"], false);
    assert_eq!(
        buckets[0]["states_unknown"],
        "before this plane's first start"
    );
    let last = buckets[11]["states"].as_object().unwrap();
    assert_eq!(
        last.values().filter_map(Value::as_u64).sum::<u64>(),
        1,
        "{past}"
    );
    let node = get(&plane, &format!("{NODES}/edge-1/history?buckets=4")).await;
    let buckets = node["buckets"].as_array().unwrap();
    assert_eq!(buckets.len(), 4);
    assert_eq!(buckets[0]["state"], Value::Null);
    assert_eq!(
        buckets[0]["state_unknown"],
        "before this plane's first start"
    );
    assert!(buckets[3]["state"].is_string(), "{node}");
    assert!(!node["history"].as_array().unwrap().is_empty());
    let plain = get(&plane, &format!("{NODES}/edge-1/history")).await;
    assert!(plain.get("buckets").is_none());
}
