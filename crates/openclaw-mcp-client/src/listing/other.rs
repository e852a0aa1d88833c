//! The members of an entry that are kept as the server wrote them: for users, for clients of other
//! programs, and for members that are parsed only when they are needed.

use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// The maximum size of the other members of an entry together, in bytes.
const MAX_BYTES: usize = 256 * 1024;
/// The maximum number of other members of an entry.
const MAX_MEMBERS: usize = 100;

/// The other members of an entry, up to a limit.
#[derive(Debug, Clone, Default)]
pub struct OtherMembers {
    members: Vec<(String, Box<RawValue>)>,
    bytes: usize,
    omitted: usize,
}

impl OtherMembers {
    /// Adds a member, unless it exceeds the limit. Of several with the same name the last one
    /// counts.
    pub(super) fn add(&mut self, name: String, value: Box<RawValue>) {
        if let Some(at) = self.members.iter().position(|(other, _)| *other == name) {
            let (name, value) = self.members.remove(at);
            self.bytes -= size(&name, &value);
        }
        let size = size(&name, &value);
        if self.bytes + size > MAX_BYTES || self.members.len() == MAX_MEMBERS {
            self.omitted += 1;
            return;
        }
        self.bytes += size;
        self.members.push((name, value));
    }

    /// Returns a member.
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        self.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// The members, in the server's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.members.iter().map(|(name, value)| (name.as_str(), &**value))
    }

    /// The number of members that exceed the limit. Not cached: unknown until the server is connected.
    pub fn omitted(&self) -> usize {
        self.omitted
    }
}

fn size(name: &str, value: &RawValue) -> usize {
    name.len() + value.get().len()
}

/// For entries that are otherwise parsed member by member (`serde(flatten)`).
impl<'de> Deserialize<'de> for OtherMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Rest;
        impl<'de> Visitor<'de> for Rest {
            type Value = OtherMembers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OtherMembers, A::Error> {
                let mut other = OtherMembers::default();
                // Not raw: flattened members were parsed before they arrive here.
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    other.add(name, to_raw_value(&value).map_err(A::Error::custom)?);
                }
                Ok(other)
            }
        }
        deserializer.deserialize_map(Rest)
    }
}

impl Serialize for OtherMembers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.members.len()))?;
        for (name, value) in self.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl PartialEq for OtherMembers {
    fn eq(&self, other: &Self) -> bool {
        let mut pairs = self.iter().zip(other.iter());
        (self.members.len(), self.omitted) == (other.members.len(), other.omitted)
            && pairs.all(|((a, one), (b, two))| a == b && one.get() == two.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn members_are_kept_up_to_a_size_and_a_number() {
        let mut other = OtherMembers::default();
        other.add("large".to_owned(), raw(&format!("\"{}\"", "x".repeat(MAX_BYTES))));
        assert_eq!((other.get("large").is_none(), other.omitted()), (true, 1));
        let half = format!("\"{}\"", "x".repeat(MAX_BYTES / 2 + 1));
        for value in [&half, &half, "1"] {
            other.add("same".to_owned(), raw(value));
        }
        assert_eq!(other.get("same").map(RawValue::get), Some("1"), "the last one counts");
        for number in 0..2 * MAX_MEMBERS {
            other.add(number.to_string(), raw("null"));
        }
        assert_eq!((other.iter().count(), other.omitted()), (MAX_MEMBERS, 2 + MAX_MEMBERS));
    }
}
