//! What is counted. Handles are made once; counting is an atomic. What is only known by asking
//! (queues, store, process) is read when somebody scrapes: `sampled.rs`.

pub mod names;
pub mod process;
mod refusals;
pub(crate) mod sampled;
mod text;

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Recorder, Unit};
use metrics_exporter_prometheus::{
    Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use muster_engine::effect::Count;
use muster_wire::{Category, Lane, Origin, Status};
use refusals::Refusals;

pub use text::Text;

static METADATA: Metadata<'static> =
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// Buckets for waits and exchanges, in seconds.
const SECONDS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 300.0, 3600.0,
];
/// Buckets for counts.
const COUNTS: &[f64] = &[
    1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0,
];

const LANES: usize = Lane::ALL.len();
const STATUSES: usize = Status::ALL.len();
/// Known categories, none, and whatever else.
const CATEGORIES: usize = Category::ALL.len() + 2;

/// The counters and the text they are rendered to.
pub struct Meters {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    origin: Origin,
    started: [Counter; LANES],
    ended: Vec<OnceLock<Counter>>,
    refused: Vec<OnceLock<Counter>>,
    durations: Vec<OnceLock<Histogram>>,
    denied: Vec<OnceLock<Counter>>,
    unproved: Counter,
    lines_dropped: Counter,
    absorbed: Counter,
    commit_events: Histogram,
    commit_writes: Histogram,
    commit_seconds: Histogram,
    inbox_age: Histogram,
    dispatches: OnceLock<Box<dyn Fn() -> usize + Send + Sync>>,
    told: [Counter; 3],
    readers: [Gauge; 2],
    gaps: [Counter; 2],
    /// Refused calls of the last hour, by agent.
    pub(crate) refusals: Refusals,
}

impl std::fmt::Debug for Meters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meters").finish_non_exhaustive()
    }
}

impl Default for Meters {
    fn default() -> Self {
        Self::new(Origin::Server)
    }
}

/// What kind of stream somebody reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Server-sent events.
    Sse,
    /// A WebSocket.
    Socket,
}

impl Stream {
    fn word(self) -> &'static str {
        match self {
            Stream::Sse => "sse",
            Stream::Socket => "websocket",
        }
    }
}

/// What became of a message to a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Taken.
    Delivered,
    /// Not taken; sent again later.
    Failed,
    /// Given up.
    Dead,
}

impl Told {
    const ALL: [Told; 3] = [Told::Delivered, Told::Failed, Told::Dead];

    fn word(self) -> &'static str {
        match self {
            Told::Delivered => "delivered",
            Told::Failed => "failed",
            Told::Dead => "dead",
        }
    }
}

/// Something open that is counted down when it is dropped.
pub struct Open(Gauge);

impl std::fmt::Debug for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Open")
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

