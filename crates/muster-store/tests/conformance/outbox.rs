//! Messages for webhooks: claimed by one, settled by who claimed, found again.

use muster_engine::Write;
use muster_engine::row::DeliveryRow;
use muster_store::outbox::{Claim, DeliveryFilter, DeliveryState, Settled};
use muster_wire::{Status, Timestamp};
use std::sync::Arc;

use crate::support::{Both, Hand, event, execution_id, run_id, say};
use muster_engine::row::EventKind;

fn message(seq: u64, execution: &str, target: &str, at: i64) -> Write {
    Write::InsertDelivery(Box::new(DeliveryRow {
        seq,
        execution: execution_id(execution),
        run: run_id("run"),
        status: Status::Succeeded,
        at: Timestamp(at),
        webhook: Arc::from(format!("{{\"target\":\"{target}\",\"sealed\":\"x\"}}")),
    }))
}

/// So many messages for a target, with the events they tell of.
fn write(hand: &Hand<'_>, target: &str, count: u64) {
    for _ in 0..count {
        let seq = hand.seq.get() + 1;
        hand.commit(vec![
            say(event(
                EventKind::ExecutionSucceeded,
                i64::try_from(seq).unwrap(),
            )),
            message(seq, &format!("e{seq}"), target, i64::try_from(seq).unwrap()),
        ]);
    }
}

fn claim(token: &str, until: i64) -> Claim {
    Claim {
        token: token.into(),
        until: Timestamp(until),
    }
}

fn claimed(store: &dyn Both, target: &str, now: i64, token: &str, limit: usize) -> Vec<u64> {
    let claim = claim(token, now + 100);
    let found = store
        .claim_deliveries(target, Timestamp(now), &claim, limit)
        .unwrap();
    assert!(
        found
            .iter()
            .all(|message| message.claimed && message.next_at == Some(claim.until))
    );
    found.iter().map(|message| message.seq).collect()
}

fn in_state(store: &dyn Both, state: DeliveryState) -> Vec<u64> {
    let filter = DeliveryFilter {
        state: Some(state),
        ..Default::default()
    };
    store
        .deliveries(&filter, 100)
        .unwrap()
        .iter()
        .map(|m| m.seq)
        .collect()
}

