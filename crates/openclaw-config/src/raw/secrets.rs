//! The section `secrets`: the settings of the secret providers.

use schemars::Schema;
use serde_json::json;

use super::{Millis, Words};
use crate::decode::{Table, Whole, section};
use crate::schema::{self, rule};
use crate::text::ConfigText;

section! {
    /// Settings of the secret providers.
    struct RawSecrets("the secret settings", Leave) {
        /// Timeout for one secret, in milliseconds (10000).
        timeout: Millis = "timeoutMs",
        /// The commands behind `secret://exec/NAME`, by name.
        exec: Table<RawExec> = "exec",
        /// Google Cloud Secret Manager.
        gcp: RawGcp = "gcp",
        /// AWS Secrets Manager.
        aws: RawAws = "aws",
        /// HashiCorp Vault.
        vault: RawVault = "vault",
    }
}

section! {
    /// A command that prints a secret. It is not run in a shell.
    struct RawExec("a command", Refuse, needs_command) {
        /// The program to run.
        command: ConfigText = "command" => schema::filled,
        /// Arguments of the program.
        args: Words = "args",
        /// Environment variables of the program.
        env: Table<ConfigText> = "env",
        /// Timeout of the command, in milliseconds.
        timeout: Millis = "timeoutMs",
    }
}

section! {
    /// Google Cloud Secret Manager.
    struct RawGcp("the Google Cloud settings", Refuse) {
        /// The project; by default that of the application default credentials.
        project: ConfigText = "project",
        /// The URL of the service, if not the default.
        endpoint: ConfigText = "endpoint" => schema::address,
    }
}

section! {
    /// AWS Secrets Manager.
    struct RawAws("the AWS settings", Refuse) {
        /// The region.
        region: ConfigText = "region",
        /// The profile.
        profile: ConfigText = "profile",
        /// The URL of the service, if not the default.
        endpoint: ConfigText = "endpoint" => schema::address,
    }
}

section! {
    /// HashiCorp Vault. Settings not given here come from `VAULT_ADDR` and related variables.
    struct RawVault("the Vault settings", Refuse) {
        /// The URL of the server.
        address: ConfigText = "address" => schema::address,
        /// The namespace.
        namespace: ConfigText = "namespace",
        /// The role id of an AppRole login.
        role_id: ConfigText = "roleId",
        /// Mount path of the AppRole login (`approle`).
        approle_mount: ConfigText = "approleMount",
        /// A file of certificate authorities to trust.
        ca_file: ConfigText = "caFile",
        /// The version of the key-value engine, 1 or 2; detected if not given.
        kv_version: Whole<1, 2> = "kvVersion",
    }
}

fn needs_command(schema: &mut Schema) {
    rule(schema, json!({ "required": ["command"] }));
}
