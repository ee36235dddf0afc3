//! Signing in and out, from a browser's side: what its cookie may do, for how long, and what
//! ends with it.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::World;
use crate::support::wire::{Answer, DEADLINE};

/// A browser that shows pages of the plane.
struct Browser<'a> {
    world: &'a World,
    origin: String,
    cookie: String,
}

impl<'a> Browser<'a> {
    fn new(world: &'a World) -> Self {
        let origin = format!("http://{}", world.plane.address);
        Self {
            world,
            origin,
            cookie: String::new(),
        }
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        let host = self.world.plane.address.to_string();
        let mut headers = vec![("Host", host.as_str()), ("Sec-Fetch-Site", "same-origin")];
        if method != "GET" {
            headers.push(("Origin", &self.origin));
            headers.push(("Content-Type", "application/json"));
        }
        if !self.cookie.is_empty() {
            headers.push(("Cookie", &self.cookie));
        }
        let body = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        self.world.send(method, path, &headers, &body).await
    }

    async fn try_sign_in(&mut self, with: Value) -> Answer {
        let answer = self.send("POST", "/api/v1/session", &with).await;
        if let Some(cookie) = answer.header("set-cookie") {
            cookie
                .split(';')
                .next()
                .unwrap()
                .clone_into(&mut self.cookie);
        }
        answer
    }

    async fn sign_in(world: &'a World, key: &str) -> Self {
        let mut browser = Self::new(world);
        let answer = browser.try_sign_in(json!({ "key": key })).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        browser
    }

    async fn status(&self, method: &str, path: &str, body: Value) -> u16 {
        self.send(method, path, &body).await.status
    }

    async fn may_hold(&self) -> u16 {
        self.status("POST", "/api/v1/hold", json!({ "reason": "test" }))
            .await
    }
}

#[tokio::test]
async fn a_key_becomes_a_cookie_that_scripts_and_other_sites_never_see() {
    let world = World::start().await;
    let (id, key) = world.key(&["read", "operate"]).await;
    let mut browser = Browser::new(&world);
    assert_eq!(browser.may_hold().await, 401);
    let answer = browser.try_sign_in(json!({ "key": key })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let port = world.plane.address.port();
    let cookie = answer.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with(&format!("muster_session_{port}=ses_")),
        "{cookie}"
    );
    assert!(
        cookie.ends_with("; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict"),
        "no Secure without TLS: {cookie}"
    );
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let said = answer.json();
    assert_eq!(said["scopes"], json!(["read", "operate"]));
    assert!(!answer.text().contains(&key) && !answer.text().contains("ses_"));
    assert_eq!(browser.may_hold().await, 200);
    assert_eq!(
        browser.status("GET", "/api/v1/keys", Value::Null).await,
        403
    );

    let shown = browser
        .send("GET", "/api/v1/session", &Value::Null)
        .await
        .json();
    assert_eq!(
        (&shown["signed_in"], &shown["by"]),
        (&json!(true), &json!("session"))
    );
    assert_eq!(
        (&shown["key_id"], &shown["scopes"]),
        (&json!(id), &said["scopes"])
    );
    assert_eq!(shown["expires_at"], said["expires_at"]);
    assert!(shown["idle_until"].as_str() < shown["expires_at"].as_str());
    let needs: Vec<&str> = shown["needs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|need| need["scope"].as_str().unwrap())
        .collect();
    assert_eq!(needs, ["call", "admin"]);
}

#[tokio::test]
async fn the_session_is_the_browser_s_after_a_restart_and_the_store_has_only_its_hash() {
    let world = World::start().await;
    let browser = Browser::sign_in(&world, &world.owner).await;
    let cookie = browser.cookie.clone();
    let text = cookie.split('=').nth(1).unwrap().to_owned();
    let keys = browser
        .send("GET", "/api/v1/keys?all=true", &Value::Null)
        .await;
    assert_eq!(keys.status, 200);
    assert!(keys.text().contains("session:key_") && !keys.text().contains(&text));
    let dir = world.dir.clone();
    let port = world.plane.address.port();
    world.plane.stop().await;
    for file in std::fs::read_dir(dir.path()).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        let found = bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes());
        assert!(!found, "the session's text is in {}", path.display());
    }
    let again = World::on(dir, |config| config.server.listen.set_port(port)).await;
    let mut browser = Browser::new(&again);
    browser.cookie = cookie;
    assert_eq!(browser.may_hold().await, 200);
}

