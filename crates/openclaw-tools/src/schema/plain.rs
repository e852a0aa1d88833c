//! A fast path for simple schemas (B4).
//!
//! Most schemas only list properties and their types. For those, arguments are validated while they
//! are parsed, without building a value, and without a compiled validator: compiling the first one
//! takes milliseconds. Everything else, and every failure, is left to the full validator, which
//! also produces the error messages.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::tidy::weigh_all;

/// Required properties are the bits of a `u64`.
const MAX_PROPERTIES: usize = u64::BITS as usize;

/// A valid schema that uses only keywords supported here.
#[derive(Debug)]
pub(super) struct Plain(Kinds);

/// Constraints of a value by type; types that are absent are not allowed.
#[derive(Debug, Default)]
struct Kinds {
    null: bool,
    boolean: bool,
    number: Option<Numbers>,
    string: Option<Strings>,
    array: Option<Arrays>,
    object: Option<Objects>,
}

#[derive(Debug)]
struct Numbers {
    is_whole: bool,
    least: Option<i64>,
    most: Option<i64>,
}

#[derive(Debug)]
struct Strings {
    choices: Option<Vec<String>>,
    length: Between,
}

#[derive(Debug)]
struct Arrays {
    length: Between,
    /// `None`: anything.
    items: Option<Box<Kinds>>,
}

#[derive(Debug)]
struct Objects {
    /// Sorted by name.
    properties: Vec<(String, Option<Kinds>)>,
    /// Bits of the required properties.
    required: u64,
    has_others: bool,
}

#[derive(Debug, Clone, Copy)]
struct Between {
    least: u64,
    most: u64,
}

impl Between {
    const ANY: Self = Self { least: 0, most: u64::MAX };

    fn holds(self, length: usize) -> bool {
        (self.least..=self.most).contains(&(length as u64))
    }
}

impl Plain {
    /// Reads a schema; `None` if it is not simple, or unusual in any way.
    pub(super) fn of(schema: &Map<String, Value>) -> Option<Self> {
        weigh_all(schema).ok()?;
        // The supported keywords mean the same in all drafts from draft 6 on.
        let is_known = |draft: &Value| {
            let known = ["draft-06", "draft-07", "2019-09", "2020-12"];
            draft.as_str().is_some_and(|draft| known.iter().any(|known| draft.contains(known)))
        };
        if !schema.get("$schema").is_none_or(is_known) || schema.get("type")? != "object" {
            return None;
        }
        let members = schema.iter().filter(|(keyword, _)| *keyword != "$schema");
        read(members).map(Self)
    }

    /// Returns whether the arguments are valid. If not, the full validator must decide.
    pub(super) fn fits(&self, arguments: &RawValue) -> bool {
        let mut json = serde_json::Deserializer::from_str(arguments.get());
        Fit(Some(&self.0)).deserialize(&mut json).is_ok()
    }
}

/// The types that a schema allows, before its other keywords are applied.
#[derive(Debug, Clone, Copy, Default)]
struct Named {
    null: bool,
    boolean: bool,
    number: bool,
    whole: bool,
    string: bool,
    array: bool,
    object: bool,
}

impl Named {
    const ALL: Self = Self {
        null: true,
        boolean: true,
        number: true,
        whole: false,
        string: true,
        array: true,
        object: true,
    };

    fn read(kinds: &Value) -> Option<Self> {
        let mut named = Self::default();
        let kinds = match kinds {
            Value::Array(kinds) if !kinds.is_empty() => kinds.as_slice(),
            one => std::slice::from_ref(one),
        };
        for kind in kinds {
            let flag = match kind.as_str()? {
                "null" => &mut named.null,
                "boolean" => &mut named.boolean,
                "number" => &mut named.number,
                "integer" => &mut named.whole,
                "string" => &mut named.string,
                "array" => &mut named.array,
                "object" => &mut named.object,
                _ => return None,
            };
            // Duplicates are not allowed.
            if std::mem::replace(flag, true) {
                return None;
            }
        }
        Some(named)
    }
}

fn schema(schema: &Value) -> Option<Kinds> {
    read(schema.as_object()?.iter())
}

