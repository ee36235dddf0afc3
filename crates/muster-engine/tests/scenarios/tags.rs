//! Tags that need an approval: the agent is registered, and not called before.

use muster_engine::effect::Reply;
use muster_engine::row::EventKind;
use muster_engine::{Event, Limits, Refusal};
use muster_wire::{AgentId, Category, Lane, Status};

use crate::world::{SECOND, World};

fn world() -> World {
    World::new(Limits {
        tags_need_approval: true,
        ..Limits::default()
    })
}

fn register(world: &mut World, tags: &[&str]) -> Vec<String> {
    let mut asked = None;
    world.register_as("a", "i1", "http://h:1", |r| {
        r.tags = tags.iter().map(|tag| Box::from(*tag)).collect();
        asked = Some(r.waiter);
    });
    match world.reply(asked.unwrap()) {
        Reply::Registered { pending_tags, .. } => {
            pending_tags.iter().map(ToString::to_string).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn decide(world: &mut World, tags: &[&str], approve: bool) -> Reply {
    let waiter = world.waiter();
    world.step(Event::TagsDecided {
        agent: AgentId::trusted("a"),
        tags: tags.iter().map(|tag| Box::from(*tag)).collect(),
        approve,
        by: "owner".into(),
        waiter,
    });
    world.reply(waiter)
}

#[test]
fn an_agent_that_waits_for_an_approval_is_not_called() {
    let mut world = world();
    assert_eq!(
        register(&mut world, &["finance", "admin"]),
        ["admin", "finance"]
    );
    for lane in [Lane::Sync, Lane::Async, Lane::Mcp] {
        let (waiter, id) = world.call(lane, "a.f");
        match world.reply(waiter) {
            Reply::Refused(refusal @ Refusal::PendingApproval { .. }) => {
                assert_eq!(refusal.category(), Category::AgentPendingApproval);
                assert_eq!(refusal.retry_after(), None);
            }
            other => panic!("{other:?}"),
        }
        assert!(!world.rows.executions.contains_key(&id));
    }
    decide(&mut world, &["admin"], true);
    let (waiter, _) = world.call(Lane::Async, "a.f");
    assert_eq!(
        world.refused(waiter),
        Category::AgentPendingApproval,
        "one is left"
    );
    let Reply::Tags(tags) = decide(&mut world, &[], true) else {
        panic!("no tags")
    };
    assert!(tags.pending.is_empty());
    let (_, id) = world.call(Lane::Async, "a.f");
    assert_eq!(world.status(&id), Status::Running);
    let told = world.rows.events.iter();
    let told: Vec<_> = told
        .filter(|e| e.kind == EventKind::AgentTagsChanged)
        .filter_map(|e| e.reason.as_deref())
        .collect();
    assert_eq!(told, ["pending", "approved", "approved"]);
}

#[test]
fn an_approval_is_kept_over_registrations_and_starts() {
    let mut world = world();
    register(&mut world, &["finance"]);
    decide(&mut world, &[], true);
    assert!(register(&mut world, &["finance"]).is_empty());
    world.crash(SECOND);
    let (_, id) = world.call(Lane::Async, "a.f");
    assert_eq!(world.status(&id), Status::Running);
    assert_eq!(register(&mut world, &["finance", "more"]), ["more"]);
    world.crash(SECOND);
    let (waiter, _) = world.call(Lane::Async, "a.f");
    assert_eq!(world.refused(waiter), Category::AgentPendingApproval);
}

#[test]
fn a_rejected_tag_stays_rejected_until_it_is_approved_or_no_longer_asked_for() {
    let mut world = world();
    register(&mut world, &["root"]);
    let Reply::Tags(tags) = decide(&mut world, &[], false) else {
        panic!("no tags")
    };
    assert!(tags.pending.is_empty() && tags.rejected.len() == 1);
    assert_eq!(
        register(&mut world, &["root"]),
        ["root"],
        "asking again changes nothing"
    );
    let (waiter, _) = world.call(Lane::Async, "a.f");
    assert_eq!(world.refused(waiter), Category::AgentPendingApproval);
    assert!(register(&mut world, &[]).is_empty());
    let (_, id) = world.call(Lane::Async, "a.f");
    assert_eq!(world.status(&id), Status::Running);
    register(&mut world, &["root"]);
    decide(&mut world, &["root"], true);
    let (_, id) = world.call(Lane::Async, "a.f");
    assert_eq!(world.status(&id), Status::Running);
}

#[test]
fn what_is_queued_waits_for_the_approval_too() {
    let mut world = World::new(Limits {
        tags_need_approval: true,
        max_concurrent_per_agent: 1,
        ..Limits::default()
    });
    register(&mut world, &[]);
    let (_, first) = world.call(Lane::Async, "a.f");
    let (_, second) = world.call(Lane::Async, "a.f");
    register(&mut world, &["finance"]);
    world.answer(&first, Status::Succeeded);
    assert_eq!(world.status(&second), Status::Queued);
    decide(&mut world, &[], true);
    world.beat("a", "i1");
    assert_eq!(world.sent(&second), 1);
}

#[test]
fn unknown_agents_have_no_tags() {
    let mut world = world();
    assert!(matches!(decide(&mut world, &[], true), Reply::UnknownAgent));
}

#[test]
fn a_plane_that_asks_for_no_approvals_any_more_forgets_what_is_pending() {
    let mut world = world();
    register(&mut world, &["finance"]);
    world.limits.tags_need_approval = false;
    world.crash(SECOND);
    let (_, id) = world.call(Lane::Async, "a.f");
    assert_eq!(world.status(&id), Status::Running);
}
