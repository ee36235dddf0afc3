//! What may happen, and how likely it is.

use muster_wire::Status;
use proptest::prelude::*;

/// What may happen next. Numbers choose among what is there.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Call {
        lane: u8,
        agent: u8,
        function: u8,
        key: Option<u8>,
        run: Option<u8>,
    },
    Child {
        of: u16,
        agent: u8,
        with_parent: bool,
    },
    Answer {
        of: u16,
        status: u8,
    },
    Accept {
        of: u16,
    },
    TakeBack {
        of: u16,
    },
    RefuseDial {
        of: u16,
    },
    Break {
        of: u16,
    },
    TimeOut {
        of: u16,
    },
    CallBack {
        of: u16,
        status: u8,
        older: bool,
    },
    Register {
        agent: u8,
        instance: u8,
        port: u8,
        worker: bool,
    },
    Beat {
        agent: u8,
        instance: u8,
    },
    Goodbye {
        agent: u8,
    },
    Worker {
        change: u8,
    },
    Dialled {
        agent: u8,
        ok: bool,
    },
    Probed {
        seen: u8,
    },
    Taken {
        of: u16,
    },
    Sought {
        found: bool,
    },
    Pause {
        of: u16,
        on: bool,
    },
    PauseTree {
        of: u16,
        on: bool,
    },
    Ask {
        of: u16,
        request: u8,
        callback: bool,
        hours: u8,
    },
    Decide {
        of: u16,
        request: Option<u8>,
        by_request: bool,
        decision: u8,
    },
    ToldApproval {
        ok: bool,
    },
    Awaiter {
        of: u16,
        waiting: bool,
    },
    Cancel {
        of: u16,
    },
    CancelTree {
        of: u16,
    },
    Told {
        of: u16,
    },
    Unheard {
        of: u16,
    },
    Cap {
        agent: u8,
        cap: Option<u32>,
    },
    Hold {
        on: bool,
        agent: Option<u8>,
    },
    Pass {
        ms: u32,
    },
    Crash {
        ms: u16,
    },
    Restart {
        of: u16,
        whole: bool,
        mode: u8,
        fork: bool,
    },
    Llm {
        good: bool,
    },
    Tags {
        agent: u8,
        how: u8,
    },
}

pub(super) fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => (0..3u8, 0..3u8, 0..3u8, proptest::option::of(0..4u8), proptest::option::of(0..3u8))
            .prop_map(|(lane, agent, function, key, run)| Act::Call { lane, agent, function, key, run }),
        6 => (any::<u16>(), 0..3u8, any::<bool>())
            .prop_map(|(of, agent, with_parent)| Act::Child { of, agent, with_parent }),
        3 => (any::<u16>(), any::<bool>()).prop_map(|(of, on)| Act::Pause { of, on }),
        2 => (any::<u16>(), any::<bool>()).prop_map(|(of, on)| Act::PauseTree { of, on }),
        4 => (any::<u16>(), 0..3u8, any::<bool>(), 0..3u8)
            .prop_map(|(of, request, callback, hours)| Act::Ask { of, request, callback, hours }),
        4 => (any::<u16>(), proptest::option::of(0..3u8), any::<bool>(), 0..3u8)
            .prop_map(|(of, request, by_request, decision)| Act::Decide { of, request, by_request, decision }),
        3 => any::<bool>().prop_map(|ok| Act::ToldApproval { ok }),
        4 => (any::<u16>(), any::<bool>()).prop_map(|(of, waiting)| Act::Awaiter { of, waiting }),
        6 => (any::<u16>(), 0..3u8).prop_map(|(of, status)| Act::Answer { of, status }),
        5 => any::<u16>().prop_map(|of| Act::Accept { of }),
        2 => any::<u16>().prop_map(|of| Act::TakeBack { of }),
        4 => any::<u16>().prop_map(|of| Act::RefuseDial { of }),
        1 => any::<u16>().prop_map(|of| Act::Break { of }),
        1 => any::<u16>().prop_map(|of| Act::TimeOut { of }),
        5 => (any::<u16>(), 0..5u8, any::<bool>()).prop_map(|(of, status, older)| Act::CallBack { of, status, older }),
        4 => (0..3u8, 0..3u8, 0..4u8, any::<bool>())
            .prop_map(|(agent, instance, port, worker)| Act::Register { agent, instance, port, worker }),
        6 => (0..3u8, 0..3u8).prop_map(|(agent, instance)| Act::Beat { agent, instance }),
        1 => (0..3u8).prop_map(|agent| Act::Goodbye { agent }),
        2 => (0..4u8).prop_map(|change| Act::Worker { change }),
        4 => (0..3u8, any::<bool>()).prop_map(|(agent, ok)| Act::Dialled { agent, ok }),
        2 => (0..4u8).prop_map(|seen| Act::Probed { seen }),
        3 => any::<u16>().prop_map(|of| Act::Taken { of }),
        1 => any::<bool>().prop_map(|found| Act::Sought { found }),
        2 => any::<u16>().prop_map(|of| Act::Cancel { of }),
        1 => any::<u16>().prop_map(|of| Act::CancelTree { of }),
        1 => any::<u16>().prop_map(|of| Act::Told { of }),
        1 => any::<u16>().prop_map(|of| Act::Unheard { of }),
        1 => (any::<bool>(), proptest::option::of(0..3u8)).prop_map(|(on, agent)| Act::Hold { on, agent }),
        1 => (0..3u8, proptest::option::of(0..4u32)).prop_map(|(agent, cap)| Act::Cap { agent, cap }),
        5 => (0..30_000u32).prop_map(|ms| Act::Pass { ms }),
        1 => (0..5_000u16).prop_map(|ms| Act::Crash { ms }),
        3 => (any::<u16>(), any::<bool>(), 0..3u8, any::<bool>())
            .prop_map(|(of, whole, mode, fork)| Act::Restart { of, whole, mode, fork }),
        1 => any::<bool>().prop_map(|good| Act::Llm { good }),
        1 => (0..3u8, 0..3u8).prop_map(|(agent, how)| Act::Tags { agent, how }),
    ]
}

pub(super) const STATUSES: [Status; 5] = [
    Status::Succeeded,
    Status::Failed,
    Status::Cancelled,
    Status::Running,
    Status::Timeout,
];
