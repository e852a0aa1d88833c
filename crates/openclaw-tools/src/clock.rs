//! Timestamps for logs.

use std::fmt::{self, Write as _};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::decimal::Decimal;

/// The length of a time without its milliseconds and time zone.
const SECONDS: usize = "1970-01-01T00:00:00".len();

/// A time in RFC 3339 format, in UTC, with milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct Rfc3339(pub SystemTime);

impl Rfc3339 {
    /// Appends the time to a string.
    pub fn push_to(self, text: &mut String) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{self}");
    }
}

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A time beyond the year 9999 means a broken clock.
        write!(f, "{:.3}", Timestamp::try_from(self.0).unwrap_or(Timestamp::MAX))
    }
}

impl Serialize for Rfc3339 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Writes instants as times of the wall clock. Both clocks are read once for many lines, and what is
/// the same for a whole second is formatted once.
#[derive(Debug)]
pub(crate) struct LogClock {
    instant: Instant,
    time: SystemTime,
    /// The second since 1970 of `prefix`.
    second: u64,
    prefix: String,
}

impl LogClock {
    pub(crate) fn now() -> Self {
        let (instant, time) = (Instant::now(), SystemTime::now());
        Self { instant, time, second: u64::MAX, prefix: String::new() }
    }

    /// Reads the clocks again: the wall clock may have been set.
    pub(crate) fn read_again(&mut self) {
        (self.instant, self.time) = (Instant::now(), SystemTime::now());
    }

    /// Appends the time of an instant in RFC 3339 format, in UTC, with milliseconds.
    pub(crate) fn push_time(&mut self, moment: Instant, text: &mut String) {
        let later = moment.saturating_duration_since(self.instant);
        let earlier = self.instant.saturating_duration_since(moment);
        let time = self.time.checked_sub(earlier).unwrap_or(self.time) + later;
        let Ok(since) = time.duration_since(UNIX_EPOCH) else {
            return Rfc3339(time).push_to(text);
        };
        if since.as_secs() != self.second {
            (self.second, self.prefix) = (since.as_secs(), Rfc3339(time).to_string());
            self.prefix.truncate(SECONDS);
        }
        text.push_str(&self.prefix);
        text.push('.');
        // Adding a thousand keeps leading zeros.
        let mut digits = Decimal::default();
        let millis = 1_000 + u64::from(since.subsec_millis());
        text.push_str(digits.of(millis).get(1..).unwrap_or_default());
        text.push('Z');
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339_has_them() {
        for (seconds, millis, expected) in [
            (0, 0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, 999, "2000-02-28T23:59:59.999Z"),
            (951_782_400, 0, "2000-02-29T00:00:00.000Z"),
            (951_868_800, 0, "2000-03-01T00:00:00.000Z"),
            (1_735_689_599, 5, "2024-12-31T23:59:59.005Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000Z"),
        ] {
            let at = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(millis);
            assert_eq!(Rfc3339(at).to_string(), expected);
        }
    }

    #[test]
    fn instants_before_and_after_the_clock_was_read_are_written_as_times() {
        let mut clock = LogClock::now();
        for millis in [0, 1, 45, 999, 1_000, 59_001] {
            let shift = Duration::from_millis(millis);
            for (moment, time) in [
                (clock.instant + shift, clock.time + shift),
                (clock.instant - shift, clock.time - shift),
            ] {
                let mut text = String::new();
                clock.push_time(moment, &mut text);
                assert_eq!(text, Rfc3339(time).to_string());
            }
        }
    }
}
