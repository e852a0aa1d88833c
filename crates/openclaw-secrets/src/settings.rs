//! How secrets are fetched: plain data, filled in from the config file by whoever reads it.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use crate::SecretString;

/// How long one secret may take.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Everything that the providers can be told. Its `Debug` shows no argument of a command, and of an
/// address no user, password or query.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long one secret may take.
    pub timeout: Duration,
    /// The folder that relative paths start from: the one of the config file.
    pub base_dir: PathBuf,
    /// What `~/` stands for in paths; without it such a path is an error.
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

/// A command that prints a secret on its standard output.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ExecCommand {
    /// The program: a path, or a name that is looked up in `PATH`. No shell is involved.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables on top of the small baseline that the command gets.
    pub env: BTreeMap<String, SecretString>,
    /// How long it may run, if not [`Settings::timeout`].
    pub timeout: Option<Duration>,
}

/// Google Cloud Secret Manager. Credentials are the application default ones.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct GcpSettings {
    /// The project of secrets that are named without one.
    pub project: Option<String>,
    /// Another address than `https://secretmanager.googleapis.com`.
    pub endpoint: Option<String>,
}

/// AWS Secrets Manager. Credentials come from the usual chain.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct AwsSettings {
    /// The region, if not the one of the environment, the profile or the machine.
    pub region: Option<String>,
    /// The profile of `~/.aws/config`.
    pub profile: Option<String>,
    /// Another address than that of the region.
    pub endpoint: Option<String>,
}

/// HashiCorp Vault or OpenBao. What is not set here comes from the usual `VAULT_…` variables.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct VaultSettings {
    /// The address (`VAULT_ADDR`).
    pub address: Option<String>,
    /// The namespace (`VAULT_NAMESPACE`).
    pub namespace: Option<String>,
    /// The token (`VAULT_TOKEN`, then `~/.vault-token`).
    pub token: Option<SecretString>,
    /// The role of an AppRole login (`VAULT_ROLE_ID`).
    pub role_id: Option<String>,
    /// The secret of an AppRole login (`VAULT_SECRET_ID`).
    pub secret_id: Option<SecretString>,
    /// Where the AppRole login is mounted; `approle` by default.
    pub approle_mount: Option<String>,
    /// A certificate authority in PEM form (`VAULT_CACERT`).
    pub ca_file: Option<PathBuf>,
    /// The version of the key-value engine, if the server is not to be asked.
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

impl Default for Settings {
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
