//! Formats the time as RFC 3339.

use std::time::SystemTime;

use jiff::tz::Offset;
use jiff::{RoundMode, Timestamp, TimestampRound, Unit};

/// Returns the time in whole seconds, at this offset from UTC.
pub(super) fn rfc3339(time: SystemTime, offset_minutes: i64) -> String {
    let time = Timestamp::try_from(time).unwrap_or(Timestamp::MAX);
    let whole = TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Floor);
    let time = time.round(whole).unwrap_or(time);
    let seconds = i32::try_from(offset_minutes.saturating_mul(60)).ok();
    match seconds.and_then(|seconds| Offset::from_seconds(seconds).ok()) {
        Some(offset) if offset != Offset::UTC => time.display_with_offset(offset).to_string(),
        _ => time.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn at(seconds: u64, offset_minutes: i64) -> String {
        rfc3339(UNIX_EPOCH + Duration::from_secs(seconds), offset_minutes)
    }

    #[test]
    fn known_times_are_formatted() {
        assert_eq!(at(0, 0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399, 0), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400, 0), "2000-02-29T00:00:00Z");
        assert_eq!(at(951_868_800, 0), "2000-03-01T00:00:00Z");
        assert_eq!(at(1_234_567_890, 0), "2009-02-13T23:31:30Z");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn an_offset_is_applied_and_shown() {
        assert_eq!(at(0, 90), "1970-01-01T01:30:00+01:30");
        assert_eq!(at(0, -1), "1969-12-31T23:59:00-00:01");
    }
}
