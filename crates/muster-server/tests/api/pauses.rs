//! Pauses: what was not sent is not sent until it is resumed, what was sent may end, and a
//! paused run admits what joins it as paused.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{FakeAgent, TestPlane, eventually};

async fn pause(plane: &TestPlane, id: &str, verb: &str) -> crate::support::Answer {
    let path = format!("/api/v1/executions/{id}/{verb}");
    plane.as_person(&path, &json!({"reason": "lunch"})).await
}

/// Section 2, row queued, column pause / resume.
#[tokio::test(flavor = "multi_thread")]
async fn a_paused_queued_call_is_not_sent_until_it_is_resumed() {
    let plane = TestPlane::with(|c| c.admission.max_concurrent_per_agent = 1).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let running = plane.submit("a.never", json!({})).await;
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    let queued = plane.submit("a.echo", json!({"n": 1})).await;

    let answer = pause(&plane, &queued, "pause").await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    assert_eq!(answer.json()["paused"], json!([queued]));
    let shown = plane.execution(&queued).await;
    assert_eq!(shown["status"], "waiting", "as the SDK must see it");
    assert_eq!(shown["state"], "paused");
    assert_eq!(shown["status_reason"], "paused: lunch");
    let again = pause(&plane, &queued, "pause").await;
    assert_eq!(
        (again.status.as_u16(), &again.json()["changed"]),
        (200, &json!(false))
    );

    // The slot becomes free, and the paused one still waits.
    let said = json!({"status": "succeeded", "result": 1});
    let path = format!("/api/v1/executions/{attempt}/status");
    assert_eq!(plane.client.post(&path, &said).await.status, 200);
    assert_eq!(plane.end_of(&running).await["status"], "succeeded");
    assert_eq!(plane.call("a.echo", json!({})).await.status, 200);
    assert_eq!(plane.execution(&queued).await["state"], "paused");

    assert_eq!(pause(&plane, &queued, "resume").await.status, 200);
    assert_eq!(plane.end_of(&queued).await["result"], json!({"n": 1}));
    pause(&plane, &queued, "resume")
        .await
        .is_problem(409, "conflict");
    pause(&plane, &queued, "pause")
        .await
        .is_problem(409, "conflict");
    pause(&plane, "exec_unknown", "pause")
        .await
        .is_problem(404, "not_found");
    let audit = muster_store::Annex::audit(
        &**plane.memory.as_ref().unwrap(),
        &muster_store::annex::AuditFilter::newest(100),
    )
    .unwrap();
    let about = |(_, line): &&(u64, muster_store::annex::AuditRow)| {
        line.object == queued && line.action == "resumed"
    };
    let lines = audit.iter().filter(about).count();
    assert_eq!(lines, 1, "{audit:?}");
}

/// Section 2, row paused, column outcome: dispatched work may still finish.
#[tokio::test(flavor = "multi_thread")]
async fn the_outcome_of_a_paused_running_call_is_taken() {
    let plane = TestPlane::with(|_| {}).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let id = plane.submit("a.never", json!({})).await;
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    assert_eq!(pause(&plane, &id, "pause").await.status, 200);
    let resumed = pause(&plane, &id, "resume").await.json();
    assert_eq!(resumed["state"], "running");
    assert_eq!(pause(&plane, &id, "pause").await.status, 200);
    let path = format!("/api/v1/executions/{attempt}/status");
    let said = json!({"status": "succeeded", "result": 7});
    assert_eq!(plane.client.post(&path, &said).await.status, 200);
    assert_eq!(plane.execution(&id).await["result"], 7);
}

/// Security: pausing stands for a person's decision.
#[tokio::test(flavor = "multi_thread")]
async fn pausing_needs_a_key_on_loopback_too() {
    let plane = TestPlane::with(|_| {}).await;
    for path in [
        "/api/v1/executions/e/pause",
        "/api/v1/executions/e/resume",
        "/api/v1/workflows/r/pause-tree",
        "/api/v1/workflows/r/resume-tree",
        "/api/v1/executions/e/approval-response",
    ] {
        plane
            .client
            .post(path, &json!({}))
            .await
            .is_problem(401, "unauthenticated");
    }
}

