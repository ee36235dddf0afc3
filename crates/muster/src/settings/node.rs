//! The section `[node]`: what a machine's daemon is to be. From the same file and environment as
//! the plane's settings, which know nothing of it.

use std::path::PathBuf;

use figment::value::Value;
use serde::Deserialize;

use super::{Source, Sources, file, keys, put, refused};
use crate::failure::Outcome;

/// What the section can say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct NodeSection {
    /// The plane's address.
    pub(crate) plane: Option<String>,
    /// The name it wants.
    pub(crate) name: Option<String>,
    /// Its labels.
    #[serde(default)]
    pub(crate) labels: Vec<String>,
    /// How many workers it takes; 0 is without bound.
    pub(crate) max_workers: Option<u32>,
    /// Its state directory.
    pub(crate) state: Option<PathBuf>,
    /// A file with an enrolment token.
    pub(crate) token_file: Option<PathBuf>,
    /// Certificates to trust besides the public ones.
    pub(crate) ca: Option<PathBuf>,
}

const KEYS: &[&str] = &[
    "node.plane",
    "node.name",
    "node.labels",
    "node.max_workers",
    "node.state",
    "node.token_file",
    "node.ca",
];

/// Whether a key is the section's.
pub(super) fn is_of_node(key: &str) -> bool {
    key.starts_with("node.")
}

/// Why a key of the section is refused, if it is.
pub(super) fn unknown(key: &str) -> Option<String> {
    (!KEYS.contains(&key)).then(|| keys::said(key, keys::closest(key, KEYS)))
}

impl Sources {
    /// The section; everything that is wrong with it at once.
    pub(crate) fn load_node(&self) -> Outcome<NodeSection> {
        let mut found: Vec<(String, Value, Source)> = Vec::new();
        if let Some(path) = &self.file {
            for (key, value, line) in file::read(path)? {
                found.push((key, value, Source::File(path.clone(), line)));
            }
        }
        for (name, text) in &self.env {
            if let Some(rest) = name.strip_prefix("MUSTER_NODE__") {
                let key = format!("node.{}", rest.to_ascii_lowercase().replace("__", "."));
                found.push((key.clone(), value_of(&key, text), Source::Env(name.clone())));
            }
        }
        let mut root = figment::value::Dict::new();
        let mut faults = Vec::new();
        for (key, value, source) in found.into_iter().filter(|(key, ..)| is_of_node(key)) {
            if let Some(fault) = unknown(&key) {
                faults.push(format!("{fault} ({source})"));
                continue;
            }
            let path: Vec<&str> = key.split('.').skip(1).collect();
            let mut alone = figment::value::Dict::new();
            put(&mut alone, &path, value.clone());
            match section(alone) {
                Ok(_) => put(&mut root, &path, value),
                Err(error) => faults.push(format!("{key}: {error} ({source})")),
            }
        }
        if !faults.is_empty() {
            return Err(refused(faults));
        }
        section(root).map_err(|error| refused(vec![error]))
    }
}

fn section(dict: figment::value::Dict) -> Result<NodeSection, String> {
    figment::Figment::from(figment::providers::Serialized::defaults(dict))
        .extract()
        .map_err(|error| error.kind.to_string())
}

fn value_of(key: &str, text: &str) -> Value {
    let parsed = || text.parse().unwrap_or_else(|_| Value::from(text));
    match key {
        "node.labels" if text.trim_start().starts_with('[') => parsed(),
        "node.labels" => {
            let labels = text
                .split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty());
            Value::from(labels.map(Value::from).collect::<Vec<_>>())
        }
        "node.max_workers" => parsed(),
        _ => Value::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(text: &str, env: &[(&str, &str)]) -> (tempfile::TempDir, Sources) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("muster.toml");
        std::fs::write(&path, text).unwrap();
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let sources = Sources {
            file: Some(path),
            env: env.iter().map(own).collect(),
            ..Sources::default()
        };
        (directory, sources)
    }

    #[test]
    fn the_file_then_the_environment_and_the_plane_ignores_the_section() {
        let text = "[server]\nlisten = \"127.0.0.1:1\"\n[node]\nplane = \"http://a:1\"\nname = \"mini\"\nlabels = [\"gpu\"]\nmax_workers = 4\n";
        let env = [
            ("MUSTER_NODE__LABELS", "zone=eu, 7"),
            ("MUSTER_NODE__MAX_WORKERS", "8"),
            ("MUSTER_NODE__NAME", "42"),
        ];
        let (_directory, sources) = sources(text, &env);
        let node = sources.load_node().unwrap();
        assert_eq!(node.plane.as_deref(), Some("http://a:1"));
        assert_eq!(node.name.as_deref(), Some("42"));
        assert_eq!(node.labels, ["zone=eu", "7"]);
        assert_eq!(node.max_workers, Some(8));
        sources.load().unwrap();
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let text = "[node]\nplan = \"http://a:1\"\nmax_workers = \"many\"\n";
        let (_directory, sources) = sources(text, &[("MUSTER_NODE__TOKEN", "canary")]);
        let failure = sources.load_node().unwrap_err();
        let text = failure.text(&crate::out::Style::plain());
        for part in [
            "did you mean node.plane?",
            "muster.toml:2",
            "node.max_workers",
            "node.token is no key",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("canary"));
        let refused = sources
            .load()
            .unwrap_err()
            .text(&crate::out::Style::plain());
        assert!(refused.contains("did you mean node.plane?"), "{refused}");
    }
}
