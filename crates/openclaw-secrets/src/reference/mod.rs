//! [`SecretRef`]: a reference to a secret in a provider, `secret://PROVIDER/NAME`.

mod error;

use std::{fmt, str::FromStr};

pub use error::{SecretRefError, SecretRefProblem};

/// The prefix of every reference.
pub const SCHEME: &str = "secret://";

/// A secret provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SecretProvider {
    /// A variable of the host environment: `secret://env/VARIABLE`.
    Env,
    /// A file: `secret://file/PATH`. See [`SecretRef`] for the syntax of the path.
    File,
    /// The keychain of the operating system: `secret://keychain/NAME`.
    Keychain,
    /// The output of a configured command: `secret://exec/NAME`.
    Exec,
    /// Google Cloud Secret Manager: `secret://gcp/NAME[#VERSION]`.
    Gcp,
    /// AWS Secrets Manager: `secret://aws/NAME[#VERSION]`.
    Aws,
    /// HashiCorp Vault or OpenBao: `secret://vault/PATH[#FIELD]`.
    Vault,
}

impl SecretProvider {
    /// Every provider, in the order used in messages.
    pub const ALL: [Self; 7] =
        [Self::Env, Self::File, Self::Keychain, Self::Exec, Self::Gcp, Self::Aws, Self::Vault];

    /// Returns the provider's name in a reference.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Env => "env",
            Self::File => "file",
            Self::Keychain => "keychain",
            Self::Exec => "exec",
            Self::Gcp => "gcp",
            Self::Aws => "aws",
            Self::Vault => "vault",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.as_str() == name)
    }

    /// Whether `#` ends the name. File names may contain it, so it has no meaning there.
    fn takes_selector(self) -> bool {
        matches!(self, Self::Gcp | Self::Aws | Self::Vault)
    }
}

impl fmt::Display for SecretProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A reference to a secret. It is not secret itself and prints as written.
///
/// Nothing is percent-decoded. A reference contains no white space, so that it can be part of a
/// longer text (see [`SecretTemplate`](crate::SecretTemplate)), and no control characters.
///
/// The path of a `file` reference is relative to the folder of the configuration
/// (`secret://file/keys/github`), absolute with a second slash (`secret://file//run/secrets/token`),
/// or under the home folder (`secret://file/~/.config/token`).
///
/// ```
/// use openclaw_secrets::{SecretProvider, SecretRef};
///
/// let reference: SecretRef = "secret://vault/kv/github#token".parse()?;
/// assert_eq!(reference.provider(), SecretProvider::Vault);
/// assert_eq!(reference.name(), "kv/github");
/// assert_eq!(reference.selector(), Some("token"));
/// assert_eq!(reference.to_string(), "secret://vault/kv/github#token");
/// # Ok::<(), openclaw_secrets::SecretRefError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SecretRef {
    provider: SecretProvider,
    name: String,
    selector: Option<String>,
}

impl SecretRef {
    /// The provider of the secret.
    #[must_use]
    pub fn provider(&self) -> SecretProvider {
        self.provider
    }

    /// The secret's name at the provider: a variable, a path, the name of a command.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The part after `#`: a version (`gcp`, `aws`) or a field (`vault`).
    #[must_use]
    pub fn selector(&self) -> Option<&str> {
        self.selector.as_deref()
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.provider, self.name)?;
        match &self.selector {
            Some(selector) => write!(f, "#{selector}"),
            None => Ok(()),
        }
    }
}

impl FromStr for SecretRef {
    type Err = SecretRefError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some(rest) = text.strip_prefix(SCHEME) else {
            // Not quoted in the message: a text that is not a reference may be the secret itself.
            return Err(SecretRefError::new("", 0..text.len(), SecretRefProblem::NotAReference));
        };
        parse(rest).map_err(|problem| SecretRefError::new(text, 0..text.len(), problem))
    }
}

fn parse(rest: &str) -> Result<SecretRef, SecretRefProblem> {
    if rest.contains(char::is_whitespace) {
        return Err(SecretRefProblem::WhiteSpace);
    }
    // A reference is printed as written, and a terminal would interpret control characters.
    if rest.contains(char::is_control) {
        return Err(SecretRefProblem::ControlCharacter);
    }
    let (provider, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let provider = SecretProvider::from_name(provider)
        .ok_or_else(|| SecretRefProblem::unknown_provider(provider))?;
    let (name, selector) = match rest.split_once('#') {
        Some((name, selector)) if provider.takes_selector() => (name, Some(selector)),
        _ => (rest, None),
    };
    if name.trim_matches('/').is_empty() {
        return Err(SecretRefProblem::EmptyName { provider });
    }
    check_name(provider, name)?;
    if let Some(selector) = selector {
        check_selector(provider, selector)?;
    }
    Ok(SecretRef { provider, name: name.to_owned(), selector: selector.map(str::to_owned) })
}

fn check_name(provider: SecretProvider, name: &str) -> Result<(), SecretRefProblem> {
    let fits = match provider {
        SecretProvider::Env => {
            !name.starts_with(|c: char| c.is_ascii_digit())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        }
        SecretProvider::Gcp => is_gcp_name(name),
        // Names and ARNs: docs.aws.amazon.com/secretsmanager, CreateSecret.
        SecretProvider::Aws => {
            name.chars().all(|c| c.is_ascii_alphanumeric() || "/_+=.@-:!".contains(c))
        }
        // A `..` would escape the secrets engine that the path names.
        SecretProvider::Vault => {
            name.trim_matches('/').split('/').all(|part| !matches!(part, "" | "." | ".."))
                && !name.contains('?')
        }
        SecretProvider::File => !name.ends_with('/'),
        SecretProvider::Keychain | SecretProvider::Exec => true,
    };
    if fits { Ok(()) } else { Err(SecretRefProblem::BadName { provider }) }
}

/// `SECRET`, or the resource name `projects/P/secrets/SECRET[/versions/V]`.
fn is_gcp_name(name: &str) -> bool {
    let is_id = |id: &str| {
        !id.is_empty()
            && id.len() <= 255
            && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    // Old project ids contain a domain: `example.com:project`.
    let is_project = |id: &str| id.split(['.', ':']).all(is_id);
    match name.split('/').collect::<Vec<_>>()[..] {
        [id] => is_id(id),
        ["projects", project, "secrets", id] => is_project(project) && is_id(id),
        ["projects", project, "secrets", id, "versions", version] => {
            is_project(project) && is_id(id) && is_id(version)
        }
        _ => false,
    }
}

fn check_selector(provider: SecretProvider, selector: &str) -> Result<(), SecretRefProblem> {
    let fits = match provider {
        // `latest`, a number, or an alias.
        SecretProvider::Gcp => {
            selector != "0"
                && selector.len() <= 63
                && selector.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        }
        // A staging label or a version id.
        SecretProvider::Aws => selector.len() <= 256,
        _ => true,
    };
    match (selector.is_empty(), fits) {
        (true, _) => Err(SecretRefProblem::EmptySelector { provider }),
        (false, false) => Err(SecretRefProblem::BadVersion { provider }),
        (false, true) => Ok(()),
    }
}
