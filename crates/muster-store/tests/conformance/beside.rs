//! The annex: memory and its feed, notes, logs, keys, audit, identities, credentials, settings,
//! and the quarantine.

use std::sync::Arc;

use bytes::Bytes;
use muster_store::QuarantineItem;
use muster_store::annex::{
    AuditFilter, AuditRow, CredentialRow, IdentityRow, KeyRecord, LogRow, MemoryAction, MemoryBy,
    MemoryEventFilter, MemoryScope, NoteRow,
};
use muster_store::bound::{BYTES_MAX, LINES_MAX};
use muster_wire::Timestamp;

use crate::support::*;

fn scope(scope: &str, id: &str) -> MemoryScope {
    MemoryScope {
        scope: Arc::from(scope),
        id: Arc::from(id),
    }
}

fn line(id: &str, level: &str, message: &str) -> LogRow {
    LogRow {
        seq: 0,
        execution: execution_id(id),
        at: Timestamp(3),
        level: level.into(),
        source: "source".into(),
        event_type: "log.info".into(),
        message: message.into(),
        attributes: Bytes::from_static(b"{\"a\":1}"),
    }
}

crate::on_each_store! {
    fn memory_is_found_in_the_first_scope_that_has_it(store) {
        let by = MemoryBy { agent: Some("a".into()), actor: Some("b".into()), workflow: Some("c".into()) };
        let (near, far) = (scope("workflow", "r1"), scope("global", "global"));
        let bytes = Bytes::from_static;
        let (row, change) = store.memory_set(&far, "k", bytes(b"1"), &by, Timestamp(1)).unwrap();
        assert_eq!((row.created_at, row.updated_at), (Timestamp(1), Timestamp(1)));
        assert_eq!((change.seq, change.action), (1, MemoryAction::Set));
        assert_eq!((change.data, change.previous), (Some(bytes(b"1")), None));
        assert_eq!((change.agent, change.actor, change.workflow), (by.agent.clone(), by.actor.clone(), by.workflow.clone()));
        let get = |scopes: &[&MemoryScope]| {
            let scopes: Vec<MemoryScope> = scopes.iter().map(|s| (*s).clone()).collect();
            store.memory_get(&scopes, "k").unwrap().map(|row| (row.scope, row.data))
        };
        assert_eq!(get(&[&near, &far]), Some((far.clone(), bytes(b"1"))));
        store.memory_set(&near, "k", bytes(b"2"), &by, Timestamp(2)).unwrap();
        assert_eq!(get(&[&near, &far]), Some((near.clone(), bytes(b"2"))));
        assert_eq!(get(&[&scope("workflow", "r2")]), None);
        assert_eq!(get(&[]), None);
        let (row, change) = store.memory_set(&far, "k", bytes(b"3"), &by, Timestamp(3)).unwrap();
        assert_eq!((row.created_at, row.updated_at), (Timestamp(1), Timestamp(3)));
        assert_eq!((change.seq, change.previous), (3, Some(bytes(b"1"))));
        let change = store.memory_delete(&far, "k", &by, Timestamp(4)).unwrap().unwrap();
        assert_eq!((change.seq, change.action), (4, MemoryAction::Delete));
        assert_eq!((change.data, change.previous), (None, Some(bytes(b"3"))));
        assert!(store.memory_delete(&far, "k", &by, Timestamp(5)).unwrap().is_none());
        assert_eq!(get(&[&far]), None);
    }

    fn memory_lists_by_key_and_pages(store) {
        let here = scope("session", "s");
        for key in ["b", "a", "c", "", "ab"] {
            store.memory_set(&here, key, Bytes::from_static(b"1"), &MemoryBy::default(), Timestamp(1)).unwrap();
        }
        store.memory_set(&scope("session", "s2"), "a", Bytes::new(), &MemoryBy::default(), Timestamp(1)).unwrap();
        let list = |after: &str, limit| -> Vec<String> {
            store.memory_list(&here, after, limit).unwrap().into_iter().map(|row| row.key).collect()
        };
        assert_eq!(list("", 10), ["", "a", "ab", "b", "c"]);
        assert_eq!(list("a", 2), ["ab", "b"]);
        assert_eq!(list("aa", 2), ["ab", "b"]);
        assert!(list("c", 10).is_empty());
        let keys = store.memory_keys(&here, "a", 10).unwrap();
        assert_eq!(keys.len(), 3);
        assert!(keys.iter().all(|row| row.data.is_empty()));
    }

    fn the_feed_of_memory_is_dense_and_filtered(store) {
        for n in 1..=9_i64 {
            let scope = scope(if n % 2 == 0 { "session" } else { "actor" }, if n % 3 == 0 { "x" } else { "y" });
            store.memory_set(&scope, &format!("user.{n}"), Bytes::new(), &MemoryBy::default(), Timestamp(n)).unwrap();
        }
        let ask = |filter: MemoryEventFilter| -> Vec<u64> {
            store.memory_events(&filter).unwrap().iter().map(|change| change.seq).collect()
        };
        let all = || MemoryEventFilter { limit: 100, ..Default::default() };
        assert_eq!(ask(all()), (1..=9).collect::<Vec<u64>>());
        assert_eq!(ask(MemoryEventFilter { limit: 2, ..all() }), [8, 9]);
        assert_eq!(ask(MemoryEventFilter { limit: 2, after: Some(3), ..all() }), [4, 5]);
        assert_eq!(ask(MemoryEventFilter { after: Some(9), ..all() }), [] as [u64; 0]);
        assert_eq!(ask(MemoryEventFilter { since: Some(Timestamp(8)), ..all() }), [8, 9]);
        assert_eq!(ask(MemoryEventFilter { scope: Some("session".into()), ..all() }), [2, 4, 6, 8]);
        assert_eq!(ask(MemoryEventFilter { scope_id: Some("x".into()), ..all() }), [3, 6, 9]);
        let patterns = vec!["user.?".into(), "nothing".into()];
        assert_eq!(ask(MemoryEventFilter { patterns, limit: 1, ..all() }), [9]);
        let patterns = vec!["*.7".into()];
        assert_eq!(ask(MemoryEventFilter { patterns, ..all() }), [7]);
        assert_eq!(ask(MemoryEventFilter { limit: 0, ..all() }), [] as [u64; 0]);
    }

    fn notes_keep_their_order_and_are_found_by_tag(store) {
        let note = |message: &str, tags: &[&str]| NoteRow {
            execution: execution_id("e1"),
            run: Some(run_id("r1")),
            agent: Some("a".into()),
            message: message.into(),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            at: Timestamp(1),
        };
        let notes = vec![note("one\0", &["x", "y"]), note("two", &[]), note("three", &["z"])];
        store.notes_add(notes.clone()).unwrap();
        let find = |tags: &[&str], limit| {
            let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
            store.notes(&execution_id("e1"), &tags, limit).unwrap()
        };
        assert_eq!(find(&[], 10), notes);
        assert_eq!(find(&[], 2), notes[..2]);
        assert_eq!(find(&["z", "y"], 10), [notes[0].clone(), notes[2].clone()]);
        assert!(find(&["nothing"], 10).is_empty());
        let many: Vec<NoteRow> = (0..LINES_MAX + 5).map(|n| note(&n.to_string(), &[])).collect();
        store.notes_add(many).unwrap();
        let kept = find(&[], usize::MAX);
        assert_eq!(kept.len(), LINES_MAX);
        assert_eq!(kept[0].message, "5");
    }

    fn log_lines_are_numbered_and_paged(store) {
        store.logs_add(vec![line("e1", "info", "one"), line("e2", "info", "other"), line("e1", "error", "two")]).unwrap();
        store.logs_add(vec![line("e1", "debug", "three")]).unwrap();
        store.logs_add(Vec::new()).unwrap();
        let logs = store.logs(&execution_id("e1"), 0, 10).unwrap();
        assert_eq!((logs.total, logs.dropped), (3, 0));
        let expected: Vec<LogRow> = (1..)
            .zip([line("e1", "info", "one"), line("e1", "error", "two"), line("e1", "debug", "three")])
            .map(|(seq, line)| LogRow { seq, ..line })
            .collect();
        assert_eq!(logs.lines, expected);
        assert_eq!(store.logs(&execution_id("e1"), 1, 1).unwrap().lines, expected[1..2]);
        assert_eq!(store.logs(&execution_id("nobody"), 0, 10).unwrap().total, 0);
    }

    fn too_many_lines_cost_the_oldest_debug_lines_first(store) {
        store.logs_add(vec![line("e1", "info", "first")]).unwrap();
        let debug: Vec<LogRow> = (0..10).map(|n| line("e1", "debug", &n.to_string())).collect();
        store.logs_add(debug).unwrap();
        let info: Vec<LogRow> = (0..LINES_MAX - 3).map(|n| line("e1", "info", &n.to_string())).collect();
        store.logs_add(info).unwrap();
        let logs = store.logs(&execution_id("e1"), 0, 10).unwrap();
        assert_eq!((logs.total, logs.dropped), (LINES_MAX as u64, 8));
        let seen: Vec<(u64, &str)> = logs.lines.iter().map(|l| (l.seq, l.message.as_str())).take(4).collect();
        assert_eq!(seen, [(1, "first"), (10, "8"), (11, "9"), (12, "0")]);
        store.logs_add((0..3).map(|_| line("e1", "info", "new")).collect()).unwrap();
        let logs = store.logs(&execution_id("e1"), 0, 1).unwrap();
        assert_eq!(logs.dropped, 11);
        assert_eq!(logs.lines[0].seq, 12, "no debug line is left, so the oldest goes");
    }

    fn too_many_bytes_of_lines_are_dropped_too(store) {
        let long = "x".repeat(100 << 10);
        for _ in 0..20 {
            store.logs_add(vec![line("e1", "info", &long)]).unwrap();
        }
        let logs = store.logs(&execution_id("e1"), 0, 100).unwrap();
        let kept: usize = logs.lines.iter().map(|line| line.message.len()).sum();
        assert!(kept <= BYTES_MAX && kept > BYTES_MAX - (200 << 10), "{kept}");
        assert_eq!(logs.total + logs.dropped, 20);
    }

    fn keys_audit_and_settings_read_back(store) {
        let mut key = KeyRecord {
            id: "key_1".into(),
            prefix: "mst_abc".into(),
            hash: [200; 32],
            name: "a\0name".into(),
            scopes: vec!["admin".into(), "agent:x".into()],
            principal: "owner".into(),
            created_at: Timestamp(1),
            used_at: None,
            revoked_at: None,
            expires_at: Some(Timestamp(9)),
            detail: Some("{\"node\":\"n\"}".into()),
        };
        assert!(store.keys().unwrap().is_empty());
        store.key_put(&key).unwrap();
        assert_eq!(store.keys().unwrap(), [key.clone()]);
        key.used_at = Some(Timestamp(2));
        key.revoked_at = Some(Timestamp(3));
        store.key_put(&key).unwrap();
        assert_eq!(store.keys().unwrap(), [key]);

        let said = |n: i64| AuditRow {
            at: Timestamp(n),
            principal: "owner".into(),
            action: "key.created".into(),
            object: format!("key_{n}"),
            detail: String::new(),
        };
        (1..=3).for_each(|n| store.audit_add(&said(n)).unwrap());
        let found = |filter: AuditFilter| -> Vec<u64> {
            let lines = store.audit(&AuditFilter { limit: 10, ..filter }).unwrap();
            lines.into_iter().map(|(n, _)| n).collect()
        };
        let newest = store.audit(&AuditFilter::newest(2)).unwrap();
        assert_eq!(newest, [(3, said(3)), (2, said(2))]);
        let all = AuditFilter::default;
        let word = |text: &str| Some(text.to_owned());
        assert_eq!(found(AuditFilter { before: Some(3), ..all() }), [2, 1]);
        assert_eq!(found(AuditFilter { object: word("key_2"), ..all() }), [2]);
        for (action, lines) in [("key", 3), ("key.created", 3), ("ke", 0), ("key.", 0), ("", 0)] {
            let filter = AuditFilter { action: word(action), ..all() };
            assert_eq!(found(filter).len(), lines, "{action:?}");
        }
        assert_eq!(found(AuditFilter { principal: word("nobody"), ..all() }), [0; 0]);
        let (since, until) = (Some(Timestamp(2)), Some(Timestamp(3)));
        assert_eq!(found(AuditFilter { since, until, ..all() }), [2]);

        assert_eq!(store.setting("s").unwrap(), None);
        store.setting_put("s", Bytes::from_static(b"\x00\xff")).unwrap();
        store.setting_put("s", Bytes::new()).unwrap();
        assert_eq!(store.setting("s").unwrap(), Some(Bytes::new()));
        assert!(store.setting_put("", Bytes::new()).is_err());
    }

    fn an_identity_once_written_stays(store) {
        let row = |did: &str, component: &str, function: &str, seed: &'static [u8]| IdentityRow {
            did: did.into(),
            agent: agent_id("a"),
            component: component.into(),
            function: function.into(),
            sealed_seed: Bytes::from_static(seed),
            created_at: Timestamp(1),
        };
        let first = [row("did:1", "agent", "", b"1"), row("did:2", "reasoner", "f", b"2")];
        store.identities_add(&first).unwrap();
        store.identities_add(&[row("did:9", "agent", "", b"9"), row("did:3", "skill", "f", b"3")]).unwrap();
        let dids: Vec<String> = store.identities(&agent_id("a")).unwrap().into_iter().map(|r| r.did).collect();
        assert_eq!(dids, ["did:1", "did:2", "did:3"]);
        assert_eq!(store.identity("did:2").unwrap(), Some(first[1].clone()));
        assert_eq!(store.identity("did:9").unwrap(), None);
        assert!(store.identities(&agent_id("b")).unwrap().is_empty());
    }

    fn credentials_are_found_by_run(store) {
        let row = |id: &str, run: &str, at| CredentialRow {
            id: id.into(),
            execution: execution_id("e1"),
            run: run.into(),
            created_at: Timestamp(at),
            body: Bytes::from_static(b"{}"),
        };
        let rows = [row("late", "r", 9), row("early", "r", 1), row("other", "s", 1)];
        rows.iter().for_each(|row| store.credential_add(row).unwrap());
        assert_eq!(store.credentials("r").unwrap(), [rows[1].clone(), rows[0].clone()]);
        assert!(store.credential_add(&rows[0]).is_err());
    }

    fn what_was_set_aside_can_be_seen_and_dropped(store) {
        let item = |n: i64| QuarantineItem {
            id: format!("q{n}"),
            at: Timestamp(n),
            kind: "event".into(),
            about: "about\0".into(),
            error: "error".into(),
            what: "what".into(),
        };
        (1..=3).for_each(|n| store.set_aside(&item(n)).unwrap());
        store.set_aside(&QuarantineItem { error: "again".into(), ..item(3) }).unwrap();
        assert_eq!(store.quarantine(2).unwrap(), [item(3), item(2)]);
        assert!(store.drop_quarantined("q2").unwrap());
        assert!(!store.drop_quarantined("q2").unwrap());
        assert_eq!(store.quarantine(9).unwrap(), [item(3), item(1)]);
    }
}