impl Meters {
    /// Meters of a plane of some kind. They are its own: two planes in one process do not mix.
    pub fn new(origin: Origin) -> Self {
        let seconds = [names::DURATION, names::COMMIT_SECONDS, names::INBOX_AGE];
        let counts = [names::COMMIT_EVENTS, names::COMMIT_WRITES];
        let mut builder = PrometheusBuilder::new();
        for (matched, buckets) in seconds
            .iter()
            .map(|name| (name, SECONDS))
            .chain(counts.iter().map(|name| (name, COUNTS)))
        {
            // Refused only for empty buckets, and these are constants.
            builder = builder
                .set_buckets_for_metric(Matcher::Full((*matched).to_owned()), buckets)
                .unwrap_or_else(|_| PrometheusBuilder::new());
        }
        let recorder = builder.build_recorder();
        describe(&recorder);
        let counter = |name: &'static str, labels: Vec<Label>| {
            recorder.register_counter(&Key::from_parts(name, labels), &METADATA)
        };
        let histogram =
            |name: &'static str| recorder.register_histogram(&Key::from_name(name), &METADATA);
        let streams = [Stream::Sse, Stream::Socket];
        let label = |key: &'static str, value: &'static str| Label::from_static_parts(key, value);
        Self {
            started: std::array::from_fn(|lane| {
                let labels = vec![
                    label("lane", Lane::ALL[lane].word()),
                    label("origin", origin.word()),
                ];
                counter(names::STARTED, labels)
            }),
            ended: cells(LANES * STATUSES * CATEGORIES),
            refused: cells(LANES * CATEGORIES),
            durations: cells(LANES * STATUSES),
            denied: cells(CATEGORIES),
            unproved: counter(names::UNPROVED, vec![]),
            lines_dropped: counter(names::LINES_DROPPED, vec![]),
            absorbed: counter(names::ABSORBED, vec![]),
            commit_events: histogram(names::COMMIT_EVENTS),
            commit_writes: histogram(names::COMMIT_WRITES),
            commit_seconds: histogram(names::COMMIT_SECONDS),
            inbox_age: histogram(names::INBOX_AGE),
            dispatches: OnceLock::new(),
            told: Told::ALL.map(|told| counter(names::WEBHOOKS, vec![label("end", told.word())])),
            readers: streams.map(|stream| {
                let key = Key::from_parts(names::READERS, vec![label("stream", stream.word())]);
                recorder.register_gauge(&key, &METADATA)
            }),
            gaps: streams.map(|stream| counter(names::GAPS, vec![label("stream", stream.word())])),
            refusals: Refusals::default(),
            handle: recorder.handle(),
            recorder,
            origin,
        }
    }

    /// Takes what the engine counted; called after the commit.
    pub fn count(&self, count: &Count) {
        match count {
            Count::Started { lane } => self.started[*lane as usize].increment(1),
            Count::Refused {
                lane,
                agent,
                category,
            } => {
                // What is wrong with a call itself says nothing of the agent.
                if matches!(category.http_status(), 429 | 500..) {
                    self.refusals.count(agent);
                }
                let at = *lane as usize * CATEGORIES + category_index(Some(category));
                self.refused[at]
                    .get_or_init(|| {
                        self.counter(
                            names::REFUSED,
                            &[("lane", lane.word()), ("category", shown(Some(category)))],
                        )
                    })
                    .increment(1);
            }
            Count::Ended {
                lane,
                status,
                category,
                took_us,
            } => {
                let cell = *lane as usize * STATUSES + *status as usize;
                let at = cell * CATEGORIES + category_index(category.as_ref());
                self.ended[at]
                    .get_or_init(|| {
                        let category = shown(category.as_ref());
                        self.counter(
                            names::ENDED,
                            &[
                                ("lane", lane.word()),
                                ("status", status.word()),
                                ("category", category),
                            ],
                        )
                    })
                    .increment(1);
                self.durations[cell]
                    .get_or_init(|| self.duration(*lane, *status))
                    .record(Duration::from_micros(*took_us).as_secs_f64());
            }
            Count::Unproved => self.unproved.increment(1),
            Count::Absorbed => self.absorbed.increment(1),
        }
    }

    /// Log lines or notes were lost before they were written.
    pub fn lines_dropped(&self, count: u64) {
        if count > 0 {
            self.lines_dropped.increment(count);
        }
    }

    /// A batch was committed.
    pub fn committed(&self, events: usize, writes: usize, took: Duration) {
        self.commit_events.record(events as f64);
        self.commit_writes.record(writes as f64);
        self.commit_seconds.record(took.as_secs_f64());
    }

    /// How long the oldest event of a batch had waited when it was taken.
    pub fn waited(&self, oldest: Duration) {
        self.inbox_age.record(oldest.as_secs_f64());
    }

    /// Says where to ask for the calls to agents that are on their way. Once.
    pub fn watch_dispatches(&self, count: impl Fn() -> usize + Send + Sync + 'static) {
        let _ = self.dispatches.set(Box::new(count));
    }

    /// Calls to agents that are on their way.
    pub fn dispatches(&self) -> Option<usize> {
        self.dispatches.get().map(|count| count())
    }

    /// Somebody reads a stream until the value is dropped.
    pub fn reading(&self, stream: Stream) -> Open {
        let gauge = &self.readers[stream as usize];
        gauge.increment(1.0);
        Open(gauge.clone())
    }

    /// A message to a webhook was sent.
    pub fn told(&self, told: Told) {
        self.told[told as usize].increment(1);
    }

    /// So many messages were given up without being sent again.
    pub fn buried(&self, count: u64) {
        self.told[Told::Dead as usize].increment(count);
    }

    /// A slow reader was sent back to the store.
    pub fn gap(&self, stream: Stream) {
        self.gaps[stream as usize].increment(1);
    }

    /// A request was denied before its handler.
    pub fn denied(&self, category: &Category) {
        self.denied[category_index(Some(category))]
            .get_or_init(|| {
                let labels = vec![Label::from_static_parts("category", shown(Some(category)))];
                self.recorder
                    .register_counter(&Key::from_parts(names::GUARDED, labels), &METADATA)
            })
            .increment(1);
    }

    /// Moves samples into their buckets, so that memory is bounded when nobody scrapes.
    pub fn upkeep(&self) {
        self.handle.run_upkeep();
    }

    /// What was counted, as Prometheus' text.
    pub fn render(&self) -> String {
        self.handle.render()
    }

    fn counter(&self, name: &'static str, labels: &[(&'static str, &'static str)]) -> Counter {
        self.recorder
            .register_counter(&Key::from_parts(name, self.labels(labels)), &METADATA)
    }

    fn duration(&self, lane: Lane, status: Status) -> Histogram {
        let labels = self.labels(&[("lane", lane.word()), ("status", status.word())]);
        self.recorder
            .register_histogram(&Key::from_parts(names::DURATION, labels), &METADATA)
    }

    fn labels(&self, labels: &[(&'static str, &'static str)]) -> Vec<Label> {
        let origin = ("origin", self.origin.word());
        labels
            .iter()
            .chain([&origin])
            .map(|(key, value)| Label::from_static_parts(key, value))
            .collect()
    }
}

