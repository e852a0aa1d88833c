//! Resolves `secret://` references to [`SecretString`]s, and keeps their values out of logs.
//!
//! Without features the crate is light: [`SecretRef`] and [`SecretTemplate`] for parsing a config,
//! [`Redactor`] for writing logs. The feature `resolve` adds `Resolver` with the providers `env`,
//! `file` and `exec`; the features `keychain`, `gcp`, `aws` and `vault` add one each.

#[cfg(feature = "resolve")]
mod credential;
#[cfg(feature = "resolve")]
mod environment;
#[cfg(feature = "system-keychain")]
pub mod keychain;
#[cfg(feature = "resolve")]
mod providers;
mod redact;
mod reference;
#[cfg(feature = "resolve")]
mod resolve;
#[cfg(feature = "resolve")]
mod resolve_error;
mod settings;
mod settings_debug;
mod template;
mod value;

#[cfg(feature = "resolve")]
pub use environment::Environment;
pub use redact::{RedactingWriter, Redactor};
pub use reference::{SCHEME, SecretProvider, SecretRef, SecretRefError, SecretRefProblem};
#[cfg(feature = "resolve")]
pub use resolve::{Checked, Resolver};
#[cfg(feature = "resolve")]
pub use resolve_error::{ResolveError, ResolveErrorKind};
pub use settings::{
    AwsSettings, DEFAULT_TIMEOUT, ExecCommand, GcpSettings, KvVersion, SecretSettings,
    VaultSettings,
};
pub use template::{SecretTemplate, TemplatePart};
pub use value::{REDACTED, SecretString};
