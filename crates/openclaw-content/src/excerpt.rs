//! The beginning and the end of a text that is too long to show. What a user decides about may be at its
//! end.

use std::borrow::Cow;

use crate::label::clean_line;
use crate::untrusted::Untrusted;

/// Returns a text, or as much of its beginning and its end as fits in this number of characters, with
/// the number of those between.
///
/// ```
/// use openclaw_content::excerpt;
///
/// assert_eq!(excerpt("echo build; touch X", 100), "echo build; touch X");
/// assert_eq!(excerpt(&format!("echo {}; touch X", "build ".repeat(900)), 20),
///            "echo build b… 5,394 more characters … touch X");
/// ```
#[must_use]
pub fn excerpt(text: &str, room: usize) -> Cow<'_, str> {
    match split(text, room) {
        None => text.into(),
        Some((beginning, hidden, end)) => {
            format!("{beginning}{}{end}", more_characters(hidden)).into()
        }
    }
}

/// Cleans a text like [`clean_line`], but keeps its end, too, if it is too long.
#[must_use]
pub fn clean_excerpt(text: Untrusted<&str>, room: usize) -> String {
    excerpt(&clean_line(text, usize::MAX), room).into_owned()
}

/// How many characters are not shown, in words.
#[must_use]
pub fn more_characters(hidden: usize) -> String {
    let digits = hidden.to_string();
    let mut number = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            number.push(',');
        }
        number.push(digit);
    }
    format!("… {number} more characters …")
}

/// The number of characters of the beginning: most of what is shown.
pub(crate) const fn beginning_of(room: usize) -> usize {
    room.saturating_mul(3) / 5
}

/// The beginning, the number of characters between, and the end. Returns `None` for a text that fits.
pub(crate) fn split(text: &str, room: usize) -> Option<(&str, usize, &str)> {
    // A text has no more characters than bytes.
    if text.len() <= room {
        return None;
    }
    let length = text.chars().count();
    if length <= room {
        return None;
    }
    let first = beginning_of(room);
    let last = room - first;
    let at = |nth: usize| text.char_indices().nth(nth).map_or(text.len(), |(at, _)| at);
    Some((&text[..at(first)], length - room, &text[at(length - last)..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_text_is_shown() {
        let long = format!("é{}; touch X", "build ".repeat(1_000));
        let shown = excerpt(&long, 100);
        assert!(shown.starts_with("ébuild ") && shown.ends_with("; touch X"), "{shown}");
        assert!(shown.contains("… 5,910 more characters …"), "{shown}");
        for room in 0..12 {
            let shown = excerpt("0123456789", room);
            assert_eq!(shown.contains('…'), room < 10, "{shown}");
        }
        assert_eq!(more_characters(1_234_567), "… 1,234,567 more characters …");
        assert_eq!(more_characters(7), "… 7 more characters …");
        let dirty = Untrusted::new("two\n\u{202e}lines  end");
        assert_eq!(clean_excerpt(dirty, 80), "two lines end");
    }
}
