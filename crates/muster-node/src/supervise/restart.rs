//! Starts a worker again by somebody's wish: its holder ends the process and starts the next one,
//! whatever the policy says. Nothing is forced here: a holder that does not answer is left alone.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::fleet::frame::{RestartOutput, SpawnOutput};
use tokio::time::{Instant, timeout_at};

use super::RestartError;
use super::core::Core;
use super::link::Request;
use crate::holder::protocol::{Ask, Frame, RESTARTS_FROM, Tell};
use crate::tree::KILL_WAIT;

/// What a holder may take on top of the graces: the longest start window, and some.
const PATIENCE: Duration = Duration::from_secs(40);

pub(crate) async fn restart(
    core: &Arc<Core>,
    worker: &str,
    grace: Option<Duration>,
    reason: Option<String>,
) -> Result<RestartOutput, RestartError> {
    let seen = core.look(worker, |worker| {
        (
            worker.requests.subscribe(),
            worker.last.is_some(),
            Duration::from_millis(worker.state.stop_grace_ms),
        )
    });
    let Some((mut requests, ended, own_grace)) = seen else {
        return Err(RestartError::UnknownWorker);
    };
    if ended {
        return Err(RestartError::Refused("it has ended".into()));
    }
    let grace = grace.unwrap_or(own_grace);
    // What the process left behind is ended after it, with a grace of its own.
    let deadline = Instant::now() + grace * 2 + KILL_WAIT * 2 + PATIENCE;
    let asked = async {
        let way = requests.wait_for(Option::is_some).await;
        let way = way.ok().and_then(|way| way.clone())?;
        if core.look(worker, |worker| worker.speaks)? < RESTARTS_FROM {
            return Some(Err(RestartError::OldHolder));
        }
        let grace_ms = Some(u64::try_from(grace.as_millis()).unwrap_or(u64::MAX));
        let (request, heard) = Request::new(move |id| {
            Frame::Message(Ask::Restart {
                id,
                grace_ms,
                reason,
            })
        });
        way.send(request).await.ok()?;
        match heard.await.ok()? {
            Frame::Message(Tell::Restarted { output, .. }) => Some(Ok(output)),
            Frame::Message(Tell::Refused { message, .. }) => {
                Some(Err(RestartError::Refused(message)))
            }
            _ => None,
        }
    };
    let answered = timeout_at(deadline, asked).await;
    let answered = answered.map_err(|_| RestartError::Unanswered)?;
    let restarts = core.look(worker, |worker| worker.state.restarts);
    let output = match answered {
        Some(answer) => answer?,
        // The holder is gone, or has ended after its worker, which then did not live.
        None => {
            let last = core.look(worker, |worker| worker.last.clone()).flatten();
            let exit = last.ok_or(RestartError::Unanswered)?.exit;
            SpawnOutput::Exited { exit }
        }
    };
    Ok(RestartOutput {
        restarts: restarts.unwrap_or_default(),
        output,
    })
}
