//! `GET /api/v1/usage`: what agents reported, summed up by the store. Prices nothing.

use axum::Json;
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use muster_store::usage::{NANO, Sums};
use muster_store::{Store, StoreResult, UsageBy, UsageKey, UsageQuestion};
use muster_wire::api::usage::{UsageCost, UsageGroup, UsageRow, UsageShown, UsageSums};
use muster_wire::{RunId, Timestamp};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::Query;
use super::executions::time;
use super::problem::Problem;
use super::stamp::Stamp;
use crate::app::App;

/// Groups of one page when nobody says how many, and at most.
const LIMIT: usize = 100;
const LIMIT_MAX: usize = 1_000;
/// Groups that can be paged through.
const SKIP_MAX: usize = 1_000_000;

const DAY_US: i64 = 86_400_000_000;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(usage))
}

/// Of what, and of when.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// `run`, `agent`, `function` or `day` (in UTC); `agent` when absent.
    by: Option<String>,
    /// Executions that ended at this moment or later, RFC 3339. A day before `until` when
    /// absent; with `by=day` 30 days.
    since: Option<String>,
    /// Executions that ended before this moment, RFC 3339; now when absent.
    until: Option<String>,
    /// Groups of one page; 100 when absent, 1,000 at most.
    limit: Option<usize>,
    /// The `next_cursor` of the page before. It brings its time with it.
    cursor: Option<String>,
}

/// Sum up usage
///
/// What agents reported of the executions that ended in a time: tokens, calls of models, costs.
/// Exact sums of what was reported, nothing is estimated. What an agent did not report is
/// counted, not guessed.
#[utoipa::path(get, path = "/api/v1/usage", tag = "executions", params(Wanted),
    responses(
        (status = 200, description = "The groups, and the sum of all of them.", body = UsageShown),
        (status = 400, description = "A parameter is not right."),
    ))]
async fn usage(
    State(app): State<App>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<UsageShown>, Problem> {
    let stamp = Stamp::now(&app);
    let word = wanted.by.as_deref().unwrap_or("agent");
    let by = UsageGroup::from_word(word)
        .ok_or_else(|| Problem::validation("by: run, agent, function or day"))?;
    let (from, to, skip) = match wanted.cursor.as_deref().filter(|text| !text.is_empty()) {
        Some(cursor) => read(cursor).ok_or_else(|| {
            Problem::validation("cursor: not one that this plane gave; start without it")
        })?,
        None => {
            let to = time("until", wanted.until.as_deref())?.unwrap_or(stamp.as_of.0);
            let back = if by == UsageGroup::Day {
                30 * DAY_US
            } else {
                DAY_US
            };
            let usual = Timestamp(to.0.saturating_sub(back));
            let from = time("since", wanted.since.as_deref())?.unwrap_or(usual);
            (from, to, 0)
        }
    };
    let question = UsageQuestion {
        by: match by {
            UsageGroup::Run => UsageBy::Run,
            UsageGroup::Agent => UsageBy::Agent,
            UsageGroup::Function => UsageBy::Function,
            UsageGroup::Day => UsageBy::Day,
        },
        from,
        to,
        skip,
        limit: wanted.limit.unwrap_or(LIMIT).clamp(1, LIMIT_MAX),
    };
    let answer = app
        .blocking(move |stores| stores.decisions.usage(&question))
        .await?;
    let next = skip + answer.groups.len();
    Ok(Json(UsageShown {
        as_of: stamp.as_of,
        position: stamp.position,
        by: by.into(),
        from: from.into(),
        to: to.into(),
        rows: answer.groups.into_iter().map(row).collect(),
        rows_total: answer.groups_total as u64,
        total: shown(&answer.total),
        next_cursor: (next < answer.groups_total).then(|| cursor(from, to, next)),
    }))
}

/// The usage of one run: of what has ended of it. Blocks.
///
/// # Errors
/// When the store cannot be read.
pub(crate) fn of_run(store: &dyn Store, run: &RunId) -> StoreResult<UsageSums> {
    store.usage_of_run(run).map(|sums| shown(&sums))
}

fn row((key, sums): (UsageKey, Sums)) -> UsageRow {
    let mut row = UsageRow {
        key: String::new(),
        run_id: None,
        agent: None,
        function: None,
        usage: shown(&sums),
    };
    match key {
        UsageKey::Run(run) => {
            row.key = run.to_string();
            row.run_id = Some(run);
        }
        UsageKey::Agent(agent) => {
            row.key = agent.to_string();
            row.agent = Some(agent);
        }
        UsageKey::Function(agent, function) => {
            row.key = format!("{agent}.{function}");
            (row.agent, row.function) = (Some(agent), Some(function));
        }
        UsageKey::Day(day) => {
            let midnight = Timestamp(day.saturating_mul(DAY_US)).rfc3339();
            row.key = midnight.get(..10).unwrap_or(&midnight).to_owned();
        }
    }
    row
}

/// Sums as an answer spells them.
pub(crate) fn shown(sums: &Sums) -> UsageSums {
    let says_nothing = sums.ended == sums.unreported;
    UsageSums {
        executions: sums.ended,
        unreported: sums.unreported,
        unreadable: sums.unreadable,
        with_other_keys: sums.other,
        input_tokens: sums.input,
        output_tokens: sums.output,
        total_tokens: sums.total,
        cache_read_tokens: sums.cache_read,
        cache_creation_tokens: sums.cache_written,
        model_calls: sums.models,
        cost: sums
            .cost
            .map(|amount| UsageCost {
                currency: "USD".to_owned(),
                amount: decimal(amount),
                executions: sums.priced,
            })
            .into_iter()
            .collect(),
        usage_unknown: match (says_nothing, sums.ended) {
            (true, 0) => Some("nothing has ended in this time".to_owned()),
            (true, _) => Some("no agent reported usage".to_owned()),
            (false, _) => None,
        },
    }
}

/// Billionths as a decimal number.
fn decimal(billionths: u64) -> String {
    let (whole, rest) = (billionths / NANO as u64, billionths % NANO as u64);
    let mut text = format!("{whole}.{rest:09}");
    let two_digits = text.len() - "0000000".len();
    while text.len() > two_digits && text.ends_with('0') {
        text.pop();
    }
    text
}

fn cursor(from: Timestamp, to: Timestamp, skip: usize) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}:{}:{skip}", from.0, to.0))
}

fn read(cursor: &str) -> Option<(Timestamp, Timestamp, usize)> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    let mut parts = text.split(':');
    let (from, to) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let skip = parts
        .next()?
        .parse()
        .ok()
        .filter(|skip| *skip <= SKIP_MAX)?;
    parts
        .next()
        .is_none()
        .then_some((Timestamp(from), Timestamp(to), skip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_keeps_every_digit_and_at_least_two() {
        for (billionths, text) in [
            (0, "0.00"),
            (1, "0.000000001"),
            (250_000_000, "0.25"),
            (1_200_000_000, "1.20"),
            (9_007_199_254_740_993, "9007199.254740993"),
            (100_000_000_000, "100.00"),
        ] {
            assert_eq!(decimal(billionths), text);
        }
    }

    #[test]
    fn a_cursor_reads_back_and_a_foreign_one_does_not() {
        let at = (Timestamp(-5), Timestamp(i64::MAX), 7);
        assert_eq!(read(&cursor(at.0, at.1, at.2)), Some(at));
        for bad in ["", "!", "YQ", "MToy", "MToyOjM6NA", "MToyOi0x"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
