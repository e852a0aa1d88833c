//! One page of a list, parsed within limits: entries beyond them are skipped, not held in memory.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// One page of a list.
#[derive(Debug, Default)]
pub(super) struct ListPage<'a> {
    /// Its entries, up to the limit.
    pub(super) entries: Vec<&'a RawValue>,
    /// Whether there are more entries than the limit.
    pub(super) overflows: bool,
    /// The cursor of the next page.
    pub(super) next: Option<String>,
}

impl<'a> ListPage<'a> {
    /// Parses a response whose entries are under `key`, at most `room` of them.
    ///
    /// # Errors
    /// If it is not a page. `null` is an empty page, and so is a page without the key.
    pub(super) fn read(answer: &'a str, key: &str, room: usize) -> Result<Self, serde_json::Error> {
        PageOf { key, room }.deserialize(&mut serde_json::Deserializer::from_str(answer))
    }
}

/// A page whose entries are under `key`.
struct PageOf<'k> {
    key: &'k str,
    room: usize,
}

/// A key of an object: borrowed unless it contains an escape.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> DeserializeSeed<'de> for PageOf<'_> {
    type Value = ListPage<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ListPage<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PageOf<'_> {
    type Value = ListPage<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a page of {}", self.key)
    }

    fn visit_unit<E>(self) -> Result<ListPage<'de>, E> {
        Ok(ListPage::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ListPage<'de>, A::Error> {
        let mut page = ListPage::default();
        while let Some(Key(key)) = map.next_key()? {
            if key == self.key {
                (page.entries, page.overflows) = map.next_value_seed(Entries(self.room))?;
            } else if key == "nextCursor" {
                // Some servers send an empty cursor on the last page.
                page.next = map.next_value::<Option<String>>()?.filter(|next| !next.is_empty());
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(page)
    }
}

/// At most this many entries of an array, and whether there are more.
struct Entries(usize);

impl<'de> DeserializeSeed<'de> for Entries {
    type Value = (Vec<&'de RawValue>, bool);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Entries {
    type Value = (Vec<&'de RawValue>, bool);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok((Vec::new(), false))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while entries.len() < self.0 {
            match list.next_element()? {
                Some(entry) => entries.push(entry),
                None => return Ok((entries, false)),
            }
        }
        let mut overflows = false;
        while list.next_element::<IgnoredAny>()?.is_some() {
            overflows = true;
        }
        Ok((entries, overflows))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "these are tests")]

    use super::*;

    fn read(answer: &str, room: usize) -> Result<(usize, bool, Option<String>), String> {
        let page = ListPage::read(answer, "tools", room).map_err(|error| error.to_string())?;
        Ok((page.entries.len(), page.overflows, page.next))
    }

    #[test]
    fn unknown_fields_of_a_page_are_ignored() {
        let page = r#"{"_meta":{"a":[1]},"tools":[{"name":"a"},1],"nextCursor":"b"}"#;
        assert_eq!(read(page, 10), Ok((2, false, Some("b".to_owned()))));
        assert_eq!(read(r#"{"to\u006fls":[1]}"#, 10), Ok((1, false, None)));
    }

    #[test]
    fn null_and_missing_fields_are_empty() {
        let pages = ["null", "{}", r#"{"tools":null}"#, r#"{"nextCursor":null}"#];
        for page in pages.into_iter().chain([r#"{"tools":[],"nextCursor":""}"#]) {
            assert_eq!(read(page, 10), Ok((0, false, None)), "{page}");
        }
    }

    #[test]
    fn a_page_without_a_list_is_rejected() {
        for page in [r#"{"tools":"x"}"#, r#"{"tools":{}}"#, r#"{"nextCursor":7}"#, "[]", "7"] {
            assert!(read(page, 10).is_err(), "{page}");
        }
    }

    #[test]
    fn entries_beyond_the_limit_are_skipped() {
        let many = format!(r#"{{"tools":[1{}],"nextCursor":"b"}}"#, ",1".repeat(1_000_000));
        assert_eq!(read(&many, 3), Ok((3, true, Some("b".to_owned()))));
        assert_eq!(read(r#"{"tools":[1,1,1]}"#, 3), Ok((3, false, None)));
        assert_eq!(read(r#"{"tools":[1]}"#, 0), Ok((0, true, None)));
    }
}
