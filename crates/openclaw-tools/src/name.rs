//! Names of tools, as models accept them.

use std::fmt;
use std::sync::Arc;

/// Maximum length that every model provider accepts.
const MAX_LENGTH: usize = 64;

/// A tool name that every model provider accepts: 1 to 64 letters, digits, `_` and `-`.
///
/// It is opaque: nothing parses it to find out where the tool comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(Arc<str>);

/// A text that is not a valid tool name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a tool name must consist of 1 to 64 letters, digits, `_` and `-`")]
pub struct BadToolName;

impl ToolName {
    /// Returns whether a character is allowed in a name.
    pub fn allows(character: char) -> bool {
        character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
    }

    /// Validates a name.
    ///
    /// # Errors
    /// If a model provider might reject it.
    pub fn new(name: &str) -> Result<Self, BadToolName> {
        let fits = (1..=MAX_LENGTH).contains(&name.len()) && name.chars().all(Self::allows);
        if fits { Ok(Self(name.into())) } else { Err(BadToolName) }
    }

    /// Returns the name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_every_provider_takes_are_accepted() {
        for good in ["a", "mcp_fs_read-file", &"x".repeat(64)] {
            assert_eq!(ToolName::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "a b", "é", "a.b", &"x".repeat(65)] {
            assert_eq!(ToolName::new(bad), Err(BadToolName), "{bad}");
        }
    }
}
