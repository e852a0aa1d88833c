//! The settings of the built-in tools, validated.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;

/// The settings of the built-in tools (G6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeTools {
    /// The tool that fetches a page.
    pub web_fetch: WebFetchTool,
    /// The tool that runs commands.
    pub exec: ExecTool,
    /// The tools that read and write files.
    pub fs: FileTools,
}

/// The tool that fetches a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebFetchTool {
    /// Whether there is such a tool.
    pub enabled: bool,
    /// Hosts of private networks that may be fetched from all the same.
    pub allow_private: Vec<PrivateHost>,
    /// A longer page is cut.
    pub max_chars: usize,
    /// How long a page may take.
    pub timeout: Duration,
}

/// The tool that runs commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecTool {
    /// Whether there is such a tool.
    pub enabled: bool,
    /// How long a command may take.
    pub timeout: Duration,
    /// The shell that runs the commands; none: the usual one of the system.
    pub shell: Option<String>,
}

/// The tools that read and write files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileTools {
    /// Whether there are such tools.
    pub enabled: bool,
}

/// A host of a private network, or all of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrivateHost {
    /// A host by its name, in lower case.
    Name(String),
    /// A network; a single address is one of its own.
    Network(IpNet),
}

impl PrivateHost {
    /// Reads a name, an address or a network.
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
            // A number that is an address in disguise, such as `2130706433`.
            url::Host::Domain(_) | url::Host::Ipv4(_) | url::Host::Ipv6(_) => None,
        }
    }

    /// Whether this address is meant.
    pub fn holds(&self, address: IpAddr) -> bool {
        matches!(self, Self::Network(network) if network.contains(&address.to_canonical()))
    }

    /// Whether a host of this name is meant.
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
