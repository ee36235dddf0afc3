//! What a key opened ends with the key: links, terminals and tunnels of nodes, the sessions of
//! viewers, the nodes of a broker whose workspace key is revoked.

use std::time::Duration;

use muster_server::auth::{Scope, Subject};
use muster_wire::{NodeId, Timestamp};
use serde_json::{Value, json};

use super::{node_is, quick};
use crate::support::{Daemon, Enrolled, TestPlane};

/// Makes a key and gives its id and text.
fn key(plane: &TestPlane, scope: Scope, expires_at: Option<Timestamp>) -> (String, String) {
    let app = &plane.running.app;
    let now = Timestamp::wall_clock();
    let annex = &*app.stores.annex;
    let made = app
        .auth
        .create(annex, "k", &[scope], "carol", expires_at, now);
    let (text, record) = made.unwrap();
    (record.id, text.expose().to_owned())
}

async fn revoke(plane: &TestPlane, id: &str) {
    let (_, admin) = key(plane, Scope::Admin, None);
    let answer = plane
        .client
        .post_with(
            &format!("/api/v1/keys/{id}/revoke"),
            &[("x-api-key", &admin)],
            &json!({}),
        )
        .await;
    assert_eq!(answer.status, 200, "{}", answer.json());
}

/// A node whose key can be named: its id, and the node.
async fn enrolled(plane: &TestPlane, expires_at: Option<Timestamp>) -> (String, Enrolled) {
    let mut node = Enrolled::new(plane, "edge-1", &[], 4).await;
    let (id, text) = key(
        plane,
        Scope::Node(NodeId::trusted(node.id.as_str())),
        expires_at,
    );
    node.token = text;
    (id, node)
}

#[tokio::test]
async fn the_sockets_of_a_node_close_when_its_key_is_revoked() {
    let plane = TestPlane::with(quick).await;
    let (id, node) = enrolled(&plane, None).await;
    let mut link = node.connect().await;
    let mut terminal = node.open("/v1/node/terminal/ws", &[]).await.unwrap();
    revoke(&plane, &id).await;
    for wire in [&mut link, &mut terminal] {
        let (code, why) = wire.closed().await.unwrap();
        assert_eq!(code, 1008);
        assert!(why.contains("its key was revoked"), "{why}");
    }
    let again = node.open("/v1/node/ws", &[]).await;
    assert!(again.is_err());
}

#[tokio::test]
async fn the_link_of_a_node_closes_when_its_key_expires_or_has_been_rotated() {
    let plane = TestPlane::with(quick).await;
    let until = Timestamp::wall_clock() + Duration::from_secs(2);
    let (_, node) = enrolled(&plane, Some(until)).await;
    let (code, why) = node.connect().await.closed().await.unwrap();
    assert_eq!((code, why.as_str()), (1008, "its key has expired"));

    let (id, text) = key(&plane, Scope::Node(NodeId::trusted(node.id.as_str())), None);
    let rotated = Enrolled {
        token: text,
        ..node.clone()
    };
    let mut link = rotated.connect().await;
    let app = &plane.running.app;
    let now = app.clock.now();
    let made = app.auth.rotate(&*app.stores.annex, &id, now, now).unwrap();
    assert!(made.is_some());
    assert_eq!(link.closed().await.unwrap().0, 1008);
}

#[tokio::test]
async fn the_link_of_a_node_closes_when_it_is_enrolled_again_or_deleted() {
    let plane = TestPlane::with(quick).await;
    let (_, node) = enrolled(&plane, None).await;
    let mut link = node.connect().await;
    let app = &plane.running.app;
    let whose = Subject::Node(NodeId::trusted(node.id.as_str()));
    let now = app.clock.now();
    let issued = app.auth.issue(&*app.stores.annex, &whose, "owner", now);
    let again = Enrolled {
        token: issued.unwrap().0.expose().to_owned(),
        ..node.clone()
    };
    assert_eq!(link.closed().await.unwrap().0, 1008);

    let mut link = again.connect().await;
    let mut terminal = again.open("/v1/node/terminal/ws", &[]).await.unwrap();
    let path = format!("/api/v1/fleet/nodes/{}", node.name);
    let headers = [("x-api-key", plane.key())];
    let deleted = plane
        .client
        .send(http::Method::DELETE, &path, &headers, "")
        .await;
    assert_eq!(deleted.status, 200, "{}", deleted.json());
    assert!(link.closed().await.is_some());
    assert!(terminal.closed().await.is_some());
}

/// A workspace key that is revoked takes the tokens of the nodes that were enrolled with it, and
/// with them their links. A key that others of the same owner enrolled with takes nothing of them.
#[tokio::test]
async fn a_revoked_workspace_key_ends_the_nodes_that_were_enrolled_with_it() {
    let plane = TestPlane::with(quick).await;
    let (id, workspace) = key(&plane, Scope::Relay, None);
    let (_, other) = key(&plane, Scope::Relay, None);
    let mut links = Vec::new();
    for (name, key) in [("broker-1", &workspace), ("broker-2", &other)] {
        let answer = plane
            .client
            .post_with(
                "/v1/nodes",
                &[("authorization", &format!("Bearer {key}"))],
                &json!({"node_id": name, "name": name, "max_agents": 4}),
            )
            .await;
        assert_eq!(answer.status, 201, "{}", answer.json());
        let node = Enrolled {
            id: name.into(),
            name: name.into(),
            token: answer.json()["data"]["token"].as_str().unwrap().to_owned(),
            address: plane.running.address.to_string(),
            labels: Vec::new(),
            actions: &[],
            max: 4,
        };
        let mut wire = node.open("/v1/node/ws", &[]).await.unwrap();
        wire.say(
            &json!({"v": 1, "type": "node.register", "id": "r1", "name": name,
                         "node_id": name, "capabilities": [], "max_agents": 4}),
        )
        .await;
        assert_eq!(wire.hear("reply").await["ok"], true);
        links.push((node, wire));
    }
    revoke(&plane, &id).await;
    let (node, link) = &mut links[0];
    assert_eq!(link.closed().await.unwrap().0, 1008);
    assert!(node.open("/v1/node/ws", &[]).await.is_err());
    let (node, _) = &links[1];
    assert!(node.open("/v1/node/ws", &[]).await.is_ok());
}

