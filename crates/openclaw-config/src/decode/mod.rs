//! Decodes the tree of a file into typed raw sections. Problems are reported and decoding continues.
//!
//! A section is declared once with [`section!`]: its keys, their synonyms, types and documentation.
//! Decoding, merging and the JSON Schema all come from that declaration.

mod macros;
mod values;

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;

use crate::diagnostic::Diagnostic;
use crate::source::SourceSpan;
use crate::suggest::nearest;
use crate::tree::{ConfigMember, ConfigNode, ConfigValue};

pub(crate) use macros::{choice, section};
pub(crate) use values::{Table, Whole};

/// A value with its position and the path of its key.
#[derive(Clone)]
pub(crate) struct Spanned<T> {
    pub(crate) value: T,
    pub(crate) at: SourceSpan,
    pub(crate) path: String,
}

impl<T> Spanned<T> {
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned { value: change(self.value), at: self.at, path: self.path }
    }

    /// Creates an error about this value.
    pub(crate) fn error(&self, message: impl Into<String>, label: impl Into<String>) -> Diagnostic {
        Diagnostic::error(message).at(self.at, label).path(self.path.as_str())
    }

    /// Creates a warning about this value.
    pub(crate) fn warning(
        &self,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic::warning(message).at(self.at, label).path(self.path.as_str())
    }
}

/// A field that may be absent.
pub(crate) type Field<T> = Option<Spanned<T>>;

/// A type that can be decoded from a [`ConfigNode`].
pub(crate) trait Decode: Sized + JsonSchema {
    /// Decodes the node; reports a problem and returns `None` if that fails.
    fn decode(node: &ConfigNode, cx: &mut Decoder<'_>) -> Option<Self>;
}

/// A type that a later layer of the configuration can override in part.
pub(crate) trait Overlay: Sized {
    /// Overrides `self` with `later`. By default, `later` replaces it.
    #[must_use]
    fn overlaid_by(self, later: Self) -> Self {
        let _ = self;
        later
    }
}

impl<T: Overlay> Overlay for Field<T> {
    fn overlaid_by(self, later: Self) -> Self {
        match (self, later) {
            (Some(base), Some(later)) => Some(Spanned {
                value: base.value.overlaid_by(later.value),
                at: later.at,
                path: later.path,
            }),
            (base, later) => later.or(base),
        }
    }
}

/// Decodes sections, tracks the current path and collects problems.
pub(crate) struct Decoder<'a> {
    path: Vec<Segment>,
    pub(crate) found: &'a mut Vec<Diagnostic>,
}

/// A segment of a path. Its text begins with the separator.
pub(crate) enum Segment {
    Key(String),
    Index(usize),
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |key: &str| {
            !key.is_empty()
                && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'))
        };
        match self {
            Self::Key(key) if is_plain(key) => write!(f, ".{key}"),
            Self::Key(key) => write!(f, "[{}]", serde_json::Value::from(key.as_str())),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// How to handle unknown keys of a section.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// This program owns the section: an unknown key is an error.
    Refuse,
    /// The section is shared with other programs: unknown keys belong to them.
    Leave,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(found: &'a mut Vec<Diagnostic>) -> Self {
        Self { path: Vec::new(), found }
    }

    /// Returns the path of the current key: `mcp.servers.x.url`.
    pub(crate) fn path(&self) -> String {
        let path: String = self.path.iter().map(Segment::to_string).collect();
        path.strip_prefix('.').unwrap_or(&path).to_owned()
    }

    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        let path = self.path();
        let is_root = path.is_empty();
        let diagnostic =
            if diagnostic.path.is_some() || is_root { diagnostic } else { diagnostic.path(path) };
        self.found.push(diagnostic);
    }

    /// Decodes the value of a member, with its key appended to the path.
    pub(crate) fn member<T: Decode>(&mut self, member: &ConfigMember) -> Field<T> {
        self.path.push(Segment::Key(member.key.clone()));
        let value = T::decode(&member.node, self);
        let spanned = value.map(|value| Spanned { value, at: member.mark(), path: self.path() });
        self.path.pop();
        spanned
    }

    fn element<T: Decode>(&mut self, index: usize, node: &ConfigNode) -> Field<T> {
        self.path.push(Segment::Index(index));
        let value = T::decode(node, self);
        let spanned = value.map(|value| Spanned { value, at: node.mark(), path: self.path() });
        self.path.pop();
        spanned
    }

