//! A thousand nodes with twenty workers each: what they cost, how soon all are confirmed after
//! the plane was killed, and how soon a placement on a silent one is refused.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::gates::Gates;
use super::nodes::Identity;
use super::process::Process;
use super::site::Site;
use crate::say;

const WORKERS: u64 = 20;

/// Measures it.
pub(crate) fn measure(site: &mut Site, gates: &mut Gates) -> anyhow::Result<()> {
    let count = site.scaled(1_000);
    let data = site.new_store();
    let (mut plane, _) = site.plane(&data, &[])?;
    let key = std::fs::read_to_string(data.join("owner.key"))?;
    let key = key.trim();
    let file = data.with_extension("nodes.json");
    std::fs::write(&file, serde_json::to_vec(&enrol(site, key, count)?)?)?;
    let mut nodes = Process::own_with_stdin(&[
        "nodes".to_owned(),
        site.plane_at.to_string(),
        file.display().to_string(),
        WORKERS.to_string(),
    ])?;
    let all = count * WORKERS;
    confirmed(site, key, all, Instant::now())?;
    // Let the burst of the start pass.
    std::thread::sleep(Duration::from_secs(10));

    let seconds = if site.quick { 10.0 } else { 60.0 };
    let (cpu, commits) = (plane.cpu(), site.commits()?);
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let cores = (plane.cpu() - cpu) / seconds;
    let writes = (site.commits()? - commits) / seconds;
    let what = format!("{count} nodes with {WORKERS} workers each, steady");
    gates.at_most(&what, cores, "cores", 1.0, 0.3);
    gates.at_most(
        &format!("{what}: memory"),
        plane.memory(),
        "MiB",
        300.0,
        150.0,
    );
    gates.at_most(
        &format!("{what}: write transactions"),
        writes,
        "/s",
        2.0,
        1.0,
    );

    plane.kill();
    let began = Instant::now();
    let (plane, _) = site.plane(&data, &[])?;
    let took = confirmed(site, key, all, began)?;
    let what = format!("all {all} workers confirmed after kill -9 of the plane");
    gates.at_most(&what, took.as_secs_f64(), "s", 15.0, 12.0);
    let swept = summary(site, key)?["workers"]["exited"]
        .as_f64()
        .unwrap_or(0.0)
        + summary(site, key)?["workers"]["lost"]
            .as_f64()
            .unwrap_or(0.0);
    gates.at_most("workers swept by it", swept, "", 0.0, 0.0);

    let answer = nodes.say("silence bench-0")?;
    ensure!(answer == "silent", "the nodes said {answer}");
    until(Duration::from_secs(60), || {
        let node = get(site, key, "/api/v1/fleet/nodes/bench-0")?;
        Ok(node["state"] != "online")
    })
    .context("a closed link was not noticed")?;
    let mut slowest = 0.0_f64;
    for _ in 0..20 {
        let began = Instant::now();
        let body = json!({"command": "true", "node": "bench-0"}).to_string();
        let (status, text) = site.ask_with_key(key, "POST", "/api/v1/fleet/workers", &body)?;
        slowest = slowest.max(began.elapsed().as_secs_f64() * 1e3);
        ensure!(
            status == 503,
            "a placement on a silent node: {status} {text}"
        );
        let answer: Value = serde_json::from_str(&text)?;
        ensure!(
            answer["error_category"] == "node_unreachable",
            "a placement on a silent node: {text}"
        );
    }
    gates.at_most(
        "placement on a silent node refused",
        slowest,
        "ms",
        50.0,
        5.0,
    );
    say::note(&format!("the nodes counted {}", nodes.say("counts")?));
    drop(plane);
    Ok(())
}

fn enrol(site: &Site, key: &str, count: u64) -> anyhow::Result<Vec<Identity>> {
    let mut all = Vec::new();
    for n in 0..count {
        let name = format!("bench-{n}");
        let body = json!({"name": name, "max_workers": WORKERS * 2}).to_string();
        let (status, text) = site.ask_with_key(key, "POST", "/api/v1/fleet/enrollments", &body)?;
        ensure!(status == 201, "an enrolment: {status} {text}");
        let made: Value = serde_json::from_str(&text)?;
        let body = json!({"token": made["token"], "name": name}).to_string();
        let (status, text) = site.ask(site.plane_at, "POST", "/api/v1/fleet/enroll", &body)?;
        ensure!(status == 201, "an enrolment: {status} {text}");
        all.push(serde_json::from_str(&text)?);
    }
    Ok(all)
}

fn get(site: &Site, key: &str, path: &str) -> anyhow::Result<Value> {
    let (status, text) = site.ask_with_key(key, "GET", path, "")?;
    ensure!(status == 200, "{path}: {status} {text}");
    Ok(serde_json::from_str(&text)?)
}

fn summary(site: &Site, key: &str) -> anyhow::Result<Value> {
    get(site, key, "/api/v1/fleet")
}

/// Waits until so many workers run, confirmed; says how long after `began` that was.
fn confirmed(site: &Site, key: &str, all: u64, began: Instant) -> anyhow::Result<Duration> {
    until(Duration::from_secs(90), || {
        Ok(summary(site, key)?["workers"]["running"].as_u64() == Some(all))
    })
    .with_context(|| format!("{all} workers were not confirmed"))?;
    Ok(began.elapsed())
}

fn until(within: Duration, mut holds: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let began = Instant::now();
    while !holds()? {
        ensure!(began.elapsed() < within, "not within {within:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