/// What a tunnel carries is cut when its node's key is revoked.
#[tokio::test]
async fn a_tunnel_is_cut_when_the_key_of_its_node_is_revoked() {
    use tokio::io::AsyncReadExt as _;

    let plane = TestPlane::with(quick).await;
    let (id, node) = enrolled(&plane, None).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    let (agent, _) = super::tunnel::agent_of(&plane, &daemon, "billing").await;
    // Its port leads to somebody who hears the call and never answers.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    daemon.script.ports.lock().insert(agent.port, port);
    plane.submit("billing.echo", json!({})).await;
    let (mut called, _) = listener.accept().await.unwrap();
    let mut buffer = [0u8; 4096];
    assert!(called.read(&mut buffer).await.unwrap() > 0);
    revoke(&plane, &id).await;
    let end = async { while called.read(&mut buffer).await.is_ok_and(|n| n > 0) {} };
    let end = tokio::time::timeout(Duration::from_secs(10), end).await;
    assert!(end.is_ok(), "the tunnel goes on");
}

/// A session that a key opened ends when the key is revoked, and when it expires.
#[tokio::test]
async fn a_viewer_s_session_ends_with_their_key() {
    let stage = super::terminal::Stage::set().await;
    let until = Timestamp::wall_clock() + Duration::from_secs(2);
    let (id, revoked) = key(&stage.plane, Scope::Operate, None);
    let (_, expiring) = key(&stage.plane, Scope::Operate, Some(until));
    let mut one = stage.attach(&revoked).await;
    let mut two = stage.attach(&expiring).await;
    revoke(&stage.plane, &id).await;
    for (viewer, words) in [(&mut one, "its key was revoked"), (&mut two, "has expired")] {
        let closed = viewer.hear("terminal.closed").await;
        assert_eq!(closed["code"], "unauthenticated");
        assert!(
            closed["message"].as_str().unwrap().contains(words),
            "{closed}"
        );
        assert!(viewer.closed().await.is_some());
    }
}

/// A ticket is good only while the key is that asked for it.
#[tokio::test]
async fn a_ticket_is_good_only_while_its_key_is() {
    let stage = super::terminal::Stage::set().await;
    let (id, text) = key(&stage.plane, Scope::Operate, None);
    let path = format!("{}/ticket", stage.path());
    let headers = [("x-api-key", text.as_str())];
    let ticket = || async {
        let answer = stage
            .plane
            .client
            .post_with(&path, &headers, &json!({}))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.json());
        let Value::String(url) = answer.json()["url"].take() else {
            panic!("no url");
        };
        url
    };
    let (used, late) = (ticket().await, ticket().await);
    let mut viewer = stage.try_attach(&used, None).await.unwrap();
    revoke(&stage.plane, &id).await;
    // One that a ticket opened ends with the ticket's key, too.
    assert_eq!(
        viewer.hear("terminal.closed").await["code"],
        "unauthenticated"
    );
    assert!(stage.try_attach(&late, None).await.is_err());
}

/// A browser that signed in attaches with its cookie, from a page of the plane alone, and what it
/// opened ends when it signs out; a ticket that it asked for ends with it.
#[tokio::test]
async fn a_browser_attaches_with_its_session_and_ends_with_it() {
    let stage = super::terminal::Stage::set().await;
    let (_, text) = key(&stage.plane, Scope::Operate, None);
    let url = stage.plane.url();
    let body = json!({ "key": text });
    let origin = [("origin", url.as_str())];
    let answer = stage
        .plane
        .client
        .post_with("/api/v1/session", &origin, &body)
        .await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    let cookie = answer.header("set-cookie").unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let own = [("origin", url.as_str()), ("cookie", cookie.as_str())];
    assert!(
        stage.attach_with(&[own[1]]).await.is_err(),
        "nothing says which page asks"
    );
    let foreign = [("origin", "http://evil.example"), own[1]];
    assert!(stage.attach_with(&foreign).await.is_err());
    let mut viewer = stage.attach_with(&own).await.unwrap();
    let path = format!("{}/ticket", stage.path());
    let ticket = stage.plane.client.post_with(&path, &own, &json!({})).await;
    let ticket = ticket.json()["url"].as_str().unwrap().to_owned();
    let out = stage
        .plane
        .client
        .send(http::Method::DELETE, "/api/v1/session", &own, "")
        .await;
    assert_eq!(out.status, 204);
    let closed = viewer.hear("terminal.closed").await;
    assert_eq!(closed["code"], "unauthenticated");
    assert_eq!(closed["message"], "its session is over");
    assert!(stage.try_attach(&ticket, None).await.is_err());
}
