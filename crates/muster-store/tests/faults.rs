//! Faults on demand: each ends a commit as it says, and only the commits it was asked for.

use muster_engine::Write;
use muster_engine::row::EventKind;
use muster_store::{CommitEnd, Fault, LeaseId, MemoryStore, Store};

#[path = "conformance/support.rs"]
#[allow(dead_code)]
mod support;
use support::{Hand, event, say};

fn one() -> Vec<Write> {
    vec![say(event(EventKind::HoldChanged, 1))]
}

#[test]
fn refusals_and_unknown_ends_come_in_the_order_asked_for() {
    let store = MemoryStore::new();
    let hand = Hand::on(&store);
    store.faults().next(Fault::Full, 2);
    store.faults().next(Fault::Broken, 1);
    store.faults().next(Fault::UnknownLost, 1);
    let commit = hand.prepared(one());
    for _ in 0..2 {
        assert!(matches!(
            store.commit(&commit),
            CommitEnd::Refused { passing: true, .. }
        ));
    }
    assert!(matches!(
        store.commit(&commit),
        CommitEnd::Refused { passing: false, .. }
    ));
    assert!(matches!(store.commit(&commit), CommitEnd::Unknown(_)));
    assert_eq!(store.last_seq().unwrap(), 0);
    assert_eq!(store.faults().committed(), 0);
    hand.commit(one());
    store.faults().next(Fault::UnknownKept, 1);
    assert!(matches!(
        store.commit(&hand.prepared(one())),
        CommitEnd::Unknown(_)
    ));
    assert_eq!(store.last_seq().unwrap(), 2);
    assert_eq!(store.faults().committed(), 2);
}

#[test]
fn a_late_commit_arrives_unless_the_lease_was_taken() {
    let store = MemoryStore::new();
    let hand = Hand::on(&store);
    store.faults().next(Fault::UnknownLate, 2);
    assert!(matches!(
        store.commit(&hand.prepared(one())),
        CommitEnd::Unknown(_)
    ));
    assert_eq!(store.last_seq().unwrap(), 0);
    assert!(store.settle());
    assert_eq!(store.last_seq().unwrap(), 1);
    assert!(!store.settle(), "only once");
    hand.seq.set(1);
    assert!(matches!(
        store.commit(&hand.prepared(one())),
        CommitEnd::Unknown(_)
    ));
    store.take_lease(LeaseId(0), "again").unwrap();
    assert!(!store.settle());
    assert_eq!(store.last_seq().unwrap(), 1);
}

#[test]
fn poison_refuses_what_it_names_until_it_is_cleared() {
    let store = MemoryStore::new();
    let hand = Hand::on(&store);
    store
        .faults()
        .poison(|write| matches!(write, Write::SetHold(_)));
    hand.refused(vec![Write::SetHold(None)]);
    hand.commit(one());
    store.faults().clear();
    hand.commit(vec![Write::SetHold(None)]);
}
