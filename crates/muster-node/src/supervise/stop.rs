//! Ends a worker for good: its holder does it. A holder that does not answer is ended with it,
//! after it was proved to be the holder.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::fleet::ExitReport;
use rustix::process::Signal;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::ReleaseError;
use super::core::{Core, Over};
use super::link::Request;
use crate::holder::protocol::{Ask, Frame, Tell};
use crate::tree::{self, KILL_WAIT};

/// What a holder may take on top of the grace: it may wait twice, for the worker and for what
/// that left behind.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn stop(
    core: &Arc<Core>,
    worker: &str,
    grace: Option<Duration>,
) -> Result<ExitReport, ReleaseError> {
    let seen = core.look(worker, |worker| {
        (
            worker.over.subscribe(),
            worker.requests.subscribe(),
            Duration::from_millis(worker.state.stop_grace_ms),
        )
    });
    let Some((mut over, mut requests, own_grace)) = seen else {
        return Err(ReleaseError::UnknownWorker);
    };
    let grace = grace.unwrap_or(own_grace);
    let deadline = Instant::now() + grace * 2 + KILL_WAIT * 2 + PATIENCE;
    let asked = async {
        loop {
            let way = requests.wait_for(Option::is_some).await;
            let Some(way) = way.ok().and_then(|way| way.clone()) else {
                return std::future::pending().await;
            };
            let grace_ms = Some(u64::try_from(grace.as_millis()).unwrap_or(u64::MAX));
            let (request, heard) =
                Request::new(move |id| Frame::Message(Ask::Release { id, grace_ms }));
            if way.send(request).await.is_ok()
                && let Ok(Frame::Message(Tell::Refused { message, .. })) = heard.await
            {
                return message;
            }
            // Answered: its end follows. Or the holder went away: asked again when it is back.
            sleep(Duration::from_millis(50)).await;
        }
    };
    let ended = timeout_at(deadline, async {
        tokio::select! {
            biased;
            ended = over.wait_for(Option::is_some) => Ok(ended.ok().and_then(|over| over.clone())),
            message = asked => Err(message),
        }
    });
    match ended.await {
        Ok(Ok(Some(over))) => conclude(over),
        Ok(Ok(None)) => Err(ReleaseError::UnknownWorker),
        Ok(Err(message)) => Err(ReleaseError::Stuck(message)),
        Err(_) => force(core, worker).await,
    }
}

fn conclude(over: Over) -> Result<ExitReport, ReleaseError> {
    if over.stuck.is_empty() {
        return Ok(over.exit);
    }
    Err(ReleaseError::Stuck(format!(
        "the worker ended, and these processes of it are still there after SIGKILL: {:?}",
        over.stuck
    )))
}

/// The holder does not answer: it is stopped, or stuck. Its tree is ended first, while it is one.
async fn force(core: &Arc<Core>, worker: &str) -> Result<ExitReport, ReleaseError> {
    let seen = core.look(worker, |worker| {
        (worker.state.holder, worker.over.subscribe())
    });
    let silent = || {
        ReleaseError::Stuck(
            "the worker's holder does not answer, and what it is cannot be proved: nothing was \
             signalled"
                .into(),
        )
    };
    let Some((Some(holder), mut over)) = seen else {
        return Err(silent());
    };
    if tree::start_of(holder.pid) != Some(holder.start) {
        return Err(silent());
    }
    tracing::error!(
        worker.id = worker,
        holder.pid,
        "a holder does not answer and is ended"
    );
    for _ in 0..50 {
        let mut left = tree::descendants(holder.pid);
        left.retain(|found| !found.is_zombie);
        if left.is_empty() {
            break;
        }
        for found in left {
            tree::signal(found.process, Signal::KILL);
        }
        sleep(Duration::from_millis(10)).await;
    }
    tree::signal(holder, Signal::KILL);
    // Its connection breaks, and the burial follows.
    let buried = timeout(KILL_WAIT * 2, over.wait_for(Option::is_some)).await;
    match buried
        .ok()
        .and_then(Result::ok)
        .and_then(|over| over.clone())
    {
        Some(over) => conclude(over),
        None => Err(ReleaseError::Stuck(
            "the worker's holder did not answer and is not gone after SIGKILL".into(),
        )),
    }
}
