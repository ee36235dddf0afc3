//! Large payloads: whole, replaced, dropped, and collected when nobody names them.

use bytes::Bytes;
use muster_engine::row::PayloadKind;
use muster_wire::{Status, Timestamp};

use crate::support::*;

fn pattern(size: usize) -> Bytes {
    (0..size)
        .map(|n| (n / 7 % 256) as u8)
        .collect::<Vec<u8>>()
        .into()
}

crate::on_each_store! {
    fn chunks_come_back_as_one(store) {
        const CHUNK: usize = 256 << 10;
        for size in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 9 * CHUNK + 17] {
            let id = execution_id(&format!("e{size}"));
            store.put_large(&id, PayloadKind::Input, pattern(size)).unwrap();
            let found = store.payload(&id, PayloadKind::Input).unwrap().unwrap();
            assert!(found.0 == pattern(size), "{size}");
            assert_eq!(store.payload(&id, PayloadKind::Result).unwrap(), None);
        }
    }

    fn any_part_is_read_as_if_of_the_whole(store) {
        const CHUNK: usize = 256 << 10;
        for size in [1, 100, CHUNK, 3 * CHUNK + 17] {
            let id = execution_id(&format!("e{size}"));
            store.put_large(&id, PayloadKind::Input, pattern(size)).unwrap();
            assert_eq!(store.payload_size(&id, PayloadKind::Input).unwrap(), Some(size));
            for part in [0..1, 0..size, 5..CHUNK + 5, CHUNK..2 * CHUNK, 2 * CHUNK - 1..size, size..size + 9, 0..0] {
                let found = store.payload_part(&id, PayloadKind::Input, part.clone()).unwrap().unwrap();
                let end = part.end.min(size);
                let start = part.start.min(end);
                assert!(found.0 == pattern(size).slice(start..end), "{part:?} of {size}");
            }
        }
        let nobody = execution_id("nobody");
        assert_eq!(store.payload_size(&nobody, PayloadKind::Input).unwrap(), None);
        assert_eq!(store.payload_part(&nobody, PayloadKind::Input, 0..1).unwrap(), None);
    }

    fn a_shorter_one_leaves_nothing_of_the_longer(store) {
        let id = execution_id("e1");
        store.put_large(&id, PayloadKind::Input, pattern(1 << 20)).unwrap();
        store.put_large(&id, PayloadKind::Input, pattern(100)).unwrap();
        let found = store.payload(&id, PayloadKind::Input).unwrap().unwrap();
        assert!(found.0 == pattern(100));
        store.put_large(&id, PayloadKind::Result, pattern(5)).unwrap();
        store.drop_large(&id, PayloadKind::Input).unwrap();
        store.drop_large(&id, PayloadKind::Input).unwrap();
        assert_eq!(store.payload(&id, PayloadKind::Input).unwrap(), None);
        assert!(store.payload(&id, PayloadKind::Result).unwrap().is_some());
    }

    fn only_what_nobody_names_is_collected(store) {
        let hand = Hand::on(store);
        hand.insert_all(&[row("open", 1), row("done", 1), row("empty", 1)]);
        let mut done = ending(Status::Succeeded, 5);
        done.result_size = Some(70_000);
        hand.commit(vec![
            muster_engine::Write::UpdateExecution {
                id: execution_id("done"),
                change: muster_engine::effect::ExecutionChange::Ended(Box::new(done)),
            },
            ended("empty", Status::Cancelled, 5),
        ]);
        let puts = [
            ("open", PayloadKind::Input, true),
            ("open", PayloadKind::Result, true),
            ("done", PayloadKind::Result, true),
            ("done", PayloadKind::ErrorDetails, true),
            ("empty", PayloadKind::Result, false),
            ("nobody", PayloadKind::Input, false),
            ("nobody", PayloadKind::Result, false),
        ];
        for (id, kind, _) in puts {
            store.put_large(&execution_id(id), kind, pattern(70_000)).unwrap();
        }
        assert_eq!(store.collect_leftovers(Timestamp(0), 100).unwrap(), 0, "too young");
        assert_eq!(store.collect_leftovers(Timestamp::NEVER, 2).unwrap(), 2);
        assert_eq!(store.collect_leftovers(Timestamp::NEVER, 100).unwrap(), 1);
        assert_eq!(store.collect_leftovers(Timestamp::NEVER, 100).unwrap(), 0);
        for (id, kind, stays) in puts {
            let found = store.payload(&execution_id(id), kind).unwrap();
            assert_eq!(found.is_some(), stays, "{id} {kind:?}");
        }
    }
}
