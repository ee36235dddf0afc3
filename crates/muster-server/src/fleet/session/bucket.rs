//! How fast frames that ask for no answer are taken: a node that floods is not read, and nobody
//! else notices.

use std::time::Duration;

use tokio::time::Instant;

/// Frames without an answer that are taken at once, and how fast there are more.
const TOKENS: f64 = 200.0;
const TOKENS_PER_SECOND: f64 = 100.0;

/// How many frames that ask for no answer may still be taken now.
pub(super) struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Bucket {
    pub(super) fn new() -> Self {
        Self {
            tokens: TOKENS,
            at: Instant::now(),
        }
    }

    /// Takes a token; waits for one when there is none.
    pub(super) async fn take(&mut self) {
        let now = Instant::now();
        let grown = now.duration_since(self.at).as_secs_f64() * TOKENS_PER_SECOND;
        self.tokens = (self.tokens + grown).min(TOKENS);
        self.at = now;
        if self.tokens < 1.0 {
            let wait = (1.0 - self.tokens) / TOKENS_PER_SECOND;
            tokio::time::sleep(Duration::from_secs_f64(wait)).await;
        }
        self.tokens -= 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_taken_no_faster_than_the_bucket_fills() {
        let mut bucket = Bucket::new();
        let began = Instant::now();
        for _ in 0..TOKENS as u32 {
            bucket.take().await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..100 {
            bucket.take().await;
        }
        let took = began.elapsed().as_secs_f64();
        assert!((0.9..1.2).contains(&took), "{took}");
    }
}
