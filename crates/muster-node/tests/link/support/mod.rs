//! A scripted plane, a daemon in this process, and what it logs.

pub(crate) mod daemon;
pub(crate) mod plane;

use std::io;
use std::sync::{Arc, Mutex, Once, OnceLock};
use std::time::Duration;

use tokio::time::Instant;

/// How long a thing may take on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Looks until something is there.
pub(crate) async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LONG;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits, and says for what when it never comes.
pub(crate) async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(LONG, work).await;
    done.unwrap_or_else(|_| panic!("never: {what}"))
}

/// Everything that this program has logged so far.
pub(crate) fn logged() -> String {
    String::from_utf8_lossy(&lines().lock().unwrap()).into_owned()
}

/// How often a text was logged.
pub(crate) fn logged_times(part: &str) -> usize {
    logged().matches(part).count()
}

fn lines() -> &'static Arc<Mutex<Vec<u8>>> {
    static LINES: OnceLock<Arc<Mutex<Vec<u8>>>> = OnceLock::new();
    LINES.get_or_init(Arc::default)
}

#[derive(Clone)]
struct Lines;

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lines().lock().unwrap().extend_from_slice(bytes);
        io::stderr().write_all(bytes)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps what is logged from now on.
pub(crate) fn listen_to_logs() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::DEBUG)
            .with_writer(|| Lines)
            .init();
    });
}
