//! What may stand in `secrets`: how the providers are reached.

use schemars::Schema;
use serde_json::json;

use super::{Millis, Words};
use crate::decode::{Table, Whole, section};
use crate::schema::{self, rule};
use crate::text::Text;

section! {
    /// Where secrets come from.
    struct RawSecrets("the secret settings", Leave) {
        /// Milliseconds that one secret may take (10000).
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
    /// A command that prints a secret. No shell is involved.
    struct RawExec("a command", Refuse, needs_command) {
        /// The program.
        command: Text = "command" => schema::filled,
        /// Its arguments.
        args: Words = "args",
        /// Its environment variables.
        env: Table<Text> = "env",
        /// Milliseconds that it may take.
        timeout: Millis = "timeoutMs",
    }
}

section! {
    /// Google Cloud Secret Manager.
    struct RawGcp("the Google Cloud settings", Refuse) {
        /// The project; otherwise that of the application default credentials.
        project: Text = "project",
        /// Another address of the service.
        endpoint: Text = "endpoint" => schema::address,
    }
}

section! {
    /// AWS Secrets Manager.
    struct RawAws("the AWS settings", Refuse) {
        /// The region.
        region: Text = "region",
        /// The profile.
        profile: Text = "profile",
        /// Another address of the service.
        endpoint: Text = "endpoint" => schema::address,
    }
}

section! {
    /// HashiCorp Vault. What is not given here comes from `VAULT_ADDR` and its siblings.
    struct RawVault("the Vault settings", Refuse) {
        /// The address of the server.
        address: Text = "address" => schema::address,
        /// The namespace.
        namespace: Text = "namespace",
        /// The role of an AppRole login.
        role_id: Text = "roleId",
        /// Where the AppRole login is mounted (`approle`).
        approle_mount: Text = "approleMount",
        /// A file of certificate authorities to trust.
        ca_file: Text = "caFile",
        /// The version of the key-value engine, 1 or 2; found out if not given.
        kv_version: Whole<1, 2> = "kvVersion",
    }
}

fn needs_command(schema: &mut Schema) {
    rule(schema, json!({ "required": ["command"] }));
}
