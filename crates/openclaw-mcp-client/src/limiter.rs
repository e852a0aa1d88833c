//! The rate limit of a server (B10): calls per minute, and a pause if the server requests one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);
/// The longest pause that a server can request.
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

/// A call was rate limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many calls; retry in {} s", whole_seconds(*after))]
pub struct RetryAfter {
    /// How long to wait.
    pub after: Duration,
    /// Which side set the limit.
    pub asked_by: AskedBy,
}

/// Which side set a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedBy {
    /// The configured limit.
    Us,
    /// The server.
    Server,
}

/// Rounds up to whole seconds.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// The rate limiter of one server. Lock-free: times are nanoseconds since it was created.
///
/// An unused server accepts a minute's worth of calls in a burst; after that they are spread
/// evenly.
#[derive(Debug)]
pub struct Limiter {
    start: Instant,
    /// The time between two calls; 0 without a limit.
    interval: AtomicU64,
    /// The time at which the calls made so far no longer count against the limit.
    used_until: AtomicU64,
    /// The end of the pause that the server requested.
    paused_until: AtomicU64,
}

impl Limiter {
    /// Creates a limiter; `None` means no limit.
    pub fn new(calls_a_minute: Option<u32>) -> Self {
        Self {
            start: Instant::now(),
            interval: AtomicU64::new(interval(calls_a_minute)),
            used_until: AtomicU64::new(0),
            paused_until: AtomicU64::new(0),
        }
    }

    /// Changes the limit. Calls already made still count.
    pub fn set(&self, calls_a_minute: Option<u32>) {
        self.interval.store(interval(calls_a_minute), Ordering::Relaxed);
    }

    /// Checks whether a call would be accepted, without taking it from the quota.
    ///
    /// # Errors
    /// If the quota is used up, with the time to wait.
    pub fn check_room(&self, now: Instant) -> Result<(), RetryAfter> {
        self.check_pause(now)?;
        let used_until = self.used_until.load(Ordering::Relaxed);
        self.after_one_more(used_until, self.since_start(now)).map(drop)
    }

    /// Takes one call from the quota.
    ///
    /// # Errors
    /// If the quota is used up, with the time to wait.
    pub fn check(&self, now: Instant) -> Result<(), RetryAfter> {
        self.check_pause(now)?;
        if self.interval.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let now = self.since_start(now);
        let take = |used_until: u64| self.after_one_more(used_until, now).ok();
        match self.used_until.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(()),
            Err(used_until) => self.after_one_more(used_until, now).map(drop),
        }
    }

    /// Returns until when the calls made so far and one more count, if it is within the limit.
    fn after_one_more(&self, used_until: u64, now: u64) -> Result<u64, RetryAfter> {
        let interval = self.interval.load(Ordering::Relaxed);
        let window = nanoseconds(MINUTE);
        let then = used_until.max(now) + interval;
        if then - now <= window {
            return Ok(then);
        }
        let after = Duration::from_nanos((then - window).saturating_sub(now));
        Err(RetryAfter { after, asked_by: AskedBy::Us })
    }

    fn since_start(&self, now: Instant) -> u64 {
        nanoseconds(now.saturating_duration_since(self.start))
    }

    /// Checks only whether the server has asked for a pause; takes nothing from the quota.
    ///
    /// # Errors
    /// If it has, with the time to wait.
    pub fn check_pause(&self, now: Instant) -> Result<(), RetryAfter> {
        let now = self.since_start(now);
        match self.paused_until.load(Ordering::Relaxed).checked_sub(now) {
            None | Some(0) => Ok(()),
            Some(left) => {
                Err(RetryAfter { after: Duration::from_nanos(left), asked_by: AskedBy::Server })
            }
        }
    }

    /// Pauses calls (429, `Retry-After`). A shorter pause does not shorten one that is already in
    /// effect.
    pub fn back_off(&self, pause: Duration) {
        let until = nanoseconds(self.start.elapsed() + pause.min(LONGEST_PAUSE));
        self.paused_until.fetch_max(until, Ordering::Relaxed);
    }
}

/// The time between two calls in nanoseconds; 0 without a limit.
fn interval(calls_a_minute: Option<u32>) -> u64 {
    calls_a_minute.map_or(0, |calls| nanoseconds(MINUTE) / u64::from(calls.max(1)))
}

/// Overflows after more than 500 years.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(limiter: &Limiter) -> RetryAfter {
        limiter.check(Instant::now()).unwrap_err()
    }

    #[tokio::test(start_paused = true)]
    async fn calls_over_the_limit_fail_with_the_time_to_wait() {
        let limiter = Limiter::new(Some(6));
        for _ in 0..6 {
            limiter.check(Instant::now()).unwrap();
        }
        let refusal = refused(&limiter);
        assert_eq!(refusal.after, Duration::from_secs(10));
        assert_eq!(refusal.asked_by, AskedBy::Us);
        assert_eq!(refusal.to_string(), "too many calls; retry in 10 s");
        tokio::time::advance(refusal.after).await;
        limiter.check(Instant::now()).unwrap();
        assert_eq!(refused(&limiter).after, Duration::from_secs(10));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_call_does_not_count() {
        let limiter = Limiter::new(Some(1));
        limiter.check(Instant::now()).unwrap();
        for _ in 0..100 {
            refused(&limiter);
        }
        tokio::time::advance(MINUTE).await;
        limiter.check(Instant::now()).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_changed_limit_applies_immediately_and_keeps_the_used_quota() {
        let limiter = Limiter::new(Some(60));
        for _ in 0..30 {
            limiter.check(Instant::now()).unwrap();
        }
        limiter.set(Some(2));
        limiter.check(Instant::now()).unwrap();
        assert_eq!(refused(&limiter).after, Duration::from_secs(30), "half of the minute was used");
        limiter.set(None);
        limiter.check(Instant::now()).unwrap();
        limiter.set(Some(2));
        refused(&limiter);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_requested_by_the_server_is_respected() {
        let limiter = Limiter::new(None);
        for _ in 0..10_000 {
            limiter.check(Instant::now()).unwrap();
        }
        limiter.back_off(Duration::from_secs(30));
        limiter.back_off(Duration::from_secs(5));
        assert_eq!(refused(&limiter).after, Duration::from_secs(30));
        assert_eq!(refused(&limiter).asked_by, AskedBy::Server);
        tokio::time::advance(Duration::from_secs(30)).await;
        limiter.check(Instant::now()).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_length_of_a_pause_is_limited() {
        let limiter = Limiter::new(Some(1));
        limiter.back_off(Duration::MAX);
        tokio::time::advance(LONGEST_PAUSE).await;
        limiter.check(Instant::now()).unwrap();
    }
}
