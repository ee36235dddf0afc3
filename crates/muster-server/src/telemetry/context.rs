//! The trace that an execution belongs to: from its caller's `traceparent`, else from its run.
//! Everything is derived, nothing is drawn: whoever asks later gets the same ids.

use std::fmt::Write as _;

use muster_engine::row::ExecutionRow;
use muster_wire::{ExecutionId, RunId};

/// An id of a trace.
pub(super) type Trace = [u8; 16];
/// An id of a span.
pub(crate) type Span = [u8; 8];

/// The longest `tracestate` that is passed on.
const STATE_MAX: usize = 512;

/// Where an execution hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Context<'a> {
    /// The trace.
    pub(super) trace: Trace,
    /// The caller's span.
    pub(super) parent: Option<Span>,
    /// Whether that span is somebody else's.
    pub(super) is_remote: bool,
    /// Whether it is told.
    pub(super) sampled: bool,
    /// What systems along the way added.
    pub(super) state: Option<&'a str>,
}

impl<'a> Context<'a> {
    /// That of a row.
    pub(super) fn of(row: &'a ExecutionRow, sample: f64) -> Self {
        Self::read(row.traceparent.as_deref(), &row.run, sample)
    }

    /// From what a caller sent; a run without is a trace of its own.
    pub(super) fn read(stored: Option<&'a str>, run: &RunId, sample: f64) -> Self {
        let given = stored.and_then(|text| {
            let (parent, state) = split(text);
            Self::given(parent, state)
        });
        given.unwrap_or_else(|| {
            let trace = half::<16>("trace", run.as_str(), 0);
            Self {
                trace,
                parent: None,
                is_remote: false,
                sampled: is_drawn(&trace, sample),
                state: None,
            }
        })
    }

    fn given(parent: &str, state: Option<&'a str>) -> Option<Self> {
        let mut parts = parent.split('-');
        let (version, trace, span, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let trace: Trace = unhex(trace)?;
        let span: Span = unhex(span)?;
        let [flags] = unhex::<1>(flags)?;
        if version == "ff" || trace == [0; 16] || span == [0; 8] {
            return None;
        }
        Some(Self {
            trace,
            parent: Some(span),
            is_remote: true,
            sampled: flags & 1 == 1,
            state,
        })
    }

    /// A `traceparent` with this span as the parent of what follows.
    pub(super) fn parent_text(&self, span: Span) -> String {
        let mut text = String::with_capacity(55);
        text.push_str("00-");
        hex(&mut text, &self.trace);
        text.push('-');
        hex(&mut text, &span);
        text.push_str(if self.sampled { "-01" } else { "-00" });
        text
    }

    /// The same with the state, as rows keep it.
    pub(super) fn text(&self, span: Span) -> String {
        join(&self.parent_text(span), self.state)
    }
}

/// A `traceparent` and its `tracestate` as one text, as rows keep it: behind a blank.
pub(crate) fn join(parent: &str, state: Option<&str>) -> String {
    let fine = |state: &&str| {
        let text = |b: u8| (b' '..=b'~').contains(&b);
        !state.is_empty() && state.len() <= STATE_MAX && state.bytes().all(text)
    };
    match state.filter(fine) {
        Some(state) => format!("{parent} {state}"),
        None => parent.to_owned(),
    }
}

/// The two parts of such a text.
pub(crate) fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once(' ') {
        Some((parent, state)) => (parent, Some(state)),
        None => (text, None),
    }
}

/// The span of an execution.
pub(crate) fn span_of(execution: &ExecutionId) -> Span {
    half("execution", execution.as_str(), 0)
}

/// The span of an attempt: the parent of what the agent does.
pub(crate) fn span_of_attempt(execution: &ExecutionId, n: u32) -> Span {
    half("attempt", execution.as_str(), n)
}

/// The span of a part of an execution.
pub(super) fn span_of_part(part: &str, execution: &ExecutionId, n: u32) -> Span {
    half(part, execution.as_str(), n)
}

