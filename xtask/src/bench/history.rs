//! A start with a large history: a store is filled through its own interface, in big commits,
//! and a plane is started on it.

use std::time::{Duration, Instant};

use super::bodies;
use super::gates::Gates;
use super::process::Process;
use super::site::Site;
use crate::fill::{self, Filler};
use crate::say;

/// Measures it.
pub(crate) fn measure(site: &mut Site, gates: &mut Gates) -> anyhow::Result<()> {
    let count = site.scaled(1_000_000);
    let empty = site.new_store();
    let (plane, _) = site.plane(&empty, &[])?;
    site.register_bench()?;
    let without = after_a_few_calls(site, &plane)?;
    drop(plane);

    let data = site.new_store();
    let began = Instant::now();
    fill::plain_history(&mut Filler::open(&data)?, count)?;
    let took = began.elapsed().as_secs_f64();
    say::note(&format!(
        "{count} finished executions written in {took:.0} s"
    ));

    let mut times = Vec::new();
    for _ in 0..5 {
        let (plane, ready) = site.plane(&data, &[])?;
        times.push(ready.as_secs_f64());
        drop(plane);
    }
    times.sort_by(f64::total_cmp);
    let ready = times[times.len() / 2];
    let what = format!("ready with {count} finished executions");
    gates.at_most(&what, ready, "s", 1.0, 0.2);

    let (plane, _) = site.plane(&data, &[])?;
    site.register_bench()?;
    let with = after_a_few_calls(site, &plane)?;
    gates.at_most(
        "memory that the history costs",
        with - without,
        "MiB",
        8.0,
        2.0,
    );
    Ok(())
}

fn after_a_few_calls(site: &Site, plane: &Process) -> anyhow::Result<f64> {
    for _ in 0..20 {
        let path = "/api/v1/execute/bench.fast";
        let (status, text) = site.ask(site.plane_at, "POST", path, bodies::CALL)?;
        anyhow::ensure!(status == 200, "{status} {text}");
    }
    std::thread::sleep(Duration::from_secs(1));
    Ok(plane.memory())
}
