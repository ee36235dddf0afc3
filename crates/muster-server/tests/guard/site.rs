//! The dashboard's files, from a browser's side: what it may keep, what a page may load, and
//! from where the page may be opened.

use std::collections::HashSet;

use crate::support::World;
use crate::support::wire::Answer;

const BROWSER: (&str, &str) = ("Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");

async fn page(world: &World, path: &str) -> Answer {
    world.send("GET", path, &[BROWSER], b"").await
}

fn policy(answer: &Answer) -> &str {
    answer.header("content-security-policy").unwrap()
}

#[tokio::test]
async fn every_path_of_the_dashboard_is_one_page_with_a_nonce_of_its_own() {
    let world = World::start().await;
    let mut nonces = HashSet::new();
    for path in [
        "/ui/",
        "/ui/runs/run_1",
        "/ui/agents/a/call/f",
        "/ui/login?next=%2Fui%2F",
    ] {
        let answer = page(&world, path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(
            answer.header("content-type"),
            Some("text/html; charset=utf-8")
        );
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let text = answer.text();
        let nonce = text.split('"').nth(1).unwrap().to_owned();
        assert_eq!(nonce.len(), 24, "{text}");
        assert_eq!(text.matches(&nonce).count(), 2, "{text}");
        assert_eq!(
            policy(&answer),
            format!(
                "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; \
                 img-src 'self' data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; \
                 form-action 'self'; frame-ancestors 'none'"
            )
        );
        assert!(nonces.insert(nonce), "a nonce was used twice");
    }
    for (from, to, status) in [("/", "/ui/", 303), ("/ui", "/ui/", 308)] {
        let answer = page(&world, from).await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (status, Some(to))
        );
    }
}

#[tokio::test]
async fn files_are_kept_by_name_or_by_tag_and_packed_where_the_browser_unpacks() {
    let world = World::start().await;
    let script = "/ui/assets/main-abc123.js";
    let plain = world.get(script).await;
    assert_eq!(
        (plain.status, plain.text().as_str()),
        (200, "console.log(1)")
    );
    assert_eq!(
        plain.header("cache-control"),
        Some("public, max-age=31536000, immutable")
    );
    assert_eq!(plain.header("content-encoding"), None);
    let packed = [("Accept-Encoding", "gzip, deflate, br")];
    let packed = world.send("GET", script, &packed, b"").await;
    assert_eq!(packed.text(), "packed");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_eq!(packed.header("vary"), Some("accept-encoding"));

    let icon = world.get("/ui/icon.svg").await;
    assert_eq!(icon.header("cache-control"), Some("no-cache"));
    let tag = icon.header("etag").unwrap().to_owned();
    let again = world
        .send("GET", "/ui/icon.svg", &[("If-None-Match", &tag)], b"")
        .await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    assert_eq!(world.send("HEAD", script, &[], b"").await.status, 200);
    assert_eq!(world.send("POST", script, &[], b"").await.status, 405);

    for answer in [plain, packed, icon, page(&world, "/ui/").await] {
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value));
        }
    }
}

#[tokio::test]
async fn a_missing_file_is_missing_and_not_the_page() {
    let world = World::start().await;
    for path in [
        "/ui/assets/old-000.js",
        "/ui/../keys",
        "/ui/%2e%2e/keys",
        "/ui/%ff",
    ] {
        let answer = world.send("GET", path, &[("Accept", "*/*")], b"").await;
        assert_eq!(
            (answer.status, answer.category().as_str()),
            (404, "not_found"),
            "{path}"
        );
        assert!(!answer.text().contains("doctype"));
    }
}

#[tokio::test]
async fn the_page_needs_no_key_beyond_loopback_and_what_it_shows_does() {
    let world = World::with(|config| config.auth.require_key = true).await;
    let from_afar = [BROWSER, ("X-Forwarded-For", "203.0.113.9")];
    for path in ["/", "/ui", "/ui/", "/ui/runs", "/ui/assets/main-abc123.js"] {
        let answer = world.send("GET", path, &from_afar, b"").await;
        assert!(answer.status < 400, "{path}: {}", answer.status);
    }
    let data = world.send("GET", "/api/v1/runs", &from_afar, b"").await;
    assert_eq!(data.status, 401);
}

#[tokio::test]
async fn a_link_elsewhere_opens_the_page_and_nothing_else_of_it() {
    let world = World::start().await;
    let host = world.plane.address.to_string();
    let of = |mode: &'static str, kind: &'static str| {
        [
            ("Host", host.as_str()),
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Mode", mode),
            ("Sec-Fetch-Dest", kind),
            BROWSER,
        ]
    };
    let link = of("navigate", "document");
    assert_eq!(world.send("GET", "/ui/runs", &link, b"").await.status, 200);
    assert_eq!(
        world.send("GET", "/api/v1/runs", &link, b"").await.status,
        403
    );
    let framed = of("navigate", "iframe");
    assert_eq!(world.send("GET", "/ui/", &framed, b"").await.status, 403);
    let script = of("no-cors", "script");
    let path = "/ui/assets/main-abc123.js";
    assert_eq!(world.send("GET", path, &script, b"").await.status, 403);
}