/// Reads the members of a schema. The nesting was bounded by `weigh_all`.
fn read<'s>(members: impl Iterator<Item = (&'s String, &'s Value)>) -> Option<Kinds> {
    let mut named = Named::ALL;
    let (mut least, mut most, mut choices) = (None, None, None);
    let (mut length, mut count) = (Between::ANY, Between::ANY);
    let (mut items, mut properties, mut required) = (None, None, None);
    let (mut has_others, mut alternatives, mut says_more) = (true, None, false);
    for (keyword, value) in members {
        let mut is_rule = true;
        match keyword.as_str() {
            "type" => named = Named::read(value)?,
            "enum" if choices.is_none() => {
                choices = Some(strings(value).filter(|choices| !choices.is_empty())?);
            }
            "const" if choices.is_none() => choices = Some(vec![value.as_str()?.to_owned()]),
            "minimum" => least = Some(value.as_i64()?),
            "maximum" => most = Some(value.as_i64()?),
            "minLength" => length.least = value.as_u64()?,
            "maxLength" => length.most = value.as_u64()?,
            "minItems" => count.least = value.as_u64()?,
            "maxItems" => count.most = value.as_u64()?,
            "items" => items = Some(Box::new(schema(value)?)),
            "properties" => properties = Some(value.as_object()?),
            "required" => required = Some(strings(value)?),
            "additionalProperties" => has_others = value.as_bool()?,
            "anyOf" if alternatives.is_none() => alternatives = Some(value.as_array()?),
            _ => {
                says_nothing(keyword, value)?;
                is_rule = false;
            }
        }
        says_more |= is_rule && keyword != "anyOf";
    }
    if let Some(alternatives) = alternatives {
        return if says_more { None } else { either(alternatives) };
    }
    if choices.is_some() {
        named = Named { string: named.string, ..Named::default() };
    }
    let number = Numbers { is_whole: named.whole && !named.number, least, most };
    let object = match named.object {
        true => Some(objects(properties, &required.unwrap_or_default(), has_others)?),
        // There are constraints on objects that were not read.
        false if properties.is_some() => return None,
        false => None,
    };
    Some(Kinds {
        null: named.null,
        boolean: named.boolean,
        number: (named.number || named.whole).then_some(number),
        string: named.string.then_some(Strings { choices, length }),
        array: named.array.then_some(Arrays { length: count, items }),
        object,
    })
}

/// Accepts annotations and keywords without effect, if they are well-formed.
fn says_nothing(keyword: &str, value: &Value) -> Option<()> {
    let is_fine = match keyword {
        "title" | "description" | "$comment" | "format" => value.is_string(),
        "default" => true,
        "examples" => value.is_array(),
        "deprecated" | "readOnly" | "writeOnly" => value.is_boolean(),
        _ => keyword.starts_with("x-"),
    };
    is_fine.then_some(())
}

/// Alternatives with disjoint types: each value matches one of them only.
fn either(alternatives: &[Value]) -> Option<Kinds> {
    fn join<T>(all: &mut Option<T>, one: Option<T>) -> Option<()> {
        match (&all, one) {
            (Some(_), Some(_)) => None,
            (None, one) => {
                *all = one;
                Some(())
            }
            (Some(_), None) => Some(()),
        }
    }
    let mut all = Kinds::default();
    for alternative in alternatives {
        if alternative.get("anyOf").is_some() {
            return None;
        }
        let one = schema(alternative)?;
        if all.null && one.null || all.boolean && one.boolean {
            return None;
        }
        (all.null, all.boolean) = (all.null || one.null, all.boolean || one.boolean);
        join(&mut all.number, one.number)?;
        join(&mut all.string, one.string)?;
        join(&mut all.array, one.array)?;
        join(&mut all.object, one.object)?;
    }
    (!alternatives.is_empty()).then_some(all)
}

fn objects(
    properties: Option<&Map<String, Value>>,
    required: &[String],
    has_others: bool,
) -> Option<Objects> {
    let mut all = Vec::new();
    for (name, property) in properties.into_iter().flatten() {
        all.push((name.clone(), Some(schema(property)?)));
    }
    for name in required {
        if !properties.is_some_and(|properties| properties.contains_key(name)) {
            // Any value, if additional properties are allowed at all.
            all.push((name.clone(), has_others.then_some(None)?));
        }
    }
    if all.len() > MAX_PROPERTIES {
        return None;
    }
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    let bit = |at: usize, name: &String| u64::from(required.contains(name)) << at;
    let required = all.iter().enumerate().map(|(at, (name, _))| bit(at, name)).sum();
    Some(Objects { properties: all, required, has_others })
}

