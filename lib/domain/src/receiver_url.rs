//! The URL that a coach registers for webhooks. It may contain a secret: logs, mails and changes show only its host.
//!
//! `https` only, no credentials, no fragment, no IPv6 address, no host that is refused by name or by address. The URL
//! parser (WHATWG) converts decimal, hex and octal spellings of an IPv4 address before the address is checked.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

use crate::ip_ranges::is_public;

pub const MAX_URL_CHARS: usize = 2048;

const TOO_LONG: &str = "must be at most 2048 characters as it is sent, with %C3%BC for ü";

/// Limits of a host name and of its labels (RFC 1035, 2.3.4).
const MAX_NAME_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;
const LOOPBACK_NAME: &str = "localhost";
/// Names that lead into private networks or to a cloud's metadata, and every name below them. A private address that
/// such a name resolves to is refused too. This list gives the reason early, and holds if the resolver is manipulated.
const REFUSED_NAMES: [&str; 11] = [
    LOOPBACK_NAME,
    "internal",
    "local",
    "localdomain",
    "home.arpa",
    "metadata",
    "instance-data",
    "rancher-metadata",
    "metadata.goog",
    "metadata.tencentyun.com",
    "metadata.platformequinix.com",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// https to public addresses.
    Public,
    /// Also loopback, over http too. For local runs only.
    PublicAndLoopback,
}

impl Reach {
    /// The environment variable that sets the reach. Only local runs set it.
    pub const SETTING: &str = "ALLOW_LOOPBACK_RECEIVERS";

    /// Returns the reach for the variable's value: `true` adds loopback and http, any other value nothing.
    pub fn by_setting(value: Option<&str>) -> Self {
        if value == Some("true") { Self::PublicAndLoopback } else { Self::Public }
    }

    pub fn allows(self, address: IpAddr) -> bool {
        is_public(address) || self.is_own(address)
    }

    /// Returns true if requests can be sent to the address. Functions have no way out over IPv6.
    pub fn has_way_to(self, address: IpAddr) -> bool {
        address.is_ipv4() || self.is_own(address)
    }

    /// Returns true for this machine, in a local run.
    fn is_own(self, address: IpAddr) -> bool {
        self == Self::PublicAndLoopback && address.to_canonical().is_loopback()
    }
}

/// A URL that webhooks may be sent to, as far as its text shows.
#[derive(Clone, PartialEq, Eq)]
pub struct ReceiverUrl(Url);

impl ReceiverUrl {
    /// Parses a URL, or returns the rule that the text breaks.
    pub fn parse(text: &str, reach: Reach) -> Result<Self, &'static str> {
        // The parser would silently repair these.
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("must not contain spaces or control characters");
        }
        let authority =
            text.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
        if authority.contains('@') {
            return Err(CREDENTIALS);
        }
        let url =
            Url::parse(text).map_err(|_| "must be an absolute https URL such as https://hooks.example.com/coaching")?;
        check_scheme(&url, reach)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(CREDENTIALS);
        }
        if url.fragment().is_some() {
            return Err("must not contain a fragment (#...): it would not be sent");
        }
        if authority.is_empty() {
            return Err("must name a host after ://");
        }
        if url.port() == Some(0) {
            return Err("must not name port 0: nothing can listen there");
        }
        check_host(&url, reach)?;
        Ok(Self(url))
    }

    /// Parses a caller's text, otherwise like [`ReceiverUrl::parse`]. The stored URL is longer if characters have to be
    /// escaped.
    pub fn parse_sent(text: &str, reach: Reach) -> Result<Self, &'static str> {
        let url = Self::parse(text, reach)?;
        if url.expose().len() > MAX_URL_CHARS { Err(TOO_LONG) } else { Ok(url) }
    }

    /// Returns true if the URL is within a reach, which may be narrower than at parsing.
    pub fn is_within(&self, reach: Reach) -> bool {
        check_scheme(&self.0, reach).and_then(|()| check_host(&self.0, reach)).is_ok()
    }

    /// Returns the whole URL. For sending, storing and its owner; never for a log.
    pub fn expose(&self) -> &str {
        self.0.as_str()
    }

    /// Returns true if the host is a name to resolve, not an address.
    pub fn is_name(&self) -> bool {
        matches!(self.0.host(), Some(Host::Domain(_)))
    }

    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }
}

const CREDENTIALS: &str = "must not contain a user name or password; check the signature instead";
/// The rule for addresses that no webhook is sent to.
pub const REFUSED_ADDRESS: &str = "must not point to a private, loopback, link-local or otherwise special address";
const NO_IPV6: &str = "must not hold an IPv6 address: webhooks are sent to IPv4 addresses and to names that have one";
const REFUSED_NAME: &str = "must not point to a name of a private network (localhost, *.internal, *.local, *.home.arpa) or of a cloud's metadata";
const MALFORMED_NAME: &str = "must name a host of letters, digits and hyphens";

fn check_scheme(url: &Url, reach: Reach) -> Result<(), &'static str> {
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_allowed_loopback(url, reach) => Ok(()),
        _ => Err("must begin with https://"),
    }
}

fn check_host(url: &Url, reach: Reach) -> Result<(), &'static str> {
    match url.host() {
        None => Err("must name a host"),
        Some(Host::Ipv4(address)) if !reach.allows(address.into()) => Err(REFUSED_ADDRESS),
        Some(Host::Ipv6(address)) if !reach.allows(address.into()) => Err(REFUSED_ADDRESS),
        Some(Host::Ipv6(address)) if !reach.has_way_to(address.into()) => Err(NO_IPV6),
        Some(Host::Domain(name)) if is_refused_name(name) && !is_allowed_loopback(url, reach) => Err(REFUSED_NAME),
        Some(Host::Domain(name)) if !is_host_name(name) => Err(MALFORMED_NAME),
        Some(_) => Ok(()),
    }
}

fn is_allowed_loopback(url: &Url, reach: Reach) -> bool {
    reach == Reach::PublicAndLoopback && is_loopback(url)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => is_or_is_below(name, LOOPBACK_NAME),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    }
}

/// Returns true for a valid host name. The URL parser accepts more than a name server, a certificate or an HTTP library
/// does. Underscores are allowed because they are common.
fn is_host_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        (1..=MAX_LABEL_BYTES).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    name.len() <= MAX_NAME_BYTES && name.split('.').all(is_label)
}

fn is_refused_name(name: &str) -> bool {
    REFUSED_NAMES.iter().any(|refused| is_or_is_below(name, refused))
}

fn is_or_is_below(name: &str, suffix: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == suffix || name.strip_suffix(suffix).is_some_and(|rest| rest.ends_with('.'))
}

impl fmt::Debug for ReceiverUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReceiverUrl({})", self.host())
    }
}

#[cfg(test)]
mod tests;
