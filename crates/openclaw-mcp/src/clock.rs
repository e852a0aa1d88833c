//! The time of day, as logs want it.

use std::time::Duration;

/// Seconds of a day.
const DAY: u64 = 24 * 60 * 60;

/// A moment, given as the time since 1970, in UTC: `2026-11-16T08:30:00Z`.
pub(crate) fn utc(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (year, month, day) = date(seconds / DAY);
    let (hour, minute, second) = (seconds % DAY / 3600, seconds % 3600 / 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of a day counted from 1970.
fn date(days: u64) -> (u64, u64, u64) {
    // Counted from the first of March of the year 0, leap days are at the end of their year, and a
    // cycle of 400 years has 146,097 days.
    let days = days + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (cycle * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_the_calendar_has_them() {
        let written = |seconds| utc(Duration::from_secs(seconds));
        assert_eq!(written(0), "1970-01-01T00:00:00Z");
        assert_eq!(written(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(written(1_798_761_599), "2026-12-31T23:59:59Z");
        assert_eq!(written(4_107_542_400), "2100-03-01T00:00:00Z");
    }
}
