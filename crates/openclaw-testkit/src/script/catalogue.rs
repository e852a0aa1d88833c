//! Tools, resources and prompts, and how they are listed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Script, Skill};

/// A custom tool, listed as written.
///
/// A tool with the name of a default tool keeps that tool's behaviour; any other returns its
/// `result`, or its arguments as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// The entry in `tools/list`.
    pub definition: Value,
    /// The raw text of the JSON `result` of a call (it need not be valid).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

impl Tool {
    /// A tool that accepts any object.
    pub fn new(name: impl Into<String>) -> Self {
        Self::listed_as(json!({"name": name.into(), "inputSchema": {"type": "object"}}))
    }

    /// A tool with this entry in `tools/list`.
    pub fn listed_as(definition: Value) -> Self {
        Self { definition, result: None }
    }

    /// Sets a member of the entry, such as `description`, `inputSchema` or `annotations`.
    pub fn with(mut self, member: &str, value: Value) -> Self {
        if let Some(object) = self.definition.as_object_mut() {
            object.insert(member.to_owned(), value);
        }
        self
    }

    /// Sets the description.
    pub fn description(self, text: impl Into<String>) -> Self {
        self.with("description", Value::String(text.into()))
    }

    /// Sets the input schema.
    pub fn schema(self, schema: Value) -> Self {
        self.with("inputSchema", schema)
    }

    /// Answers calls with this result.
    pub fn result(self, result: &Value) -> Self {
        self.raw_result(result.to_string())
    }

    /// Answers calls with this raw text as the result, valid JSON or not.
    pub fn raw_result(mut self, text: impl Into<String>) -> Self {
        self.result = Some(text.into());
        self
    }
}

/// A tool entry with one oddity; its name is `odd_` and the oddity, unless the name itself is the
/// oddity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Odd {
    /// `inputSchema: true`
    SchemaTrue,
    /// `inputSchema: null`
    SchemaNull,
    /// `inputSchema: []`
    SchemaArray,
    /// No `inputSchema`.
    SchemaMissing,
    /// A schema that contains itself by `$ref`.
    SelfReference,
    /// A `$ref` to a web address.
    RemoteReference,
    /// A schema nested 50 levels deep, which is just within serde_json's limit.
    DeepSchema,
    /// A schema so deep that serde_json rejects the whole list; not in [`Odd::ALL`].
    BottomlessSchema,
    /// A schema that is not valid JSON Schema (`type: 17`).
    InvalidSchema,
    /// A description of 1 MB.
    HugeDescription,
    /// A name of 300 characters.
    LongName,
    /// A name of emoji.
    EmojiName,
    /// A name with control characters.
    ControlName,
    /// A name with `__` in it.
    DoubleUnderscore,
    /// An empty name.
    EmptyName,
    /// The same name twice.
    Duplicate,
    /// An entry that is a string.
    NotAnObject,
    /// An `x-mcp-header` annotation that is not a header name.
    InvalidHeader,
}

impl Odd {
    /// Every oddity with which the list as a whole can be parsed.
    pub const ALL: [Self; 17] = [
        Self::SchemaTrue,
        Self::SchemaNull,
        Self::SchemaArray,
        Self::SchemaMissing,
        Self::SelfReference,
        Self::RemoteReference,
        Self::DeepSchema,
        Self::InvalidSchema,
        Self::HugeDescription,
        Self::LongName,
        Self::EmojiName,
        Self::ControlName,
        Self::DoubleUnderscore,
        Self::EmptyName,
        Self::Duplicate,
        Self::NotAnObject,
        Self::InvalidHeader,
    ];
}

/// The behaviour of `nextCursor` in `tools/list`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cursor {
    /// Pages end where the tools end.
    #[default]
    Normal,
    /// Every page has a new cursor, and more tools under new names.
    Endless,
    /// Every page has the same cursor.
    Repeating,
}

/// Tools, resources and prompts, and how they are listed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CatalogueScript {
    /// Replaces the default tools.
    pub tools: Option<Vec<Tool>>,
    /// The number of additional tools, `tool_0` and on, each with a small schema.
    pub extra_tools: usize,
    /// Odd tools.
    pub odd_tools: Vec<Odd>,
    /// The tools after `list_changed_after`; by default one more, `added`.
    pub changed_tools: Option<Vec<Tool>>,
    /// The number of tools per page; 0 is all of them.
    pub page_size: usize,
    /// The behaviour of `nextCursor`.
    pub cursor: Cursor,
    /// The delay of `tools/list` in milliseconds.
    pub list_delay_ms: u64,
    /// There are no resources and no prompts.
    pub tools_only: bool,
    /// Resources can be subscribed to; every call changes all of them.
    pub subscriptions: bool,
    /// The skills.
    pub skills: Vec<Skill>,
    /// Entries in addition to the usual ones, by the name of the list: `resources`,
    /// `resourceTemplates` or `prompts`.
    pub entries: BTreeMap<String, Vec<Value>>,
    /// The texts of resources in addition to the usual ones, by URI: media type and text.
    pub contents: BTreeMap<String, (String, String)>,
    /// Values of completions in addition to the usual ones.
    pub completions: Vec<String>,
}

setters! { catalogue:
    /// Lists these tools instead of the default ones.
    tools(tools: impl IntoIterator<Item = Tool>) => tools = Some(tools.into_iter().collect());
    /// Lists this many additional tools.
    extra_tools(count: usize) => extra_tools = count;
    /// Lists all odd tools.
    odd_tools() => odd_tools = Odd::ALL.to_vec();
    /// Sets the tools after the change of `list_changed_after_calls`.
    changed_tools(tools: impl IntoIterator<Item = Tool>) => changed_tools = Some(tools.into_iter().collect());
    /// Lists this many tools per page.
    page_size(tools: usize) => page_size = tools;
    /// Sets the behaviour of `nextCursor`.
    cursor(cursor: Cursor) => cursor = cursor;
    /// Delays the response to `tools/list`.
    list_delay_ms(ms: u64) => list_delay_ms = ms;
    /// Has tools only: no resources, no prompts.
    tools_only() => tools_only = true;
    /// Lets resources be subscribed to; every call changes all of them.
    subscriptions() => subscriptions = true;
    /// Completes arguments with these values, too.
    completions(values: impl IntoIterator<Item = String>) => completions = values.into_iter().collect();
}

impl Script {
    /// Lists another entry under `resources`, `resourceTemplates` or `prompts`.
    pub fn entry(mut self, list: &str, entry: Value) -> Self {
        self.catalogue.entries.entry(list.to_owned()).or_default().push(entry);
        self
    }

    /// Serves a text at this URI, which is not listed.
    pub fn content(mut self, uri: &str, kind: &str, text: &str) -> Self {
        self.catalogue.contents.insert(uri.to_owned(), (kind.to_owned(), text.to_owned()));
        self
    }

    /// Lists an odd tool.
    pub fn odd_tool(mut self, odd: Odd) -> Self {
        self.catalogue.odd_tools.push(odd);
        self
    }
}
