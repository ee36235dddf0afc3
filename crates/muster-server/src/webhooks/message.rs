//! A message: what it says, and how it is signed. `event` is in upstream's words, `type` in
//! ours; the signatures are those of Standard Webhooks and the one upstream's receivers know.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use muster_engine::effect::ExecutionView;
use muster_store::outbox::Delivery;
use muster_wire::{Category, Status, Timestamp};
use sha2::Sha256;

use super::Webhook;
use crate::api::cursor::Cursors;
use crate::api::show::duration_ms;
use crate::api::write::Writer;
use crate::app::App;

/// Results and details up to this size stand in the message; larger ones are linked.
pub(super) const INLINE_MAX: usize = 256 * 1024;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const UPSTREAM: HeaderName = HeaderName::from_static("x-agentfield-signature");

/// The id of a message: the position of the event it tells of, so that it is the same with each
/// try.
pub(crate) fn id(app: &App, seq: u64) -> String {
    format!("msg_{}", Cursors::of(app).text(seq))
}

/// Reads an id; `None` for what is none of this store.
pub(crate) fn seq_of(app: &App, id: &str) -> Option<u64> {
    let seq = Cursors::of(app).read(id.strip_prefix("msg_")?)?;
    (seq != u64::MAX).then_some(seq)
}

/// Scheme, host and port of a message's receiver.
pub(crate) fn target(webhook: &str) -> Option<String> {
    super::wanted::shown_target(webhook)
}

/// Our word for an end: one for each terminal status.
pub(crate) fn type_word(status: Status) -> &'static str {
    match status {
        Status::Succeeded => "execution.succeeded",
        Status::Cancelled => "execution.cancelled",
        Status::Timeout => "execution.timed_out",
        Status::Failed | Status::Queued | Status::Running | Status::Waiting | Status::Paused => {
            "execution.failed"
        }
    }
}

/// Upstream's word for an end.
fn event_word(status: Status) -> &'static str {
    match status {
        Status::Succeeded => "execution.completed",
        _ => "execution.failed",
    }
}

/// What a message says. Without a view its execution is gone by retention.
pub(super) fn body(id: &str, delivery: &Delivery, view: Option<&ExecutionView>) -> Bytes {
    let mut writer = Writer::object();
    writer
        .text("id", id)
        .text("event", event_word(delivery.status))
        .text("type", type_word(delivery.status))
        .time_if("timestamp", Some(delivery.at))
        .text("execution_id", delivery.execution.as_str())
        .text("run_id", delivery.run.as_str())
        .text("workflow_id", delivery.run.as_str())
        .text("status", delivery.status.word());
    if let Some(view) = view {
        of_execution(&mut writer, view);
    }
    writer.end().into()
}

fn of_execution(writer: &mut Writer, view: &ExecutionView) {
    let row = &view.row;
    writer
        .text_if("status_reason", row.status_reason.as_deref())
        .text("target", &format!("{}.{}", row.agent, row.function))
        .text("target_type", row.function_kind.word())
        .text_if(
            "parent_execution_id",
            row.parent.as_ref().map(|id| id.as_str()),
        )
        .text("root_execution_id", row.root.as_str())
        .time_if("created_at", Some(row.created_at))
        .time_if("started_at", row.started_at)
        .time_if("completed_at", row.ended_at)
        .number("duration_ms", duration_ms(row).unwrap_or(0));
    let link = |kind: &str| format!("/api/v1/executions/{}/payload/{kind}", row.id);
    match (&view.result, row.result_size) {
        (Some(result), _) if result.len() <= INLINE_MAX => {
            writer.raw("result", &result.0);
        }
        (_, Some(size)) => {
            writer
                .text("result_url", &link("result"))
                .number("result_size", i64::try_from(size).unwrap_or(i64::MAX));
        }
        (_, None) => {}
    }
    writer
        .bytes_if("error", row.error_text.as_ref())
        .bytes_if("error_message", row.error_text.as_ref())
        .text_if(
            "error_category",
            row.error_category.as_ref().map(Category::word),
        );
    match &view.details {
        Some(details) if details.len() <= INLINE_MAX => {
            writer.raw("error_details", &details.0);
        }
        Some(_) => {
            writer.text("error_details_url", &link("error_details"));
        }
        None => {}
    }
}

/// The headers of a message, the caller's own included.
pub(super) fn headers(webhook: &Webhook, id: &str, now: Timestamp, body: &[u8]) -> HeaderMap {
    let mut headers = webhook.headers();
    let seconds = (now.0 / 1_000_000).to_string();
    let mut set = |name: HeaderName, text: &str| {
        if let Ok(value) = HeaderValue::from_str(text) {
            headers.insert(name, value);
        }
    };
    set(header::CONTENT_TYPE, "application/json");
    set(ID, id);
    set(TIMESTAMP, &seconds);
    if let Some(secret) = &webhook.secret {
        let signed = [id.as_bytes(), b".", seconds.as_bytes(), b".", body].concat();
        let signature = STANDARD.encode(sign(&standard_key(secret), &signed));
        set(SIGNATURE, &format!("v1,{signature}"));
        let hex: String = sign(secret.as_bytes(), body)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        set(UPSTREAM, &format!("sha256={hex}"));
    }
    headers
}

/// The key of a Standard Webhooks signature: `whsec_` and base64, or the text as it stands.
fn standard_key(secret: &str) -> Vec<u8> {
    secret
        .strip_prefix("whsec_")
        .and_then(|encoded| STANDARD.decode(encoded).ok())
        .unwrap_or_else(|| secret.as_bytes().to_vec())
}

fn sign(key: &[u8], text: &[u8]) -> Vec<u8> {
    // A key of any length is taken; the other arm is never seen.
    match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mut mac) => {
            mac.update(text);
            mac.finalize().into_bytes().to_vec()
        }
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_the_standard_s_example() {
        // The example of the Standard Webhooks specification's reference libraries.
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let webhook = format!(r#"{{"url":"https://x.example/","secret":"{secret}"}}"#);
        let webhook = Webhook::read(&webhook).unwrap();
        let headers = headers(
            &webhook,
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            Timestamp(1_614_265_330 * 1_000_000),
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(
            headers["webhook-signature"],
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
        assert!(
            headers["x-agentfield-signature"]
                .to_str()
                .unwrap()
                .starts_with("sha256=")
        );
    }

    #[test]
    fn without_a_secret_nothing_is_signed_and_any_text_is_a_secret() {
        let plain = Webhook::read(r#"{"url":"https://x.example/"}"#).unwrap();
        let headers_of = |webhook: &Webhook| headers(webhook, "msg_1", Timestamp(1), b"{}");
        assert!(!headers_of(&plain).contains_key("webhook-signature"));
        for secret in ["whsec_not base64!", "hunter2", "whsec_"] {
            let text = format!(r#"{{"url":"https://x.example/","secret":{secret:?}}}"#);
            assert!(headers_of(&Webhook::read(&text).unwrap()).contains_key("webhook-signature"));
        }
    }
}
