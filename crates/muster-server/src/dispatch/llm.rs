//! Checks of LLM endpoints: one GET, any answer below 500 is good. What a check means is the
//! engine's.

use std::sync::Arc;

use http::{Request, header};
use muster_engine::Event;

use super::Dispatcher;
use super::call::{AGENT, causes};
use super::peer::Body;

impl Dispatcher {
    pub(super) async fn check_llm(&self, endpoint: Arc<str>) {
        let error = self.check_llm_once(&endpoint).await.err();
        if let Some(error) = &error {
            tracing::debug!(llm.endpoint = %endpoint, error = %error, "a check of an LLM endpoint failed");
        }
        self.0.driver.tell(Event::LlmChecked {
            endpoint,
            error: error.map(Into::into),
        });
    }

    /// The address is never part of what is said: it may carry a key.
    async fn check_llm_once(&self, endpoint: &str) -> Result<(), String> {
        let health = &self.0.config.llm_health;
        let found = health.endpoints.iter().find(|e| e.name == endpoint);
        let url = &found.ok_or("it is not configured")?.url;
        let mut request = Request::new(Body::default());
        *request.uri_mut() = url.parse().map_err(|_| "its address cannot be read")?;
        request.headers_mut().insert(header::USER_AGENT, AGENT);
        let patience = health.check_timeout.0;
        let answer = tokio::time::timeout(patience, self.0.llm.request(request)).await;
        let response = match answer {
            Err(_) => return Err(format!("no answer within {patience:?}")),
            Ok(Err(error)) => return Err(causes(&error)),
            Ok(Ok(response)) => response,
        };
        if response.status().is_server_error() {
            return Err(format!("it answered {}", response.status().as_u16()));
        }
        Ok(())
    }
}
