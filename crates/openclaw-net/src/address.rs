//! Which network addresses untrusted input may make us connect to (T8).
//!
//! An address named by a page, a server or a model may target something that only this machine can
//! reach: the machine itself, the private network, the cloud's metadata service.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Returns whether an address belongs to the public internet. Unknown ranges are not public.
///
/// ```
/// use openclaw_net::address::is_public;
///
/// assert!(is_public([93, 184, 215, 14].into()));
/// assert!(!is_public([169, 254, 169, 254].into()));
/// ```
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_special = match address.octets() {
        // This network, private networks, loopback.
        [0 | 10 | 127, ..] | [192, 168, ..] => true,
        [172, second, ..] => (16..32).contains(&second),
        // Carrier-grade NAT.
        [100, second, ..] => (64..128).contains(&second),
        // Link-local, including the metadata services of clouds.
        [169, 254, ..] => true,
        // The metadata service of Azure, within a public range.
        [168, 63, 129, 16] => true,
        // Protocol assignments, documentation, relays, benchmarks.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] => true,
        [198, 51, 100, _] | [203, 0, 113, _] => true,
        // Multicast, reserved, broadcast.
        [first, ..] => first >= 224,
    };
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // NAT64: an embedded IPv4 address.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            is_public_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
        }
        // Protocol assignments (Teredo among them), documentation, 6to4.
        [0x2001, second, ..] => second >= 0x200 && second != 0xdb8,
        [0x2002, ..] => false,
        [0x3fff, second, ..] => second >= 0x1000,
        // Global unicast. IPv4-mapped, unique local, link-local and all others are outside of it.
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

/// An entry that is neither a host name nor a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a host name, an IP address or a network such as `10.0.0.0/8`")]
pub struct BadEntry(String);

/// Hosts and networks that may be reached although they are not public.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowPrivate {
    hosts: Vec<String>,
    networks: Vec<IpNet>,
}

impl AllowPrivate {
    /// Parses entries: host names, addresses, networks.
    ///
    /// # Errors
    /// If an entry is none of these.
    ///
    /// ```
    /// use openclaw_net::address::AllowPrivate;
    ///
    /// let allowed = AllowPrivate::new(["wiki.corp.example", "10.1.0.0/16"])?;
    /// assert!(allowed.host("Wiki.Corp.Example.") && allowed.address([10, 1, 2, 3].into()));
    /// assert!(!allowed.address([10, 2, 0, 1].into()));
    /// # Ok::<(), openclaw_net::address::BadEntry>(())
    /// ```
    pub fn new<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, BadEntry> {
        let mut allowed = Self::default();
        for entry in entries {
            let plain = entry.trim().trim_start_matches('[').trim_end_matches(']');
            if let Ok(network) = plain.parse::<IpNet>() {
                allowed.networks.push(network);
            } else if let Ok(address) = plain.parse::<IpAddr>() {
                allowed.networks.push(address.into());
            } else if is_host_name(plain) {
                allowed.hosts.push(canonical(plain));
            } else {
                return Err(BadEntry(entry.to_owned()));
            }
        }
        Ok(allowed)
    }

    /// Returns whether a host is listed. All addresses that it resolves to are allowed then.
    pub fn host(&self, name: &str) -> bool {
        self.hosts.contains(&canonical(name))
    }

    /// Returns whether an address is in a listed network.
    pub fn address(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&address))
    }
}

fn canonical(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn is_host_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    // A name that ends in a number is meant as an address.
    let last = canonical(text).rsplit('.').next().map(str::to_owned).unwrap_or_default();
    let is_number = last.is_empty() || last.chars().all(|c| c.is_ascii_digit());
    text.len() <= 253 && text.chars().all(fits) && !is_number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_to_be_public_is_public() {
        for public in
            ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::101:101"]
        {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for special in [
            "0.0.0.0",
            "10.0.0.1",
            "127.8.8.8",
            "100.64.0.1",
            "169.254.169.254",
            "168.63.129.16",
            "172.31.255.255",
            "192.0.0.1",
            "192.168.1.1",
            "198.19.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:8.8.8.8",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
        ] {
            assert!(!is_public(special.parse().unwrap()), "{special}");
        }
    }

    #[test]
    fn an_entry_that_is_neither_name_nor_network_is_refused() {
        assert!(AllowPrivate::new(["localhost", "127.0.0.1", "[::1]", "fd00::/8"]).is_ok());
        for bad in ["", "a b", "10.0.0.0/33", "10.1", "https://x.example", "*"] {
            assert_eq!(AllowPrivate::new([bad]), Err(BadEntry(bad.to_owned())), "{bad}");
        }
    }
}
