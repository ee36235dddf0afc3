//! Says when source files under a directory changed. Watches each directory for itself, so that
//! what is ignored costs nothing. Restarts nobody.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use muster_wire::Category;
use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

use crate::failure::{Failure, Outcome};

/// Editors write in several steps: a change is reported when nothing more came for so long.
const QUIET: Duration = Duration::from_millis(200);
/// More directories than this are not watched; said at the start.
const DIRECTORIES_MAX: usize = 4_096;

/// Directories that never hold source.
const IGNORED: &[&str] = &[
    ".git",
    ".hg",
    ".svn",
    ".muster",
    ".venv",
    "venv",
    ".tox",
    ".nox",
    ".idea",
    ".vscode",
    "__pycache__",
    "node_modules",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    "target",
];

/// Files that change without anybody having edited them.
const IGNORED_ENDS: &[&str] = &[
    ".pyc",
    ".pyo",
    ".swp",
    ".swx",
    ".tmp",
    "~",
    ".log",
    ".out",
    ".db",
    ".db-wal",
    ".db-shm",
    ".db-journal",
    ".sqlite",
    ".sqlite3",
    ".lock",
    ".pid",
];

/// A watched directory tree.
pub(crate) struct Watch {
    root: PathBuf,
    data: PathBuf,
    watcher: RecommendedWatcher,
    changes: mpsc::Receiver<PathBuf>,
    watched: usize,
    /// Files that change by themselves.
    restless: Vec<PathBuf>,
    /// Files that our own output goes to, by device and number.
    own: Vec<(u64, u64)>,
}

impl Watch {
    /// Watches everything under `root` but `data` and what is ignored.
    pub(crate) fn start(root: &Path, data: &Path) -> Outcome<Self> {
        // A full channel loses nothing: what is in it already says "changed".
        let (sender, changes) = mpsc::channel(256);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let Ok(event) = event else { return };
            if is_a_change(&event.kind) {
                for path in event.paths {
                    let _ = sender.try_send(path);
                }
            }
        })
        .map_err(|error| cannot_watch(root, &error))?;
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut watch = Self {
            root: absolute(root),
            data: absolute(data),
            watcher,
            changes,
            watched: 0,
            restless: Vec::new(),
            own: own_output(),
        };
        watch
            .watcher
            .watch(&watch.root, RecursiveMode::NonRecursive)
            .map_err(|error| cannot_watch(root, &error))?;
        watch.watched = 1;
        watch.add_below(&watch.root.clone());
        Ok(watch)
    }

    /// Whether there were more directories than are watched.
    pub(crate) fn is_partial(&self) -> bool {
        self.watched >= DIRECTORIES_MAX
    }

    /// Waits for a change and for the quiet after it; the first file that changed, relative.
    pub(crate) async fn changed(&mut self) -> PathBuf {
        let first = loop {
            if let Some(path) = self.next_source().await {
                break path;
            }
        };
        let mut seen = vec![first];
        while let Ok(more) = tokio::time::timeout(QUIET, self.next_source()).await {
            seen.extend(more);
        }
        // An editor that writes a new file and renames it names the new one first.
        let named = seen.iter().find(|path| path.exists()).unwrap_or(&seen[0]);
        named
            .strip_prefix(&self.root)
            .map_or_else(|_| named.clone(), Path::to_owned)
    }

    /// Never reports this file again.
    pub(crate) fn ignore(&mut self, file: &Path) {
        self.restless.push(self.root.join(file));
    }

    /// Forgets what changed until now.
    pub(crate) fn forget(&mut self) {
        while let Ok(path) = self.changes.try_recv() {
            self.take(&path);
        }
    }

    async fn next_source(&mut self) -> Option<PathBuf> {
        match self.changes.recv().await {
            Some(path) => self.take(&path).then_some(path),
            // The watcher lives as long as this value; without it nothing will ever change.
            None => std::future::pending().await,
        }
    }

    /// Starts to watch a new directory; whether the path is a source file's.
    fn take(&mut self, path: &Path) -> bool {
        if self.is_ignored(path) {
            return false;
        }
        if path.is_dir() {
            self.add(path);
            self.add_below(path);
            // Files may have been made in it before it was watched.
            return has_files(path);
        }
        true
    }

    fn is_ignored(&self, path: &Path) -> bool {
        if path.starts_with(&self.data) || self.restless.iter().any(|known| known == path) {
            return true;
        }
        let identity = std::fs::metadata(path).map(|of| (of.dev(), of.ino()));
        if identity.is_ok_and(|identity| self.own.contains(&identity)) {
            return true;
        }
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let in_ignored = below
            .components()
            .any(|part| part.as_os_str().to_str().is_some_and(is_ignored_name));
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("");
        in_ignored
            || name.starts_with(".#")
            || IGNORED_ENDS.iter().any(|end| name.ends_with(end))
            // Vim asks for the number of a file it can make.
            || name == "4913"
    }

    fn add(&mut self, path: &Path) {
        if self.watched < DIRECTORIES_MAX
            && self
                .watcher
                .watch(path, RecursiveMode::NonRecursive)
                .is_ok()
        {
            self.watched += 1;
        }
    }

    fn add_below(&mut self, directory: &Path) {
        let mut left = vec![directory.to_owned()];
        while let Some(directory) = left.pop() {
            let Ok(entries) = std::fs::read_dir(&directory) else {
                continue;
            };
            for entry in entries.flatten() {
                let path = entry.path();
                // A link may lead anywhere, and in circles.
                let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if is_directory
                    && !self.is_ignored(&path)
                    && !path.join("pyvenv.cfg").exists()
                    && self.watched < DIRECTORIES_MAX
                {
                    self.add(&path);
                    left.push(path);
                }
            }
        }
    }
}

