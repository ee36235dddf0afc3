//! `POST /api/v1/backup`: copies the store while it is in use, with the keys without which its
//! secrets and its attempts are worth nothing. The directory is one of the plane's machine.

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use axum::Json;
use axum::extract::State;
use muster_wire::Category;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{self, RawBody};
use super::caller::Caller;
use super::keys::audit;
use super::problem::Problem;
use crate::app::App;

/// Beside the store, and needed with it.
const KEYS: [&str; 2] = ["attempt.key", "identity.key"];

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(backup))
}

/// Where to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// A directory of the plane's machine, from the root; made when it is not there. It must
    /// hold no store.
    directory: String,
}

/// A copy that was made.
#[derive(Debug, Serialize, ToSchema)]
struct Backup {
    /// Where it is.
    directory: String,
    /// How large.
    bytes: u64,
    /// How long it took.
    took_ms: u64,
}

/// Copy the store
///
/// While it is in use; calls go on. The copy holds keys and payloads: keep it as private as the
/// data directory. A plane that is started on it begins in hold.
#[utoipa::path(post, path = "/api/v1/backup", tag = "health", request_body = Wanted,
    responses((status = 200, description = "It is there.", body = Backup), (status = 400, description = "No directory from the root."), (status = 409, description = "There is a store already, or it cannot be written.")))]
async fn backup(
    State(app): State<App>,
    caller: Caller,
    RawBody(bytes): RawBody,
) -> Result<Json<Backup>, Problem> {
    let wanted: Wanted = body::json(&bytes, "{directory}")?;
    let to = PathBuf::from(&wanted.directory);
    if !to.is_absolute() {
        return Err(Problem::validation("directory must begin with /"));
    }
    if std::fs::read_dir(&to).is_ok_and(|mut inside| inside.next().is_some()) {
        return Err(Problem::new(
            Category::Conflict,
            "the directory holds something already; name a new one, or an empty one",
        ));
    }
    let (now, by) = (app.clock.now(), caller.principal.clone());
    let began = std::time::Instant::now();
    let bytes = app
        .blocking(move |stores| {
            let refused = |why: String| Problem::new(Category::Conflict, why);
            let from = PathBuf::from(stores.decisions.about().place);
            stores
                .decisions
                .backup(&to)
                .map_err(|error| refused(format!("no copy was made: {error}")))?;
            for key in KEYS {
                copy(&from.join(key), &to.join(key))
                    .map_err(|error| refused(format!("{key} could not be copied: {error}")))?;
            }
            let object = to.display().to_string();
            audit(stores, now, &by, "store.copied", &object, String::new())?;
            Ok::<_, Problem>(size(&to))
        })
        .await?;
    Ok(Json(Backup {
        directory: wanted.directory,
        bytes,
        took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    }))
}

/// Copies a small file for its owner alone; one that is not there is none.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let bytes = match std::fs::read(from) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)?;
    std::io::Write::write_all(&mut file, &bytes)?;
    file.sync_all()
}

fn size(of: &Path) -> u64 {
    let files = std::fs::read_dir(of).into_iter().flatten().flatten();
    files
        .filter_map(|file| file.metadata().ok())
        .map(|found| found.len())
        .sum()
}
