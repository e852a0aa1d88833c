//! The sections `gateway`, `metrics` and `acp`.

use super::credential::CredentialText;
use super::{RawPolicy, Words};
use crate::decode::{Whole, choice, section};
use crate::schema;
use crate::text::ConfigText;

section! {
    /// The gateway.
    struct RawGateway("the gateway", Leave) {
        /// Which gateway the commands use: `local`, the one on this machine, or `remote`.
        mode: ConfigText = "mode" => schema::gateway_mode,
        /// The gateway that `mode: "remote"` uses: of this program, or a Node OpenClaw gateway.
        remote: RawRemoteGateway = "remote",
        /// The port to listen on (18789); 0 picks a free one.
        port: Whole<0, 65535> = "port",
        /// The interface to listen on: `loopback` (this machine only), `lan` or `all` (all
        /// interfaces), or an IP address.
        bind: ConfigText = "bind" => schema::bind,
        /// Client authentication.
        auth: RawGatewayAuth = "auth",
        /// The public https URL of the gateway.
        public_url: ConfigText = "publicUrl" => schema::https,
        /// Web origins that may connect: `https://example.com`.
        allowed_origins: Words = "allowedOrigins" => schema::origins,
        /// The web pages of the Control UI.
        control_ui: RawControlUi = "controlUi",
        /// Grace period for running work on shutdown, in milliseconds (10000).
        shutdown_grace: Whole<0, 600_000> = "shutdownGraceMs",
        /// Calls per minute of each client of `/mcp` and `openclaw mcp-server --hub`; 0 for no limit
        /// (0). The `rateLimit` of a server does not apply to them.
        hub_rate_limit: Whole<0, 1_000_000> = "hubRateLimit",
        /// What clients of the hub may approve whose access token lacks the scope `operator.approvals`
        /// (`once`).
        hub_approvals: HubApprovals = "hubApprovals",
        /// The tool policy for calls through the gateway.
        tools: RawPolicy = "tools",
    }
}

choice! {
    /// What clients of the hub may approve whose access token lacks the scope for approvals.
    pub enum HubApprovals {
        /// Their own calls, each once, but not a tool that has changed.
        Once = "once",
        /// Nothing.
        Never = "never",
    }
}

section! {
    /// A gateway on another machine, or of another user.
    struct RawRemoteGateway("the remote gateway", Leave) {
        /// Its URL: `wss://host:port`, or `ws://127.0.0.1:port` for a tunnel.
        url: ConfigText = "url" => schema::websocket,
        /// Its token, preferably a `secret://…` reference. `OPENCLAW_GATEWAY_TOKEN` is used if there
        /// is none.
        token: CredentialText = "token" => schema::gateway_token,
        /// The SHA-256 fingerprint of its certificate. Only this certificate is accepted then,
        /// whatever its issuer.
        tls_fingerprint: ConfigText = "tlsFingerprint" => schema::fingerprint,
        /// Whether `ws://` may leave this machine, which exposes the token and all messages (false).
        allow_plaintext: bool = "allowPlaintext",
    }
}

section! {
    /// Authentication of gateway clients.
    struct RawGatewayAuth("the gateway's authentication", Leave) {
        /// The kind of authentication; only `token` is supported.
        mode: ConfigText = "mode" => schema::auth_mode,
        /// The token that clients must present, preferably a `secret://…` reference. Without one, a
        /// token is generated.
        token: CredentialText = "token" => schema::gateway_token,
    }
}

section! {
    /// Metrics of the gateway.
    struct RawMetrics("the metrics", Refuse) {
        /// `true` serves `/metrics` whatever interface the gateway listens on, `false` turns
        /// metrics off. By default it is served if the gateway listens on a loopback address.
        enabled: bool = "enabled",
        /// The bearer token of the scraper, preferably a `secret://…` reference. It gives access to
        /// `/metrics` only. The gateway's own token, and access tokens with the scope
        /// `operator.metrics`, are accepted as well.
        token: CredentialText = "token" => schema::gateway_token,
    }
}

section! {
    /// The Control UI of the Node OpenClaw.
    struct RawControlUi("the Control UI", Leave) {
        /// The folder of its files, such as `dist/control-ui` of the npm package `openclaw`. Without
        /// it, no pages are served.
        root: ConfigText = "root" => schema::filled,
    }
}

section! {
    /// Editor sessions.
    struct RawAcp("the settings of editor sessions", Leave) {
        /// MCP servers per session (10). `OPENCLAW_ACP_MAX_SERVERS` overrides it.
        max_servers: Whole<0, 1000> = "maxServers",
        /// MCP tools per session (100). `OPENCLAW_ACP_MAX_TOOLS` overrides it.
        max_tools: Whole<0, 1000> = "maxTools",
        /// Whether servers of an editor may use the logins of `openclaw mcp login` (false).
        use_logins: bool = "useLogins",
    }
}
