//! `GET /api/v1/config`: what the plane was started with. Secrets are redacted by their type.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use muster_wire::Category;
use muster_wire::api::config::{ConfigShown, ConfigSource, ConfigValue};
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::caller::Caller;
use super::problem::Problem;
use crate::app::App;
use crate::auth::Need;
use crate::config::Config;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(shown))
}

/// Read the effective configuration
///
/// Every value and where it came from, as `muster server --print-config` shows them. Without
/// secrets.
#[utoipa::path(get, path = "/api/v1/config", tag = "health",
    responses(
        (status = 200, description = "Every value, by key.", body = ConfigShown),
        (status = 403, description = "A key without the scope admin."),
    ))]
async fn shown(State(app): State<App>, caller: Caller) -> Result<Json<ConfigShown>, Problem> {
    if caller.key_id.is_some() && !caller.may(Need::Admin) {
        return Err(Problem::new(
            Category::PermissionDenied,
            format!("this needs a key with the scope {}", Need::Admin.scopes()),
        )
        .details(serde_json::json!({ "needs": Need::Admin.scopes() })));
    }
    Ok(Json(ConfigShown {
        as_of: app.clock.now().into(),
        values: values(&app.config),
    }))
}

/// Every value of a configuration.
fn values(config: &Config) -> Vec<ConfigValue> {
    let known = flat(&Config::default());
    flat(config)
        .into_iter()
        // What no agent's table says is not a value.
        .filter(|(key, value)| known.contains_key(key) || !value.is_null())
        .map(|(key, value)| {
            let set = config.sources.get(&key);
            ConfigValue {
                source: set.map_or(ConfigSource::Default, |set| set.source).into(),
                place: set.and_then(|set| set.place.clone()),
                note: set.and_then(|set| set.note.clone()),
                key,
                value,
            }
        })
        .collect()
}

/// The leaves of a configuration by their keys.
fn flat(config: &Config) -> BTreeMap<String, Value> {
    fn walk(prefix: &str, value: Value, into: &mut BTreeMap<String, Value>) {
        match value {
            Value::Object(members) if !prefix.is_empty() && members.is_empty() => {}
            Value::Object(members) => {
                for (name, value) in members {
                    let key = match prefix {
                        "" => name,
                        prefix => format!("{prefix}.{name}"),
                    };
                    walk(&key, value, into);
                }
            }
            leaf => {
                into.insert(prefix.to_owned(), leaf);
            }
        }
    }
    let mut leaves = BTreeMap::new();
    walk(
        "",
        serde_json::to_value(config).unwrap_or_default(),
        &mut leaves,
    );
    leaves
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::{Secret, ValueSource};

    #[test]
    fn each_value_has_its_source_and_no_secret_is_shown() {
        let mut config = Config::default();
        config.auth.api_key = Some(Secret::new("canary"));
        let of_file = ValueSource {
            source: ConfigSource::File,
            place: Some("muster.toml:3".into()),
            note: None,
        };
        config.sources = Arc::new([("auth.api_key".to_owned(), of_file)].into());
        let values = values(&config);
        let of = |key: &str| values.iter().find(|value| value.key == key).unwrap();
        assert_eq!(of("auth.api_key").source, ConfigSource::File.into());
        assert_eq!(of("auth.api_key").place.as_deref(), Some("muster.toml:3"));
        assert_eq!(of("server.listen").source, ConfigSource::Default.into());
        assert!(!serde_json::to_string(&values).unwrap().contains("canary"));
    }
}
