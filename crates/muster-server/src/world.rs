//! The plane as the driver sees it: where published state, sends and events go.

use std::time::Duration;

use muster_engine::event::InstanceKey;
use muster_engine::row::EventKind;
use muster_engine::{Notice, Send};
use muster_wire::Timestamp;
use tokio::runtime::Handle;

use crate::app::App;
use crate::dispatch::Dispatcher;
use crate::driver::world::World;

/// What the driver's thread reaches of the plane.
pub(crate) struct PlaneWorld {
    pub(crate) app: App,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) runtime: Handle,
}

impl World for PlaneWorld {
    fn receipt(&self, key: &InstanceKey) -> Option<(Timestamp, Option<Duration>)> {
        self.app.directory.receipt(key)
    }

    fn publish(&self, notices: &[Notice]) {
        for notice in notices {
            match notice {
                Notice::Execution(view) => {
                    self.app.webhooks.saw(view);
                    let before = || self.app.views.get(view.row.id.as_str());
                    self.app.telemetry.saw(before, view);
                    self.app.views.put(view.clone());
                    self.app.followers.changed(&view.row.run);
                }
                Notice::Late { execution, status } => self.app.views.late(execution, *status),
                Notice::Restarted {
                    execution,
                    restarted_as,
                } => self.app.views.restarted(execution, restarted_as),
                Notice::Instance(facts) => self.app.directory.put_facts(facts.clone()),
                Notice::Directory {
                    agent,
                    functions,
                    unapproved,
                } => {
                    self.app.directory.put_functions(agent, functions.clone());
                    self.app.directory.put_unapproved(agent, unapproved.clone());
                    self.app.schemas.forget(agent);
                }
                Notice::AgentGone(agent) => {
                    self.app.directory.forget(agent);
                    self.app.schemas.forget(agent);
                }
                Notice::Watch { key, on } => self.app.directory.watch(key, *on),
                Notice::Count(count) => self.app.meters.count(count),
                Notice::Fleet(notice) => self.app.fleet.notice(notice),
                Notice::Event(_) => {}
            }
        }
    }

    fn spawn(&self, work: Box<dyn FnOnce() + std::marker::Send>) {
        self.runtime.spawn(async move { work() });
    }

    fn send(&self, mut sends: Vec<Send>) {
        if sends.len() == 1 {
            let _within = self.runtime.enter();
            sends.drain(..).for_each(|send| self.dispatcher.start(send));
            return;
        }
        let dispatcher = self.dispatcher.clone();
        // One hop for all: from within the runtime each start is cheap.
        self.runtime.spawn(async move {
            for send in sends {
                dispatcher.start(send);
            }
        });
    }

    fn announce(&self, notices: Vec<Notice>) {
        for notice in notices {
            if let Notice::Event(event) = notice {
                if event.kind == EventKind::HoldChanged {
                    self.app.webhooks.wake();
                }
                self.app.feed.publish(&event);
            }
        }
    }

    fn committed(&self, events: usize, writes: usize, took: Duration) {
        self.app.meters.committed(events, writes, took);
    }

    fn waited(&self, oldest: Duration) {
        self.app.meters.waited(oldest);
    }
}
