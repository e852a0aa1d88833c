//! What can be wrong with a reference, in words for the person who wrote it.

use std::{fmt, ops::Range};

use crate::{Provider, SCHEME};

/// A reference that cannot be understood.
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
    /// `secret://` stands inside a word, where it would be passed on as it is.
    InsideAWord,
    /// A reference ends at white space.
    WhiteSpace,
    /// No name and no version holds a control character.
    ControlCharacter,
    /// There is no such provider.
    UnknownProvider {
        /// What was written.
        provider: String,
        /// The provider that was meant, perhaps.
        nearest: Option<Provider>,
    },
    /// Nothing stands after the provider.
    EmptyName {
        /// The provider.
        provider: Provider,
    },
    /// No secret of this provider can have such a name.
    BadName {
        /// The provider.
        provider: Provider,
    },
    /// Nothing stands after `#`.
    EmptySelector {
        /// The provider.
        provider: Provider,
    },
    /// No secret of this provider can have such a version.
    BadVersion {
        /// The provider.
        provider: Provider,
    },
}

impl SecretRefError {
    pub(crate) fn new(reference: &str, range: Range<usize>, problem: SecretRefProblem) -> Self {
        Self { reference: reference.to_owned(), range, problem }
    }

    /// The same error, for a reference that begins at `offset` of a longer text.
    pub(crate) fn at(mut self, offset: usize) -> Self {
        self.range = self.range.start + offset..self.range.end + offset;
        self
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> &SecretRefProblem {
        &self.problem
    }

    /// Where the reference stands in the text that was parsed, in bytes.
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
        let nearest = Provider::ALL
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
            Self::WhiteSpace => f.write_str("a secret reference cannot hold white space"),
            Self::ControlCharacter => {
                f.write_str("a secret reference cannot hold a control character")
            }
            Self::UnknownProvider { provider, nearest } => {
                if provider.is_empty() {
                    write!(f, "the secret provider is missing")?;
                } else {
                    write!(f, "there is no secret provider `{}`", Visible(provider))?;
                }
                match nearest {
                    Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
                    None => {
                        write!(f, "; known are {}", Provider::ALL.map(Provider::as_str).join(", "))
                    }
                }
            }
            Self::EmptyName { provider } => {
                write!(f, "the name of the secret is missing; write {}", form(*provider))
            }
            Self::BadName { provider } => f.write_str(match provider {
                Provider::Env => {
                    "the name of an environment variable holds only letters, digits and `_`, and \
                     does not begin with a digit"
                }
                Provider::Gcp => {
                    "the name of a Google Cloud secret holds only letters, digits, `_` and `-`, or \
                     is a resource name, `projects/PROJECT/secrets/NAME`"
                }
                Provider::Aws => {
                    "the name of an AWS secret holds only letters, digits and `/_+=.@-`, or is an \
                     ARN"
                }
                Provider::Vault => "a Vault path has no empty, `.` or `..` part and no `?`",
                Provider::File => "the path must name a file",
                Provider::Keychain | Provider::Exec => "no secret can have this name",
            }),
            Self::EmptySelector { provider } => {
                write!(f, "nothing stands after `#`; write {}", form(*provider))
            }
            Self::BadVersion { provider } => f.write_str(match provider {
                Provider::Gcp => "the version must be `latest`, a number from 1, or an alias",
                _ => "the version must be a staging label, as `AWSCURRENT`, or a version id",
            }),
        }
    }
}

/// Text as written, with control characters made visible: a terminal would obey them.
struct Visible<'a>(&'a str);

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c.is_control() {
            true => write!(f, "{}", c.escape_default()),
            false => write!(f, "{c}"),
        })
    }
}

/// How a reference of this provider is written.
fn form(provider: Provider) -> &'static str {
    match provider {
        Provider::Env => "`secret://env/VARIABLE`",
        Provider::File => "`secret://file/PATH`",
        Provider::Keychain => "`secret://keychain/NAME`",
        Provider::Exec => "`secret://exec/NAME`",
        Provider::Gcp => "`secret://gcp/NAME` or `secret://gcp/NAME#VERSION`",
        Provider::Aws => "`secret://aws/NAME` or `secret://aws/NAME#VERSION`",
        Provider::Vault => "`secret://vault/PATH` or `secret://vault/PATH#FIELD`",
    }
}