/// Section 7: a marked run admits children as `paused`, on every lane.
#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_takes_new_calls_as_paused_and_a_resume_lets_all_go() {
    let plane = TestPlane::with(|c| {
        c.executions.sync_wait = muster_server::config::Span(Duration::from_millis(300));
    })
    .await;
    let agent = FakeAgent::start(&plane, "a").await;
    let run = [("x-run-id", "run_p")];
    let body = json!({"input": {}});
    let submit = async |target: &str| -> Value {
        let path = format!("/api/v1/execute/async/{target}");
        plane.client.post_with(&path, &run, &body).await.json()
    };
    let first = submit("a.never").await;
    agent.until_seen(1).await;
    let answer = plane
        .as_person("/api/v1/workflows/run_p/pause-tree", &json!({}))
        .await;
    assert_eq!(answer.json()["paused"], json!([first["execution_id"]]));

    let second = submit("a.echo").await;
    assert_eq!(second["status"], "waiting", "{second}");
    let held = plane
        .client
        .post_with("/api/v1/execute/a.echo", &run, &body)
        .await;
    let held = held.is_problem(504, "still_running");
    assert_eq!(agent.seen().len(), 1, "nothing of a paused run is sent");
    let other = plane.call("a.echo", json!({})).await;
    assert_eq!(other.status, 200, "other runs go on");

    let answer = plane
        .as_person("/api/v1/workflows/run_p/resume-tree", &json!({}))
        .await;
    assert_eq!(answer.json()["resumed"].as_array().unwrap().len(), 3);
    for id in [&second["execution_id"], &held["execution_id"]] {
        let end = plane.end_of(id.as_str().unwrap()).await;
        assert_eq!(end["status"], "succeeded");
    }
    plane
        .as_person("/api/v1/workflows/run_p/resume-tree", &json!({}))
        .await
        .is_problem(409, "conflict");
    plane
        .as_person("/api/v1/workflows/run_none/pause-tree", &json!({}))
        .await
        .is_problem(404, "not_found");
}

/// A run is what its open members make of it, the same wherever it is shown: with all of them
/// paused it is paused.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_which_all_is_paused_says_so_everywhere() {
    let directory = tempfile::tempdir().unwrap();
    for sqlite in [false, true] {
        let plane = match sqlite {
            true => TestPlane::sqlite(directory.path()).await,
            false => TestPlane::start().await,
        };
        let agent = FakeAgent::start(&plane, "a").await;
        let run = [("x-run-id", "run_p")];
        let body = json!({"input": {}});
        let submit = async |n: usize| -> String {
            let path = "/api/v1/execute/async/a.never";
            let said = plane.client.post_with(path, &run, &body).await.json();
            agent.until_seen(n).await;
            said["execution_id"].as_str().unwrap().to_owned()
        };
        let first = submit(1).await;
        let second = submit(2).await;
        let is = async |state: &str, total: u64| {
            let get = async |path: &str| -> Value {
                let answer = plane.client.get(path).await;
                assert_eq!(answer.status, 200, "{path}: {}", answer.json());
                answer.json()
            };
            let one = get("/api/v1/runs/run_p").await;
            assert_eq!(
                (&one["state"], &one["status"]),
                (&json!(state), &json!(state))
            );
            let columns = get("/api/v1/runs/run_p/steps?view=columns").await;
            assert_eq!(columns["state"], state);
            let steps = get("/api/v1/runs/run_p/steps").await;
            assert_eq!(steps["status"], state);
            let why = get("/api/v1/why/run_p?kind=run").await;
            assert_eq!(why["state"], state, "{why}");
            for word in ["running", "queued", "waiting", "paused"] {
                let there = if word == state { total } else { 0 };
                let list = get(&format!("/api/v1/runs?state={word}")).await;
                assert_eq!(list["total"], there, "{state} as {word}: {list}");
                assert_eq!(list["runs"].as_array().unwrap().len() as u64, there);
                assert_eq!(list["counts"][state], total, "{list}");
                // `status=running` is any that is open.
                let there = if word == "running" { total } else { there };
                let list = get(&format!("/api/v1/runs?status={word}")).await;
                assert_eq!(list["total"], there, "{state} as {word}: {list}");
                assert_eq!(list["runs"].as_array().unwrap().len() as u64, there);
            }
            let both = get(&format!("/api/v1/runs?state={state}&status=succeeded")).await;
            assert_eq!(both["total"], 0, "{both}");
        };
        is("running", 1).await;
        assert_eq!(pause(&plane, &first, "pause").await.status, 200);
        is("running", 1).await;
        let tree = "/api/v1/workflows/run_p/pause-tree";
        assert_eq!(plane.as_person(tree, &json!({})).await.status, 200);
        is("paused", 1).await;
        let overview = plane.client.get("/api/v1/overview").await.json();
        assert_eq!(
            (&overview["paused"], &overview["running"]),
            (&json!(2), &json!(0))
        );
        assert_eq!(pause(&plane, &second, "resume").await.status, 200);
        is("running", 1).await;
        let cancel = format!("/api/v1/executions/{second}/cancel");
        assert_eq!(plane.client.post(&cancel, &json!({})).await.status, 200);
        is("paused", 1).await;
    }
}

