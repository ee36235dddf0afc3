//! The exporter: takes what ended, reads its attempts, hands batches of spans to the library that
//! writes and sends them. One task, one request at a time. What the collector does not take after
//! some tries is given up and counted: traces never hold anything else up.
//!
//! The library's own batch processor is not used: it would read a clock and a queue of its own,
//! in a thread of its own, and count nothing that it drops.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use muster_engine::row::ExecutionRow;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::collector::Said;
use super::context::{Context, span_of};
use super::{News, Tally, spans};
use crate::app::App;

/// Executions of one request, at most.
const BATCH_MAX: usize = 256;
/// How long a batch waits for more.
const LINGER: Duration = Duration::from_secs(1);
/// How far up the parents of an execution are looked at for a trace.
const ANCESTORS_MAX: usize = 64;

/// Takes news until nobody is left to tell any.
pub(super) async fn run(
    app: App,
    exporter: SpanExporter,
    said: Arc<Said>,
    tally: Arc<Tally>,
    mut from: mpsc::Receiver<News>,
) {
    let mut was_fine = true;
    loop {
        let Some(first) = from.recv().await else {
            return;
        };
        let (news, asked) = gather(first, &mut from).await;
        let spans = spans_of(&app, news).await;
        if !spans.is_empty() {
            let count = spans.len();
            let fine = send(&exporter, &said, &tally, spans).await;
            // Said once when it begins, and once when it ends.
            match (&fine, was_fine) {
                (Err(error), true) => {
                    tracing::warn!(error = %error, spans = count, "the collector does not take traces; they are given up until it does")
                }
                (Ok(()), false) => tracing::info!("the collector takes traces again"),
                _ => {}
            }
            was_fine = fine.is_ok();
        }
        for asked in asked {
            let _ = asked.send(());
        }
    }
}

/// What came within the linger, and who waits for it to be sent.
async fn gather(
    first: News,
    from: &mut mpsc::Receiver<News>,
) -> (Vec<News>, Vec<oneshot::Sender<()>>) {
    let (mut news, mut asked) = (Vec::new(), Vec::new());
    let until = Instant::now() + LINGER;
    let mut next = Some(first);
    while let Some(one) = next {
        match one {
            News::Flush(told) => asked.push(told),
            other => news.push(other),
        }
        if news.len() >= BATCH_MAX {
            break;
        }
        next = match asked.is_empty() {
            true => tokio::time::timeout_at(until, from.recv())
                .await
                .ok()
                .flatten(),
            false => from.try_recv().ok(),
        };
    }
    (news, asked)
}

async fn spans_of(app: &App, news: Vec<News>) -> Vec<SpanData> {
    let sample = app.telemetry.0.as_ref().map_or(0.0, |on| on.sample);
    let work = app.clone();
    app.blocking(move |_| {
        let mut spans = Vec::new();
        for one in news {
            let (received, row) = match &one {
                News::Ended(view) => (None, &view.row),
                News::Admitted(at, row) => (Some(*at), row),
                News::Flush(_) => continue,
            };
            let from = bearer(&work, row);
            let mut context = Context::of(&from, sample);
            if !context.sampled {
                continue;
            }
            if from.id != row.id {
                // It came without a trace, from an execution that had one.
                context.parent = row.parent.as_ref().map(span_of);
                context.is_remote = false;
            }
            match received {
                Some(at) => spans.push(spans::of_admission(&context, row, at)),
                None => {
                    let attempts = work.stores.decisions.attempts(&row.id).unwrap_or_default();
                    spans.extend(spans::of_end(&context, row, &attempts));
                }
            }
        }
        spans
    })
    .await
}

/// The row whose trace a row belongs to: itself when it was sent one or has no parent, else the
/// nearest ancestor of which that is true.
fn bearer(app: &App, row: &Arc<ExecutionRow>) -> Arc<ExecutionRow> {
    let mut at = row.clone();
    for _ in 0..ANCESTORS_MAX {
        let (None, Some(parent)) = (&at.traceparent, &at.parent) else {
            return at;
        };
        let above = match app.views.get(parent.as_str()) {
            Some(view) => Some(view.row.clone()),
            None => {
                let stored = app.stores.decisions.execution(parent);
                stored.ok().and_then(|(_, row)| row).map(Arc::new)
            }
        };
        match above {
            Some(above) => at = above,
            None => return at,
        }
    }
    at
}

/// Sends one batch, in as many tries as it takes, and counts what became of it.
async fn send(
    exporter: &SpanExporter,
    said: &Said,
    tally: &Tally,
    spans: Vec<SpanData>,
) -> Result<(), String> {
    let count = spans.len() as u64;
    let sent = exporter.export(spans).await;
    let (rejected, why) = said.take();
    let failed = match &sent {
        // It may take a request and yet not all that is in it.
        Ok(()) => rejected.min(count),
        Err(_) => count,
    };
    tally.exported.fetch_add(count - failed, Ordering::Relaxed);
    tally.failed.fetch_add(failed, Ordering::Relaxed);
    match sent {
        Ok(()) if failed > 0 => Err(format!("it rejected {failed} of {count} spans")),
        Ok(()) => Ok(()),
        Err(error) => Err(why.unwrap_or_else(|| error.to_string())),
    }
}
