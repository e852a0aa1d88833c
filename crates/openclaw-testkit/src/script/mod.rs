//! The behaviour of a test server: a value that a test builds and that is passed to the server as
//! JSON.

/// Methods of [`Script`] that set one field of a part of it, declared as `name(arguments) => field = value`.
macro_rules! setters {
    ($part:ident: $($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*) => $field:ident = $value:expr;)*) => {
        impl Script {
            $($(#[$doc])*
            pub fn $name(mut self, $($arg: $type),*) -> Self {
                self.$part.$field = $value;
                self
            })*
        }
    };
}

mod calls;
mod catalogue;
mod http;
mod process;
mod protocol;
mod skills;
mod stdout;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use calls::{Ask, CallScript, RpcError, TaskScript};
pub use catalogue::{CatalogueScript, Cursor, Odd, Tool};
pub use http::{Answer, DropStream, Endless, Fault, HttpScript, On, RequestFlood};
pub use process::{Grandchild, ProcessScript};
pub(crate) use protocol::is_modern;
pub use protocol::{Discover, ProtocolScript, VERSIONS};
pub use skills::Skill;
pub use stdout::{Junk, StdoutScript};

/// The behaviour of a test server. The default is well-behaved and supports every protocol version.
///
/// ```
/// use openclaw_testkit::{Script, Tool};
///
/// let script = Script::new().tools([Tool::new("echo")]).crash_after_calls(3);
/// let json = serde_json::to_string(&script)?;
/// assert_eq!(serde_json::from_str::<Script>(&json)?, script);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// The server's name in `serverInfo`.
    pub name: String,
    /// Every message received is appended to this file, one line each (see `Recording`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
    /// Versions, handshake and discovery.
    #[serde(skip_serializing_if = "is_default")]
    pub protocol: ProtocolScript,
    /// Start, end, signals, children and stderr.
    #[serde(skip_serializing_if = "is_default")]
    pub process: ProcessScript,
    /// Output on stdout other than messages (stdio only).
    #[serde(skip_serializing_if = "is_default")]
    pub stdout: StdoutScript,
    /// How calls are answered.
    #[serde(skip_serializing_if = "is_default")]
    pub calls: CallScript,
    /// Tools, resources and prompts, and how they are listed.
    #[serde(skip_serializing_if = "is_default")]
    pub catalogue: CatalogueScript,
    /// Status codes, sessions and streams (HTTP only).
    #[serde(skip_serializing_if = "is_default")]
    pub http: HttpScript,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            name: "test-server".into(),
            record: None,
            protocol: ProtocolScript::default(),
            process: ProcessScript::default(),
            stdout: StdoutScript::default(),
            calls: CallScript::default(),
            catalogue: CatalogueScript::default(),
            http: HttpScript::default(),
        }
    }
}

impl Script {
    /// A well-behaved server.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name in `serverInfo`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Appends every message received to this file.
    pub fn record(mut self, file: impl Into<PathBuf>) -> Self {
        self.record = Some(file.into());
        self
    }

    /// Returns the script as the JSON that `--script` takes.
    pub fn to_json(&self) -> String {
        // Only a map with non-string keys could fail, and there is none.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Keeps the command line of a test short: defaults are not serialized.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
