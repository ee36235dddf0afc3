//! `muster backup`, which asks the plane, and `muster restore`, which asks nobody: no plane may
//! run on either side of it.

use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use muster_wire::Category;
use serde_json::json;

use super::{Asking, item};
use crate::cli::{Backup, Restore};
use crate::failure::{Failure, Outcome};
use crate::out::{self, span};

/// What a copy has; the first is there in any.
const FILES: [&str; 5] = [
    "decisions.db",
    "payloads.db",
    "logs.db",
    "attempt.key",
    "identity.key",
];

/// Has the plane copy its store.
pub(super) async fn backup(asking: &Asking<'_>, args: &Backup) -> Outcome<u8> {
    let directory = std::path::absolute(&args.directory)?;
    let wanted = json!({ "directory": directory });
    let made = asking
        .client
        .post("/api/v1/backup", &wanted)
        .await?
        .json()?;
    if asking.json {
        super::envelope::print_one("backup", &made);
        return Ok(0);
    }
    let bytes = item::number(&made, &["bytes"]).unwrap_or(0);
    out::data(&format!("{} ({})", directory.display(), span::bytes(bytes)));
    out::talk("it holds keys and payloads: keep it as private as the data directory");
    Ok(0)
}

/// Puts a copy in place.
pub(super) fn restore(args: &Restore, json: bool) -> Outcome<u8> {
    let (from, to) = (&args.from, &args.data);
    if !from.join(FILES[0]).is_file() {
        let text = format!("{} holds no copy of a store", from.display());
        return Err(Failure::new(Category::NotFound, text));
    }
    if to.join(FILES[0]).exists() {
        let text = format!("there is a store in {} already", to.display());
        return Err(Failure::new(Category::Conflict, text)
            .hint("move it away first, or name another directory with --data"));
    }
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(to)?;
    // The decisions last: without them there is no store, so a half-made one is none.
    for file in FILES.iter().rev() {
        copy(&from.join(file), &to.join(file))?;
    }
    if json {
        super::envelope::print_one("restored", &json!({"directory": to}));
    } else {
        out::data(&to.display().to_string());
        out::talk(&format!(
            "a plane on it begins in hold: muster server --data {}, then muster unhold",
            to.display()
        ));
    }
    Ok(0)
}

fn copy(from: &Path, to: &Path) -> Outcome<()> {
    let mut read = match std::fs::File::open(from) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut write = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)?;
    std::io::copy(&mut read, &mut write)?;
    write.sync_all()?;
    Ok(())
}
