//! kill -9 with calls in flight: how long until the next plane gives its first answer.

use std::time::{Duration, Instant};

use super::bodies;
use super::gates::Gates;
use super::load::Order;
use super::site::Site;

/// Measures it.
pub(crate) fn measure(site: &mut Site, gates: &mut Gates) -> anyhow::Result<()> {
    let calls = site.scaled(2_000).max(500);
    let data = site.new_store();
    let (mut plane, _) = site.plane(&data, &[])?;
    site.register_bench()?;
    let delivered = site.agent_counts()?.0;
    let order = Order {
        to: site.plane_at,
        method: "POST".to_owned(),
        path: "/api/v1/execute/bench.never".to_owned(),
        body: bodies::CALL.to_owned(),
        connections: usize::try_from(calls)?,
        seconds: 60.0,
        requests: 0,
        rate: 0.0,
        wrap: 0,
        hold: true,
    };
    site.run(&order, &[])?;
    for _ in 0..600 {
        if site.agent_counts()?.0 >= delivered + calls {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    plane.kill();
    let began = Instant::now();
    let (_plane, ready) = site.plane(&data, &[])?;
    loop {
        let (status, text) = site.ask(
            site.plane_at,
            "POST",
            "/api/v1/execute/bench.fast",
            bodies::CALL,
        )?;
        if status == 200 {
            break;
        }
        anyhow::ensure!(
            began.elapsed() < Duration::from_secs(30),
            "no call succeeded in 30 s: {status} {text}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    let what = format!("first answer after kill -9, {calls} in flight");
    let seconds = began.elapsed().as_secs_f64();
    gates.at_most(&what, seconds, "s", 1.0, 0.2);
    let what = format!("ready after kill -9, {calls} in flight");
    gates.at_most(&what, ready.as_secs_f64(), "s", 1.0, 0.2);
    Ok(())
}
