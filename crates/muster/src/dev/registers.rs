//! Looks at what registers after each start of the process: says it when nothing does, and when
//! it has another name than before. Changes nothing.

use std::sync::Arc;
use std::time::Duration;

use muster_engine::row::{EventKind, EventRow};
use muster_server::App;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use super::facts_of;
use crate::out::{self, Colour, Style, clean};

const WITHIN: Duration = Duration::from_secs(10);

/// Looks until the supervisor is gone.
pub(super) async fn look(
    app: &App,
    worker: &str,
    mut events: Receiver<Arc<EventRow>>,
    mut pids: watch::Receiver<Option<u32>>,
    style: &Style,
) {
    let say = |text: &str| out::talk(&style.paint(Colour::Yellow, text));
    let mut known: Option<Arc<str>> = None;
    loop {
        let pid = *pids.borrow_and_update();
        if let Some(pid) = pid {
            let since = app.clock.now();
            let name = async {
                loop {
                    let fresh = facts_of(app, worker)
                        .into_iter()
                        .find(|facts| facts.renewed_at >= since && facts.gone.is_none());
                    if let Some(facts) = fresh {
                        return facts.key.agent.clone();
                    }
                    next_registration(&mut events).await;
                }
            };
            tokio::select! {
                name = name => {
                    let name: Arc<str> = name.as_str().into();
                    if let Some(before) = known.replace(name.clone())
                        && before != name
                    {
                        say(&format!(
                            "agent | it was {} and is {} now: nothing runs under the old name",
                            clean(&before),
                            clean(&name),
                        ));
                    }
                }
                () = tokio::time::sleep(WITHIN) => say(&format!(
                    "agent | nothing has registered within {} s of the start (pid {pid}): it must take its plane's address from AGENTFIELD_SERVER",
                    WITHIN.as_secs(),
                )),
                changed = pids.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
            }
        }
        if pids.changed().await.is_err() {
            return;
        }
    }
}

/// Whatever was missed, the directory knows: only the wake-up matters.
pub(super) async fn next_registration(events: &mut Receiver<Arc<EventRow>>) {
    loop {
        match events.recv().await {
            Ok(event) if event.kind == EventKind::InstanceRegistered => return,
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
