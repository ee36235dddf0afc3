//! The search from the caller's side: ids by their beginning, end and short form, filters, names.

use serde_json::{Value, json};

use crate::support::{FakeAgent, TestPlane};

async fn find(plane: &TestPlane, q: &str) -> Value {
    let q: String = q.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let answer = plane.client.get(&format!("/api/v1/search?q={q}")).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()
}

fn ids(found: &Value, kind: &str) -> Vec<String> {
    let groups = found["groups"].as_array().unwrap();
    let group = groups.iter().find(|group| group["kind"] == kind);
    let items = group.map_or(&[][..], |group| group["items"].as_array().unwrap());
    items
        .iter()
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Any beginning, at least four characters of the end, and the short form on screen.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_found_by_its_beginning_its_end_and_its_short_form() {
    let directory = tempfile::tempdir().unwrap();
    for sqlite in [false, true] {
        let plane = match sqlite {
            true => TestPlane::sqlite(directory.path()).await,
            false => TestPlane::start().await,
        };
        let _agent = FakeAgent::start(&plane, "a").await;
        let mut known = Vec::new();
        for _ in 0..3 {
            let id = plane.submit("a.echo", json!({})).await;
            plane.end_of(&id).await;
            known.push(id);
        }
        let id = &known[1];
        let run = plane.execution(id).await["run_id"]
            .as_str()
            .unwrap()
            .to_owned();
        let tail = &id[id.len() - 6..];
        let short = format!("exec_…{tail}");
        let beginning = &id[..id.len() - 1];
        for q in [id.as_str(), tail, &tail.to_lowercase(), &short, beginning] {
            let found = find(&plane, q).await;
            assert!(ids(&found, "execution").contains(id), "{q}: {found}");
        }
        let found = find(&plane, &run).await;
        assert_eq!(ids(&found, "run"), [run.as_str()], "{found}");
        let found = find(&plane, &format!("run_…{tail}")).await;
        assert_eq!(
            ids(&found, "execution"),
            [""; 0],
            "the noun says a run: {found}"
        );
        assert_eq!(
            find(&plane, "exec_").await["groups"][0]["items"]
                .as_array()
                .unwrap()
                .len(),
            3
        );
        let nothing = find(&plane, "0000NOTHING").await;
        assert_eq!(nothing["groups"], json!([]));
        assert!(
            nothing["note"]
                .as_str()
                .unwrap()
                .contains("payloads are not searched")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_narrow_and_names_are_found_whatever_their_case() {
    let plane = TestPlane::start().await;
    let _weather = FakeAgent::start(&plane, "weather").await;
    let _hotel = FakeAgent::start(&plane, "hotel").await;
    for target in ["weather.echo", "weather.boom", "hotel.boom"] {
        plane.call(target, json!({})).await;
    }
    let found = find(&plane, "state:failed agent:weather since:1h").await;
    let failed = ids(&found, "execution");
    assert_eq!(failed.len(), 1, "{found}");
    assert_eq!(plane.execution(&failed[0]).await["status"], "failed");
    assert_eq!(
        found["understood"][0],
        json!({"key": "state", "value": "failed"})
    );
    let found = find(&plane, "WEATH").await;
    assert_eq!(ids(&found, "agent"), ["weather"]);
    let found = find(&plane, "fn:boom").await;
    assert_eq!(ids(&found, "execution").len(), 2);
    let found = find(&plane, "boom").await;
    assert_eq!(ids(&found, "function"), ["hotel.boom", "weather.boom"]);
    assert_eq!(ids(&found, "execution").len(), 2, "{found}");
    for bad in ["state:nonsense", "since:soon"] {
        let q = bad.replace(':', "%3A");
        let answer = plane.client.get(&format!("/api/v1/search?q={q}")).await;
        answer.is_problem(400, "validation");
    }
    // Labels are the session and the actor; an unknown one says so, and so does a filter that is
    // none.
    let said = [("x-session-id", "s-1"), ("x-actor-id", "ada")];
    let path = "/api/v1/execute/hotel.echo";
    let called = plane
        .client
        .post_with(path, &said, &json!({"input": {}}))
        .await;
    let id = called.json()["execution_id"].as_str().unwrap().to_owned();
    for q in [
        "session:s-1",
        "label:session=s-1",
        "label:actor=ada",
        "session:s-1 agent:hotel",
    ] {
        let found = find(&plane, q).await;
        assert_eq!(ids(&found, "execution"), [id.as_str()], "{q}: {found}");
        assert_eq!(ids(&found, "run").len(), 1, "{q}: {found}");
    }
    for q in [
        "session:s-2",
        "label:actor=bob",
        "session:s-1 agent:weather",
    ] {
        assert_eq!(find(&plane, q).await["groups"], json!([]), "{q}");
    }
    for bad in ["label:team=red", "label:red"] {
        let q = bad.replace(':', "%3A").replace('=', "%3D");
        let answer = plane.client.get(&format!("/api/v1/search?q={q}")).await;
        let problem = answer.is_problem(400, "validation");
        let message = problem["message"].as_str().unwrap();
        assert!(message.contains("session=… or actor=…"), "{message}");
    }
    let odd = find(&plane, "sesion:s-1").await;
    let note = odd["note"].as_str().unwrap();
    assert!(note.starts_with("sesion: is no filter"), "{note}");
    let long = "x".repeat(501);
    let answer = plane.client.get(&format!("/api/v1/search?q={long}")).await;
    answer.is_problem(400, "validation");
    assert_eq!(find(&plane, "").await["groups"], json!([]));
}
