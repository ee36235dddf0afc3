//! What is not there: 501 for what the design names, 404 and 405 in the one error shape.

use http::Method;

use crate::support::TestPlane;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_said_in_the_one_shape() {
    let plane = TestPlane::start().await;
    let owner = [];
    for (method, path, status, category) in [
        (Method::GET, "/api/v1/nothing", 404, "not_found"),
        (Method::DELETE, "/api/v1/executions", 405, "validation"),
        (Method::GET, "/api/v1/execute/a.b", 405, "validation"),
    ] {
        let answer = plane.client.send(method, path, &owner, "").await;
        answer.is_problem(status, category);
    }
    for path in [
        "/api/v1/nodes/register-serverless",
        "/api/v1/sessions",
        "/api/v1/sessions/s/memory",
    ] {
        let answer = plane.client.send(Method::POST, path, &owner, "{}").await;
        let problem = answer.is_problem(501, "not_supported");
        let link = problem["details"]["link"].as_str().unwrap();
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        assert!(std::path::Path::new(root).join(link).is_file(), "{link}");
    }
    // Relay's surface has an envelope of its own around the same word.
    for path in ["/v1/dm", "/v1/agents/x/rotate-token"] {
        let answer = plane.client.send(Method::POST, path, &owner, "{}").await;
        assert_eq!(answer.status, 501);
        let body = answer.json();
        assert_eq!(
            (&body["ok"], &body["error"]["code"]),
            (&false.into(), &"not_supported".into())
        );
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.ends_with("see docs/relay.md"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_at_the_root_is_sent_to_the_dashboard() {
    let plane = TestPlane::start().await;
    let browser = [("accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")];
    let answer = plane.client.send(Method::GET, "/", &browser, "").await;
    assert_eq!(answer.status, 303);
    assert_eq!(answer.header("location"), Some("/ui/"));
    let program = [("accept", "application/json")];
    let answer = plane.client.send(Method::GET, "/", &program, "").await;
    answer.is_problem(404, "not_found");
    let answer = plane.client.send(Method::GET, "/x", &browser, "").await;
    answer.is_problem(404, "not_found");
}
