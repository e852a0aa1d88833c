//! One page of a list, read within bounds: what is beyond them is skipped, not held.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// One page of a list.
#[derive(Debug, Default)]
pub(super) struct Page<'a> {
    /// Its entries, as far as there is room for them.
    pub(super) entries: Vec<&'a RawValue>,
    /// Whether there are more than there is room for.
    pub(super) overflows: bool,
    /// Where the next page begins.
    pub(super) next: Option<String>,
}

impl<'a> Page<'a> {
    /// Reads an answer whose entries stand under `key`; no more than `room` of them are taken.
    ///
    /// # Errors
    /// If it is not a page. `null` is a page with nothing on it, and so is a page without the key.
    pub(super) fn read(answer: &'a str, key: &str, room: usize) -> Result<Self, serde_json::Error> {
        PageOf { key, room }.deserialize(&mut serde_json::Deserializer::from_str(answer))
    }
}

/// A page whose entries stand under a key.
struct PageOf<'k> {
    key: &'k str,
    room: usize,
}

/// A key of an object: borrowed unless it holds an escape.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> DeserializeSeed<'de> for PageOf<'_> {
    type Value = Page<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Page<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PageOf<'_> {
    type Value = Page<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a page of {}", self.key)
    }

    fn visit_unit<E>(self) -> Result<Page<'de>, E> {
        Ok(Page::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Page<'de>, A::Error> {
        let mut page = Page::default();
        while let Some(Key(key)) = map.next_key()? {
            if key == self.key {
                (page.entries, page.overflows) = map.next_value_seed(Entries(self.room))?;
            } else if key == "nextCursor" {
                // Some servers say with an empty one that there is no more.
                page.next = map.next_value::<Option<String>>()?.filter(|next| !next.is_empty());
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(page)
    }
}

/// So many entries of an array, and whether there are more.
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
        let page = Page::read(answer, "tools", room).map_err(|error| error.to_string())?;
        Ok((page.entries.len(), page.overflows, page.next))
    }

    #[test]
    fn a_page_is_read_whatever_else_stands_on_it() {
        let page = r#"{"_meta":{"a":[1]},"tools":[{"name":"a"},1],"nextCursor":"b"}"#;
        assert_eq!(read(page, 10), Ok((2, false, Some("b".to_owned()))));
        assert_eq!(read(r#"{"to\u006fls":[1]}"#, 10), Ok((1, false, None)));
    }

    #[test]
    fn null_and_nothing_mean_that_there_is_nothing() {
        let pages = ["null", "{}", r#"{"tools":null}"#, r#"{"nextCursor":null}"#];
        for page in pages.into_iter().chain([r#"{"tools":[],"nextCursor":""}"#]) {
            assert_eq!(read(page, 10), Ok((0, false, None)), "{page}");
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for page in [r#"{"tools":"x"}"#, r#"{"tools":{}}"#, r#"{"nextCursor":7}"#, "[]", "7"] {
            assert!(read(page, 10).is_err(), "{page}");
        }
    }

    #[test]
    fn what_there_is_no_room_for_is_skipped() {
        let many = format!(r#"{{"tools":[1{}],"nextCursor":"b"}}"#, ",1".repeat(1_000_000));
        assert_eq!(read(&many, 3), Ok((3, true, Some("b".to_owned()))));
        assert_eq!(read(r#"{"tools":[1,1,1]}"#, 3), Ok((3, false, None)));
        assert_eq!(read(r#"{"tools":[1]}"#, 0), Ok((0, true, None)));
    }
}