fn cells<T>(n: usize) -> Vec<OnceLock<T>> {
    std::iter::repeat_with(OnceLock::new).take(n).collect()
}

fn category_index(category: Option<&Category>) -> usize {
    match category {
        None => CATEGORIES - 1,
        Some(category) => Category::ALL
            .iter()
            .position(|known| known == category)
            .unwrap_or(CATEGORIES - 2),
    }
}

/// The label of a category. A word that this build does not know is no label: nobody bounds it.
fn shown(category: Option<&Category>) -> &'static str {
    match category {
        None => "none",
        Some(category) => Category::ALL
            .iter()
            .find(|known| *known == category)
            .map_or("other", Category::word),
    }
}

fn describe(recorder: &PrometheusRecorder) {
    for metric in names::ALL {
        let (name, help) = (KeyName::from_const_str(metric.name), metric.help.into());
        let unit = metric.name.contains("_seconds").then_some(Unit::Seconds);
        match metric.kind {
            names::Kind::Counter => recorder.describe_counter(name, None, help),
            names::Kind::Gauge => recorder.describe_gauge(name, None, help),
            names::Kind::Histogram => recorder.describe_histogram(name, unit, help),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_rendered_with_its_labels() {
        let meters = Meters::new(Origin::Ci);
        meters.count(&Count::Started { lane: Lane::Sync });
        let ended = Count::Ended {
            lane: Lane::Async,
            status: Status::Failed,
            category: Some(Category::AgentError),
            took_us: 1_500,
        };
        meters.count(&ended);
        meters.count(&ended);
        meters.count(&Count::Ended {
            lane: Lane::Sync,
            status: Status::Succeeded,
            category: None,
            took_us: 10,
        });
        meters.count(&Count::Refused {
            agent: muster_wire::AgentId::trusted("a"),
            lane: Lane::Sync,
            category: Category::TargetNotFound,
        });
        meters.count(&Count::Refused {
            agent: muster_wire::AgentId::trusted("a"),
            lane: Lane::Sync,
            category: Category::Other("made up".into()),
        });
        meters.committed(3, 9, Duration::from_millis(2));
        let one = meters.reading(Stream::Sse);
        let two = meters.reading(Stream::Sse);
        drop(one);
        let text = meters.render();
        for line in [
            r#"muster_executions_started_total{lane="sync",origin="ci"} 1"#,
            r#"muster_executions_ended_total{lane="async",status="failed",category="agent_error",origin="ci"} 2"#,
            r#"muster_executions_ended_total{lane="sync",status="succeeded",category="none",origin="ci"} 1"#,
            r#"muster_executions_refused_total{lane="sync",category="target_not_found",origin="ci"} 1"#,
            r#"muster_executions_refused_total{lane="sync",category="other",origin="ci"} 1"#,
            r#"muster_execution_duration_seconds_bucket{lane="async",status="failed",origin="ci",le="0.0025"} 2"#,
            "muster_commit_events_count 1",
            r#"muster_stream_readers{stream="sse"} 1"#,
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        drop(two);
        assert!(
            meters
                .render()
                .contains(r#"muster_stream_readers{stream="sse"} 0"#)
        );
    }

    #[test]
    fn two_planes_do_not_mix() {
        let (one, two) = (Meters::default(), Meters::default());
        one.count(&Count::Absorbed);
        assert!(one.render().contains("muster_dials_absorbed_total 1"));
        assert!(!two.render().contains("muster_dials_absorbed_total 1"));
    }
}
