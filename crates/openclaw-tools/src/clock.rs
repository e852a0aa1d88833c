//! The time of day, as logs want it.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

/// A time as RFC 3339 has it, in UTC, to the millisecond.
#[derive(Debug, Clone, Copy)]
pub struct Rfc3339(pub SystemTime);

impl Rfc3339 {
    /// Adds it to a text.
    pub fn push_to(self, text: &mut String) {
        // Formatting machinery costs more than the digits; what is written to a string is never refused.
        match self.digits() {
            Ok(digits) => text.push_str(std::str::from_utf8(&digits).unwrap_or_default()),
            Err(long) => text.push_str(&long),
        }
    }

    /// The text as it nearly always is; longer after the year 9999.
    fn digits(self) -> Result<[u8; 24], String> {
        let since = self.0.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
        let (year, month, day) = date(days);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        let millis = u64::from(since.subsec_millis());
        // Every call is logged with a time, and `write!` takes longer than the rest of its line.
        if year <= 9_999 {
            let mut text = *b"0000-00-00T00:00:00.000Z";
            for (number, places) in [
                (year, 0..4),
                (month, 5..7),
                (day, 8..10),
                (hour, 11..13),
                (minute, 14..16),
                (second, 17..19),
                (millis, 20..23),
            ] {
                put(&mut text[places], number);
            }
            return Ok(text);
        }
        Err(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"))
    }
}

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.digits() {
            Ok(digits) => f.write_str(std::str::from_utf8(&digits).unwrap_or_default()),
            Err(long) => f.write_str(&long),
        }
    }
}

/// Puts as many digits of a number as there are places.
fn put(places: &mut [u8], number: u64) {
    let mut rest = number;
    for place in places.iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

impl Serialize for Rfc3339 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The date so many days after 1970-01-01. Years are counted from March, so that the leap day is the
/// last of its year; 400 of them have 146,097 days, and five months from March on have 153.
fn date(days: u64) -> (u64, u64, u64) {
    // From 0000-03-01 on.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
    fn days_follow_each_other() {
        let mut before = date(0);
        for day in 1..200_000 {
            let now = date(day);
            let is_next = now.2 == before.2 + 1 && now.1 == before.1 && now.0 == before.0;
            let is_new_month = now.2 == 1 && (28..=31).contains(&before.2);
            assert!(is_next || is_new_month, "{before:?} {now:?}");
            before = now;
        }
    }
}
