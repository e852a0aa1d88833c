//! The parts of a response, borrowed from its raw JSON.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::text::RawString;

/// The maximum number of parts; further ones are only counted.
pub(super) const MAX_PARTS: usize = 1_000;

/// A list with a limited number of items; further ones are only counted.
#[derive(Debug)]
pub(super) struct Bounded<T> {
    pub(super) items: Vec<T>,
    pub(super) more: usize,
}

impl<T> Default for Bounded<T> {
    fn default() -> Self {
        Self { items: Vec::new(), more: 0 }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Bounded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
            type Value = Bounded<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut bounded = Bounded::default();
                while bounded.items.len() < MAX_PARTS {
                    match list.next_element()? {
                        Some(item) => bounded.items.push(item),
                        None => return Ok(bounded),
                    }
                }
                while list.next_element::<IgnoredAny>()?.is_some() {
                    bounded.more += 1;
                }
                Ok(bounded)
            }
        }

        deserializer.deserialize_seq(Items(PhantomData))
    }
}

/// The result of a `tools/call`.
#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub(super) struct RawToolResult<'a, T> {
    #[serde(default = "Option::default")]
    pub(super) content: Option<Bounded<T>>,
    #[serde(borrow, default, rename = "structuredContent")]
    pub(super) structured: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "isError")]
    pub(super) is_error: Option<&'a RawValue>,
}

/// The result of a `resources/read`.
#[derive(Deserialize)]
pub(super) struct ReadResult<'a> {
    #[serde(borrow)]
    pub(super) contents: Bounded<&'a RawValue>,
}

/// The result of a `prompts/get`.
#[derive(Deserialize)]
pub(super) struct PromptResult<'a> {
    #[serde(borrow, default)]
    pub(super) description: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) messages: Bounded<&'a RawValue>,
}

/// A message of a prompt.
#[derive(Deserialize)]
pub(super) struct PromptMessage<'a> {
    #[serde(borrow, default)]
    pub(super) role: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
}

/// A part of any kind. Its members are interpreted when they are needed, so that one of the wrong
/// type does not invalidate the whole response.
#[derive(Deserialize, Default)]
pub(super) struct ContentPart<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    blob: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "mimeType")]
    mime_type: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    title: Option<&'a RawValue>,
    #[serde(borrow, default)]
    description: Option<&'a RawValue>,
    #[serde(borrow, default)]
    resource: Option<&'a RawValue>,
    #[serde(borrow, default)]
    annotations: Option<&'a RawValue>,
}

/// Whom a part is for (`annotations.audience`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    /// The user and the model.
    Everyone,
    /// The user only.
    User,
    /// The model only.
    Model,
}

macro_rules! texts {
    ($($name:ident)*) => {
        impl<'a> ContentPart<'a> {
            $(pub(super) fn $name(&self) -> Option<RawString<'a>> {
                self.$name.and_then(RawString::parse)
            })*
        }
    };
}

texts!(kind text data blob mime_type uri name title description);

impl<'a> ContentPart<'a> {
    /// Parses a part; `None` if it is invalid.
    pub(super) fn read(raw: &'a RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }

    /// Returns a text member by its JSON name.
    pub(super) fn member(&self, name: &str) -> Option<RawString<'a>> {
        match name {
            "type" => self.kind(),
            "text" => self.text(),
            "data" => self.data(),
            "blob" => self.blob(),
            "mimeType" => self.mime_type(),
            "uri" => self.uri(),
            "name" => self.name(),
            "title" => self.title(),
            "description" => self.description(),
            _ => None,
        }
    }

    /// Whom it is for. Other values than `user` and `assistant` are ignored, and so is a list with
    /// neither.
    pub(super) fn audience(&self) -> Audience {
        #[derive(Deserialize)]
        struct Annotations<'a> {
            #[serde(borrow)]
            audience: Bounded<&'a RawValue>,
        }
        let annotations = self.annotations.map(|raw| serde_json::from_str(raw.get()));
        let Some(Ok(Annotations { audience })) = annotations else { return Audience::Everyone };
        let names = |role: &str| {
            let mut listed = audience.items.iter().filter_map(|raw| RawString::parse(raw));
            listed.any(|listed| listed.decode() == role)
        };
        match (names("user"), names("assistant")) {
            (true, false) => Audience::User,
            (false, true) => Audience::Model,
            _ => Audience::Everyone,
        }
    }

    /// The embedded resource.
    pub(super) fn resource(&self) -> Option<Self> {
        Self::read(self.resource?)
    }
}