#[tokio::test]
async fn behind_tls_the_cookie_is_secure() {
    let world = World::start().await;
    let host = world.plane.address.to_string();
    let secure = format!("https://{host}");
    let headers = [
        ("Host", host.as_str()),
        ("Origin", secure.as_str()),
        ("Content-Type", "application/json"),
    ];
    let body = json!({ "key": world.owner }).to_string();
    let answer = world
        .send("POST", "/api/v1/session", &headers, body.as_bytes())
        .await;
    assert!(answer.header("set-cookie").unwrap().ends_with("; Secure"));
}

#[tokio::test]
async fn a_cookie_acts_only_for_pages_of_the_plane() {
    let world = World::start().await;
    let browser = Browser::sign_in(&world, &world.owner).await;
    let host = world.plane.address.to_string();
    let body = br#"{"reason":"r"}"#;
    let hold = async |more: &[(&str, &str)]| {
        let own = [("Host", host.as_str()), ("Cookie", &browser.cookie)];
        let headers: Vec<(&str, &str)> = own.into_iter().chain(more.iter().copied()).collect();
        world
            .send("POST", "/api/v1/hold", &headers, body)
            .await
            .status
    };
    let json = ("Content-Type", "application/json");
    assert_eq!(hold(&[json, ("Origin", &browser.origin)]).await, 200);
    assert_eq!(hold(&[json, ("Sec-Fetch-Site", "same-origin")]).await, 200);
    assert_eq!(hold(&[json]).await, 403, "nothing says who asks");
    assert_eq!(hold(&[json, ("Origin", "http://evil.example")]).await, 403);
    // Another port of this machine is the same site to a browser, and sends the cookie along.
    let neighbour = [
        json,
        ("Origin", "http://127.0.0.1:1"),
        ("Sec-Fetch-Site", "same-site"),
    ];
    assert_eq!(hold(&neighbour).await, 403);
    assert_eq!(
        hold(&[
            ("Origin", browser.origin.as_str()),
            ("Content-Type", "text/plain")
        ])
        .await,
        400
    );

    let read = async |site: &str| {
        let headers = [
            ("Host", host.as_str()),
            ("Cookie", &browser.cookie),
            ("Sec-Fetch-Site", site),
        ];
        world
            .send("GET", "/api/v1/keys", &headers, b"")
            .await
            .status
    };
    assert_eq!(read("same-origin").await, 200);
    assert_eq!(read("none").await, 200);
    assert_eq!(read("same-site").await, 401, "it does not count there");
    assert_eq!(read("cross-site").await, 403);
    // A name that was made to point here has a cookie, too.
    let rebound = [("Host", "evil.example"), ("Cookie", &*browser.cookie)];
    assert_eq!(
        world
            .send("GET", "/api/v1/keys", &rebound, b"")
            .await
            .status,
        421
    );
    // What is in a cookie is no key, and a key is none in a cookie.
    let text = browser.cookie.split('=').nth(1).unwrap();
    assert_eq!(
        world.as_key(text, "GET", "/api/v1/keys", b"").await.status,
        401
    );
    let name = browser.cookie.split('=').next().unwrap();
    let mut thief = Browser::new(&world);
    thief.cookie = format!("{name}={}", world.owner);
    assert_eq!(thief.status("GET", "/api/v1/keys", Value::Null).await, 401);
}

