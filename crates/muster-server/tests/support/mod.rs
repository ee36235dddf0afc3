//! What these tests stand on: a plane on a data directory of its own, on loopback.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod agent;
pub(crate) mod document;
pub(crate) mod wire;

use std::net::SocketAddr;
use std::sync::Arc;

use muster_server::ui::{Site, SiteFile};
use muster_server::{Config, Plane, Running};
use muster_store::{Durability, Options, SqliteStore, Stores};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) use wire::Answer;

/// Opens the store; one that a plane just left is let go within moments.
async fn open(dir: &std::path::Path, options: &Options) -> SqliteStore {
    let until = tokio::time::Instant::now() + wire::DEADLINE;
    loop {
        match SqliteStore::open(dir, options.clone()) {
            Err(muster_store::StoreError::InUse(_)) if tokio::time::Instant::now() < until => {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            end => return end.expect("a store"),
        }
    }
}

/// A dashboard of a page, a script and a picture.
fn site() -> Site {
    let page = "<!doctype html><style nonce=\"__NONCE__\"></style><meta content=\"__NONCE__\">";
    Site::new(page, "__NONCE__", |path| {
        let (text, is_immutable): (&'static str, bool) = match path {
            "assets/main-abc123.js" => ("console.log(1)", true),
            "icon.svg" => ("<svg/>", false),
            _ => return None,
        };
        Some(SiteFile {
            bytes: text.as_bytes().into(),
            gzip: is_immutable.then(|| b"packed".as_slice().into()),
            content_type: if is_immutable {
                "text/javascript"
            } else {
                "image/svg+xml"
            },
            etag: format!("\"{path}\""),
            is_immutable,
        })
    })
}

/// A running plane.
pub(crate) struct World {
    /// Its data.
    pub(crate) dir: Arc<TempDir>,
    /// The plane.
    pub(crate) plane: Running,
    /// The owner's key.
    pub(crate) owner: String,
}

impl World {
    /// Starts one.
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// Starts one with a configuration that differs.
    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::on(Arc::new(tempfile::tempdir().expect("a directory")), change).await
    }

    /// Starts one on a data directory that may have been used.
    pub(crate) async fn on(dir: Arc<TempDir>, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default();
        config.server.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        config.store.data = Some(dir.path().to_owned());
        change(&mut config);
        let options = Options {
            durability: Durability::Process,
            ..Options::default()
        };
        let store = Arc::new(open(dir.path(), &options).await);
        let stores = Stores {
            decisions: store.clone(),
            annex: store,
        };
        let listener = Plane::listen(config.server.listen).await.expect("a port");
        let plane = Plane::start_on(listener, config, stores, site())
            .await
            .expect("a plane");
        let owner = muster_server::auth::read_owner_key(dir.path())
            .expect("a readable key")
            .map_or_else(String::new, |key| key.expose().to_owned());
        Self { dir, plane, owner }
    }

    /// Sends a request with these headers and reads the answer.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let bytes = wire::request(method, path, headers, body);
        let answer = wire::raw(self.plane.address, &bytes)
            .await
            .unwrap_or_else(|| panic!("no answer to {method} {path}"));
        // Relay's surface has an envelope of its own, which the document leaves to its page.
        let is_json = answer.header("content-type") == Some("application/json");
        if is_json && method != "HEAD" && !path.starts_with("/v1/") {
            document::check(method, path, answer.status, &answer.body);
        }
        answer
    }

    /// A plain GET.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"").await
    }

    /// A request of the owner.
    pub(crate) async fn as_owner(&self, method: &str, path: &str, body: &Value) -> Answer {
        let text = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        self.as_key(&self.owner, method, path, &text).await
    }

    /// A request with a key.
    pub(crate) async fn as_key(&self, key: &str, method: &str, path: &str, body: &[u8]) -> Answer {
        let headers = [("X-API-Key", key), ("Content-Type", "application/json")];
        self.send(method, path, &headers, body).await
    }

    /// Makes a key and returns its id and text.
    pub(crate) async fn key(&self, scopes: &[&str]) -> (String, String) {
        let wanted = serde_json::json!({ "name": "test", "scopes": scopes });
        let made = self.as_owner("POST", "/api/v1/keys", &wanted).await;
        assert_eq!(made.status, 201, "{}", made.text());
        let made = made.json();
        let text = |name: &str| made[name].as_str().expect("a text").to_owned();
        (text("id"), text("key"))
    }
}
