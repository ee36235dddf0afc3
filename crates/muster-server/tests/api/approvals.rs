//! Approvals: an agent asks, a person decides or the time runs out, and the agent is told after
//! the record says so. What is forged, late or ambiguous changes nothing.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::support::{Answer, FakeAgent, TestPlane, eventually};

struct Waiting {
    plane: TestPlane,
    agent: FakeAgent,
    id: String,
    attempt: String,
}

impl Waiting {
    /// A call that has been sent, of an agent that may be told.
    async fn sent() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut muster_server::Config)) -> Self {
        let plane = TestPlane::with(change).await;
        let agent = FakeAgent::start(&plane, "a").await;
        let id = plane.submit("a.never", json!({})).await;
        let attempt = agent.until_seen(1).await[0]
            .header("x-execution-id")
            .to_owned();
        Self {
            plane,
            agent,
            id,
            attempt,
        }
    }

    fn body(&self, request: &str) -> Value {
        json!({
            "approval_request_id": request, "expires_in_hours": 1,
            "approval_request_url": format!("https://people.example/{request}"),
            "callback_url": format!("http://localhost:{}/webhooks/approval", self.agent.port),
        })
    }

    async fn ask(&self, request: &str) -> Answer {
        self.ask_with(&self.body(request)).await
    }

    async fn ask_with(&self, body: &Value) -> Answer {
        let path = format!(
            "/api/v1/agents/a/executions/{}/request-approval",
            self.attempt
        );
        self.plane.client.post(&path, body).await
    }

    async fn decide(&self, body: &Value) -> Answer {
        let path = format!("/api/v1/executions/{}/approval-response", self.id);
        self.plane.as_person(&path, body).await
    }

    async fn status(&self) -> Value {
        let path = format!(
            "/api/v1/agents/a/executions/{}/approval-status",
            self.attempt
        );
        self.plane.client.get(&path).await.json()
    }

    async fn told(&self, count: usize) -> Vec<Value> {
        eventually("the agent is told", || async {
            let told = self.agent.told();
            (told.len() >= count).then_some(told)
        })
        .await
    }

    async fn call_back(&self, status: &str) -> Answer {
        let path = format!("/api/v1/executions/{}/status", self.attempt);
        self.plane
            .client
            .post(&path, &json!({"status": status, "result": 1}))
            .await
    }
}

/// Section 2: running, approval asked and decided; the record before the agent.
#[tokio::test(flavor = "multi_thread")]
async fn an_approved_call_goes_on_and_its_agent_is_told_by_its_attempt() {
    let it = Waiting::sent().await;
    let answer = it.ask("req-1").await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    assert_eq!(answer.json()["approval_request_id"], "req-1");
    assert_eq!(
        answer.json()["approval_request_url"],
        "https://people.example/req-1"
    );
    let shown = it.plane.execution(&it.id).await;
    assert_eq!(shown["status"], "waiting");
    assert_eq!(shown["status_reason"], "waiting_for_approval");
    assert_eq!(shown["wait"]["cause"], "approval");
    assert_eq!(shown["wait"]["reference"], "req-1");
    assert!(shown["wait"]["until"].is_string());
    assert_eq!(shown["approval_request_id"], "req-1");
    assert_eq!(shown["approval_status"], "pending");
    assert_eq!(
        shown["approval_request_url"],
        "https://people.example/req-1"
    );
    assert_eq!(it.status().await["status"], "pending");

    let said = json!({"decision": "approved", "feedback": "fine", "response": {"n": 1}});
    let answer = it.decide(&said).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    assert_eq!(answer.json()["new_status"], "running");
    let shown = it.plane.execution(&it.id).await;
    assert_eq!(shown["status"], "running");
    assert_eq!(shown["status_reason"], "approval_approved");
    assert_eq!(shown["approval_status"], "approved");
    let told = it.told(1).await;
    assert_eq!(
        told[0]["execution_id"], it.attempt,
        "the id that the agent knows"
    );
    assert_eq!(told[0]["decision"], "approved");
    assert_eq!(told[0]["feedback"], "fine");
    assert_eq!(told[0]["response"], json!({"n": 1}));
    assert_eq!(told[0]["new_status"], "running");
    let status = it.status().await;
    assert_eq!(status["status"], "approved");
    assert_eq!(status["response"], json!({"n": 1}));
    assert!(status["responded_at"].is_string());
    assert_eq!(it.call_back("succeeded").await.status, 200);
    assert_eq!(it.plane.execution(&it.id).await["status"], "succeeded");
}