    pub(crate) fn wrong_type(&mut self, node: &ConfigNode, expected: &str) {
        let kind = node.value.kind();
        let mut diagnostic = Diagnostic::error(format!("expected {expected}, found {kind}"))
            .at(node.mark(), format!("this is {kind}"));
        let is_text = matches!(node.value, ConfigValue::String(_));
        let help = match (&node.value, expected) {
            (ConfigValue::Number(_) | ConfigValue::Bool(_), _) if expected.contains("string") => {
                Some("put it in quotes")
            }
            (_, "an array") if is_text => Some("put it in brackets: `[\"…\"]`"),
            (_, "true or false") if is_text => Some("write `true` or `false`, without quotes"),
            _ if is_text && expected.starts_with("a whole number") => {
                Some("write a number, without quotes")
            }
            _ => None,
        };
        if let Some(help) = help {
            diagnostic = diagnostic.help(help);
        }
        self.report(diagnostic);
    }

    /// Returns the members of an object. Reports duplicate keys.
    pub(crate) fn object<'n>(
        &mut self,
        node: &'n ConfigNode,
        what: &str,
    ) -> Option<&'n [ConfigMember]> {
        let ConfigValue::Object(members) = &node.value else {
            self.wrong_type(node, &format!("{what} (an object)"));
            return None;
        };
        let mut seen: BTreeMap<&str, SourceSpan> = BTreeMap::new();
        for member in members {
            if let Some(first) = seen.insert(&member.key, member.key_at) {
                let message = format!("duplicate key `{}`", member.key);
                let twice = Diagnostic::error(message).at(member.key_at, "again here");
                self.report_key(member, twice.also(first, "first here").help("keep one of them"));
            }
        }
        Some(members)
    }

    /// Decodes a member into its field. Reports an error if a synonym has already filled it.
    pub(crate) fn field<T: Decode>(
        &mut self,
        slot: &mut Field<T>,
        key: &str,
        member: &ConfigMember,
    ) {
        if let Some(earlier) = slot {
            let other = earlier.path.rsplit('.').next().unwrap_or_default();
            // `object` has already reported duplicate keys.
            if other != member.key {
                self.report(
                    Diagnostic::error(format!("`{}` and `{other}` mean the same", member.key))
                        .at(member.key_at, "given again here")
                        .also(earlier.at, "given first here")
                        .help(format!("keep `{key}`")),
                );
            }
            return;
        }
        if let Some(value) = self.member(member) {
            *slot = Some(value);
        }
    }

    /// Reports a problem with a key.
    pub(crate) fn report_key(&mut self, member: &ConfigMember, diagnostic: Diagnostic) {
        self.path.push(Segment::Key(member.key.clone()));
        self.report(diagnostic);
        self.path.pop();
    }

    /// Reports an unknown key.
    pub(crate) fn unknown(
        &mut self,
        member: &ConfigMember,
        known: &[&'static str],
        policy: Unknown,
    ) {
        let key = &member.key;
        let similar = nearest(key, known);
        let diagnostic = match (policy, similar) {
            (Unknown::Refuse, _) => Diagnostic::error(format!("unknown setting `{key}`")),
            // In a shared section, only likely typos are reported.
            (Unknown::Leave, similar) if similar.is_some() || key == "mcpServers" => {
                Diagnostic::warning(format!("unknown setting `{key}`, ignored"))
            }
            (Unknown::Leave, _) => return,
        };
        let mut diagnostic = diagnostic.at(member.key_at, "unknown key");
        if let Some(hint) = foreign_key_hint(key).map(str::to_owned) {
            diagnostic = diagnostic.help(hint);
        } else if let Some(similar) = similar {
            diagnostic = diagnostic.help(format!("did you mean `{similar}`?"));
        } else if known.len() <= 12 {
            diagnostic = diagnostic.help(format!("known settings: {}", known.join(", ")));
        } else {
            diagnostic = diagnostic.help("run `openclaw config schema` to list all settings");
        }
        self.report_key(member, diagnostic);
    }
}

/// Returns what to use instead of another program's setting.
fn foreign_key_hint(key: &str) -> Option<&'static str> {
    Some(match key {
        "endpoint" => "use `url`",
        "trust" => "use `approval: \"never\"` to call its tools without approval",
        "envFile" => "set the variables in `env`, or pass them on with `inheritEnv`",
        "mcpServers" => "use `mcp.servers`",
        _ => return None,
    })
}
