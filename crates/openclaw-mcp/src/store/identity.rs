//! What a server is, independent of its name.

use std::fmt;

use data_encoding::HEXLOWER;
use openclaw_config::{ServerConnection, Transport};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use openclaw_mcp_client::connection::remote::userinfo;

/// Passes the parts that identify a server: the command with its arguments and folder, or the URL.
/// Without user and password of a URL, which could be guessed from a hash.
pub(super) fn parts(connection: &ServerConnection, add: &mut dyn FnMut(&str)) {
    match &connection.transport {
        Transport::Stdio(stdio) => {
            add(stdio.command.as_str());
            stdio.args.iter().for_each(add);
        }
        Transport::Http(http) => add(userinfo::without(http.url.expose()).as_str()),
    }
}

/// A hash of what is run or connected to. Another program under the name of a server is another
/// server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServerIdentity(String);

impl ServerIdentity {
    /// Hashes the command, its arguments and its folder, or the URL.
    pub fn of(connection: &ServerConnection) -> Self {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        };
        match &connection.transport {
            Transport::Stdio(stdio) => {
                add("stdio");
                // A relative path names another program in another folder.
                let folder = stdio.cwd.as_deref().map(|folder| folder.to_string_lossy());
                add(folder.as_deref().unwrap_or_default());
            }
            Transport::Http(_) => add("http"),
        }
        parts(connection, &mut add);
        Self(HEXLOWER.encode(&hash.finalize()))
    }
}

impl fmt::Display for ServerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