crate::on_each_store! {
    fn targets_are_walked_by_name_with_the_moment_of_their_next_message(store) {
        let hand = Hand::on(store);
        write(&hand, "b", 2);
        write(&hand, "a", 1);
        write(&hand, "", 1);
        let all = store.delivery_targets("", 10).unwrap();
        let all: Vec<(&str, i64)> = all.iter().map(|(name, at)| (&**name, at.0)).collect();
        assert_eq!(all, [("", 4), ("a", 3), ("b", 1)]);
        let behind = store.delivery_targets("a", 10).unwrap();
        assert_eq!(behind.len(), 1);
        assert_eq!(store.delivery_targets("", 2).unwrap().len(), 2);
        claimed(store, "b", 10, "t", 1);
        assert_eq!(store.delivery_targets("a", 10).unwrap()[0].1, Timestamp(2));
    }

    fn what_is_claimed_is_nobody_elses_until_the_claim_ends(store) {
        let hand = Hand::on(store);
        write(&hand, "a", 3);
        assert!(claimed(store, "a", 0, "one", 9).is_empty(), "nothing is due");
        assert_eq!(claimed(store, "a", 10, "one", 2), [1, 2]);
        assert_eq!(claimed(store, "a", 10, "two", 9), [3]);
        assert!(claimed(store, "a", 109, "two", 9).is_empty());
        assert_eq!(claimed(store, "a", 110, "two", 2), [1, 2]);
        // Who was thought dead settles nothing any more.
        let taken = Settled::Delivered { at: Timestamp(111), status: 200 };
        store.settle_deliveries("one", &[(1, taken.clone())]).unwrap();
        assert_eq!(in_state(store, DeliveryState::Delivered), [0u64; 0]);
        store.settle_deliveries("two", &[(1, taken), (3, Settled::Postponed { next_at: Timestamp(500) })]).unwrap();
        assert_eq!(in_state(store, DeliveryState::Delivered), [1]);
        let third = store.delivery(3).unwrap().unwrap();
        assert_eq!((third.tries, third.next_at, third.claimed), (0, Some(Timestamp(500)), false));
        assert_eq!(store.release_deliveries(Timestamp(120)).unwrap(), 1);
        assert_eq!(claimed(store, "a", 120, "three", 9), [2]);
    }

    fn an_end_is_kept_with_what_went_before(store) {
        let hand = Hand::on(store);
        write(&hand, "a", 2);
        claimed(store, "a", 10, "t", 9);
        let failed = Settled::Failed {
            at: Timestamp(11), next_at: Timestamp(20), error: "it answered 500".into(), status: Some(500),
        };
        let dead = Settled::Dead { at: Timestamp(12), error: "refused".into(), status: None };
        store.settle_deliveries("t", &[(1, failed), (2, dead)]).unwrap();
        let one = store.delivery(1).unwrap().unwrap();
        assert_eq!((one.state(), one.tries, one.last_status), (DeliveryState::Pending, 1, Some(500)));
        assert_eq!(one.last_error.as_deref(), Some("it answered 500"));
        assert_eq!(one.tried_at, Some(Timestamp(11)));
        let two = store.delivery(2).unwrap().unwrap();
        assert_eq!((two.state(), two.dead_at, two.next_at), (DeliveryState::Dead, Some(Timestamp(12)), None));
        let counts = store.delivery_counts().unwrap();
        assert_eq!((counts.pending, counts.dead, counts.oldest), (1, 1, Some(Timestamp(1))));
        claimed(store, "a", 20, "t", 9);
        store.settle_deliveries("t", &[(1, Settled::Delivered { at: Timestamp(21), status: 204 })]).unwrap();
        let one = store.delivery(1).unwrap().unwrap();
        assert_eq!((one.tries, one.last_status, one.last_error), (2, Some(204), None));
        assert_eq!(store.delivery(99).unwrap(), None);
    }

    fn what_is_dead_is_redriven_with_all_its_tries(store) {
        let hand = Hand::on(store);
        write(&hand, "a", 4);
        assert_eq!(store.bury_deliveries("a", Timestamp(3), Timestamp(50), "too long", 1).unwrap(), 1);
        assert_eq!(store.bury_deliveries("a", Timestamp(3), Timestamp(50), "too long", 9).unwrap(), 1);
        assert_eq!(store.bury_deliveries("b", Timestamp(99), Timestamp(50), "too long", 9).unwrap(), 0);
        assert_eq!(in_state(store, DeliveryState::Dead), [2, 1]);
        assert_eq!(store.delivery(1).unwrap().unwrap().last_error.as_deref(), Some("too long"));
        assert_eq!(store.redrive_deliveries(Some(3), Timestamp(60), 9).unwrap(), 0);
        assert_eq!(store.redrive_deliveries(Some(1), Timestamp(60), 9).unwrap(), 1);
        let one = store.delivery(1).unwrap().unwrap();
        assert_eq!((one.since, one.tries, one.next_at), (Timestamp(60), 0, Some(Timestamp(60))));
        assert_eq!(store.redrive_deliveries(None, Timestamp(60), 9).unwrap(), 1);
        assert_eq!(in_state(store, DeliveryState::Dead), [0u64; 0]);
    }

    fn lists_are_newest_first_and_page(store) {
        let hand = Hand::on(store);
        write(&hand, "a", 5);
        let all = DeliveryFilter::default();
        let seqs = |filter: &DeliveryFilter, limit| -> Vec<u64> {
            store.deliveries(filter, limit).unwrap().iter().map(|m| m.seq).collect()
        };
        assert_eq!(seqs(&all, 2), [5, 4]);
        assert_eq!(seqs(&DeliveryFilter { before: Some(4), ..all.clone() }, 2), [3, 2]);
        let of_one = DeliveryFilter { execution: Some(execution_id("e3")), ..all };
        assert_eq!(seqs(&of_one, 9), [3]);
    }
}
