//! A disk that is full, read-only, or holds the store of a newer build.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Silent, callback, send, shown};
use crate::support::{BINARY, Plane, Running, run, stderr, until};

/// A plane whose data lie on a disk of their own, so small that it can be filled.
struct Small {
    process: Running,
    address: String,
    /// The disk, seen from here.
    disk: PathBuf,
}

impl Small {
    pub(super) fn start(directory: &Path) -> Self {
        // A mount of its own needs a user namespace; nothing of it is seen outside.
        let disk = directory.join("disk");
        std::fs::create_dir(&disk).unwrap();
        let script = format!(
            "mount -t tmpfs -o size=96m tmpfs {0} && echo $$ >&2 && exec {BINARY} server --data {0}/data --listen 127.0.0.1:0",
            disk.display()
        );
        let mut command = Command::new("unshare");
        command
            .args(["-Urm", "sh", "-c", &script])
            .current_dir(directory)
            .env("HOME", directory)
            .env("MUSTER_STORE__MIN_FREE", "32MiB")
            .stdin(Stdio::null());
        let process = Running::start(command);
        let line = process.line("\"ready\"");
        let said: Value = serde_json::from_str(&line).unwrap();
        let pid: i32 = until("it says its pid", || {
            process
                .said()
                .lines()
                .find_map(|line| line.trim().parse().ok())
        });
        let below = disk.strip_prefix("/").unwrap();
        Self {
            address: said["address"].as_str().unwrap().to_owned(),
            process,
            disk: PathBuf::from(format!("/proc/{pid}/root")).join(below),
        }
    }

    /// Fills the disk but for so many bytes.
    fn fill(&self, leave: u64) {
        let room = rustix::fs::statvfs(&self.disk).unwrap();
        let free = room.f_bavail * room.f_frsize;
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.disk.join("filler"))
            .unwrap();
        let mut left = free.saturating_sub(leave);
        let piece = vec![b'x'; 64 * 1024];
        while left > 0 {
            let some = usize::try_from(left).unwrap().min(piece.len());
            if file.write(&piece[..some]).is_err() {
                break;
            }
            left -= some as u64;
        }
    }

    fn empty(&self) {
        std::fs::remove_file(self.disk.join("filler")).unwrap();
    }
}

/// Execution contract 6: below the reserve new work is refused on every lane and leaves no row,
/// outcomes and cancels are still written; and when even the reserve is gone nothing that was
/// answered is lost, and everything goes on when there is room again.
#[test]
fn a_full_disk_refuses_new_work_and_takes_outcomes_until_there_is_room_again() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Small::start(dir.path());
    let address = &plane.address;
    let agent = Silent::start();
    agent.register(address);
    let (ends, attempt) = agent.called(address);
    let (cancelled, _) = agent.called(address);
    let (late, late_attempt) = agent.called(address);
    let count = || {
        let list = send(address, "GET", "/api/v1/executions?limit=500", &Value::Null);
        list.body["count"].as_u64().unwrap()
    };
    assert_eq!(count(), 3);

    plane.fill(24 << 20);
    let call = |lane: &str| {
        let path = format!("/api/v1/execute/{lane}silent.wait");
        send(address, "POST", &path, &json!({"input": {}}))
    };
    let refused = until("new work is refused", || {
        std::thread::sleep(Duration::from_millis(400));
        let answer = call("async/");
        (answer.status == 503).then_some(answer)
    });
    assert_eq!(
        refused.body["error_category"], "store_full",
        "{}",
        refused.body
    );
    assert_eq!(refused.body["retry_after"], 30);
    assert!(refused.head.contains("retry-after: 30"), "{}", refused.head);
    let taken = count();
    for lane in ["async/", ""] {
        let answer = call(lane);
        assert_eq!(answer.status, 503, "{lane}: {}", answer.body);
        assert_eq!(answer.body["error_category"], "store_full", "{lane}");
    }
    assert_eq!(count(), taken, "a refusal leaves no row");
    let answer = callback(address, &attempt).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(shown(address, &ends)["status"], "succeeded");
    let path = format!("/api/v1/executions/{cancelled}/cancel");
    let answer = send(address, "POST", &path, &json!({}));
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(shown(address, &cancelled)["status"], "cancelled");
    let health = send(address, "GET", "/api/v1/health", &Value::Null).body;
    assert_eq!(health["status"], "degraded", "{health}");
    assert!(
        health["problems"].to_string().contains("reserve"),
        "{health}"
    );

    // Now even the reserve is gone.
    plane.fill(0);
    let (to, said) = (address.clone(), late_attempt.clone());
    let waits = std::thread::spawn(move || callback(&to, &said));
    let began = std::time::Instant::now();
    while began.elapsed() < Duration::from_secs(3) {
        // Reads are answered, and nothing that was written is unsaid.
        assert_eq!(shown(address, &ends)["status"], "succeeded");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(send(address, "GET", "/healthz", &Value::Null).status, 200);

    plane.empty();
    let answer = waits.join().unwrap();
    // It waited for room, or was told to come again: the SDK does.
    if answer.is_none_or(|answer| answer.status != 200) {
        until("the outcome is taken", || {
            callback(address, &late_attempt).filter(|answer| answer.status == 200)
        });
    }
    assert_eq!(shown(address, &late)["status"], "succeeded");
    until("new work is taken again", || {
        std::thread::sleep(Duration::from_millis(400));
        (call("async/").status == 202).then_some(())
    });
    let health = until("it is well again", || {
        let health = send(address, "GET", "/api/v1/health", &Value::Null).body;
        (health["status"] == "ok").then_some(health)
    });
    assert_eq!(health["quarantined"], 0, "{health}");
    assert_eq!(health["store"]["reserve_bytes"], 32 << 20, "{health}");
    plane.process.signal(Signal::TERM);
}

#[test]
fn a_data_directory_that_is_read_only_is_said_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let disk = dir.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let script = format!(
        "mount -t tmpfs tmpfs {0} && mkdir {0}/data && mount -o remount,ro {0} && exec {BINARY} server --data {0}/data --listen 127.0.0.1:0",
        disk.display()
    );
    let output = Command::new("unshare")
        .args(["-Urm", "sh", "-c", &script])
        .current_dir(dir.path())
        .env("HOME", dir.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(77), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("cannot be written"), "{said}");
    assert!(said.contains("hint: name another"), "{said}");
}

#[test]
fn a_store_of_a_newer_build_is_refused_with_a_sentence_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let mut plane = Plane::start(dir.path(), "127.0.0.1:0");
    plane.process.signal(Signal::TERM);
    assert!(plane.process.end().success());
    let file = dir.path().join(".muster/decisions.db");
    let mut bytes = std::fs::read(&file).unwrap();
    // The number of the format, where SQLite keeps it.
    bytes[60..64].copy_from_slice(&99u32.to_be_bytes());
    std::fs::write(&file, &bytes).unwrap();
    let output = run(
        dir.path(),
        &["server", "--data", ".muster", "--listen", "127.0.0.1:0"],
    );
    assert!(!output.status.success());
    let said = stderr(&output);
    assert!(said.contains("newer") && said.contains("99"), "{said}");
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
}
