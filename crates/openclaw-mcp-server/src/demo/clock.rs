//! The time of day as RFC 3339 writes it.

use std::time::{SystemTime, UNIX_EPOCH};

const DAY: i64 = 24 * 60 * 60;

/// The time, seen from a place that is so many minutes ahead of UTC.
pub(super) fn rfc3339(time: SystemTime, offset_minutes: i64) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX / 2) + offset_minutes * 60;
    let (year, month, day) = civil(seconds.div_euclid(DAY));
    let second = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let zone = match offset_minutes {
        0 => "Z".to_owned(),
        offset => {
            let sign = if offset < 0 { '-' } else { '+' };
            format!("{sign}{:02}:{:02}", offset.abs() / 60, offset.abs() % 60)
        }
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}")
}

/// Year, month and day of a day that is counted from 1970-01-01. A year is taken to begin in March:
/// the leap day is then its last, and the lengths of the months before it follow a straight line.
fn civil(day: i64) -> (i64, i64, i64) {
    const DAYS_IN_400_YEARS: i64 = 146_097;
    // From 0000-03-01 on.
    let day = day + 719_468;
    let (era, day) = (day.div_euclid(DAYS_IN_400_YEARS), day.rem_euclid(DAYS_IN_400_YEARS));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let in_next_year = month >= 10;
    let month = if in_next_year { month - 9 } else { month + 3 };
    (era * 400 + year + i64::from(in_next_year), month, day_of_month)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64, offset_minutes: i64) -> String {
        rfc3339(UNIX_EPOCH + Duration::from_secs(seconds), offset_minutes)
    }

    #[test]
    fn known_moments_are_written_as_they_are_known() {
        assert_eq!(at(0, 0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399, 0), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400, 0), "2000-02-29T00:00:00Z");
        assert_eq!(at(951_868_800, 0), "2000-03-01T00:00:00Z");
        assert_eq!(at(1_234_567_890, 0), "2009-02-13T23:31:30Z");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn an_offset_moves_the_clock_and_is_named() {
        assert_eq!(at(0, 90), "1970-01-01T01:30:00+01:30");
        assert_eq!(at(0, -1), "1969-12-31T23:59:00-00:01");
    }
}
