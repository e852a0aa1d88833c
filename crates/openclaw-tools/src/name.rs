//! The name of a tool as models take it.

use std::fmt;
use std::sync::Arc;

/// The longest name that every model provider accepts.
const MAX_LENGTH: usize = 64;

/// A name that every model provider accepts: 1 to 64 letters, digits, `_` and `-`.
///
/// It is an identity, not a message: nothing takes it apart to find out where the tool comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(Arc<str>);

/// A text that is no name for a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a tool's name is made of 1 to 64 letters, digits, `_` and `-`")]
pub struct BadToolName;

impl ToolName {
    /// Whether a character may stand in a name.
    pub fn allows(character: char) -> bool {
        character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
    }

    /// Checks a name.
    ///
    /// # Errors
    /// If a model provider might refuse it.
    pub fn new(name: &str) -> Result<Self, BadToolName> {
        let fits = (1..=MAX_LENGTH).contains(&name.len()) && name.chars().all(Self::allows);
        if fits { Ok(Self(name.into())) } else { Err(BadToolName) }
    }

    /// The name.
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
