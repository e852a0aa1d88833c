//! A digest of JSON that does not depend on how a client writes it, made while the text is read: a tree
//! of its values would take a hundred times the memory.

use std::fmt;

use aws_lc_rs::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// Up to this many members of an object are compared in any order; a client must write those of a larger
/// object in the same order again.
const SORTED: usize = 1_000;

/// The digest of a value.
pub(super) type JsonDigest = [u8; SHA256_OUTPUT_LEN];

/// Returns the digest of a JSON text: the same one for the same value. A text that cannot be read (nested
/// too deeply, or with a string that is not Unicode) has a digest of its own as it stands.
pub(super) fn json_digest(json: &str) -> JsonDigest {
    let mut context = Context::new(&SHA256);
    let mut reader = serde_json::Deserializer::from_str(json);
    if (Hashed { into: &mut context }).deserialize(&mut reader).is_err() {
        context = Context::new(&SHA256);
        context.update(b"!");
        context.update(json.as_bytes());
    }
    finished(context)
}

fn finished(context: Context) -> JsonDigest {
    let mut digest = JsonDigest::default();
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

/// Writes a value into a digest. What is written says where it ends.
struct Hashed<'a> {
    into: &'a mut Context,
}

impl Hashed<'_> {
    fn write<E>(self, kind: u8, bytes: &[u8]) -> Result<(), E> {
        self.into.update(&[kind]);
        self.into.update(bytes);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Hashed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Hashed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.write(b'n', &[])
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.write(b'b', &[value.into()])
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.write(b'u', &value.to_be_bytes())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.write(b'i', &value.to_be_bytes())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.write(b'f', &value.to_be_bytes())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.into.update(b"s");
        self.into.update(&(value.len() as u64).to_be_bytes());
        self.into.update(value.as_bytes());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.into.update(b"[");
        while items.next_element_seed(Hashed { into: self.into })?.is_some() {}
        self.into.update(b"]");
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.into.update(b"{");
        let mut members: Vec<(JsonDigest, JsonDigest)> = Vec::new();
        loop {
            let mut name = Context::new(&SHA256);
            let has_more = map.next_key_seed(Hashed { into: &mut name })?.is_some();
            if !has_more || members.len() == SORTED {
                // Stable: of two members with one name, the last one counts.
                members.sort_by_key(|(name, _)| *name);
                for (name, value) in members.drain(..) {
                    self.into.update(b":");
                    self.into.update(&name);
                    self.into.update(&value);
                }
                self.into.update(b",");
            }
            if !has_more {
                break;
            }
            let mut value = Context::new(&SHA256);
            map.next_value_seed(Hashed { into: &mut value })?;
            members.push((finished(name), finished(value)));
        }
        self.into.update(b"}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_value_has_the_same_digest_and_no_other_value_has_it() {
        for (one, same) in [
            (r#"{"a":1,"b":[{"c":2,"d":1}]}"#, r#"{ "b": [{"d":1, "c":2}], "\u0061": 1 }"#),
            (r#"["é"]"#, r#"[ "\u00e9" ]"#),
        ] {
            assert_eq!(json_digest(one), json_digest(same), "{one}");
        }
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(200), "]".repeat(200));
        let all = [
            "{}",
            "[]",
            "null",
            "0",
            "-1",
            "0.0",
            "false",
            "true",
            "\"0\"",
            "[0]",
            "[[]]",
            "[0,0]",
            "[[0],0]",
            "[[0,0]]",
            "[\"a\",\"b\"]",
            "[\"ab\",\"\"]",
            r#"{"a":0}"#,
            r#"{"a":[0]}"#,
            r#"{"a":0,"b":1}"#,
            r#"{"a":1,"b":0}"#,
            r#"{"a":{"b":0}}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a":2,"a":1}"#,
            r#"["\ud800"]"#,
            r#"["\ud801"]"#,
            &deep("0"),
            &deep("1"),
        ];
        for (at, one) in all.iter().enumerate() {
            for other in &all[at + 1..] {
                assert_ne!(json_digest(one), json_digest(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn members_of_a_very_large_object_are_compared_in_the_order_of_the_text() {
        let object = |names: &mut dyn Iterator<Item = usize>| {
            let members: Vec<_> = names.map(|name| format!("\"{name}\":0")).collect();
            format!("{{{}}}", members.join(","))
        };
        let (up, down) = (&object(&mut (0..SORTED)), &object(&mut (0..SORTED).rev()));
        assert_eq!(json_digest(up), json_digest(down));
        let (up, down) = (&object(&mut (0..=SORTED)), &object(&mut (0..=SORTED).rev()));
        assert_ne!(json_digest(up), json_digest(down));
        assert_eq!(json_digest(up), json_digest(&up.replace(',', " , ")));
    }
}