/// Returns a list of strings without duplicates.
fn strings(value: &Value) -> Option<Vec<String>> {
    let strings = value.as_array()?.iter().map(|one| one.as_str().map(str::to_owned));
    let strings: Vec<String> = strings.collect::<Option<_>>()?;
    let is_new = |(at, one): (usize, &String)| !strings[..at].contains(one);
    strings.iter().enumerate().all(is_new).then_some(strings)
}

/// Validates a value while parsing it; fails if it is invalid, or if the full validator must
/// decide. Without constraints any value is valid, but it is parsed nevertheless: nesting and
/// numbers are limited.
#[derive(Clone, Copy)]
struct Fit<'s>(Option<&'s Kinds>);

impl Fit<'_> {
    fn all<E: serde::de::Error>(self, fits: impl FnOnce(&Kinds) -> bool) -> Result<(), E> {
        if self.0.is_none_or(fits) { Ok(()) } else { Err(E::custom("")) }
    }

    fn whole<E: serde::de::Error>(self, value: i128) -> Result<(), E> {
        let is_within = |bounds: &Numbers| {
            bounds.least.is_none_or(|least| i128::from(least) <= value)
                && bounds.most.is_none_or(|most| value <= i128::from(most))
        };
        self.all(|kinds| kinds.number.as_ref().is_some_and(is_within))
    }
}

impl<'de> DeserializeSeed<'de> for Fit<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Fit<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that fits")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.all(|kinds| kinds.null)
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        self.all(|kinds| kinds.boolean)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.whole(value.into())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.whole(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        // Bounds and integers in floating-point notation are left to the full validator.
        let is_any =
            |number: &Numbers| !number.is_whole && number.least.is_none() && number.most.is_none();
        self.all(|kinds| kinds.number.as_ref().is_some_and(is_any))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.all(|kinds| kinds.string.as_ref().is_some_and(|string| string.fits(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let rules = match self.0.map(|kinds| &kinds.array) {
            None => None,
            Some(Some(rules)) => Some(rules),
            Some(None) => return Err(A::Error::custom("")),
        };
        let item = Fit(rules.and_then(|rules| rules.items.as_deref()));
        let mut length = 0;
        while items.next_element_seed(item)?.is_some() {
            length += 1;
        }
        let is_within = rules.is_none_or(|rules| rules.length.holds(length));
        if is_within { Ok(()) } else { Err(A::Error::custom("")) }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let rules = match self.0.map(|kinds| &kinds.object) {
            None => None,
            Some(Some(rules)) => Some(rules),
            Some(None) => return Err(A::Error::custom("")),
        };
        let mut seen = 0_u64;
        while let Some(at) = members.next_key_seed(Key(rules))? {
            let known = rules.zip(at).and_then(|(rules, at)| rules.properties.get(at));
            if let Some(at) = at {
                seen |= 1 << at;
            }
            // Of duplicate names the last one counts, but here both must be valid.
            members.next_value_seed(Fit(known.and_then(|(_, kinds)| kinds.as_ref())))?;
        }
        let is_complete = rules.is_none_or(|rules| rules.required & !seen == 0);
        if is_complete { Ok(()) } else { Err(A::Error::custom("")) }
    }
}

impl Strings {
    fn fits(&self, text: &str) -> bool {
        let is_choice = self.choices.as_ref().is_none_or(|all| all.iter().any(|one| one == text));
        let Between { least, most } = self.length;
        let bytes = text.len() as u64;
        // A character has one to four bytes: mostly they need not be counted.
        let is_long_enough =
            least == 0 || least.saturating_mul(4) <= bytes || least == 1 && bytes > 0;
        let has_length = is_long_enough && bytes <= most;
        is_choice && (has_length || self.length.holds(text.chars().count()))
    }
}

/// Finds the index of a property; `None` for an additional one, if allowed.
struct Key<'s>(Option<&'s Objects>);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Option<usize>, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a property")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Option<usize>, E> {
        let Some(rules) = self.0 else { return Ok(None) };
        match rules.properties.binary_search_by(|(known, _)| known.as_str().cmp(name)) {
            Ok(at) => Ok(Some(at)),
            Err(_) if rules.has_others => Ok(None),
            Err(_) => Err(E::custom("")),
        }
    }
}

#[cfg(test)]
#[path = "plain_tests.rs"]
mod tests;
