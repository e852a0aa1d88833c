//! Detects silent servers that are no longer alive (L8).

use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep};

use openclaw_mcp_client::wire::CallError;

/// The interval between pings.
const EVERY: Duration = Duration::from_secs(30);
/// How many pings in a row may fail.
const MISSED: u32 = 2;
/// If the wall clock has advanced by this much more than the interval, the machine was suspended.
const ASLEEP: Duration = Duration::from_secs(20);

/// A server whose health is checked.
pub(crate) trait HealthCheck {
    /// Sends a ping.
    fn ping(&self) -> impl Future<Output = Result<(), CallError>> + Send;

    /// Whether calls are in flight: it may be too busy to answer, and its calls have their own
    /// timeouts.
    fn is_busy(&self) -> bool;

    /// The time since it last sent anything.
    fn last_activity(&self) -> Duration;

    /// The wall clock, which advances while the machine is suspended.
    fn wall_clock(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// Returns the reason once the server is considered dead.
pub(crate) async fn watch(patient: &impl HealthCheck) -> String {
    let mut missed = 0;
    loop {
        let clock = Instant::now();
        let wall = patient.wall_clock();
        sleep(EVERY).await;
        let passed = patient.wall_clock().duration_since(wall).unwrap_or_default();
        let was_asleep = passed > clock.elapsed() + ASLEEP;
        let is_heard = patient.last_activity() < EVERY;
        if is_heard {
            missed = 0;
        }
        if (is_heard || patient.is_busy()) && !was_asleep {
            continue;
        }
        match patient.ping().await {
            Ok(()) => missed = 0,
            Err(CallError::TimedOut(_)) if was_asleep => {
                return "no response after system sleep".to_owned();
            }
            Err(CallError::TimedOut(_) | CallError::Http { status: 500.., .. }) => missed += 1,
            // Reconnecting reports what exactly is missing.
            Err(CallError::NeedsAuth { .. } | CallError::Auth(_) | CallError::Forbidden { .. }) => {
                return "login required".to_owned();
            }
            // A closed connection is detected elsewhere; other errors are reported to callers.
            Err(_) => {}
        }
        if missed >= MISSED {
            return format!("not responding ({missed} pings in a row failed)");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Answers the first `answers` pings, then fails with `then`; the wall clock advances by
    /// `ahead` on each reading.
    struct Scripted {
        answers: usize,
        then: fn() -> CallError,
        busy: bool,
        heard: Duration,
        ahead: Duration,
        pings: AtomicUsize,
        wall: Mutex<SystemTime>,
    }

    impl Scripted {
        fn new(answers: usize) -> Self {
            let pings = AtomicUsize::new(0);
            let wall = Mutex::new(SystemTime::UNIX_EPOCH);
            let then = || CallError::TimedOut(Duration::from_secs(15));
            Self { answers, then, busy: false, heard: EVERY, ahead: EVERY, pings, wall }
        }
    }

    impl HealthCheck for Scripted {
        async fn ping(&self) -> Result<(), CallError> {
            let answers = self.pings.fetch_add(1, Ordering::SeqCst) < self.answers;
            if answers { Ok(()) } else { Err((self.then)()) }
        }

        fn is_busy(&self) -> bool {
            self.busy
        }

        fn last_activity(&self) -> Duration {
            self.heard
        }

        fn wall_clock(&self) -> SystemTime {
            let mut wall = self.wall.lock().unwrap();
            let now = *wall;
            *wall += self.ahead;
            now
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_stops_answering_is_given_up_after_the_second_ping() {
        let server = Scripted::new(3);
        let said = watch(&server).await;
        assert!(said.contains("2 pings"), "{said}");
        assert_eq!(server.pings.load(Ordering::SeqCst), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_answers_with_http_5xx_is_given_up_too() {
        let then = || CallError::Http { status: 502, body: String::new() };
        let server = Scripted { then, ..Scripted::new(1) };
        let said = watch(&server).await;
        assert!(said.contains("2 pings"), "{said}");
        assert_eq!(server.pings.load(Ordering::SeqCst), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_requires_a_login_is_reconnected_immediately() {
        let refusals: [fn() -> CallError; 2] = [
            || CallError::NeedsAuth { challenge: None },
            || CallError::Forbidden { challenge: None },
        ];
        for then in refusals {
            let server = Scripted { then, ..Scripted::new(1) };
            assert_eq!(watch(&server).await, "login required");
            assert_eq!(server.pings.load(Ordering::SeqCst), 2);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_suspend_one_failed_ping_is_enough_even_if_the_server_is_busy() {
        let server = Scripted { busy: true, ahead: Duration::from_secs(3600), ..Scripted::new(0) };
        assert_eq!(watch(&server).await, "no response after system sleep");
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_server_is_not_pinged() {
        let server = Scripted { busy: true, ..Scripted::new(0) };
        let watched = tokio::time::timeout(Duration::from_secs(3600), watch(&server)).await;
        assert!(watched.is_err() && server.pings.load(Ordering::SeqCst) == 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_sent_something_recently_is_not_pinged() {
        let server = Scripted { heard: Duration::from_secs(1), ..Scripted::new(0) };
        let watched = tokio::time::timeout(Duration::from_secs(3600), watch(&server)).await;
        assert!(watched.is_err() && server.pings.load(Ordering::SeqCst) == 0);
        let ahead = Duration::from_secs(3600);
        let server = Scripted { heard: Duration::from_secs(1), ahead, ..Scripted::new(0) };
        assert_eq!(watch(&server).await, "no response after system sleep");
    }
}
