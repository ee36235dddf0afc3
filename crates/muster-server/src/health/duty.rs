//! Runs a duty now and then until the plane stops, and notes each run. A duty that fails is
//! shown and tried again; one that panics stops, and is then shown as late.

use std::future::Future;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::app::App;

/// Starts a duty. `work` says what it did, or what went wrong.
pub(crate) fn start<W, F>(app: &App, name: &'static str, every: Duration, work: W)
where
    W: Fn(App) -> F + Send + Sync + 'static,
    F: Future<Output = Result<String, String>> + Send,
{
    app.duties.register(name, every, app.clock.now());
    let app_of_task = app.clone();
    app.tasks.spawn(async move {
        let app = app_of_task;
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = app.stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let begun = tokio::time::Instant::now();
            let end = work(app.clone()).await;
            app.duties.took(name, begun.elapsed());
            if let Err(error) = &end {
                tracing::warn!(duty = name, error = %error, "a duty failed; it will be tried again");
            }
            app.duties.ran(name, app.clock.now(), end);
        }
    });
}