/// The same again is fine, another decision is not, and nothing counts after the end.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_decision_again_is_taken_another_is_refused() {
    let it = Waiting::sent().await;
    it.ask("r").await;
    let approve = json!({"decision": "approved"});
    assert_eq!(it.decide(&approve).await.status, 200);
    let again = it.decide(&approve).await;
    assert_eq!(
        (again.status.as_u16(), &again.json()["repeated"]),
        (200, &json!(true))
    );
    it.decide(&json!({"decision": "rejected"}))
        .await
        .is_problem(409, "conflict");
    it.told(1).await;
    assert_eq!(it.ask("r2").await.status, 200, "it may ask again");
    assert_eq!(
        it.call_back("succeeded").await.status,
        200,
        "an outcome is always taken"
    );
    it.decide(&json!({"decision": "approved", "approval_request_id": "r2"}))
        .await
        .is_problem(409, "conflict");
    let path = format!("/api/v1/agents/a/executions/{}/approval-status", it.id);
    assert_eq!(it.plane.client.get(&path).await.json()["status"], "closed");
    it.ask("r3").await.is_problem(409, "conflict");
}

/// Refusals of the ask: proof, agent, address, form, a second one.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_attempt_may_ask_and_only_to_be_told_at_its_own_address() {
    let it = Waiting::sent().await;
    let path =
        |agent: &str, id: &str| format!("/api/v1/agents/{agent}/executions/{id}/request-approval");
    let body = it.body("r");
    let post = async |path: String, body: Value| it.plane.client.post(&path, &body).await;
    let forged = format!("{}~1.AAAAAAAAAAAAAAAA", it.id);
    post(path("a", &forged), body.clone())
        .await
        .is_problem(403, "wrong_attempt");
    post(path("a", &it.id), body.clone())
        .await
        .is_problem(403, "wrong_attempt");
    let plain = json!({"approval_request_id": "r"});
    post(path("b", &it.attempt), plain)
        .await
        .is_problem(403, "wrong_attempt");
    post(path("a", "exec_unknown~1.AAAAAAAAAAAAAAAA"), body.clone())
        .await
        .is_problem(404, "not_found");
    for (field, value) in [
        (
            "callback_url",
            json!("http://127.0.0.1:1/webhooks/approval"),
        ),
        ("callback_url", json!("http://169.254.169.254/latest")),
        ("callback_url", json!("http://10.0.0.1/x")),
        ("callback_url", json!("ftp://x/y")),
        ("callback_url", json!("http://user:pw@localhost/x")),
        ("approval_request_url", json!("javascript:alert(1)")),
        ("approval_request_id", json!("")),
        ("expires_in_hours", json!(0)),
        ("expires_in_hours", json!(1e9)),
    ] {
        let mut bad = body.clone();
        bad[field] = value.clone();
        let answer = it.ask_with(&bad).await;
        assert_eq!(answer.status, 400, "{field} {value}");
        answer.is_problem(400, "validation");
    }
    assert_eq!(it.plane.execution(&it.id).await["status"], "running");
    assert_eq!(it.ask("r").await.status, 200);
    assert_eq!(it.ask("r").await.status, 200, "the same again");
    it.ask("r2").await.is_problem(409, "conflict");
}

