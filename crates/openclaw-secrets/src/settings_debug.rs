//! `Debug` for the settings: shows what is set, but nothing that may be a credential.
//!
//! Every struct is destructured, so that a new field cannot be forgotten.

use std::fmt;

use crate::{AwsSettings, ExecCommand, GcpSettings, REDACTED, VaultSettings};

impl fmt::Debug for ExecCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, args, env, timeout } = self;
        let args: Vec<Hidden> = args.iter().map(|_| Hidden).collect();
        f.debug_struct("ExecCommand")
            .field("command", command)
            .field("args", &args)
            .field("env", env)
            .field("timeout", timeout)
            .finish()
    }
}

impl fmt::Debug for GcpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { project, endpoint } = self;
        f.debug_struct("GcpSettings")
            .field("project", project)
            .field("endpoint", &endpoint.as_deref().map(Address))
            .finish()
    }
}

impl fmt::Debug for AwsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { region, profile, endpoint } = self;
        f.debug_struct("AwsSettings")
            .field("region", region)
            .field("profile", profile)
            .field("endpoint", &endpoint.as_deref().map(Address))
            .finish()
    }
}

impl fmt::Debug for VaultSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            address,
            namespace,
            token,
            role_id,
            secret_id,
            approle_mount,
            ca_file,
            kv_version,
        } = self;
        f.debug_struct("VaultSettings")
            .field("address", &address.as_deref().map(Address))
            .field("namespace", namespace)
            .field("token", token)
            .field("role_id", role_id)
            .field("secret_id", secret_id)
            .field("approle_mount", approle_mount)
            .field("ca_file", ca_file)
            .field("kv_version", kv_version)
            .finish()
    }
}

/// A value whose presence is shown, but not its content.
struct Hidden;

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// A URL; only scheme, host, port and path are shown.
struct Address<'a>(&'a str);

impl Address<'_> {
    /// Returns the parts that may be shown; `None` if the text is not clearly a URL, because what
    /// looks like a host may then be part of a password.
    fn parts(&self) -> Option<(&str, &str, &str)> {
        let (scheme, rest) = self.0.split_once("://")?;
        let before_query = rest.split(['?', '#']).next()?;
        let (authority, path) = match before_query.find('/') {
            Some(at) => before_query.split_at(at),
            None => (before_query, ""),
        };
        let host = authority.rsplit('@').next()?;
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:[]%".contains(c);
        // A later `@` may mean a password that contains a `/`, a `?` or a `#`.
        let is_clear = rest[authority.len()..].find('@').is_none()
            && scheme.chars().all(|c| c.is_ascii_alphanumeric())
            && host.chars().all(is_host);
        is_clear.then_some((scheme, host, path))
    }
}

impl fmt::Debug for Address<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            Some((scheme, host, path)) => write!(f, "{:?}", format!("{scheme}://{host}{path}")),
            None => f.write_str(REDACTED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_user_and_query() {
        for (address, shown) in [
            ("https://vault.example:8200/v", r#""https://vault.example:8200/v""#),
            (
                "https://me:hunter22@vault.example/v?k=hunter22#hunter22",
                r#""https://vault.example/v""#,
            ),
            ("http://hunter22@[::1]:8200", r#""http://[::1]:8200""#),
            ("https://me:p@hunter22@vault.example", r#""https://vault.example""#),
        ] {
            assert_eq!(format!("{:?}", Address(address)), shown);
        }
    }

    #[test]
    fn an_ambiguous_address_is_hidden() {
        for address in [
            "me:hunter22@vault.example",
            "https://me:hunter22/x@vault.example",
            "https://me:hunter22?x@vault.example",
            "https://me:hunter22#x@vault.example",
            "https://vault.example\\hunter22",
            "hunter22",
            "hunter22 is://here",
        ] {
            assert_eq!(format!("{:?}", Address(address)), REDACTED, "{address}");
        }
    }
}
