//! Whether a server still lives, though it says nothing (L8).

use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep};

use crate::wire::CallError;

/// How often a server is asked for a sign of life.
const EVERY: Duration = Duration::from_secs(30);
/// How often in a row it may fail to give one.
const MISSED: u32 = 2;
/// If so much more time has passed than was waited for, the machine was asleep.
const ASLEEP: Duration = Duration::from_secs(20);

/// What is watched.
pub(crate) trait Patient {
    /// Asks for a sign of life.
    fn ping(&self) -> impl Future<Output = Result<(), CallError>> + Send;

    /// Whether it is at work: then it may be too busy to answer, and its calls have their own time-outs.
    fn is_busy(&self) -> bool;

    /// How long ago it last said anything by itself.
    fn last_heard(&self) -> Duration;

    /// The time on the wall, which goes on while the machine sleeps.
    fn wall_clock(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// Returns when there is no sign of life any more; says so.
pub(crate) async fn watch(patient: &impl Patient) -> String {
    let mut missed = 0;
    loop {
        let (clock, wall) = (Instant::now(), patient.wall_clock());
        sleep(EVERY).await;
        let passed = patient.wall_clock().duration_since(wall).unwrap_or_default();
        let was_asleep = passed > clock.elapsed() + ASLEEP;
        let is_heard = patient.last_heard() < EVERY;
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
            // To connect anew tells what exactly is missing.
            Err(CallError::NeedsAuth { .. } | CallError::Forbidden { .. }) => {
                return "login required".to_owned();
            }
            // A closed connection is found out elsewhere; all else is for callers to see.
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

    /// Answers the first so many pings, and then so; the wall's clock runs ahead by so much each time.
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
            let (pings, wall) = (AtomicUsize::new(0), Mutex::new(SystemTime::UNIX_EPOCH));
            let then = || CallError::TimedOut(Duration::from_secs(15));
            Self { answers, then, busy: false, heard: EVERY, ahead: EVERY, pings, wall }
        }
    }

    impl Patient for Scripted {
        async fn ping(&self) -> Result<(), CallError> {
            let answers = self.pings.fetch_add(1, Ordering::SeqCst) < self.answers;
            if answers { Ok(()) } else { Err((self.then)()) }
        }

        fn is_busy(&self) -> bool {
            self.busy
        }

        fn last_heard(&self) -> Duration {
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
    async fn a_server_that_answers_with_a_failure_of_its_own_is_given_up_too() {
        let then = || CallError::Http { status: 502, body: String::new() };
        let server = Scripted { then, ..Scripted::new(1) };
        let said = watch(&server).await;
        assert!(said.contains("2 pings"), "{said}");
        assert_eq!(server.pings.load(Ordering::SeqCst), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_wants_a_login_is_connected_to_anew_at_once() {
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
    async fn after_a_sleep_one_ping_is_enough_even_if_it_was_at_work() {
        let server = Scripted { busy: true, ahead: Duration::from_secs(3600), ..Scripted::new(0) };
        assert_eq!(watch(&server).await, "no response after system sleep");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_at_work_is_left_alone() {
        let server = Scripted { busy: true, ..Scripted::new(0) };
        let watched = tokio::time::timeout(Duration::from_secs(3600), watch(&server)).await;
        assert!(watched.is_err() && server.pings.load(Ordering::SeqCst) == 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_speaks_by_itself_is_not_asked() {
        let server = Scripted { heard: Duration::from_secs(1), ..Scripted::new(0) };
        let watched = tokio::time::timeout(Duration::from_secs(3600), watch(&server)).await;
        assert!(watched.is_err() && server.pings.load(Ordering::SeqCst) == 0);
        let ahead = Duration::from_secs(3600);
        let server = Scripted { heard: Duration::from_secs(1), ahead, ..Scripted::new(0) };
        assert_eq!(watch(&server).await, "no response after system sleep");
    }
}
