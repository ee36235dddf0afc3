//! Where the plane dials: which addresses never, which by the configuration. Checked on the
//! resolved address at connect time.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use crate::config::Agents;

/// The rules.
#[derive(Debug, Clone, Default)]
pub struct DialRules {
    allow: Vec<Network>,
    deny: Vec<Network>,
    /// Whose lists these are: `agents` or `webhooks`.
    section: &'static str,
    /// Public addresses need not be listed, all others must be.
    public: bool,
    own: Arc<OnceLock<SocketAddr>>,
}

/// Whether an address names no port, or one that can be dialled. The parser takes any digits, and
/// what is no port would be dialled at the default one: by somebody else's service.
pub(crate) fn has_sound_port(uri: &http::Uri) -> bool {
    let Some(authority) = uri.authority() else {
        return true;
    };
    let behind_user = authority.as_str().rsplit('@').next().unwrap_or_default();
    let port = behind_user.get(authority.host().len()..);
    match port.and_then(|port| port.strip_prefix(':')) {
        None => true,
        Some(port) => port.parse::<u16>().is_ok_and(|port| port > 0),
    }
}

/// An address block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    bits: u8,
}

impl DialRules {
    /// Reads the lists.
    ///
    /// # Errors
    /// Names the entry that is no address and no network.
    pub fn new(agents: &Agents) -> Result<Self, String> {
        let read = |list: &[String]| -> Result<Vec<Network>, String> {
            list.iter().map(|text| Network::parse(text)).collect()
        };
        Ok(Self {
            allow: read(&agents.allow)?,
            deny: read(&agents.deny)?,
            section: "agents",
            public: false,
            own: Arc::default(),
        })
    }

    /// Those of webhooks: public addresses, and what is listed.
    ///
    /// # Errors
    /// Names the entry that is no address and no network.
    pub fn of_webhooks(allow: &[String]) -> Result<Self, String> {
        Ok(Self {
            allow: allow
                .iter()
                .map(|text| Network::parse(text))
                .collect::<Result<_, _>>()?,
            deny: Vec::new(),
            section: "webhooks",
            public: true,
            own: Arc::default(),
        })
    }

    /// The same without the lists.
    pub(super) fn without_lists(&self) -> Self {
        Self {
            allow: Vec::new(),
            deny: Vec::new(),
            section: "llm_health",
            public: false,
            own: self.own.clone(),
        }
    }

    /// Tells where the plane itself listens; it never dials that.
    pub fn set_own(&self, address: SocketAddr) {
        let _ = self.own.set(address);
    }

    /// Whether this address may be dialled.
    ///
    /// # Errors
    /// A sentence.
    pub fn check(&self, address: SocketAddr) -> Result<(), String> {
        let ip = plain(address.ip());
        if let Some(what) = never(ip) {
            return Err(format!("{ip} is {what}, which the plane never dials"));
        }
        if self.is_own(ip, address.port()) {
            let address = SocketAddr::new(ip, address.port());
            return Err(format!("{address} is the plane itself"));
        }
        let section = self.section;
        if self.deny.iter().any(|network| network.contains(ip)) {
            return Err(format!("{ip} is in {section}.deny"));
        }
        let listed = self.allow.iter().any(|network| network.contains(ip));
        if self.public {
            return match inner(ip) {
                Some(what) if !listed => Err(format!("{ip} is {what}, and not in {section}.allow")),
                _ => Ok(()),
            };
        }
        if !self.allow.is_empty() && !listed {
            return Err(format!("{ip} is not in {section}.allow"));
        }
        Ok(())
    }

    fn is_own(&self, ip: IpAddr, port: u16) -> bool {
        self.own.get().is_some_and(|own| {
            own.port() == port
                && (plain(own.ip()) == ip || (own.ip().is_unspecified() && is_here(ip)))
        })
    }
}

/// The address that a host is as it stands, in any spelling that resolvers take: `127.1`,
/// `2130706433` and `0x7f.1` are `127.0.0.1`. `None` for a name.
pub(crate) fn literal(host: &str) -> Option<IpAddr> {
    let host = host.strip_suffix('.').unwrap_or(host);
    if let Ok(ip) = host.trim_matches(['[', ']']).parse() {
        return Some(ip);
    }
    if host.eq_ignore_ascii_case("localhost") {
        return Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let numbers: Vec<u64> = host.split('.').map(number).collect::<Option<_>>()?;
    let (last, first) = numbers.split_last()?;
    let places = u32::try_from(4usize.checked_sub(first.len())?).ok()?;
    if *last >= 256u64.checked_pow(places)? || first.iter().any(|part| *part > 255) {
        return None;
    }
    let first = first.iter().zip([24, 16, 8]);
    let whole = first.fold(*last, |whole, (part, shift)| whole | (part << shift));
    u32::try_from(whole)
        .ok()
        .map(|whole| Ipv4Addr::from(whole).into())
}

/// Whether a host is made of numbers: no name, so an address or a mistake.
pub(crate) fn is_numeric(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let last = host.rsplit('.').next().unwrap_or("");
    number(last).is_some() || (!last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()))
}

