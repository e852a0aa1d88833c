//! Which tools may be used.

/// Which tools may be used, as glob patterns on their names. Deny takes precedence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolPolicy {
    /// If set, only these tools.
    pub allow: Option<Vec<String>>,
    /// Never these tools.
    pub deny: Vec<String>,
}
