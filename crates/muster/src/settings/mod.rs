//! Where the configuration comes from: file, aliases, environment, flags, the later over the
//! earlier, and for each value a note of which one it was. What the keys mean is the server's.

mod alias;
mod file;
mod keys;
mod node;
mod print;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use figment::Figment;
use figment::providers::Serialized;
use figment::value::{Dict, Value};
use muster_server::config::Config;
use muster_wire::Category;

use crate::failure::{Failure, Outcome};
pub(crate) use node::NodeSection;
pub(crate) use print::{as_json, as_text};

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// Nobody set it.
    Default,
    /// A file, and the line when it was found.
    File(PathBuf, Option<usize>),
    /// A name that upstream's deployments use, and what it said.
    Alias(&'static str, String),
    /// An environment variable of ours.
    Env(String),
    /// A flag.
    Flag(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::File(path, Some(line)) => write!(f, "{}:{line}", path.display()),
            Source::File(path, None) => write!(f, "{}", path.display()),
            Source::Alias(name, said) => write!(f, "alias {name}={said}"),
            Source::Env(name) => write!(f, "env {name}"),
            Source::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

/// One value and where it came from.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    /// The value as it was written.
    pub(crate) value: Value,
    /// Who wrote it.
    pub(crate) source: Source,
}

/// What is read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    /// The file that was named, or found.
    pub(crate) file: Option<PathBuf>,
    /// The environment.
    pub(crate) env: Vec<(String, String)>,
    /// Flag, key, value.
    pub(crate) flags: Vec<(&'static str, &'static str, String)>,
    /// What the command has in place of the general default.
    pub(crate) defaults: Vec<(&'static str, String)>,
}

/// The effective configuration and its origins.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    /// The values.
    pub(crate) config: Config,
    /// By key, for what somebody set.
    pub(crate) settings: BTreeMap<String, Setting>,
    /// Variables that look like ours and are not.
    pub(crate) doubtful: Vec<(String, String)>,
}

impl Sources {
    /// The file that `--config` or `MUSTER_CONFIG` names, else `./muster.toml` when it is there,
    /// and the environment of this process.
    pub(crate) fn of_this_process(named: Option<PathBuf>) -> Self {
        let file = named.or_else(|| {
            let here = PathBuf::from("muster.toml");
            here.is_file().then_some(here)
        });
        Self {
            file,
            env: std::env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
            ..Self::default()
        }
    }

    /// Reads everything, checks every value, and says what is wrong with all of them at once.
    pub(crate) fn load(&self) -> Outcome<Loaded> {
        let mut settings: BTreeMap<String, Setting> = BTreeMap::new();
        let mut faults: Vec<String> = Vec::new();
        for (key, value) in &self.defaults {
            set(
                &mut settings,
                key,
                Value::from(value.clone()),
                Source::Default,
            );
        }
        if let Some(path) = &self.file {
            for (key, value, line) in file::read(path)? {
                let source = Source::File(path.clone(), line);
                if let Some(fault) = keys::unknown(&key) {
                    faults.push(format!("{fault} ({source})"));
                    continue;
                }
                if !node::is_of_node(&key) {
                    set(&mut settings, &key, value, source);
                }
            }
        }
        alias::apply(&self.env, &mut settings);
        let mut doubtful = Vec::new();
        for (name, text) in &self.env {
            let Some(rest) = name.strip_prefix("MUSTER_") else {
                continue;
            };
            if !rest.contains("__") {
                if let Some(meant) = keys::meant_by_variable(name) {
                    doubtful.push((name.clone(), meant));
                }
                continue;
            }
            let key = rest.to_ascii_lowercase().replace("__", ".");
            if let Some(fault) = keys::unknown(&key) {
                faults.push(format!("{fault} (env {name})"));
                continue;
            }
            if node::is_of_node(&key) {
                continue;
            }
            set(
                &mut settings,
                &key,
                keys::value_of(&key, text),
                Source::Env(name.clone()),
            );
        }
        for (flag, key, text) in &self.flags {
            set(
                &mut settings,
                key,
                keys::value_of(key, text),
                Source::Flag(flag),
            );
        }
        for (key, setting) in &settings {
            if let Err(error) = extract([(key.as_str(), &setting.value)]) {
                faults.push(format!("{key}: {error} ({})", setting.source));
            }
        }
        if !faults.is_empty() {
            return Err(refused(faults));
        }
        let config = extract(settings.iter().map(|(key, s)| (key.as_str(), &s.value)))
            .map_err(|error| refused(vec![error]))?;
        let mut config = config;
        config.sources = Arc::new(print::sources(&settings));
        Ok(Loaded {
            config,
            settings,
            doubtful,
        })
    }
}

