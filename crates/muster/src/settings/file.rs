//! Reads `muster.toml` into leaves with their lines. Judges no key.

use std::path::Path;

use figment::Provider;
use figment::providers::{Format, Toml};
use figment::value::{Dict, Value};
use muster_wire::Category;

use crate::failure::{Failure, Outcome};

/// Every leaf of a file: key, value, line when it was found.
pub(super) fn read(path: &Path) -> Outcome<Vec<(String, Value, Option<usize>)>> {
    let bad = |what: String| {
        Failure::new(
            Category::Validation,
            format!("configuration: {}: {what}", path.display()),
        )
    };
    let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    let data = Toml::string(&text)
        .data()
        .map_err(|error| bad(error.kind.to_string()))?;
    let mut leaves = Vec::new();
    for dict in data.into_values() {
        flatten("", dict, &mut leaves);
    }
    Ok(leaves
        .into_iter()
        .map(|(key, value)| {
            let line = line_of(&text, &key);
            (key, value, line)
        })
        .collect())
}

fn flatten(prefix: &str, dict: Dict, leaves: &mut Vec<(String, Value)>) {
    for (name, value) in dict {
        let key = if prefix.is_empty() {
            name
        } else {
            format!("{prefix}.{name}")
        };
        match value {
            Value::Dict(_, inner) => flatten(&key, inner, leaves),
            leaf => leaves.push((key, leaf)),
        }
    }
}

/// The line on which a key stands, for tables and keys written the plain way.
fn line_of(text: &str, key: &str) -> Option<usize> {
    let mut table = String::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line
            .strip_prefix('[')
            .and_then(|rest| rest.split(']').next())
        {
            table = header.trim().replace('"', "");
        } else if let Some((name, _)) = line.split_once('=') {
            let name = name.trim().replace('"', "");
            let full = if table.is_empty() {
                name
            } else {
                format!("{table}.{name}")
            };
            if full == key {
                return Some(at + 1);
            }
        }
    }
    None
}
