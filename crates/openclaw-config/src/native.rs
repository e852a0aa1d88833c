//! Validated settings of the built-in tools.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;

use crate::raw::ApprovalPolicy;

/// The settings of the built-in tools (G6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeToolSettings {
    /// The tool that fetches web pages.
    pub web_fetch: WebFetchTool,
    /// The tool that runs commands.
    pub exec: ExecTool,
    /// The tools that read and write files.
    pub fs: FileTools,
}

/// The tool that fetches web pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebFetchTool {
    /// Whether the tool is available.
    pub enabled: bool,
    /// Which fetches need the user's approval.
    pub approval: ApprovalPolicy,
    /// Hosts that need no approval: names in lower case, or `*.` and a name for all below it.
    pub allow_hosts: Vec<String>,
    /// Private hosts that may be fetched from.
    pub allow_private: Vec<PrivateHost>,
    /// Pages are truncated to this many characters.
    pub max_chars: usize,
    /// The timeout for fetching a page.
    pub timeout: Duration,
}

/// The tool that runs commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecTool {
    /// Whether the tool is available.
    pub enabled: bool,
    /// The timeout of a command.
    pub timeout: Duration,
    /// The shell that runs the commands; `None` for the system default.
    pub shell: Option<String>,
}

/// The tools that read and write files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileTools {
    /// Whether the tools are available.
    pub enabled: bool,
}

/// A host on a private network, or a whole network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrivateHost {
    /// A host by its name, in lower case.
    Name(String),
    /// A network; a single address is a network of one.
    Network(IpNet),
}

impl PrivateHost {
    /// Parses a host name, an IP address or a network.
    ///
    /// ```
    /// # use openclaw_config::PrivateHost;
    /// let network = PrivateHost::parse("10.1.0.0/16").unwrap();
    /// assert!(network.holds("10.1.2.3".parse().unwrap()));
    /// assert!(PrivateHost::parse("Printer.local").unwrap().is_named("printer.local"));
    /// assert_eq!(PrivateHost::parse("printer.local:631"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let unbracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Ok(address) = unbracketed.unwrap_or(text).parse::<IpAddr>() {
            return Some(Self::Network(address.to_canonical().into()));
        }
        if text.contains('/') {
            return text.parse::<IpNet>().ok().map(|network| Self::Network(network.trunc()));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        match url::Host::parse(text).ok()? {
            url::Host::Domain(name) if name.chars().all(is_plain) => Some(Self::Name(name)),
            // A number that parses as an address, such as `2130706433`.
            url::Host::Domain(_) | url::Host::Ipv4(_) | url::Host::Ipv6(_) => None,
        }
    }

    /// Whether this is a network that contains `address`.
    pub fn holds(&self, address: IpAddr) -> bool {
        matches!(self, Self::Network(network) if network.contains(&address.to_canonical()))
    }

    /// Whether this is the host named `host`.
    pub fn is_named(&self, host: &str) -> bool {
        matches!(self, Self::Name(name) if name.eq_ignore_ascii_case(host))
    }
}

impl fmt::Display for PrivateHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Network(network) => network.fmt(f),
        }
    }
}
