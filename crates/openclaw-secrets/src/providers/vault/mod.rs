//! `secret://vault/PATH[#FIELD]`: the key-value engine of HashiCorp Vault or OpenBao.
//!
//! `PATH` is what `vault kv get` takes: mount and name, for either version of the engine. Paths of
//! the HTTP API (`secret/data/name`) are accepted too.

mod connection;
mod login;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use self::connection::{VaultConnection, VaultReply};
use super::{Fetch, ProviderContext};
use crate::{KvVersion, ResolveErrorKind, SecretRef, SecretString, resolve_error::ProviderFailure};

/// A Vault server.
pub(super) struct Vault {
    context: ProviderContext,
    connection: OnceCell<VaultConnection>,
}

/// The location of a secret in the HTTP API.
struct Place {
    path: String,
    version: KvVersion,
}

impl Vault {
    pub(super) fn new(context: &ProviderContext) -> Self {
        Self { context: context.clone(), connection: OnceCell::new() }
    }

    /// Returns the location of a secret, and a second one to try if the engine version is unknown.
    async fn places(
        &self,
        connection: &VaultConnection,
        path: &str,
    ) -> Result<(Place, Option<Place>), ProviderFailure> {
        let first_part = path.split('/').next().unwrap_or(path);
        let version_1 = || Place { path: path.to_owned(), version: KvVersion::V1 };
        match self.context.settings.vault.kv_version {
            Some(KvVersion::V1) => return Ok((version_1(), None)),
            Some(KvVersion::V2) => return Ok((version_2(first_part, path), None)),
            None => {}
        }
        // Allowed by default for every token that may read something under the mount.
        let reply = connection.get(&format!("sys/internal/ui/mounts/{path}")).await?;
        match reply.status() {
            200 => {
                let data = &reply.body()["data"];
                let mount = data["path"].as_str().unwrap_or(first_part).trim_end_matches('/');
                let is_version_2 = data["options"]["version"].as_str() == Some("2");
                Ok((if is_version_2 { version_2(mount, path) } else { version_1() }, None))
            }
            400..=499 => Ok((version_2(first_part, path), Some(version_1()))),
            _ => Err(reply.failure("the version of the secrets engine")),
        }
    }
}

#[async_trait]
impl Fetch for Vault {
    async fn fetch(&self, reference: &SecretRef) -> Result<SecretString, ProviderFailure> {
        let connection =
            self.connection.get_or_try_init(|| VaultConnection::new(&self.context)).await?;
        let path = reference.name().trim_matches('/');
        let (first, second) = self.places(connection, path).await?;
        let mut found = (connection.get(&first.path).await?, first);
        if let Some(second) = second
            && found.0.status() != 200
        {
            let reply = connection.get(&second.path).await?;
            // Of two errors, "denied" is more informative than "not found".
            if reply.status() == 200 || found.0.status() == 404 {
                found = (reply, second);
            }
        }
        let (reply, place) = found;
        field(fields(&reply, &place)?, reference.selector())
    }
}

/// Converts `mount/name` to `mount/data/name`.
fn version_2(mount: &str, path: &str) -> Place {
    let name = path.strip_prefix(mount).unwrap_or(path).trim_start_matches('/');
    let name = name.strip_prefix("data/").unwrap_or(name);
    Place { path: format!("{mount}/data/{name}"), version: KvVersion::V2 }
}

/// Returns the fields of the secret in a response.
fn fields<'a>(
    reply: &'a VaultReply,
    place: &Place,
) -> Result<&'a Map<String, Value>, ProviderFailure> {
    let data = &reply.body()["data"];
    if reply.status() == 404 {
        // A deleted version is a 404 that still has metadata.
        let was_deleted = data["metadata"]["deletion_time"].as_str().is_some_and(|t| !t.is_empty());
        let (what, hint) = if was_deleted {
            ("latest version deleted", "restore it with `vault kv undelete`, or write a new one")
        } else {
            (
                "not found",
                "write the mount and the name, as for `vault kv get`: `secret://vault/secret/name`",
            )
        };
        return Err(
            ProviderFailure::new(ResolveErrorKind::NotFound, format!("{what} in Vault")).hint(hint)
        );
    }
    if reply.status() != 200 {
        return Err(reply.failure("this path"));
    }
    let fields = match place.version {
        KvVersion::V1 => data.as_object(),
        KvVersion::V2 => data["data"].as_object(),
    };
    fields.ok_or_else(|| {
        let cause = "the response is not from a key-value engine";
        ProviderFailure::new(ResolveErrorKind::Failed, cause)
    })
}

/// Returns the requested field; without a name, the only field or `value`.
fn field(fields: &Map<String, Value>, name: Option<&str>) -> Result<SecretString, ProviderFailure> {
    if fields.is_empty() {
        return Err(ProviderFailure::new(ResolveErrorKind::NotFound, "the secret has no fields"));
    }
    let names = || fields.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let value = match name {
        Some(name) => fields.get(name).ok_or_else(|| {
            let cause = format!("the secret has no field `{name}`; it has {}", names());
            ProviderFailure::new(ResolveErrorKind::NotFound, cause)
        })?,
        None => match (fields.len(), fields.values().next(), fields.get("value")) {
            (1, Some(only), _) => only,
            (_, _, Some(value)) => value,
            _ => {
                let cause = format!("the secret has several fields: {}", names());
                return Err(ProviderFailure::new(ResolveErrorKind::NotFound, cause)
                    .hint("select one of them, as in `secret://vault/kv/name#field`"));
            }
        },
    };
    match value {
        Value::String(text) => Ok(SecretString::from(text.as_str())),
        Value::Number(_) | Value::Bool(_) => Ok(SecretString::from(value.to_string())),
        _ => Err(ProviderFailure::new(ResolveErrorKind::NotText, "the field is not a string")),
    }
}
