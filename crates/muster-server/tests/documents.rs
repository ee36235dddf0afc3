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

/// The names of fields in the log macros of a source.
fn log_fields(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]\nmod ").next().unwrap_or(source);
    let mut found = Vec::new();
    for level in ["info!(", "warn!(", "error!(", "debug!(", "trace!("] {
        for (at, _) in source.match_indices(level) {
            // `compile_error!(` and the like are others.
            let before = source[..at].chars().next_back().unwrap_or(' ');
            if before.is_alphanumeric() || before == '_' {
                continue;
            }
            for argument in arguments(&source[at + level.len()..]) {
                if argument.starts_with('"') {
                    break;
                }
                let name = argument.split(" = ").next().unwrap_or(argument);
                found.push(name.trim_start_matches(['%', '?']).to_owned());
            }
        }
    }
    found
}

/// The arguments of a macro, from behind its opening bracket.
fn arguments(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut quoted, mut escaped) = (0_usize, 0, false, false);
    let mut found = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => {
                found.push(text[from..at].trim());
                break;
            }
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    found
}

fn sources(folder: &std::path::Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_field_of_the_log_is_in_its_page_and_no_other() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/logs.md")).expect("the page");
    let told: std::collections::BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .map(str::to_owned)
        .collect();
    let mut files = Vec::new();
    for crate_name in [
        "muster",
        "muster-engine",
        "muster-node",
        "muster-server",
        "muster-store",
    ] {
        sources(
            &root.join("crates").join(crate_name).join("src"),
            &mut files,
        );
    }
    let mut used = std::collections::BTreeSet::new();
    for file in &files {
        let source = std::fs::read_to_string(file).expect("a source");
        for field in log_fields(&source) {
            // They would hide what every line has under these names.
            let own = ["message", "target", "level", "timestamp"];
            assert!(!own.contains(&&*field), "{field} in {}", file.display());
            used.insert(field);
        }
    }
    assert!(
        used.contains("error") && used.contains("execution.id"),
        "{used:?}"
    );
    let missing: Vec<&String> = used.difference(&told).collect();
    let stale: Vec<&String> = told.difference(&used).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "docs/logs.md lacks {missing:?} and has {stale:?}, which no line has"
    );
}

/// The names in an expression of Prometheus that are metrics of ours.
fn metrics_in(expression: &str) -> Vec<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = expression.split(|c| !is_name(c));
    words
        .filter(|word| word.starts_with("muster_") || word.starts_with("process_"))
        .map(str::to_owned)
        .collect()
}

/// The labels by which an expression sums, and those that it selects by.
fn labels_in(expression: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in expression.split("by (").skip(1) {
        let list = part.split(')').next().unwrap_or("");
        found.extend(list.split(',').map(|label| label.trim().to_owned()));
    }
    for part in expression.split('{').skip(1) {
        let list = part.split('}').next().unwrap_or("");
        let names = list
            .split(',')
            .map(|one| one.split(['=', '!']).next().unwrap_or(""));
        found.extend(names.map(|label| label.trim().to_owned()));
    }
    found
}

#[test]
fn the_dashboard_for_grafana_asks_for_metrics_and_labels_that_are_there() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana/muster.json");
    let text = std::fs::read_to_string(path).expect("the dashboard");
    let board: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert!(board["schemaVersion"].as_u64() >= Some(39) && board["uid"] == "muster");
    let panels = board["panels"].as_array().expect("panels");
    let mut ids = std::collections::HashSet::new();
    let mut places = Vec::new();
    let mut asked = std::collections::BTreeSet::new();
    for panel in panels {
        let title = panel["title"].as_str().expect("a title");
        assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{title}");
        let at = |key: &str| {
            panel["gridPos"][key]
                .as_u64()
                .unwrap_or_else(|| panic!("{title}"))
        };
        let place = (at("x"), at("y"), at("w"), at("h"));
        assert!(place.0 + place.2 <= 24, "{title} is too wide");
        for other in &places {
            let (x, y, w, h): &(u64, u64, u64, u64) = other;
            let apart = place.0 >= x + w
                || *x >= place.0 + place.2
                || place.1 >= y + h
                || *y >= place.1 + place.3;
            assert!(apart, "{title} lies on another");
        }
        places.push(place);
        if panel["type"] == "row" {
            continue;
        }
        assert!(
            panel["description"]
                .as_str()
                .is_some_and(|text| text.len() > 5),
            "{title}"
        );
        for target in panel["targets"].as_array().expect("targets") {
            let expression = target["expr"].as_str().expect("an expression");
            let count = |c: char| expression.matches(c).count();
            assert!(
                count('(') == count(')') && count('{') == count('}'),
                "{expression}"
            );
            for word in metrics_in(expression) {
                let base = ["_bucket", "_sum", "_count"]
                    .iter()
                    .find_map(|end| word.strip_suffix(end));
                let metric = names::ALL
                    .iter()
                    .find(|metric| metric.name == word || Some(metric.name) == base)
                    .unwrap_or_else(|| panic!("{title}: there is no {word}"));
                let is_histogram = metric.kind == names::Kind::Histogram;
                assert_eq!(is_histogram, metric.name != word, "{title}: {word}");
                for label in labels_in(expression) {
                    let scraped = ["job", "instance", "le"].contains(&&*label);
                    assert!(
                        scraped || metric.labels.contains(&&*label),
                        "{title}: {word} by {label}"
                    );
                }
                asked.insert(metric.name);
            }
        }
    }
    assert!(asked.len() > 25, "{asked:?}");
}
