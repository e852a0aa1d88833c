//! The options that choose the gateway of a command.

use std::path::PathBuf;

use clap::Args;
use openclaw_protocol::client::Fingerprint;

const HEADING: &str = "Gateway options";

/// Which gateway a command uses.
#[derive(Debug, Default, Args)]
pub(crate) struct GatewayChoice {
    /// The gateway to use [default: `gateway.remote`, the running one, or one in this process]
    #[arg(long, value_name = "URL", global = true, help_heading = HEADING)]
    pub(crate) gateway: Option<String>,
    /// The token of the gateway. Other users can see it in the list of processes: prefer --token-file,
    /// or the variable OPENCLAW_GATEWAY_TOKEN
    #[arg(long, value_name = "TOKEN", global = true, help_heading = HEADING)]
    pub(crate) token: Option<String>,
    /// A file with the token of the gateway
    #[arg(
        long,
        value_name = "FILE",
        global = true,
        conflicts_with = "token",
        help_heading = HEADING
    )]
    pub(crate) token_file: Option<PathBuf>,
    /// The SHA-256 of the only certificate to accept from a wss:// gateway
    #[arg(long, value_name = "SHA256", global = true, requires = "gateway", help_heading = HEADING)]
    pub(crate) tls_fingerprint: Option<Fingerprint>,
    /// Allow ws:// to another machine, which exposes the token and all messages
    #[arg(long, global = true, requires = "gateway", help_heading = HEADING)]
    pub(crate) allow_plaintext: bool,
}
