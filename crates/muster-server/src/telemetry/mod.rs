//! Traces: what became of each execution, told to a collector over OTLP. Off unless an endpoint
//! is set. Ids of spans are derived from ids of executions, and the trace's comes with the caller
//! or from the run, so that nothing need be kept while an execution is open: a plane that starts
//! anew tells the same trace. No span has a payload, a reason that somebody typed, or a name of a
//! session.

mod collector;
mod context;
mod export;
mod spans;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::HeaderValue;
use muster_engine::effect::{Dispatch, ExecutionView};
use muster_engine::row::ExecutionRow;
use muster_wire::{ExecutionId, Timestamp};
use tokio::sync::{mpsc, oneshot};

use crate::app::App;
use crate::config;
use context::Context;
pub(crate) use context::{join, split};

/// No queue may be longer: what waits holds the rows of its executions.
const QUEUE_MAX: usize = 1_000_000;

/// What is to be told.
enum News {
    /// An execution ended.
    Ended(Arc<ExecutionView>),
    /// A submission was admitted: when it came, and the row that it became.
    Admitted(Timestamp, Arc<ExecutionRow>),
    /// Everything before this is to be sent now.
    Flush(oneshot::Sender<()>),
}

/// What became of spans.
#[derive(Debug, Default)]
pub struct Tally {
    /// Taken by the collector.
    pub exported: AtomicU64,
    /// Never sent: the queue was full.
    pub dropped: AtomicU64,
    /// Not taken by the collector, whatever was tried.
    pub failed: AtomicU64,
}

/// The traces of a plane.
#[derive(Debug, Default)]
pub struct Telemetry(Option<On>);

/// How traces go on to agents: with the share that is told, or, while off, as they came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Propagation(Option<f64>);

#[derive(Debug)]
struct On {
    sample: f64,
    to: mpsc::Sender<News>,
    /// Until the exporter takes it.
    from: parking_lot::Mutex<Option<mpsc::Receiver<News>>>,
    tally: Arc<Tally>,
    target: collector::Target,
}

impl Telemetry {
    /// Reads the configuration; off without an endpoint.
    ///
    /// # Errors
    /// With a sentence, when a value cannot be used.
    pub fn new(config: &config::Telemetry) -> Result<Self, String> {
        let Some(endpoint) = is_wanted(config) else {
            return Ok(Self(None));
        };
        if !(0.0..=1.0).contains(&config.sample) {
            return Err("telemetry.sample must be a number from 0 to 1".to_owned());
        }
        let target = collector::Target::read(endpoint, config)?;
        if !(1..=QUEUE_MAX).contains(&config.queue) {
            return Err(format!("telemetry.queue must be from 1 to {QUEUE_MAX}"));
        }
        let (to, from) = mpsc::channel(config.queue);
        Ok(Self(Some(On {
            sample: config.sample,
            to,
            from: parking_lot::Mutex::new(Some(from)),
            tally: Arc::default(),
            target,
        })))
    }

    /// Starts to export.
    pub(crate) fn start(app: &App) {
        let Some(on) = &app.telemetry.0 else { return };
        let Some(from) = on.from.lock().take() else {
            return;
        };
        let (exporter, said) = match on.target.exporter(app) {
            Ok(made) => made,
            // What comes is dropped, and counted.
            Err(error) => return tracing::error!(error, "traces cannot be exported"),
        };
        tracing::info!(endpoint = %on.target.shown(), sample = on.sample, "traces are exported");
        let tally = on.tally.clone();
        tokio::spawn(export::run(app.clone(), exporter, said, tally, from));
    }

    /// Whether anything is told.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// What became of spans; `None` while off.
    pub fn tally(&self) -> Option<&Tally> {
        self.0.as_ref().map(|on| &*on.tally)
    }

    /// An execution is published; when it has just ended, it is to be told.
    pub(crate) fn saw(
        &self,
        before: impl FnOnce() -> Option<Arc<ExecutionView>>,
        view: &Arc<ExecutionView>,
    ) {
        let Some(on) = &self.0 else { return };
        if !view.row.status.is_terminal() {
            return;
        }
        // It may be published again: somebody restarted it, an outcome came late.
        if before().is_none_or(|before| !before.row.status.is_terminal()) {
            on.tell(News::Ended(view.clone()));
        }
    }

    /// A submission was admitted.
    pub(crate) fn admitted(&self, app: &App, id: &ExecutionId, received: Timestamp) {
        let Some(on) = &self.0 else { return };
        if let Some(view) = app.views.get(id.as_str()) {
            on.tell(News::Admitted(received, view.row.clone()));
        }
    }

    /// The context of a call without one that another execution makes: it hangs from that.
    pub(crate) fn under(&self, app: &App, parent: &ExecutionId) -> Option<Arc<str>> {
        let on = self.0.as_ref()?;
        let view = app.views.get(parent.as_str())?;
        let context = Context::of(&view.row, on.sample);
        Some(context.text(context::span_of(parent)).into())
    }

    /// Sends what waits, for at most so long.
    pub async fn flush(&self, patience: Duration) {
        let Some(on) = &self.0 else { return };
        let (told, done) = oneshot::channel();
        let sent = async {
            if on.to.send(News::Flush(told)).await.is_ok() {
                let _ = done.await;
            }
        };
        if tokio::time::timeout(patience, sent).await.is_err() {
            tracing::warn!("the last traces could not be exported in time");
        }
    }
}

impl Propagation {
    /// As the configuration has it.
    pub(crate) fn of(config: &config::Telemetry) -> Self {
        Self(is_wanted(config).map(|_| config.sample))
    }

    /// What an agent is sent with an attempt: `traceparent` and `tracestate`.
    pub(crate) fn outgoing(
        self,
        dispatch: &Dispatch,
    ) -> (Option<HeaderValue>, Option<HeaderValue>) {
        let value = |text: &str| HeaderValue::from_str(text).ok();
        let given = dispatch.traceparent.as_deref();
        let Some(sample) = self.0 else {
            let Some(text) = given else {
                return (None, None);
            };
            let (parent, state) = split(text);
            return (value(parent), state.and_then(value));
        };
        let context = Context::read(given, &dispatch.run, sample);
        let span = context::span_of_attempt(&dispatch.attempt.execution, dispatch.attempt.n);
        (
            value(&context.parent_text(span)),
            context.state.and_then(value),
        )
    }
}

impl On {
    /// Never waits: the driver is here.
    fn tell(&self, news: News) {
        if self.to.try_send(news).is_err() {
            self.tally.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The endpoint, when there is one.
fn is_wanted(config: &config::Telemetry) -> Option<&str> {
    let endpoint = config.endpoint.as_deref();
    endpoint.filter(|text| !text.trim().is_empty())
}