/// Where our output goes when it was sent to a file: each line would be a change.
fn own_output() -> Vec<(u64, u64)> {
    let of = |file: std::io::Result<rustix::fs::Stat>| file.ok().map(|s| (s.st_dev, s.st_ino));
    [
        of(rustix::fs::fstat(std::io::stdout()).map_err(Into::into)),
        of(rustix::fs::fstat(std::io::stderr()).map_err(Into::into)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn is_ignored_name(name: &str) -> bool {
    IGNORED.contains(&name)
}

fn has_files(directory: &Path) -> bool {
    std::fs::read_dir(directory).is_ok_and(|entries| {
        entries
            .flatten()
            .any(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
    })
}

fn is_a_change(kind: &EventKind) -> bool {
    match kind {
        EventKind::Create(_) | EventKind::Remove(_) => true,
        EventKind::Modify(ModifyKind::Metadata(_)) => false,
        EventKind::Modify(_) => true,
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) | EventKind::Any | EventKind::Other => false,
    }
}

fn cannot_watch(root: &Path, error: &notify::Error) -> Failure {
    Failure::new(
        Category::InternalError,
        format!("cannot watch {}: {error}", root.display()),
    )
    .hint("on Linux the limit is fs.inotify.max_user_watches; start it from a smaller directory")
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn soon(watch: &mut Watch) -> Option<PathBuf> {
        tokio::time::timeout(Duration::from_secs(10), watch.changed())
            .await
            .ok()
    }

    #[tokio::test]
    async fn a_source_file_is_a_change_wherever_it_is_and_ignored_ones_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for sub in ["src", ".git", "__pycache__", ".muster", "env"] {
            std::fs::create_dir(root.join(sub)).unwrap();
        }
        std::fs::write(root.join("env/pyvenv.cfg"), "").unwrap();
        let mut watch = Watch::start(root, &root.join(".muster")).unwrap();
        for quiet in [
            ".git/HEAD",
            "__pycache__/a.pyc",
            ".muster/decisions.db",
            "env/x.py",
            "agent.log",
            ".agent.py.swp",
        ] {
            std::fs::write(root.join(quiet), "x").unwrap();
        }
        std::fs::write(root.join("src/agent.py"), "x").unwrap();
        // The first that is reported is the source file: what came before it was ignored.
        assert_eq!(soon(&mut watch).await, Some(PathBuf::from("src/agent.py")));

        std::fs::create_dir(root.join("new")).unwrap();
        std::fs::write(root.join("new/tool.py"), "x").unwrap();
        assert!(soon(&mut watch).await.unwrap().starts_with("new"));
    }
}
