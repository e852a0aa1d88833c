//! Values that are shown with where they come from.

use crate::source::Location;

/// A value that is safe to display, and where it comes from.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Setting {
    /// The key within its section: `timeout`, `env.TOKEN`.
    pub key: String,
    /// The value, with credentials redacted.
    pub value: serde_json::Value,
    /// Where it comes from.
    pub origin: SettingOrigin,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum SettingOrigin {
    /// The default value.
    Default,
    /// Inferred from another key.
    Inferred {
        /// The other key.
        from: &'static str,
    },
    /// Set in a file.
    File {
        /// The position in the file.
        location: Location,
        /// The path of the key.
        path: String,
    },
}
