//! What the process uses: memory, file descriptors, time. Read from `/proc` where there is one;
//! what cannot be known is `None`.

use std::fs;

/// What the process uses now.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Process {
    /// Resident memory, in bytes.
    pub memory: Option<u64>,
    /// Open file descriptors.
    pub fds: Option<u64>,
    /// Most file descriptors it may open; `None` when there is no limit.
    pub fds_max: Option<u64>,
    /// User and system time, in seconds.
    pub cpu_seconds: Option<f64>,
}

/// Looks.
pub fn look() -> Process {
    Process {
        memory: memory(),
        fds: fs::read_dir("/proc/self/fd")
            .ok()
            .map(|dir| dir.count().saturating_sub(1) as u64),
        fds_max: rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
        cpu_seconds: cpu_seconds(),
    }
}

fn memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may hold spaces; utime and stime are the 12th and 13th after it.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    // The kernel counts in hundredths for user space, whatever its own tick is.
    Some((user + system) / 100.0)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    #[test]
    fn on_linux_everything_is_known() {
        let seen = super::look();
        assert!(seen.memory.unwrap() > 100_000);
        assert!(seen.fds.unwrap() >= 3);
        assert!(seen.cpu_seconds.unwrap() >= 0.0);
    }
}
