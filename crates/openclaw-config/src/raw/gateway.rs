//! What may stand in `gateway` and `acp`.

use super::credential::CredentialText;
use super::{RawPolicy, Words};
use crate::decode::{Whole, section};
use crate::schema;
use crate::text::Text;

section! {
    /// The gateway.
    struct RawGateway("the gateway", Leave) {
        /// The port that it listens on (18789); 0 means any that is free.
        port: Whole<0, 65535> = "port",
        /// Where it can be reached from: `loopback` (this machine only), `lan` or `all` (everywhere), or
        /// the IP address to listen on.
        bind: Text = "bind" => schema::bind,
        /// Who may connect.
        auth: RawGatewayAuth = "auth",
        /// The https address under which it is reached from outside.
        public_url: Text = "publicUrl" => schema::https,
        /// Web pages that may connect, as origins: `https://example.com`.
        allowed_origins: Words = "allowedOrigins" => schema::origins,
        /// Milliseconds that work under way gets when it is stopped (10000).
        shutdown_grace: Whole<0, 600_000> = "shutdownGraceMs",
        /// Which tools may be used through the gateway.
        tools: RawPolicy = "tools",
    }
}

section! {
    /// Who may connect to the gateway.
    struct RawGatewayAuth("the gateway's authentication", Leave) {
        /// The kind of authentication; only `token` is available.
        mode: Text = "mode" => schema::auth_mode,
        /// The token that clients show; best a `secret://…` reference. Without one it is generated.
        token: CredentialText = "token" => schema::gateway_token,
    }
}

section! {
    /// Limits of the sessions that an editor opens.
    struct RawAcp("the limits of editor sessions", Leave) {
        /// MCP servers a session (10).
        max_servers: Whole<0, 1000> = "maxServers",
        /// MCP tools a session (100).
        max_tools: Whole<0, 100_000> = "maxTools",
    }
}
