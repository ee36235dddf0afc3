//! Facts about an instance, and the verdict computed from them when asked. Stores no state and
//! reads no clock: `now` is an argument.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::Timestamp;

use crate::event::InstanceKey;
use crate::row::Function;

/// What is known of one instance, each with its time. A later fact never overwrites an earlier
/// one of another kind.
#[derive(Debug, Clone)]
pub struct InstanceFacts {
    /// Which instance.
    pub key: InstanceKey,
    /// Where it is called; empty when another agent took its address.
    pub base_url: Arc<str>,
    /// Its version.
    pub version: Arc<str>,
    /// What it offers.
    pub functions: Arc<Vec<Function>>,
    /// When it first registered.
    pub registered_at: Timestamp,
    /// When it last registered.
    pub renewed_at: Timestamp,
    /// The newest beat handed in; the shell may know a newer one.
    pub beat_at: Option<Timestamp>,
    /// The longest of its last gaps between beats.
    pub beat_interval: Duration,
    /// When it said goodbye.
    pub goodbye_at: Option<Timestamp>,
    /// When a supervisor said that it will start it again, and until when that is believed.
    pub restart_until: Option<Timestamp>,
    /// The last dial that failed, and what it said.
    pub dial_failed: Option<(Timestamp, Arc<str>)>,
    /// Since when dials have failed without one success between.
    pub dial_failing_since: Option<Timestamp>,
    /// The last probe after silence that failed, and what it said.
    pub probe_failed: Option<(Timestamp, Arc<str>)>,
    /// The last probe that it answered as itself.
    pub probe_alive_at: Option<Timestamp>,
    /// The last exchange that it took part in: an answer, a 202, a proved callback.
    pub exchange_at: Option<Timestamp>,
    /// When a wait for it ran out.
    pub wait_ran_out_at: Option<Timestamp>,
    /// When it was found gone, and by what.
    pub gone: Option<(Timestamp, Arc<str>)>,
    /// Silence before this moment is forgiven: the plane itself was away.
    pub forgiven_until: Timestamp,
    /// The start of the plane, where that came after its registration: signs from before it are
    /// not kept.
    pub heard_since: Option<Timestamp>,
    /// The supervised process it is.
    pub worker: Option<Arc<str>>,
    /// Since when its node is unreachable, and the sentence: what cannot be reached there says
    /// nothing about it.
    pub node_away: Option<(Timestamp, Arc<str>)>,
    /// Where else it may be, by its own word or by where it registered from.
    pub candidates: Arc<[Arc<str>]>,
    /// Attempts in flight.
    pub in_flight: u32,
}

/// Where an instance is, with the evidence in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The word.
    pub state: InstanceState,
    /// Why, for a person.
    pub evidence: String,
    /// Since when, or how old the evidence is.
    pub at: Timestamp,
}

/// The words for an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InstanceState {
    /// It beats.
    Active,
    /// It never beat yet.
    Unknown,
    /// Its beats are late.
    Degraded,
    /// A supervisor of ours is about to start it again.
    Restarting,
    /// It beats, but cannot be dialled at the address it gave.
    UnreachableCallback,
    /// It is down: calls are refused at once.
    Down,
}

impl InstanceState {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            InstanceState::Active => "active",
            InstanceState::Unknown => "unknown",
            InstanceState::Degraded => "degraded",
            InstanceState::Restarting => "restarting",
            InstanceState::UnreachableCallback => "unreachable_callback",
            InstanceState::Down => "down",
        }
    }
}

/// The durations the verdict depends on.
#[derive(Debug, Clone, Copy)]
pub struct LivenessLimits {
    /// How long a failed dial is absorbed; zero is not at all.
    pub restart_grace: Duration,
}

/// How long dials must fail beside fresh beats before the address is called wrong.
pub const UNREACHABLE_AFTER: Duration = Duration::from_secs(5);