/// The first bytes of a hash; never all zero, which is no id.
fn half<const N: usize>(kind: &str, id: &str, n: u32) -> [u8; N] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(kind.as_bytes());
    hasher.update(&[0]);
    hasher.update(id.as_bytes());
    hasher.update(&n.to_be_bytes());
    let mut out = [0; N];
    out.copy_from_slice(&hasher.finalize().as_bytes()[..N]);
    out[N - 1] |= u8::from(out == [0; N]);
    out
}

/// Whether a trace is among the share that is told: by its id, so that all of it is or none.
fn is_drawn(trace: &Trace, sample: f64) -> bool {
    let mut high = [0; 8];
    high.copy_from_slice(&trace[8..]);
    #[allow(clippy::cast_precision_loss, reason = "a share need not be exact")]
    let place = u64::from_be_bytes(high) as f64 / u64::MAX as f64;
    sample >= 1.0 || place < sample
}

fn hex(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    let mut out = [0; N];
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_callers_trace_goes_on_and_a_run_without_is_one_of_its_own() {
        let run = RunId::trusted("run_1");
        let given = Context::read(Some(GIVEN), &run, 0.0);
        assert!(given.sampled, "the caller decides");
        assert_eq!(
            given.parent,
            Some([0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31])
        );
        assert_eq!(
            given.parent_text([1; 8]),
            "00-0af7651916cd43dd8448eb211c80319c-0101010101010101-01"
        );
        let not = GIVEN.replace("-01", "-00");
        assert!(!Context::read(Some(&not), &run, 1.0).sampled);

        let own = Context::read(None, &run, 1.0);
        assert_eq!(own, Context::read(None, &run, 1.0), "derived, not drawn");
        assert!(own.sampled && own.parent.is_none());
        assert_ne!(
            own.trace,
            Context::read(None, &RunId::trusted("run_2"), 1.0).trace
        );
        for bad in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        ] {
            assert_eq!(Context::read(Some(bad), &run, 1.0), own, "{bad}");
        }
    }

    #[test]
    fn a_state_travels_behind_a_blank_and_only_if_it_is_fit_for_a_header() {
        let run = RunId::trusted("run_1");
        let joined = join(GIVEN, Some("rojo=00f067aa0ba902b7,congo=t61"));
        assert_eq!(
            split(&joined),
            (GIVEN, Some("rojo=00f067aa0ba902b7,congo=t61"))
        );
        let context = Context::read(Some(&joined), &run, 1.0);
        assert_eq!(context.state, Some("rojo=00f067aa0ba902b7,congo=t61"));
        assert!(
            context
                .text([1; 8])
                .ends_with("-01 rojo=00f067aa0ba902b7,congo=t61")
        );
        for bad in ["", "a\nb", "é", &"x".repeat(513)] {
            assert_eq!(join(GIVEN, Some(bad)), GIVEN);
        }
    }

    #[test]
    fn a_share_of_traces_is_about_that_share() {
        let drawn = |sample: f64| {
            (0..1_000)
                .filter(|n| {
                    let run = RunId::trusted(format!("run_{n}").as_str());
                    Context::read(None, &run, sample).sampled
                })
                .count()
        };
        assert_eq!((drawn(0.0), drawn(1.0)), (0, 1_000));
        assert!((150..350).contains(&drawn(0.25)), "{}", drawn(0.25));
    }

    #[test]
    fn no_two_spans_are_alike() {
        let id = ExecutionId::trusted("exec_1");
        let all = [
            span_of(&id),
            span_of_attempt(&id, 1),
            span_of_attempt(&id, 2),
            span_of_part("queued", &id, 0),
            span_of(&ExecutionId::trusted("exec_2")),
        ];
        let unlike: std::collections::HashSet<Span> = all.into_iter().collect();
        assert_eq!(unlike.len(), all.len());
    }
}
