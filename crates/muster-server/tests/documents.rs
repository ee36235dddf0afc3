//! The documents in the tree that are generated from the code: stale ones fail here.
//! `MUSTER_UPDATE=1 cargo nextest run -p muster-server --test documents` writes them again.

use std::fmt::Write;
use std::path::PathBuf;

use muster_server::meters::names;

fn compare(file: &str, wanted: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(file);
    if std::env::var_os("MUSTER_UPDATE").is_some() {
        std::fs::write(&path, wanted).expect("write the document");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "{file} is stale; write it again: MUSTER_UPDATE=1 cargo nextest run -p muster-server --test documents"
    );
}

#[test]
fn openapi_json_is_what_the_routes_say() {
    let mut text = serde_json::to_string_pretty(&muster_server::api::document()).unwrap();
    text.push('\n');
    compare("openapi.json", &text);
}

#[test]
fn the_page_of_metrics_is_what_the_plane_counts() {
    let mut page = String::from(
        "# Metrics\n\n\
         `GET /metrics` answers in Prometheus' text format. Counters and histograms start at 0 with \
         the process, so what ended may have been started, and counted, before a restart; \
         gauges of agents, the store, duties and the process are read when somebody scrapes, and are absent \
         when they cannot be read. No label carries an execution id; `agent` is the only one that agents \
         choose: ",
    );
    let _ = writeln!(
        page,
        "the first {} by id have series of their own, the rest is added up under `_other`.\n",
        names::AGENTS_MAX
    );
    page.push_str("| name | kind | labels | says |\n|---|---|---|---|\n");
    for metric in names::ALL {
        let labels: Vec<String> = metric
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        let kind = format!("{:?}", metric.kind).to_lowercase();
        let _ = writeln!(
            page,
            "| `{}` | {kind} | {} | {} |",
            metric.name,
            labels.join(" "),
            metric.help
        );
    }
    compare("docs/metrics.md", &page);
}
