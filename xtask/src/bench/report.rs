//! Prints what was measured: the lanes, then the gates, with the machine they were measured on.

use super::gates::{Gate, Gates};
use super::rounds::{Lane, Measured};
use crate::say;

/// Prints everything, as Markdown tables or as one JSON object.
pub(crate) fn print(lanes: &[Measured], gates: &Gates, json: bool) {
    if json {
        let all = serde_json::json!({ "machine": machine(), "lanes": lanes, "gates": gates });
        say::line(&all.to_string());
        return;
    }
    say::line(&format!("\n{}\n", machine()));
    if !lanes.is_empty() {
        say::line(
            "| lane | c | per second | of direct | of proxy | p50 ms | p99 ms | CPU µs each | fsyncs each |",
        );
        say::line("|---|---|---|---|---|---|---|---|---|");
        for measured in lanes {
            say::line(&row(measured, lanes));
        }
        for measured in lanes.iter().filter(|m| m.end_to_end_rate.is_some()) {
            say::line(&end_to_end(measured));
        }
        say::line("");
    }
    say::line("| gate | measured | must be | aim | |");
    say::line("|---|---|---|---|---|");
    for gate in &gates.gates {
        say::line(&judged(gate));
    }
    for broken in &gates.broken {
        say::line(&format!("\nNOT MEASURED: {broken}"));
    }
}

fn row(measured: &Measured, all: &[Measured]) -> String {
    let share = |lane| {
        all.iter()
            .find(|m| m.lane == lane && m.connections == measured.connections)
            .map_or(f64::NAN, |other| measured.rate / other.rate)
    };
    let commits = match measured.lane {
        Lane::Direct | Lane::Proxy => "–".to_owned(),
        _ => format!("{:.3}", measured.commits_each),
    };
    format!(
        "| {} | {} | {:.0} | {:.2} | {:.2} | {:.2} | {:.2} | {:.0} | {commits} |",
        name(measured.lane),
        measured.connections,
        measured.rate,
        share(Lane::Direct),
        share(Lane::Proxy),
        measured.p50_ms,
        measured.p99_ms,
        measured.cpu_us,
    )
}

fn end_to_end(measured: &Measured) -> String {
    let drain = match measured.drain_rate {
        Some(rate) => format!("what is left drains at {rate:.0} a second"),
        None => "no backlog builds up".to_owned(),
    };
    format!(
        "\nasync end to end, c={}: {:.0} a second; {drain}",
        measured.connections,
        measured.end_to_end_rate.unwrap_or(f64::NAN),
    )
}

fn name(lane: Lane) -> &'static str {
    match lane {
        Lane::Direct => "direct call",
        Lane::Proxy => "bare proxy",
        Lane::Sync => "sync",
        Lane::SyncCallback => "sync, agent calls back",
        Lane::AsyncAccept => "async accept",
        Lane::Refusal => "refusal",
        Lane::Beat => "heartbeat",
        Lane::Poll => "poll",
    }
}

fn judged(gate: &Gate) -> String {
    let value = gate
        .value
        .map_or("not measured".to_owned(), |value| figure(value, gate.unit));
    let sign = if gate.at_least { "≥" } else { "≤" };
    let verdict = if gate.passed { "pass" } else { "**miss**" };
    format!(
        "| {} | {value} | {sign} {} | {} | {verdict} |",
        gate.what,
        figure(gate.gate, gate.unit),
        figure(gate.aim, gate.unit),
    )
}

fn figure(value: f64, unit: &str) -> String {
    let digits = if value.abs() >= 100.0 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else {
        3
    };
    format!("{value:.digits$} {unit}").trim_end().to_owned()
}

/// Cores, processor, memory and system.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let after = |text: &str, key: &str| {
        text.lines()
            .find(|line| line.starts_with(key))
            .and_then(|line| line.split_once(':'))
            .map_or("unknown".to_owned(), |(_, value)| value.trim().to_owned())
    };
    let processor = after(&read("/proc/cpuinfo"), "model name");
    let memory = after(&read("/proc/meminfo"), "MemTotal");
    let kernel = read("/proc/sys/kernel/osrelease");
    format!(
        "{cores} cores, {processor}, memory {memory}, Linux {}",
        kernel.trim()
    )
}