impl InstanceFacts {
    /// The newest sign of life of any kind.
    pub fn sign_at(&self) -> Timestamp {
        let beat = self.beat_at.unwrap_or(Timestamp::ZERO);
        let probe = self.probe_alive_at.unwrap_or(Timestamp::ZERO);
        let exchange = self.exchange_at.unwrap_or(Timestamp::ZERO);
        self.renewed_at.max(beat).max(probe).max(exchange)
    }

    /// Since when it is silent, with the plane's own absence forgiven.
    pub fn silent_since(&self) -> Timestamp {
        self.sign_at().max(self.forgiven_until)
    }

    /// Three beats.
    pub fn late_after(&self) -> Duration {
        self.beat_interval * 3
    }

    /// How long it may be silent before it is probed.
    pub fn probe_after(&self, limits: LivenessLimits) -> Duration {
        self.late_after().max(limits.restart_grace)
    }

    /// The verdict: one computation, from facts, when asked. Its order is the order of strength:
    /// what cannot change by itself comes first.
    pub fn verdict(&self, now: Timestamp, limits: LivenessLimits) -> Verdict {
        let says = |state, at, evidence: String| Verdict {
            state,
            evidence,
            at,
        };
        let age = |at: Timestamp| seconds(now.since(at));
        if let Some((at, evidence)) = &self.gone {
            return says(
                InstanceState::Down,
                *at,
                format!("gone {} ago: {evidence}", age(*at)),
            );
        }
        if let Some(until) = self.restart_until
            && until > now
        {
            return says(
                InstanceState::Restarting,
                self.goodbye_at.unwrap_or(now),
                format!(
                    "its supervisor is starting it again, waited for {} more",
                    seconds(until.since(now))
                ),
            );
        }
        if let Some(at) = self.goodbye_at {
            return says(
                InstanceState::Down,
                at,
                format!(
                    "it said goodbye {} ago and nothing of ours will start it again",
                    age(at)
                ),
            );
        }
        let sign = self.sign_at();
        let unheard = self.heard_since.filter(|start| *start > sign);
        let gave_up = self.wait_ran_out_at.is_some_and(|at| at > sign);
        if let Some((at, why)) = self.node_away.as_ref().filter(|(at, _)| *at >= sign)
            && !gave_up
        {
            let text = format!(
                "{why} for {}: nobody knows whether it runs; last sign of life {} ago",
                age(*at),
                age(sign)
            );
            return says(InstanceState::Degraded, *at, text);
        }
        if let Some((at, error)) = &self.probe_failed
            && *at > sign
        {
            let silent = match unheard {
                Some(start) => {
                    format!("no sign of life since the plane's start {} ago", age(start))
                }
                None => format!("silent for {}", age(sign)),
            };
            let text = format!("{silent}, and its address does not answer as it: {error}");
            return says(InstanceState::Down, *at, text);
        }
        let silence = now.since(self.silent_since());
        let late = silence > self.late_after();
        if let (Some((at, error)), Some(since)) = (&self.dial_failed, self.dial_failing_since)
            && !late
            && self.beat_at.is_some_and(|beat| beat > since)
            && at.since(since) >= UNREACHABLE_AFTER
            && now.since(self.renewed_at) >= limits.restart_grace
        {
            let others: Vec<&str> = self.candidates.iter().map(|url| &**url).collect();
            let others = match others.as_slice() {
                [] => String::new(),
                others => format!(", and it does not answer at {} either", others.join(", ")),
            };
            let text = format!(
                "it beats, but {} cannot be dialled: {error}{others}; set AGENT_CALLBACK_URL to an address the plane reaches",
                self.base_url
            );
            return says(InstanceState::UnreachableCallback, *at, text);
        }
        if let Some(at) = self.wait_ran_out_at
            && at > sign
        {
            let error = self.dial_failed.as_ref().map_or("", |(_, error)| error);
            return says(
                InstanceState::Down,
                at,
                format!("the wait for it ran out {} ago: {error}", age(at)),
            );
        }
        if self.base_url.is_empty() {
            let text = "another agent registered its address; it is called again when it registers";
            return says(InstanceState::Degraded, sign, text.into());
        }
        if late {
            let since = unheard.unwrap_or(sign);
            let text = match unheard {
                Some(start) => {
                    format!("no sign of life since the plane's start {} ago", age(start))
                }
                None => format!("last sign of life {} ago", age(sign)),
            };
            return says(InstanceState::Degraded, since, text);
        }
        match self.beat_at.max(self.exchange_at) {
            Some(at) => {
                let what = if Some(at) == self.beat_at {
                    "beat"
                } else {
                    "answer"
                };
                says(
                    InstanceState::Active,
                    at,
                    format!("last {what} {} ago", age(at)),
                )
            }
            None => says(
                InstanceState::Unknown,
                unheard.unwrap_or(self.renewed_at),
                match unheard {
                    Some(start) => format!(
                        "registered {} ago; nothing heard of it since the plane's start {} ago",
                        age(self.renewed_at),
                        age(start)
                    ),
                    None => format!("registered {} ago, no beat heard yet", age(self.renewed_at)),
                },
            ),
        }
    }
}

