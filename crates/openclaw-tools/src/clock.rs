//! Timestamps for logs.

use std::fmt::{self, Write as _};
use std::time::SystemTime;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

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
}
