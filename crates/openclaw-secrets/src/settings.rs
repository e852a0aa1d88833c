//! How secrets are fetched: plain data, filled in by the config loader.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use crate::SecretString;

/// The default of [`SecretSettings::timeout`].
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The settings of all providers. Its `Debug` hides the arguments of commands, and the user,
/// password and query of URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretSettings {
    /// The timeout for one secret.
    pub timeout: Duration,
    /// The base folder of relative paths: that of the configuration.
    pub base_dir: PathBuf,
    /// What `~/` expands to in paths; if `None`, such a path is an error.
    pub home: Option<PathBuf>,
    /// The commands that `secret://exec/NAME` may run, by name.
    pub exec: BTreeMap<String, ExecCommand>,
    /// Google Cloud Secret Manager.
    pub gcp: GcpSettings,
    /// AWS Secrets Manager.
    pub aws: AwsSettings,
    /// HashiCorp Vault or OpenBao.
    pub vault: VaultSettings,
}

/// A command that prints a secret to its standard output.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ExecCommand {
    /// The program: a path, or a name that is looked up in `PATH`. It is not run in a shell.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables in addition to the small baseline environment.
    pub env: BTreeMap<String, SecretString>,
    /// The timeout, if not [`SecretSettings::timeout`].
    pub timeout: Option<Duration>,
}

/// Google Cloud Secret Manager, accessed with the application default credentials.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct GcpSettings {
    /// The project for secrets that are named without one.
    pub project: Option<String>,
    /// The URL, if not `https://secretmanager.googleapis.com`.
    pub endpoint: Option<String>,
}

/// AWS Secrets Manager, accessed with the standard credential chain.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct AwsSettings {
    /// The region, if not that of the environment, the profile or the machine.
    pub region: Option<String>,
    /// The profile in `~/.aws/config`.
    pub profile: Option<String>,
    /// The URL, if not that of the region.
    pub endpoint: Option<String>,
}

/// HashiCorp Vault or OpenBao. Most settings fall back to a `VAULT_…` variable.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct VaultSettings {
    /// The URL of the server (`VAULT_ADDR`).
    pub address: Option<String>,
    /// The namespace (`VAULT_NAMESPACE`).
    pub namespace: Option<String>,
    /// The token (`VAULT_TOKEN`, then `~/.vault-token`).
    pub token: Option<SecretString>,
    /// The role id of an AppRole login (`VAULT_ROLE_ID`).
    pub role_id: Option<String>,
    /// The secret id of an AppRole login (`VAULT_SECRET_ID`).
    pub secret_id: Option<SecretString>,
    /// The mount path of the AppRole login; `approle` by default.
    pub approle_mount: Option<String>,
    /// A PEM file of certificate authorities (`VAULT_CACERT`).
    pub ca_file: Option<PathBuf>,
    /// The version of the key-value engine; detected if `None`.
    pub kv_version: Option<KvVersion>,
}

/// The version of Vault's key-value engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvVersion {
    /// One value per path.
    V1,
    /// Versioned values, behind `data/` after the mount.
    V2,
}

impl Default for SecretSettings {
    fn default() -> Self {
        Self {
            timeout: DEFAULT_TIMEOUT,
            base_dir: PathBuf::new(),
            home: None,
            exec: BTreeMap::new(),
            gcp: GcpSettings::default(),
            aws: AwsSettings::default(),
            vault: VaultSettings::default(),
        }
    }
}