/// One part of an address: decimal, octal after a 0, hexadecimal after 0x.
fn number(part: &str) -> Option<u64> {
    let (digits, radix) = match part.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&part[2..], 16),
        [b'0', _, ..] => (&part[1..], 8),
        _ => (part, 10),
    };
    let plain = digits.bytes().all(|b| b.is_ascii_alphanumeric());
    plain.then(|| u64::from_str_radix(digits, radix).ok())?
}

impl Network {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no address and no network like 10.0.0.0/8");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let address: IpAddr = address.trim().parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        if bits > most {
            return Err(wrong());
        }
        Ok(Self { address, bits })
    }

    fn contains(&self, ip: IpAddr) -> bool {
        match (self.address, ip) {
            (IpAddr::V4(net), IpAddr::V4(ip)) => {
                let shift = 32 - u32::from(self.bits);
                (u32::from(net) ^ u32::from(ip))
                    .checked_shr(shift)
                    .unwrap_or(0)
                    == 0
            }
            (IpAddr::V6(net), IpAddr::V6(ip)) => {
                let shift = 128 - u32::from(self.bits);
                (u128::from(net) ^ u128::from(ip))
                    .checked_shr(shift)
                    .unwrap_or(0)
                    == 0
            }
            _ => false,
        }
    }
}

/// An IPv4 address in IPv6 clothes is that IPv4 address.
fn plain(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    }
}

/// Whether an address is one of this machine: only those can be bound.
fn is_here(ip: IpAddr) -> bool {
    ip.is_loopback() || std::net::UdpSocket::bind((ip, 0)).is_ok()
}

/// Why an address is not one of the public internet.
fn inner(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            match (a, b, c) {
                (127, ..) => Some("loopback"),
                (10, ..) | (172, 16..=31, _) | (192, 168, _) => Some("private"),
                (100, 64..=127, _) => Some("shared address space"),
                (192, 0, 0 | 2) | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113) => {
                    Some("reserved")
                }
                (192, 88, 99) | (240.., ..) => Some("reserved"),
                _ => None,
            }
        }
        IpAddr::V6(v6) => {
            let [a, b, ..] = v6.segments();
            match (a, b) {
                _ if v6.is_loopback() => Some("loopback"),
                (0xfc00..=0xfdff, _) => Some("private"),
                (0xfec0..=0xfeff, _) => Some("site-local"),
                (0x2001, 0x0db8 | 0..=0x01ff) | (0x3fff, 0..=0x0fff) | (0x0100, 0) => {
                    Some("reserved")
                }
                // These carry an IPv4 address; whose, only their translator knows.
                (0x2002, _) | (0x64, 0xff9b) => Some("a translated address"),
                (0x2000..=0x3fff, _) => None,
                _ => Some("reserved"),
            }
        }
    }
}