/// Section 2: `on_parent_end`, by the call and by the function's tag.
#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_ends_with_its_parent_is_cancelled_and_its_agent_told() {
    let plane = TestPlane::with(|_| {}).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let parent = plane.submit("a.never", json!({})).await;
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    let child = async |on_parent_end: &str| {
        let body = json!({"input": {}, "on_parent_end": on_parent_end});
        let headers = [("x-parent-execution-id", attempt.as_str())];
        plane
            .client
            .post_with("/api/v1/execute/async/a.never", &headers, &body)
            .await
    };
    let with = child("cancel").await.json()["execution_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let without = child("detach").await.json()["execution_id"]
        .as_str()
        .unwrap()
        .to_owned();
    agent.until_seen(3).await;
    child("maybe").await.is_problem(400, "validation");
    let path = format!("/api/v1/executions/{attempt}/status");
    let said = json!({"status": "succeeded", "result": null});
    assert_eq!(plane.client.post(&path, &said).await.status, 200);
    assert_eq!(plane.execution(&parent).await["status"], "succeeded");
    let ended = plane.execution(&with).await;
    assert_eq!(ended["status"], "cancelled", "in the same commit: {ended}");
    assert_eq!(ended["status_reason"], "parent_ended");
    assert_eq!(plane.execution(&without).await["status"], "running");
    eventually("its agent is told", || async {
        (agent.cancels().len() == 1).then_some(())
    })
    .await;
    child("cancel").await.is_problem(409, "run_cancelled");
    assert_eq!(child("detach").await.status, 202);
}

/// A restart of the plane brings every paused state back.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_paused_stays_paused_over_a_restart_of_the_plane() {
    let directory = tempfile::tempdir().unwrap();
    let change = |c: &mut muster_server::Config| c.admission.max_concurrent_per_agent = 1;
    let plane = TestPlane::sqlite_with(directory.path(), change).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let running = plane.submit("a.never", json!({})).await;
    agent.until_seen(1).await;
    let queued = plane.submit("a.echo", json!({"n": 2})).await;
    for id in [&running, &queued] {
        assert_eq!(pause(&plane, id, "pause").await.status, 200);
    }
    plane.running.stop().await;

    let plane = TestPlane::sqlite_with(directory.path(), change).await;
    agent.beat(&plane).await;
    for id in [&running, &queued] {
        assert_eq!(plane.execution(id).await["state"], "paused");
        assert_eq!(pause(&plane, id, "resume").await.status, 200);
    }
    assert_eq!(plane.execution(&running).await["state"], "running");
    let cancel = format!("/api/v1/executions/{running}/cancel");
    assert_eq!(plane.client.post(&cancel, &json!({})).await.status, 200);
    assert_eq!(plane.end_of(&queued).await["result"], json!({"n": 2}));
}

/// Section 2, row running: what has not left the plane is taken back by a pause, like by a cancel.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_waits_for_its_way_out_is_taken_back_by_a_pause() {
    // As many as go to one host at once.
    const PER_HOST: usize = 256;
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    for n in 0..PER_HOST {
        plane.submit("a.gate", json!({"n": n})).await;
    }
    agent.until_seen(PER_HOST).await;
    let paused = plane.submit("a.echo", json!({"which": "paused"})).await;
    let cancelled = plane.submit("a.echo", json!({"which": "cancelled"})).await;
    let last = plane.submit("a.echo", json!({"which": "last"})).await;
    assert_eq!(pause(&plane, &paused, "pause").await.status, 200);
    let path = format!("/api/v1/executions/{cancelled}/cancel");
    assert_eq!(plane.client.post(&path, &json!({})).await.status, 200);

    // Everything goes on; the last one had waited behind the two.
    agent.open_gate();
    assert_eq!(plane.end_of(&last).await["status"], "succeeded");
    let echoes = |agent: &FakeAgent| -> Vec<String> {
        let seen = agent.seen();
        let echo = seen.iter().filter(|call| call.path.ends_with("/echo"));
        let which = |body: &[u8]| -> Value { serde_json::from_slice(body).unwrap() };
        echo.map(|call| which(&call.body)["which"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(echoes(&agent), ["last"]);
    assert_eq!(plane.execution(&paused).await["state"], "paused");
    assert_eq!(plane.execution(&cancelled).await["status"], "cancelled");

    assert_eq!(pause(&plane, &paused, "resume").await.status, 200);
    assert_eq!(plane.end_of(&paused).await["status"], "succeeded");
    assert_eq!(echoes(&agent), ["last", "paused"]);
}