/// Section 2: `awaiting_child`; the plane itself puts the parent back.
#[tokio::test(flavor = "multi_thread")]
async fn a_parent_waits_for_a_waiting_child_and_goes_on_without_its_agent_s_word() {
    let it = Waiting::sent().await;
    let headers = [("x-parent-execution-id", it.attempt.as_str())];
    let child = it
        .plane
        .client
        .post_with("/api/v1/execute/async/a.never", &headers, &json!({}))
        .await
        .json()["execution_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let child_attempt = it.agent.until_seen(2).await[1]
        .header("x-execution-id")
        .to_owned();
    let report = async |status: &str| {
        let path = format!("/api/v1/agents/a/executions/{}/awaiter-status", it.attempt);
        it.plane
            .client
            .post(&path, &json!({"status": status, "reason": "x"}))
            .await
    };
    let early = report("waiting").await.json();
    assert_eq!(early["applied"], false, "no child waits: {early}");
    let path = format!("/api/v1/agents/a/executions/{child_attempt}/request-approval");
    assert_eq!(it.plane.client.post(&path, &it.body("c")).await.status, 200);
    let applied = report("waiting").await.json();
    assert_eq!(
        (&applied["applied"], &applied["status"]),
        (&json!(true), &json!("waiting"))
    );
    let shown = it.plane.execution(&it.id).await;
    assert_eq!(
        shown["wait"],
        json!({"cause": "awaiting_child", "reference": child})
    );
    // The child by what it is called and what it waits for itself, not by its id.
    let why = |text: &Value| {
        let text = text.as_str().unwrap().to_owned();
        let begins = "a.never waits for a.never: a person decides, ";
        assert!(
            text.starts_with(begins) && text.ends_with(" left"),
            "{text}"
        );
    };
    why(&shown["why"]);
    let told = it.plane.client.get(&format!("/api/v1/why/{}", it.id)).await;
    let told = told.json();
    why(&told["verdict"]);
    assert!(
        told["next"].to_string().contains("expires"),
        "what it waits for has an end: {told}"
    );
    let child_why = it.plane.client.get(&format!("/api/v1/why/{child}")).await;
    let child_why = child_why.json();
    let text = child_why["verdict"].as_str().unwrap();
    assert!(
        text.starts_with("a.never waits for a person's decision on \"c\", ")
            && text.ends_with(" left"),
        "{text}"
    );
    let decide = format!("/api/v1/executions/{child}/approval-response");
    let answer = it
        .plane
        .as_person(&decide, &json!({"decision": "request_changes"}))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    assert_eq!(it.plane.execution(&it.id).await["status"], "running");
    let late = report("running").await.json();
    assert_eq!(
        (&late["applied"], &late["status"]),
        (&json!(false), &json!("running"))
    );
    report("asleep").await.is_problem(400, "validation");
}

fn signature(secret: &str, at: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{at}.{body}").as_bytes());
    let bytes = mac.finalize().into_bytes();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={at},v1={hex}")
}

fn now() -> i64 {
    muster_wire::Timestamp::wall_clock().0 / 1_000_000
}

/// The response webhook: signed, or not taken.
#[tokio::test(flavor = "multi_thread")]
async fn a_signed_decision_is_taken_and_a_forged_one_is_not() {
    let it = Waiting::with(|c| {
        c.auth.approval_webhook_secret = Some(muster_server::config::Secret::new("s3cret"));
    })
    .await;
    it.ask("req-9").await;
    let body = json!({"requestId": "req-9", "decision": "approved", "feedback": "ok"}).to_string();
    let send = async |headers: &[(&str, &str)], body: &str| {
        let path = "/api/v1/webhooks/approval-response";
        it.plane
            .client
            .send(http::Method::POST, path, headers, body.to_owned())
            .await
    };
    send(&[], &body).await.is_problem(401, "unauthenticated");
    let forged = signature("other", now(), &body);
    send(&[("x-hax-signature", &forged)], &body)
        .await
        .is_problem(401, "unauthenticated");
    let old = signature("s3cret", now() - 600, &body);
    send(&[("x-hax-signature", &old)], &body)
        .await
        .is_problem(401, "unauthenticated");
    let signed = signature("s3cret", now(), &body);
    send(
        &[("x-hax-signature", &signed)],
        &body.replace("approved", "rejected"),
    )
    .await
    .is_problem(401, "unauthenticated");
    assert_eq!(it.plane.execution(&it.id).await["status"], "waiting");
    let answer = send(&[("x-hax-signature", &signed)], &body).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    assert_eq!(
        it.plane.execution(&it.id).await["status_reason"],
        "approval_approved"
    );
    let told = it.told(1).await;
    assert_eq!(told[0]["decision"], "approved");
    assert!(
        it.agent.told_signatures()[0].starts_with("t="),
        "ours is signed too"
    );
}

/// Decided while paused: it stays paused, the answer says so, and the agent is told at the resume.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_of_a_paused_execution_says_that_it_is_paused() {
    let it = Waiting::sent().await;
    it.ask("r").await;
    let pause = format!("/api/v1/executions/{}/pause", it.id);
    assert_eq!(it.plane.as_person(&pause, &json!({})).await.status, 200);
    let answer = it.decide(&json!({"decision": "rejected"})).await.json();
    assert_eq!(answer["new_state"], "paused", "{answer}");
    assert_eq!(answer["new_status"], "waiting", "{answer}");
    assert!(it.agent.told().is_empty());
    let resume = format!("/api/v1/executions/{}/resume", it.id);
    assert_eq!(it.plane.as_person(&resume, &json!({})).await.status, 200);
    assert_eq!(it.told(1).await[0]["decision"], "rejected");
}

