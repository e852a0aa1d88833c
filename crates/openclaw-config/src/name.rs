//! User-defined names: of servers, agents and model providers.

use std::fmt;

/// Why a name is invalid, with a valid one if possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct NameError {
    problem: &'static str,
    suggestion: Option<String>,
}

impl NameError {
    /// A similar name that is valid.
    pub fn suggestion(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }
}

const MAX_LENGTH: usize = 64;

/// The form of a name as a regular expression, for the JSON Schema.
pub(crate) const NAME_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";

/// Second-level labels of country domains: `example.co.uk`.
const PUBLIC_LABELS: &[&str] = &["ac", "co", "com", "edu", "gov", "net", "org"];

fn check(name: &str) -> Result<(), NameError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let problem = if name.is_empty() {
        "a name must not be empty"
    } else if name.len() > MAX_LENGTH {
        "a name must have at most 64 characters"
    } else if !name.chars().all(allowed) {
        "a name may only contain letters, digits, `.`, `_` and `-`"
    } else if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        "a name must begin with a letter or a digit"
    } else {
        return Ok(());
    };
    let cleaned: String = name.chars().map(|c| if allowed(c) { c } else { '-' }).collect();
    let mut cleaned = cleaned.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned();
    cleaned.truncate(MAX_LENGTH);
    Err(NameError { problem, suggestion: (!cleaned.is_empty()).then_some(cleaned) })
}

macro_rules! name {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Validates a name: letters, digits, `.`, `_` and `-`, at most 64 characters.
            ///
            /// # Errors
            /// If it is invalid; the error may suggest a valid name.
            pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
                let name = name.into();
                check(&name).map(|()| Self(name))
            }

            /// The name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

name! {
    /// The name of an MCP server: safe in file names, tool names and log lines.
    ServerName
}

impl ServerName {
    /// Derives a name from a URL: `https://mcp.example.com/mcp` becomes `example`.
    pub fn from_address(url: &str) -> Option<Self> {
        let url = url::Url::parse(url.trim()).ok()?;
        let host = match url.host()? {
            url::Host::Domain(host) => {
                // Drop the top-level domain, and a label such as `co` before it.
                let mut labels: Vec<&str> = host.trim_end_matches('.').split('.').collect();
                if labels.len() > 1 {
                    labels.pop();
                }
                if labels.len() > 1 && labels.last().is_some_and(|it| PUBLIC_LABELS.contains(it)) {
                    labels.pop();
                }
                labels.pop()?.to_owned()
            }
            address => address.to_string(),
        };
        let named = Self::new(host);
        named.or_else(|error| Self::new(error.suggestion.unwrap_or_default())).ok()
    }
}

name! {
    /// The id of an agent.
    AgentId
}

name! {
    /// The id of a model provider: the first part of a model's name.
    ProviderId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_are_accepted() {
        for name in ["github", "github-mcp", "a.b_c-9", "9lives"] {
            assert_eq!(ServerName::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn bad_names_are_refused_and_a_better_one_is_proposed() {
        let refused =
            |name: &str| ServerName::new(name).unwrap_err().suggestion().map(str::to_owned);
        assert_eq!(refused(""), None);
        assert_eq!(refused("🦀"), None);
        assert_eq!(refused("../../x").as_deref(), Some("x"));
        assert_eq!(refused("my server").as_deref(), Some("my-server"));
        assert_eq!(refused("-x").as_deref(), Some("x"));
        assert_eq!(refused(&"a".repeat(65)).map(|name| name.len()), Some(64));
    }

    #[test]
    fn an_address_suggests_a_name() {
        let name = |url| ServerName::from_address(url).map(|name| name.to_string());
        for (url, expected) in [
            ("https://mcp.linear.app/sse", "linear"),
            ("https://api.ibm.com", "ibm"),
            ("https://mcp.example.co.uk/x", "example"),
            ("https://example.org", "example"),
            ("http://localhost:3000/mcp", "localhost"),
            ("http://127.0.0.1:3000/mcp", "127.0.0.1"),
            ("http://[::1]/mcp", "1"),
        ] {
            assert_eq!(name(url).as_deref(), Some(expected), "{url}");
        }
        assert_eq!(name("example.com"), None);
    }
}