/// What nobody's configuration allows.
fn never(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(v4) if v4.is_unspecified() || v4.octets()[0] == 0 => Some("unspecified"),
        IpAddr::V4(v4) if v4.is_link_local() => Some("link-local or cloud metadata"),
        IpAddr::V4(v4) if [[100, 100, 100, 200], [168, 63, 129, 16]].contains(&v4.octets()) => {
            Some("cloud metadata")
        }
        IpAddr::V4(v4) if v4.is_multicast() => Some("multicast"),
        IpAddr::V4(v4) if v4.is_broadcast() => Some("broadcast"),
        IpAddr::V4(_) => None,
        IpAddr::V6(v6) if v6.is_unspecified() => Some("unspecified"),
        IpAddr::V6(v6) if v6.is_multicast() => Some("multicast"),
        IpAddr::V6(v6) if v6.segments()[0] & 0xffc0 == 0xfe80 => Some("link-local"),
        IpAddr::V6(v6) if v6 == Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254) => {
            Some("cloud metadata")
        }
        // 64:ff9b::/96 carries an IPv4 address through a translator.
        IpAddr::V6(v6) if v6.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0] => {
            let [.., a, b, c, d] = v6.octets();
            never(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
        }
        IpAddr::V6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], deny: &[&str]) -> DialRules {
        let own = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        DialRules::new(&Agents {
            allow: own(allow),
            deny: own(deny),
            ..Agents::default()
        })
        .unwrap()
    }

    #[test]
    fn what_is_never_dialled_is_refused_in_any_clothes() {
        let rules = rules(&["0.0.0.0/0", "::/0"], &[]);
        for bad in [
            "169.254.169.254:80",
            "[::ffff:169.254.169.254]:80",
            "[64:ff9b::a9fe:a9fe]:80",
            "0.0.0.0:80",
            "[::]:80",
            "224.0.0.1:80",
            "[ff02::1]:80",
            "[fe80::1]:80",
            "255.255.255.255:80",
            "[fd00:ec2::254]:80",
            "168.63.129.16:80",
        ] {
            assert!(rules.check(bad.parse().unwrap()).is_err(), "{bad}");
        }
        for fine in ["127.0.0.1:8001", "10.1.2.3:80", "8.8.8.8:443", "[::1]:8001"] {
            rules.check(fine.parse().unwrap()).unwrap();
        }
    }

    #[test]
    fn webhooks_go_to_public_addresses_and_to_what_is_listed() {
        let none = DialRules::of_webhooks(&[]).unwrap();
        let some = DialRules::of_webhooks(&["10.0.0.0/8".to_owned(), "::1".to_owned()]).unwrap();
        for public in ["8.8.8.8:443", "[2606:4700::1]:443", "172.32.0.1:80"] {
            none.check(public.parse().unwrap()).unwrap();
        }
        for inner in [
            "127.0.0.1:80",
            "10.1.2.3:80",
            "172.16.0.1:80",
            "192.168.1.1:80",
            "100.64.0.1:80",
            "198.18.0.1:80",
            "240.0.0.1:80",
            "[::1]:80",
            "[fd00::1]:80",
            "[::ffff:10.0.0.1]:80",
            "[2002:a00:1::]:80",
            "[64:ff9b::a00:1]:80",
        ] {
            assert!(none.check(inner.parse().unwrap()).is_err(), "{inner}");
        }
        for listed in ["10.1.2.3:80", "[::1]:80", "[::ffff:10.0.0.1]:80"] {
            some.check(listed.parse().unwrap()).unwrap();
        }
        let all = DialRules::of_webhooks(&["0.0.0.0/0".to_owned(), "::/0".to_owned()]).unwrap();
        assert!(all.check("169.254.169.254:80".parse().unwrap()).is_err());
        all.set_own("0.0.0.0:8080".parse().unwrap());
        assert!(all.check("127.0.0.1:8080".parse().unwrap()).is_err());
        all.check("127.0.0.1:8081".parse().unwrap()).unwrap();
    }

    #[test]
    fn every_spelling_of_an_address_is_that_address() {
        for (host, ip) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1.", "127.0.0.1"),
            ("127.1", "127.0.0.1"),
            ("127.0.1", "127.0.0.1"),
            ("2130706433", "127.0.0.1"),
            ("0x7f000001", "127.0.0.1"),
            ("0x7F.1", "127.0.0.1"),
            ("0177.0.0.01", "127.0.0.1"),
            ("10.65535", "10.0.255.255"),
            ("0", "0.0.0.0"),
            ("[::1]", "::1"),
            ("LocalHost.", "127.0.0.1"),
        ] {
            assert_eq!(literal(host), Some(ip.parse().unwrap()), "{host}");
        }
        for name in [
            "",
            ".",
            "a",
            "1.2.3.4.5",
            "256.1",
            "127.1.65536",
            "4294967296",
            "0x",
            "08",
            "1..2",
            "+1",
            "a.1.example",
            "127.0.0.1.nip.io",
            "18446744073709551616",
        ] {
            assert_eq!(literal(name), None, "{name}");
        }
        assert!(is_numeric("256.1") && is_numeric("4294967296") && is_numeric("08"));
        assert!(!is_numeric("a") && !is_numeric("1.example") && !is_numeric(""));
    }

    #[test]
    fn the_lists_and_the_own_listener_count() {
        let rules = rules(&["10.0.0.0/8", "127.0.0.0/8"], &["10.9.0.0/16"]);
        rules.set_own("127.0.0.1:8080".parse().unwrap());
        for (address, fine) in [
            ("10.1.1.1:1", true),
            ("10.9.1.1:1", false),
            ("11.1.1.1:1", false),
            ("127.0.0.1:8080", false),
            ("127.0.0.1:8081", true),
        ] {
            assert_eq!(
                rules.check(address.parse().unwrap()).is_ok(),
                fine,
                "{address}"
            );
        }
        assert!(Network::parse("10.0.0.0/33").is_err());
        assert!(Network::parse("ten").is_err());
    }
}