fn set(settings: &mut BTreeMap<String, Setting>, key: &str, value: Value, source: Source) {
    settings.insert(key.to_owned(), Setting { value, source });
}

fn refused(mut faults: Vec<String>) -> Failure {
    let first = faults.remove(0);
    let mut failure = Failure::new(Category::Validation, format!("configuration: {first}"));
    failure.evidence = faults;
    failure.hint("`muster server --print-config` shows every key, its value and where it came from")
}

/// Builds the configuration from leaves.
fn extract<'a>(leaves: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Result<Config, String> {
    let mut root = Dict::new();
    for (key, value) in leaves {
        put(&mut root, &keys::path(key), value.clone());
    }
    Figment::from(Serialized::defaults(root))
        .extract()
        .map_err(|error| error.kind.to_string())
}

fn put(dict: &mut Dict, path: &[&str], value: Value) {
    match path {
        [] => {}
        [last] => {
            dict.insert((*last).to_owned(), value);
        }
        [head, rest @ ..] => {
            let next = dict
                .entry((*head).to_owned())
                .or_insert_with(|| Value::from(Dict::new()));
            if let Value::Dict(_, inner) = next {
                put(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn env(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn file(text: &str) -> (tempfile::TempDir, Option<PathBuf>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("muster.toml");
        std::fs::write(&path, text).unwrap();
        (dir, Some(path))
    }

    #[test]
    fn file_then_alias_then_environment_then_flag() {
        let (_dir, path) = file(
            "[agents]\nrestart_grace = \"1s\"\ndrain_grace = \"1s\"\n\n[server]\nlisten = \"127.0.0.1:1\"\n[executions]\ndeadline = \"1h\"\n",
        );
        let loaded = Sources {
            file: path.clone(),
            env: env(&[
                ("AGENTFIELD_AGENT_RESTART_GRACE", "2s"),
                ("AGENTFIELD_AGENT_DRAIN_GRACE", "2s"),
                ("AGENTFIELD_PORT", "2"),
                ("MUSTER_AGENTS__DRAIN_GRACE", "3s"),
                ("MUSTER_SERVER__LISTEN", "127.0.0.1:3"),
            ]),
            flags: vec![("--listen", "server.listen", "127.0.0.1:4".into())],
            ..Sources::default()
        }
        .load()
        .unwrap();
        let seconds = Duration::from_secs;
        assert_eq!(loaded.config.executions.deadline.0, seconds(3600));
        assert_eq!(loaded.config.agents.restart_grace.0, Some(seconds(2)));
        assert_eq!(loaded.config.agents.drain_grace.0, seconds(3));
        assert_eq!(loaded.config.server.listen.port(), 4);
        let source = |key: &str| loaded.settings[key].source.clone();
        assert_eq!(
            source("executions.deadline"),
            Source::File(path.unwrap(), Some(8))
        );
        assert_eq!(
            source("agents.restart_grace"),
            Source::Alias("AGENTFIELD_AGENT_RESTART_GRACE", "2s".into())
        );
        assert_eq!(
            source("agents.drain_grace"),
            Source::Env("MUSTER_AGENTS__DRAIN_GRACE".into())
        );
        assert_eq!(source("server.listen"), Source::Flag("--listen"));
    }

    #[test]
    fn an_unknown_key_is_an_error_with_the_key_that_was_meant() {
        let (_dir, path) = file(
            "[server]\nlisen = \"127.0.0.1:1\"\n[agents.billing]\nmax_concurent = 2\n[cluster]\nlease = \"5s\"\n",
        );
        let failure = Sources {
            file: path,
            env: env(&[("MUSTER_EXECUTIONS__SYNC_WATE", "1s")]),
            ..Sources::default()
        }
        .load()
        .unwrap_err();
        let text = failure.text(&crate::out::Style::plain());
        assert_eq!(failure.exit_code(), 2);
        for want in [
            "server.lisen is no key; did you mean server.listen?",
            "agents.billing.max_concurent is no key; did you mean agents.billing.max_concurrent?",
            "executions.sync_wate is no key; did you mean executions.sync_wait? (env MUSTER_EXECUTIONS__SYNC_WATE)",
            "cluster.lease is not in this build yet",
        ] {
            assert!(text.contains(want), "{want}\n{text}");
        }
    }

    #[test]
    fn a_bad_value_names_its_key_and_its_source() {
        let failure = Sources {
            env: env(&[
                ("MUSTER_AGENTS__CALL_TIMEOUT", "90"),
                ("MUSTER_SERVER__LISTEN", "nowhere"),
            ]),
            ..Sources::default()
        }
        .load()
        .unwrap_err();
        let text = failure.text(&crate::out::Style::plain());
        assert!(text.contains("agents.call_timeout: \"90\" is not a duration; write it like 15s, 2m or 1h30m (env MUSTER_AGENTS__CALL_TIMEOUT)"), "{text}");
        assert!(
            text.contains("server.listen: ") && text.contains("(env MUSTER_SERVER__LISTEN)"),
            "{text}"
        );
    }

    #[test]
    fn lists_secrets_and_overrides_of_agents_can_come_from_the_environment() {
        let loaded = Sources {
            env: env(&[
                ("MUSTER_SERVER__ALLOWED_HOSTS", "a.example, b.example"),
                ("MUSTER_AUTH__API_KEY", "0123"),
                ("MUSTER_AGENTS__BILLING__MAX_CONCURRENT", "2"),
                ("MUSTER_AGENTS__NOT_SENT_STATUS", "[502, 503]"),
                ("MUSTER_API_KEY", "not a key of the configuration"),
                ("MUSTER_SERVER_LISTEN", "one underscore"),
            ]),
            ..Sources::default()
        }
        .load()
        .unwrap();
        assert_eq!(
            loaded.config.server.allowed_hosts,
            ["a.example", "b.example"]
        );
        assert_eq!(loaded.config.auth.api_key.unwrap().reveal(), "0123");
        assert_eq!(
            loaded.config.agents.by_id["billing"].max_concurrent,
            Some(2)
        );
        assert_eq!(loaded.config.agents.not_sent_status, [502, 503]);
        assert_eq!(
            loaded.doubtful,
            [(
                "MUSTER_SERVER_LISTEN".to_owned(),
                "MUSTER_SERVER__LISTEN".to_owned()
            )]
        );
    }

    #[test]
    fn a_cap_by_its_alias_refuses_and_a_cap_by_our_key_queues() {
        use muster_server::config::Full;
        let by_alias = Sources {
            env: env(&[("AGENTFIELD_MAX_CONCURRENT_PER_AGENT", "4")]),
            ..Sources::default()
        }
        .load()
        .unwrap();
        assert_eq!(by_alias.config.admission.max_concurrent_per_agent, 4);
        assert_eq!(by_alias.config.admission.at_capacity, Full::Reject);
        let by_key = Sources {
            env: env(&[("MUSTER_ADMISSION__MAX_CONCURRENT_PER_AGENT", "4")]),
            ..Sources::default()
        }
        .load()
        .unwrap();
        assert_eq!(by_key.config.admission.at_capacity, Full::Queue);
    }

    #[test]
    fn what_is_printed_names_every_key_and_no_secret() {
        let loaded = Sources {
            env: env(&[
                ("MUSTER_AUTH__API_KEY", "canary"),
                ("AGENTFIELD_APPROVAL_WEBHOOK_SECRET", "canary"),
                ("AGENTFIELD_LLM_HEALTH_ENABLED", "true"),
                ("AGENTFIELD_EXEC_ASYNC_QUEUE_CAPACITY", "1024"),
            ]),
            ..Sources::default()
        }
        .load()
        .unwrap();
        let text = as_text(&loaded, &crate::out::Style::plain());
        let json = as_json(&loaded).to_string();
        for want in [
            "server.listen",
            "store.min_free",
            "1GiB or 5 %, the smaller",
            "alias AGENTFIELD_EXEC_ASYNC_QUEUE_CAPACITY=1024",
            "(redacted)",
            "AGENTFIELD_APPROVAL_WEBHOOK_SECRET",
            "alias AGENTFIELD_LLM_HEALTH_ENABLED=true",
        ] {
            assert!(text.contains(want), "{want}\n{text}");
        }
        assert!(!text.contains("canary") && !json.contains("canary"));
        // On a terminal only a word that is not cut is wider than it.
        let narrow = crate::out::Style {
            width: Some(80),
            ..crate::out::Style::plain()
        };
        for line in as_text(&loaded, &narrow).lines() {
            let long = line.split_whitespace().any(|word| word.len() > 25);
            assert!(line.chars().count() <= 80 || long, "{line}");
        }
    }
}
