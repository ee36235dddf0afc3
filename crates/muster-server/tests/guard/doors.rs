//! Host and origin.

use crate::support::{World, wire};

#[tokio::test]
async fn a_foreign_host_is_misdirected_unless_a_valid_key_comes_along() {
    let world =
        World::with(|config| config.server.allowed_hosts = vec!["plane.example".into()]).await;
    for host in [
        "localhost",
        "127.0.0.1:8080",
        "[::1]:1",
        "plane.example:443",
    ] {
        let answer = world.send("GET", "/healthz", &[("Host", host)], b"").await;
        assert_eq!(answer.status, 200, "{host}: {}", answer.text());
    }
    // What a rebound name sends: our address behind somebody else's name.
    for host in [
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "user@localhost",
    ] {
        for path in ["/healthz", "/api/v1/health", "/nowhere", "/docs"] {
            let answer = world.send("GET", path, &[("Host", host)], b"").await;
            assert_eq!(
                (answer.status, answer.category().as_str()),
                (421, "permission_denied"),
                "{host} {path}"
            );
        }
        let headers = [("Host", host), ("X-API-Key", world.owner.as_str())];
        assert_eq!(
            world
                .send("GET", "/api/v1/keys", &headers, b"")
                .await
                .status,
            200
        );
        let headers = [("Host", host), ("X-API-Key", "mk_wrong")];
        assert_eq!(
            world
                .send("GET", "/api/v1/keys", &headers, b"")
                .await
                .status,
            421
        );
    }
}

#[tokio::test]
async fn the_authority_of_an_absolute_target_counts_as_the_host() {
    let world = World::start().await;
    let fine = world
        .send("GET", "http://localhost/healthz", &[], b"")
        .await;
    assert_eq!(fine.status, 200);
    let foreign = world
        .send("GET", "http://evil.example/healthz", &[], b"")
        .await;
    assert_eq!(foreign.status, 421);
    let hidden = world
        .send(
            "GET",
            "http://localhost/healthz",
            &[("Host", "evil.example")],
            b"",
        )
        .await;
    assert_eq!(hidden.status, 421);
}

#[tokio::test]
async fn a_request_without_a_host_passes_only_as_http_1_0() {
    let world = World::start().await;
    let old = wire::raw(world.plane.address, b"GET /healthz HTTP/1.0\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(old.status, 200);
    let new = wire::raw(
        world.plane.address,
        b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n",
    )
    .await
    .unwrap();
    assert!(new.status == 421 || new.status == 400, "{}", new.status);
    let two = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert_eq!(
        wire::raw(world.plane.address, two).await.unwrap().status,
        421
    );
}

#[tokio::test]
async fn a_foreign_origin_is_refused_on_every_method_and_for_sockets() {
    let world = World::start().await;
    let host = world.plane.address.to_string();
    for origin in [
        "http://evil.example",
        "null",
        "http://localhost:1",
        "https://127.0.0.1.evil.example",
        "file://",
    ] {
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            let headers = [("Host", host.as_str()), ("Origin", origin)];
            let answer = world.send(method, "/api/v1/health", &headers, b"").await;
            assert_eq!(answer.status, 403, "{method} {origin}");
            assert!(
                answer
                    .headers
                    .iter()
                    .all(|(name, _)| !name.starts_with("access-control-"))
            );
            if method != "HEAD" {
                assert_eq!(answer.category(), "permission_denied");
            }
        }
        let socket = [
            ("Host", host.as_str()),
            ("Origin", origin),
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        assert_eq!(
            world
                .send("GET", "/api/v1/memory/events/ws", &socket, b"")
                .await
                .status,
            403
        );
        // A key does not help a page that is not ours.
        let with_key = [
            ("Host", host.as_str()),
            ("Origin", origin),
            ("X-API-Key", world.owner.as_str()),
        ];
        assert_eq!(
            world
                .send("GET", "/api/v1/keys", &with_key, b"")
                .await
                .status,
            403
        );
    }
    let own = format!("http://{host}");
    let headers = [
        ("Host", host.as_str()),
        ("Origin", own.as_str()),
        ("Sec-Fetch-Site", "same-origin"),
    ];
    assert_eq!(
        world.send("GET", "/healthz", &headers, b"").await.status,
        200
    );
}

#[tokio::test]
async fn a_link_from_elsewhere_opens_a_page_and_nothing_else() {
    let world = World::start().await;
    let link = [
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Mode", "navigate"),
        ("Sec-Fetch-Dest", "document"),
    ];
    let page = world.send("GET", "/docs", &link, b"").await;
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    for path in ["/api/v1/health", "/openapi.json", "/healthz", "/metrics"] {
        assert_eq!(
            world.send("GET", path, &link, b"").await.status,
            403,
            "{path}"
        );
    }
    assert_eq!(
        world
            .send("GET", "/docs", &[("Sec-Fetch-Site", "cross-site")], b"")
            .await
            .status,
        403
    );
}

#[tokio::test]
async fn a_browser_may_post_only_json_and_a_program_anything() {
    let world = World::start().await;
    let host = world.plane.address.to_string();
    let own = format!("http://{host}");
    let wanted = br#"{"name":"n","scopes":["read"]}"#;
    for (kind, status) in [
        ("text/plain", 400),
        ("application/x-www-form-urlencoded", 400),
        ("application/json", 201),
    ] {
        let headers = [
            ("Host", host.as_str()),
            ("Origin", own.as_str()),
            ("X-API-Key", world.owner.as_str()),
            ("Content-Type", kind),
        ];
        assert_eq!(
            world
                .send("POST", "/api/v1/keys", &headers, wanted)
                .await
                .status,
            status,
            "{kind}"
        );
        let program = [headers[0], headers[2], headers[3]];
        assert_eq!(
            world
                .send("POST", "/api/v1/keys", &program, wanted)
                .await
                .status,
            201,
            "{kind}"
        );
    }
}
