//! `--print-config`: every effective value and where it came from. Secrets are redacted by their
//! type.

use std::collections::BTreeMap;

use muster_server::config::ValueSource;
use muster_wire::Timestamp;
use muster_wire::api::config::ConfigSource;
use serde_json::{Value as Json, json};

use super::{Loaded, Setting, Source, alias, keys};
use crate::out::{Colour, Style};

struct Line {
    key: String,
    value: Json,
    source: Source,
}

/// One line a key.
pub(crate) fn as_text(loaded: &Loaded, style: &Style) -> String {
    let lines = lines(loaded);
    let key_width = lines.iter().map(|l| l.key.len()).max().unwrap_or(0);
    let shown: Vec<String> = lines.iter().map(|l| shown(&l.key, &l.value)).collect();
    let value_width = shown.iter().map(String::len).max().unwrap_or(0).min(40);
    let mut out = String::new();
    for (line, value) in lines.iter().zip(&shown) {
        let from = line.source.to_string();
        let colour = if line.source == Source::Default {
            Colour::Dim
        } else {
            Colour::Bold
        };
        let from = style.paint(colour, &style.words(&from));
        let indent = key_width + 2;
        let said = match style.width {
            Some(_) => style.wrapped(indent, &format!("{} {from}", style.words(value))),
            None => format!("{value:value_width$}  {from}"),
        };
        out += &format!("{:key_width$}  {said}\n", line.key);
        if let Source::Alias(name, _) = &line.source
            && let Some(note) = alias::differs(name)
        {
            let note = style.wrapped(indent, &style.words(note));
            out += &format!("{:key_width$}  {note}\n", "");
        }
    }
    out
}

/// The same for programs.
pub(crate) fn as_json(loaded: &Loaded) -> Json {
    let items: Vec<Json> = lines(loaded)
        .into_iter()
        .map(|line| {
            let mut item = json!({"key": line.key, "value": line.value});
            let (kind, place) = match &line.source {
                Source::Default => ("default", None),
                Source::File(..) => ("file", Some(line.source.to_string())),
                Source::Alias(name, _) => {
                    item["became"] = json!(shown(&line.key, &line.value));
                    if let Some(note) = alias::differs(name) {
                        item["note"] = json!(note);
                    }
                    ("alias", Some((*name).to_owned()))
                }
                Source::Env(name) => ("env", Some(name.clone())),
                Source::Flag(flag) => ("flag", Some((*flag).to_owned())),
            };
            item["from"] = json!(kind);
            if let Some(place) = place {
                item["where"] = json!(place);
            }
            item
        })
        .collect();
    json!({
        "kind": "configuration",
        "as_of": Timestamp::wall_clock().rfc3339(),
        "position": null,
        "position_unknown": "no plane was asked",
        "items": items,
        "next_cursor": null,
    })
}

/// Where each value came from, for a running plane to show. No secret is in it: of an alias only
/// the name.
pub(super) fn sources(settings: &BTreeMap<String, Setting>) -> BTreeMap<String, ValueSource> {
    let shown = |setting: &Setting| {
        let (source, place, note) = match &setting.source {
            Source::Default => (ConfigSource::Default, None, None),
            Source::File(..) => (ConfigSource::File, Some(setting.source.to_string()), None),
            Source::Alias(name, _) => {
                let note = alias::differs(name).map(str::to_owned);
                (ConfigSource::Alias, Some((*name).to_owned()), note)
            }
            Source::Env(name) => (ConfigSource::Environment, Some(name.clone()), None),
            Source::Flag(flag) => (ConfigSource::Flag, Some((*flag).to_owned()), None),
        };
        ValueSource {
            source,
            place,
            note,
        }
    };
    let named = settings
        .iter()
        .map(|(key, setting)| (key.clone(), shown(setting)));
    named.collect()
}

fn lines(loaded: &Loaded) -> Vec<Line> {
    let effective = keys::flat(&serde_json::to_value(&loaded.config).unwrap_or_default());
    effective
        .into_iter()
        // What no agent's table says is not a value.
        .filter(|(key, value)| keys::all().contains_key(key) || !value.is_null())
        .map(|(key, value)| {
            let source = loaded
                .settings
                .get(&key)
                .map_or(Source::Default, |setting| setting.source.clone());
            Line { key, value, source }
        })
        .collect()
}

fn shown(key: &str, value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Null => match key {
            "store.min_free" => "1GiB or 5 %, the smaller".to_owned(),

            _ => "none".to_owned(),
        },
        Json::Array(items) if items.is_empty() => "[]".to_owned(),
        other => other.to_string(),
    }
}