#[tokio::test]
async fn wrong_ones_are_told_nothing_and_slowed_down_and_a_right_key_is_not() {
    let world = World::start().await;
    let (id, key) = world.key(&["read"]).await;
    world
        .as_owner("POST", &format!("/api/v1/keys/{id}/revoke"), &Value::Null)
        .await;
    let mut browser = Browser::new(&world);
    let mut sentences = std::collections::HashSet::new();
    for wrong in [key.as_str(), "mk_nonsense", "", &"x".repeat(300)] {
        let answer = browser.try_sign_in(json!({ "key": wrong })).await;
        assert_eq!(
            (answer.status, answer.category().as_str()),
            (401, "unauthenticated")
        );
        assert!(answer.header("set-cookie").is_none());
        sentences.insert(answer.json()["message"].as_str().unwrap().to_owned());
    }
    assert_eq!(sentences.len(), 1, "{sentences:?}");
    for wrong in [
        json!({}),
        json!({"key": "a", "code": "b"}),
        json!({"keys": "a"}),
        json!([1]),
        json!({"key": 1}),
    ] {
        let answer = browser.try_sign_in(wrong.clone()).await;
        assert_eq!(answer.status, 400, "{wrong}");
    }
    let huge = browser
        .try_sign_in(json!({ "key": "x".repeat(10_000) }))
        .await;
    assert_eq!(huge.status, 413);
    for _ in 0..6 {
        browser
            .try_sign_in(json!({ "code": "AAAA-BBBB-CCCC" }))
            .await;
    }
    for wrong in [
        json!({ "key": "mk_nonsense" }),
        json!({ "code": "AAAA-BBBB-CCCC" }),
    ] {
        let limited = browser.try_sign_in(wrong).await;
        assert_eq!(
            (limited.status, limited.category().as_str()),
            (429, "rate_limited")
        );
        let wait: u64 = limited.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
    }
    let right = browser.try_sign_in(json!({ "key": world.owner })).await;
    assert_eq!(
        right.status, 200,
        "nobody is shut out by somebody else's guesses"
    );

    let log = world
        .as_owner("GET", "/api/v1/audit?action=session", &Value::Null)
        .await
        .json();
    let lines = log["lines"].as_array().unwrap();
    let refused: Vec<&Value> = lines
        .iter()
        .filter(|l| l["action"] == "session.refused")
        .collect();
    assert_eq!(refused.len(), 10, "a flood does not flood the log");
    assert!(
        refused[0]["detail"]
            .as_str()
            .unwrap()
            .contains("nothing more"),
        "{refused:?}"
    );
    assert_eq!(refused[0]["object"], "127.0.0.1");
    assert!(!log.to_string().contains("mk_nonsense") && !log.to_string().contains("AAAA"));
}

#[tokio::test]
async fn a_code_signs_in_once_with_the_rights_of_its_key_or_fewer() {
    let world = World::start().await;
    let make = async |key: &str, body: Value| {
        world
            .as_key(
                key,
                "POST",
                "/api/v1/keys/code",
                body.to_string().as_bytes(),
            )
            .await
    };
    let made = make(&world.owner, Value::Null).await;
    assert_eq!(made.status, 400, "null is no object");
    let made = make(&world.owner, json!({})).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.json();
    let code = made["code"].as_str().unwrap();
    assert_eq!(
        made["path"],
        format!("/ui/login#code={code}"),
        "never where a server sees it"
    );
    let mut browser = Browser::new(&world);
    let typed = code.to_lowercase().replace('-', " ");
    let answer = browser.try_sign_in(json!({ "code": typed })).await;
    assert_eq!(
        (answer.status, &answer.json()["scopes"]),
        (200, &json!(["admin"]))
    );
    assert_eq!(
        browser.status("GET", "/api/v1/keys", Value::Null).await,
        200
    );
    let again = Browser::new(&world)
        .try_sign_in(json!({ "code": code }))
        .await;
    assert_eq!(again.status, 401, "once");

    let fewer = make(&world.owner, json!({ "scopes": ["read"] }))
        .await
        .json();
    let mut guest = Browser::new(&world);
    guest.try_sign_in(json!({ "code": fewer["code"] })).await;
    assert_eq!(guest.status("GET", "/api/v1/runs", Value::Null).await, 200);
    assert_eq!(guest.may_hold().await, 403);
    // What a session lacks it cannot give itself by a code.
    assert_eq!(
        guest
            .status("POST", "/api/v1/keys/code", json!({ "scopes": ["admin"] }))
            .await,
        403
    );
    assert_eq!(
        guest.status("POST", "/api/v1/keys/code", json!({})).await,
        201
    );

    let (id, reader) = world.key(&["read"]).await;
    assert_eq!(
        make(&reader, json!({ "scopes": ["operate"] })).await.status,
        403
    );
    let code = make(&reader, json!({})).await.json()["code"].clone();
    world
        .as_owner("POST", &format!("/api/v1/keys/{id}/revoke"), &Value::Null)
        .await;
    let dead = Browser::new(&world)
        .try_sign_in(json!({ "code": code }))
        .await;
    assert_eq!(dead.status, 401, "its key was revoked");
    assert_eq!(
        world
            .send("POST", "/api/v1/keys/code", &[], b"{}")
            .await
            .status,
        401
    );
}

