//! Values that break naive stores are ordinary here: bytes are bytes, and ids reach their
//! bounds.

use std::sync::Arc;

use bytes::Bytes;
use muster_engine::Write;
use muster_engine::row::{EventKind, ExecutionRow, PayloadKind};
use muster_store::annex::{MemoryBy, MemoryScope};
use muster_store::{ExecutionFilter, INLINE_MAX};
use muster_wire::Timestamp;

use crate::support::*;

const HOSTILE: &[&[u8]] = &[
    b"",
    b"\0",
    b"{\"a\":\"\\u0000\"}",
    b"\"\\ud800\"",
    b"\xed\xa0\x80",
    b"1e400",
    b"-1e400",
    b"123456789012345678901234567890",
    b"9223372036854775808",
    b"\xff\xfe\xfd",
    b"'; DROP TABLE executions; --",
    b"null",
    b" ",
];

const HOSTILE_TEXT: &[&str] = &[
    "",
    "\0",
    "a\0b",
    "\u{feff}\u{202e}\u{10ffff}",
    "'; DROP TABLE executions; --",
    "%_*?[",
    "\n\r\t",
    "1e400",
];

crate::on_each_store! {
    fn payloads_are_bytes(store) {
        let hand = Hand::on(store);
        for (n, bytes) in HOSTILE.iter().enumerate() {
            let id = format!("e{n}");
            hand.insert(&row(&id, 1));
            hand.commit(vec![put(&id, PayloadKind::Result, bytes)]);
            store.put_large(&execution_id(&id), PayloadKind::Late, Bytes::from_static(bytes)).unwrap();
            for kind in [PayloadKind::Result, PayloadKind::Late] {
                let found = store.payload(&execution_id(&id), kind).unwrap();
                assert_eq!(found, Some(payload(bytes)), "{n}");
            }
        }
    }

    fn text_from_outside_is_bytes(store) {
        let hand = Hand::on(store);
        for (n, bytes) in HOSTILE.iter().enumerate() {
            let mut row = row(&format!("e{n}"), 1);
            row.error_text = Some(payload(bytes));
            row.usage = Some(payload(bytes));
            hand.insert(&row);
            assert_eq!(store.execution(&row.id).unwrap().1, Some(row));
        }
        for (n, text) in HOSTILE_TEXT.iter().enumerate() {
            let text: Arc<str> = Arc::from(*text);
            let row = ExecutionRow {
                status_reason: Some(text.clone()),
                session: Some(text.clone()),
                actor: Some(text.clone()),
                traceparent: Some(text.clone()),
                principal: text.clone(),
                key_hash: Some(text.clone()),
                ..row(&format!("t{n}"), 1)
            };
            let mut line = event(EventKind::HoldChanged, 1);
            line.text = Some(text.clone());
            line.reason = Some(text.clone());
            hand.commit(vec![
                Write::InsertExecution(Arc::new(row.clone())),
                say(line.clone()),
                Write::SetHold(Some(text.clone())),
            ]);
            line.seq = hand.seq.get();
            assert_eq!(store.execution(&row.id).unwrap().1, Some(row));
            assert_eq!(store.events(line.seq - 1, 1).unwrap(), [line]);
            assert_eq!(store.restore().unwrap().snapshot.hold, Some(text));
        }
    }

    fn ids_reach_their_bounds(store) {
        let hand = Hand::on(store);
        let long = "x".repeat(128);
        for id in ["a", "-", "...", "A.b_c:d-e", long.as_str()] {
            let mut row = row(id, 1);
            row.run = run_id(id);
            row.agent = agent_id(id);
            hand.insert(&row);
            assert_eq!(store.execution(&row.id).unwrap().1.as_ref(), Some(&row));
            assert_eq!(store.run(&row.run).unwrap().unwrap().root, row);
        }
    }

    fn times_reach_their_bounds(store) {
        let hand = Hand::on(store);
        for (n, at) in [i64::MIN, -1, 0, i64::MAX].into_iter().enumerate() {
            let mut row = row(&format!("e{n}"), 1);
            row.created_at = Timestamp(at);
            row.started_at = Some(Timestamp(at));
            hand.insert(&row);
            assert_eq!(store.execution(&row.id).unwrap().1, Some(row));
        }
        assert_eq!(walk(store, &ExecutionFilter::default(), 1), ["e3", "e2", "e1", "e0"]);
    }

    fn the_border_between_small_and_large_is_seamless(store) {
        let hand = Hand::on(store);
        hand.insert(&row("e1", 1));
        for size in [INLINE_MAX - 1, INLINE_MAX, INLINE_MAX + 1] {
            let bytes: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
            hand.commit(vec![put("e1", PayloadKind::Input, &bytes)]);
            store.put_large(&execution_id("e1"), PayloadKind::Result, bytes.clone().into()).unwrap();
            for kind in [PayloadKind::Input, PayloadKind::Result] {
                let found = store.payload(&execution_id("e1"), kind).unwrap().unwrap();
                assert_eq!(found.0, bytes);
            }
        }
    }

    fn filters_are_text_and_not_patterns(store) {
        let hand = Hand::on(store);
        hand.insert_all(&[row("a%b", 1), row("a_b", 2), row("aXb", 3)]);
        for (part, expected) in [
            ("a%", vec!["a%b"]),
            ("_b", vec!["a_b"]),
            ("b", vec!["aXb", "a_b", "a%b"]),
            ("'", vec![]),
            ("x", vec![]),
        ] {
            let filter = ExecutionFilter { id_part: Some(part.into()), ..Default::default() };
            assert_eq!(walk(store, &filter, 2), expected, "{part}");
        }
    }

    fn keys_of_memory_are_any_text(store) {
        let scope = MemoryScope { scope: Arc::from("session"), id: Arc::from("\0'") };
        for (n, key) in HOSTILE_TEXT.iter().enumerate() {
            let data = Bytes::from_static(HOSTILE[n]);
            let (set, _) = store
                .memory_set(&scope, key, data.clone(), &MemoryBy::default(), Timestamp(1))
                .unwrap();
            assert_eq!(set.data, data);
            assert_eq!(store.memory_get(std::slice::from_ref(&scope), key).unwrap(), Some(set));
        }
        let listed = store.memory_list(&scope, "", 100).unwrap();
        assert_eq!(listed.len(), HOSTILE_TEXT.len());
    }
}