/// Section 7: a decision that names only the request id and fits several is a conflict.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_id_that_fits_several_must_name_its_execution() {
    let it = Waiting::sent().await;
    let second = it.plane.submit("a.never", json!({})).await;
    let other = it.agent.until_seen(2).await[1]
        .header("x-execution-id")
        .to_owned();
    it.ask("same").await;
    let path = format!("/api/v1/agents/a/executions/{other}/request-approval");
    assert_eq!(
        it.plane.client.post(&path, &it.body("same")).await.status,
        200
    );
    let hook = "/api/v1/webhooks/approval-response";
    let said = json!({"requestId": "same", "decision": "approved"});
    it.plane
        .client
        .post(hook, &said)
        .await
        .is_problem(401, "unauthenticated");
    let problem = it
        .plane
        .as_person(hook, &said)
        .await
        .is_problem(409, "conflict");
    assert_eq!(problem["details"]["approvals"].as_array().unwrap().len(), 2);
    let said = json!({"execution_id": second, "requestId": "same", "decision": "rejected"});
    assert_eq!(it.plane.as_person(hook, &said).await.status, 200);
    assert_eq!(it.plane.execution(&it.id).await["status"], "waiting");
    assert_eq!(
        it.plane.execution(&second).await["status_reason"],
        "approval_rejected"
    );
    let unknown = json!({"requestId": "nobody", "decision": "approved"});
    it.plane
        .as_person(hook, &unknown)
        .await
        .is_problem(404, "not_found");
}

/// Section 2: refused and untellable is cancelled; approved and untellable goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_that_cannot_be_told_is_carried_out_by_the_plane() {
    for (decision, end) in [("rejected", "cancelled"), ("approved", "running")] {
        let it = Waiting::sent().await;
        it.ask("r").await;
        it.agent.refuse_to_be_told();
        let answer = it.decide(&json!({"decision": decision})).await;
        assert_eq!(answer.status, 200, "{}", answer.json());
        eventually("it is known that it was not told", || async {
            let status = it.status().await;
            let told = status["told"].as_str().unwrap_or_default().to_owned();
            told.starts_with("not told").then_some(())
        })
        .await;
        let shown = it.plane.execution(&it.id).await;
        assert_eq!(shown["status"], end, "{shown}");
        assert_eq!(shown["status_reason"], format!("approval_{decision}"));
    }
}