pub(crate) fn seconds(wait: Duration) -> String {
    if wait < Duration::from_secs(10) {
        format!("{:.1} s", wait.as_secs_f64())
    } else if wait < Duration::from_secs(120) {
        format!("{} s", wait.as_secs())
    } else if wait < Duration::from_secs(7200) {
        format!("{} m", wait.as_secs() / 60)
    } else {
        format!("{} h", wait.as_secs() / 3600)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_wire::{AgentId, InstanceId};

    const S: i64 = 1_000_000;
    const LIMITS: LivenessLimits = LivenessLimits {
        restart_grace: Duration::from_secs(15),
    };

    fn facts() -> InstanceFacts {
        InstanceFacts {
            key: InstanceKey {
                agent: AgentId::trusted("a"),
                instance: InstanceId::trusted("i"),
            },
            base_url: "http://127.0.0.1:8001".into(),
            version: "1".into(),
            functions: Arc::default(),
            registered_at: Timestamp(0),
            renewed_at: Timestamp(0),
            beat_at: Some(Timestamp(100 * S)),
            beat_interval: Duration::from_secs(2),
            goodbye_at: None,
            restart_until: None,
            dial_failed: None,
            dial_failing_since: None,
            probe_failed: None,
            probe_alive_at: None,
            exchange_at: None,
            wait_ran_out_at: None,
            gone: None,
            forgiven_until: Timestamp(0),
            heard_since: None,
            worker: None,
            node_away: None,
            candidates: Arc::default(),
            in_flight: 0,
        }
    }

    #[test]
    fn each_fact_gives_its_state_and_the_stronger_one_wins() {
        type Change = fn(&mut InstanceFacts);
        let table: &[(&str, Change, InstanceState)] = &[
            ("a fresh beat", |_| {}, InstanceState::Active),
            (
                "never a beat",
                |f| {
                    f.beat_at = None;
                    f.renewed_at = Timestamp(101 * S)
                },
                InstanceState::Unknown,
            ),
            (
                "three beats late",
                |f| f.beat_at = Some(Timestamp(90 * S)),
                InstanceState::Degraded,
            ),
            (
                "late, but the plane was away",
                |f| {
                    f.beat_at = Some(Timestamp(10 * S));
                    f.forgiven_until = Timestamp(100 * S)
                },
                InstanceState::Active,
            ),
            (
                "goodbye",
                |f| f.goodbye_at = Some(Timestamp(101 * S)),
                InstanceState::Down,
            ),
            (
                "goodbye under a supervisor",
                |f| {
                    f.goodbye_at = Some(Timestamp(101 * S));
                    f.restart_until = Some(Timestamp(110 * S))
                },
                InstanceState::Restarting,
            ),
            (
                "the supervisor's time is over",
                |f| {
                    f.goodbye_at = Some(Timestamp(81 * S));
                    f.restart_until = Some(Timestamp(99 * S))
                },
                InstanceState::Down,
            ),
            (
                "a probe failed after silence",
                |f| {
                    f.beat_at = Some(Timestamp(50 * S));
                    f.probe_failed = Some((Timestamp(80 * S), "refused".into()))
                },
                InstanceState::Down,
            ),
            (
                "a beat after the probe",
                |f| f.probe_failed = Some((Timestamp(80 * S), "refused".into())),
                InstanceState::Active,
            ),
            (
                "a wait ran out",
                |f| f.wait_ran_out_at = Some(Timestamp(101 * S)),
                InstanceState::Down,
            ),
            (
                "beats, dials fail for long, and a wait ran out just now",
                |f| {
                    f.dial_failing_since = Some(Timestamp(95 * S));
                    f.dial_failed = Some((Timestamp(101 * S), "refused".into()));
                    f.wait_ran_out_at = Some(Timestamp(101 * S))
                },
                InstanceState::UnreachableCallback,
            ),
            (
                "a beat after the wait ran out",
                |f| f.wait_ran_out_at = Some(Timestamp(99 * S)),
                InstanceState::Active,
            ),
            (
                "beats, but dials fail for long",
                |f| {
                    f.dial_failing_since = Some(Timestamp(95 * S));
                    f.dial_failed = Some((Timestamp(101 * S), "refused".into()))
                },
                InstanceState::UnreachableCallback,
            ),
            (
                "dials fail only a moment",
                |f| {
                    f.dial_failing_since = Some(Timestamp(99 * S));
                    f.dial_failed = Some((Timestamp(101 * S), "refused".into()))
                },
                InstanceState::Active,
            ),
            (
                "just registered, dials fail",
                |f| {
                    f.renewed_at = Timestamp(95 * S);
                    f.dial_failing_since = Some(Timestamp(95 * S));
                    f.dial_failed = Some((Timestamp(101 * S), "refused".into()))
                },
                InstanceState::Active,
            ),
            (
                "its node is unreachable, and so is its address",
                |f| {
                    f.node_away = Some((Timestamp(101 * S), "its node is unreachable".into()));
                    f.probe_failed = Some((Timestamp(101 * S), "refused".into()))
                },
                InstanceState::Degraded,
            ),
            (
                "its node is unreachable, and it beats itself",
                |f| f.node_away = Some((Timestamp(99 * S), "its node is unreachable".into())),
                InstanceState::Active,
            ),
            (
                "gone beats everything",
                |f| {
                    f.gone = Some((Timestamp(60 * S), "exit 1".into()));
                    f.restart_until = Some(Timestamp(200 * S))
                },
                InstanceState::Down,
            ),
        ];
        for (name, change, want) in table {
            let mut facts = facts();
            change(&mut facts);
            let verdict = facts.verdict(Timestamp(102 * S), LIMITS);
            assert_eq!(verdict.state, *want, "{name}: {}", verdict.evidence);
            assert!(!verdict.evidence.is_empty());
        }
    }
    #[test]
    fn what_was_heard_before_the_planes_start_is_not_called_silence() {
        let mut facts = facts();
        facts.beat_at = None;
        facts.heard_since = Some(Timestamp(90 * S));
        let said = |facts: &InstanceFacts| facts.verdict(Timestamp(102 * S), LIMITS);
        let verdict = said(&facts);
        assert_eq!(verdict.at, Timestamp(90 * S), "since when it is known");
        assert_eq!(
            verdict.evidence,
            "no sign of life since the plane's start 12 s ago"
        );
        facts.probe_failed = Some((Timestamp(95 * S), "refused".into()));
        assert_eq!(
            said(&facts).evidence,
            "no sign of life since the plane's start 12 s ago, and its address does not answer as it: refused"
        );
        facts.probe_failed = None;
        facts.forgiven_until = Timestamp(110 * S);
        let verdict = said(&facts);
        assert_eq!(verdict.state, InstanceState::Unknown);
        assert!(
            verdict
                .evidence
                .contains("nothing heard of it since the plane's start")
        );
        facts.beat_at = Some(Timestamp(101 * S));
        assert_eq!(said(&facts).evidence, "last beat 1.0 s ago");
    }
}
