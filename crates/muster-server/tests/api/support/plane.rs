//! A plane on a port of its own.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use muster_server::auth::KeyText;
use muster_server::config::{Size, Span, SpanOrOff};
use muster_server::{Config, Plane, Running};
use muster_store::annex::KeyRecord;
use muster_store::{Durability, MemoryStore, Options, SqliteStore, Stores};
use muster_wire::Timestamp;
use serde_json::Value;

use super::{Answer, Client, eventually};

pub(crate) struct TestPlane {
    pub(crate) running: Running,
    pub(crate) client: Client,
    pub(crate) memory: Option<Arc<MemoryStore>>,
    /// The key of a person who may decide.
    key: KeyText,
}

/// What tests want of a configuration: short waits.
pub(crate) fn config() -> Config {
    let mut config = Config::default();
    config.server.listen = "127.0.0.1:0".parse().unwrap();
    config.server.max_body = Size(4 * 1024 * 1024);
    config.server.shutdown_timeout = Span(Duration::from_millis(500));
    config.executions.max_result = Size(1024 * 1024);
    config.agents.restart_grace = SpanOrOff(Some(Duration::from_secs(3)));
    config
}

impl TestPlane {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = config();
        change(&mut config);
        let store = Arc::new(MemoryStore::new());
        let stores = Stores {
            decisions: store.clone(),
            annex: store.clone(),
        };
        Self::on(config, stores, Some(store)).await
    }

    /// A plane on a store that exists already.
    pub(crate) async fn again(store: &Arc<MemoryStore>, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = config();
        change(&mut config);
        let stores = Stores {
            decisions: store.clone(),
            annex: store.clone(),
        };
        Self::on(config, stores, Some(store.clone())).await
    }

    pub(crate) async fn sqlite(directory: &Path) -> Self {
        Self::sqlite_with(directory, |_| {}).await
    }

    /// The same with a configuration of one's own.
    pub(crate) async fn sqlite_with(directory: &Path, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = config();
        change(&mut config);
        config.store.data = Some(directory.to_owned());
        let options = Options {
            durability: Durability::Process,
            ..Options::default()
        };
        // One that a plane just left is let go within moments.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
        let store = loop {
            match SqliteStore::open(directory, options.clone()) {
                Err(muster_store::StoreError::InUse(_)) if std::time::Instant::now() < until => {
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                }
                end => break Arc::new(end.unwrap()),
            }
        };
        let stores = Stores {
            decisions: store.clone(),
            annex: store,
        };
        Self::on(config, stores, None).await
    }

    async fn on(config: Config, stores: Stores, memory: Option<Arc<MemoryStore>>) -> Self {
        let key = KeyText::mint().unwrap();
        let record = KeyRecord {
            id: muster_wire::mint("key"),
            prefix: key.prefix(),
            hash: key.hash(),
            name: "ada".into(),
            scopes: vec!["operate".into()],
            principal: "ada".into(),
            created_at: Timestamp::wall_clock(),
            used_at: None,
            revoked_at: None,
            expires_at: None,
            detail: None,
        };
        stores.annex.key_put(&record).unwrap();
        let running = Plane::start(config, stores).await.unwrap();
        Self {
            client: Client::new(format!("http://{}", running.address)),
            running,
            memory,
            key,
        }
    }

    /// Posts with the key of a person who may decide.
    pub(crate) async fn as_person(&self, path: &str, body: &Value) -> Answer {
        let key = [("x-api-key", self.key.expose())];
        self.client.post_with(path, &key, body).await
    }

    /// The key of a person who may decide.
    pub(crate) fn key(&self) -> &str {
        self.key.expose()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.running.address)
    }

    pub(crate) async fn call(&self, target: &str, input: Value) -> Answer {
        let body = serde_json::json!({ "input": input });
        self.client
            .post(&format!("/api/v1/execute/{target}"), &body)
            .await
    }

    /// Submits on the async lane; the execution's id.
    pub(crate) async fn submit(&self, target: &str, input: Value) -> String {
        let body = serde_json::json!({ "input": input });
        let path = format!("/api/v1/execute/async/{target}");
        let answer = self.client.post(&path, &body).await;
        assert_eq!(answer.status, 202, "{}", answer.json());
        answer.json()["execution_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn execution(&self, id: &str) -> Value {
        let answer = self.client.get(&format!("/api/v1/executions/{id}")).await;
        assert_eq!(answer.status, 200, "{}", answer.json());
        answer.json()
    }

    /// Polls until it ended.
    pub(crate) async fn end_of(&self, id: &str) -> Value {
        eventually(&format!("{id} ends"), || async {
            let execution = self.execution(id).await;
            let over = ["succeeded", "failed", "cancelled", "timeout"];
            over.iter()
                .any(|word| execution["status"] == *word)
                .then_some(execution)
        })
        .await
    }
}
