//! What may happen to a fleet, and how likely it is.

use proptest::prelude::*;

use super::NODES;

/// What may happen next. Numbers choose among what is there.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Enrol {
        node: u8,
        name: u8,
    },
    Hello {
        node: u8,
        older: bool,
        epoch: u8,
    },
    Close {
        node: u8,
        current: bool,
    },
    Beat {
        node: u8,
        count: u8,
        names: bool,
    },
    AskAnswered {
        node: u8,
    },
    Inventory {
        node: u8,
        have: u16,
        state: u8,
        restarts: u8,
    },
    Seen {
        node: u8,
        of: u8,
        state: u8,
        restarts: u8,
    },
    Exited {
        node: u8,
        of: u8,
        restarts: u8,
        again: bool,
    },
    Goodbye {
        node: u8,
    },
    Started {
        node: u8,
        of: u8,
        how: u8,
    },
    Released {
        node: u8,
        of: u8,
        ok: bool,
    },
    Restarted {
        node: u8,
        of: u8,
        how: u8,
    },
    Restart {
        of: u8,
    },
    Spawn {
        target: u8,
        key: Option<u8>,
        queue: bool,
        restarts: bool,
    },
    Release {
        of: u8,
        force: bool,
    },
    Wish {
        node: u8,
        wish: u8,
    },
    Pin {
        node: u8,
        state: u8,
    },
    DeclareLost {
        node: u8,
    },
    Delete {
        node: u8,
    },
    EndDoubt,
    WasLate {
        seconds: u8,
    },
    Register {
        of: u8,
    },
    Pass {
        seconds: u8,
    },
    Crash {
        seconds: u8,
    },
}

pub(super) fn act() -> impl Strategy<Value = Act> {
    let node = || 0..NODES as u8;
    prop_oneof![
        1 => (node(), 0..4u8).prop_map(|(node, name)| Act::Enrol { node, name }),
        6 => (node(), any::<bool>(), 0..2u8)
            .prop_map(|(node, older, epoch)| Act::Hello { node, older: older && epoch == 1, epoch }),
        3 => (node(), any::<bool>()).prop_map(|(node, current)| Act::Close { node, current }),
        10 => (node(), 0..4u8, any::<bool>())
            .prop_map(|(node, count, names)| Act::Beat { node, count, names }),
        1 => node().prop_map(|node| Act::AskAnswered { node }),
        8 => (node(), any::<u16>(), 0..8u8, 0..3u8)
            .prop_map(|(node, have, state, restarts)| Act::Inventory { node, have, state, restarts }),
        3 => (node(), any::<u8>(), 0..8u8, 0..3u8)
            .prop_map(|(node, of, state, restarts)| Act::Seen { node, of, state, restarts }),
        5 => (node(), any::<u8>(), 0..3u8, any::<bool>())
            .prop_map(|(node, of, restarts, again)| Act::Exited { node, of, restarts, again }),
        1 => node().prop_map(|node| Act::Goodbye { node }),
        8 => (node(), any::<u8>(), 0..5u8).prop_map(|(node, of, how)| Act::Started { node, of, how }),
        3 => (node(), any::<u8>(), any::<bool>())
            .prop_map(|(node, of, ok)| Act::Released { node, of, ok }),
        2 => (node(), any::<u8>(), 0..4u8)
            .prop_map(|(node, of, how)| Act::Restarted { node, of, how }),
        3 => any::<u8>().prop_map(|of| Act::Restart { of }),
        10 => (0..5u8, proptest::option::of(0..3u8), any::<bool>(), any::<bool>())
            .prop_map(|(target, key, queue, restarts)| Act::Spawn { target, key, queue, restarts }),
        4 => (any::<u8>(), any::<bool>()).prop_map(|(of, force)| Act::Release { of, force }),
        2 => (node(), 0..5u8).prop_map(|(node, wish)| Act::Wish { node, wish }),
        1 => (node(), 0..6u8).prop_map(|(node, state)| Act::Pin { node, state }),
        1 => node().prop_map(|node| Act::DeclareLost { node }),
        1 => node().prop_map(|node| Act::Delete { node }),
        1 => Just(Act::EndDoubt),
        1 => (0..40u8).prop_map(|seconds| Act::WasLate { seconds }),
        2 => any::<u8>().prop_map(|of| Act::Register { of }),
        8 => (0..90u8).prop_map(|seconds| Act::Pass { seconds }),
        1 => (0..60u8).prop_map(|seconds| Act::Crash { seconds }),
    ]
}
