//! Validated gateway settings.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use openclaw_secrets::SecretTemplate;

use crate::raw::HubApprovals;
use crate::safe_url::SafeUrl;

/// The gateway's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayConfig {
    /// The port to listen on; 0 picks a free one.
    pub port: u16,
    /// The interface to listen on.
    pub bind: Bind,
    /// The token that clients must present; `None` to generate one.
    pub token: Option<SecretTemplate>,
    /// The public https URL.
    pub public_url: Option<SafeUrl>,
    /// Web origins that may connect, as in the `Origin` header.
    pub allowed_origins: Vec<String>,
    /// The folder of the Control UI; `None` to serve no pages.
    pub control_ui: Option<PathBuf>,
    /// The grace period for running work on shutdown.
    pub shutdown_grace: Duration,
    /// Calls per minute of each client of the hub; `None` for no limit.
    pub hub_rate_limit: Option<NonZeroU32>,
    /// What clients of the hub may approve without the scope for approvals.
    pub hub_approvals: HubApprovals,
    /// The gateway to use instead of one on this machine.
    pub remote: Option<RemoteGateway>,
}

/// A gateway on another machine, or of another user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteGateway {
    /// Its URL: `wss://…` or `ws://…`.
    pub url: SafeUrl,
    /// Its token.
    pub token: Option<SecretTemplate>,
    /// The SHA-256 of the only accepted certificate: 64 hexadecimal digits.
    pub tls_fingerprint: Option<String>,
    /// Whether the connection may leave this machine without encryption.
    pub allow_plaintext: bool,
}

/// The settings of the gateway's metrics.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetricsConfig {
    /// Whether `/metrics` is served; `None` if the gateway listens on a loopback address only.
    pub enabled: Option<bool>,
    /// A token that gives access to `/metrics` only.
    pub token: Option<SecretTemplate>,
}

impl MetricsConfig {
    /// Whether anything is counted.
    pub fn counts(&self) -> bool {
        self.enabled != Some(false)
    }

    /// Whether `/metrics` is served by a gateway that listens on this address.
    pub fn is_served_on(&self, bind: IpAddr) -> bool {
        self.enabled.unwrap_or_else(|| bind.to_canonical().is_loopback())
    }
}

/// The interface that the gateway listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bind {
    /// This machine only.
    Loopback,
    /// All interfaces.
    All,
    /// The interface with this address.
    Address(IpAddr),
}

impl Bind {
    /// Returns the address to listen on.
    pub fn ip(self) -> IpAddr {
        match self {
            Self::Loopback => Ipv4Addr::LOCALHOST.into(),
            Self::All => Ipv4Addr::UNSPECIFIED.into(),
            Self::Address(address) => address,
        }
    }

    /// Whether it is reachable from this machine only.
    pub fn is_loopback(self) -> bool {
        self.ip().is_loopback()
    }

    /// Parses a value of `gateway.bind` or `--bind`.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            // Node OpenClaw's `auto` prefers loopback too.
            "loopback" | "auto" => Self::Loopback,
            "lan" | "all" => Self::All,
            address => Self::Address(address.parse().ok()?),
        })
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loopback => f.write_str("loopback"),
            Self::All => f.write_str("all"),
            Self::Address(address) => address.fmt(f),
        }
    }
}
