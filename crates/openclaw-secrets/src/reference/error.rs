//! Errors in references, with messages for the user who wrote them.

use std::{fmt, ops::Range};

use super::{SCHEME, SecretProvider};

/// An invalid reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRefError {
    reference: String,
    range: Range<usize>,
    problem: SecretRefProblem,
}

/// What is wrong with a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretRefProblem {
    /// The text does not begin with `secret://`.
    NotAReference,
    /// `secret://` inside a word, where it would not be replaced.
    InsideAWord,
    /// The reference contains white space.
    WhiteSpace,
    /// The reference contains a control character.
    ControlCharacter,
    /// The provider does not exist.
    UnknownProvider {
        /// The provider as written.
        provider: String,
        /// The most similar provider, if any.
        nearest: Option<SecretProvider>,
    },
    /// The name after the provider is missing.
    EmptyName {
        /// The provider.
        provider: SecretProvider,
    },
    /// The name is not valid for this provider.
    BadName {
        /// The provider.
        provider: SecretProvider,
    },
    /// The part after `#` is missing.
    EmptySelector {
        /// The provider.
        provider: SecretProvider,
    },
    /// The version is not valid for this provider.
    BadVersion {
        /// The provider.
        provider: SecretProvider,
    },
}

impl SecretRefError {
    pub(crate) fn new(reference: &str, range: Range<usize>, problem: SecretRefProblem) -> Self {
        Self { reference: reference.to_owned(), range, problem }
    }

    /// Shifts the range, for a reference that begins at `offset` of a longer text.
    pub(crate) fn at(mut self, offset: usize) -> Self {
        self.range = self.range.start + offset..self.range.end + offset;
        self
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> &SecretRefProblem {
        &self.problem
    }

    /// The byte range of the reference in the parsed text.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }
}

impl std::error::Error for SecretRefError {}

impl fmt::Display for SecretRefError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.reference.is_empty() {
            write!(f, "`{}`: ", Visible(&self.reference))?;
        }
        self.problem.fmt(f)
    }
}

impl SecretRefProblem {
    pub(crate) fn unknown_provider(written: &str) -> Self {
        let nearest = SecretProvider::ALL
            .into_iter()
            .map(|provider| (strsim::damerau_levenshtein(provider.as_str(), written), provider))
            .filter(|(distance, provider)| *distance < provider.as_str().len().min(3))
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, provider)| provider);
        Self::UnknownProvider { provider: written.to_owned(), nearest }
    }
}

impl fmt::Display for SecretRefProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAReference => write!(f, "a secret reference begins with `{SCHEME}`"),
            Self::InsideAWord => write!(
                f,
                "`{SCHEME}` must begin the value or follow a space; inside a word it is not replaced"
            ),
            Self::WhiteSpace => f.write_str("a secret reference cannot contain white space"),
            Self::ControlCharacter => {
                f.write_str("a secret reference cannot contain control characters")
            }
            Self::UnknownProvider { provider, nearest } => {
                if provider.is_empty() {
                    write!(f, "missing secret provider")?;
                } else {
                    write!(f, "unknown secret provider `{}`", Visible(provider))?;
                }
                match nearest {
                    Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
                    None => {
                        write!(
                            f,
                            "; known: {}",
                            SecretProvider::ALL.map(SecretProvider::as_str).join(", ")
                        )
                    }
                }
            }
            Self::EmptyName { provider } => {
                write!(f, "missing secret name; write {}", form(*provider))
            }
            Self::BadName { provider } => f.write_str(match provider {
                SecretProvider::Env => {
                    "an environment variable name may only contain letters, digits and `_`, and \
                     must not begin with a digit"
                }
                SecretProvider::Gcp => {
                    "a Google Cloud secret name may only contain letters, digits, `_` and `-`, or \
                     must be a resource name, `projects/PROJECT/secrets/NAME`"
                }
                SecretProvider::Aws => {
                    "an AWS secret name may only contain letters, digits and `/_+=.@-`, or must be \
                     an ARN"
                }
                SecretProvider::Vault => {
                    "a Vault path must not have empty, `.` or `..` segments or `?`"
                }
                SecretProvider::File => "the path must name a file",
                SecretProvider::Keychain | SecretProvider::Exec => "invalid secret name",
            }),
            Self::EmptySelector { provider } => {
                write!(f, "nothing follows `#`; write {}", form(*provider))
            }
            Self::BadVersion { provider } => f.write_str(match provider {
                SecretProvider::Gcp => "the version must be `latest`, a number from 1, or an alias",
                _ => "the version must be a staging label such as `AWSCURRENT`, or a version id",
            }),
        }
    }
}

/// Escapes control characters, which a terminal would interpret.
struct Visible<'a>(&'a str);

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c.is_control() {
            true => write!(f, "{}", c.escape_default()),
            false => write!(f, "{c}"),
        })
    }
}

/// Returns the syntax of a reference of this provider.
fn form(provider: SecretProvider) -> &'static str {
    match provider {
        SecretProvider::Env => "`secret://env/VARIABLE`",
        SecretProvider::File => "`secret://file/PATH`",
        SecretProvider::Keychain => "`secret://keychain/NAME`",
        SecretProvider::Exec => "`secret://exec/NAME`",
        SecretProvider::Gcp => "`secret://gcp/NAME` or `secret://gcp/NAME#VERSION`",
        SecretProvider::Aws => "`secret://aws/NAME` or `secret://aws/NAME#VERSION`",
        SecretProvider::Vault => "`secret://vault/PATH` or `secret://vault/PATH#FIELD`",
    }
}