/// Nobody to tell: the agent polls, and a refusal does not cancel behind its back.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_polls_is_not_cancelled_for_want_of_an_address() {
    let it = Waiting::sent().await;
    let body = json!({"approval_request_id": "poll"});
    assert_eq!(it.ask_with(&body).await.status, 200);
    assert_eq!(
        it.decide(&json!({"decision": "rejected"})).await.status,
        200
    );
    let status = it.status().await;
    assert_eq!(status["status"], "rejected");
    assert!(
        status["told"].as_str().unwrap().contains("polls"),
        "{status}"
    );
    assert_eq!(it.plane.execution(&it.id).await["status"], "running");
    assert!(it.agent.told().is_empty());
}

/// Expiry is stored, and survives a restart of the plane; so does what nobody was told of.
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_expires_over_a_restart_and_can_be_decided_after_it() {
    let directory = tempfile::tempdir().unwrap();
    let plane = TestPlane::sqlite(directory.path()).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let mut ids = Vec::new();
    for (n, hours) in [0.0006, 1.0].iter().enumerate() {
        ids.push(plane.submit("a.never", json!({})).await);
        let seen = agent.until_seen(n + 1).await;
        let path = format!(
            "/api/v1/agents/a/executions/{}/request-approval",
            seen[n].header("x-execution-id")
        );
        let body = json!({
            "approval_request_id": format!("r{n}"), "expires_in_hours": hours,
            "callback_url": format!("http://127.0.0.1:{}/webhooks/approval", agent.port),
        });
        assert_eq!(plane.client.post(&path, &body).await.status, 200);
    }
    plane.running.stop().await;

    let plane = TestPlane::sqlite(directory.path()).await;
    agent.beat(&plane).await;
    eventually("the first expires", || async {
        let shown = plane.execution(&ids[0]).await;
        (shown["status_reason"] == "approval_expired").then_some(())
    })
    .await;
    assert_eq!(plane.execution(&ids[1]).await["status"], "waiting");
    let path = format!("/api/v1/executions/{}/approval-response", ids[1]);
    let answer = plane
        .as_person(&path, &json!({"decision": "rejected"}))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    let told = eventually("both are told", || async {
        let told = agent.told();
        (told.len() >= 2).then_some(told)
    })
    .await;
    let decisions: Vec<_> = told
        .iter()
        .map(|t| t["decision"].as_str().unwrap())
        .collect();
    assert_eq!(decisions, ["expired", "rejected"]);
}

/// The list: pending first, filters, pages.
#[tokio::test(flavor = "multi_thread")]
async fn the_list_shows_pending_approvals_first_in_pages() {
    let it = Waiting::sent().await;
    it.ask("one").await;
    it.decide(&json!({"decision": "approved"})).await;
    it.told(1).await;
    it.ask("two").await;
    it.decide(&json!({"decision": "rejected"})).await;
    it.told(2).await;
    it.ask("three").await;
    let get = async |query: &str| {
        it.plane
            .client
            .get(&format!("/api/v1/approvals{query}"))
            .await
            .json()
    };
    let names = |page: &Value| -> Vec<String> {
        let list = page["approvals"].as_array().unwrap().iter();
        list.map(|row| row["approval_request_id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&get("").await), ["three", "two", "one"]);
    assert_eq!(names(&get("?status=pending").await), ["three"]);
    assert_eq!(names(&get("?status=rejected&agent=a").await), ["two"]);
    assert_eq!(names(&get("?agent=nobody").await), Vec::<String>::new());
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = get(&format!("?limit=1&cursor={cursor}")).await;
        seen.extend(names(&page));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, ["three", "two", "one"]);
    let bad = it.plane.client.get("/api/v1/approvals?status=maybe").await;
    bad.is_problem(400, "validation");
}
