//! Where schemas occur inside schemas.

use serde_json::{Map, Value};

/// What a subschema applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AppliesTo {
    /// The same value.
    Same,
    /// A part of the value; of the keywords with this reach, at most one applies to a part.
    PartEither,
    /// A part of the value, in addition to all others.
    PartAlso,
    /// Nothing by itself: a definition.
    Nothing,
}

/// How a keyword contains schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One schema, or a list of them (`items` before 2020-12).
    OneOrList,
    /// A list of schemas.
    List,
    /// Schemas by name; other values (`dependencies`) are not schemas.
    Named,
}

/// The keywords of all drafts that contain schemas.
const KEYWORDS: [(&str, Form, AppliesTo); 22] = [
    ("$defs", Form::Named, AppliesTo::Nothing),
    ("definitions", Form::Named, AppliesTo::Nothing),
    ("properties", Form::Named, AppliesTo::PartEither),
    ("patternProperties", Form::Named, AppliesTo::PartAlso),
    ("additionalProperties", Form::OneOrList, AppliesTo::PartEither),
    ("unevaluatedProperties", Form::OneOrList, AppliesTo::PartAlso),
    ("propertyNames", Form::OneOrList, AppliesTo::PartAlso),
    ("items", Form::OneOrList, AppliesTo::PartEither),
    ("prefixItems", Form::List, AppliesTo::PartEither),
    ("additionalItems", Form::OneOrList, AppliesTo::PartEither),
    ("unevaluatedItems", Form::OneOrList, AppliesTo::PartAlso),
    ("contains", Form::OneOrList, AppliesTo::PartAlso),
    ("contentSchema", Form::OneOrList, AppliesTo::Nothing),
    ("allOf", Form::List, AppliesTo::Same),
    ("anyOf", Form::List, AppliesTo::Same),
    ("oneOf", Form::List, AppliesTo::Same),
    ("not", Form::OneOrList, AppliesTo::Same),
    ("if", Form::OneOrList, AppliesTo::Same),
    ("then", Form::OneOrList, AppliesTo::Same),
    ("else", Form::OneOrList, AppliesTo::Same),
    ("dependentSchemas", Form::Named, AppliesTo::Same),
    ("dependencies", Form::Named, AppliesTo::Same),
];

fn is_schema(value: &Value) -> bool {
    matches!(value, Value::Object(_) | Value::Bool(_))
}

/// Visits each direct subschema, with the path to it.
pub(super) fn for_each_child<'s>(
    schema: &'s Map<String, Value>,
    mut visit: impl FnMut(AppliesTo, &[&str], &'s Value),
) {
    for (keyword, form, reach) in KEYWORDS {
        let Some(value) = schema.get(keyword) else { continue };
        match (form, value) {
            (Form::OneOrList, Value::Object(_) | Value::Bool(_)) => visit(reach, &[keyword], value),
            (Form::OneOrList | Form::List, Value::Array(items)) => {
                for (at, item) in items.iter().enumerate().filter(|(_, item)| is_schema(item)) {
                    visit(reach, &[keyword, &at.to_string()], item);
                }
            }
            (Form::Named, Value::Object(members)) => {
                for (name, member) in members.iter().filter(|(_, member)| is_schema(member)) {
                    visit(reach, &[keyword, name], member);
                }
            }
            _ => {}
        }
    }
}

/// Returns whether a predicate holds for a schema and all its subschemas. The nesting must be
/// bounded.
pub fn holds_for_each_subschema(
    schema: &Map<String, Value>,
    holds: &impl Fn(&Map<String, Value>) -> bool,
) -> bool {
    let holds_for = |value: &Value| match value {
        Value::Object(schema) => holds_for_each_subschema(schema, holds),
        _ => true,
    };
    let holds_inside = |(keyword, value): (&String, &Value)| match (form_of(keyword, value), value)
    {
        (Some(Form::OneOrList), value @ Value::Object(_)) => holds_for(value),
        (Some(Form::OneOrList | Form::List), Value::Array(items)) => items.iter().all(holds_for),
        (Some(Form::Named), Value::Object(members)) => members.values().all(holds_for),
        _ => true,
    };
    holds(schema) && schema.iter().all(holds_inside)
}

/// Returns how a keyword with this value contains schemas, if it does.
fn form_of(keyword: &str, value: &Value) -> Option<Form> {
    // Most values contain no schemas.
    if !matches!(value, Value::Object(_) | Value::Array(_)) {
        return None;
    }
    // A schema has few keywords: looking up every known one would take longer.
    KEYWORDS.iter().find(|(known, ..)| *known == keyword).map(|(_, form, _)| *form)
}

/// Visits a schema and all its subschemas. The nesting must be bounded.
pub fn for_each_subschema_mut(schema: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(schema) = schema else { return };
    visit(schema);
    for (keyword, value) in schema {
        match (form_of(keyword, value), value) {
            (Some(Form::OneOrList), value @ Value::Object(_)) => {
                for_each_subschema_mut(value, visit);
            }
            (Some(Form::OneOrList | Form::List), Value::Array(items)) => {
                items.iter_mut().for_each(|item| for_each_subschema_mut(item, visit));
            }
            (Some(Form::Named), Value::Object(members)) => {
                members.values_mut().for_each(|member| for_each_subschema_mut(member, visit));
            }
            _ => {}
        }
    }
}
