//! The gateway's settings, validated.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use openclaw_secrets::SecretTemplate;

use crate::server::SafeUrl;

/// The gateway's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayConfig {
    /// The port that it listens on; 0: any that is free.
    pub port: u16,
    /// Where it can be reached from.
    pub bind: Bind,
    /// The token that clients show; none: it is generated.
    pub token: Option<SecretTemplate>,
    /// The https address under which it is reached from outside.
    pub public_url: Option<SafeUrl>,
    /// Web pages that may connect, as the `Origin` header names them.
    pub allowed_origins: Vec<String>,
    /// How much time work under way gets when it is stopped.
    pub shutdown_grace: Duration,
}

/// Where the gateway can be reached from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bind {
    /// This machine only.
    Loopback,
    /// Everywhere.
    All,
    /// Wherever this address leads.
    Address(IpAddr),
}

impl Bind {
    /// The address to listen on.
    pub fn ip(self) -> IpAddr {
        match self {
            Self::Loopback => Ipv4Addr::LOCALHOST.into(),
            Self::All => Ipv4Addr::UNSPECIFIED.into(),
            Self::Address(address) => address,
        }
    }

    /// Whether only this machine can reach it.
    pub fn is_loopback(self) -> bool {
        self.ip().is_loopback()
    }

    /// Reads what may stand in a configuration, or after `--bind`.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            // The Node OpenClaw's `auto` prefers this machine, too.
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
