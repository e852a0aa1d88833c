//! Reads a configuration file into a validated [`Config`], or reports every problem in it.
//!
//! The stages: text → [`tree`] with positions → [`include`] → typed raw sections
//! ([`raw`], read by [`decode`]) → merged layers and checked values ([`build`]) → [`Config`].
//! Every stage continues after a problem, so that all problems are reported in one run.
//!
//! ```
//! use std::path::Path;
//! use openclaw_config::{LoadEnvironment, load_text};
//!
//! let text = r#"{ mcp: { servers: { fs: { comand: "npx" } } } }"#;
//! let loaded = load_text(Path::new("openclaw.json"), text, LoadEnvironment::empty());
//! assert!(loaded.config.is_none());
//! let said = loaded.report.render(Default::default());
//! assert!(said.contains("did you mean `command`?"), "{said}");
//! ```

mod agent;
mod build;
mod credential;
mod decode;
mod diagnostic;
mod diff;
mod edit;
mod files;
mod gateway;
pub mod import;
mod include;
pub mod install;
mod load;
mod mask;
mod mcp;
mod model;
mod name;
mod native;
mod oauth;
mod paths;
mod provider;
mod raw;
mod render;
mod safe_url;
mod schema;
mod server;
mod server_places;
mod setting;
mod source;
mod suggest;
mod text;
mod tool_policy;
mod tree;
#[cfg(feature = "watch")]
mod watch;

pub use agent::{AgentConfig, ApprovalSettings, ModelChoice, ModelName};
pub use credential::{is_credential_name, looks_like_credential, url_credentials};
pub use diagnostic::{Diagnostic, Report, Severity};
pub use diff::{AgentChanges, ConfigChanges, EntryChange, RestartCause, ServerChange};
pub use edit::{Document, EditError};
pub use files::{FileContent, ReadFile};
pub use gateway::{Bind, GatewayConfig, MetricsConfig, RemoteGateway};
pub use load::{LoadEnvironment, Loaded, load, load_text};
pub use mcp::{HeldBack, McpConfig, McpSettings, Origins, ToolNaming};
pub use model::{AcpSettings, Config};
pub use name::{AgentId, NameError, ProviderId, ServerName};
pub use native::{ExecTool, FileTools, NativeToolSettings, PrivateHost, WebFetchTool};
pub use oauth::{DpopSetting, IdentityProvider, OAuthGrant, OAuthSettings};
pub use paths::{ChosenBy, NoHome, Paths};
pub use provider::ProviderConfig;
pub use raw::{
    ApprovalFallback, HubApprovals, ModelApi, ProtocolVersion, TransportKind, json_schema,
};
pub use render::Style;
pub use safe_url::SafeUrl;
pub use server::{
    ApprovalPolicy, Args, HttpFlavour, HttpServer, LogLevel, PROGRAM_VARIABLE, ProxySetting,
    RootsSetting, SamplingRule, SamplingSettings, ServerConfig, ServerConnection, ServerOptions,
    StdioServer, TlsSettings, Transport,
};
pub use setting::{Setting, SettingOrigin};
pub use source::{Location, ReadError, SourceSpan, Sources};
pub use suggest::nearest;
pub use text::{Expanded, split_command};
pub use tool_policy::ToolPolicy;
#[cfg(feature = "watch")]
pub use watch::{WatchError, Watcher};