#[tokio::test]
async fn the_keys_of_programs_sign_in_nowhere() {
    let world = World::start().await;
    for scopes in [vec!["worker:wrk_1"], vec!["node:node_1"], vec!["relay"]] {
        let (_, key) = world.key(&scopes).await;
        let answer = Browser::new(&world)
            .try_sign_in(json!({ "key": key }))
            .await;
        assert_eq!(
            (answer.status, answer.category().as_str()),
            (403, "permission_denied"),
            "{scopes:?}"
        );
        let code = world.as_key(&key, "POST", "/api/v1/keys/code", b"{}").await;
        assert_eq!(code.status, 403, "{scopes:?}");
    }
}

#[tokio::test]
async fn who_asks_is_told_to_everybody() {
    let world = World::start().await;
    let here = world.get("/api/v1/session").await.json();
    assert_eq!(
        (&here["signed_in"], &here["loopback"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(
        (&here["by"], &here["principal"]),
        (&json!("loopback"), &json!("owner"))
    );
    assert_eq!(here["scopes"], json!(["read", "call", "agent"]));
    assert_eq!(here["needs"].as_array().unwrap().len(), 2);
    let afar = [("X-Forwarded-For", "203.0.113.9")];
    let afar = world.send("GET", "/api/v1/session", &afar, b"").await;
    assert_eq!(afar.status, 200);
    let afar = afar.json();
    assert_eq!(
        (&afar["by"], &afar["principal"]),
        (&json!("nobody"), &Value::Null)
    );
    assert_eq!(afar["needs"].as_array().unwrap().len(), 4);
    let owner = world
        .as_owner("GET", "/api/v1/session", &Value::Null)
        .await
        .json();
    assert_eq!((&owner["by"], &owner["needs"]), (&json!("key"), &json!([])));
}

#[tokio::test]
async fn signing_out_takes_the_cookie_away_and_ends_the_session() {
    let world = World::start().await;
    let browser = Browser::sign_in(&world, &world.owner).await;
    let other = Browser::sign_in(&world, &world.owner).await;
    let without_origin = [("Cookie", browser.cookie.as_str())];
    let forged = world
        .send("DELETE", "/api/v1/session", &without_origin, b"")
        .await;
    assert_eq!(forged.status, 403);
    let out = browser
        .send("DELETE", "/api/v1/session", &Value::Null)
        .await;
    assert_eq!(out.status, 204);
    assert!(
        out.header("set-cookie")
            .unwrap()
            .contains("=; Path=/; Max-Age=0;")
    );
    assert_eq!(
        browser.may_hold().await,
        401,
        "the cookie that somebody copied is worth nothing"
    );
    assert_eq!(
        browser.status("GET", "/api/v1/runs", Value::Null).await,
        200,
        "as on loopback"
    );
    assert_eq!(other.may_hold().await, 200, "another browser stays");
    assert_eq!(
        world
            .send("DELETE", "/api/v1/session", &[], b"")
            .await
            .status,
        204
    );
}

/// Acceptance: one browser, one session.
#[tokio::test]
async fn signing_in_again_ends_the_session_that_the_browser_had() {
    let world = World::start().await;
    let other = Browser::sign_in(&world, &world.owner).await;
    let mut browser = Browser::sign_in(&world, &world.owner).await;
    let first = browser.cookie.clone();
    let (_, key) = world.key(&["read", "operate"]).await;
    let again = browser.try_sign_in(json!({ "key": key })).await;
    assert_eq!(again.status, 200, "{}", again.text());
    assert_ne!(browser.cookie, first);
    assert_eq!(browser.may_hold().await, 200);
    let old = Browser {
        cookie: first,
        ..Browser::new(&world)
    };
    assert_eq!(old.may_hold().await, 401, "it is over");
    assert_eq!(other.may_hold().await, 200, "another browser stays");
    let wrong = browser.try_sign_in(json!({ "key": "mst_wrong" })).await;
    assert_eq!(wrong.status, 401);
    assert_eq!(browser.may_hold().await, 200, "a wrong key ends nothing");
    let lines = world
        .as_owner("GET", "/api/v1/audit?action=session.ended", &Value::Null)
        .await
        .json();
    assert_eq!(lines["lines"].as_array().unwrap().len(), 1, "{lines}");
    assert_eq!(lines["lines"][0]["detail"], "its browser signed in anew");
}

/// Uses are told by the minute; a key is not used before it is made.
#[tokio::test]
async fn no_key_was_used_before_it_was_made() {
    let world = World::start().await;
    let (id, key) = world.key(&["read"]).await;
    let headers = [("X-API-Key", key.as_str())];
    let used = world.send("GET", "/api/v1/runs", &headers, b"").await;
    assert_eq!(used.status, 200);
    let keys = world.as_owner("GET", "/api/v1/keys", &Value::Null).await;
    let keys = keys.json();
    let mine = keys["keys"].as_array().unwrap();
    let mine = mine.iter().find(|k| k["id"] == id.as_str()).unwrap();
    let text = |name: &str| {
        mine[name]
            .as_str()
            .unwrap_or_else(|| panic!("{mine}"))
            .to_owned()
    };
    assert!(text("last_used_at") >= text("created_at"), "{mine}");
}

/// Opens the event stream with a cookie or a key, and waits until it is there.
async fn stream(world: &World, header: &str) -> TcpStream {
    let mut socket = TcpStream::connect(world.plane.address).await.unwrap();
    let host = world.plane.address;
    let head = format!(
        "GET /api/v1/events HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n{header}\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut text = String::new();
    let mut piece = [0; 4096];
    while !text.contains("\r\n\r\n") || !text.contains(": connected") {
        let n = timeout(DEADLINE, socket.read(&mut piece))
            .await
            .unwrap()
            .unwrap();
        assert!(n > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&piece[..n]));
    }
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    socket
}

/// Whether a stream ends by itself.
async fn ends(mut socket: TcpStream) {
    let mut piece = [0; 4096];
    let end = async {
        let mut tail = Vec::new();
        loop {
            match socket.read(&mut piece).await {
                Ok(0) | Err(_) => return,
                Ok(n) => tail.extend_from_slice(&piece[..n]),
            }
            // The last chunk: the answer is over, the connection may be used again.
            if tail.ends_with(b"\r\n0\r\n\r\n") || tail == b"0\r\n\r\n" {
                return;
            }
        }
    };
    timeout(DEADLINE, end).await.expect("the stream ends");
}

#[tokio::test]
async fn streams_end_with_the_session_and_the_key_and_are_counted_until_then() {
    let world = World::start().await;
    let (id, key) = world.key(&["read"]).await;
    let browser = Browser::sign_in(&world, &key).await;
    let cookie = format!("Cookie: {}", browser.cookie);
    let of_session = stream(&world, &cookie).await;
    let of_key = stream(&world, &format!("X-API-Key: {key}")).await;

    let path = format!("/api/v1/keys/{id}/revoke");
    let would = world
        .as_owner("POST", &format!("{path}?dry_run=true"), &Value::Null)
        .await;
    assert_eq!(would.status, 200, "{}", would.text());
    let would = would.json();
    assert_eq!(
        (&would["dry_run"], &would["act"]),
        (&json!(true), &json!("revoke"))
    );
    assert_eq!(
        (&would["key"]["open_links"], &would["key"]["sessions"]),
        (&json!(2), &json!(1))
    );
    assert!(would["last_used_at"].is_string() && would["old_until"].is_null());
    assert_eq!(would["last_used_by"], "127.0.0.1");
    let text = would["text"].as_str().unwrap();
    assert!(
        text.contains("2 open connections and 1 signed-in browser end with it"),
        "{text}"
    );

    browser
        .send("DELETE", "/api/v1/session", &Value::Null)
        .await;
    ends(of_session).await;
    let left = async || {
        let would = world
            .as_owner("POST", &format!("{path}?dry_run=true"), &Value::Null)
            .await;
        let key = &would.json()["key"];
        (
            key["state"].clone(),
            key["open_links"].clone(),
            key["sessions"].clone(),
        )
    };
    let until = tokio::time::Instant::now() + DEADLINE;
    while left().await != (json!("active"), json!(1), json!(0)) {
        assert!(tokio::time::Instant::now() < until, "{:?}", left().await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let browser = Browser::sign_in(&world, &key).await;
    let of_session = stream(&world, &format!("Cookie: {}", browser.cookie)).await;
    world.as_owner("POST", &path, &Value::Null).await;
    ends(of_key).await;
    ends(of_session).await;
    let after = browser.send("POST", "/api/v1/keys/code", &json!({})).await;
    assert_eq!(after.status, 401, "its key was revoked");
    let log = world
        .as_owner("GET", "/api/v1/audit?action=key.revoked", &Value::Null)
        .await;
    assert!(
        log.text().contains("with 1 signed-in browser"),
        "{}",
        log.text()
    );
}

#[tokio::test]
async fn rotating_says_until_when_the_old_key_is_taken() {
    let world = World::start().await;
    let (id, _) = world.key(&["read"]).await;
    let path = format!("/api/v1/keys/{id}/rotate?dry_run=true");
    let would = world
        .as_owner("POST", &path, &json!({ "overlap_seconds": 60 }))
        .await;
    assert_eq!(would.status, 200, "{}", would.text());
    let would = would.json();
    assert!(would["old_until"].is_string(), "{would}");
    assert_eq!(
        (&would["last_used_at"], &would["last_used_by"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(would["last_used_by_unknown"], "it was never used");
    let keys = world
        .as_owner("GET", "/api/v1/keys", &Value::Null)
        .await
        .json();
    assert_eq!(
        keys["keys"].as_array().unwrap().len(),
        2,
        "nothing was made"
    );
    let none = world
        .as_owner(
            "POST",
            "/api/v1/keys/key_none/rotate?dry_run=true",
            &Value::Null,
        )
        .await;
    assert_eq!(none.status, 404);
    let owner = keys["keys"]
        .as_array()
        .unwrap()
        .iter()
        .find(|k| k["is_own"] == true)
        .unwrap();
    assert_eq!(owner["scopes"], json!(["admin"]));
}

#[tokio::test]
async fn the_audit_log_is_read_page_by_page_and_by_who_what_and_when() {
    let world = World::start().await;
    for n in 0..5 {
        let reason = json!({ "reason": format!("r{n}") });
        world.as_owner("POST", "/api/v1/hold", &reason).await;
        world.as_owner("POST", "/api/v1/unhold", &json!({})).await;
    }
    let ask = async |query: &str| {
        world
            .as_owner("GET", &format!("/api/v1/audit{query}"), &Value::Null)
            .await
    };
    let all = ask("").await.json();
    let numbers = |page: &Value| -> Vec<u64> {
        page["lines"]
            .as_array()
            .unwrap()
            .iter()
            .map(|l| l["n"].as_u64().unwrap())
            .collect()
    };
    let whole = numbers(&all);
    assert!(
        whole.len() >= 11 && whole.is_sorted_by(|a, b| a > b),
        "{whole:?}"
    );
    assert_eq!(all["next_cursor"], Value::Null);
    let (mut paged, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = ask(&format!("?limit=4{cursor}")).await.json();
        paged.extend(numbers(&page));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(paged, whole);
    let hold = ask("?action=hold&actor=owner").await.json();
    assert_eq!(hold["lines"].as_array().unwrap().len(), 10);
    let set = ask("?action=hold.set").await.json();
    assert_eq!(set["lines"].as_array().unwrap().len(), 5);
    assert_eq!(numbers(&ask("?actor=nobody").await.json()), [0; 0]);
    let key = &all["lines"].as_array().unwrap().last().unwrap()["object"];
    let of_key = ask(&format!("?object={}", key.as_str().unwrap()))
        .await
        .json();
    assert_eq!(numbers(&of_key).len(), 1);
    let at = all["lines"][0]["at"].as_str().unwrap();
    assert!(!numbers(&ask(&format!("?until={at}")).await.json()).contains(&whole[0]));
    assert!(numbers(&ask(&format!("?since={at}")).await.json()).contains(&whole[0]));
    for wrong in ["?since=yesterday", "?cursor=x", "?limit=x", "?who=owner"] {
        assert_eq!(ask(wrong).await.status, 400, "{wrong}");
    }
}
