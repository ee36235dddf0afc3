//! What only the store on disk can show of the fleet: rows that cannot be read, a copy, and which
//! index a list walks.

use muster_store::{Annex, Store};

use crate::fleet;
use crate::support::{self, Hand};
use crate::{open, raw};

#[test]
fn a_fleet_row_that_cannot_be_read_is_set_aside_and_the_start_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    {
        let store = open(dir.path()).unwrap();
        let hand = Hand::on(&store);
        hand.commit(
            (0..4)
                .map(|n| fleet::put_node(fleet::node(&format!("n{n}"))))
                .collect(),
        );
        let workers = (0..5).map(|n| {
            let mut row = fleet::full_worker(&format!("w{n}"), 1);
            (row.ended, row.idempotency_key) = (None, None);
            row.spec = support::payload(b"the spec");
            fleet::put_worker(row)
        });
        hand.commit(workers.collect());
    }
    let conn = raw(dir.path());
    conn.execute_batch(
        "UPDATE workers SET state = 'of tomorrow' WHERE id = 'w0';
         UPDATE workers SET detail = '{\"command\":\"the secret\"}' WHERE id = 'w1';
         UPDATE workers SET ended_how = 'reported' WHERE id = 'w2';
         UPDATE workers SET name = X'ff' WHERE id = 'w3';
         UPDATE nodes SET kind = 'of tomorrow' WHERE id = 'n0';
         UPDATE nodes SET detail = 'no JSON' WHERE id = 'n1';
         UPDATE nodes SET enrolled_at = 'yesterday' WHERE id = 'n2';",
    )
    .unwrap();
    drop(conn);
    let store = open(dir.path()).unwrap();
    let restored = store.restore().unwrap();
    let ids: Vec<&str> = restored
        .snapshot
        .fleet
        .workers
        .iter()
        .map(|row| row.id.as_str())
        .collect();
    assert_eq!(ids, ["w4"]);
    assert_eq!(restored.snapshot.fleet.nodes, [fleet::node("n3")]);
    let mut aside: Vec<&str> = restored.set_aside.iter().map(|item| &*item.id).collect();
    aside.sort_unstable();
    assert_eq!(
        aside,
        [
            "row:node:n0",
            "row:node:n1",
            "row:node:n2",
            "row:worker:w0",
            "row:worker:w1",
            "row:worker:w2",
            "row:worker:w3"
        ]
    );
    for item in &restored.set_aside {
        let said = format!("{item:?}");
        assert!(
            !said.contains("secret") && !said.contains("the spec"),
            "{said}"
        );
    }
    // Lists go on without them; asked for one of them, it says so.
    let listed = store
        .workers(&Default::default(), &support::first_page(10))
        .unwrap();
    assert_eq!(listed.len(), 1);
    assert!(store.worker(&fleet::worker_id("w0")).is_err());
    // Told once; and a new write heals a row, as an inventory that adopts it does.
    assert!(store.restore().unwrap().set_aside.is_empty());
    let hand = Hand::on(&store);
    hand.commit(vec![fleet::put_worker(fleet::worker("w0", 1))]);
    assert_eq!(store.restore().unwrap().snapshot.fleet.workers.len(), 2);
    assert!(store.drop_quarantined("row:worker:w1").unwrap());
    assert!(store.drop_quarantined("row:node:n1").unwrap());
    assert_eq!(store.worker(&fleet::worker_id("w1")).unwrap(), None);
}

#[test]
fn a_copy_has_the_fleet_and_the_relay_registry() {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(dir.path()).unwrap();
    let hand = Hand::on(&store);
    hand.commit(vec![
        fleet::put_node(fleet::full_node("n1")),
        fleet::put_worker(fleet::worker("w1", 1)),
        fleet::put_line(fleet::line(1, Some("n1"), None)),
    ]);
    store.relay_put(&fleet::record("agent", "a", 1)).unwrap();
    let to = copy.path().join("copy");
    store.backup(&to).unwrap();
    let copy = open(&to).unwrap();
    let fleet_there = copy.restore().unwrap().snapshot.fleet;
    assert_eq!(fleet_there.nodes, [fleet::full_node("n1")]);
    assert_eq!(fleet_there.workers, [fleet::worker("w1", 1)]);
    assert_eq!(copy.fleet_history(None, None, None, 9).unwrap().len(), 1);
    assert_eq!(
        copy.relay_get("agent", "a").unwrap(),
        Some(fleet::record("agent", "a", 1))
    );
}

#[test]
fn lists_of_the_fleet_walk_an_index() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()).unwrap());
    let conn = raw(dir.path());
    for sql in [
        "SELECT id FROM workers WHERE id = ?1",
        "SELECT id FROM workers INDEXED BY workers_living WHERE ended_at IS NULL ORDER BY created_at DESC, id DESC LIMIT 9",
        "SELECT id FROM workers INDEXED BY workers_node WHERE node = ?1 AND (created_at, id) < (?2, ?3) ORDER BY created_at DESC, id DESC LIMIT 9",
        "SELECT id FROM workers INDEXED BY workers_name WHERE name = ?1 ORDER BY created_at DESC, id DESC LIMIT 9",
        "SELECT id FROM workers INDEXED BY workers_time WHERE (created_at, id) < (?1, ?2) ORDER BY created_at DESC, id DESC LIMIT 9",
        "SELECT rowid FROM workers INDEXED BY workers_ended WHERE ended_at IS NOT NULL AND ended_at < ?1 LIMIT 9",
        "UPDATE workers SET idempotency_key = NULL WHERE idempotency_key = ?1 AND id <> ?2 AND ended_at IS NOT NULL",
        "SELECT seq FROM fleet_history INDEXED BY fleet_history_node WHERE node = ?1 AND node IS NOT NULL AND seq < ?2 ORDER BY seq DESC LIMIT 9",
        "SELECT seq FROM fleet_history INDEXED BY fleet_history_worker WHERE worker = ?1 AND worker IS NOT NULL ORDER BY seq DESC LIMIT 9",
        "SELECT seq FROM fleet_history NOT INDEXED WHERE seq < ?1 ORDER BY seq DESC LIMIT 9",
        "SELECT name FROM relay WHERE kind = ?1 AND name > ?2 ORDER BY name LIMIT 9",
        "SELECT name FROM relay INDEXED BY relay_time WHERE kind = 'invocation' AND updated_at < ?1 LIMIT 9",
        "DELETE FROM fleet_history WHERE node = ?1",
    ] {
        let mut plan = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let values = vec![rusqlite::types::Value::Null; plan.parameter_count()];
        let steps: Vec<String> = plan
            .query_map(rusqlite::params_from_iter(values), |row| row.get(3))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let steps = steps.join("; ");
        assert!(!steps.contains("TEMP B-TREE"), "{sql}: {steps}");
        assert!(
            steps.contains("USING") || steps.contains("SEARCH"),
            "{sql}: {steps}"
        );
    }
    for view in [
        "nodes_shown",
        "workers_shown",
        "fleet_history_shown",
        "events_shown",
    ] {
        conn.query_row(&format!("SELECT count(*) FROM {view}"), [], |row| {
            row.get::<_, i64>(0)
        })
        .unwrap();
    }
}
