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
        "/api/v1/executions/e/pause",
        "/api/v1/executions/e/restart",
        "/api/v1/agents/a/executions/e/request-approval",
        "/api/v1/nodes/register-serverless",
        "/mcp",
        "/v1/agents",
    ] {
        let answer = plane.client.send(Method::POST, path, &owner, "{}").await;
        answer.is_problem(501, "not_supported");
    }
}
