//! What the plane costs while it holds things: agents that beat, calls in flight, queues.

use std::time::Duration;

use super::bodies;
use super::gates::Gates;
use super::load::Order;
use super::process::Process;
use super::site::{QUEUES, Site};
use crate::say;

fn post(site: &Site, path: &str, body: &str) -> Order {
    Order {
        to: site.plane_at,
        method: "POST".to_owned(),
        path: path.to_owned(),
        body: body.to_owned(),
        connections: 64,
        seconds: 600.0,
        requests: 0,
        rate: 0.0,
        wrap: 0,
        hold: false,
    }
}

fn register_crowd(site: &mut Site, count: u64) -> anyhow::Result<()> {
    let mut order = post(site, "/api/v1/nodes/register", &bodies::crowd_agent());
    order.requests = count;
    let outcome = site.run(&order, &[200, 201])?;
    let rate = count as f64 / outcome.seconds;
    say::note(&format!("{count} agents registered, {rate:.0} a second"));
    Ok(())
}

/// Memory once it has settled: the least of two seconds.
fn settled(plane: &Process) -> f64 {
    let mut least = f64::MAX;
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(100));
        least = least.min(plane.memory());
    }
    least
}

/// 50,000 agents that beat every two seconds.
pub(crate) fn beats(site: &mut Site, gates: &mut Gates) -> anyhow::Result<()> {
    let crowd = site.scaled(50_000);
    let plane = site.fresh_plane(&[])?;
    register_crowd(site, crowd)?;
    let mut order = post(
        site,
        "/api/v1/nodes/crowd-{n}/heartbeat",
        &bodies::beat("i{n}"),
    );
    order.rate = crowd as f64 / 2.0;
    order.wrap = crowd;
    order.seconds = 6.0;
    site.run(&order, &[200])?;
    order.seconds = if site.quick { 4.0 } else { 10.0 };
    let (cpu, commits) = (plane.cpu(), site.commits()?);
    let outcome = site.run(&order, &[200])?;
    let reached = outcome.latencies.count() as f64 / outcome.seconds / order.rate;
    // A quick run beats with a tenth of the agents: its CPU is scaled up to the full crowd.
    let scale = 50_000.0 / crowd as f64 / reached;
    let cores = (plane.cpu() - cpu) / outcome.seconds * scale;
    let writes = (site.commits()? - commits) / outcome.seconds;
    gates.at_least(
        "50,000 agents beat: share of beats on time",
        reached,
        0.95,
        1.0,
    );
    gates.at_most("50,000 agents beat every 2 s", cores, "cores", 1.0, 0.5);
    gates.at_most(
        "50,000 agents beat: write transactions",
        writes,
        "/s",
        2.0,
        1.0,
    );
    Ok(())
}

/// Memory at start, with agents, with calls in flight, with a long queue.
pub(crate) fn measure(site: &mut Site, gates: &mut Gates) -> anyhow::Result<()> {
    let plane = site.fresh_plane(&[])?;
    let start = settled(&plane);
    gates.at_most("memory at start", start, "MiB", 40.0, 20.0);
    // A quick run holds a tenth and may use a tenth.
    let share = if site.quick { 0.1 } else { 1.0 };

    let agents = site.scaled(10_000);
    register_crowd(site, agents)?;
    let more = settled(&plane) - start;
    let what = format!("{agents} agents with five functions");
    gates.at_most(&what, more, "MiB more", 60.0 * share, 60.0 * share);
    drop(plane);

    in_flight(site, gates, share)?;
    queued(site, gates, share)
}

fn in_flight(site: &mut Site, gates: &mut Gates, share: f64) -> anyhow::Result<()> {
    let calls = site.scaled(10_000);
    let plane = site.fresh_plane(&[("MUSTER_EXECUTIONS__SYNC_WAIT", "10m".to_owned())])?;
    let start = settled(&plane);
    let delivered = site.agent_counts()?.0;
    let mut order = post(site, "/api/v1/execute/bench.never", bodies::CALL);
    order.connections = usize::try_from(calls)?;
    order.hold = true;
    site.run(&order, &[])?;
    wait_for(site, delivered + calls)?;
    let more = settled(&plane) - start;
    let what = format!("{calls} sync calls in flight");
    gates.at_most(&what, more, "MiB more", 200.0 * share, 200.0 * share);
    Ok(())
}

fn wait_for(site: &Site, delivered: u64) -> anyhow::Result<()> {
    for _ in 0..1200 {
        if site.agent_counts()?.0 >= delivered {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    anyhow::bail!("the calls did not reach the agent within a minute")
}

/// A million executions, queued over a hundred agents that are each at their cap of one.
fn queued(site: &mut Site, gates: &mut Gates, share: f64) -> anyhow::Result<()> {
    let waiting = site.scaled(1_000_000);
    let plane = site.fresh_plane(&[
        ("MUSTER_ADMISSION__MAX_CONCURRENT_PER_AGENT", "1".to_owned()),
        ("MUSTER_ADMISSION__QUEUE_CAPACITY", "20000".to_owned()),
        (
            "MUSTER_ADMISSION__QUEUE_CAPACITY_TOTAL",
            "1100000".to_owned(),
        ),
    ])?;
    let agents = u64::from(QUEUES);
    for n in 0..agents {
        let url = format!("http://127.0.1.{}:{}", n + 1, site.agent_at.port());
        let body = bodies::bench_agent(&format!("queue-{n}"), &url, &format!("i{n}"));
        let (status, text) = site.ask(site.plane_at, "POST", "/api/v1/nodes/register", &body)?;
        anyhow::ensure!(matches!(status, 200 | 201), "{status} {text}");
    }
    let start = settled(&plane);
    let mut order = post(site, "/api/v1/execute/async/queue-{n}.never", bodies::CALL);
    order.wrap = agents;
    order.requests = waiting + agents;
    let outcome = site.run(&order, &[202])?;
    let rate = order.requests as f64 / outcome.seconds;
    say::note(&format!("{waiting} executions queued, {rate:.0} a second"));
    let more = settled(&plane) - start;
    let what = format!("{waiting} queued over {agents} agents");
    // The caches of the store's connections are part of it, whatever the length.
    gates.at_most(&what, more, "MiB more", 30.0 * share.max(0.5), 30.0 * share);
    Ok(())
}
