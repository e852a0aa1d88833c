//! The value types of sections: flags, numbers, lists, tables.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{Decode, Decoder, Overlay, Spanned};
use crate::diagnostic::Diagnostic;
use crate::tree::{ConfigMember, ConfigNode, ConfigValue};

impl Decode for bool {
    fn decode(node: &ConfigNode, cx: &mut Decoder<'_>) -> Option<Self> {
        if let ConfigValue::Bool(value) = node.value {
            return Some(value);
        }
        cx.wrong_type(node, "true or false");
        None
    }
}
impl Overlay for bool {}

impl<T: Decode> Decode for Vec<Spanned<T>> {
    fn decode(node: &ConfigNode, cx: &mut Decoder<'_>) -> Option<Self> {
        let ConfigValue::Array(elements) = &node.value else {
            cx.wrong_type(node, "an array");
            return None;
        };
        let read = |(index, element)| cx.element(index, element);
        Some(elements.iter().enumerate().filter_map(read).collect())
    }
}
impl<T> Overlay for Vec<T> {}

impl<T: JsonSchema> JsonSchema for Spanned<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// Values by name, sorted by name: `env`, `headers`, `servers`, …. A later layer overrides single
/// entries.
#[derive(Clone)]
pub(crate) struct Table<T>(pub(crate) BTreeMap<String, Spanned<T>>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Decode> Decode for Table<T> {
    fn decode(node: &ConfigNode, cx: &mut Decoder<'_>) -> Option<Self> {
        let members = cx.object(node, "named entries")?;
        let read = |member: &ConfigMember| Some((member.key.clone(), cx.member(member)?));
        Some(Self(members.iter().filter_map(read).collect()))
    }
}

impl<T: Overlay> Overlay for Table<T> {
    fn overlaid_by(mut self, later: Self) -> Self {
        for (name, value) in later.0 {
            let base = self.0.remove(&name);
            if let Some(value) = base.overlaid_by(Some(value)) {
                self.0.insert(name, value);
            }
        }
        self
    }
}

impl<T: JsonSchema> JsonSchema for Table<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("TableOf{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        json_schema!({ "type": "object", "additionalProperties": value })
    }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy)]
pub(crate) struct Whole<const MIN: u64, const MAX: u64>(pub(crate) u64);

impl<const MIN: u64, const MAX: u64> Decode for Whole<MIN, MAX> {
    fn decode(node: &ConfigNode, cx: &mut Decoder<'_>) -> Option<Self> {
        let expected = format!("a whole number from {MIN} to {MAX}");
        let ConfigValue::Number(written) = &node.value else {
            cx.wrong_type(node, &expected);
            return None;
        };
        match whole(written) {
            Some(number) if (MIN..=MAX).contains(&number) => Some(Self(number)),
            _ => {
                let found = match written.len() {
                    ..24 => format!("this is {written}"),
                    _ => "this number is too long".to_owned(),
                };
                cx.report(Diagnostic::error(format!("expected {expected}")).at(node.at, found));
                None
            }
        }
    }
}
impl<const MIN: u64, const MAX: u64> Overlay for Whole<MIN, MAX> {}

impl<const MIN: u64, const MAX: u64> JsonSchema for Whole<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Whole{MIN}To{MAX}").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

/// Parses a JSON5 number if it is a whole one: `30000`, `3e4`, `0x7530`, `+1`, `5.0`.
fn whole(written: &str) -> Option<u64> {
    let unsigned = written.strip_prefix('+').unwrap_or(written);
    if let Some(hex) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).ok();
    }
    if let Ok(number) = unsigned.parse() {
        return Some(number);
    }
    let number: f64 = unsigned.parse().ok()?;
    let exact = number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    exact.then_some(number as u64)
}
